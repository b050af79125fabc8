"""The benchmark runs and reports. How fast anything is, is not tested here: that depends on the machine."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import completed

BENCH = Path(__file__).resolve().parent.parent / "scripts" / "bench"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark looks at processes through /proc")


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)


def test_a_quick_run_gives_tables_and_json_with_ratios(tmp_path: Path) -> None:
    report = tmp_path / "bench.json"
    floors = ["floor-py", "floor-c"] if shutil.which("cc") else ["floor-py"]

    run = run_bench("--quick", "--only", ",".join(floors), "--json", str(report))

    assert run.returncode == 0, run.stderr
    assert "exec to first answer" in run.stdout
    assert "≤ 2.5x floor-py" in run.stdout
    assert "round 1/1: exec to first answer" in run.stderr
    document = json.loads(report.read_text(encoding="utf-8"))
    assert document["failures"] == {}
    assert document["left_out"] == {}
    for key in ("call_p50", "calls_16", "pings", "output_10mb", "cancel", "rss_1000"):
        metric = document["metrics"][key]
        for floor in floors:
            assert metric["medians"][floor] > 0
            assert metric["ratios"][floor]["floor-py"] > 0
        assert metric["ratios"]["floor-py"]["floor-py"] == 1
    for key in ("first_answer", "first_list_1000", "list_1000_warm"):
        assert document["metrics"][key]["medians"]["floor-py"] > 0


BARS = ("scan_functions", "look_functions", "static_list", "resident_p50", "resident_shell")


def test_functions_are_measured_beside_the_same_with_descriptions(tmp_path: Path) -> None:
    report = tmp_path / "bench.json"

    run = run_bench(
        "--quick",
        "--only",
        "mcpgreen",
        "--metric",
        "scan_functions,look_functions,static_list,resident_p50,resident_shell",
        "--json",
        str(report),
    )

    assert run.returncode == 0, run.stderr
    metrics = json.loads(report.read_text(encoding="utf-8"))["metrics"]
    assert {key: metrics[key]["bar"]["now"] for key in BARS} == {
        "scan_functions": "≤ 4 x",
        "look_functions": "≤ 1.3 x",
        "static_list": "≤ 3.5x floor-py",
        "resident_p50": "≤ 0.5x fastmcp and ≤ 0.8x python-sdk",
        "resident_shell": "≤ 0.6 x",
    }
    assert "floor-py not measured" in run.stdout
    assert all(metrics[key]["medians"]["mcpgreen"] > 0 for key in metrics)


def test_tasks_are_measured_from_their_handle_to_their_result(tmp_path: Path) -> None:
    report = tmp_path / "bench.json"

    run = run_bench("--quick", "--only", "mcpgreen", "--metric", "task_script_seen", "--json", str(report))

    assert run.returncode == 0, run.stderr
    document = json.loads(report.read_text(encoding="utf-8"))
    assert document["failures"] == {}
    names = [f"task_{tool}_{end}" for tool in ("script", "forked", "resident") for end in ("handle", "seen", "16")]
    assert {name for name in names if document["metrics"][name]["medians"]["mcpgreen"] > 0} == set(names)
    assert document["metrics"]["task_script_seen"]["bar"]["now"] == "≤ 1x fastmcp and ≤ 1x fastmcp-redis"


def test_an_unknown_name_is_refused() -> None:
    run = run_bench("--metric", "call_p50,no_such_figure")

    assert run.returncode == 2
    assert "unknown: no_such_figure" in run.stderr


def test_strict_fails_when_our_server_cannot_be_measured(tmp_path: Path) -> None:
    """A package called mcpgreen that cannot serve, found before the real one."""
    broken = tmp_path / "mcpgreen"
    broken.mkdir()
    (broken / "__init__.py").touch()
    (broken / "__main__.py").write_text("raise SystemExit('broken')", encoding="utf-8")
    copy = tmp_path / "scripts" / "bench"
    shutil.copytree(BENCH, copy, ignore=shutil.ignore_patterns("__pycache__"))
    arguments = ["--quick", "--strict", "--only", "mcpgreen,floor-py", "--metric", "call_p50", "--json"]

    run = completed([sys.executable, str(copy), *arguments, str(tmp_path / "bench.json")])

    assert run.returncode == 1
    assert "left out: mcpgreen: does not work here: the server ended: broken" in run.stdout


def test_a_quick_run_over_http_gives_rates_latencies_and_memory(tmp_path: Path) -> None:
    report = tmp_path / "bench.json"
    names = ("mcpgreen", "mcpgreen-stdio", "python-sdk")
    loads = ("http_discover_stateless_16", "http_list_session_1", "http_call_session_16")
    metrics = (*loads, "http_idle_listen")

    run = run_bench(
        "--http", "--quick", "--only", ",".join(names), "--metric", ",".join(metrics), "--json", str(report)
    )

    assert run.returncode == 0, run.stderr
    assert "server/discover, stateless, 16 connections" in run.stdout
    assert "≥ 0.8x mcpgreen-stdio" in run.stdout
    assert "p50 / p99 in ms" in run.stdout
    document = json.loads(report.read_text(encoding="utf-8"))
    assert "metrics" not in document  # nothing went over pipes
    over_http = document["http"]
    assert over_http["failures"] == {}
    assert over_http["left_out"] == {}
    for key in loads:
        for name in ("mcpgreen", "python-sdk"):
            assert over_http["metrics"][key]["medians"][name] > 0
            medians = [over_http["metrics"][f"{key}_{share}"]["medians"][name] for share in ("p50", "p99")]
            assert 0 < medians[0] <= medians[1]
    assert over_http["metrics"]["http_call_session_16"]["medians"]["mcpgreen-stdio"] > 0
    assert set(over_http["metrics"]["http_idle_listen"]["medians"]) == {"mcpgreen", "python-sdk"}


@pytest.mark.parametrize(
    ("variable", "arguments", "reason"),
    [
        ("CC", ["--only", "floor-c,floor-py", "--metric", "call_p50"], "floor-c: no compiler"),
        ("PATH", ["--http", "--only", "typescript-sdk"], "typescript-sdk: node is not installed"),
        ("PATH", ["--only", "fastmcp-redis", "--metric", "task_queued"], "fastmcp-redis: redis-server is"),
    ],
    ids=["compiler", "node", "redis"],
)
def test_what_cannot_be_measured_here_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, arguments: list[str], reason: str
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))

    run = run_bench("--quick", *arguments, "--json", str(tmp_path / "bench.json"))

    assert run.returncode == 0, run.stderr
    assert f"left out: {reason}" in run.stdout


@pytest.fixture(scope="module")
def over_http() -> Iterator[Any]:
    """The module of the benchmark, whose neighbours are imported by their bare names."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        yield importlib.import_module("over_http")
    for name in set(sys.modules) - before:
        if str(BENCH) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@contextmanager
