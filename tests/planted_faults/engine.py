"""Faults in the engine: messages, routing, changes, the server as a whole."""

from __future__ import annotations

from tests.planted_faults.fault import fault

FAULTS = [
    fault(
        "batch-of-any-size",
        "mcpgreen/engine/link.py",
        "if len(batch) > MAX_BATCH_MEMBERS:",
        "if len(batch) > 1000 * MAX_BATCH_MEMBERS:",
        "tests/e2e/test_costly_input.py::test_a_batch_of_too_many_members_is_refused_as_one",
    ),
    fault(
        "initialize-in-a-batch",
        "mcpgreen/engine/link.py",
        'elif is_member and (method == "initialize" or is_stateless(message.get("params"))):',
        'elif is_member and is_stateless(message.get("params")):',
        "tests/e2e/test_batches.py::test_initialize_cannot_be_part_of_a_batch",
    ),
    fault(
        "notifications-of-strangers",
        "mcpgreen/engine/link.py",
        'normal_id(message["id"]), error)\n        return True\n',
        'normal_id(message["id"]), error)\n        return "id" in message\n',
        "tests/e2e/test_remote_token.py::test_notifications_without_it_are_dropped",
    ),
    fault(
        "cancelled-id-stays-in-use",
        "mcpgreen/features/call.py",
        "        self.end_early(Event.CANCEL)\n        self.leave_stream()\n",
        "        self.end_early(Event.CANCEL)\n",
        "tests/e2e/test_cancelling.py::test_an_id_is_free_again_after_its_cancellation",
    ),
    fault(
        "one-script-too-many",
        "mcpgreen/engine/router.py",
        "Semaphore(services.settings.max_concurrent_requests)",
        "Semaphore(services.settings.max_concurrent_requests + 1)",
        "tests/e2e/test_concurrency.py::test_no_more_tools_run_at_once_than_allowed",
    ),
    fault(
        "response-of-any-length",
        "mcpgreen/engine/router.py",
        "if has_limit and limit_bytes and sum(map(len, body)) > limit_bytes:",
        "if has_limit and limit_bytes and not body:",
        "tests/features/test_failures.py::test_a_response_over_the_limit_is_an_error",
    ),
    fault(
        "expired-call-run-anew",
        "mcpgreen/engine/router.py",
        "if call.interaction.is_repeat and route.may_repeat is not None and not route.may_repeat(call):",
        "if call.interaction.is_repeat and route.may_repeat is None:",
        "tests/features/test_asking_stateless.py::test_any_other_tool_is_not_run_anew",
    ),
    fault(
        "who-waits-for-its-turn-holds-a-slot",
        "mcpgreen/engine/router.py",
        "            with call.run.turn or NO_TURN, call.run.slot:\n",
        "            with call.run.slot, call.run.turn or NO_TURN:\n",
        "tests/e2e/test_concurrency.py::test_calls_that_wait_for_their_tool_take_no_place_from_others",
    ),
    fault(
        "change-does-not-make-stale",
        "mcpgreen/engine/changes.py",
        "    def _on_news(self) -> None:\n        self._catalog.mark_stale()\n",
        "    def _on_news(self) -> None:\n",
        "tests/e2e/test_many_items.py::test_a_list_shows_what_was_there_when_it_was_asked_for",
    ),
    fault(
        "hook-never-renewed",
        "mcpgreen/engine/changes.py",
        "            self._run_hook_if(self._registrar.is_hook_old)\n",
        "            self._registrar.is_hook_old()\n",
        "tests/e2e/test_registration.py::test_what_the_hook_said_is_asked_for_again_when_it_is_old",
    ),
    fault(
        "parked-calls-outlive-the-server",
        "mcpgreen/features/services.py",
        "            self.asking.parking.clear()\n",
        "            pass\n",
        "tests/engine/test_links.py::test_a_parked_call_leaves_no_greenlet_behind_when_the_server_stops",
    ),
    fault(
        "static-registry-watched",
        "mcpgreen/engine/server.py",
        'if "tools" in self.services.offered and not self.services.settings.static_registry:',
        'if "tools" in self.services.offered:',
        "tests/e2e/test_registered_kinds.py::test_a_static_registry_sees_no_change_of_any_kind",
    ),
    fault(
        "room-waited-for-with-the-slot",
        "mcpgreen/engine/router.py",
        "                if call.sink.has_room:\n",
        "                call.sink.wait_for_room()\n                if call.sink.has_room:\n",
        "tests/engine/test_links.py::test_room_that_is_gone_when_the_slot_comes_is_waited_for_without_it",
    ),
    fault(
        "cancelled-on-its-own-stream-only",
        "mcpgreen/engine/link.py",
        "in (self.stream, *(self.session.streams - {self.stream})):",
        "in (self.stream,):",
        "tests/engine/test_links.py::test_a_call_can_be_cancelled_from_another_stream_of_its_session_only",
    ),
    fault(
        "session-ends-with-any-stream",
        "mcpgreen/engine/server.py",
        "        if link.owns_session:\n",
        "        if link.session:\n",
        "tests/engine/test_links.py::test_a_session_outlives_its_streams_unless_it_came_with_one",
    ),
    fault(
        "failed-start-keeps-its-id",
        "mcpgreen/engine/router.py",
        "            call.leave_stream()\n            sink.respond(self._refusal(call, error))\n",
        "            sink.respond(self._refusal(call, error))\n",
        "tests/engine/test_links.py::test_a_request_that_cannot_be_begun_is_answered_and_its_id_is_free",
    ),
    fault(
        "ids-of-other-streams-refused",
        "mcpgreen/engine/link.py",
        "elif self.stream.is_used(request_id):",
        "elif any(stream.is_used(request_id) for stream in self.session.streams):",
        "tests/engine/test_links.py::test_equal_ids_on_two_streams_do_not_meet",
    ),
]
