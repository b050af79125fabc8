"""Faults in the commands."""

from __future__ import annotations

from tests.planted_faults.fault import fault

FAULTS = [
    fault(
        "comments-for-everybody",
        "mcpgreen/cli/clients/formats/json_edits.py",
        "    if tree.first_comment >= 0 and not spot.has_comments:",
        "    if tree.first_comment >= 0 and not spot.root:",
        "tests/cli/clients/test_corpus.py",
    ),
    fault(
        "entry-takes-the-comment-of-another",
        "mcpgreen/cli/clients/formats/json_edits.py",
        "        at = _behind_comments(text, behind)\n",
        "        at = behind\n",
        "tests/cli/clients/test_corpus.py",
    ),
    fault(
        "key-twice-in-a-client-s-file",
        "mcpgreen/cli/clients/formats/json_edits.py",
        "    if len(members) > 1:\n",
        "    if len(members) > 2:\n",
        "tests/cli/clients/test_corpus.py",
    ),
    fault(
        "installs-side-by-side",
        "mcpgreen/cli/clients/client_file.py",
        "        if now.read() != self.content:\n",
        "        if now.read() is None and self.content:\n",
        "tests/cli/clients/test_install.py::test_a_change_at_the_last_moment_is_not_overwritten",
    ),
    fault(
        "backup-that-everybody-reads",
        "mcpgreen/cli/clients/client_file.py",
        "        os.fchmod(descriptor, stat.S_IMODE(self.status.st_mode))\n",
        "        os.fchmod(descriptor, 0o644)\n",
        "tests/cli/clients/test_install.py::test_file_and_backup_keep_the_mode",
    ),
    fault(
        "former-entry-forgotten",
        "mcpgreen/cli/clients/install.py",
        "    former = record.formers.get(spot.name) if record else None\n",
        "    former = None\n",
        "tests/cli/clients/test_install.py::test_an_entry_that_stood_there_comes_back_even_then",
    ),
    fault(
        "secrets-in-an-entry",
        "mcpgreen/cli/clients/launch.py",
        "        if _is_ours(name) and not _is_secret(name) and environ[name]:\n",
        "        if _is_ours(name) and environ[name]:\n",
        "tests/cli/clients/test_config.py::test_settings_go_along_and_secrets_do_not",
    ),
    fault(
        "failed-scan-succeeds",
        "mcpgreen/cli/registry.py",
        "    return 1 if is_failed else 0\n",
        "    return 0\n",
        "tests/cli/test_commands.py::test_a_scan_over_the_limit_fails_with_its_reason",
    ),
    fault(
        "timeout-of-zero",
        "mcpgreen/cli/opening.py",
        'if not 0 < secs < float("inf"):',
        'if not 0 <= secs < float("inf"):',
        "tests/cli/test_command_line.py::test_a_timeout_of_run_tool_is_positive",
    ),
    fault(
        "permission-that-restricts",
        "mcpgreen/cli/trying/run_tool.py",
        'elif allowed and (settings.tool_allowlist or settings.tool_allow_default == "deny"):',
        "elif allowed:",
        "tests/cli/test_run_tool.py::test_permissions_are_only_ever_added",
    ),
    fault(
        "dry-run-does-not-ask-the-policy",
        "mcpgreen/cli/trying/run_tool.py",
        "        services.policy.require_allowed(name, terms.entry_json, services.runner.next_serial())\n",
        "",
        "tests/cli/test_run_tool.py::test_a_dry_run_says_that_the_policy_would_refuse",
    ),
    fault(
        "status-looks-for-other-files",
        "mcpgreen/cli/registry.py",
        'FILE_OF.get(kind, kind) + ".json"',
        'kind + ".json"',
        "tests/cli/test_validate.py::test_the_status_tells_what_the_files_hold",
    ),
    fault(
        "every-script-made-executable",
        "mcpgreen/cli/checking/validate.py",
        "if is_script and (meta_file or metadata.read_inline_of(path) is not None):",
        "if is_script:",
        "tests/cli/test_validate.py::test_described_scripts_are_made_executable",
        "tests/cli/test_validate_checks.py::test_scripts_with_a_comment_are_made_executable",
    ),
    fault(
        "broken-hooks-are-well",
        "mcpgreen/cli/checking/server_checks.py",
        "return _syntax_error(path) or next(",
        "return next(",
        "tests/cli/test_validate_checks.py::test_a_hook_that_bash_cannot_read",
    ),
    fault(
        "losses-are-warnings",
        "mcpgreen/cli/checking/item_checks.py",
        "is_lost = type(warning) is Loss or _LOST.search(warning)",
        "is_lost = _LOST.search(warning)",
        "tests/cli/test_validate.py::test_what_will_not_be_served_is_an_error",
    ),
    fault(
        "strict-is-lenient",
        "mcpgreen/cli/checking/findings.py",
        ' and not (self.is_strict and self.count("warning"))',
        "",
        "tests/cli/test_validate.py::test_a_tool_could_be_better",
    ),
    fault(
        "healthy-although-calls-are-refused",
        "mcpgreen/cli/checking/health.py",
        'if report["tools"] == "ok" and _are_calls_refused(project):',
        'if report["tools"] != "ok" and _are_calls_refused(project):',
        "tests/features/test_open_directories.py::test_validate_and_health_say_the_same",
    ),
]
