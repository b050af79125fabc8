"""However a tool is described, clients see the same tool."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.support.client import Client
from tests.support.project import ProjectBuilder

FIELDS = {
    "title": "Greet",
    "description": "Greet somebody.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who is greeted"},
            "times": {"type": "integer", "description": "How often", "default": 1},
            "tone": {"type": "string", "description": "In which tone", "enum": ["warm", "cool"], "default": "warm"},
            "share": {"type": "number", "description": "How much"},
            "dry-run": {"type": "boolean", "description": "Whether nothing is done"},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Words"},
            "filter": {"description": "Anything"},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
    "timeoutSecs": 5,
}

YAML = """\
# mcp:
#   title: Greet
#   description: Greet somebody.
#   inputSchema:
#     type: object
#     properties:
#       name: {type: string, description: Who is greeted}
#       times: {type: integer, description: How often, default: 1}
#       tone:
#         type: string
#         description: In which tone
#         enum: [warm, cool]
#         default: warm
#       share: {type: number, description: How much}
#       dry-run: {type: boolean, description: Whether nothing is done}
#       tags: {type: array, items: {type: string}, description: Words}
#       filter: {description: Anything}
#     required: [name]
#     additionalProperties: false
#   outputSchema: {type: object, properties: {text: {type: string}}}
#   annotations: {readOnlyHint: true}
#   timeoutSecs: 5
"""

ARGUMENTS = """\
# Greet somebody.
# @arg name!                 Who is greeted
# @arg times=1 int           How often
# @arg tone[warm|cool]=warm  In which tone
# @arg share number          How much
# @arg dry-run bool          Whether nothing is done
# @arg tags list             Words
# @arg filter json           Anything
# mcp:
#   title: Greet
#   outputSchema: {type: object, properties: {text: {type: string}}}
#   annotations: {readOnlyHint: true}
#   timeoutSecs: 5
"""

SCRIPT = """echo '{"text": "hi"}'\n"""


def test_every_form_gives_the_same_tool(project: ProjectBuilder, speak: Callable[..., Client]) -> None:
    project.tool("by-file", SCRIPT, meta=FIELDS)
    project.tool("by-line", f"# mcp: {json.dumps(FIELDS)}\n{SCRIPT}")
    project.tool("by-yaml", YAML + SCRIPT)
    project.tool("by-arguments", ARGUMENTS + SCRIPT)
    client = speak()

    tools = client.tools()

    listed = {name: {**tool, "name": ""} for name, tool in tools.items()}
    assert listed["by-file"]["inputSchema"] == FIELDS["inputSchema"]
    assert listed == dict.fromkeys(("by-arguments", "by-file", "by-line", "by-yaml"), listed["by-file"])
    for name in tools:
        assert client.call_tool(name, {"name": "Ada"})["structuredContent"] == {"text": "hi"}
        assert client.call_tool(name, {"name": "Ada", "other": 1})["isError"]
