"""How long a journey takes."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

import mcp_tool

SPEED_KM_PER_HOUR = {"foot": 5, "bike": 18, "train": 120}


class Journey(TypedDict):
    minutes: int
    calm: bool


@mcp_tool.tool(read_only=True)
def travel(
    km: Annotated[float, mcp_tool.Arg("How far it is", minimum=0.1)],
    by: Literal["foot", "bike", "train"] = "bike",
) -> Journey:
    """Say how long a journey takes.

    Args:
        by: How to travel
    """
    if by == "foot" and km > 50:
        raise mcp_tool.ToolError("Nobody walks that far. Take the train.")
    return {"minutes": round(60 * km / SPEED_KM_PER_HOUR[by]), "calm": by != "train"}
