"""Measure a fleet on this machine: what a call costs beside a local one, and how much Redis does and keeps for it.

    python scripts/fleet_figures.py [CALLS [everysec|always]]

Needs `redis-server` and the extra `fleet`. Starts a Redis, a server and 1, 2 and 4 workers of 8 places each, and prints
a line for each figure. Then it computes from them what 1,000 workers and 10,000 calls a second would need.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.fleet import Worker
from tests.support.project import ProjectBuilder
from tests.support.redis import Redis
from tests.support.wire import clean_environment

IN_FLIGHT = 16
WORKERS, CALLS_A_SEC = 1000, 10_000
LEASE_SECS, BEATS = 30, 6


class Server:
    def __init__(self, root: Path, url: str) -> None:
        command = [sys.executable, "-m", "mcpgreen", "serve", "--project-root", str(root), "--fleet", url]
        environment = clean_environment({"MCPGREEN_MAX_TASKS_PER_PRINCIPAL": "100000"})
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        self.send({"id": 0, "method": "initialize", "params": hello})
        self.read()
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def begin(self, id: int, tool: str) -> None:
        self.send({"id": id, "method": "tools/call", "params": {"name": tool, "arguments": {"n": id}}})

    def run(self, tool: str, count: int, in_flight: int = IN_FLIGHT) -> tuple[float, float]:
        """Return the median of a call, in milliseconds, and the calls a second."""
        began, took, sent, done = {}, [], 0, 0
        start = time.monotonic()
        while done < count:
            while sent < count and sent - done < in_flight:
                sent += 1
                began[sent] = time.monotonic()
                self.begin(sent, tool)
            answer = self.read()
            if answer.get("id") in began:
                assert "result" in answer, answer
                done += 1
                took.append(time.monotonic() - began.pop(answer["id"]))
        return statistics.median(took) * 1000, count / (time.monotonic() - start)

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def main(count: int, fsync: str) -> None:
    from redis import Redis as Client

    with tempfile.TemporaryDirectory() as scratch:
        redis = Redis(fsync=fsync)
        redis.start()
        project = ProjectBuilder(Path(scratch) / "project")
        project.tool("here", "printf done")
        project.tool("far", "printf done", run_on="any")
        client = Client(unix_socket_path=str(redis.socket))
        server, workers = Server(project.root, redis.url), list[Worker]()
        try:
            server.run("here", 50)
            local_ms, local_rate = server.run("here", count)
            print(f"local: {local_ms:.1f} ms (p50, {IN_FLIGHT} in flight), {local_rate:.0f} calls/s")
            for number in (1, 2, 4):
                while len(workers) < number:
                    workers.append(Worker(project.root, redis.url, arguments=["--slots", "8"]).ready())
                time.sleep(2)
                server.run("far", 50)
                before = client.info("stats")["total_commands_processed"]
                fleet_ms, rate = server.run("far", count)
                commands = (client.info("stats")["total_commands_processed"] - before) / count
                alone_ms, _ = server.run("far", 30, in_flight=1)
                print(
                    f"{number} workers: {fleet_ms:.1f} ms (p50, {fleet_ms - local_ms:+.1f} ms), {rate:.0f} calls/s, "
                    f"{alone_ms:.1f} ms alone, {commands:.1f} commands of Redis a call"
                )
            for worker in workers:
                worker.end()
            time.sleep(1)
            memory = client.info("memory")["used_memory"]
            for id in range(500):
                server.begin(100_000 + id, "far")
            while client.zcard("{mg:test-project}:q:any") < 500:
                time.sleep(0.05)
            kept = (client.info("memory")["used_memory"] - memory) / 500
            print(f"a call that waits takes {kept:.0f} bytes of Redis")
            beats = WORKERS * (BEATS / LEASE_SECS * 3 + 1)
            print(
                f"{WORKERS} workers, {CALLS_A_SEC} calls/s: {CALLS_A_SEC * commands + beats:,.0f} commands/s, of which "
                f"{beats:,.0f} are beats and looks; {CALLS_A_SEC / rate:,.0f} servers like this one; "
                f"{kept * CALLS_A_SEC / 1e6:,.0f} MB for each second of waiting"
            )
        finally:
            server._process.kill()
            for worker in workers:
                if worker.process.poll() is None:
                    worker.end()
            redis.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400, sys.argv[2] if len(sys.argv) > 2 else "everysec")
