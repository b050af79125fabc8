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
        '                sink.notify(messages.notification("notifications/cancelled", withdrawn))\n',
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
        "tests/e2e/test_costly_input.py::test_requests_that_wait_are_weighed_and_do_not_keep_a_ping_waiting",
    ),
    fault(
        "a-line-without-end",
        "mcpgreen/links/waiting.py",
        "if len(self._calls) - free_slots >= self._max_calls or",
        "if",
        "tests/e2e/test_concurrency.py::test_a_line_that_is_too_long_is_refused_and_served_again_later",
    ),
    fault(
        "urgent-messages-wait-like-others",
        "mcpgreen/engine/link.py",
        'or message["method"] in URGENT\n',
        'or message["method"] is URGENT\n',
        "tests/e2e/test_bursts.py::test_a_ping_overtakes_a_burst_and_everything_else_keeps_its_order",
    ),
    fault(
        "cancelled-before-its-turn-and-begun",
        "mcpgreen/links/postponed.py",
        "            if not is_dropped(message):\n",
        "            if message:\n",
        "tests/e2e/test_bursts.py::test_what_is_cancelled_before_its_turn_is_never_begun",
        "tests/engine/test_postponed.py::test_a_dropped_one_is_not_served_and_takes_no_room",
    ),
    fault(
        "long-batch-holds-up-pings",
        "mcpgreen/transports/lines.py",
        "self._is_late or type(message) is list  #",
        "self._is_late  #",
        "tests/e2e/test_bursts.py::test_a_ping_overtakes_a_long_batch_whose_members_can_be_cancelled",
    ),
    fault(
        "burst-lost-at-the-end-of-input",
        "mcpgreen/transports/lines.py",
        "            self._link.wait_until_served()\n",
        "",
        "tests/e2e/test_bursts.py::test_a_burst_is_answered_after_the_end_of_input",
    ),
    fault(
        "burst-without-bound",
        "mcpgreen/links/postponed.py",
        "        self._bytes += weight_bytes\n",
        "",
        "tests/engine/test_postponed.py::test_reading_has_to_wait_once_messages_take_too_much_and_goes_on_when_some_are_served",
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
        "            asking.kill(block=False)  # its answer",
        "            pass  # its answer",
        "tests/features/test_roots.py::test_an_overtaken_answer_is_dropped",
    ),
    fault(
        "equal-ids-meet",
        "mcpgreen/links/stream.py",
        "owner: Hashable = None\n    ) -> None:\n        self.sink = sink\n        self.transport = transport\n"
        "        self.principal = principal\n        self.owner = owner\n"
        "        self.in_flight: dict[str | int, Request] = {}\n",
        "owner: Hashable = None, in_flight={}\n    ) -> None:\n        self.sink = sink\n"
        "        self.transport = transport\n"
        "        self.principal = principal\n        self.owner = owner\n"
        "        self.in_flight = in_flight\n",
        "tests/engine/test_links.py::test_equal_ids_on_two_streams_do_not_meet",
    ),
    fault(
        "late-farewell-frees-the-id-of-another",
        "mcpgreen/links/stream.py",
        "if self.in_flight.get(call.id) is call:",
        "if call.id in self.in_flight:",
        "tests/engine/test_links.py::test_who_takes_leave_twice_does_not_free_the_id_of_another",
    ),
    fault(
        "stream-idle-with-calls-in-flight",
        "mcpgreen/links/stream.py",
        "        self.idle.clear()\n",
        "",
        "tests/engine/test_links.py::test_who_takes_leave_twice_does_not_free_the_id_of_another",
    ),
    fault(
        "ready-twice",
        "mcpgreen/links/session.py",
        "if view is None or self.handshake.is_ready:",
        "if view is None:",
        "tests/engine/test_links.py::test_a_client_that_is_ready_twice_is_asked_for_its_roots_once",
    ),
    fault(
        "answers-awaited-from-a-client-that-goes",
        "mcpgreen/links/session.py",
        "        self.requests.close()  # the client is going",
        "        pass  # the client is going",
        "tests/features/test_roots.py::test_when_the_client_has_closed_its_end_nobody_waits_for_its_answer",
    ),
    fault(
        "frames-of-the-cancelled-kept",
        "mcpgreen/links/memory.py",
        "        if call is None or not call.is_cancelled:\n",
        "        if line:\n",
        "tests/engine/test_links.py::test_a_sink_in_memory_keeps_what_a_pipe_would_carry",
    ),
    fault(
        "nothing-lost-without-room",
        "mcpgreen/links/memory.py",
        " and (self.has_room or not is_droppable):",
        ":",
        "tests/engine/test_links.py::test_a_sink_in_memory_keeps_what_a_pipe_would_carry",
    ),
    fault(
        "roots-without-turns",
        "mcpgreen/links/roots.py",
        "            usable.append(root)\n        pause()\n",
        "            usable.append(root)\n",
        "tests/features/test_roots.py::test_others_have_a_turn_after_each_root_that_is_looked_for",
    ),
]
