"""What the source of a function tool says, by its signature: a table of parameters, of results, and of whole files."""

from __future__ import annotations

import ast
import gc
import sys
from typing import Any

import pytest

from mcpgreen.catalog.functions import docstrings
from mcpgreen.catalog.functions.reading import MAX_BYTES, FunctionTool, function_tools

Json = dict[str, Any]


HEAD = """\
import collections, dataclasses, datetime, decimal, enum, pathlib, typing, uuid
import collections.abc as abc
import typing as t
from dataclasses import dataclass, field, InitVar
from enum import Enum, IntEnum, auto
from pathlib import Path
from typing import (Annotated, Any, ClassVar, Dict, Final, List, Literal, Mapping, NamedTuple, NewType, NotRequired,
                    Optional, Required, Sequence, Set, Tuple, TypedDict, Union)
import mcp_tool
from mcp_tool import Arg

LIMIT = 60 * 60
NOTHING = None
Names = list[str]
UserId = NewType("UserId", int)

class Color(Enum):
    RED = "red"
    BLUE = "blue"

class Level(IntEnum):
    LOW = 1
    HIGH = auto()

class Odd(Enum):
    A = (1, 2)
    B = None

class Computed(Enum):
    A = "a".upper()

class Movie(TypedDict, total=False):
    title: Required[str]
    year: int

class Sequel(Movie):
    number: int
    note: NotRequired[str]

@dataclass
class Point:
    \"\"\"A place.

    Attributes:
        x: To the right
    \"\"\"
    x: float
    y: float = 0.5
    tags: list[str] = field(default_factory=list)
    kind: ClassVar[str] = "point"
    norm: float = field(init=False, default=0.0)

@dataclasses.dataclass(frozen=True)
class Tree:
    label: str
    inner: "list[Tree]" = field(default_factory=list)

@dataclass
class Wish:
    size: int | None = None

class Pair(NamedTuple):
    left: int
    right: int = 0

class Plain:
    pass

"""

STRING: Json = {"type": "string"}
INTEGER: Json = {"type": "integer"}
NUMBER: Json = {"type": "number"}
NULL: Json = {"type": "null"}
POINT: Json = {
    "type": "object",
    "description": "A place.",
    "properties": {
        "x": {**NUMBER, "description": "To the right"},
        "y": {**NUMBER, "default": 0.5},
        "tags": {"type": "array", "items": STRING, "default": []},
    },
    "required": ["x"],
    "additionalProperties": False,
}
TREE: Json = {
    "type": "object",
    "properties": {"label": STRING, "inner": {"type": "array", "items": {"type": "object"}, "default": []}},
    "required": ["label"],
    "additionalProperties": False,
}
MOVIE: Json = {"type": "object", "properties": {"title": STRING, "year": INTEGER}, "required": ["title"]}
SEQUEL: Json = {
    "type": "object",
    "properties": {"title": STRING, "year": INTEGER, "number": INTEGER, "note": STRING},
    "required": ["title", "number"],
}
PAIR: Json = {
    "type": "object",
    "properties": {"left": INTEGER, "right": {**INTEGER, "default": 0}},
    "required": ["left"],
    "additionalProperties": False,
}

