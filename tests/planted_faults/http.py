"""Faults in Streamable HTTP: sessions, streams and what the headers say."""

from __future__ import annotations

from tests.planted_faults.fault import fault

ERAS = "mcpgreen/transports/http/eras"
TESTS = "tests/transports/http"

FAULTS = [
    fault(
        "http-stateless-call-outlives-its-client",
        f"{ERAS}/exchange.py",
        "if self._is_dropped_with_client and not self._outlet.is_over:",
        "if not self._outlet.is_over and not self._is_dropped_with_client:",
        f"{TESTS}/test_requirements_http.py::test_a_stateless_call_ends_with_its_connection",
    ),
    fault(
        "http-session-call-ends-with-its-connection",
        f"{ERAS}/handshake.py",
        "is_dropped_with_client=False,",
        "is_dropped_with_client=True,",
        f"{TESTS}/test_requirements_http.py::test_a_call_of_a_session_outlives_its_connection",
    ),
    fault(
        "http-batch-of-notifications-is-a-stream",
        f"{ERAS}/exchange.py",
        "if outlet.is_over or not (stream.in_flight or stream.listens):",
        "if not outlet.is_over and not (stream.in_flight or stream.listens):",
        f"{TESTS}/test_handshake_era.py::test_a_batch_of_what_needs_no_answer_is_202",
    ),
    fault(
        "http-headers-are-not-compared",
        f"{ERAS}/header_checks.py",
        "if decoded(sent) != value:",
        "if not decoded(sent):",
        f"{TESTS}/test_requirements_http.py::test_headers_that_differ_from_the_body_are_refused_and_nothing_runs",
    ),
    fault(
        "http-envelope-by-header-alone",
        f"{ERAS}/stateless.py",
        "if params is None or not is_stateless(params):",
        "if params is None:",
        f"{TESTS}/test_stateless_era.py::test_an_envelope_that_is_not_complete_is_400",
    ),
    fault(
        "http-any-known-version",
        f"{ERAS}/handshake.py",
        "elif sent != revision.name:",
        "elif not sent:",
        f"{TESTS}/test_requirements_http.py::test_a_bad_version_in_the_header_is_400_to_every_method",
    ),
    fault(
        "http-version-is-optional",
        f"{ERAS}/handshake.py",
        "if revision.has(Feature.VERSION_HEADER):",
        "if not revision.has(Feature.VERSION_HEADER):",
        f"{TESTS}/test_handshake_era.py::test_a_missing_version_is_refused_where_the_revision_has_the_header",
    ),
    fault(
        "http-empty-events-for-all",
        f"{ERAS}/handshake.py",
        "return self._revision_of(session).has(Feature.PRIMED_STREAMS)",
        "return self._revision_of(session) is not None",
        f"{TESTS}/test_handshake_era.py::test_a_stream_begins_with_a_place_to_go_on_from_where_clients_know_that",
    ),
    fault(
        "http-stream-that-is-over-is-gone-on-with",
        f"{ERAS}/handshake.py",
        "(outlet.has_begun and outlet.has_more_than(number))",
        "outlet.has_begun",
        f"{TESTS}/test_resuming.py::test_there_is_no_stream_to_go_on_with_after_a_cancelled_call",
    ),
    fault(
        "http-all-is-sent-again",
        "mcpgreen/transports/http/streams/outlet.py",
        "again = [frame for frame in self._kept if frame.number > after]",
        "again = list(self._kept)",
        f"{TESTS}/test_resuming.py::test_what_was_told_is_not_told_again",
    ),
    fault(
        "http-new-stream-begins-at-the-beginning",
        "mcpgreen/transports/http/streams/outlet.py",
        "told = self._frames[0].number - 1 if self._frames else self._last_number",
        "told = 0",
        f"{TESTS}/test_resuming.py::test_a_new_stream_of_the_session_begins_after_what_was_told",
    ),
]
