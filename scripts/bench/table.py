"""The table of figures, each with its bar and its goal, and that of the workloads which they come from.

A limit is a factor and what it is a multiple of; without that, it is in the unit of the figure.
"""

from __future__ import annotations

import over_http
import over_pipes
import over_tasks
from figures import FRESH, HTTP_SDKS, OURS, REDIS, SDKS, STDIO, Metric, Workload
from over_http import CELLS, Cell


def _http_bar(cell: Cell) -> str:
    return f"1 best SDK, 0.8 {STDIO}" if cell.has_stdio_twin else "1 best SDK"


AHEAD = f"1 fastmcp, 1 {REDIS}"
TWICE = "0.5 fastmcp"

# These stand side by side in a table of their own.
LATENCIES = {f"{cell.key}_{share}": Metric(f"{cell.title}, {share}") for cell in CELLS for share in ("p50", "p99")}

METRICS = {
    "first_answer": Metric("exec to first answer", "ms", "2.5 floor-py", "1.5 floor-py"),
    "first_list": Metric("exec to first tools/list (100 tools)", "ms", "3.5 floor-py", "2.5 floor-py"),
    "first_list_1000": Metric("exec to first tools/list (1000 tools)", "ms", "7 floor-py", "5 floor-py"),
    "static_list": Metric("exec to first tools/list (100, static registry)", "ms", "3.5 floor-py", "2.5 floor-py"),
    "list_1000_warm": Metric("list of 1000, warm", "ms", "2 floor-py", "1 floor-py"),
    "scan_functions_ms": Metric("CPU time to scan 1,000 function tools"),
    "scan_functions": Metric("the same, relative to .meta.json", "x", "4", "2"),
    "look_functions_ms": Metric("CPU time to rescan after one of 1,000 changed"),
    "look_functions": Metric("rescan of functions, relative to .meta.json", "x", "1.3", "1.1"),
    "rss_start": Metric("RSS at start", "MB", "0.45 python-sdk", "0.33 python-sdk"),
    "call_p50": Metric("tools/call p50, one by one", "ms", "2 floor-c", "1.5 floor-c"),
    "calls_16": Metric("calls/s, 16 in flight", "/s", "0.7 floor-c, 1 best SDK", "0.9 floor-c"),
    "calls_500": Metric("calls/s, 500 pipelined", "/s"),
    "call_cpu": Metric("own CPU per call", "ms", "0.4 python-sdk", "0.15 python-sdk"),
    "rss_1000": Metric("RSS after 1,000 calls", "MB", "0.45 python-sdk", "0.33 python-sdk"),
    "ping_p50": Metric("ping p50, one by one", "µs"),
    "pings": Metric("pings/s, pipelined", "/s", "0.5 floor-py", "1 floor-py"),
    "output_1mb": Metric("1 MB of output"),
    "output_10mb": Metric("10 MB of output", "ms", "1.5 floor-c", "1.2 floor-c"),
    "cancel": Metric("cancellation to exit of all processes", "ms", "1 best SDK", "2 floor-c"),
    "read_1kb": Metric("resources/read p50, 1 KB", "ms", "1 best SDK", "0.25 best SDK"),
    "read_1mb": Metric("resources/read p50, 1 MB", "ms", "1 best SDK", "0.5 best SDK"),
    "list_changed": Metric("change on disk to list_changed", "ms", "20", "5"),
    "subscriptions_idle": Metric("CPU time for 1,000 idle subscriptions", "% of a core", "1", "0.5"),
    "resource_updated": Metric("change on disk to resources/updated", "ms", "20", "5"),
    "shell_one_ms": Metric("shell tool p50, one argument"),
    "shell_one": Metric("one argument, relative to the floor", "x", "2", "1.7"),
    "shell_parsed_ms": Metric("shell tool p50, arguments parsed"),
    "shell_parsed": Metric("parsed arguments, relative to the floor", "x", "2.3", "2"),
    "shell_several_ms": Metric("shell tool p50, several arguments"),
    "shell_several": Metric("several arguments, relative to the floor", "x", "2.3", "2"),
    # Forked Python tools are held against fresh starts. Their ratio to FastMCP's functions is shown, but is no bar.
    "python_first": Metric("first call to a Python tool"),
    "python_rested": Metric("Python tool p50, 8 ms between calls", "ms", f"0.25 {FRESH}", "5"),
    "python_p99": Metric("Python tool p99, 8 ms between calls"),
    "python_p50": Metric("Python tool p50, back to back", "ms", f"0.25 {FRESH}", "5"),
    "python_16": Metric("Python tool, calls/s, 16 in flight", "/s"),
    "python_marked": Metric("Python tool p50 that is a function"),
    "python_ten": Metric("Python tool p50, ten imports"),
    "python_imports": Metric("ten imports, relative to none", "x", "1.3", "1.1"),
    "python_work": Metric("Python tool p50, work with ten modules"),
    "python_memory": Metric("memory with Python tools", "MB", "0.5 fastmcp", "0.4 fastmcp"),
    "resident_p50": Metric("resident function p50, back to back", "ms", "0.5 fastmcp, 0.8 python-sdk", "0.4 fastmcp"),
    "resident_rested": Metric("resident p50, 8 ms between calls", "ms", "0.5 fastmcp, 0.8 python-sdk", "0.4 fastmcp"),
    "resident_16": Metric("resident calls/s, 16 in flight, one process", "/s", "2 fastmcp", "3 fastmcp"),
    "resident_workers": Metric("resident calls/s, 16 in flight, two workers", "/s", "2 fastmcp", "3 fastmcp"),
    "resident_memory": Metric("memory of the server and the resident process", "MB", "0.6 fastmcp", "0.4 fastmcp"),
    "resident_shell_ms": Metric("resident shell loop p50"),
    "resident_shell": Metric("the loop relative to a new script for each call", "x", "0.6", "0.4"),
    # A forked Python tool needs milliseconds for its process: its results come after those of FastMCP's functions.
    "task_script_handle": Metric("task of a script, call to handle p50", "ms", AHEAD, TWICE),
    "task_script_seen": Metric("task of a script, handle to result p50", "ms", AHEAD, TWICE),
    "task_script_16": Metric("tasks/s of a script, 16 in flight", "/s", AHEAD, "2 fastmcp"),
    "task_forked_handle": Metric("task of a Python tool, call to handle p50", "ms", AHEAD, TWICE),
    "task_forked_seen": Metric("task of a Python tool, handle to result p50"),
    "task_forked_16": Metric("tasks/s of a Python tool, 16 in flight", "/s"),
    "task_resident_handle": Metric("task of a resident, call to handle p50", "ms", AHEAD, TWICE),
    "task_resident_seen": Metric("task of a resident, handle to result p50", "ms", AHEAD, TWICE),
    "task_resident_16": Metric("tasks/s of a resident, 16 in flight", "/s", AHEAD, "2 fastmcp"),
    "task_script_asleep": Metric("memory per task asleep, script", "KiB", AHEAD, TWICE),
    "task_script_alone": Metric("the same, server alone", "KiB", AHEAD, TWICE),
    "task_function_asleep": Metric("memory per task asleep, function", "KiB", AHEAD, TWICE),
    "task_function_alone": Metric("the same, server alone", "KiB"),
    "task_queued": Metric("memory per task that waits for a place", "KiB", AHEAD, TWICE),
    **{cell.key: Metric(cell.title, "/s", _http_bar(cell), "2 best SDK") for cell in CELLS},
    **{f"{cell.key}_cpu": Metric(f"own CPU, {cell.method}, {cell.era}") for cell in CELLS if cell.tells_cpu},
    "http_idle_session": Metric("memory per idle session", "KiB", "60", "30"),
    "http_idle_listen": Metric("memory per idle listen", "KiB", "40", "20"),
    **LATENCIES,
}

