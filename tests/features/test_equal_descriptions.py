"""However a tool is described, clients see the same tool.

In five forms: a file beside the script, a comment in one line, a comment in YAML, the `@arg` comments of a shell script
and the signature of a Python function.
"""

from __future__ import annotations

import json
import textwrap
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.client import Speak
from tests.support.project import ProjectBuilder

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}


class Tool(NamedTuple):
    """One tool: what clients see of it, as properties, required names and other fields; the lines with `@arg`, and the
    Python function after `def `, with what its decorator says. `wrong` are arguments that are refused."""

    properties: dict[str, Any]
    required: list[str]
    comment: str
    function: str
    wrong: dict[str, Any]
    options: str = ""
    others: dict[str, Any] = {}

    @property
    def fields(self) -> dict[str, Any]:
        schema = {"type": "object", "properties": self.properties, "required": self.required}
        if not self.required:
            del schema["required"]
        schema["additionalProperties"] = False
        return {"description": "Does something.", "inputSchema": schema, **self.others}


TOOLS = {
    "strings": Tool(
        {
            "name": {**STRING, "description": "Who is greeted"},
            "greeting": {**STRING, "description": "How they are greeted", "default": "Good morning"},
            "ending": {**STRING, "default": ""},
        },
        ["name"],
        """
        # @arg name!                    Who is greeted
        # @arg greeting="Good morning"  How they are greeted
        # @arg ending=
        """,
        """
        f(name: str, greeting: str = "Good morning", ending: str = ""):
            '''Does something.

            Args:
                name: Who is greeted
                greeting: How they are greeted
            '''
        """,
        {"name": 1.5},
    ),
    "integers": Tool(
        {
            "count": {**INTEGER, "description": "How many there are, with a text that goes on in another line"},
            "step": {**INTEGER, "default": -3},
            "zero": {**INTEGER, "default": 0},
        },
        ["count"],
        """
        # @arg count! int    How many there are,
        #                    with a text that goes on in another line
        # @arg step=-3 int
        # @arg zero=0 integer
        """,
        """
        f(count: int, step: int = -3, zero: int = 0):
            '''Does something.

            :param count: How many there are,
                with a text that goes on in another line
            '''
        """,
        {"count": 1.5},
    ),
    "numbers": Tool(
        {
            "share": {**NUMBER, "description": "How much"},
            "factor": {**NUMBER, "description": "Times what", "default": 0.5},
            "rate": {**NUMBER, "default": 1e-3},
        },
        ["share"],
        """
        # @arg share! number      How much
        # @arg factor=0.5 number  Times what
        # @arg rate=1e-3 number
        """,
        """
        f(share: float, factor: float = 0.5, rate: float = 1e-3):
            '''Does something.

            Parameters
            ----------
            share : float
                How much
            factor : float, optional
                Times what
            '''
        """,
        {"share": "a lot"},
    ),
    "booleans": Tool(
        {
            "sure": {**BOOLEAN, "description": "Whether you mean it"},
            "quiet": {**BOOLEAN, "default": False},
            "deep": {**BOOLEAN, "default": True},
        },
        ["sure"],
        """
        # @arg sure! bool          Whether you mean it
        # @arg quiet=false boolean
        # @arg deep=true bool
        """,
        """
        f(sure: Annotated[bool, "Whether you mean it"], quiet: bool = False, deep: bool = True):
            "Does something."
        """,
        {"sure": "perhaps"},
    ),
    "choices": Tool(
        {
            "tone": {**STRING, "enum": ["warm", "cool"], "description": "In which tone"},
            "size": {**STRING, "enum": ["small", "very large"], "default": "small"},
            "level": {**INTEGER, "enum": [1, 2, 3], "default": 2},
        },
        ["tone"],
        """
        # @arg tone![warm|cool]               In which tone
        # @arg size[small|very large]=small
        # @arg level[1|2|3]=2 int
        """,
        """
        f(
            tone: Annotated[Literal["warm", "cool"], mcp_tool.Arg("In which tone")],
            size: Size = Size.SMALL,
            level: Literal[1, 2, 3] = 2,
        ):
            "Does something."
        """,
        {"tone": "hot"},
    ),
    "lists": Tool(
        {
            "words": {"type": "array", "items": STRING, "description": "Words"},
            "tags": {"type": "array", "items": STRING, "default": ["a", "b"]},
            "none": {"type": "array", "items": STRING, "default": []},
            "days": {"type": "array", "items": {**STRING, "enum": ["mon", "tue"]}, "default": ["mon"]},
        },
        ["words"],
        """
        # @arg words! list            Words
        # @arg tags=a,b list
        # @arg none= list
        # @arg days[mon|tue]=mon list
        """,
        """
        f(
            words: list[str],
            tags: Sequence[str] = ("a", "b"),
            none: list[str] = [],
            days: list[Literal["mon", "tue"]] = ["mon"],
        ):
            '''Does something.

            Args:
                words: Words
            '''
        """,
        {"words": [1.5]},
    ),
    "anything": Tool(
        {
            "filter": {"description": "What is looked for"},
            "where": {"default": {"a": [1, None]}},
            "x": {"default": None},
        },
        ["filter"],
        """
        # @arg filter! json            What is looked for
        # @arg where={"a":[1,null]} json
        # @arg x=null json
        """,
        """
        f(filter: Any, where: Any = {"a": [1, None]}, x: Any = None):
            '''Does something.

            Args:
                filter: What is looked for
            '''
        """,
        {},
    ),
    "optional": Tool(
        {"text": STRING, "count": {**INTEGER, "description": "How many"}, "tags": {"type": "array", "items": STRING}},
        [],
        """
        # @arg text
        # @arg count int  How many
        # @arg tags list
        """,
        """
        f(text: str = ..., count: Annotated[int, "How many"] = ..., tags: list[str] = ...):
            "Does something."
        """,
        {"count": "many"},
    ),
    "hints": Tool(
        {"text": STRING},
        ["text"],
        """
        # @arg text!
        """,
        """
        f(text: str) -> dict[str, int]:
            "Does something."
        """,
        {"text": "a", "other": 1},
        'title="Do it", read_only=False, destructive=True, idempotent=True, open_world=False',
        {
            "title": "Do it",
            "annotations": {
                "readOnlyHint": False,
                "destructiveHint": True,
                "idempotentHint": True,
                "openWorldHint": False,
            },
            "outputSchema": {"type": "object", "additionalProperties": INTEGER},
        },
    ),
}
FORMS = ("file", "line", "yaml", "arguments", "signature")
HEAD = """\
from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, Literal

import mcp_tool


class Size(Enum):
    SMALL = "small"
    LARGE = "very large"


"""


