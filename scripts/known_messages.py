"""What users meet when something goes wrong: the message, its cause and the cure. `make docs` puts it on errors.md.

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
            "The launcher of a checkout looked for a Python that has the packages, and found none.",
            "`make run` in the checkout, once; or name a Python with `MCPGREEN_PYTHON`. See [Install](install.md).",
        ),
        Known(
            "there is no project here or above: …",
            "A command looks for a project in the current folder and above, and found none.",
            "`--project-root DIR`, or `mcpgreen new NAME`. See [Begin a project](projects.md).",
        ),
        Known(
            "no project around …: …; using the bundled example",
            "The client started the server in a folder of its own choice, and its entry names no project.",
            "Put `--project-root` and the full path into the entry, or let `mcpgreen config --install` write it.",
        ),
        Known(
            "others can reach this address, so set MCPGREEN_HTTP_TOKEN …",
            "`--http` names an address that other machines can reach, and nothing says who may come in.",
            "Set it in the environment of the server, or listen at 127.0.0.1: [Security](security.md#over-http).",
        ),
        Known(
            "http_allowed_hosts names a host, and there is no token: …",
            "A server at 127.0.0.1 needs no token, but a proxy in front of it makes it reachable for others.",
            "Set `MCPGREEN_HTTP_TOKEN`; or `MCPGREEN_HTTP_ALLOW_ANONYMOUS=true` if the proxy checks who comes.",
        ),
        Known(
            "a token needs at least … characters, this one has …",
            "`MCPGREEN_HTTP_TOKEN` is short enough to be guessed.",
            "`openssl rand -hex 32` prints one that is not.",
        ),
        Known(
            "no client could send this token: …",
            "`MCPGREEN_HTTP_TOKEN` has a character that cannot be in an `Authorization` header, such as a space.",
            "Use letters, digits and `-._~+/`.",
        ),
        Known(
            "cannot be used for TLS: …",
            "`http_cert` or `http_key` cannot be read, or the key is not the one of the certificate.",
            "The message goes on with what is wrong. Both are PEM files; the key may be in the same file.",
        ),
        Known(
            "only … descriptors are allowed, so there are … connections instead of …",
            "The system allows fewer open files than `http_max_connections` needs.",
            "Raise it with `ulimit -n` (systemd: `LimitNOFILE=`), or lower the setting.",
        ),
    ),
    "A tool is not listed": (
        Known(
            "not executable (chmod +x) …",
            "A file in `tools/` has no executable bit, and nothing says that it is meant as a tool.",
            "`chmod +x FILE`",
        ),
        Known(
            "not valid JSON: …",
            "The description is damaged at the line and column that follow; the tool is left out.",
            "Correct it there; `mcpgreen validate` shows all such places at once.",
        ),
        Known(
            "describes no script",
            "A `.meta.json` or `.meta.yaml` file has no script of the same name beside it.",
            "Rename one of the two, or remove the description.",
        ),
    ),
    "A call is refused": (
        Known(
            "Tool '…' not found",
            "The client asks for a name that is not in the list: an old list, a typing error, another project.",
            "`mcpgreen list tools` shows the names. Restart the client if it shows others.",
        ),
        Known(
            "Invalid arguments for tool '…'",
            "The arguments do not match `inputSchema`. The message goes on with what is wrong.",
            "Usually the model corrects itself. If it does not, describe the argument better, with an example.",
        ),
        Known(
            "Tool '…' blocked by policy",
            "`MCPGREEN_TOOL_ALLOWLIST` does not name the tool, or the project's `policy.sh` said no.",
            "Name it there, or `*` for all: [Security](security.md#which-tools-may-run).",
        ),
        Known(
            "This needs the scope …, which the caller does not have.",
            "The tool or prompt has `scopes`, and the token of the caller lacks the ones that are named.",
            "Get a token with these scopes: [Tokens and scopes](oauth.md#scopes-for-a-tool).",
        ),
        Known(
            "may be written to by others",
            "The group or others may change the script or a folder above it, so anybody could have written it.",
            "`chmod go-w` on what the message names, or `mcpgreen validate --fix`. After a clone under umask 002: "
            "`chmod -R go-w .`",
        ),
        Known(
            "belongs to another user",
            "The script, or a folder above it, is neither yours nor root's.",
            "`chown` it, or copy the project to a folder of your own.",
        ),
        Known(
            "Tool '…' cannot run here: …",
            "The tool lists in `needs` what a client must be able to do, and this client cannot do it.",
            "Use another client, or let the tool go on without an answer: [Ask the user](asking.md).",
        ),
    ),
    "A call fails": (
        Known(
            "Tool failed: …",
            "The script ended with an exit code other than 0. The last lines of its stderr follow, or the code.",
            "Run it with `mcpgreen run-tool NAME --verbose`. See [Something is wrong](debugging.md).",
        ),
        Known(
            "… could not be started: …",
            "Usually the program in the first line (`#!`) is not installed, or not on the server's `PATH`.",
            "Install it, or write its full path. A client from the desktop has a short `PATH`: `mcpgreen doctor`.",
        ),
        Known(
            "Tool timed out after …s",
            "The script took longer than `timeoutSecs`, or than 30 s if it has none.",
            "Raise `timeoutSecs` in its description, or report progress and set `progressExtendsTimeout`: "
            "[Limits](limits.md#timeouts-of-a-call).",
        ),
        Known(
            "Tool output exceeded … bytes",
            "The script printed more than `max_tool_output_size`.",
            "Print less, or write a file and embed or link it. The setting can be raised.",
        ),
        Known(
            "Tool output is not valid JSON for declared outputSchema",
            "The description has an `outputSchema`, and stdout is not one JSON value: often it has debug output.",
            "Print only the result to stdout, and everything else to stderr (`>&2`).",
        ),
        Known(
            "Tool '…' has no structured content: …",
            "A warning, not an error: the script printed a JSON object and other text, so the result is only text.",
            "Print everything but the result to stderr: [debug output](debugging.md#the-result-contains-debug-output).",
        ),
        Known(
            "Tool output does not satisfy outputSchema",
            "It is JSON, but it does not match the `outputSchema` of the description.",
            "Change the script or the schema; the message names the place.",
        ),
        Known(
            "The client does not support this question.",
            "The script asks a person or the model, and the client does not support that.",
            "Catch `NotAnswered` and go on without, or declare `needs`.",
        ),
        Known(
            "This interaction has expired",
            "A stateless client (revision 2026-07-28) sent its answer after the script had ended.",
            'Call again. It waits for 15 minutes; with `"interaction": "replay"` it starts again.',
        ),
    ),
    "A resource or a prompt": (
        Known(
            "Resource not found",
            "No resource, template or provider has this URI, or the provider ended with status 3.",
            "`mcpgreen list resources`, `mcpgreen list templates`; try `mcpgreen read URI`.",
        ),
        Known(
            "Invalid resource uri: …",
            "The client sent something that is not a URI, such as a plain path.",
            "Use the `uri` from the list of resources; for a file it begins with `file://`.",
        ),
        Known(
            "Resource outside allowed roots",
            "The file lies outside `resources/`, the [roots](roots.md) and `MCPGREEN_RESOURCES_ROOTS`, or is hidden.",
            "Add its folder to one of these, or move the file.",
        ),
        Known(
            "Resource content exceeds … bytes",
            "It is larger than `max_resource_bytes`.",
            "Serve a part of it, or raise the setting.",
        ),
        Known(
            "Prompt '…' needs the argument …",
            "A required argument is missing.",
            "Give it, or take it out of `required` in the description.",
        ),
    ),
    "The protocol": (
        Known(
            "Server not initialized",
            "A client of an older revision sent a request before `initialize`, or over a pipe before "
            "`notifications/initialized`.",
            "A mistake of the client. By hand: send `initialize`, wait for the answer, then send the notification.",
        ),
        Known(
            "Unsupported protocol version",
            "The request names a revision that needs a handshake, or does not exist. `data` lists those that work.",
            "Use one of these, or begin with `initialize`.",
        ),
        Known(
            "Response exceeded response size limit (… bytes)",
            "The whole answer is larger than three times `max_tool_output_size`, and than 31 MiB.",
            "Return less, or raise the setting.",
        ),
    ),
    "Over HTTP": (
        Known(
            "This host name is not served here; …",
            "Status 403: the client uses a name or address that the server does not know, often that of a proxy, or of "
            "a machine whose server listens at 0.0.0.0.",
            "Name it in `MCPGREEN_HTTP_ALLOWED_HOSTS`: [Security](security.md#over-http).",
        ),
        Known(
            "This origin is not allowed; …",
            "Status 403: a web page asks that is not on this machine.",
            "If it should, name it in `MCPGREEN_HTTP_ALLOWED_ORIGINS`.",
        ),
        Known(
            "A bearer token is needed.",
            "Status 401: the server has a token, and the request carries none.",
            "Let the client send `Authorization: Bearer TOKEN`.",
        ),
        Known(
            "The token is not the right one.",
            "Status 401: it is not the one in `MCPGREEN_HTTP_TOKEN`.",
            "Compare them; a line end or a blank may have been copied along.",
        ),
        Known(
            "There is no such session; send initialize for a new one.",
            "Status 404: the session has ended (idle, DELETE, restart), is on another server, or is somebody else's.",
            "Clients begin anew by themselves. Behind a proxy, send all requests of a session to the same server.",
        ),
        Known(
            "There are … sessions already; …",
            "Status 503: `http_max_sessions` is reached, perhaps by clients that never end theirs.",
            "Raise it, or lower `http_session_idle_secs`: [Limits](limits.md#over-http).",
        ),
        Known(
            "The body may have … bytes (setting max_line_bytes).",
            "Status 413: the message is too long.",
            "Send less, or raise the setting.",
        ),
        Known(
            "The server is stopping.",
            "Status 503: it finishes what it has begun, and takes nothing new.",
            "Ask again: behind a proxy another server answers.",
        ),
    ),
}
