"""The same functions as tools of FastMCP and of ours: equal schemas and results, apart from what `docs/from-fastmcp.md`
lists. FastMCP, with pydantic inside, is the oracle.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.support.client import Speak
from tests.support.prerequisites import require_fastmcp
from tests.support.project import ProjectBuilder

PYTHON = require_fastmcp()
Json = dict[str, Any]

# Prints what FastMCP lists, and what it answers to each call.
ORACLE = """
import asyncio, json, sys
from fastmcp import Client, FastMCP
mcp = FastMCP("oracle")
tool = mcp.tool
source, calls = json.load(sys.stdin)
exec(source)

async def ask():
    found = {}
    async with Client(mcp) as client:
        for listed in await client.list_tools():
            results = [await client.call_tool_mcp(listed.name, arguments) for arguments in calls[listed.name]]
            shown = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in results]
            found[listed.name] = {**listed.model_dump(mode="json", by_alias=True), "results": shown}
    return found

print(json.dumps(asyncio.run(ask())))
"""
TYPES = '''
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union
from uuid import UUID
from pydantic import BaseModel, ConfigDict, EmailStr, Field, HttpUrl, NonNegativeInt
from typing_extensions import TypedDict
class Size(str, Enum):
    SMALL = "s"
    LARGE = "l"
class Rank(IntEnum):
    LOW = 1
    HIGH = 9
class Place(BaseModel):
    """Where something is"""
    city: str = Field(min_length=2, examples=["Bern"])
    postcode: str = Field(alias="zip", pattern=r"^[0-9]{4}$", description="Four digits")
class Thing(BaseModel):
    model_config = ConfigDict(extra="forbid")
    label: Annotated[str, Field(max_length=12)]
    count: int = Field(default=1, ge=0, lt=100)
    price: Decimal = Field(Decimal("9.90"), gt=0)
    size: Size = Size.SMALL
    place: Optional[Place] = None
    tags: list[str] = Field(default_factory=list, max_length=3)
class Gift(Thing):
    to: list[Place]
    due: date
    after: Optional[timedelta] = None
class Row(TypedDict):
    key: str
    value: float
@dataclass
class Point:
    x: float
    y: float = 0.0
'''
# The functions, each with the arguments of its calls.
CALLS: dict[str, list[Json]] = {
    "plain(a: int, b: float = 1.5, c: str = 'x', d: bool = False) -> int: return a + len(c)": [{"a": 2}, {"a": "7"}],
    "text(a: str) -> str: return a.upper()": [{"a": "x"}, {}],
    "no_annotation(a: str): return {'a': a}": [{"a": "x"}],
    "nothing() -> None: return None": [{}],
    "keyword_only(*, a: int, b: Optional[str] = None) -> list[int | str | None]: return [a, b]": [
        {"a": 1},
        {"a": 1, "b": None},
    ],
    "constrained(n: Annotated[int, Field(gt=0, le=10, multiple_of=2, description='How many')] = 4) "
    "-> float: return n / 4": [{}, {"n": 8}, {"n": 3}, {"n": 12}],
    "field_default(who: str = Field(min_length=2, title='Who'), n: int = Field(5, ge=1)) "
    "-> dict[str, int]: return {who: n}": [{"who": "Ada"}, {"who": "Ada", "n": 0}, {"n": 2}],
    "choices(a: Literal['x', 'y'], b: Literal[3, 4] = 3) -> Literal['x', 'y']: return a": [{"a": "y"}, {"a": "z"}],
    "enums(size: Size, rank: Rank = Rank.LOW) -> Size: return size": [{"size": "l", "rank": 9}, {"size": "m"}],
    "optional(a: Optional[int] = None, b: int | None = 5) -> int | None: return a": [{}, {"a": 3, "b": None}],
    "union(a: Union[int, str], b: list[int] | str = 'x') -> int | str: return a": [{"a": 1}, {"a": "x", "b": [1]}],
    "number(a: float | int) -> float: return a / 2": [{"a": 3}],
    "containers(a: list[list[int]], b: dict[str, float], c: dict[int, str]) "
    "-> dict[str, list[int]]: return {'all': [n for row in a for n in row] + list(c)}": [
        {"a": [[1], [2]], "b": {}, "c": {"5": "x"}}
    ],
    "sets(a: set[int], b: Optional[frozenset[str]] = None) -> set[int]: return a": [{"a": [2, 1]}],
    "tuples(a: tuple[int, str], b: tuple[int, ...] = ()) -> tuple[str, int]: return a[1], a[0]": [
        {"a": [1, "x"], "b": [1, 2]},
        {"a": [1]},
    ],
    "times(a: datetime, b: date, c: time) -> list[datetime]: return [a]": [
        {"a": "2020-01-02T03:04:05Z", "b": "2020-01-02", "c": "03:04:05"},
        {"a": "then", "b": "", "c": ""},
    ],
    "duration(a: timedelta) -> timedelta: return 2 * a": [{"a": "P1DT1H30M"}, {"a": "PT0.25S"}, {"a": "soon"}],
    "identifiers(a: UUID) -> UUID: return a": [{"a": "12345678-1234-5678-1234-567812345678"}, {"a": "x"}],
    "money(a: Decimal, b: Decimal = Decimal('1.10')) -> Decimal: return a * b": [{"a": "0.10"}, {"a": 3}, {"a": "x"}],
    "raw(a: bytes) -> bytes: return a + b'!'": [{"a": "grüezi"}],
    "path(a: Path) -> Path: return a / 'b'": [{"a": "x"}],
    "web(a: HttpUrl, b: NonNegativeInt = 0) -> bool: return a.host == 'x.ch'": [{"a": "https://x.ch"}, {"a": "no"}],
    "model(thing: Thing) -> Thing: return thing": [
        {"thing": {"label": "cup", "place": {"city": "Bern", "zip": "3000"}}},
        {"thing": {"label": "cup", "count": 100}},
        {"thing": {"label": "cup", "colour": "red"}},
        {"thing": {"label": "cup", "price": "12.345"}},
        {"thing": {"count": 1}},
    ],
    "models(gifts: list[Gift], by_name: dict[str, Place] = {}) -> list[Gift]: return gifts": [
        {"gifts": [{"label": "a", "due": "2030-01-01", "to": [{"city": "Bern", "zip": "3000"}]}]},
        {"gifts": [{"label": "a", "due": "2030-01-01", "to": [{"city": "B", "zip": "3000"}]}]},
    ],
    "model_or_null(place: Optional[Place] = None) -> Place | None: return place": [
        {},
        {"place": None},
        {"place": {"city": "Bern", "zip": "3000"}},
    ],
    "model_union(a: Place | Thing) -> str: return type(a).__name__": [
        {"a": {"label": "x"}},
        {"a": {"city": "Bern", "zip": "3000"}},
    ],
    "rows(rows: list[Row]) -> Row: return rows[0]": [{"rows": [{"key": "a", "value": 1}]}, {"rows": [{"key": "a"}]}],
    "point(p: Point) -> Point: return p": [{"p": {"x": 1}}, {"p": {}}],
    "open(a: dict, b: Any = None) -> dict: return a": [{"a": {"x": 1}}],
}
FUNCTIONS = {function.partition("(")[0]: calls for function, calls in CALLS.items()}

POINT: Json = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}
# What differs on purpose, apart from `same`: by function and member, what is ours. The page gives the reasons.
DIFFERENT: dict[tuple[str, str], Any] = {
    **{(name, "outputSchema"): None for name in ("text", "path", "model_union", "open", "nothing")},
    **{(name, "structuredContent"): None for name in ("text", "path", "model_union", "nothing")},
    ("number", "inputSchema"): {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
    ("point", "outputSchema"): {**POINT, "required": ["x", "y"]},
}


def source_of(decorator: str) -> str:
    return "\n".join([decorator, TYPES, *(f"@tool\ndef {function}" for function in CALLS)])


def same(schema: Any, *, is_input: bool) -> Any:
    """A schema without what only says the same in other words, or is left out on purpose."""
    if isinstance(schema, list):
        return [same(each, is_input=is_input) for each in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: value for key, value in schema.items() if key not in ("title", "x-fastmcp-wrap-result")}
    if isinstance(schema.get("additionalProperties"), bool):
        del schema["additionalProperties"]  # a dataclass and the arguments of a function are closed here; results open
    if "prefixItems" in schema:
        schema.pop("items", None)  # for clients that do not know prefixItems
    if "default" in schema and schema["default"] is None:
        del schema["default"]
        branches = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
        if is_input and len(branches) == 1:  # an argument that may be left out need not be null
            schema = {**{key: value for key, value in schema.items() if key != "anyOf"}, **branches[0]}
    if str(schema.get("pattern", "")).startswith("^(?!^[-+.]"):
        del schema["pattern"]  # of a Decimal, in some versions of pydantic
    return {
        key: value if key in ("default", "examples") else same(value, is_input=is_input)
        for key, value in schema.items()
    }


@pytest.fixture(scope="module")
def oracle() -> dict[str, Json]:
    given = json.dumps([source_of(""), FUNCTIONS])
    done = subprocess.run([PYTHON, "-c", ORACLE], input=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Json] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    head = f"#!{PYTHON}\n# mcp:\n#   warm: [pydantic]\nfrom mcp_tool import tool"
    shared_project.tool("signatures.py", source_of(head))


def test_the_same_functions_are_listed_with_the_same_schemas(oracle: dict[str, Json], shared_speak: Speak) -> None:
    listed = shared_speak().tools()

    assert listed.keys() == oracle.keys() == FUNCTIONS.keys()
    for name, tool in listed.items():
        for key in ("inputSchema", "outputSchema"):
            expected, is_input = DIFFERENT.get((name, key), oracle[name].get(key)), key == "inputSchema"
            assert same(tool.get(key), is_input=is_input) == same(expected, is_input=is_input), (name, key)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_calls_give_the_same_results(oracle: dict[str, Json], shared_speak: Speak, name: str) -> None:
    client = shared_speak()
    for arguments, expected in zip(FUNCTIONS[name], oracle[name]["results"], strict=True):
        result = client.call_tool(name, arguments)

        assert result["isError"] is expected["isError"], (result, expected)
        if expected["isError"]:
            continue
        structured = DIFFERENT.get((name, "structuredContent"), expected.get("structuredContent"))
        assert result.get("structuredContent") == structured
        if expected["content"]:  # FastMCP has no text for null
            assert value_of(result) == value_of(expected)


def value_of(result: Json) -> Any:
    """The text without the spaces that JSON need not have."""
    return [block["text"].replace(", ", ",").replace(": ", ":") for block in result["content"]]