def comment_of(fields: dict[str, Any]) -> str:
    text = f"mcp:\n{textwrap.indent(yaml.safe_dump(fields, sort_keys=False), '  ')}"
    return textwrap.indent(text, "# ")


@pytest.fixture(scope="module")
def listed(shared_project: ProjectBuilder, shared_speak: Speak) -> dict[str, dict[str, Any]]:
    for name, tool in TOOLS.items():
        shared_project.tool(f"{name}-file", "echo hi\n", meta=tool.fields)
        shared_project.tool(f"{name}-line", f"# mcp: {json.dumps(tool.fields)}\necho hi\n")
        shared_project.tool(f"{name}-yaml", comment_of(tool.fields) + "echo hi\n")
        about = f"# Does something.{textwrap.dedent(tool.comment)}{comment_of(tool.others) if tool.others else ''}"
        shared_project.tool(f"{name}-arguments", about + "echo hi\n")
        mark = f"@mcp_tool.tool({tool.options})" if tool.options else "@mcp_tool.tool"
        shared_project.python_tool(f"{name}-signature", f"{HEAD}{mark}\ndef {textwrap.dedent(tool.function).lstrip()}")
    return shared_speak().tools()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_is_listed_alike_in_every_form(name: str, form: str, listed: dict[str, dict[str, Any]]) -> None:
    assert listed[f"{name}-{form}"] == {"name": f"{name}-{form}", **TOOLS[name].fields}


@pytest.mark.parametrize("name", TOOLS)
def test_wrong_arguments_are_refused_alike_in_every_form(
    name: str, listed: dict[str, dict[str, Any]], shared_speak: Speak
) -> None:
    def refusal(form: str) -> str:
        result = shared_speak().call_tool(f"{name}-{form}", TOOLS[name].wrong)
        assert result["isError"]
        return json.dumps(result).replace(f"{name}-{form}", "")

    assert {refusal(form) for form in FORMS} == {refusal(FORMS[0])}
