"""What is asked over HTTP: each request of each era, over each number of connections. Pure data.

In a session there is no `server/discover`, so `ping` stands in its place: both are answered without any work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from over_http import messages
from over_http.messages import SESSION, STATELESS, Request

IN_FLIGHT = 16
CONNECTIONS = (1, IN_FLIGHT, 256)
TOOL_COUNT = 100
TOOL = "tool0042"


@dataclass(frozen=True)
class Cell:
    """One method in one era over so many connections. `wanted` has to be in each answer."""

    name: str
    method: str
    era: str
    connections: int
    wanted: str
    params: Mapping[str, Any]

    @property
    def key(self) -> str:
        return f"http_{self.name}_{self.era}_{self.connections}"

    @property
    def title(self) -> str:
        plural = "connection" if self.connections == 1 else "connections"
        return f"{self.method}, {self.era}, {self.connections} {plural}"

    @property
    def p50_key(self) -> str:
        return f"{self.key}_p50"

    @property
    def p99_key(self) -> str:
        return f"{self.key}_p99"

    @property
    def cpu_key(self) -> str:
        return f"{self.key}_cpu"

    @property
    def tells_cpu(self) -> bool:
        """Once for each request is enough: what a request costs hardly depends on how many connections there are."""
        return self.connections == IN_FLIGHT

    @property
    def runs_script(self) -> bool:
        return self.name == "call"

    @property
    def has_stdio_twin(self) -> bool:
        """Whether our server does the same over stdio, to compare with."""
        return self.runs_script and self.connections == IN_FLIGHT

    def requests(self, session_ids: list[str]) -> list[Request]:
        """A request for each connection, in a session of its own; or one for all."""
        if self.era == STATELESS:
            return [messages.stateless(self.method, self.params)]
        return [messages.in_session(session_id, self.method, self.params) for session_id in session_ids]


_CALL = {"name": TOOL, "arguments": {}}
_LAST_TOOL = f"tool{TOOL_COUNT - 1:04}"
_ASKED: tuple[tuple[str, str, str, str, Mapping[str, Any]], ...] = (
    ("ping", "ping", SESSION, '"result"', {}),
    ("discover", "server/discover", STATELESS, "supportedVersions", {}),
    ("list", "tools/list", SESSION, _LAST_TOOL, {}),
    ("list", "tools/list", STATELESS, _LAST_TOOL, {}),
    ("call", "tools/call", SESSION, '"ok', _CALL),
    ("call", "tools/call", STATELESS, '"ok', _CALL),
)
CELLS = tuple(
    Cell(name, method, era, connections, wanted, params)
    for name, method, era, wanted, params in _ASKED
    for connections in CONNECTIONS
)
