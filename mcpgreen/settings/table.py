"""All settings, one row each, grouped by topic.

Data only: how a row is read is in `settings`, what a setting does is where it is used. `docs/settings.md` is written
from these rows by `make docs`, so `doc` speaks to users, in one sentence or two, and says what 0 or empty means.
"""

from __future__ import annotations

from mcpgreen import journal
from mcpgreen.settings.http_rows import HTTP_ROWS
from mcpgreen.settings.settings import (
    Setting,
    Settings,
    addresses,
    choice,
    directory,
    flag,
    integer,
    names,
    permission,
    resolve,
    seconds,
    text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

KIB = 1024
MIB = 1024 * KIB
# What is printed is longer as JSON: twice for quotes and line ends, three times for most alphabets other than ours, and
# JSON goes out as text and as structured content. What is mostly control characters need not fit.
RESPONSE_FACTOR = 3
GIB = 1024 * MIB
DAY_SECS = 86_400

level = choice(
    *journal.LEVELS,
    synonyms={"true": "debug", "1": "debug", "false": "info", "0": "info", "warn": "warning"},
)

# fmt: off
GROUPS = {
    "project": (
        Setting("project_root", directory, "", doc=
            "The folder to serve. Empty: the nearest folder upwards that is a project."),
        Setting("server_name", text, "", doc=
            "The name of the server, also in the URIs of its MCP Apps, unless server.d/server.meta.json has one. "
            "Empty: the name of the folder."),
        Setting("tools_dir", directory, "", doc="Where tools are. Empty: tools/ in the project."),
        Setting("resources_dir", directory, "", doc="Where resources are. Empty: resources/ in the project."),
        Setting("prompts_dir", directory, "", doc="Where prompts are. Empty: prompts/ in the project."),
        Setting("server_dir", directory, "", doc=
            "Where the server's own description and hooks are. Empty: server.d/ in the project."),
        Setting("providers_dir", directory, "", doc=
            "Where the project's resource providers are. Empty: providers/ in the project."),
        Setting("ui_dir", directory, "", doc="Where MCP Apps are. Empty: ui/ in the project."),
        Setting("registry_dir", directory, "", doc=
            "Where the lists of found items are written. Empty: .registry/ in the project."),
        Setting("roots", text, "", doc=
            "The roots: directories that tools are meant to work in, separated by colons, for clients that name "
            "none. If one does not exist, the server does not start. Empty: those in config/roots.json, else the "
            "project."),
        Setting("client_roots", choice("auto", "trust", "within", "never"), "auto", doc=
            "Which roots a client may name: trust: all that exist; within: only those inside the configured roots; "
            "never: none, it is not asked. auto: within if the setting roots or a remote token is set, else trust."),
        Setting("tmp_root", text, "", doc=
            "Where the server makes its directory for temporary files. If it does not exist or cannot be written "
            "to, the server does not start. Empty: TMPDIR, or the system's place for them."),
    ),
    "limits": (
        Setting("max_concurrent_requests", integer, 16, low=1, high=256, doc=
            "How many requests may run a script at the same time. Further ones wait in line."),
        Setting("warm_python", flag, True, doc=
            "Whether Python scripts are forked from a Python that is running already, instead of starting one for each "
            "call. Linux only."),
        Setting("max_queued_requests", integer, 4096, low=1, high=1_000_000, doc=
            "How many requests may wait in line. Further ones are refused."),
        Setting("max_queued_bytes", integer, 16 * MIB, low=64 * KIB, high=4 * GIB, doc=
            "How much memory the requests in line may take, roughly. Beyond that the server reads slowly, and beyond "
            "twice that it refuses further ones."),
        Setting("max_tool_output_size", integer, 10 * MIB, low=1, high=GIB, doc=
            "How many bytes a script may write to stdout. One that writes more is stopped."),
        Setting("max_tool_stderr_size", integer, 0, low=0, high=GIB, doc=
            "How many bytes a script may write to stderr. 0: the same as for stdout."),
        Setting("max_response_bytes", integer, RESPONSE_FACTOR * 10 * MIB + MIB, low=0, high=GIB, doc=
            "How long the reply with the result of a tool, a prompt or a completion may be. 0: unlimited. Unless it "
            "is set, it grows with `max_tool_output_size`."),
        Setting("max_ui_resource_bytes", integer, MIB, low=1, high=GIB, doc=
            "How large the HTML of an MCP App may be."),
        Setting("max_line_bytes", integer, 4 * MIB, low=KIB, high=GIB, doc=
            "How long one message from the client may be."),
        Setting("max_backlog_bytes", integer, 32 * MIB, low=64 * KIB, high=4 * GIB, doc=
            "How many bytes of replies the client may leave unread. Beyond that the server starts no script and "
            "stops reading."),
        Setting("max_progress_per_min", integer, 100, low=0, high=1_000_000, doc=
            "How many progress messages one request may send in a minute. 0: unlimited."),
        Setting("max_logs_per_min", integer, 100, low=0, high=1_000_000, doc=
            "How many log messages one request may send in a minute. 0: unlimited. Unless it is set, the same as "
            "`max_progress_per_min`."),
        Setting("page_size", integer, 1000, low=1, high=5000, doc=
            "How many items one page of a list has, and the most that a client may ask for."),
    ),
    "timeouts": (
        Setting("default_tool_timeout", seconds, 30.0, low=0.1, high=DAY_SECS, doc=
            "How many seconds a tool may take if neither its description nor the request says otherwise."),
        Setting("max_timeout_secs", seconds, 600.0, low=0.1, high=DAY_SECS, doc=
            "How many seconds a tool may take in all when its progress extends its timeout, and the most that a "
            "client may ask for."),
        Setting("progress_extends_timeout", flag, False, doc=
            "Whether each progress report of a tool restarts its timeout."),
        Setting("kill_grace_secs", seconds, 1.0, low=0, high=10, doc=
            "How many seconds a script has to end after SIGTERM before it gets SIGKILL."),
        Setting("drain_secs", seconds, 0.2, low=0, high=10, doc=
            "How many seconds to wait for the rest of the output after a script has ended."),
        Setting("shutdown_timeout", seconds, 5.0, low=0.1, high=600, doc=
            "How many seconds after a shutdown request the server ends, whatever is still running."),
        Setting("eof_grace_secs", seconds, 10.0, low=0, high=600, doc=
            "How many seconds running requests have to finish after the client has closed stdin, if it still reads "
            "stdout."),
        Setting("ask_timeout_secs", seconds, 300.0, low=1, high=DAY_SECS, doc=
            "How many seconds a person or model has to answer a question that has no time of its own."),
        Setting("parked_ttl_secs", seconds, 900.0, low=1, high=DAY_SECS, doc=
            "How many seconds a script waits for a stateless client to come back with answers."),
        Setting("schema_timeout_secs", seconds, 5.0, low=0.1, high=60, doc=
            "How many seconds of processor time it may take to check arguments or output against a schema."),
        Setting("health_timeout_secs", seconds, 5.0, low=0.1, high=600, doc=
            "How many seconds the project's own health checks may take."),
        Setting("idle_timeout_secs", seconds, 3600.0, low=0, high=30 * DAY_SECS, aliases=("MCPBASH_IDLE_TIMEOUT",), doc=
            "After how many seconds without input and without work the server ends. 0: never."),
        Setting("idle_timeout_enabled", flag, True, doc="Whether the server ends when it has been idle for long."),
        Setting("orphan_check_interval_secs", seconds, 30.0, low=0.05, high=DAY_SECS,
            aliases=("MCPBASH_ORPHAN_CHECK_INTERVAL",), doc=
            "How often the server checks whether the process that started it still exists."),
        Setting("orphan_check_enabled", flag, True, doc=
            "Whether the server ends when the process that started it is gone."),
        Setting("ci_mode", flag, False, doc=
            "Whether the server runs in continuous integration: it then ends neither when it is idle nor when the "
            "process that started it is gone."),
        Setting("roots_request_timeout_secs", seconds, 5.0, low=0.1, high=600,
            aliases=("MCPBASH_ROOTS_REQUEST_TIMEOUT",), doc=
            "How many seconds a client has to name its roots. Scripts wait only for its first answer."),
        Setting("roots_debounce_secs", seconds, 1.0, low=0, high=600, aliases=("MCPBASH_ROOTS_DEBOUNCE_INTERVAL",), doc=
            "The least number of seconds between two requests for a client's roots, however often they change."),
    ),
    "scripts": (
        # Linux takes 128 KiB for one variable, name included.
        Setting("env_payload_threshold", integer, 64 * KIB, low=0, high=120 * KIB, doc=
            "Arguments with more bytes than this reach a script as a file instead of a variable. 0: always as a "
            "file."),
        Setting("tool_env_mode", choice("minimal", "allowlist", "inherit"), "minimal", doc=
            "Which of the server's variables a tool sees. minimal: a few basic ones; allowlist: also those that "
            "tool_env_allowlist names; inherit: all."),
        Setting("tool_env_allowlist", names, (), doc=
            "The variables that tools also see if tool_env_mode is allowlist, for example API_TOKEN."),
        Setting("tool_env_inherit_allow", flag, False, doc=
            "Confirms tool_env_mode=inherit, which gives every secret of the environment to every tool."),
        Setting("tool_stderr_capture", flag, True, doc="Whether the end of a tool's stderr is part of its result."),
        Setting("tool_stderr_tail_limit", integer, 4096, low=0, high=MIB, doc=
            "How many bytes of a tool's stderr its result may carry."),
        Setting("json_tool", choice("jq", "gojq", "none"), "", doc=
            "What shell tools use to read JSON: jq or gojq, if it is installed; none tells them that there is none. "
            "Empty: jq, else gojq, else the built-in one."),
        Setting("strict_arguments", flag, False, doc=
            "Whether arguments must match the schema exactly. Otherwise null counts as absent for an optional "
            "argument, and text such as \"5\" counts as the number where only a number is allowed."),
        Setting("json_tool_bin", text, "", doc=
            "The path of the program that shell tools use to read JSON. Empty, or missing: see json_tool."),
    ),
    "resources": (
        Setting("resources_roots", text, "", aliases=("MCP_RESOURCES_ROOTS",), doc=
            "Colon-separated directories below which files may be read as resources, besides resources/ and the "
            "roots."),
        Setting("max_resource_bytes", integer, 10 * MIB, low=1, high=GIB, doc=
            "How large a resource may be. A larger one is refused. Unless it is set, the same as "
            "`max_tool_output_size`."),
        Setting("resource_timeout_secs", seconds, 30.0, low=0.1, high=DAY_SECS, doc=
            "How long a provider or completion script may take."),
        Setting("resources_poll_interval_secs", seconds, 2.0, low=0, high=DAY_SECS, doc=
            "How often subscribed resources are read again, in seconds; those on the network 15 times less often. "
            "0: never."),
        Setting("max_subscriptions", integer, 4096, low=0, high=1_000_000, doc=
            "How many resources may be subscribed to at the same time."),
        Setting("max_listens", integer, 1024, low=1, high=1_000_000, doc=
            "How many requests of subscriptions/listen may be open at the same time. Further ones are refused."),
        Setting("provider_env_mode", choice("isolate", "allowlist", "inherit"), "isolate", doc=
            "Which of the server's variables a provider sees. isolate: a few basic ones; allowlist: also those that "
            "provider_env_allowlist names; inherit: all."),
        Setting("provider_env_allowlist", names, (), doc=
            "The variables that providers also see if provider_env_mode is allowlist."),
        Setting("provider_env_inherit_allow", flag, False, doc=
            "Confirms provider_env_mode=inherit, which gives every secret of the environment to every provider."),
    ),
    "providers": (
        Setting("https_allow_hosts", names, (), doc=
            "Hosts that https resources may come from, separated by commas or spaces; no patterns. Empty: none."),
        Setting("https_deny_hosts", names, (), doc=
            "Hosts that https resources may not come from, whatever else is allowed."),
        Setting("https_allow_all", flag, False, doc=
            "Whether https resources may come from every host with a public IP address."),
        Setting("https_timeout_secs", seconds, 15.0, low=0.1, high=60, aliases=("MCPBASH_HTTPS_TIMEOUT",), doc=
            "How many seconds fetching an https resource may take in all."),
        Setting("https_max_bytes", integer, 10 * MIB, low=1, high=20 * MIB, doc=
            "How many bytes an https resource may have."),
        Setting("https_user_agent", text, "", doc=
            "How the https provider introduces itself. Empty: mcpgreen and its version."),
        Setting("enable_git_provider", flag, False, doc="Whether resources may come from git repositories."),
        Setting("git_allow_hosts", names, (), doc=
            "Hosts that git resources may come from, separated by commas or spaces; no patterns. Empty: none."),
        Setting("git_deny_hosts", names, (), doc=
            "Hosts that git resources may not come from, whatever else is allowed."),
        Setting("git_allow_all", flag, False, doc=
            "Whether git resources may come from every host with a public IP address."),
        Setting("git_timeout_secs", seconds, 30.0, low=0.1, high=60, aliases=("MCPBASH_GIT_TIMEOUT",), doc=
            "How many seconds fetching a git resource may take in all."),
        Setting("git_max_kb", integer, 50 * KIB, low=1, high=MIB, doc=
            "How many KiB a git resource may have, and how many KiB of its repository may be fetched for it."),
        Setting("provider_memory_mb", integer, 256, low=64, high=MIB, doc=
            "How many MiB of memory the built-in git and https providers, and each program that they start, may "
            "use."),
        Setting("net_allow_addresses", addresses, (), doc=
            "Private IP addresses that the https and git providers may connect to, e.g. of an intranet server."),
    ),
    "policy": (
        Setting("tool_allowlist", names, (), doc=
            "The tools that may run, separated by commas or spaces; * stands for all, and there are no other "
            "patterns. Other tools are listed, but calls are refused. Empty: tool_allow_default decides."),
        Setting("tool_allow_default", permission, "allow", doc=
            "What happens to tools when there is no allow-list: allow or deny. Any other word denies."),
        Setting("allow_project_hooks", flag, False, doc=
            "Whether the server runs server.d/register.sh to learn what the project offers."),
    ),
    "asking": (
        Setting("parked_max", integer, 32, low=1, high=10_000, doc=
            "How many scripts may wait for stateless clients to come back; if there are more, the oldest is "
            "stopped. The same number may wait for other clients without counting towards max_concurrent_requests."),
        Setting("state_key", text, "", secret=True, doc=
            "A secret that several servers share so that a client may continue with any of them. Empty: a random "
            "one."),
    ),
    "remote token": (
        Setting("remote_token", text, "", secret=True, doc=
            "A secret of at least 32 characters that every request and notification must carry in params._meta. "
            "Empty: none is required."),
        Setting("remote_token_key", text, "mcpbash/remoteToken", doc=
            "The key of the token in params._meta."),
        Setting("remote_token_fallback_key", text, "remoteToken", takes_empty=True, doc=
            "A second key that is accepted. Set, but empty: there is no second key."),
        Setting("remote_token_max_failures_per_min", integer, 10, low=0, high=10_000, doc=
            "After how many messages without the token in a minute the error says \"throttled\". 0: never."),
    ),
    "http": HTTP_ROWS,
    "registry": (
        Setting("tools_ttl", seconds, 5.0, low=0, high=3600, aliases=("MCP_TOOLS_TTL",), doc=
            "For how many seconds the list of tools counts as current where there are no file events."),
        Setting("registry_max_bytes", integer, 100 * MIB, low=1, high=GIB, doc=
            "How large the list of one kind of item may be."),
        Setting("register_ttl", seconds, 5.0, low=0, high=3600, doc=
            "For how many seconds the result of register.json or register.sh counts as current. 0: 5 seconds."),
        Setting("max_manual_registry_bytes", integer, MIB, low=1, high=GIB, doc=
            "How large register.json, and the output of register.sh, may be."),
        Setting("manual_buffer_max_bytes", integer, MIB, low=1, high=GIB, doc=
            "How many bytes register.sh may register through its functions."),
        Setting("static_registry", flag, False, doc=
            "For projects that do not change: serve what `.registry/` lists, or else read the project once, and "
            "never look at the disk again."),
        Setting("list_cache", flag, True, doc=
            "Whether lists are kept in the user's cache directory: as long as nothing in the project changes, the next "
            "start answers the first of them from there."),
        Setting("watch_files", choice("auto", "poll"), "auto", doc=
            "How changes on disk are noticed. auto: by the system's file events where there are some; poll: by "
            "looking regularly."),
        Setting("registry_poll_secs", seconds, 5.0, low=0.05, high=3600, doc=
            "How often to look for changes where there are no file events."),
        Setting("list_change_debounce_secs", seconds, 0.1, low=0, high=10, doc=
            "How long to wait for further changes before clients are told that a list has changed."),
    ),
    "diagnostics": (
        Setting("log_level", level, "info", aliases=("MCPBASH_LOG_LEVEL_DEFAULT",), doc=
            "The lowest level of log messages for a client that has not chosen one. If it is not set and there is a "
            "file server.d/.debug, it is debug."),
        Setting("stderr_level", level, "warning", doc=
            "The lowest level that the server writes to stderr and to `log_file`. warning: calls that failed, timed "
            "out or were refused; info: every call; debug: every message with its content."),
        Setting("log_format", choice("text", "json"), "text", doc=
            "The format of the lines on stderr and in `log_file`: text, or a JSON object for each line."),
        Setting("log_file", directory, "", doc=
            "A file that gets the lines of stderr, too, with times. A relative path starts at the project. Empty: "
            "none."),
        Setting("log_file_max_bytes", integer, 10 * MIB, low=4 * KIB, high=GIB, doc=
            "How large log_file may become before it is renamed to log_file.1 and a new one is started."),
        Setting("log_file_keep", integer, 3, low=0, high=100, doc=
            "How many older files are kept beside log_file, as .1, .2 and so on. 0: none."),
        Setting("core_dumps", flag, False, doc=
            "Whether the server may leave a core file, and debuggers of the same user may attach to it. Scripts can "
            "then read its environment and write to its client, too."),
        Setting("preserve_state", flag, False, doc=
            "Whether the temporary files of calls stay on disk when the server ends."),
        Setting("corruption_threshold", integer, 3, low=0, high=1_000_000, doc=
            "After how many faults of its own output the server ends with exit code 2. 0: 3."),
        Setting("corruption_window_secs", seconds, 60.0, low=0.1, high=DAY_SECS,
            aliases=("MCPBASH_CORRUPTION_WINDOW",), doc=
            "Within how many seconds these faults have to occur."),
        Setting("allow_corrupt_stdout", flag, False, doc=
            "Whether the server goes on, however many faults its output has."),
    ),
    "compatibility": (
        Setting("compat_batches", flag, False, doc="Whether clients of every revision may send batches."),
        Setting("force_minimal", flag, False, doc="Whether the server offers nothing but lifecycle, ping and logging."),
    ),
}
# fmt: on

# What is not set is as its model is.
MODEL_OF = {"max_logs_per_min": "max_progress_per_min", "max_resource_bytes": "max_tool_output_size"}

ROWS = tuple(row for rows in GROUPS.values() for row in rows)

# Ours, but no settings: one is read by the launcher, one is set by it, one is set for scripts, which may start another
# server.
OTHER_VARIABLES = ("MCPGREEN_PYTHON", "MCPGREEN_LAUNCHER", "MCPGREEN_CALL")


def load(flags: Mapping[str, Any], environ: Mapping[str, str], project_env: Mapping[str, str]) -> Settings:
    """Resolve all rows; see `settings.resolve` for what the three mappings hold."""
    settings = resolve(ROWS, flags=flags, environ=environ, project_env=project_env, other_variables=OTHER_VARIABLES)
    implied: dict[str, Any] = {
        name: getattr(settings, model)
        for name, model in MODEL_OF.items()
        if settings.origin(name) == "default" and settings.origin(model) != "default"
    }
    room_bytes = RESPONSE_FACTOR * settings.max_tool_output_size + MIB
    if room_bytes > settings.max_response_bytes and settings.origin("max_response_bytes") == "default":
        implied["max_response_bytes"] = room_bytes
    return settings.with_values(**implied) if implied else settings


def default_of(name: str) -> Any:
    """For whoever takes 0 as "the default"."""
    return next(row.default for row in ROWS if row.name == name)