PARAMETERS = {
    "a: str": STRING,
    "a: int": INTEGER,
    "a: float": NUMBER,
    "a: bool = False": {"type": "boolean", "default": False},
    "a: None": NULL,
    "a: Any": {},
    "a: list": {"type": "array", "items": {}},
    "a: list[int]": {"type": "array", "items": INTEGER},
    "a: t.List[str]": {"type": "array", "items": STRING},
    "a: abc.Sequence[float]": {"type": "array", "items": NUMBER},
    "a: Sequence[Sequence[int]]": {"type": "array", "items": {"type": "array", "items": INTEGER}},
    "a: Names": {"type": "array", "items": STRING},
    "a: UserId": INTEGER,
    "a: tuple[int, ...]": {"type": "array", "items": INTEGER},
    "a: tuple[int, int]": {"type": "array", "items": INTEGER, "minItems": 2, "maxItems": 2},
    "a: Tuple[int, str] = (1, 'x')": {
        "type": "array",
        "prefixItems": [INTEGER, STRING],
        "items": {"anyOf": [INTEGER, STRING]},
        "minItems": 2,
        "maxItems": 2,
        "default": [1, "x"],
    },
    "a: set[str]": {"type": "array", "items": STRING, "uniqueItems": True},
    "a: frozenset[int] = frozenset()": {"type": "array", "items": INTEGER, "uniqueItems": True},
    "a: dict": {"type": "object"},
    "a: Dict[str, int]": {"type": "object", "additionalProperties": INTEGER},
    "a: Mapping[int, list[str]]": {"type": "object", "additionalProperties": {"type": "array", "items": STRING}},
    "a: dict[Color, bool]": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "a: Literal['x', 'y']": {"type": "string", "enum": ["x", "y"]},
    "a: Literal[1, 2] = 1": {"type": "integer", "enum": [1, 2], "default": 1},
    "a: Literal['x', None] = None": {"type": "string", "enum": ["x"]},
    "a: Color = Color.RED": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    "a: Level = Level.HIGH": {"type": "integer", "enum": [1, 2], "default": 2},
    "a: Odd": {"type": "string", "enum": ["A", "B"]},
    "a: Optional[int] = None": INTEGER,
    "a: int | None": {"anyOf": [INTEGER, NULL]},
    "a: int | None = 5": {"anyOf": [INTEGER, NULL], "default": 5},
    "a: int | None = NOTHING": INTEGER,
    "a: int = None": INTEGER,
    "a: int | str | None = None": {"anyOf": [INTEGER, STRING]},
    "a: Annotated[int | None, Arg('Often', minimum=1)] = None": {**INTEGER, "description": "Often", "minimum": 1},
    "a: Annotated[int, 'Often'] | None = None": {**INTEGER, "description": "Often"},
    "a: list[int | None] | None = None": {"type": "array", "items": {"anyOf": [INTEGER, NULL]}},
    "a: Wish": {"type": "object", "properties": {"size": INTEGER}, "additionalProperties": False},
    "a: Union[int, str]": {"anyOf": [INTEGER, STRING]},
    "a: int | str | None": {"anyOf": [INTEGER, STRING, NULL]},
    "a: Union[int, Union[str, int]]": {"anyOf": [INTEGER, STRING]},
    "a: int | float": NUMBER,
    "a: 'int | None'": {"anyOf": [INTEGER, NULL]},
    "a: list['Pair']": {"type": "array", "items": PAIR},
    "a: Annotated[int, 'How many']": {**INTEGER, "description": "How many"},
    "a: Annotated[int, Arg('Often', minimum=1, examples=[1, 2])] = 3": {
        **INTEGER,
        "description": "Often",
        "minimum": 1,
        "examples": [1, 2],
        "default": 3,
    },
    "a: Annotated[str, mcp_tool.Arg(pattern='^a')]": {**STRING, "pattern": "^a"},
    "a: list[Annotated[int, Arg(minimum=0)]]": {"type": "array", "items": {**INTEGER, "minimum": 0}},
    "a: Movie": MOVIE,
    "a: Sequel": SEQUEL,
    "a: Point": POINT,
    "a: Point = Point(1)": POINT,
    "a: Tree": TREE,
    "a: Pair": PAIR,
    "a: int = LIMIT": {**INTEGER, "default": 3600},
    "a: float = -1.5": {**NUMBER, "default": -1.5},
    "a: int = 0x" + "f" * 400: INTEGER,
    "a: float = 1e999": NUMBER,
    "a: dict[str, int] = {'x': 1}": {"type": "object", "additionalProperties": INTEGER, "default": {"x": 1}},
    "a: Path": {**STRING, "format": "path"},
    "a: decimal.Decimal = decimal.Decimal('0.10')": {"anyOf": [NUMBER, STRING], "default": "0.10"},
    "a: datetime.timedelta": {**STRING, "format": "duration"},
    "a: bytes": {**STRING, "format": "binary"},
    "a: datetime.date": {**STRING, "format": "date"},
    "a: uuid.UUID": {**STRING, "format": "uuid"},
    "*a: int": {"type": "array", "items": INTEGER},
    "b: int = 1, /, *, a: str": STRING,
}

