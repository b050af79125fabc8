"""The scripts that every client is asked by, the same for all, and what each client answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.project import ProjectBuilder

SDK = """
import json, os, sys
sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool
"""
SURVEY = [True, "M", "b", ["salt", "pepper"]]
POEM = "a poem about rain"
ROOMS = ["file:///srv/one", "file:///srv/two"]


def build(root: Path) -> ProjectBuilder:
    project = ProjectBuilder(root)
    project.python_tool(
        "survey",
        f"""{SDK}
print(json.dumps([
    mcp_tool.confirm("Sure?"),
    mcp_tool.choice("Size?", ["S", "M"]),
    mcp_tool.titled_choice("Colour?", {{"r": "Red", "b": "Blue"}}),
    mcp_tool.multi_choice("Spices?", ["salt", "pepper"]),
]), end="")
""",
        needs=["elicitation.form"],
    )
    project.python_tool("poet", f"{SDK}\nprint(mcp_tool.sample('Write about rain', 50).text, end='')")
    project.python_tool(
        "rooms",
        f"""{SDK}
replies = mcp_tool.ask({{"rooms": mcp_tool.roots_request()}})
print(json.dumps([root["uri"] for root in replies["rooms"].result_or_raise()["roots"]]), end="")
""",
        needs=["roots"],
    )
    project.python_tool(
        "order",
        f"""{SDK}
with open(os.path.join(os.environ["MCPGREEN_PROJECT_ROOT"], "orders"), "a") as file:
    file.write("ordered\\n")
print("kept" if mcp_tool.confirm("Keep the order?") else "cancelled", end="")
""",
    )
    return project


def answer_to(schema: dict[str, Any]) -> dict[str, Any]:
    """What each client says to a form; the drivers in TypeScript do the same."""
    return {name: _value(field) for name, field in schema["properties"].items()}


def _value(field: dict[str, Any]) -> Any:
    if field["type"] == "boolean":
        return True
    if field["type"] == "array":
        return field["items"]["enum"]
    return field["enum"][-1] if "enum" in field else field["oneOf"][-1]["const"]
