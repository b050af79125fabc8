"""Faults in Streamable HTTP: sessions, streams and what the headers say."""

from __future__ import annotations

from tests.planted_faults.fault import fault

ERAS = "mcpgreen/transports/http/eras"
TESTS = "tests/transports/http"

FAULTS = [
    fault(
        "http-stateless-call-outlives-its-client",
        f"{ERAS}/exchange.py",
        "if self._is_dropped_with_client and not outlet.is_over:",
        "if not outlet.is_over and not self._is_dropped_with_client:",
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
    fault(
        "http-client-that-is-gone-has-no-room",
        "mcpgreen/transports/http/streams/outlet.py",
        "return self.is_lost or not self._is_full",
        "return not self._is_full",
        f"{TESTS}/test_outlet.py::test_a_client_that_is_gone_has_room_for_calls_but_for_no_more_news",
    ),
    fault(
        "http-news-dropped-until-none-are-left",
        "mcpgreen/transports/http/streams/outlet.py",
        "while self._frames and (len(self._frames)",
        "while (len(self._frames)",
        f"{TESTS}/test_outlet.py::test_news_for_a_client_that_leaves_while_much_is_sent_to_it_are_no_error",
    ),
    fault(
        "http-unread-counts-below-nothing",
        "mcpgreen/transports/http/streams/outlet.py",
        "change_bytes = max(change_bytes, -self.unread_bytes)",
        "change_bytes = int(change_bytes)",
        f"{TESTS}/test_outlet.py::test_what_is_unread_never_counts_below_nothing",
    ),
    fault(
        "http-kept-events-hold-their-calls",
        "mcpgreen/transports/http/streams/outlet.py",
        "deque(frame._replace(call=None) for frame in frames if not frame.is_void)",
        "deque(frame for frame in frames if not frame.is_void)",
        f"{TESTS}/test_outlet.py::test_a_stream_that_is_over_holds_none_of_its_calls",
    ),
    fault(
        "http-answer-of-a-client-that-is-gone-counts",
        f"{ERAS}/exchange.py",
        "if self._is_dropped_with_client or not outlet.has_begun:",
        "if self._is_dropped_with_client and not outlet.is_over:",
        f"{TESTS}/test_exchange.py",
    ),
    fault(
        "http-session-ends-in-the-hub",
        "mcpgreen/transports/http/sessions.py",
        "lambda _: gevent.spawn(self.close, opened)",
        "lambda _: self.close(opened)",
        f"{TESTS}/test_sessions.py::test_a_session_with_many_subscriptions_ends_wholly_when_its_client_says_exit",
    ),
    fault(
        "http-refused-initialize-is-kept",
        f"{ERAS}/handshake.py",
        "is_primed=False, is_kept=False",
        "is_primed=False, is_kept=True",
        f"{TESTS}/test_handshake_era.py::test_a_handshake_that_is_refused_makes_no_session",
    ),
    fault(
        "http-drain-waits-for-calls-alone",
        "mcpgreen/transports/http/serving.py",
        "while (self._server.is_busy or self._outlets.have_answers) and",
        "while self._server.is_busy and",
        f"{TESTS}/test_drain.py::test_an_answer_that_is_being_read_is_sent_to_its_end",
    ),
]