OPEN = {
    "a": "it has no annotation",
    "a: numpy.ndarray": "the type numpy.ndarray is not supported",
    "a: Plain": "the class Plain is not a TypedDict, dataclass, NamedTuple, Enum or pydantic model",
    "a: Computed": "the members of Computed are not all constants",
    "a: Annotated[int, Arg(minumum=1)]": "Arg has no keyword minumum",
    "a: Annotated[int, Arg(minimum=limit())]": "minimum of Arg cannot be read: it is not a constant",
    "a: make_type()": "the type make_type() is not supported",
    "a: 'list['": "'list[' is not a type",
    "a: dict[tuple[int, int], str]": "keys must be strings, integers or members of an Enum",
}

RESULTS = {
    "": None,
    " -> None": None,
    " -> str": None,
    " -> str | None": None,
    " -> Path": None,
    " -> dict": None,
    " -> dict[str, Any]": None,
    " -> list[dict]": None,
    " -> list[Path | str]": None,
    " -> Any": None,
    " -> int": {"type": "object", "properties": {"result": INTEGER}, "required": ["result"]},
    " -> list[str]": {
        "type": "object",
        "properties": {"result": {"type": "array", "items": STRING}},
        "required": ["result"],
    },
    " -> Movie": MOVIE,
    " -> 'Pair'": {
        "type": "object",
        "properties": {"left": INTEGER, "right": INTEGER},
        "required": ["left", "right"],
    },
    " -> dict[str, int]": {"type": "object", "additionalProperties": INTEGER},
    " -> Pair | None": {
        "type": "object",
        "properties": {
            "result": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"left": INTEGER, "right": INTEGER},
                        "required": ["left", "right"],
                    },
                    NULL,
                ]
            }
        },
        "required": ["result"],
    },
}


def read(source: str) -> FunctionTool:
    (found,) = function_tools(source.encode("utf-8"))
    return found


def of_signature(signature: str) -> FunctionTool:
    return read(f"{HEAD}\n@mcp_tool.tool\ndef f({signature}):\n    raise SystemExit\n")


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_a_parameter_has_the_schema_of_its_annotation(parameter: str) -> None:
    found = of_signature(parameter)

    assert found.fields["inputSchema"]["properties"]["a"] == PARAMETERS[parameter]
    is_required = "=" not in parameter.rpartition("a: ")[2].replace("minimum=", "").replace("pattern=", "").replace(
        "examples=", ""
    ) and not parameter.startswith("*")
    assert ("a" in found.fields["inputSchema"].get("required", [])) is is_required
    assert found.notes == []


@pytest.mark.parametrize("parameter", OPEN)
def test_a_parameter_that_cannot_be_read_is_open_and_noted(parameter: str) -> None:
    found = of_signature(f"{parameter}, b: int")

    line = HEAD.count("\n") + 3
    assert found.fields["inputSchema"]["properties"] == {"a": {}, "b": INTEGER}
    assert found.notes == [f"line {line}: the parameter a accepts any value: {OPEN[parameter]}"]


@pytest.mark.parametrize("returned", RESULTS)
def test_a_result_is_described_as_it_goes_out(returned: str) -> None:
    found = read(f"{HEAD}\n@mcp_tool.tool\ndef f(){returned}:\n    pass\n")

    assert found.fields.get("outputSchema") == RESULTS[returned]


