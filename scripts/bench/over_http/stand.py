"""The place of one subject: its server, which lives through all rounds, and how much it has to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bars import STDIO
from client import Session
from stand import greet, list_tools, settle
from subjects import Subject

from over_http import clients
from over_http.load import Generator
from over_http.servers import HttpSubject, Server

PROJECT = "tools-100"


@dataclass(frozen=True)
class HttpCounts:
    """How long each load takes at least, longer if there are scripts in it; and how many sessions and listens are
    opened for their memory."""

    secs: float = 0.3
    call_secs: float = 0.8
    sessions: int = 1000
    listens: int = 500
    calls_over_stdio: int = 1000


FULL = HttpCounts()
QUICK = HttpCounts(secs=0.05, call_secs=0.05, sessions=40, listens=20, calls_over_stdio=40)


class HttpStand:
    """One subject over HTTP. Sessions are made when a load needs them, and used by all that follow."""

    def __init__(self, subject: HttpSubject, *, generator: Generator, counts: HttpCounts, scratch: Path) -> None:
        self.name = subject.name
        self.counts = counts
        self.generator = generator
        self.slow_cells: set[str] = set()
        self._subject = subject
        self._scratch = scratch
        self._shared: Server | None = None
        self._session_ids: list[str] = []

    def start(self, *, is_for_listens: bool = False) -> Server:
        return self._subject.start(self._scratch / PROJECT, scratch=self._scratch, is_for_listens=is_for_listens)

    def shared(self) -> Server:
        if self._shared is None:
            self._shared = self.start()
        return self._shared

    def session_ids(self, count: int) -> list[str]:
        port = self.shared().port
        while len(self._session_ids) < count:
            self._session_ids.append(clients.new_session(port))
        return self._session_ids[:count]

    def close(self) -> None:
        self._session_ids.clear()
        if self._shared is not None:
            self._shared.close()
            self._shared = None


class PipeStand:
    """Our server over stdio with the same project, to compare with ourselves."""

    name = STDIO

    def __init__(self, subject: Subject, *, counts: HttpCounts, scratch: Path) -> None:
        self.counts = counts
        self._subject = subject
        self._scratch = scratch
        self._shared: Session | None = None

    def shared(self) -> Session:
        if self._shared is None:
            self._shared = self._subject.start(self._scratch / PROJECT, scratch=self._scratch)
            greet(self._shared)
            list_tools(self._shared)
            settle(self._shared)
        return self._shared

    def close(self) -> None:
        if self._shared is not None:
            self._shared.close()
            self._shared = None
