"""The place of one subject in one round: its server, its project folders, how much it has to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from bars import FLOORS, FRESH, OURS, SDKS
from client import Session, result_of
from subjects import Subject

Values = dict[str, float]


@dataclass(frozen=True)
class Counts:
    """How often each thing is done in a round."""

    starts: int = 5
    calls_one_by_one: int = 200
    calls_in_flight: int = 600
    calls_pipelined: int = 500
    calls_before_rss: int = 1000
    pings_one_by_one: int = 1000
    pings_pipelined: int = 20_000
    lists: int = 20
    outputs: int = 3
    cancels: int = 10
    changes: int = 3
    reads: int = 200
    large_reads: int = 20
    python_calls: int = 150
    python_calls_in_flight: int = 400
    python_scripts: int = 20
    shell_calls: int = 60
    mixed_calls: int = 150
    idle_secs: float = 4.0  # twice the interval at which subscribed files are looked at

    def for_subject(self, subject: Subject) -> Counts:
        """The SDKs need a second to start and a millisecond for a ping: fewer of each give the same medians."""
        if subject.name == FRESH:  # 30 ms for each
            return replace(self, python_calls=min(self.python_calls, 40), python_calls_in_flight=40)
        if not subject.is_peer:
            return self
        return replace(
            self,
            starts=1,
            calls_one_by_one=min(self.calls_one_by_one, 100),
            calls_in_flight=min(self.calls_in_flight, 400),
            pings_one_by_one=min(self.pings_one_by_one, 300),
            pings_pipelined=min(self.pings_pipelined, 1000),
            lists=min(self.lists, 5),
            reads=min(self.reads, 100),
            large_reads=min(self.large_reads, 5),
        )


FULL = Counts()
QUICK = Counts(
    starts=1,
    calls_one_by_one=20,
    calls_in_flight=40,
    calls_pipelined=40,
    calls_before_rss=80,
    pings_one_by_one=50,
    pings_pipelined=500,
    lists=3,
    outputs=1,
    cancels=2,
    changes=1,
    reads=10,
    large_reads=2,
    python_calls=5,
    python_calls_in_flight=20,
    python_scripts=3,
    shell_calls=3,
    mixed_calls=20,
    idle_secs=0.1,
)


class Place(Protocol):
    """What the rounds need to know of a stand."""

    @property
    def name(self) -> str: ...

    def close(self) -> None: ...


AnyPlace = TypeVar("AnyPlace", bound=Place)


class Stand:
    """One subject in one round, with a server that several workloads share."""

    def __init__(self, subject: Subject, *, counts: Counts, scratch: Path) -> None:
        self.subject = subject
        self.counts = counts.for_subject(subject)
        self._scratch = scratch
        self._shared: Session | None = None

    @property
    def name(self) -> str:
        return self.subject.name

    def start(self, project: str, more_env: Mapping[str, str] | None = None) -> Session:
        return self.subject.start(self.folder(project), scratch=self._scratch, more_env=more_env)

    def folder(self, project: str) -> Path:
        return self._scratch / project

    def shared(self) -> Session:
        if self._shared is None:
            self._shared = self.start("calls")
            greet(self._shared)
            list_tools(self._shared)
            settle(self._shared)
        return self._shared

    def close(self) -> None:
        if self._shared is not None:
            self._shared.close()
            self._shared = None


@dataclass(frozen=True)
class Workload(Generic[AnyPlace]):
    title: str
    metrics: tuple[str, ...]
    measure: Callable[[AnyPlace], Values]
    subjects: tuple[str, ...] = (*FLOORS, OURS, *SDKS)
    project: str = "calls"  # the folder that has to be there


def greet(session: Session) -> None:
    session.initialize()
    session.confirm()


def settle(session: Session) -> None:
    """Until the server is up: a first list may come earlier."""
    result_of(session.ask(session.encode("ping")))


def list_tools(session: Session) -> int:
    """Ask for all tools, page by page; how many there were."""
    answer = session.ask(session.encode("tools/list"))
    count = answer.count(b'"inputSchema"')
    while b'"nextCursor"' in answer:
        answer = session.ask(session.encode("tools/list", {"cursor": result_of(answer)["nextCursor"]}))
        count += answer.count(b'"inputSchema"')
    return count


def since_ms(start: float) -> float:
    return (time.perf_counter() - start) * 1000
