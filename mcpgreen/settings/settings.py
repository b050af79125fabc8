"""All settings, one row each, grouped by topic.

How a row is written and read is in `rows`; what a setting does is where it is used. `docs/settings.md` is written
from these rows by `make docs`, so the docstrings and `doc` speak to users: `doc` in one sentence or two, which say what
0 or empty means.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcpgreen import journal
from mcpgreen.settings.rows import (
    Switch,
    Values,
    addresses,
    choice,
    directory,
    flag,
    integer,
    names,
    permission,
    resolve,
    rows_of,
    seconds,
    setting,
    text,
)

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
DAY_SECS = 86_400
NO_NAMES: tuple[str, ...] = ()
# What is printed is longer as JSON: twice for quotes and line ends, three times for most alphabets other than ours, and
# JSON goes out as text and as structured content. What is mostly control characters need not fit.
RESPONSE_FACTOR = 3
LEAST_RESPONSE_BYTES = 31 * MIB

level = choice(
    *journal.LEVELS, synonyms={"true": "debug", "1": "debug", "false": "info", "0": "info", "warn": "warning"}
)

# fmt: off

class Project(Values):
    """Which folder is served, and where its parts are."""

    project_root = setting(directory, "", doc=
        "The folder to serve. Empty: the current folder, or the nearest one above it that is a project.")
    server_name = setting(text, "", doc=
        "The server's name, which is also used in the URIs of its MCP Apps. A name in server.d/server.meta.json takes "
        "precedence. Empty: the folder's name.")
    tools_dir = setting(directory, "", doc="Where tools are. Empty: tools/ in the project.")
    resources_dir = setting(directory, "", doc="Where resources are. Empty: resources/ in the project.")
    prompts_dir = setting(directory, "", doc="Where prompts are. Empty: prompts/ in the project.")
    server_dir = setting(directory, "", doc=
        "Where the server's own description and hooks are. Empty: server.d/ in the project.")
    providers_dir = setting(directory, "", doc=
        "Where the project's resource providers are. Empty: providers/ in the project.")
    ui_dir = setting(directory, "", doc="Where MCP Apps are. Empty: ui/ in the project.")
    skills_dir = setting(directory, "", doc="Where skills are. Empty: skills/ in the project.")
    registry_dir = setting(directory, "", doc=
        "Where the lists of discovered items are written. Empty: .registry/ in the project.")
    roots = setting(text, "", doc=
        "The roots: directories that tools are meant to work in, separated by colons, for clients that do not name "
        "any. If one does not exist, the server does not start. Empty: those in config/roots.json, or "
        "the project if there are none.")
    client_roots = setting(choice("auto", "trust", "within", "never"), "auto", doc=
        "Which roots a client may name. trust: all that exist; within: only those inside the configured roots; "
        "never: none, and the client is not asked. auto: within if the roots setting or a remote token is set, "
        "otherwise trust.")
    tmp_root = setting(text, "", doc=
        "Where the server creates its directory for temporary files. If it does not exist or cannot be written to, "
        "the server does not start. Empty: TMPDIR, or the system's default.")


class Limits(Values):
    """How much, how large, how many at the same time."""

    max_concurrent_requests = setting(integer, 16, low=1, high=256, doc=
        "How many requests may run a script at the same time. Further requests wait.")
    warm_python = setting(flag, True, doc=
        "Whether Python scripts are forked from a running Python process, instead of starting a new interpreter "
        "for each call. Linux only.")
    max_tool_output_size = setting(integer, 10 * MIB, low=1, high=GIB, doc=
        "How many bytes a script may write to stdout. A script that writes more is stopped.")
    max_line_bytes = setting(integer, 4 * MIB, low=KIB, high=GIB, aliases=("MCPGREEN_HTTP_MAX_BODY_BYTES",), doc=
        "How long one message from the client may be: a line on stdin, or an HTTP request's body.")
    max_progress_per_min = setting(integer, 100, low=0, high=1_000_000, doc=
        "How many progress messages one request may send per minute. 0: unlimited.")
    max_logs_per_min = setting(integer, 100, low=0, high=1_000_000, doc=
        "How many log messages one request may send per minute. 0: unlimited. If it is not set, it is the same as "
        "`max_progress_per_min`.")
    resident_max_per_principal = setting(integer, 16, low=1, high=10_000, doc=
        "How many processes of tools with `stays: session` one caller may have. Callers without a token count as "
        "one.")
    max_tasks = setting(integer, 10_000, low=1, high=1_000_000, doc=
        "How many unfinished tasks a project may have.")
    max_tasks_per_principal = setting(integer, 1000, low=1, high=1_000_000, doc=
        "How many unfinished tasks one caller may have. Callers that cannot be told apart count as one.")
    page_size = setting(integer, 1000, low=1, high=5000, doc=
        "How many items one page of a list has, and the most that a client may request.")


class Timeouts(Values):
    """How long tools and the server itself may take."""

    default_tool_timeout = setting(seconds, 30.0, low=0.1, high=DAY_SECS, doc=
        "How many seconds a tool may take if neither its description nor the request says otherwise.")
    max_timeout_secs = setting(seconds, 600.0, low=0.1, high=DAY_SECS, doc=
        "How many seconds a tool may take in total when its progress extends its timeout, and the longest timeout "
        "that a client may request.")
    progress_extends_timeout = setting(flag, False, doc=
        "Whether each of a tool's progress reports restarts its timeout.")
    shutdown_timeout = setting(seconds, 5.0, low=0.1, high=600, doc=
        "How long running calls may take to finish after a shutdown request, in seconds. Then the server exits.")
    task_after_secs = setting(seconds, 5.0, low=0, high=DAY_SECS, doc=
        "After how many seconds a running call becomes a task, for clients with tasks and tools with `task: auto`.")
    task_timeout_secs = setting(seconds, 3600.0, low=0.1, high=30 * DAY_SECS, doc=
        "How many seconds a task may take if its tool has neither `timeoutSecs` nor `taskTimeoutSecs`.")
    task_keep_secs = setting(seconds, 3600.0, low=0, high=30 * DAY_SECS, doc=
        "For how many seconds a task and its result are kept after its end.")
    idle_timeout_secs = setting(seconds, 3600.0, low=0, high=30 * DAY_SECS, aliases=("MCPBASH_IDLE_TIMEOUT",),
        switches=(Switch("idle_timeout_enabled", False, "0"), Switch("ci_mode", True, "0")), doc=
        "How many seconds the server waits without input or work before it exits. 0: forever.")
    orphan_check_interval_secs = setting(seconds, 30.0, low=0, high=DAY_SECS,
        aliases=("MCPBASH_ORPHAN_CHECK_INTERVAL",),
        switches=(Switch("orphan_check_enabled", False, "0"), Switch("ci_mode", True, "0")), doc=
        "How often the server checks whether the process that started it still exists; if not, the server exits. "
        "0: never.")


class Scripts(Values):
    """Which variables a tool sees, and how it gets its arguments."""

    # Linux takes 128 KiB for one variable, name included.
    env_payload_threshold = setting(integer, 64 * KIB, low=0, high=120 * KIB, doc=
        "Arguments with more bytes than this are passed to a script as a file instead of a variable. 0: always as "
        "a file.")
    tool_env_mode = setting(choice("minimal", "allowlist", "inherit"), "minimal", doc=
        "Which of the server's variables a tool sees. minimal: a few basic ones; allowlist: also the names in "
        "tool_env_allowlist; inherit: all.")
    tool_env_allowlist = setting(names, NO_NAMES, doc=
        "The variables that tools also see if tool_env_mode is allowlist, for example API_TOKEN.")
    tool_env_inherit_allow = setting(flag, False, doc=
        "Confirms tool_env_mode=inherit, which gives every secret in the environment to every tool.")
    result_meta = setting(choice("failures", "always", "never"), "failures", doc=
        "Which tool results contain the exit status and the end of stderr in `_meta`, which many clients show to "
        "the model. failures: those with isError, at most 20 lines and 1 KiB, without secrets or local paths; "
        "always: all, with stderr as the tool wrote it; never: none.")
    tool_stderr_tail_limit = setting(integer, 4096, low=0, high=MIB,
        switches=(Switch("tool_stderr_capture", False, "0"),), doc=
        "How many bytes from the end of a tool's stderr its result may contain, if result_meta allows it.")
    json_tool = setting(choice("jq", "gojq", "none"), "", doc=
        "What shell tools use to read JSON: jq or gojq, if installed; none tells them that there is no such tool. "
        "Empty: jq, else gojq, else the built-in one.")
    tasks = setting(choice("auto", "off"), "auto", doc=
        "Which calls may become tasks if the tool's description says nothing. auto: those of clients that support "
        "the tasks extension, after `task_after_secs`; off: none.")
    tasks_survive_client = setting(flag, False, doc=
        "Whether tasks continue when their client is gone, if the tool's description does not say otherwise. Tasks "
        "over HTTP end only with a session.")
    strict_arguments = setting(flag, False, doc=
        "Whether arguments must match the schema exactly. Otherwise, null is treated as absent for an optional "
        "argument, and text such as \"5\" is treated as a number where only a number is allowed.")
    json_tool_bin = setting(text, "", doc=
        "The path of the program that shell tools use to read JSON. Empty, or not found: see json_tool.")


class Resources(Values):
    """Which files and URIs can be read, and how often subscribed resources are checked."""

    resources_roots = setting(text, "", aliases=("MCP_RESOURCES_ROOTS",), doc=
        "Directories, separated by colons, whose files may be read as resources, in addition to those in "
        "resources/ and the roots.")
    max_resource_bytes = setting(integer, 10 * MIB, low=1, high=GIB, doc=
        "How large a resource, or the page of an MCP App, may be. Larger ones are refused. If it is not set, it "
        "is the same as `max_tool_output_size`.")
    resource_timeout_secs = setting(seconds, 30.0, low=0.1, high=DAY_SECS, doc=
        "How long a provider or completion script may take.")
    resources_poll_interval_secs = setting(seconds, 2.0, low=0, high=DAY_SECS, doc=
        "How often subscribed resources are read again, in seconds; those on the network are read 15 times less "
        "often. 0: never.")
    provider_env_mode = setting(choice("isolate", "allowlist", "inherit"), "isolate", doc=
        "Which of the server's variables a provider sees. isolate: a few basic ones; allowlist: also the names in "
        "provider_env_allowlist; inherit: all.")
    provider_env_allowlist = setting(names, NO_NAMES, doc=
        "The variables that providers also see if provider_env_mode is allowlist.")
    provider_env_inherit_allow = setting(flag, False, doc=
        "Confirms provider_env_mode=inherit, which gives every secret in the environment to every provider.")


class Providers(Values):
    """Which hosts the https and git providers may fetch from."""

    https_allow_hosts = setting(names, NO_NAMES, switches=(Switch("https_allow_all", True, "*"),), doc=
        "Hosts that https resources may come from, separated by commas or spaces. *: every host with a public IP "
        "address; there are no other patterns. Empty: none.")
    https_deny_hosts = setting(names, NO_NAMES, doc=
        "Hosts that https resources may not come from, whatever else is allowed.")
    https_timeout_secs = setting(seconds, 15.0, low=0.1, high=60, aliases=("MCPBASH_HTTPS_TIMEOUT",), doc=
        "How many seconds fetching an https resource may take in total.")
    https_max_bytes = setting(integer, 10 * MIB, low=1, high=20 * MIB, doc=
        "How large an https resource may be, in bytes.")
    https_user_agent = setting(text, "", doc=
        "The https provider's User-Agent. Empty: mcpgreen and its version.")
    enable_git_provider = setting(flag, False, doc="Whether resources may come from git repositories.")
    git_allow_hosts = setting(names, NO_NAMES, switches=(Switch("git_allow_all", True, "*"),), doc=
        "Hosts that git resources may come from, separated by commas or spaces. *: every host with a public IP "
        "address; there are no other patterns. Empty: none.")
    git_deny_hosts = setting(names, NO_NAMES, doc=
        "Hosts that git resources may not come from, whatever else is allowed.")
    git_timeout_secs = setting(seconds, 30.0, low=0.1, high=60, aliases=("MCPBASH_GIT_TIMEOUT",), doc=
        "How many seconds fetching a git resource may take in total.")
    git_max_kb = setting(integer, 50 * KIB, low=1, high=MIB, doc=
        "How large a git resource may be, and how much of its repository may be fetched for it, in KiB.")
    net_allow_addresses = setting(addresses, NO_NAMES, doc=
        "Private IP addresses that the https and git providers may connect to, such as an intranet server's.")


class Policy(Values):
    """Which tools may run."""

    tool_allowlist = setting(names, NO_NAMES, doc=
        "The tools that may run, separated by commas or spaces; * allows all, and there are no other patterns. "
        "Other tools are listed, but calls to them are refused. Empty: tool_allow_default applies.")
    tool_allow_default = setting(permission, "allow", doc=
        "What happens to tools if there is no allow-list: allow or deny. Any other value means deny.")
    allow_project_hooks = setting(flag, False, doc=
        "Whether the server runs server.d/register.sh to learn what the project offers.")


class RemoteToken(Values):
    """A secret that clients have to send in each message, for servers behind a bridge."""

    remote_token = setting(text, "", secret=True, doc=
        "A secret of at least 32 characters that every request and notification must contain in params._meta. "
        "Empty: none is required.")
    remote_token_key = setting(text, "mcpbash/remoteToken", doc=
        "The token's key in params._meta.")


class Http(Values):
    """The clients that may use a server over HTTP, and their limits."""

    http_token = setting(text, "", secret=True, doc=
        "A secret of at least 32 characters that HTTP clients send as a bearer token. Empty: none is required, but "
        "then the server is available only on this machine (and to anyone who can reach a proxy on it).")
    http_allow_anonymous = setting(flag, False, doc=
        "Whether clients may connect without a token, even from other machines.")
    http_allowed_hosts = setting(names, NO_NAMES, doc=
        "The host names that clients may use to reach the server over HTTP, besides localhost and its addresses, "
        "e.g. mcp.example.com; *: any.")
    http_allowed_origins = setting(names, NO_NAMES, doc=
        "The web pages that may use the server from a browser, besides those on this machine, e.g. "
        "https://app.example.com; *: any.")
    http_session_idle_secs = setting(seconds, 1800.0, low=0.1, high=30 * DAY_SECS, doc=
        "How many seconds a session may be idle before it ends.")
    http_max_sessions = setting(integer, 2000, low=1, high=1_000_000, doc=
        "How many sessions there may be at the same time. Further clients are told to try again later.")
    http_max_connections = setting(integer, 1024, low=1, high=100_000, doc=
        "How many HTTP connections may be open. To make room for another one, the server closes the one that has "
        "been idle longest.")
    http_legacy_sse = setting(flag, False, doc=
        "Whether the server also offers /sse and /messages, for clients that use the first revision.")
    http_trust_client_roots = setting(flag, False, doc=
        "Whether roots from an HTTP client are treated as directories on this machine. Otherwise, the client is "
        "not asked for them.")
    http_accept_session_ids = setting(flag, False, doc=
        "Whether a proxy may choose a new session's id, by sending Mcp-Session-Id with initialize (32 hexadecimal "
        "digits). It can then send all of a session's requests to the same server.")
    http_cert = setting(directory, "", doc=
        "A file with the certificate (PEM) for HTTPS. Empty: plain HTTP, for example behind a proxy.")
    http_key = setting(directory, "", doc=
        "A file with the key for http_cert. Empty: the key is in the same file.")
    http_public_url = setting(text, "", doc=
        "The URL at which clients reach the endpoint, if it is not the address that the server listens on, e.g. "
        "https://mcp.example.com/mcp. Its host is allowed, and tokens must be for this URL, unless "
        "http_oauth_audience says otherwise.")
    http_oauth_issuer = setting(text, "", doc=
        "The authorization server that issues the access tokens, as named in `iss`: an https URL. Needs the "
        "`oauth` extra. Empty: none.")
    http_oauth_jwks_url = setting(text, "", doc=
        "Where the issuer's keys are: an https URL, or a file. Empty: where the issuer's metadata says.")
    http_oauth_audience = setting(names, NO_NAMES, doc=
        "The accepted audiences (`aud`) of tokens. Empty: the endpoint's URL.")
    http_oauth_required_scopes = setting(names, NO_NAMES, doc=
        "The scopes that every token must have, whatever it is used for. Empty: none.")
    state_key = setting(text, "", secret=True, doc=
        "A secret that several servers share so that a client can continue with any of them. Empty: a random one.")


class Registry(Values):
    """How the list of tools is kept up to date."""

    tools_ttl = setting(seconds, 5.0, low=0, high=3600, aliases=("MCP_TOOLS_TTL", "MCPGREEN_REGISTRY_POLL_SECS"), doc=
        "How long, in seconds, the lists are treated as current if there are no file events, and how often the "
        "server looks for changes in that case. 0: on every request for a list, and every 5 seconds.")
    registry_max_bytes = setting(integer, 100 * MIB, low=1, high=GIB, doc=
        "How large the list of one kind of item may be.")
    register_ttl = setting(seconds, 5.0, low=0, high=3600, doc=
        "How long, in seconds, the result of register.json or register.sh is treated as current. 0: 5 seconds.")
    watch_files = setting(choice("auto", "poll", "never"), "auto",
        switches=(Switch("static_registry", True, "never"),), doc=
        "How changes on disk are noticed. auto: by the system's file events, if there are any; poll: by checking "
        "regularly; never: for projects that do not change, serve what `.registry/` lists, or else read the "
        "project once, and never look at the disk again.")


class Diagnostics(Values):
    """The log, and settings that help you find mistakes."""

    log_level = setting(level, "info", aliases=("MCPBASH_LOG_LEVEL_DEFAULT",), doc=
        "The lowest level of log messages for a client that has not chosen one. If it is not set and the file "
        "server.d/.debug exists, the level is debug.")
    stderr_level = setting(level, "warning", doc=
        "The lowest level that the server writes to stderr and to `log_file`. warning: calls that failed, timed "
        "out or were refused; info: every call; debug: every message with its content.")
    log_format = setting(choice("text", "json"), "text", doc=
        "The format of the lines on stderr and in `log_file`: text, or a JSON object for each line.")
    log_file = setting(directory, "", doc=
        "A file that gets the same lines as stderr, with timestamps. If its path is not absolute, it is relative to "
        "the project. Empty: none.")
    observe = setting(choice("on", "off"), "on", doc=
        "Whether `mcpgreen watch`, `trace` and `dev`, started by the same user, may see what happens in the server. "
        "While nobody looks, that costs some hundredths of a millisecond for each call.")
    record = setting(directory, "", doc=
        "A file to which a server over stdio writes its session, without secrets, for `mcpgreen replay`. If it exists, "
        "the new one gets a number. A path that is not absolute is relative to the project. Empty: none.")
    otel = setting(flag, False, doc=
        "Whether each call becomes a span of OpenTelemetry, below the client's own, and how long it took a metric. "
        "Needs the `otel` extra. OTEL_EXPORTER_OTLP_ENDPOINT and the other usual variables say where they go.")
    core_dumps = setting(flag, False, doc=
        "Whether the server may write a core dump, and whether the same user's debuggers may attach to "
        "the server. Scripts can then also read its environment and write to its client.")
    preserve_state = setting(flag, False, doc=
        "Whether calls' temporary files stay on disk when the server exits.")
    allow_corrupt_stdout = setting(flag, False, doc=
        "Whether the server keeps running, however many output errors occur.")


class Compatibility(Values):
    """Behaviour that only some clients need."""

    compat_batches = setting(flag, False, doc="Whether clients may send batches in every revision.")
    replace_dots = setting(flag, False, doc=
        "Whether tools are listed with _ in place of each dot in their names, for clients that reject dots. They "
        "can be called by either name.")
    skills_as_prompts = setting(flag, False, doc=
        "Whether each skill is also listed as a prompt, with the text of its SKILL.md, for clients without "
        "skills.")
    force_minimal = setting(flag, False, doc="Whether the server offers only lifecycle, ping and logging.")


class Settings(
    Project, Limits, Timeouts, Scripts, Resources, Providers, Policy, RemoteToken, Http, Registry, Diagnostics,
    Compatibility
):
    """The value of every setting, as an attribute of its type."""

    @property
    def is_static(self) -> bool:
        """The project is read once; changes on disk are ignored."""
        return self.watch_files == "never"

    @property
    def max_response_bytes(self) -> int:
        """How long the reply with the result of a tool, a prompt or a completion may be."""
        return max(LEAST_RESPONSE_BYTES, RESPONSE_FACTOR * self.max_tool_output_size)


ROWS = rows_of(Settings)

# A setting that is not set has the value of its model.
MODEL_OF = {"max_logs_per_min": "max_progress_per_min", "max_resource_bytes": "max_tool_output_size"}

# Settings of earlier versions, by all their names, which have become constants.
FORMER = frozenset((
    "ask_timeout_secs", "corruption_threshold", "corruption_window", "corruption_window_secs", "drain_secs",
    "eof_grace_secs", "health_timeout_secs", "http_body_timeout_secs", "http_header_timeout_secs", "http_idle_secs",
    "http_keepalive_secs", "http_max_sessions_per_principal", "http_oauth_algorithms", "http_oauth_clock_skew_secs",
    "http_send_timeout_secs", "kill_grace_secs", "list_cache", "list_change_debounce_secs", "log_file_keep",
    "log_file_max_bytes", "manual_buffer_max_bytes", "max_backlog_bytes", "max_listens", "max_manual_registry_bytes",
    "max_queued_bytes", "max_queued_requests", "max_response_bytes", "max_subscriptions", "max_tool_stderr_size",
    "max_ui_resource_bytes", "parked_max", "parked_ttl_secs", "provider_memory_mb", "remote_token_fallback_key",
    "remote_token_max_failures_per_min", "roots_debounce_interval", "roots_debounce_secs", "roots_request_timeout",
    "roots_request_timeout_secs", "schema_timeout_secs",
))
# fmt: on

# Not settings: the launcher reads one and sets one, and one is set for scripts, which may start a server.
OTHER_VARIABLES = ("MCPGREEN_PYTHON", "MCPGREEN_LAUNCHER", "MCPGREEN_CALL")


def load(flags: Mapping[str, object], environ: Mapping[str, str], project_env: Mapping[str, str]) -> Settings:
    """Find the values of all settings; see `rows.resolve` for what the three mappings hold."""
    settings = resolve(Settings, flags, environ, project_env, others=OTHER_VARIABLES, former=FORMER)
    implied: dict[str, object] = {
        name: getattr(settings, model)
        for name, model in MODEL_OF.items()
        if settings.origin(name) == "default" and settings.origin(model) != "default"
    }
    return settings.with_values(**implied) if implied else settings