LISTING = ("floor-py", OURS, *SDKS)
SHELL_METRICS = tuple(key for key in METRICS if key.startswith("shell_"))
RESIDENT_METRICS = ("resident_p50", "resident_rested", "resident_16", "resident_workers", "resident_memory")
LIVES = tuple(f"task_{tool}_{end}" for tool in over_tasks.TEXTS for end in ("handle", "seen", "16"))
WAITING = ("task_script_asleep", "task_script_alone", "task_function_asleep", "task_function_alone", "task_queued")
TASK_SUBJECTS = (OURS, "fastmcp", REDIS)
PYTHON_METRICS = tuple(key for key in METRICS if key.startswith("python_"))

PIPE_WORKLOADS = (
    Workload(over_pipes.start_up, ("first_answer", "first_list"), LISTING, "tools-100"),
    Workload(over_pipes.start_up_of_many, ("first_list_1000",), LISTING, "tools-1000"),
    Workload(over_pipes.start_up_static, ("static_list",), LISTING, "static"),
    Workload(over_pipes.lists, ("list_1000_warm",), LISTING, "tools-1000"),
    Workload(over_pipes.memory_at_start, ("rss_start",)),
    Workload(over_pipes.calls, ("call_p50", "calls_16", "calls_500", "call_cpu")),
    Workload(over_pipes.memory_after_calls, ("rss_1000",)),
    Workload(over_pipes.pings, ("ping_p50", "pings")),
    Workload(over_pipes.outputs, ("output_1mb", "output_10mb")),
    # After everything else on the shared server: a late answer to a cancelled call would be taken for another one.
    Workload(over_pipes.cancels, ("cancel",)),
    Workload(over_pipes.reads, ("read_1kb", "read_1mb"), (OURS, *SDKS), "resources"),
    Workload(over_pipes.tool_changes, ("list_changed",), (OURS,), "changing"),
    Workload(over_pipes.resource_changes, ("subscriptions_idle", "resource_updated"), (OURS,), "watched"),
    Workload(over_pipes.scans, ("scan_functions_ms", "scan_functions"), (OURS,), "functions"),
    Workload(over_pipes.second_looks, ("look_functions_ms", "look_functions"), (OURS,), "functions"),
    Workload(over_pipes.shell_calls, SHELL_METRICS, (OURS,), "shell"),
    Workload(over_pipes.python_calls, PYTHON_METRICS, (OURS, FRESH, *SDKS), "python"),
    Workload(over_pipes.resident_calls, RESIDENT_METRICS, (OURS, *SDKS), "resident"),
    Workload(over_pipes.resident_shell_calls, ("resident_shell_ms", "resident_shell"), (OURS,), "resident"),
    Workload(over_tasks.lives, LIVES, TASK_SUBJECTS, "tasks"),
    Workload(over_tasks.waiting, WAITING, TASK_SUBJECTS, "tasks"),
)
HTTP_WORKLOADS = (
    *(
        Workload(
            over_http.loaded(cell),
            tuple(key for key in METRICS if key in (cell.key, *(f"{cell.key}_{end}" for end in ("cpu", "p50", "p99")))),
            (OURS, *HTTP_SDKS, *([STDIO] if cell.has_stdio_twin else [])),
            over_http.PROJECT,
        )
        for cell in CELLS
    ),
    Workload(over_http.idle_sessions, ("http_idle_session",), (OURS, *HTTP_SDKS), over_http.PROJECT),
    Workload(over_http.idle_listens, ("http_idle_listen",), (OURS, SDKS[0], HTTP_SDKS[2]), over_http.PROJECT),
)
