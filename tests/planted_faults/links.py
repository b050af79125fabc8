"""Faults in the links: sessions, streams, sinks, batches, questions to the client, the requests that wait."""

from __future__ import annotations

from tests.planted_faults.fault import fault

FAULTS = [
    fault(
        "id-used-twice",
        "mcpgreen/links/stream.py",
        "return request_id in self.in_flight or request_id in self.listens",
        "return request_id in self.listens",
        "tests/e2e/test_ids.py::test_an_id_in_use_is_refused_and_the_first_request_goes_on",
    ),
    fault(
        "no-end-without-exit",
        "mcpgreen/links/session.py",
        "gevent.spawn_later(self._shutdown_secs,",
        "gevent.spawn_later(1000 * self._shutdown_secs,",
        "tests/e2e/test_endings.py::test_without_exit_the_server_ends_by_itself_and_takes_its_scripts_along",
    ),
    fault(
        "question-not-taken-back",
        "mcpgreen/links/requests.py",
        "                _withdraw(sink, request_id)\n",
        "                pass\n",
        "tests/e2e/test_asking.py::test_without_an_answer_in_time_the_client_is_told_and_a_late_one_is_ignored",
    ),
    fault(
        "ids-that-strangers-can-guess",
        "mcpgreen/links/requests.py",
        "        if self._has_strangers:\n            return os",
        "        if self._is_closed:\n            return os",
        "tests/e2e/test_remote_token.py::test_a_stranger_cannot_answer_what_the_client_is_asked",
    ),
    fault(
        "waiting-requests-weigh-nothing",
        "mcpgreen/links/waiting.py",
        "        self._bytes += call.weight_bytes\n",
        "",
        "tests/e2e/test_costly_input.py::test_requests_that_wait_are_weighed_and_nothing_more_is_read",
    ),
    fault(
        "a-line-without-end",
        "mcpgreen/links/waiting.py",
        "if len(self._calls) - free_slots >= self._max_calls or",
        "if",
        "tests/e2e/test_concurrency.py::test_a_line_that_is_too_long_is_refused_and_served_again_later",
    ),
    fault(
        "batch-waits-for-a-cancelled-member",
        "mcpgreen/links/batch.py",
        "    def withdraw(self) -> None:\n        self._expected -= 1\n",
        "    def withdraw(self) -> None:\n",
        "tests/e2e/test_batches.py::test_a_cancelled_member_is_left_out",
    ),
    fault(
        "news-held-back-in-a-batch",
        "mcpgreen/links/batch.py",
        "self.notify = sink.notify",
        "self.notify = lambda line, call=None, **_: self._answers.append((line, call))",
        "tests/e2e/test_batches.py::test_progress_of_a_member_does_not_wait_for_the_others",
    ),
    fault(
        "messages-above-the-level-only",
        "mcpgreen/links/session.py",
        "LEVELS.index(level) >= LEVELS.index(view.log_level)",
        "LEVELS.index(level) > LEVELS.index(view.log_level)",
        "tests/features/test_logging.py::test_a_handshake_client_gets_messages_from_its_level_on",
    ),
    fault(
        "roots-of-a-client-without-bounds",
        "mcpgreen/links/roots.py",
        "if bounds is not None and not any(holds(each, path) for each in bounds):",
        "if bounds == []:",
        "tests/features/test_client_roots.py::test_configured_roots_bound_those_of_a_client",
    ),
    fault(
        "overtaken-answer-counts",
        "mcpgreen/links/roots.py",
        "            self._asking.kill(block=False)  # its answer",
        "            pass  # its answer",
        "tests/features/test_roots.py::test_an_overtaken_answer_is_dropped",
    ),
]
