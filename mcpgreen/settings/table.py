"""All settings, one row each, grouped by topic.

Data only: how a row is read is in `settings`, what a setting does is where it is used. `docs/settings.md` is written
from these rows by `make docs`, so `doc` speaks to users, in one sentence or two, and says what 0 or empty means.
"""

from __future__ import annotations

from mcpgreen import journal
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
            "What the server is called, also in the addresses of its pages, unless server.d/server.meta.json says it. "
            "Empty: the name of the folder."),
        Setting("tools_dir", directory, "", doc="Where tools are. Empty: tools/ in the project."),
        Setting("resources_dir", directory, "", doc="Where resources are. Empty: resources/ in the project."),
        Setting("prompts_dir", directory, "", doc="Where prompts are. Empty: prompts/ in the project."),
        Setting("server_dir", directory, "", doc=
            "Where the server's own description and hooks are. Empty: server.d/ in the project."),
        Setting("providers_dir", directory, "", doc=
            "Where the project's resource providers are. Empty: providers/ in the project."),
        Setting("ui_dir", directory, "", doc="Where UI resources are. Empty: ui/ in the project."),
        Setting("registry_dir", directory, "", doc=
            "Where the lists of found items are written. Empty: .registry/ in the project."),
        Setting("roots", text, "", doc=
            "Directories in scope for tools, separated by colons, for clients that name none. One that does not exist "
            "keeps the server from starting. Empty: those in config/roots.json, else the project."),
        Setting("client_roots", choice("auto", "trust", "within", "never"), "auto", doc=
            "Which roots a client may name: trust takes whatever it names, within only what lies inside the "
            "configured roots, never does not ask it. auto: within if the setting roots names some or a remote token "
            "is set; else trust."),
        Setting("tmp_root", text, "", doc=
            "Where the server makes its directory for temporary files. One that does not exist, or that may not be "
            "written to, keeps the server from starting. Empty: TMPDIR, or the system's place for them."),
    ),
    "limits": (
        Setting("max_concurrent_requests", integer, 16, low=1, high=256, doc=
            "How many requests may run a script at the same time. Further ones wait in line."),
        Setting("max_queued_requests", integer, 4096, low=1, high=1_000_000, doc=
            "How many requests may wait in line. Further ones are refused."),
        Setting("max_queued_bytes", integer, 32 * MIB, low=64 * KIB, high=4 * GIB, doc=
            "How much memory the requests in line may take, more or less. Beyond that nothing more is read."),
        Setting("max_tool_output_size", integer, 10 * MIB, low=1, high=GIB, doc=
            "How many bytes a script may write to stdout. One that writes more is stopped."),
        Setting("max_tool_stderr_size", integer, 0, low=0, high=GIB, doc=
            "How many bytes a script may write to stderr. 0: as many as to stdout."),
        Setting("max_response_bytes", integer, RESPONSE_FACTOR * 10 * MIB + MIB, low=0, high=GIB, doc=
            "How long the reply with the result of a tool, a prompt or a completion may be. 0: unlimited. Unless it is "
            "set, it grows with `max_tool_output_size`."),
        Setting("max_ui_resource_bytes", integer, MIB, low=1, high=GIB, doc=
            "How large a page that clients show may be."),
        Setting("max_line_bytes", integer, 4 * MIB, low=KIB, high=GIB, doc=
            "How long one message from the client may be."),
        Setting("max_backlog_bytes", integer, 32 * MIB, low=64 * KIB, high=4 * GIB, doc=
            "How many bytes of replies may lie unread. Beyond that no script is started and nothing more is read."),
        Setting("max_progress_per_min", integer, 100, low=0, high=1_000_000, doc=
            "How many progress messages one request may send in a minute. 0: unlimited."),
        Setting("max_logs_per_min", integer, 100, low=0, high=1_000_000, doc=
            "How many log messages one request may send in a minute. 0: unlimited. Unless it is set, as many as "
            "`max_progress_per_min`."),
        Setting("page_size", integer, 1000, low=1, high=5000, doc=
            "How many items one page of a list has, and the most that a client may ask for."),
    ),
    "timeouts": (
        Setting("default_tool_timeout", seconds, 30.0, low=0.1, high=DAY_SECS, doc=
            "How many seconds a tool may take when neither its metadata nor the request says otherwise."),
        Setting("max_timeout_secs", seconds, 600.0, low=0.1, high=DAY_SECS, doc=
            "How many seconds a tool may take in all when its progress extends its timeout, and the most that a client "
            "may ask for."),
        Setting("progress_extends_timeout", flag, False, doc=
            "Whether a tool's timeout starts anew each time it reports progress."),
        Setting("kill_grace_secs", seconds, 1.0, low=0, high=10, doc=
            "How many seconds a script has to end after SIGTERM before it gets SIGKILL."),
        Setting("drain_secs", seconds, 0.2, low=0, high=10, doc=
            "How many seconds to wait for the rest of the output after a script has ended."),
        Setting("shutdown_timeout", seconds, 5.0, low=0.1, high=600, doc=
            "How many seconds after a shutdown request the server ends, whatever is still running."),
        Setting("eof_grace_secs", seconds, 10.0, low=0, high=600, doc=
            "How many seconds running requests have to finish after the client has closed its end."),
        Setting("ask_timeout_secs", seconds, 300.0, low=1, high=DAY_SECS, doc=
            "How many seconds a person or model has to answer a script that does not say it itself."),
        Setting("parked_ttl_secs", seconds, 900.0, low=1, high=DAY_SECS, doc=
            "How many seconds a script waits for a stateless client to come back with answers."),
        Setting("schema_timeout_secs", seconds, 5.0, low=0.1, high=60, doc=
            "How many seconds of processor time it may take to check arguments or output by a schema."),
        Setting("health_timeout_secs", seconds, 5.0, low=0.1, high=600, doc=
            "How many seconds the project's own health checks may take."),
        Setting("idle_timeout_secs", seconds, 3600.0, low=0, high=30 * DAY_SECS, aliases=("MCPBASH_IDLE_TIMEOUT",), doc=
            "After how many seconds without input and without work the server ends. 0: never."),
        Setting("idle_timeout_enabled", flag, True, doc="Whether the server ends when it is idle for long."),
        Setting("orphan_check_interval_secs", seconds, 30.0, low=0.05, high=DAY_SECS,
            aliases=("MCPBASH_ORPHAN_CHECK_INTERVAL",), doc=
            "How often the server looks whether the process that started it is still there."),
        Setting("orphan_check_enabled", flag, True, doc=
            "Whether the server ends when the process that started it is gone."),
        Setting("ci_mode", flag, False, doc=
            "Whether the server runs in a pipeline of continuous integration: it ends neither when it is idle nor "
            "when the process that started it is gone."),
        Setting("roots_request_timeout_secs", seconds, 5.0, low=0.1, high=600,
            aliases=("MCPBASH_ROOTS_REQUEST_TIMEOUT",), doc=
            "How many seconds a client has to name its roots. Scripts wait for its first answer, and not for later "
            "ones."),
        Setting("roots_debounce_secs", seconds, 1.0, low=0, high=600, aliases=("MCPBASH_ROOTS_DEBOUNCE_INTERVAL",), doc=
            "How many seconds lie at least between two requests for a client's roots, however often they change."),
    ),
    "scripts": (
        # Linux takes 128 KiB for one variable, name included.
        Setting("env_payload_threshold", integer, 64 * KIB, low=0, high=120 * KIB, doc=
            "From how many bytes on arguments reach a script as a file and not as a variable. 0: always as a file."),
        Setting("tool_env_mode", choice("minimal", "allowlist", "inherit"), "minimal", doc=
            "Which of the server's variables a tool sees: a few basic ones, these and the allow-list, or all."),
        Setting("tool_env_allowlist", names, (), doc=
            "Variables that tools see in addition when tool_env_mode is allowlist."),
        Setting("tool_env_inherit_allow", flag, False, doc=
            "Whether tool_env_mode may be inherit. It hands every secret of the environment to every tool."),
        Setting("tool_stderr_capture", flag, True, doc="Whether the end of a tool's stderr is part of its result."),
        Setting("tool_stderr_tail_limit", integer, 4096, low=0, high=MIB, doc=
            "How many bytes of a tool's stderr its result may carry."),
        Setting("json_tool", choice("jq", "gojq", "none"), "", doc=
            "Which of jq and gojq shell tools use to read JSON, if it is there; none tells them that there is none. "
            "Empty: jq, else gojq, else our own."),
        Setting("strict_arguments", flag, False, doc=
            "Whether arguments have to be as the schema says. Else null for an optional one that may not be null "
            "counts as absent, and text as the value that it is in JSON where text is not allowed."),
        Setting("json_tool_bin", text, "", doc=
            "The program that shell tools use to read JSON, by its path. Empty, or not there: as json_tool says."),
    ),
    "resources": (
        Setting("resources_roots", text, "", aliases=("MCP_RESOURCES_ROOTS",), doc=
            "Colon-separated directories below which files may be read as resources, besides resources/ and the "
            "roots."),
        Setting("max_resource_bytes", integer, 10 * MIB, low=1, high=GIB, doc=
            "How large a resource may be. A larger one is refused. Unless it is set, as large as "
            "`max_tool_output_size`."),
        Setting("resource_timeout_secs", seconds, 30.0, low=0.1, high=DAY_SECS, doc=
            "How long a provider or completion script may take."),
        Setting("resources_poll_interval_secs", seconds, 2.0, low=0, high=DAY_SECS, doc=
            "How often subscribed resources are looked at; those on the network 15 times less often. 0: never."),
        Setting("max_subscriptions", integer, 4096, low=0, high=1_000_000, doc=
            "How many resources may be subscribed to at the same time."),
        Setting("max_listens", integer, 1024, low=1, high=1_000_000, doc=
            "How many requests of subscriptions/listen may be open at the same time. Further ones are refused."),
        Setting("provider_env_mode", choice("isolate", "allowlist", "inherit"), "isolate", doc=
            "Which of the server's variables a provider sees: a few basic ones, these and the allow-list, or all."),
        Setting("provider_env_allowlist", names, (), doc=
            "Variables that providers see in addition when provider_env_mode is allowlist."),
        Setting("provider_env_inherit_allow", flag, False, doc=
            "Whether provider_env_mode may be inherit. It hands every secret of the environment to every provider."),
    ),
    "providers": (
        Setting("https_allow_hosts", names, (), doc=
            "Hosts that https resources may come from, separated by commas or spaces; no patterns. Empty: none."),
        Setting("https_deny_hosts", names, (), doc=
            "Hosts that https resources may not come from, whatever else is allowed."),
        Setting("https_allow_all", flag, False, doc=
            "Whether https resources may come from every host with a public address."),
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
            "Whether git resources may come from every host with a public address."),
        Setting("git_timeout_secs", seconds, 30.0, low=0.1, high=60, aliases=("MCPBASH_GIT_TIMEOUT",), doc=
            "How many seconds fetching a git resource may take in all."),
        Setting("git_max_kb", integer, 50 * KIB, low=1, high=MIB, doc=
            "How many KiB a git resource may have, and also what has to be fetched of its repository."),
        Setting("provider_memory_mb", integer, 256, low=64, high=MIB, doc=
            "How many MiB of memory our git and https providers, and each program that they start, may use."),
        Setting("net_allow_addresses", addresses, (), doc=
            "Private addresses that the https and git providers may connect to all the same, e.g. of an intranet "
            "server."),
    ),
    "policy": (
        Setting("tool_allowlist", names, (), doc=
            "Names of tools that may run, separated by commas or spaces; * stands for all, and there are no other "
            "patterns. Other tools are listed, but calls are refused. Empty: tool_allow_default decides."),
        Setting("tool_allow_default", permission, "allow", doc=
            "What happens to tools when there is no allow-list: allow or deny. Any other word denies."),
        Setting("allow_project_hooks", flag, False, doc=
            "Whether server.d/register.sh is run to learn what the project offers."),
    ),
    "asking": (
        Setting("parked_max", integer, 32, low=1, high=10_000, doc=
            "How many scripts may wait for stateless clients to come back; one more, and the oldest is stopped. As "
            "many may wait for other clients without taking part in max_concurrent_requests."),
        Setting("state_key", text, "", secret=True, doc=
            "A secret that several servers share so that a client may continue with any of them. Empty: a random one."),
    ),
    "remote token": (
        Setting("remote_token", text, "", secret=True, doc=
            "A secret of at least 32 characters that every request and notification must carry in params._meta. "
            "Empty: none is asked for."),
        Setting("remote_token_key", text, "mcpbash/remoteToken", doc=
            "The key in params._meta under which the token is looked for."),
        Setting("remote_token_fallback_key", text, "remoteToken", takes_empty=True, doc=
            "A second key under which the token is looked for. Set, but empty: there is no second key."),
        Setting("remote_token_max_failures_per_min", integer, 10, low=0, high=10_000, doc=
            "After how many messages without the token in a minute strangers are told that they are throttled. 0: "
            "never."),
    ),
    "registry": (
        Setting("tools_ttl", seconds, 5.0, low=0, high=3600, aliases=("MCP_TOOLS_TTL",), doc=
            "For how many seconds the list of tools is taken as current before the disk is looked at again."),
        Setting("registry_max_bytes", integer, 100 * MIB, low=1, high=GIB, doc=
            "How large the list of one kind of item may be."),
        Setting("register_ttl", seconds, 5.0, low=0, high=3600, doc=
            "For how many seconds what register.json or register.sh said is taken as current. 0: 5 seconds."),
        Setting("max_manual_registry_bytes", integer, MIB, low=1, high=GIB, doc=
            "How large register.json may be, and what register.sh prints."),
        Setting("manual_buffer_max_bytes", integer, MIB, low=1, high=GIB, doc=
            "How many bytes register.sh may register through its functions."),
        Setting("static_registry", flag, False, doc=
            "Whether what `.registry/` lists is served, or else the project read once, and never looked at again."),
        Setting("list_cache", flag, True, doc=
            "Whether lists are kept in the user's cache directory: while nothing in the project changes, the next "
            "start answers the first of them from there."),
        Setting("watch_files", choice("auto", "poll"), "auto", doc=
            "How changes on disk are noticed: by the system's file events where it has them, or by looking regularly."),
        Setting("registry_poll_secs", seconds, 5.0, low=0.05, high=3600, doc=
            "How often to look for changes where there are no file events."),
        Setting("list_change_debounce_secs", seconds, 0.1, low=0, high=10, doc=
            "How long to wait for further changes before clients are told that a list has changed."),
    ),
    "diagnostics": (
        Setting("log_level", level, "info", aliases=("MCPBASH_LOG_LEVEL_DEFAULT",), doc=
            "From which level on log messages are sent to a client that has not chosen one. If it is not set and "
            "there is a file server.d/.debug, it is debug."),
        Setting("stderr_level", level, "warning", doc=
            "From which level on the server writes to stderr, and to `log_file`: warning has calls that failed, timed "
            "out or were refused, info every call, debug every message with its content."),
        Setting("log_format", choice("text", "json"), "text", doc=
            "How the lines on stderr and in `log_file` are written: as text, or as an object of JSON each."),
        Setting("log_file", directory, "", doc=
            "A file that gets what is written to stderr too, with times. A relative path begins at the project. Empty: "
            "none."),
        Setting("log_file_max_bytes", integer, 10 * MIB, low=4 * KIB, high=GIB, doc=
            "How large log_file may become before it is renamed to log_file.1 and begun anew."),
        Setting("log_file_keep", integer, 3, low=0, high=100, doc=
            "How many older files are kept beside log_file, as .1, .2 and so on. 0: none."),
        Setting("core_dumps", flag, False, doc=
            "Whether the server may leave a core file, and debuggers of the same user may look into it. Scripts can "
            "then do that too: read its environment, and write to its client."),
        Setting("preserve_state", flag, False, doc=
            "Whether the temporary files of calls stay on disk when the server ends."),
        Setting("corruption_threshold", integer, 3, low=0, high=1_000_000, doc=
            "After how many faults of its own output the server ends with status 2. 0: 3."),
        Setting("corruption_window_secs", seconds, 60.0, low=0.1, high=DAY_SECS,
            aliases=("MCPBASH_CORRUPTION_WINDOW",), doc=
            "Within how many seconds the faults have to come to end the server."),
        Setting("allow_corrupt_stdout", flag, False, doc=
            "Whether the server goes on however many faults its output has."),
    ),
    "compatibility": (
        Setting("compat_batches", flag, False, doc="Whether batches are taken from clients of every revision."),
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
