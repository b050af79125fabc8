"""Programs that have to be the same, forked or started."""

from __future__ import annotations

from tests.running.warm.programs import ends, names, output, processes, surroundings
from tests.running.warm.programs.differences import DIFFERENT_ON_PURPOSE
from tests.running.warm.programs.program import Program, Table

__all__ = ["DIFFERENT_ON_PURPOSE", "PROGRAMS"]


def _whole(*tables: Table) -> dict[str, Program]:
    return {
        name: program if isinstance(program, Program) else Program(program)
        for table in tables
        for name, program in table.items()
    }


PROGRAMS = _whole(ends.PROGRAMS, output.PROGRAMS, processes.PROGRAMS, names.PROGRAMS, surroundings.PROGRAMS)
