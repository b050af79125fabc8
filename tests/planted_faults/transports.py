"""Faults in how bytes reach the engine, and leave it."""

from __future__ import annotations

from tests.planted_faults.fault import fault

FAULTS = [
    fault(
        "idle-connections-closed-when-draining-begins",
        "mcpgreen/transports/http/wire/listening.py",
        "            guest.is_wanted = False\n",
        "            guest.is_wanted = False\n            guest.end()\n",
        "tests/transports/http/test_drain.py::test_a_connection_that_was_kept_has_one_answer_more",
    ),
    fault(
        "answers-refused-while-draining",
        "mcpgreen/transports/http/draining.py",
        'any("id" in each and "method" in each for each in members if type(each) is dict)',
        "message",
        "tests/transports/http/test_drain.py::test_a_session_may_still_answer_and_end",
    ),
    fault(
        "nothing-refused-while-draining",
        "mcpgreen/transports/http/incoming.py",
        "        self._draining.require_no_request(message)\n",
        "",
        "tests/transports/http/test_drain.py::test_a_session_may_still_answer_and_end",
    ),
    fault(
        "end-of-an-early-list-lost",
        "mcpgreen/transports/stdio.py",
        "    if unsent:\n",
        "    if not first:\n",
        "tests/e2e/test_first_lists.py::test_a_client_that_reads_late_gets_all_of_its_first_list",
    ),
    fault(
        "no-grace-at-the-end-of-input",
        "mcpgreen/transports/stdio.py",
        '"eof": settings.eof_grace_secs',
        '"eof": 0',
        "tests/e2e/test_endings.py::test_a_running_call_delivers_after_the_end_of_input",
    ),
    fault(
        "interrupt-ends-like-any-signal",
        "mcpgreen/transports/stdio.py",
        "return 128 + signal.SIGINT if signal.SIGINT in received else 0",
        "return 0",
        "tests/e2e/test_endings.py::test_a_signal_ends_an_idle_server",
    ),
    fault(
        "everything-refused-after-a-long-line",
        "mcpgreen/transports/lines.py",
        'Pieces(), 0, Bounds(), ""\n',
        "Pieces(), 0, Bounds(), self._refusal\n",
        "tests/e2e/test_framing.py::test_a_message_of_several_reads_is_served_after_a_line_over_the_limit",
    ),
    fault(
        "last-line-without-newline-lost",
        "mcpgreen/transports/lines.py",
        '                self._end_line(b"")  # a last',
        "                pass  # a last",
        "tests/e2e/test_framing.py::test_a_last_line_without_a_newline_counts",
    ),
    fault(
        "byte-order-mark-is-rubbish",
        "mcpgreen/transports/lines.py",
        "return line.removeprefix(BOM).strip()",
        "return line.strip()",
        "tests/e2e/test_framing.py::test_what_surrounds_a_message_does_not_matter[BOM]",
    ),
    fault(
        "rest-of-a-write-repeated",
        "mcpgreen/transports/outbox.py",
        "self._current[0] = memoryview(data)[written:]",
        "self._current[0] = memoryview(data)[written - 1 :]",
        "tests/features/test_failures.py::test_megabytes_are_delivered_whole",
        "tests/e2e/test_concurrency.py::test_a_client_that_reads_late_gets_every_answer",
    ),
    fault(
        "nobody-reads-and-we-stay",
        "mcpgreen/transports/outbox.py",
        "        self.drained.set()\n        self.on_broken()\n",
        "        self.drained.set()\n",
        "tests/e2e/test_endings.py::test_a_client_that_stops_reading_ends_the_server",
    ),
    fault(
        "faults-of-years-add-up",
        "mcpgreen/transports/output_guard.py",
        " and is_recent and",
        " and",
        "tests/transports/test_corruption.py::test_so_many_faults_within_the_window_are_too_many",
    ),
    fault(
        "running-call-is-silence",
        "mcpgreen/transports/idle_exit.py",
        "if reads() != seen or link.is_waited_on:",
        "if reads() != seen:",
        "tests/e2e/test_vigil.py::test_a_running_call_is_no_silence",
    ),
    fault(
        "file-read-from-its-beginning",
        "mcpgreen/transports/descriptors.py",
        "elif not self.is_regular_file():  #",
        "else:  #",
        "tests/e2e/test_endings.py::test_input_may_be_a_file",
    ),
]
