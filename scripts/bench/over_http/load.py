"""Build the load generator, run it, and read what it says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from client import SubjectError
from subjects import compiled

from over_http.messages import Request

SOURCE = Path(__file__).resolve().parent / "load.c"
PATIENCE_SECS = 90.0


@dataclass(frozen=True)
class Outcome:
    """What came back from one load. `load_cpu_share` is how much of one processor the generator itself took."""

    answered: int  # also before counting
    per_sec: float
    p50_ms: float
    p99_ms: float
    load_cpu_share: float
    reconnects: int


@dataclass(frozen=True)
class Generator:
    program: str

    @classmethod
    def build(cls, scratch: Path) -> Generator:
        """Raises Unavailable without a compiler."""
        return cls(compiled(SOURCE, scratch / "load"))

    def run(self, requests: Sequence[Request], *, port: int, connections: int, secs: float, wanted: str) -> Outcome:
        """Request n goes over connection n, again and again; `wanted` has to be in each answer. Raises SubjectError."""
        command = [self.program, str(port), str(connections), str(secs), wanted]
        given = b"".join(request.on_wire(port) for request in requests)
        try:
            done = subprocess.run(command, input=given, capture_output=True, timeout=PATIENCE_SECS, check=False)
        except subprocess.TimeoutExpired as error:
            raise SubjectError(f"the load did not end within {PATIENCE_SECS:g} s") from error
        if done.returncode != 0:
            raise SubjectError(done.stderr.decode("utf-8", "replace").strip() or f"the load ended: {done.returncode}")
        found = json.loads(done.stdout)
        return Outcome(
            answered=found["answered"],
            per_sec=found["counted"] / found["secs"],
            p50_ms=found["p50_ms"],
            p99_ms=found["p99_ms"],
            load_cpu_share=found["cpu_secs"] / found["secs"],
            reconnects=found["reconnects"],
        )