def serving(answer: Callable[[bytes], list[bytes]]) -> Iterator[int]:
    """A server that answers each request with these pieces, sent one by one, given the id of the request; the last
    piece may be empty, which ends the connection."""

    class Handler(socketserver.StreamRequestHandler):
        disable_nagle_algorithm = True

        def handle(self) -> None:
            while line := self.rfile.readline():
                if found := re.search(rb'"id":(\d+)', line):
                    for piece in answer(found[1]):
                        if not piece:
                            return
                        self.wfile.write(piece)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 16

        def handle_error(self, *_: object) -> None:
            """The load leaves in the middle of an answer when it has seen a wrong one."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def message(request_id: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":{}}' % request_id


def whole(body: bytes, status: bytes = b"200 OK") -> list[bytes]:
    return [b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n" % (status, len(body)), body]


def put_load(over_http: Any, port: int) -> tuple[list[float], float, int]:
    requests = [over_http.Request("ping", {})]
    outcome: tuple[list[float], float, int] = over_http.load(
        port, requests, connection_count=3, secs=0.05, wanted=b'"result"'
    )
    return outcome


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda each: whole(message(each), b"500 Internal Server Error"), "HTTP/1.1 500"),
        (lambda each: whole(message(b"7")), "wrong answer"),
        (lambda each: whole(b'{"id":%b}' % each), "wrong answer"),
        (
            lambda each: whole(b'{"id":%b,"error":{"message":"no \\"result\\" here"},"x":"result"}' % each),
            "wrong answer",
        ),
        (lambda each: whole(b'{"id":%b,"result":{"isError":true}}' % each), "wrong answer"),
        (lambda each: [*whole(message(each)[:-1])[:1], b""], "closed the connection within an answer"),
    ],
)
def test_the_load_fails_at_the_first_answer_that_is_wrong(
    over_http: Any, answer: Callable[[bytes], list[bytes]], problem: str
) -> None:
    with serving(answer) as port, pytest.raises(Exception, match=problem) as failure:
        put_load(over_http, port)

    assert type(failure.value).__name__ == "SubjectError"
