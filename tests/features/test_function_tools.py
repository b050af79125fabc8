"""Tools that are Python functions, called through the server: arguments in, results and errors out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.running.scripts.environment import PYTHON_DIR
from tests.support import ways
from tests.support.client import Speak
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of

Json = dict[str, Any]

way, project, shared_project = ways.way, ways.project, ways.shared_project
HEAD = f"#!{sys.executable}\nimport mcp_tool\n"
TYPES = """\
import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, IntEnum, auto
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

class Color(Enum):
    RED = "red"
    BLUE = "blue"

class Level(IntEnum):
    LOW = 1
    HIGH = auto()

class Odd(Enum):
    A = (1, 2)
    B = None

@dataclass
class Point:
    x: float
    y: "int | None" = None
    tags: list[str] = field(default_factory=list)

class Pair(NamedTuple):
    left: int
    right: "Color" = Color.RED

class Titled(TypedDict):
    title: str

class Movie(Titled, total=False):
    pair: Pair

def shown(value):
    kind = type(value).__name__
    if isinstance(value, (list, tuple, set)) and not hasattr(value, "_fields"):
        return [kind, *sorted(map(repr, value))]
    return f"{kind} {value!r}"
"""

ARGUMENTS: list[tuple[str, Any, Any]] = [
    ("str", "x", "str 'x'"),
    ("int", 5.0, "int 5"),
    ("float", 5, "float 5.0"),
    ("bool", True, "bool True"),
    ("int | str", "5", "str '5'"),
    ("Optional[int]", None, "NoneType None"),
    ("Optional[int] = None", None, "NoneType None"),
    ("Annotated[int, 'Often'] | None = None", "5", "int 5"),
    ("list[int]", [1, 2], ["list", "1", "2"]),
    ("set[int]", [2, 1], ["set", "1", "2"]),
    ("tuple[int, str]", [1, "a"], ["tuple", "'a'", "1"]),
    ("tuple[Level, ...]", [2], ["tuple", "<Level.HIGH: 2>"]),
    ("Literal['a', 'b']", "b", "str 'b'"),
    ("Color", "blue", "Color <Color.BLUE: 'blue'>"),
    ("Level", 2, "Level <Level.HIGH: 2>"),
    ("Odd", "B", "Odd <Odd.B: None>"),
    ("dict[int, Color]", {"1": "red"}, "dict {1: <Color.RED: 'red'>}"),
    ("Point", {"x": 1, "y": None}, "Point Point(x=1.0, y=None, tags=[])"),
    ("Point", {"x": 1, "y": 2}, "Point Point(x=1.0, y=2, tags=[])"),
    ("'list[Point]'", [{"x": 1}], ["list", "Point(x=1.0, y=None, tags=[])"]),
    ("Pair", {"left": 1, "right": "blue"}, "Pair Pair(left=1, right=<Color.BLUE: 'blue'>)"),
    ("Movie", {"title": "a", "pair": {"left": 1}},
     "dict {'title': 'a', 'pair': Pair(left=1, right=<Color.RED: 'red'>)}"),
    ("Annotated[int, mcp_tool.Arg(minimum=1)]", 3, "int 3"),
    ("datetime.date", "2020-02-03", "date datetime.date(2020, 2, 3)"),
    ("Path", "a/b", "PosixPath PosixPath('a/b')"),
    ("Any", {"a": [1]}, "dict {'a': [1]}"),
    ("datetime.timedelta", "P1DT2H0.5S", "timedelta datetime.timedelta(days=1, seconds=7200, microseconds=500000)"),
    ("Decimal", "0.10", "Decimal Decimal('0.10')"),
    ("bytes", "é", "bytes b'\\xc3\\xa9'"),
]  # fmt: skip

RESULTS: list[tuple[str, str, Json]] = [
    ("", "'text'", {"content": [{"type": "text", "text": "text"}]}),
    (" -> str", "'{\"a\": 1}'", {"content": [{"type": "text", "text": '{"a": 1}'}]}),
    ("", "{'a': 1}", {"structuredContent": {"a": 1}}),
    ("", "[1, 2]", {"structuredContent": {"result": [1, 2]}}),
    (" -> int", "5", {"structuredContent": {"result": 5}}),
    (" -> list[Color]", "[Color.RED]", {"structuredContent": {"result": ["red"]}}),
    (" -> Odd", "Odd.A", {"structuredContent": {"result": "A"}}),
    (" -> Point", "Point(1.0)", {"structuredContent": {"x": 1.0, "y": None, "tags": []}}),
    (" -> Pair", "Pair(1)", {"structuredContent": {"left": 1, "right": "red"}}),
    (" -> Movie", "{'title': 'a'}", {"structuredContent": {"title": "a"}}),
    (" -> set[int]", "{2, 1}", {"structuredContent": {"result": [1, 2]}}),
    (" -> Point | None", "Point(1.0)", {"structuredContent": {"result": {"x": 1.0, "y": None, "tags": []}}}),
    (" -> dict[int, date]", "{1: datetime.date(2020, 1, 2)}", {"structuredContent": {"1": "2020-01-02"}}),
    ("", "mcp_tool.text_block('hi')", {"content": [{"type": "text", "text": "hi"}]}),
    (" -> list[str | mcp_tool.Block]", "['a', mcp_tool.text_block('b')]",
     {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
    (" -> list[datetime.timedelta]", "[datetime.timedelta(-1, 1800), datetime.timedelta(0)]",
     {"structuredContent": {"result": ["-PT23H30M", "PT0S"]}}),
    (" -> list[Decimal]", "[Decimal('0.10')]", {"structuredContent": {"result": ["0.10"]}}),
    (" -> datetime.datetime", "datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc)",
     {"structuredContent": {"result": "2020-01-02T00:00:00Z"}}),
    (" -> bytes", "'é'.encode()", {"content": [{"type": "text", "text": "é"}]}),
    ("", "Path('notes.txt')", {"content": [{"type": "text", "text": "notes.txt"}]}),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    for number, (kind, _, _) in enumerate(ARGUMENTS):
        text = f"{TYPES}\n@mcp_tool.tool\ndef f(a: {kind}):\n    return {{'a': shown(a)}}\n"
        shared_project.tool(f"takes-{number}.py", HEAD + text)
    for number, (returned, value, _) in enumerate(RESULTS):
        text = f"{TYPES}\n@mcp_tool.tool\ndef f(){returned}:\n    return {value}\n"
        shared_project.tool(f"gives-{number}.py", HEAD + text.replace("date]", "datetime.date]"))


@pytest.mark.parametrize(("number", "row"), list(enumerate(ARGUMENTS)))
def test_a_function_gets_what_its_annotation_says(shared_speak: Speak, number: int, row: tuple[str, Any, Any]) -> None:
    result = shared_speak().call_tool(f"takes-{number}", {"a": row[1]})

    assert result.get("structuredContent") == {"a": row[2]}, result


@pytest.mark.parametrize(("number", "row"), list(enumerate(RESULTS)))
def test_what_a_function_returns_is_the_result(shared_speak: Speak, number: int, row: tuple[str, str, Json]) -> None:
    result = shared_speak().call_tool(f"gives-{number}")

    assert result["isError"] is False, result
    assert {key: result.get(key) for key in row[2]} == row[2]
    assert ("structuredContent" in result) is ("structuredContent" in row[2])


def called(speak: Speak, project: ProjectBuilder, body: str, arguments: Json | None = None, **settings: str) -> Json:
    project.tool("f.py", HEAD + body)
    return speak(**settings).call_tool("f", arguments)


def test_defaults_keywords_and_places_work_as_in_python(project: ProjectBuilder, speak: Speak) -> None:
    body = "@mcp_tool.tool\ndef f(a: int, b: int = 2, /, *rest: int, c: int = 4, **more: int):\n"
    result = called(speak, project, body + "    return [a, b, rest, c, more]\n", {"a": 1, "rest": [8, 9], "x": 5})

    assert result["structuredContent"] == {"result": [1, 2, [8, 9], 4, {"x": 5}]}


def test_arguments_that_do_not_fit_never_reach_the_function(project: ProjectBuilder, speak: Speak) -> None:
    body = "open('ran', 'w').close()\n@mcp_tool.tool\ndef f(a: int): 0\n"
    result = called(speak, project, body, {"a": "x", "b": 1})

    assert result["isError"] and text_of(result).startswith("Invalid arguments for tool 'f'")
    assert not (project.root / "ran").exists()


@ways.per_call("output")
def test_what_is_printed_is_no_part_of_what_is_returned(project: ProjectBuilder, speak: Speak) -> None:
    body = "import os\nprint('early')\n@mcp_tool.tool\ndef f() -> int:\n"
    body += "    print('{}')\n    os.system('echo child')\n    return 5\n"
    result = called(speak, project, body, result_meta="always")

    assert result["structuredContent"] == {"result": 5}
    assert sorted(result["_meta"]["stderr"].split()) == ["child", "early", "{}"]


@pytest.mark.parametrize(
    "returned",
    ["int | None", "'Optional[bool]'", "list[int] | None", "dict[str, int] | None", "P | None", "Literal[1] | None"],
)
def test_none_is_a_good_result_of_a_function_that_may_return_it(
    project: ProjectBuilder, speak: Speak, returned: str
) -> None:
    """The client got an error instead: "Tool output is empty for declared outputSchema"."""
    body = "from dataclasses import dataclass\nfrom typing import Literal, Optional\n@dataclass\nclass P:\n    x: int\n"
    body += f"@mcp_tool.tool\ndef f() -> {returned}:\n    print('aside')\n    return None\n"
    result = called(speak, project, body)

    assert (result["isError"], result["structuredContent"]) == (False, {"result": None})
    assert text_of(result) == "null"


@ways.per_call("output")
@pytest.mark.parametrize("returned", ["", " -> None", " -> str | None"])
def test_what_is_printed_is_the_text_if_nothing_is_returned(
    project: ProjectBuilder, speak: Speak, returned: str
) -> None:
    body = f"import os\n@mcp_tool.tool\ndef f(){returned}:\n    print('hi', flush=True)\n    os.system('echo child')\n"
    result = called(speak, project, body, result_meta="always")

    assert (text_of(result), result["isError"]) == ("hi\nchild\n", False)
    assert result["_meta"] == {"exitCode": 0}


def test_an_exception_is_told_with_its_name_and_all_of_its_text(project: ProjectBuilder, speak: Speak) -> None:
    result = called(speak, project, "@mcp_tool.tool\ndef f() -> int:\n    raise ValueError('first\\nsecond')\n")

    assert (text_of(result), result["isError"]) == ("Tool failed: ValueError: first\nsecond", True)
    assert "Traceback (most recent call last)" in result["_meta"]["stderr"]
    assert "mcp_tool_functions" not in result["_meta"]["stderr"]


def test_a_tool_error_is_told_as_it_stands(project: ProjectBuilder, speak: Speak) -> None:
    result = called(speak, project, "@mcp_tool.tool\ndef f():\n    raise mcp_tool.ToolError('No such city')\n")

    assert (text_of(result), result["isError"]) == ("No such city", True)
    assert result["_meta"] == {"exitCode": 0}


def test_a_result_that_json_cannot_hold_is_an_error(project: ProjectBuilder, speak: Speak) -> None:
    assert "type object cannot be sent as JSON" in text_of(
        called(speak, project, "@mcp_tool.tool\ndef f():\n    return [object()]\n")
    )


def test_an_async_function_is_awaited(project: ProjectBuilder, speak: Speak) -> None:
    body = "import asyncio\n@mcp_tool.tool\nasync def f(a: int) -> int:\n    await asyncio.sleep(0)\n    return a\n"

    assert called(speak, project, body, {"a": 3})["structuredContent"] == {"result": 3}


@pytest.mark.parametrize("failure", ["raise ValueError('bad file')", "import sys; sys.exit(3)", "raise SystemExit(3)"])
def test_a_file_that_fails_does_not_run_its_function(project: ProjectBuilder, speak: Speak, failure: str) -> None:
    body = f"@mcp_tool.tool\ndef f():\n    open('ran', 'w').close()\n{failure}\n"
    result = called(speak, project, body)

    assert result["isError"] is True
    assert not (project.root / "ran").exists()


@pytest.mark.parametrize(
    "end", ["import sys; sys.exit()", "import sys; sys.exit(0)", "mcp_tool.run()", "mcp_tool.run(f)"]
)
def test_a_function_is_run_once_however_the_file_ends(project: ProjectBuilder, speak: Speak, end: str) -> None:
    body = f"@mcp_tool.tool\ndef f() -> int:\n    print('ran')\n    return 5\n{end}\n"
    result = called(speak, project, body, result_meta="always")

    assert result["structuredContent"] == {"result": 5}
    assert result["_meta"]["stderr"] == "ran\n"


def test_the_only_public_function_is_run_without_a_mark(project: ProjectBuilder, speak: Speak) -> None:
    body = "def _other(): 0\ndef f(a: int): return a + 1\ndef main():\n    mcp_tool.run()\nmain()\n"

    assert called(speak, project, body, {"a": 1})["structuredContent"] == {"result": 2}


SEVERAL = """\
CALLS = []
def noted(name):
    CALLS.append(name)
    return f"{name} {len(CALLS)}"