MODELS = """
from typing import Annotated, Optional
import mcp_tool
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, PositiveInt, StringConstraints, field_serializer
class Base(BaseModel, extra="forbid"):
    id: Annotated[int, Field(alias="_id", ge=1)]
class Item(Base):
    '''A thing.'''
    note: Optional[str] = Field(None, max_length=9, description="Remark")
    secret: str = Field("x", exclude=True)
    parts: "list[Item]" = []
    _private: int = 0
class Renamed(BaseModel):
    model_config = ConfigDict(alias_generator=str.upper)
    a: int
class Own(BaseModel):
    a: int
    @field_serializer("a")
    def show(self, a): return str(a)
"""
ITEM: Json = {
    "type": "object",
    "description": "A thing.",
    "properties": {
        "_id": {**INTEGER, "minimum": 1},
        "note": {**STRING, "maxLength": 9, "description": "Remark"},
        "secret": {**STRING, "default": "x"},
        "parts": {"type": "array", "items": {"type": "object"}, "default": []},
    },
    "required": ["_id"],
    "additionalProperties": False,
}
OF_PYDANTIC = {
    "a: Item": (True, ITEM, ""),
    "a: Item | None = None": (False, ITEM, ""),
    "a: HttpUrl": (True, {**STRING, "format": "uri", "minLength": 1, "maxLength": 2083}, ""),
    "a: list[PositiveInt]": (True, {"type": "array", "items": {**INTEGER, "exclusiveMinimum": 0}}, ""),
    "a: Annotated[str, StringConstraints(pattern='^a')]": (True, {**STRING, "pattern": "^a"}, ""),
    "a: int = Field(..., lt=5)": (True, {**INTEGER, "exclusiveMaximum": 5}, ""),
    "a: list[str] | None = Field(None, min_length=1)": (False, {"type": "array", "items": STRING, "minItems": 1}, ""),
    "a: list[int] = Field(default_factory=list)": (False, {"type": "array", "items": INTEGER}, ""),
    "a: Renamed": (True, {}, "accepts any value: Renamed uses alias_generator, which changes the field names"),
    "a: Annotated[int, Field(gt=limit())]": (True, {}, "accepts any value: gt of Field cannot be read"),
    "a: int = Field(5, gt=limit())": (False, INTEGER, "the default of a is ignored: gt of Field cannot be read"),
}


@pytest.mark.parametrize("parameter", OF_PYDANTIC)
def test_the_types_of_pydantic_are_read(parameter: str) -> None:
    is_required, schema, note = OF_PYDANTIC[parameter]
    found = read(f"{MODELS}\n@mcp_tool.tool\ndef f({parameter}): 0\n")

    assert found.fields["inputSchema"]["properties"] == {"a": schema}
    assert ("required" in found.fields["inputSchema"]) is is_required
    assert note in "".join(found.notes) and bool(note) is bool(found.notes)


def test_a_model_as_a_result_has_what_pydantic_writes() -> None:
    """Names in place of aliases, nothing that is excluded, and null where it may be."""
    (item, own) = (read(f"{MODELS}\n@mcp_tool.tool\ndef f() -> {each}: 0\n") for each in ("Item", "list[Own]"))

    schema = item.fields["outputSchema"]
    assert list(schema["properties"]) == ["id", "note", "parts"]
    assert schema["properties"]["note"]["anyOf"] == [{**STRING, "maxLength": 9}, NULL]
    assert (schema["required"], "additionalProperties" in schema) == (["id"], False)
    assert own.fields["outputSchema"]["properties"]["result"] == {"type": "array", "items": {"type": "object"}}


def test_only_keywords_admit_other_arguments() -> None:
    assert of_signature("").fields["inputSchema"] == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert (
        "additionalProperties" not in read("import mcp_tool\n@mcp_tool.tool\ndef f(**more): 0\n").fields["inputSchema"]
    )
    assert of_signature("**more: int").fields["inputSchema"]["additionalProperties"] == INTEGER


def test_annotations_that_are_not_evaluated_mean_the_same() -> None:
    source = "from __future__ import annotations\nimport mcp_tool as m\n@m.tool\ndef f(a: list[int | None]): ...\n"

    items = {"anyOf": [INTEGER, NULL]}
    assert read(source).fields["inputSchema"]["properties"] == {"a": {"type": "array", "items": items}}


