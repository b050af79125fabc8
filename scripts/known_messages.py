"""What users see when something goes wrong: the message, its cause and the fix. `make docs` puts it on errors.md.

Rule: a message is written as the server says it, with `…` for what changes; tests/docs/test_generated.py looks for each
piece in the sources, so that a message whose words change is changed here as well.
"""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    message: str
    cause: str
    cure: str


MESSAGES: dict[str, tuple[Known, ...]] = {
    "When the server starts": (
        Known(
            "no Python >= 3.10 with mcpgreen and its packages was found",
            "The launcher in a checkout found no Python interpreter that has the packages.",
            "Run `make run` in the checkout once, or set `MCPGREEN_PYTHON`. See [Install](install.md).",
        ),
        Known(
            "there is no project here or in a parent directory: …",
            "There is no project in the current folder or any folder above it.",
            "Use `--project-root DIR`, or create a project with `mcpgreen new NAME`. See [Start a "
            "project](projects.md).",
        ),
        Known(
            "no project in or above …: …; using the bundled example",
            "The client started the server in its own folder, and its entry does not name a project.",
            "In the entry, add `--project-root` with the project's full path, or run `mcpgreen config --install`.",
        ),
        Known(
            "others can reach this address, so set MCPGREEN_HTTP_TOKEN …",
            "`--http` names an address that other machines can reach, but the server has no token.",
            "Set the token in the server's environment, or listen on 127.0.0.1: [Security](security.md#over-http).",
        ),
        Known(
            "the settings name a public host, and there is no token: …",
            "A server on 127.0.0.1 needs no token, but a proxy in front of it lets others reach it.",
            "Set `MCPGREEN_HTTP_TOKEN`, or `MCPGREEN_HTTP_ALLOW_ANONYMOUS=true` if the proxy authenticates callers.",
        ),
        Known(
            "a token needs at least … characters, but this one has …",
            "`MCPGREEN_HTTP_TOKEN` is so short that it could be guessed.",
            "Create a longer one with `openssl rand -hex 32`.",
        ),
        Known(
            "clients cannot send this token: …",
            "`MCPGREEN_HTTP_TOKEN` contains a character that an `Authorization` header cannot have, such as a space.",
            "Use letters, digits and `-._~+/`.",
        ),
        Known(
            "… is not a URL; write …",
            "`MCPGREEN_HTTP_PUBLIC_URL` lacks `https://`, or a host name.",
            "Set it to the full URL that clients use.",
        ),
        Known(
            "cannot be used for TLS: …",
            "`http_cert` or `http_key` cannot be read, or the key does not match the certificate.",
            "The rest of the message says what is wrong. Both are PEM files, and can be the same file.",
        ),
        Known(
            "the open-file limit is …, so only … connections are served instead of …; raise it with ulimit -n",
            "The system allows fewer open files than `http_max_connections` needs.",
            "Raise the system's limit with `ulimit -n` (systemd: `LimitNOFILE=`), or lower the setting.",
        ),
    ),
    "A tool is not listed": (
        Known(
            "not executable (chmod +x) …",
            "A file in `tools/` has neither the executable bit nor a description.",
            "Run `chmod +x FILE`.",
        ),
        Known(
            "not valid JSON: …",
            "The description has a syntax error at the given line and column, and the tool is left out.",
            "Fix the error there. `mcpgreen validate` shows all such errors at once.",
        ),
        Known(
            "… the skill is left out",
            "A folder in `skills/` breaks a rule for skills. The line says which rule.",
            "Correct it, or remove the folder. See [What counts as a skill](skills.md#what-counts-as-a-skill).",
        ),
        Known(
            "there is no script with the same name next to it",
            "A `.meta.json` or `.meta.yaml` file describes a script that does not exist.",
            "Rename one of the two, or remove the description.",
        ),
    ),
    "A call is refused": (
        Known(
            "Tool '…' not found",
            "The client asked for a tool that is not in the list: the client's list is old, the name has a "
            "typo, or the client uses another project.",
            "Check the names with `mcpgreen list tools`. If the client shows other names, restart it.",
        ),
        Known(
            "Invalid arguments for tool '…'",
            "The arguments do not match `inputSchema`. The rest of the message says what is wrong.",
            "Usually, the model corrects itself. If it does not, improve the argument's description, and add an "
            "example.",
        ),
        Known(
            "Tool '…' blocked by policy",
            "`MCPGREEN_TOOL_ALLOWLIST` does not contain the tool, or the project's `policy.sh` refused it.",
            "Add the tool to the list, or use `*` for all tools: [Security](security.md#which-tools-may-run).",
        ),
        Known(
            "This needs the scope …, which the caller does not have.",
            "The tool or prompt requires `scopes` that the caller's token does not have; the message lists them.",
            "Get a token with these scopes: [Tokens and scopes](oauth.md#scopes-for-a-tool).",
        ),
        Known(
            "can be written to by others",
            "Other users, or a group with other members, can change the script or a folder above it, so they could run "
            "code as you.",
            "Run `mcpgreen validate --fix` in the project, or the command that the message names.",
        ),
        Known(
            "belongs to another user",
            "The script, or a folder above it, belongs to neither you nor root.",
            "Change the owner with `chown`, or copy the project to your own folder.",
        ),
        Known(
            "Tool '…' cannot run here: …",
            "The tool needs something from the client (`needs`) that this client does not support.",
            "Use another client, or make the tool continue without an answer: [Ask the user](asking.md).",
        ),
        Known(
            "Tool '…' needs … in the server's environment. …",
            "The tool requires an environment variable, such as an API key, that the server does not have.",
            "Put the variable in the client's entry with `mcpgreen config --install --env`: [API "
            "keys](tools.md#api-keys).",
        ),
    ),
    "A call fails": (
        Known(
            "There are … unfinished tasks of yours, and … in all; wait until a task ends.",
            "The caller has as many unfinished tasks as one caller may have, or all callers together have too many.",
            "Wait, or cancel tasks: `mcpgreen tasks` lists them.",
        ),
        Known(
            "The result of the task could not be stored",
            "The disk with the user's state directory is full, or the results of all tasks have reached their limit.",
            "Free some space; `mcpgreen tasks clear` removes the tasks that have ended.",
        ),
        Known(
            "no task can be stored: …",
            "The directory for tasks in the user's state belongs to another user, or others can write to it.",
            "Correct its owner and mode, as `mcpgreen doctor` says. Meanwhile, calls do not become tasks.",
        ),
        Known(
            "tasks end with the client, because their process cannot be started: …",
            "Tasks that survive the client run in a second process, and the system has no room for it.",
            "Free what the message names. Until then such tasks run in the server, and end with it.",
        ),
        Known(
            "packages that are not installed yet",
            "The tool lists Python packages in its `# /// script` header, and they are not installed.",
            "Run `mcpgreen deps install` in the project: [What your tools need](dependencies.md#python).",
        ),
        Known(
            "Tool failed: …",
            "The script exited with a nonzero code. The end of its stderr follows, or the code if stderr is empty.",
            "Run the tool with `mcpgreen run-tool NAME --verbose`. See [Troubleshooting](debugging.md).",
        ),
        Known(
            "… could not be started: …",
            "Usually, the program in the shebang is not installed, or is not on the server's `PATH`.",
            "Install the program, or write its full path. Clients started from the desktop have a short `PATH`: run "
            "`mcpgreen doctor`.",
        ),
        Known(
            "Tool timed out after …s",
            "The script ran longer than its `timeoutSecs`, or longer than 30 s by default.",
            "Raise `timeoutSecs` in its description, or report progress and set `progressExtendsTimeout`: "
            "[Limits](limits.md#call-timeouts).",
        ),
        Known(
            "Tool output exceeded … bytes",
            "The script printed more than `max_tool_output_size`.",
            "Print less, write a file and embed or link it, or raise the setting.",
        ),
        Known(
            "The process was not ready after … s (startSecs)",
            "A resident tool did not write its `ready` line in time: it is still loading, or is waiting for something.",
            "Raise `startSecs` in [`stays`](resident-tools.md#options), or make the tool load less at startup. The "
            "rest of the message is the last thing that the process printed.",
        ),
        Known(
            "The process ended with exit code …",
            "A resident tool's process ended while it was handling this call, or before it was ready.",
            "The rest of the message is the last thing that it printed. The next call starts a new process: [Resident "
            "tools](resident-tools.md#the-life-of-a-process).",
        ),
        Known(
            "The process answered with a line longer than … bytes",
            "The response from a resident tool is longer than `max_tool_output_size`.",
            "Return less, or raise the setting.",
        ),
        Known(
            "Too many processes are kept for you already (…, resident_max_per_principal)",
            "This caller already has as many processes as it is allowed for tools with `stays: session`.",
            "End a session, lower the tools' `idleSecs`, or raise the setting.",
        ),
        Known(
            "Tool output is not valid JSON for declared outputSchema",
            "The description has an `outputSchema`, but stdout is not a single JSON value. Often it contains debug "
            "output.",
            "Print only the result to stdout, and everything else to stderr (`>&2`).",
        ),
        Known(
            "Tool '…' has no structured content: …",
            "This is a warning, not an error: the script printed a JSON object and other text, so the result is only "
            "text.",
            "Print everything but the result to stderr: [debug output](debugging.md#the-result-contains-debug-output).",
        ),
        Known(
            "Tool '…' printed a byte that is not UTF-8 (…)",
            "This is a warning: clients accept only UTF-8, so they get `�` instead of this byte.",
            "Print UTF-8, for example through `iconv -f latin1 -t utf-8`. In Python, pass `encoding` to `open`.",
        ),
        Known(
            "Tool output does not satisfy outputSchema",
            "The output is JSON, but does not match the `outputSchema` in the description.",
            "Change the script or the schema. The message says where they differ.",
        ),
        Known(
            "The client does not support this question.",
            "The script asks the user or the model, and the client does not support that.",
            "Catch `NotAnswered` and continue without an answer, or declare `needs`.",
        ),
        Known(
            "This interaction has expired",
            "A stateless client (revision 2026-07-28) sent its answer after the script had ended.",
            "Call the tool again. A script waits for 15 minutes; after that, it is run again if it has "
            '`"interaction": "replay"`.',
        ),
    ),
    "A resource or a prompt": (
        Known(
            "Resource not found",
            "No resource, template or provider has this URI, or the provider exited with status 3.",
            "Check `mcpgreen list resources` and `mcpgreen list templates`, and try `mcpgreen read URI`.",
        ),
        Known(
            "Invalid resource uri: …",
            "The client sent something that is not a URI, such as a plain path.",
            "Use the `uri` from the list of resources. For a file, it starts with `file://`.",
        ),
        Known(
            "Resource outside allowed roots",
            "The file is outside `resources/`, the [roots](roots.md) and `MCPGREEN_RESOURCES_ROOTS`, or it is hidden.",
            "Add its folder to one of these, or move the file.",
        ),
        Known(
            "Resource content exceeds … bytes",
            "The resource is larger than `max_resource_bytes`.",
            "Serve only a part of it, or raise the setting.",
        ),
        Known(
            "Prompt '…' needs the argument …",
            "A required argument is missing.",
            "Pass it, or make it optional in the description.",
        ),
    ),
    "The protocol": (
        Known(
            "Server not initialized",
            "A client that uses an older revision sent a request before `initialize` or, over a pipe, before "
            "`notifications/initialized`.",
            "This is a bug in the client. If you type messages yourself, send "
            "`initialize`, wait for the answer, then send the notification.",
        ),
        Known(
            "Unsupported protocol version",
            "The request names a revision that needs a handshake, or does not exist. `data` lists the supported ones.",
            "Use one of these, or start with `initialize`.",
        ),
        Known(
            "Response exceeded response size limit (… bytes)",
            "The whole response is larger than three times `max_tool_output_size`, and larger than 31 MiB.",
            "Return less, or raise the setting.",
        ),
    ),
    "Over HTTP": (
        Known(
            "The host name … is not allowed; …",
            "Status 403: the client uses a host name or address that the server does not know. Often it is the name "
            "of a proxy, or of a machine whose server listens on 0.0.0.0.",
            "Set `MCPGREEN_HTTP_PUBLIC_URL` to the URL that clients use, or add the name to "
            "`MCPGREEN_HTTP_ALLOWED_HOSTS`: [Security](security.md#over-http).",
        ),
        Known(
            "This origin is not allowed; …",
            "Status 403: the request comes from a web page that is not on this machine.",
            "To allow the page, add its origin to `MCPGREEN_HTTP_ALLOWED_ORIGINS`.",
        ),
        Known(
            "A bearer token is required.",
            "Status 401: the server requires a token, and the request has none.",
            "Configure the client to send an `Authorization: Bearer TOKEN` header.",
        ),
        Known(
            "The bearer token is empty; …",
            "Status 401: nothing follows `Bearer` in the header. Often the variable with the token is not set in the "
            "shell, or in the client's environment.",
            "Set the variable there, and try again.",
        ),
        Known(
            "The token is wrong.",
            "Status 401: the token differs from `MCPGREEN_HTTP_TOKEN`.",
            "Compare them. You may have copied a newline or a space along with the token.",
        ),
        Known(
            "There is no such session; send initialize for a new one.",
            "Status 404: the session has ended (idle, DELETE, restart), is on another server, or belongs to another "
            "caller.",
            "Clients start a new session automatically. Behind a proxy, send all of a session's requests to the same "
            "server.",
        ),
        Known(
            "There are … sessions already; …",
            "Status 503: the `http_max_sessions` limit has been reached, perhaps because of clients that never end "
            "their sessions.",
            "Raise the limit, or lower `http_session_idle_secs`: [Limits](limits.md#over-http).",
        ),
        Known(
            "The body may be at most … bytes long (setting max_line_bytes).",
            "Status 413: the message is too long.",
            "Send less, or raise the setting.",
        ),
        Known(
            "The server is stopping.",
            "Status 503: the server is finishing its running calls, and does not accept new ones.",
            "Try again. Behind a proxy, another server answers.",
        ),
    ),
}
