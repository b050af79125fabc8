"""Faults in `mcpgreen wrap` and in what its tools run with."""

from __future__ import annotations

from tests.planted_faults.fault import fault

FAULTS = [
    fault(
        "wrap-asks-with-h-as-well",
        "mcpgreen/cli/wrapping/asking_help.py",
        "        if text:\n            return Help(text, option)\n",
        '        if text and option == "-h":\n            return Help(text, option)\n',
        "tests/cli/wrapping/test_wrap.py::test_h_is_not_tried_once_help_has_worked",
    ),
    fault(
        "wrap-leaves-processes",
        "mcpgreen/cli/children.py",
        "os.killpg(child.pid, signal.SIGKILL)",
        "child.kill()",
        "tests/cli/test_children.py::test_whoever_a_program_leaves_in_its_session_ends_with_it",
    ),
    fault(
        "wrap-passes-files-on",
        "mcpgreen/cli/wrapping/wrap.py",
        "if not SUBCOMMAND.fullmatch(word) or os.path.isfile(word):",
        "if not SUBCOMMAND.fullmatch(word):",
        "tests/cli/wrapping/test_wrap.py::test_words_that_are_no_subcommands_are_refused",
    ),
    fault(
        "wrap-writes-comments-as-they-come",
        "mcpgreen/cli/wrapping/blueprint.py",
        'char if char.isprintable() else " "',
        "char",
        "tests/cli/wrapping/test_reading.py::test_text_becomes_no_code",
    ),
    fault(
        "wrap-trusts-values-of-make",
        "mcpgreen/cli/wrapping/task_files.py",
        '{"type": "string", "pattern": PLAIN_VALUE}',
        '{"type": "string"}',
        "tests/cli/wrapping/test_task_files.py::test_a_value_that_a_shell_would_read_is_refused",
    ),
    fault(
        "command-line-takes-operands-for-options",
        "mcpgreen/sdk/python/mcp_tool_commands.py",
        'if self._is_open and text.startswith("-") and text != "-":',
        'if text.startswith("--") and text == "--":',
        "tests/sdk/test_python_commands.py::test_what_could_be_taken_for_something_else_is_refused",
        "tests/cli/wrapping/test_wrap.py::test_it_is_refused_where_the_command_may_not_take_two_dashes",
    ),
    fault(
        "command-line-lets-output-ask",
        "mcpgreen/sdk/python/mcp_tool_commands.py",
        '        mcp_tool.result(text if text.strip() else end or "It printed nothing.")\n',
        "        mcp_tool.emit_text(text)\n",
        "tests/cli/wrapping/test_wrap.py::test_what_a_command_prints_is_only_text",
    ),
]