DOCSTRINGS = {
    "google": """Find notes.

    Also old ones.

    Args:
        query (str): What to look
            for: a text
        limit: How many
        **more: Others

    Returns:
        list: The notes

    Raises:
        ValueError: Never
    """,
    "numpy": """Find notes.

    Also old ones.

    Parameters
    ----------
    query : str
        What to look
        for: a text
    limit : int, optional
        How many

    Returns
    -------
    list
        The notes
    """,
    "sphinx": """Find notes.

    Also old ones.

    :param query: What to look
        for: a text
    :param int limit: How many
    :returns: The notes
    :rtype: list
    """,
}


@pytest.mark.parametrize("style", DOCSTRINGS)
def test_a_docstring_describes_function_arguments_and_result(style: str) -> None:
    head = "import mcp_tool\n@mcp_tool.tool\ndef f(query: str, limit: int = 5) -> list[str]:\n"
    fields = read(f'{head}    """{DOCSTRINGS[style]}"""\n').fields

    assert fields["description"] == "Find notes.\n\nAlso old ones."
    assert fields["inputSchema"]["properties"] == {
        "query": {**STRING, "description": "What to look for: a text"},
        "limit": {**INTEGER, "default": 5, "description": "How many"},
    }
    result = {"type": "array", "items": STRING, "description": "The notes"}
    assert fields["outputSchema"]["properties"]["result"] == result


def test_the_file_speaks_for_a_function_that_says_nothing() -> None:
    text = '#!/usr/bin/env python3\n"""Greet somebody.\n\nNote:\n    Politely.\n"""\n'

    assert read(f"{text}from mcp_tool import *\n@tool\ndef f(): 0\n").fields["description"] == "Greet somebody."


def test_the_decorator_says_the_rest() -> None:
    options = (
        'name="greet", title="Greet", description="Says hello", read_only=True, destructive=False, open_world=None'
    )
    found = read(f'import mcp_tool\n@mcp_tool.tool({options})\ndef f():\n    """Other."""\n')

    assert {key: value for key, value in found.fields.items() if key != "inputSchema"} == {
        "name": "greet",
        "title": "Greet",
        "description": "Says hello",
        "annotations": {"readOnlyHint": True, "destructiveHint": False},
    }
    assert read("import mcp_tool\n@mcp_tool.tool(\n  titel=1)\ndef f(): 0\n").notes == [
        "line 3: mcp_tool.tool has no option titel, so the file cannot be run"
    ]


# The first parameter of the function that is meant is called a.
MEANT = {
    "async": "import mcp_tool\n@mcp_tool.tool\nasync def f(a: int): 0\n",
    "another name of the module": "import mcp_tool as m\n@m.tool()\ndef f(a: int): 0\n",
    "another name of the mark": "from mcp_tool import tool as it\ndef other(b): 0\n@it\ndef f(a: int): 0\n",
    "public": "import mcp_tool\ndef f(a: int): 0\ndef _g(b): 0\nmcp_tool.run()\n",
    "named": "import mcp_tool\ndef f(a: int): 0\ndef g(b): 0\nmcp_tool.run(f)\n",
    "not main": "import mcp_tool\ndef f(a: int): 0\ndef main():\n    mcp_tool.run()\nif 1:\n    main()\n",
    "in a block": "import mcp_tool\nif True:\n    @mcp_tool.tool\n    def f(a: int): 0\n",
    "imports-of-all-kinds": (
        '"""Notes."""\nfrom __future__ import annotations\nimport os, typing as t\nimport collections.abc\n'
        "from typing import (\n    Literal,\n)\nfrom typing_extensions import Annotated as A, Any  # both\n"
        "try:\n    from mcp_tool import tool, Arg\nexcept ImportError:\n    pass\n"
        "@tool\ndef f(a: t.List[Literal[1]], b: A[int, Arg('B')], c: collections.abc.Sequence[Any]):\n    return 0\n"
    ),
    "constants": (
        "import mcp_tool\n\nLIMIT = 5\nRATE = 0.5\nNAME = 'x'  # a comment\nTWICE = 1\nTWICE = 2\n\n"
        "@mcp_tool.tool\ndef f(a: int = LIMIT, b: float = RATE, c: str = NAME, d: int = TWICE):\n    return 0\n"
    ),
}


