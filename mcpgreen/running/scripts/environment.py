"""A child's environment variables, including the table of arguments for bash and the request's trace context.

Three modes. `minimal`: PATH, HOME, TMPDIR, LANG and everything named MCP_*, MCPBASH_* or MCPGREEN_*; `allowlist`: also
the named ones; `inherit`: everything, when the operator has confirmed it. Secrets of the server are in none of them.

Rule: what a script sees is a promise to its author. A new variable goes into docs/tool-protocol.md; a function
that reads it goes into both SDKs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from mcpgreen import __version__, journal
from mcpgreen.errors import Denied
from mcpgreen.running.processes.spawning import CONTROL_FD
from mcpgreen.running.scripts import jq, scratch
from mcpgreen.running.scripts.jq import SDK_DIR
from mcpgreen.running.scripts.scratch import CallFiles
from mcpgreen.running.system import MAX_VARIABLE_CHARS
from mcpgreen.settings.settings import ROWS, Settings
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

PREFIXES = ("MCP_", "MCPBASH_", "MCPGREEN_")
SECRETS = frozenset(variable for row in ROWS if row.secret for variable in row.variables)
# Never handed down: it names the caller of another server, if this one was started by a script of that.
AUTH_VARIABLE = "MCP_AUTH_JSON"
WITHHELD = SECRETS | {AUTH_VARIABLE}
MINIMAL_NAMES = ("PATH", "HOME", "TMPDIR", "LANG")
PROVIDER_NAMES = (
    *("PATH", "HOME", "TMPDIR", "TMP", "TEMP", "LANG"),
    *("USERPROFILE", "APPDATA", "SYSTEMROOT", "MSYSTEM", "MSYS2_ARG_CONV_EXCL"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
PROVIDER_PREFIXES = ("LC_", *PREFIXES)
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE")
NAMES_OF = {"git": ("SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_ASKPASS", *CERTIFICATES), "https": CERTIFICATES}
ENCODING = sys.getfilesystemencoding(), "surrogateescape"
MAX_TOKEN_CHARS = 1000
MAX_INTRODUCTION_CHARS = 8192  # of each member
INTRODUCTION = {
    "MCPBASH_SERVER_NAME": "name",
    "MCPBASH_SERVER_VERSION": "version",
    "MCPBASH_SERVER_TITLE": "title",
    "MCPBASH_SERVER_DESCRIPTION": "description",
    "MCPBASH_SERVER_WEBSITE_URL": "websiteUrl",
}
CONTROL_PATH = f"/dev/fd/{CONTROL_FD}"
PYTHON_DIR = os.path.join(SDK_DIR, "python")  # holds the SDK for Python, and nothing else

MAX_TABLE_BYTES = 4096  # the environment of a script holds the arguments twice
MAX_TABLE_ROWS = 200  # and items of an array
MAX_TABLE_DEPTH = 4
TOO_LARGE = 10**15  # some versions of jq print longer integers with an exponent
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_PLAIN_TEXT = re.compile(r"[ -\[\]-~]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), ord("\\"), *range(127, 256))}
# A float keeps fifteen digits. Small fractions may get an exponent, whole numbers may lose their ".0".
_PLAIN_FRACTION = re.compile(r"-?(?=[\d.]{3,16}\Z)(?:[1-9]\d*\.\d*|0\.(?:0{0,2}[1-9])\d*)(?<=[1-9])")

MAX_STATE_CHARS = 512
MAX_STATES = 32
MAX_BAGGAGE_CHARS = 8192

# Version, trace, span and flags. Zeros alone name nothing, and version ff does not exist.
_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_STATE = re.compile(r"[a-z0-9][a-z0-9_*/@-]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]")
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PAIR = rf"{_TOKEN}[ \t]*=[ \t]*[!#-+\--:<-\[\]-~]*"
_ITEM = re.compile(rf"{_PAIR}(?:[ \t]*;[ \t]*(?:{_PAIR}|{_TOKEN}))*")

# As bytes: otherwise posix_spawn encodes every name and value again, which took a tenth of the time of a quick call.
Environment = dict[bytes, bytes]


def packed(variables: Mapping[str, str]) -> Environment:
    # What `os.fsencode` does, without a call of it for each of fifty texts.
    return {name.encode(*ENCODING): value.encode(*ENCODING) for name, value in variables.items()}


def token_variable(token: str | int | None) -> str:
    """Return the progress token for scripts, as far as it fits: they only need to know whether there is one."""
    return _fitting("" if token is None else str(token), MAX_TOKEN_CHARS)


def _fitting(text: str, max_chars: int) -> str:
    return text[:max_chars].encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


def described(name: str, entry: Mapping[str, Any]) -> dict[str, str]:
    """Return what is known of an item, as a variable of this name; nothing if it is too long for one."""
    text = jsontext.dumps(entry).decode("ascii")
    return {name: text} if len(text) <= MAX_VARIABLE_CHARS else {}


class ToolEnvironment:
    """Builds the environment of each call from what is the same for many."""

    def __init__(
        self, environ: Mapping[str, str], *, settings: Settings, project_root: str, server_info: Mapping[str, Any]
    ) -> None:
        self._spill_over_chars: int = settings.env_payload_threshold
        self._refusal = ""
        if settings.tool_env_mode == "inherit" and not settings.tool_env_inherit_allow:
            self._refusal = "tool_env_mode=inherit requires MCPGREEN_TOOL_ENV_INHERIT_ALLOW=true"
        self.about_the_server = {
            **_places_and_programs(environ, settings, project_root),
            "MCP_PROGRESS_STREAM": CONTROL_PATH,
            "MCP_LOG_STREAM": CONTROL_PATH,
            "MCPBASH_FRAMEWORK_VERSION": __version__,
            **{
                variable: _fitting(str(server_info.get(member, "")), MAX_INTRODUCTION_CHARS)
                for variable, member in INTRODUCTION.items()
            },
        }
        inherited = _inherited(environ, settings, project_root)
        self.base = {**inherited, **self.about_the_server, **_python_path(inherited)}
        self.base.setdefault("MCPGREEN_PYTHON", sys.executable)  # for the providers' scripts
        self._packed_base = packed(self.base)

    def with_more(self, *more: Mapping[str, str]) -> Environment:
        """Return the base, and variables that are the same for several calls: of a script, the roots, the client."""
        if self._refusal:
            raise Denied(self._refusal)
        env = self._packed_base.copy()
        for variables in more:
            env.update(packed(variables))
        return env

    def add_call(
        self,
        env: Environment,
        files: CallFiles,
        *,
        entry_json: bytes,
        arguments_json: bytes,
        meta_json: bytes,
        worker_key: bytes,
        progress_token: str | int | None,
        answers_json: bytes = b"",
        own_state: str | None = None,
        auth_json: str = "",
        wants_table: bool = False,
    ) -> None:
        """Add the variables of one call to what `with_more` returned."""
        place = files.place
        env[b"MCPBASH_STATE_DIR"] = files.directory.encoded_path
        env[b"MCP_TOOL_ERROR_FILE"] = place + scratch.ERROR_FILE
        env[b"MCP_TOOL_RESOURCES_FILE"] = place + scratch.RESOURCES_FILE
        env[b"MCP_CANCEL_FILE"] = place + scratch.CANCEL_FILE
        env[b"MCPBASH_DEBUG_LOG"] = place + scratch.DEBUG_FILE
        env[b"MCP_ASK_REPLY"] = place + scratch.REPLIES
        if env.get(b"MCP_ELICIT_SUPPORTED") == b"1":
            env[b"MCP_ELICIT_REQUEST_FILE"] = place + scratch.REQUEST_FILE
            env[b"MCP_ELICIT_RESPONSE_FILE"] = place + scratch.RESPONSE_FILE
        env[b"MCP_PROGRESS_TOKEN"] = os.fsencode(token_variable(progress_token))
        env[b"MCPBASH_WORKER_KEY"] = worker_key
        if answers_json:
            self._add_payload(env, files, b"MCP_INPUT_RESPONSES", answers_json)
        if own_state is not None:
            env[b"MCP_REQUEST_STATE"] = os.fsencode(own_state)
        if auth_json:
            env[AUTH_VARIABLE.encode()] = auth_json.encode("ascii")
        self._add_payload(env, files, b"MCP_TOOL_ARGS", arguments_json)
        if wants_table:
            env[b"MCP_TOOL_ARGS_TABLE"] = b""
            if len(env[b"MCP_TOOL_ARGS_JSON"]) > len(b"{}"):
                env[b"MCP_TOOL_ARGS_TABLE"] = table_of(arguments_json)
        self._add_payload(env, files, b"MCP_TOOL_METADATA", entry_json)
        self._add_payload(env, files, b"MCP_TOOL_META", meta_json)
        if b'"traceparent"' in meta_json or b'"baggage"' in meta_json:
            env.update(packed(trace_variables(jsontext.loads(meta_json))))

    def _add_payload(self, env: Environment, files: CallFiles, name: bytes, content: bytes) -> None:
        """JSON in the variable NAME_JSON, or in the file that NAME_FILE names when it is too long for one."""
        if len(content) > self._spill_over_chars or self._spill_over_chars == 0:
            env[name + b"_FILE"] = files.spill(name.lower() + b".json", content)
            content = b""
        env[name + b"_JSON"] = content


class ProviderEnvironment:
    """Builds the environment of a provider or completion script from the server's own, and from the variables that
    tools get about the server. It is less than a tool sees: the script runs for the server, not for a call. `isolate`:
    the names above and our own; `allowlist` and `inherit` as for tools."""

    def __init__(self, environ: Mapping[str, str], *, settings: Settings, about_the_server: Mapping[str, str]) -> None:
        self._environ = environ
        self._about_the_server = about_the_server
        mode = settings.provider_env_mode
        self._inherits = mode == "inherit" and settings.provider_env_inherit_allow
        if mode == "inherit" and not self._inherits:
            journal.warning("provider_env_mode=inherit needs MCPGREEN_PROVIDER_ENV_INHERIT_ALLOW=true; using isolated")
        self._more_names = settings.provider_env_allowlist if mode == "allowlist" else ()

    def for_run(self, provider: str, variables: Mapping[str, str]) -> Environment:
        """For a script of this provider ("" for a completion), with the variables of this run."""
        names = {*PROVIDER_NAMES, *NAMES_OF.get(provider, ()), *self._more_names}
        kept = {
            name: value
            for name, value in self._environ.items()
            if (self._inherits or name in names or name.startswith(PROVIDER_PREFIXES)) and name not in WITHHELD
        }
        own = {"MCPGREEN_PYTHON": sys.executable, **kept, **_python_path(kept)}
        return packed({**own, **self._about_the_server, **variables})


def _inherited(environ: Mapping[str, str], settings: Settings, project_root: str) -> dict[str, str]:
    if settings.tool_env_mode == "inherit":
        kept = dict(environ)
    else:
        names = [*MINIMAL_NAMES, *(settings.tool_env_allowlist if settings.tool_env_mode == "allowlist" else ())]
        kept = {name: environ[name] for name in names if environ.get(name)}
        kept.update((name, value) for name, value in environ.items() if name.startswith(PREFIXES))
    for name, fallback in (("HOME", project_root), ("TMPDIR", "/tmp"), ("LANG", "C")):
        kept.setdefault(name, fallback)
    for name in list(kept):
        # A setting may be given under either name; scripts of both ages find theirs.
        for ours, theirs in (("MCPGREEN_", "MCPBASH_"), ("MCPBASH_", "MCPGREEN_")):
            if name.startswith(ours):
                kept.setdefault(theirs + name[len(ours) :], kept[name])
    return {name: value for name, value in kept.items() if name not in WITHHELD}


def _places_and_programs(environ: Mapping[str, str], settings: Settings, project_root: str) -> dict[str, str]:
    return {
        "MCP_SDK": SDK_DIR,
        "MCPBASH_HOME": os.path.dirname(SDK_DIR),
        "MCPBASH_PROJECT_ROOT": project_root,
        "MCPGREEN_PROJECT_ROOT": project_root,
        **jq.variables(settings, jq.path_in(environ)),
    }


def _python_path(kept: Mapping[str, str]) -> dict[str, str]:
    """Return where Python finds the SDK: after what the person has there, if a script may see that."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, (kept.get("PYTHONPATH"), PYTHON_DIR)))}