print("loading")
@mcp_tool.tool
def first() -> None:
    print(noted("first"))
@mcp_tool.tool(name="other")
def second(a: int) -> str:
    print("aside")
    return noted(f"second {a}")
@mcp_tool.tool(scopes=["write"])
def third() -> list[str]:
    return CALLS
"""


@ways.per_call("output")
@pytest.mark.parametrize("end", ["", "mcp_tool.run()\n"])
def test_each_function_of_a_file_is_called_by_its_name(project: ProjectBuilder, speak: Speak, end: str) -> None:
    project.tool("many.py", HEAD + SEVERAL + end)
    client = speak(result_meta="always")

    assert text_of(client.call_tool("first")) == "loading\nfirst 1\n"
    assert text_of(client.call_tool("other", {"a": 3})) == "second 3 1"
    assert client.call_tool("third")["structuredContent"] == {"result": []}


def by_hand(path: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": PYTHON_DIR, **variables}
    return subprocess.run([sys.executable, path, *words], env=env, capture_output=True, text=True, timeout=120)


def test_scopes_and_words_belong_to_one_function_of_a_file(tmp_path: Path) -> None:
    """The script itself refuses a caller without the scopes of the function, and no other caller."""
    path = tmp_path / "many.py"
    path.write_text(HEAD + SEVERAL)
    call = {"MCP_TOOL_ARGS_JSON": '{"a": 1}', "MCP_AUTH_JSON": '{"scope": "read"}'}

    assert "second 1 1" in by_hand(path, **call, MCP_TOOL_NAME="other").stdout
    refused = by_hand(path, MCP_TOOL_NAME="third", MCP_AUTH_JSON='{"scope": "read"}', MCP_TOOL_ARGS_JSON="{}")
    assert "This needs the scope write" in refused.stdout
    unknown = by_hand(path, MCP_TOOL_NAME="fourth", MCP_TOOL_ARGS_JSON="{}")
    assert "It is not clear which function is the tool: first, second, third." in unknown.stdout
    assert by_hand(path, "other", "a=5").stdout == "loading\naside\nsecond 5 1\n"
    assert "many.py first|other|third [NAME=VALUE" in by_hand(path, "fifth").stderr


PYDANTIC = """\
from pydantic import BaseModel, Field, model_validator
class Size(BaseModel):
    width: int = Field(alias="w", gt=0)