@pytest.mark.parametrize("source", MEANT.values(), ids=MEANT)
def test_the_function_is_found_that_is_meant(source: str) -> None:
    found = read(source)

    assert next(iter(found.fields["inputSchema"]["properties"])) == "a"
    assert found.notes == []


def test_a_type_means_what_its_names_mean_in_its_own_file() -> None:
    kinds = []
    for imports in (
        "from pathlib import Path",
        "from uuid import UUID as Path",
        "from pathlib import Path\nPath = bool",
        "from typing import NamedTuple\nclass Path(NamedTuple):\n    x: int",
    ):
        found = read(f"{imports}\nimport mcp_tool\n@mcp_tool.tool\ndef f(a: Path, b: 'list[Path]'):\n    return a\n")
        properties = found.fields["inputSchema"]["properties"]
        assert properties["a"] == properties["b"]["items"]
        kinds.append(properties["a"].get("format") or properties["a"]["type"])

    assert kinds == ["path", "uuid", "boolean", "object"]


def test_no_tree_is_left_to_the_collector() -> None:
    """Trees that wait for it took as long again as parsing them."""

    def trees() -> int:
        return sum(type(each) is ast.FunctionDef for each in gc.get_objects())

    gc.disable()
    try:
        before = trees()
        of_signature("a: Point, b: Optional[Tree], c: Annotated[int, Arg(minimum=left())], d: Plain")
        assert trees() == before
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "source",
    [
        "print('no mcp_tool here')\n",
        "import mcp_tool\ndef f(a: int): 0\n",
        "import mcp_tool\nmcp_tool.emit_text('hi')\n",
        "from other import tool  # not mcp_tool\n@tool\ndef f(): 0\n",
        "import mcp_tool\nclass A:\n    @mcp_tool.tool\n    def f(self): 0\n",
        "import mcp_tool\nx = (\n",
    ],
)
def test_another_script_is_no_function_tool(source: str) -> None:
    assert function_tools(source.encode("utf-8")) == []


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import mcp_tool\ndef f(): 0\ndef g(): 0\nmcp_tool.run()\n", 3),
        ("import mcp_tool\nmcp_tool.run()\n", 1),
    ],
)
def test_a_choice_of_functions_is_no_description(source: str, line: int) -> None:
    found = read(source)

    assert found.fields == {}
    assert len(found.notes) == 1
    assert found.notes[0].startswith(f"line {line}: it is not clear which function is the tool: ")


