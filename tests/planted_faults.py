"""Breaches of security and leaks that the tests have to catch. `make faults` (scripts/planted_faults.py) plants each.

When code moves, change the path of its faults; when it is written anew, plant the same mistake where it would be made
now. When the tests of a fault move, name the new place here. A fault is removed only with its behaviour.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Fault(NamedTuple):
    """A mistake that somebody could make: in `file` the text `old`, which stands there once, becomes `new`. Then
    `test` (a file, or one test in it) has to fail."""

    name: str
    file: str
    old: str
    new: str
    test: str


def why_stale(fault: Fault, root: Path) -> str | None:
    """Say why the fault cannot be planted, or its test cannot be run; None if both are possible."""
    if not (root / fault.file).is_file():
        return f"there is no {fault.file}"
    count = (root / fault.file).read_text(encoding="utf-8").count(fault.old)
    if count != 1:
        return f"{fault.file} has {fault.old!r} {count} times instead of once"
    file, _, name = fault.test.partition("::")
    if not (root / file).exists():
        return f"there is no {file}"
    function = name.partition("[")[0]
    if function and not re.search(rf"^def {function}\(", (root / file).read_text(encoding="utf-8"), re.MULTILINE):
        return f"{file} has no {function}"
    return None


FAULTS = [
    Fault(
        "links-in-skills-served",
        "mcpgreen/catalog/skills.py",
        'if not os.path.islink(f"{directory.path}/{file}"):',
        "if True:",
        "tests/features/test_skills.py::test_links_fifos_hidden_files_and_bad_skills_are_not_served",
    ),
    Fault(
        "passed-variables-shown",
        "mcpgreen/features/confidential.py",
        "self._values += [value for value in values if value not in self._values]",
        "pass",
        "tests/features/test_keys.py",
    ),
    Fault(
        "any-variable-passed-on",
        "mcpgreen/catalog/tools.py",
        'known["env"] = [other for other in known["env"] if other != each]',
        "pass",
        "tests/features/test_keys.py",
    ),
    Fault(
        "packages-of-others-used",
        "mcpgreen/features/tools.py",
        'if problem := self._project.ground(f"{root}/{packages.PLACE}").problem_with_directory(programs):',
        "if problem := None:",
        "tests/cli/test_deps.py::test_requirements_of_the_project_are_for_all_other_tools",
    ),
    Fault(
        "helper-keeps-passed-variables",
        "mcpgreen/features/tools.py",
        "            self.script = self.script._replace(warm=None)  # a helper would keep them for other calls",
        "            pass",
        "tests/running/warm/test_warm_python.py::test_a_script_gets_its_keys_with_its_job_and_the_helper_never_has_them",
    ),
    Fault(
        "secrets-by-schema-shown",
        "mcpgreen/logs/secrets.py",
        'if part.get("format") == "password" or part.get("writeOnly") is True:',
        'if part.get("format") == "password":',
        "tests/logs/test_secrets.py",
    ),
    Fault(
        "log-file-follows-links",
        "mcpgreen/logs/outputs.py",
        "os.O_CREAT | os.O_NOFOLLOW | CAREFULLY",
        "os.O_CREAT | CAREFULLY",
        "tests/logs/test_log_file.py",
    ),
    Fault(
        "log-file-for-everybody",
        "mcpgreen/logs/outputs.py",
        "            os.fchmod(fd, OWNER_ONLY)",
        "            pass",
        "tests/logs/test_log_file.py",
    ),
    Fault(
        "errors-forge-lines",
        "mcpgreen/journal.py",
        "if isinstance(value, (str, BaseException)) else value",
        "if isinstance(value, str) else value",
        "tests/test_journal.py",
    ),
    Fault(
        "typo-opens-a-permission",
        "mcpgreen/settings/rows.py",
        'return "allow" if raw.strip().lower() in ("allow", "all") else "deny"',
        'return "deny" if raw.strip().lower() == "deny" else "allow"',
        "tests/test_settings.py",
    ),
    Fault(
        "dots-in-a-file-uri",
        "mcpgreen/text/uris.py",
        '    if segment == "..":\n        raise ValueError("a path must not contain ..")\n',
        "",
        "tests/test_uris.py",
    ),
    Fault(
        "private-files-served",
        "mcpgreen/files/confined.py",
        "if directory is None or private.covers(real_path):",
        "if directory is None:",
        "tests/test_confined.py::test_what_is_hidden_in_a_project_counts_as_outside",
    ),
    Fault(
        "report-through-a-link",
        "mcpgreen/files/regular_files.py",
        "os.open(name, os.O_RDONLY | os.O_NOFOLLOW | CAREFULLY, dir_fd=dir_fd)",
        "os.open(name, os.O_RDONLY | CAREFULLY, dir_fd=dir_fd)",
        "tests/running/test_private_files.py::test_a_report_that_is_a_link_is_not_read",
    ),
    Fault(
        "modules-of-the-project-imported",
        "mcpgreen/__main__.py",
        "    _import_nothing_from_here()\n    try:\n",
        "    try:\n",
        "tests/running/test_foreign_modules.py",
    ),
    Fault(
        "results-cached-for-everybody",
        "mcpgreen/protocol/revision_fields.py",
        'stamped.setdefault("cacheScope", "private")',
        'stamped.setdefault("cacheScope", "public")',
        "tests/e2e/test_eras.py::test_every_stateless_result_is_stamped",
    ),
    Fault(
        "state-of-another-request",
        "mcpgreen/protocol/input/state.py",
        "if payload.get(member) != value:",
        "if member not in payload:",
        "tests/protocol/test_request_state.py",
    ),
    Fault(
        "cancelled-script-lives-on",
        "mcpgreen/running/runner.py",
        "        except BaseException:\n            # The first signal",
        "        except Exception:\n            # The first signal",
        "tests/e2e/test_cancelling.py::test_a_cancelled_call_is_never_answered_and_its_process_is_gone",
    ),
    Fault(
        "places-for-output-not-given-back",
        "mcpgreen/running/processes/pipes.py",
        "            self._places.give_back(self._owner)\n",
        "",
        "tests/features/test_large_outputs.py::test_a_place_for_large_output_is_given_back_however_a_call_ends",
    ),
    Fault(
        "grandchildren-not-told-to-end",
        "mcpgreen/running/processes/stopping.py",
        "        unseen.extend(fresh)\n",
        "",
        "tests/e2e/test_cancelling.py::test_a_process_that_left_the_group_can_clean_up_too",
    ),
    Fault(
        "guardian-kills-the-client",
        "mcpgreen/running/guardian.sh",
        ' && [ "$session" != "$2" ]',
        "",
        "tests/running/test_guardian.py::test_the_process_that_started_the_server_is_left_alone",
    ),
    Fault(
        "server-open-to-scripts",
        "mcpgreen/running/system.py",
        "_ask(PR_SET_DUMPABLE, 0)",
        "_ask(PR_SET_DUMPABLE, 1)",
        "tests/running/test_seclusion.py::test_a_script_cannot_reach_into_the_server",
    ),
    Fault(
        "check-of-a-cancelled-call-goes-on",
        "mcpgreen/running/schema_checks.py",
        "                if line is None:\n                    process.end()\n",
        "                pass\n",
        "tests/features/test_costly_checks.py::test_a_cancelled_call_takes_its_check_with_it",
    ),
    Fault(
        "secrets-for-tools",
        "mcpgreen/running/scripts/environment.py",
        "return {name: value for name, value in kept.items() if name not in WITHHELD}",
        "return kept",
        "tests/features/test_logging.py::test_a_secret_of_the_server_reaches_neither_tools_nor_messages",
    ),
    Fault(
        "secrets-for-providers",
        "mcpgreen/running/scripts/environment.py",
        "name.startswith(PROVIDER_PREFIXES)) and name not in WITHHELD",
        "name.startswith(PROVIDER_PREFIXES))",
        "tests/features/test_providers.py::test_the_secrets_of_the_server_are_for_no_script",
    ),
    Fault(
        "files-of-a-call-stay",
        "mcpgreen/running/scripts/scratch.py",
        "        self.remove()\n        return reports\n",
        "        return reports\n",
        "tests/running/test_surroundings.py::test_the_scratch_files_of_a_call_are_gone_afterwards",
    ),
    Fault(
        "state-directory-of-somebody-else",
        "mcpgreen/files/regular_files.py",
        "if status.st_mode & 0o077 and (must_be_new or others_may_write(fd, status)):",
        "if status.st_mode & 0o002:",
        "tests/running/test_private_files.py::test_a_directory_that_others_may_use_is_not_taken",
    ),
    Fault(
        "temporary-place-open-to-all",
        "mcpgreen/running/scripts/temporary.py",
        "if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:",
        "if mode & stat.S_IWOTH and mode & stat.S_ISVTX and False:",
        "tests/running/test_temporary.py::test_a_tmpdir_that_will_not_do_is_not_made_and_the_systems_place_is_used",
    ),
    Fault(
        "answers-for-others-to-read",
        "mcpgreen/running/scripts/replies.py",
        "if status.st_uid != os.geteuid() or status.st_mode & 0o077:",
        "if status.st_uid != os.geteuid():",
        "tests/running/test_private_files.py::test_an_answer_is_not_put_into_a_directory_of_others",
    ),
    Fault(
        "files-embedded-from-anywhere",
        "mcpgreen/running/scripts/embedding.py",
        "allowed=roots, private=private",
        'allowed=[*roots, "/"], private=private',
        "tests/features/test_embedding.py::test_a_file_outside_the_roots_is_left_out",
    ),
    Fault(
        "group-may-write-scripts",
        "mcpgreen/files/writers.py",
        "status.st_gid != _own_group()",
        "False",
        "tests/running/test_trust.py",
    ),
    Fault(
        "links-lead-out-of-their-directory",
        "mcpgreen/running/trust.py",
        "        if not is_within(place, self.directory):\n            return f",
        "        if not place:\n            return f",
        "tests/running/test_trust.py",
    ),
    Fault(
        "broken-policy-allows",
        "mcpgreen/running/policy.py",
        'if not end.failure and said.get("verdict") in ("allowed", "none"):',
        'if said.get("verdict", "none") in ("allowed", "none"):',
        "tests/features/test_policy.py::test_no_clear_yes_is_a_no",
    ),
    Fault(
        "tag-not-put-on",
        "mcpgreen/running/processes/spawning.py",
        "        self._tags.put_on(tag)\n",
        "",
        "tests/running/test_runs.py::test_one_number_joins_request_process_and_files",
    ),
    Fault(
        "helper-holds-our-output",
        "mcpgreen/running/processes/spawning.py",
        "for fd in (0, 1, 2) if fd != as_fd]",
        "for fd in (0,) if fd != as_fd]",
        "tests/running/test_runs.py::test_a_helper_holds_nothing_but_its_socket",
    ),
    Fault(
        "variables-of-others-trusted",
        "mcpgreen/project/project.py",
        "        self.require_trusted(path)\n        variables, ignored",
        "        variables, ignored",
        "tests/features/test_open_directories.py::test_variables_that_others_could_have_written_keep_the_server_from_starting",
    ),
    Fault(
        "project-of-another-user",
        "mcpgreen/project/unmarked.py",
        " and status.st_uid in (os.geteuid(), 0)",
        "",
        "tests/catalog/test_project.py::test_what_belongs_to_another_user_is_no_project_unless_it_is_named",
    ),
    Fault(
        "links-out-of-tools",
        "mcpgreen/catalog/tree_scan.py",
        "is_file and (not is_link or is_within(os.path.realpath(entry.path), home))",
        "is_file",
        "tests/catalog/test_tools.py",
    ),
    Fault(
        "icons-from-anywhere",
        "mcpgreen/project/icons.py",
        "allowed=(private.root, directory), private=hidden",
        'allowed=("/",), private=hidden',
        "tests/catalog/test_icons.py",
    ),
    Fault(
        "addresses-in-disguise",
        "mcpgreen/providers/netguard.py",
        "    if NUMBER.fullmatch(labels[-1]):\n",
        "    if not labels:\n",
        "tests/providers/test_urls.py",
    ),
    Fault(
        "only-the-first-address-judged",
        "mcpgreen/providers/netguard.py",
        "        for text in found:\n",
        "        for text in found[:1]:\n",
        "tests/providers/test_netguard.py",
    ),
    Fault(
        "links-of-a-repository-read",
        "mcpgreen/providers/git.py",
        'OTHER_ENTRIES = {"120000": "a symbolic link", ',
        "OTHER_ENTRIES = {",
        "tests/providers/test_git.py::test_what_is_not_there_is_named",
    ),
    Fault(
        "git-on-without-being-asked",
        "mcpgreen/providers/git.py",
        "    if not settings.enable_git_provider:\n",
        "    if not settings:\n",
        "tests/providers/test_git.py::test_no_connection_is_made_when_the_guard_refuses",
    ),
    Fault(
        "provider-of-others-runs",
        "mcpgreen/providers/reading.py",
        "path, command, project.ground(directory))",
        "path, command)",
        "tests/features/test_providers.py::test_a_script_that_others_may_write_to_does_not_run",
    ),
    Fault(
        "ids-that-strangers-can-guess",
        "mcpgreen/links/session.py",
        ".hex() if self._needs_token else",
        ".hex() if self._is_closed else",
        "tests/e2e/test_remote_token.py::test_a_stranger_cannot_answer_what_the_client_is_asked",
    ),
    Fault(
        "state-of-somebody-is-anybodys",
        "mcpgreen/features/asking/asking.py",
        "    who = None if call.principal is None else jsontext.digest(call.principal.name)\n",
        "    who = None\n",
        "tests/engine/test_principals.py::test_a_sealed_state_is_good_for_its_principal_alone",
    ),
    Fault(
        "nobody-is-everybody",
        "mcpgreen/features/asking/asking.py",
        "belongs_to=_identity_of(call))",
        "belongs_to={key: value for key, value in _identity_of(call).items() if value is not None})",
        "tests/engine/test_principals.py::test_a_sealed_state_is_good_for_its_principal_alone",
    ),
    Fault(
        "session-of-somebody-is-anybodys",
        "mcpgreen/engine/server.py",
        "        elif session.principal != stream.principal:\n",
        "        elif False:\n",
        "tests/engine/test_principals.py::test_a_session_belongs_to_the_caller_who_opened_it",
    ),
    Fault(
        "scopes-are-decoration",
        "mcpgreen/features/call.py",
        "            self.principal.require(scopes)\n",
        "            pass\n",
        "tests/engine/test_principals.py::test_a_tool_is_refused_to_a_caller_without_its_scopes",
    ),
    Fault(
        "unreadable-scopes-are-none",
        "mcpgreen/catalog/functions/reading.py",
        '            hides_scopes = any(name == "**" or may_mean_scopes(name) for name in unread)\n',
        "",
        "tests/catalog/functions/test_discovery.py::test_a_tool_whose_scopes_cannot_be_read_is_served_to_nobody",
    ),
    Fault(
        "scopes-of-one-function-replace-those-of-the-file",
        "mcpgreen/catalog/tools.py",
        'with_all_scopes(file.path, b"", {**stated, **function.fields}, stated)',
        "{**stated, **function.fields}",
        "tests/catalog/functions/test_discovery.py::test_a_description_of_the_file_counts_for_each_function",
    ),
    Fault(
        "provider-read-for-somebody-else",
        "mcpgreen/features/resources.py",
        "variables={**request.variables, AUTH_VARIABLE: call.auth_json}",
        "variables=request.variables",
        "tests/engine/test_principals.py::test_a_provider_is_asked_for_each_principal",
    ),
    Fault(
        "project-policy-not-asked",
        "mcpgreen/features/tools.py",
        "    call.services.policy.require_allowed(tool.name, terms.entry_json, call.serial)\n",
        "",
        "tests/features/test_policy.py::test_what_it_refuses_does_not_run",
    ),
    Fault(
        "state-good-for-other-arguments",
        "mcpgreen/features/asking/asking.py",
        '"m": call.method, "t": named, "a": arguments, "p": who}',
        '"m": call.method, "t": named, "p": who}',
        "tests/features/test_asking_stateless.py::test_a_state_of_another_request_is_refused",
    ),
    Fault(
        "answers-written-anywhere",
        "mcpgreen/features/asking/scripts.py",
        "if not isinstance(path, str) or not path.startswith(prefix):",
        "if not isinstance(path, str):",
        "tests/features/test_asking.py::test_an_answer_is_written_only_where_answers_belong",
    ),
    Fault(
        "helpers-outlive-the-script",
        "mcpgreen/features/call.py",
        "            helper.kill(block=False)\n",
        "            pass\n",
        "tests/engine/test_links.py::test_what_is_asked_for_a_script_ends_with_it",
    ),
    Fault(
        "parked-calls-outlive-the-server",
        "mcpgreen/features/services.py",
        "            self.asking.parking.clear()\n",
        "            pass\n",
        "tests/engine/test_links.py::test_a_parked_call_leaves_no_greenlet_behind_when_the_server_stops",
    ),
    Fault(
        "http-stateless-call-outlives-its-client",
        "mcpgreen/transports/http/exchange.py",
        "if ends_with_client and not outlet.is_over:",
        "if not ends_with_client and not outlet.is_over:",
        "tests/transports/http/test_requirements_http.py::test_a_stateless_call_ends_with_its_connection",
    ),
    Fault(
        "http-length-beside-an-encoding",
        "mcpgreen/transports/http/wire/heads.py",
        "    if length is not None:\n",
        '    if length == "":\n',
        "tests/transports/http/test_attacks_framing.py::test_a_body_that_one_of_two_readings_would_find_is_not_looked_for",
    ),
    Fault(
        "http-target-with-a-host",
        "mcpgreen/transports/http/wire/heads.py",
        'if not target.startswith(b"/"):',
        "if not target:",
        "tests/transports/http/test_attacks_framing.py::test_a_request_line_that_is_none_is_refused",
    ),
    Fault(
        "http-headers-that-begin-an-answer",
        "mcpgreen/transports/http/wire/connection.py",
        "{_in_one_line(value)}",
        "{value}",
        "tests/transports/http/test_connection.py::test_a_header_is_one_line_whatever_the_application_says",
    ),
    Fault(
        "http-host-may-be-missing",
        "mcpgreen/transports/http/door.py",
        "if not self._takes_any_host and not self._is_our_host(host):",
        "if host and not self._takes_any_host and not self._is_our_host(host):",
        "tests/transports/http/test_door.py::test_an_old_client_without_a_host_gets_nowhere",
    ),
    Fault(
        "http-any-origin-is-also-none",
        "mcpgreen/transports/http/door.py",
        "(ANY in self._origins and found is not None)",
        "ANY in self._origins",
        "tests/transports/http/test_door.py::test_any_origin_is_any_page_with_an_address",
    ),
    Fault(
        "token-for-anybody",
        "mcpgreen/transports/http/oauth/resource_server.py",
        "                audience=self._audiences,\n",
        '                audience=json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))["aud"],\n',
        "tests/transports/oauth/test_tokens.py::test_a_token_is_refused",
    ),
    Fault(
        "any-algorithm-will-do",
        "mcpgreen/transports/http/oauth/resource_server.py",
        " or algorithm not in KEY_OF:",
        ":",
        "tests/transports/oauth/test_tokens.py::test_an_algorithm_that_is_not_on_the_list",
    ),
    Fault(
        "critical-extensions-ignored",
        "mcpgreen/transports/http/oauth/resource_server.py",
        '    if "crit" in header or "b64" in header:\n',
        "    if False:\n",
        "tests/transports/oauth/test_tokens.py::test_critical_extensions_and_other_kinds_of_jwt_are_refused",
    ),
    Fault(
        "bound-token-for-everybody",
        "mcpgreen/transports/http/oauth/resource_server.py",
        '    if "cnf" in claims:\n',
        "    if False:\n",
        "tests/transports/oauth/test_tokens.py::test_a_token_is_refused",
    ),
    Fault(
        "issuer-without-tls",
        "mcpgreen/transports/http/oauth/keys.py",
        'parts.scheme == "http" and parts.hostname in LOOPBACK',
        'parts.scheme == "http"',
        "tests/transports/oauth/test_resource_server.py::test_what_is_wrong_keeps_the_server_from_starting",
    ),
    Fault(
        "half-configured-is-open",
        "mcpgreen/transports/http/serving.py",
        "            if value:\n",
        "            if False:\n",
        "tests/transports/oauth/test_resource_server.py::test_what_is_wrong_keeps_the_server_from_starting",
    ),
    Fault(
        "interpreter-of-the-project",
        "mcpgreen/cli/checking/scripts.py",
        " if not is_within(os.path.realpath(place), root)",
        "",
        "tests/cli/checking/test_findings.py::test_nothing_of_a_project_is_run",
    ),
    Fault(
        "doctor-tells-secrets",
        "mcpgreen/cli/doctor/doctor.py",
        '"(secret)" if row.secret else ',
        "",
        "tests/cli/checking/test_doctor.py::test_settings_have_an_origin_and_secrets_stay_secret",
    ),
    Fault(
        "backup-that-everybody-reads",
        "mcpgreen/cli/clients/install.py",
        "        mode = 0o600 if self.status is None else stat.S_IMODE(self.status.st_mode)\n",
        "        mode = 0o644\n",
        "tests/cli/clients/test_install.py::test_file_and_backup_keep_the_mode",
    ),
    Fault(
        "secrets-in-an-entry",
        "mcpgreen/cli/clients/launch.py",
        "if environ[name] and _is_ours(name) and not _is_secret(name)]\n",
        "if environ[name] and _is_ours(name)]\n",
        "tests/cli/clients/test_config.py::test_settings_go_along_and_secrets_do_not",
    ),
    Fault(
        "python-children-of-a-run-stay",
        "mcpgreen/sdk/python/mcp_tool_commands.py",
        "os.killpg(process.pid, number)",
        "os.kill(process.pid, number)",
        "tests/sdk/test_python_sdk.py::test_a_cancelled_run_is_stopped_with_its_children",
    ),
    Fault(
        "shell-path-outside-the-roots",
        "mcpgreen/sdk/paths.sh",
        '  if [[ ${MCP_ROOTS_COUNT:-0} != 0 ]] && ! mcp_roots_contains "$path"; then\n',
        '  if [[ ${MCP_ROOTS_COUNT:-0} == 0 ]] && ! mcp_roots_contains "$path"; then\n',
        "tests/sdk/test_shell_sdk.py::test_require_path_ends_the_tool_for_what_it_cannot_accept",
    ),
    Fault(
        "evaluated-argument",
        "mcpgreen/sdk/arguments.sh",
        '=\\$__mcp_value"\n    fi\n',
        '=\\"$__mcp_value\\""\n    fi\n',
        "tests/sdk/test_shell_plain.py::test_parsed_arguments_are_the_same_with_and_without_the_table",
    ),
    Fault(
        "wrap-trusts-values-of-make",
        "mcpgreen/cli/wrapping/task_files.py",
        '{"type": "string", "pattern": PLAIN_VALUE}',
        '{"type": "string"}',
        "tests/cli/wrapping/test_task_files.py::test_a_value_that_a_shell_would_read_is_refused",
    ),
    Fault(
        "wrap-lets-clients-choose-the-program",
        "mcpgreen/cli/wrapping/shell_lines.py",
        "    is_known = not program or program in HARMLESS or is_fixed or SCRIPT.fullmatch(script)",
        "    is_known = EDGE not in program",
        "tests/cli/wrapping/test_task_files.py::test_what_a_target_runs_is_no_argument",
    ),
    Fault(
        "process-of-a-session-shared",
        "mcpgreen/features/residents.py",
        'if stays.scope == "session":',
        'if stays.scope == "call":',
        "tests/running/test_resident.py::test_sessions_have_processes_of_their_own",
    ),
    Fault(
        "process-of-a-shared-token-shared",
        "mcpgreen/features/residents.py",
        "is_known = call.principal is not None and not call.principal.is_shared",
        "is_known = call.principal is not None",
        "tests/running/test_resident.py::test_stateless_callers_who_cannot_be_told_apart_share_nothing",
    ),
    Fault(
        "answers-of-others-taken",
        "mcpgreen/running/resident/process.py",
        "exchange = self._calls.get(number) if type(number) is int else None",
        "exchange = next(iter(self._calls.values()), None)",
        "tests/stress/test_residents.py::test_each_of_many_calls_gets_its_own_answer",
    ),
]
