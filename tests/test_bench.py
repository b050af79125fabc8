"""The benchmark runs and reports. How fast anything is, is not tested here: that depends on the machine."""

from __future__ import annotations

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

import pytest

BENCH = Path(__file__).resolve().parent.parent / "scripts" / "bench"

COMPILER = shutil.which("cc")
LOAD_REQUEST = (
    b'POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 49\r\n\r\n{"jsonrpc":"2.0","id":1000000000,"method":"ping"}\0'
)

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="the load generator needs a C compiler")
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
    assert "round 1/1: start-up" in run.stderr
    document = json.loads(report.read_text(encoding="utf-8"))
    assert document["failures"] == {}
    assert document["left_out"] == {}
    for key in ("first_answer", "call_p50", "calls_16", "pings", "list_1000_warm", "output_10mb", "cancel", "rss_1000"):
        metric = document["metrics"][key]
        for floor in floors:
            assert metric["medians"][floor] > 0
            assert metric["ratios"][floor]["floor-py"] > 0
        assert metric["ratios"]["floor-py"]["floor-py"] == 1


def test_a_floor_without_a_compiler_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    report = tmp_path / "bench.json"

    run = run_bench("--quick", "--only", "floor-c,floor-py", "--metric", "call_p50", "--json", str(report))

    assert run.returncode == 0, run.stderr
    assert "left out: floor-c: no compiler" in run.stdout
    assert json.loads(report.read_text(encoding="utf-8"))["left_out"] == {"floor-c": "no compiler"}


def test_strict_fails_when_our_server_cannot_be_measured(tmp_path: Path) -> None:
    """A package called mcpgreen that cannot serve, found before the real one."""
    broken = tmp_path / "mcpgreen"
    broken.mkdir()
    (broken / "__init__.py").touch()
    (broken / "__main__.py").write_text("raise SystemExit('broken')", encoding="utf-8")
    copy = tmp_path / "scripts" / "bench"
    shutil.copytree(BENCH, copy, ignore=shutil.ignore_patterns("__pycache__"))
    arguments = ["--quick", "--strict", "--only", "mcpgreen,floor-py", "--metric", "call_p50", "--json"]

    run = subprocess.run(
        [sys.executable, str(copy), *arguments, str(tmp_path / "bench.json")],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )

    assert run.returncode == 1
    assert "left out: mcpgreen: does not work here: the server ended: broken" in run.stdout


@needs_compiler
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


def test_without_a_compiler_nothing_is_measured_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")

    run = run_bench("--http", "--quick", "--only", "python-sdk", "--json", str(tmp_path / "bench.json"))

    assert run.returncode == 0, run.stderr
    assert "left out: everything over HTTP: no compiler" in run.stdout


@needs_compiler
def test_without_node_the_typescript_sdk_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cc", "as", "ld"):
        program = shutil.which(name)
        assert program is not None
        (tmp_path / name).symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path))

    run = run_bench("--http", "--quick", "--only", "typescript-sdk", "--json", str(tmp_path / "bench.json"))

    assert run.returncode == 0, run.stderr
    assert "left out: typescript-sdk: node is not installed" in run.stdout


@pytest.fixture(scope="module")
def load_program(tmp_path_factory: pytest.TempPathFactory) -> str:
    assert COMPILER is not None
    program = tmp_path_factory.mktemp("load") / "load"
    source = BENCH / "over_http" / "load.c"
    subprocess.run([COMPILER, "-Wall", "-Wextra", "-Werror", "-O2", "-o", program, source], check=True)
    return str(program)


def put_load(program: str, port: int) -> subprocess.CompletedProcess[bytes]:
    command = [program, str(port), "3", "0.05", '"result"']
    return subprocess.run(command, input=LOAD_REQUEST, capture_output=True, timeout=60, check=False)


@contextmanager
def serving(answer: Callable[[bytes], list[bytes]]) -> Iterator[int]:
    """A server that answers each request with these pieces, sent one by one, given the id of the request; the last
    piece may be empty, which ends the connection."""

    class Handler(socketserver.StreamRequestHandler):
        disable_nagle_algorithm = True

        def handle(self) -> None:
            while request := self.rfile.read(len(LOAD_REQUEST) - 1):
                found = re.search(rb'"id":(\d+)', request)
                assert found is not None
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


def events(request_id: bytes) -> list[bytes]:
    """An empty event first, the message in two chunks, all of it byte by byte."""
    begin, end = b"data:\n\ndata: " + message(request_id)[:30], message(request_id)[30:] + b"\n\n"
    chunks = b"".join(b"%X\r\n%b\r\n" % (len(chunk), chunk) for chunk in (begin, end, b""))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return [bytes([byte]) for byte in head + chunks]


def until_closed(request_id: bytes) -> list[bytes]:
    return [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", message(request_id), b""]


@needs_compiler
@pytest.mark.parametrize("answer", [lambda each: whole(message(each)), events, until_closed])
def test_the_load_finds_the_end_of_every_kind_of_answer(
    load_program: str, answer: Callable[[bytes], list[bytes]]
) -> None:
    with serving(answer) as port:
        run = put_load(load_program, port)

    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["answered"] == found["counted"] + 3
    assert 0 < found["p50_ms"] <= found["p99_ms"]
    assert bool(found["reconnects"]) == (answer is until_closed)


@needs_compiler
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda each: whole(message(each), b"500 Internal Server Error"), "HTTP/1.1 500"),
        (lambda each: whole(message(b"7")), "not the id of the request"),
        (lambda each: whole(b'{"id":%b}' % each), "not what was asked for"),
        (lambda each: whole(b'{"id":%b,"error":{"message":"no \\"result\\" here"},"x":"result"}' % each), "an error"),
        (lambda each: whole(b'{"id":%b,"result":{"isError":true}}' % each), "a failed call"),
        (lambda each: [*whole(message(each)[:-1])[:1], b""], "closed the connection within an answer"),
    ],
)
def test_the_load_fails_at_the_first_answer_that_is_wrong(
    load_program: str, answer: Callable[[bytes], list[bytes]], problem: str
) -> None:
    with serving(answer) as port:
        run = put_load(load_program, port)

    assert run.returncode == 1
    assert problem in run.stderr.decode()