MARKED = b"import mcp_tool\n@mcp_tool.tool\ndef f(a: int): 0\n"
HOSTILE = {
    "nul": (MARKED + b"\0", "it cannot be parsed"),
    "syntax": (MARKED + b"x = (\n", "it cannot be parsed"),
    "newer": (MARKED + b"quux f g\n", "it cannot be parsed"),
    "large": (MARKED + b"#" * MAX_BYTES, f"it is larger than {MAX_BYTES} bytes"),
    "dense": (MARKED + b"0\n" * 40_000, "it is too long"),
    "statements": (MARKED + b"a;" * 30_000 + b"\n", "it is too long"),
    "braces": (MARKED + b"f'" + b"{a}" * 2000 + b"'\n", "it is too long"),
    "comments": (b"import mcp_tool\n@mcp_tool.tool\ndef f(" + b":#" * 15_000, "it is too long"),
    "signs": (MARKED + b"~" * 8000 + b"1\n", "it is nested too deeply"),
    "negations": (MARKED + b"not " * 8000 + b"1\n", "it is nested too deeply"),
    "digits": (MARKED + b"x = " + b"9" * 60_000 + b"\n", "it cannot be parsed"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_source_that_cannot_be_read_is_a_tool_that_takes_anything(name: str) -> None:
    source, reason = HOSTILE[name]
    found = next(iter(function_tools(source)), None)

    if found is None or found.fields:  # a Python without a limit for digits reads this one
        assert name == "digits" and sys.version_info < (3, 11)
        return
    assert found.fields == {}
    assert reason in found.notes[0]


def test_an_escape_sequence_that_does_not_exist_is_no_error() -> None:
    """Warnings are errors in these tests."""
    found = read("import mcp_tool\nX = '\\d'\n@mcp_tool.tool\ndef f(a: int): 1if a else 2\n")
    assert list(found.fields["inputSchema"]["properties"]) == ["a"]


def test_classes_in_classes_do_not_grow_without_end() -> None:
    classes = ["class C0(TypedDict):\n    a: int\n"]
    classes += [f"class C{n}(TypedDict):\n    a: C{n - 1}\n    b: C{n - 1}\n" for n in range(1, 20)]
    found = read(f"{HEAD}{''.join(classes)}\n@mcp_tool.tool\ndef f(a: C19): 0\n")

    assert str(found.fields).count("'type'") < 2500
    assert any("the type is too large" in note for note in found.notes)


def test_values_in_values_do_not_grow_without_end() -> None:
    """A kilobyte of lists that name each other kept the server from everything else, for good."""
    lists = ["L0 = [0]\n", *(f"L{n} = [{', '.join([f'L{n - 1}'] * 30)}]\n" for n in range(1, 4))]
    found = read(f"{HEAD}{''.join(lists)}\n@mcp_tool.tool\ndef f(a: list = L2, b: list = L3): 0\n")

    properties = found.fields["inputSchema"]["properties"]
    assert len(properties["a"]["default"]) == 30
    assert "default" not in properties["b"]


def test_classes_that_inherit_from_each_other_twice_are_not_read_for_ever() -> None:
    classes = ["class A0(TypedDict):\n    a: int\nclass B0(TypedDict):\n    b: int\n"]
    for n in range(1, 15):
        classes += [f"class {name}{n}(A{n - 1}, B{n - 1}):\n    {name}{n}: int\n" for name in "AB"]
    found = read(f"{HEAD}{''.join(classes)}\n@mcp_tool.tool\ndef f(a: A14): 0\n")

    assert "the file has too many types and values to read" in found.notes[0]


def test_a_long_type_that_nobody_knows_is_not_written_out() -> None:
    """It was written out for each parameter that has it, which took seconds."""
    found = read(f"{HEAD}X = g({'1, ' * 200})\n@mcp_tool.tool\ndef f(a: X): 0\n")

    assert f"the type on line {HEAD.count(chr(10)) + 1} is not supported" in found.notes[0]


def test_an_enum_is_read_once_however_many_of_its_members_are_named() -> None:
    members = [f"m{n}" for n in range(1000)]
    source = f"{HEAD}class E(enum.Enum):\n" + "".join(f"    {name} = {name!r}\n" for name in members)
    found = read(f"{source}@mcp_tool.tool\ndef f(a: Literal[{', '.join(f'E.{name}' for name in members)}]): 0\n")

    assert found.fields["inputSchema"]["properties"]["a"] == {"type": "string", "enum": members}


def test_the_docstring_of_a_class_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    reading = docstrings.read
    monkeypatch.setattr(docstrings, "read", lambda text: (texts.append(text), reading(text))[1])
    parameters = ", ".join(f"p{n}: C" for n in range(20))
    read(f"{HEAD}class C(TypedDict):\n    'A class.'\n    a: int\n@mcp_tool.tool\ndef f({parameters}): 0\n")

    assert texts.count("A class.") == 1


def test_nothing_of_the_file_is_run(tmp_path: Any) -> None:
    trace = tmp_path / "trace"
    harm = f"open({str(trace)!r}, 'w').close()\nimport os; os._exit(3)\n"
    found = read(f"{harm}import mcp_tool\n@mcp_tool.tool\ndef f(a: (open({str(trace)!r}, 'w'), int)[1] = exit()): 0\n")

    assert "accepts any value" in found.notes[0]
    assert not trace.exists()