def hook_environment(environ: Mapping[str, str], *, settings: Settings, project_root: str) -> dict[str, str]:
    """Return what hooks of a project see: everything, as they are part of the server, except its secrets."""
    kept = {name: value for name, value in environ.items() if name not in WITHHELD}
    return {"MCPGREEN_PYTHON": sys.executable, **kept, **_places_and_programs(environ, settings, project_root)}


def table_of(arguments_json: bytes) -> bytes:
    """Return the arguments of a call as rows of text, so that bash finds an argument without starting a program. They
    are an object that `jsontext.dumps` wrote; the table is empty if there are no arguments, or too many.

    Line 1 is the JSON that the rows are made from: a script that gets other arguments sees that the table is not for
    them. Then comes a row for each member that can be named by a plain path, such as `.name=sAda` or
    `.size.width=v12`. After the equals sign a letter says how to read the rest:

        s  a plain text
        e  a string with every backslash, and every byte that is not printable ASCII, written as \\xHH, for `printf %b`
        v  a value that every jq prints in the same way: true, false, null, integers, short fractions
        o  an object; its members have rows of their own
        a  an array of such strings and values, each after a tab
        j  a value that needs jq

    So if an object, or the root, has no row for a member, the member is absent.

    Rule: a row holds exactly the bytes that every jq prints for its path, or the letter j. The table consists of
    printable ASCII, tabs and line breaks, so that it reads the same in every locale. Nothing in it is ever evaluated.
    """
    if not 2 < len(arguments_json) <= MAX_TABLE_BYTES or b"\x7f" in arguments_json:
        return b""
    rows = [arguments_json.decode("ascii")]
    _add_rows(rows, "", jsontext.parsed(arguments_json), MAX_TABLE_DEPTH)
    return "\n".join(rows).encode("ascii") if len(rows) <= MAX_TABLE_ROWS else b""


