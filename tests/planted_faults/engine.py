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
        "parked-scripts-outlive-the-server",
        "mcpgreen/features/services.py",
        "            self.asking.parking.clear()\n",
        "            pass\n",
        "tests/engine/test_links.py::test_a_parked_call_ends_with_the_server",
    ),
    fault(
        "static-registry-watched",
        "mcpgreen/engine/server.py",
        'if "tools" in self.services.offered and not self.services.settings.static_registry:',
        'if "tools" in self.services.offered:',
        "tests/e2e/test_registered_kinds.py::test_a_static_registry_sees_no_change_of_any_kind",
    ),
]