class Box(BaseModel):
    name: str
    sizes: list[Size] = []
    @model_validator(mode="after")
    def check(self):
        if self.name == "none":
            raise ValueError("a box needs a name")
        return self
@mcp_tool.tool
def pack(box: Box, others: list["Box"] | None = None, deep: int = Field(7, lt=9)) -> dict[str, Box]:
    assert type(box) is Box and type(deep) is int
    return {"box": box, **{other.name: other for other in others or []}}
"""


def test_pydantic_makes_its_values_and_says_what_is_wrong(project: ProjectBuilder, speak: Speak) -> None:
    pytest.importorskip("pydantic")
    project.tool("pack.py", HEAD.replace("import", "from __future__ import annotations\nimport", 1) + PYDANTIC)
    client = speak()

    box = {"name": "a", "sizes": [{"w": 2}]}
    packed = client.call_tool("pack", {"box": box, "others": [{"name": "b"}]})
    expected = {"box": {"name": "a", "sizes": [{"width": 2}]}, "b": {"name": "b", "sizes": []}}
    assert packed["structuredContent"] == expected, packed
    refused = client.call_tool("pack", {"box": {"name": "none"}})
    assert refused["isError"] is True
    assert text_of(refused) == 'Invalid arguments: box: Value error, a box needs a name, got {"name": "none"}'


def test_a_choice_of_functions_is_an_error(project: ProjectBuilder, speak: Speak) -> None:
    result = called(speak, project, "def f(): 0\ndef g(): 0\nmcp_tool.run()\n", {"any": "thing"})

    assert result["isError"] is True
    assert text_of(result) == "It is not clear which function is the tool: f, g. Mark each tool with @mcp_tool.tool."


def test_a_process_of_the_file_does_not_run_the_function_again(project: ProjectBuilder, speak: Speak) -> None:
    body = "import os\n@mcp_tool.tool\ndef f() -> int:\n    return 5\n"
    body += "child = os.fork()\nif child:\n    os.waitpid(child, 0)\n"

    assert text_of(called(speak, project, body)) == "5"


def test_a_file_without_a_first_line_and_bit_is_run_by_python(project: ProjectBuilder, speak: Speak) -> None:
    project.write("tools/f.py", "import mcp_tool\n@mcp_tool.tool\ndef f(a: str) -> str:\n    return a\n").chmod(0o644)

    assert text_of(speak().call_tool("f", {"a": "x"})) == "x"


def test_an_import_of_the_file_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text("import mcp_tool\n@mcp_tool.tool\ndef f(a: int) -> int:\n    return a\n")
    code = "import tool; print(tool.f(3))"
    env = {"PYTHONPATH": PYTHON_DIR}
    done = completed([sys.executable, "-c", code], cwd=tmp_path, env=env)

    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