def _add_rows(rows: list[str], path: str, members: Json, depth: int) -> None:
    for name, value in members.items():
        if len(rows) > MAX_TABLE_ROWS:
            return
        if not _PLAIN_NAME.fullmatch(name):
            continue
        if type(value) is dict and depth > 1:
            rows.append(f"{path}.{name}=o")
            _add_rows(rows, f"{path}.{name}", value, depth - 1)
        elif type(value) is list and len(value) <= MAX_TABLE_ROWS:
            items = [_cell(item) for item in value]
            rows.append(f"{path}.{name}=" + ("j" if "j" in items else "\t".join(["a", *items])))
        else:
            rows.append(f"{path}.{name}={_cell(value)}")


def _cell(value: object) -> str:
    if isinstance(value, str):
        if _PLAIN_TEXT.fullmatch(value):
            return f"s{value}"
        if "\0" in value or _SURROGATE.search(value):
            return "j"  # no variable can hold it, or versions of jq read it in different ways
        return "e" + value.encode("utf-8").decode("latin-1").translate(_ESCAPES)
    if value is None or isinstance(value, bool):
        return {None: "vnull", True: "vtrue", False: "vfalse"}[value]
    if isinstance(value, int):
        is_exact = -TOO_LARGE < value < TOO_LARGE
    else:
        is_exact = isinstance(value, float) and _PLAIN_FRACTION.fullmatch(repr(value)) is not None
    return f"v{value!r}" if is_exact else "j"


def trace_variables(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return the trace that a request belongs to (W3C Trace Context and Baggage), by the names under which tracing
    tools look for it. A script hands it on unread, so what is malformed in `_meta` is not passed on at all."""
    found: dict[str, str] = {}
    parent, state, baggage = (meta.get(key) for key in ("traceparent", "tracestate", "baggage"))
    if isinstance(parent, str) and _PARENT.fullmatch(parent):
        found["TRACEPARENT"] = parent
        if isinstance(state, str) and len(state) <= MAX_STATE_CHARS and _are_all(_STATE, state, at_most=MAX_STATES):
            found["TRACESTATE"] = state
    if isinstance(baggage, str) and len(baggage) <= MAX_BAGGAGE_CHARS and _are_all(_ITEM, baggage):
        found["BAGGAGE"] = baggage
    return found


def _are_all(pattern: re.Pattern[str], text: str, *, at_most: int = MAX_BAGGAGE_CHARS) -> bool:
    members = [member.strip(" \t") for member in text.split(",")]
    return len(members) <= at_most and all(map(pattern.fullmatch, members))
