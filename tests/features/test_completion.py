"""`completion/complete`, over the wire: where values come from, and what is said of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import MODERN, Json

COLOURS = ["red", "green", "Grey", "blue"]
MANY = [f"value {number:03}" for number in range(250)]


def about(name: str, argument: str = "colour", value: str = "", **more: Any) -> Json:
    """A question about an argument of a prompt, or of a template if the name is an address."""
    kind = {"type": "ref/resource", "uri": name} if ":" in name else {"type": "ref/prompt", "name": name}
    return {"ref": kind, "argument": {"name": argument, "value": value}, **more}


def complete(client: Client, *question: Any, **more: Any) -> Json:
    completion: Json = client.result("completion/complete", about(*question, **more))["completion"]
    return completion


def printing(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"cat <<'END'\n{text}\nEND\n"


@pytest.fixture(scope="module", autouse=True)
def _items(shared_project: ProjectBuilder) -> None:
    properties = {
        "colour": {"enum": COLOURS},
        "size": {"examples": ["small", "large"]},
        "both": {"enum": ["a"], "examples": ["b"]},
        "list": {"type": "array", "items": {"enum": ["x", "y"]}},
        "odd": {"enum": [1, 2.5, True, None, {"a": 1}, "text", "text"]},
        "free": {},
        "many": {"enum": MANY},
    }
    shared_project.prompt("paint.txt", "Paint it {{colour}}", arguments={"properties": properties})
    shared_project.prompt("listed.txt", "{{tone}}", arguments=[{"name": "tone", "enum": ["warm", "cold"]}])
    shared_project.prompt("plain.txt", "{{any}}")
    template = {"uriTemplate": "memo://{colour}/{free}", "arguments": {"colour": {"enum": COLOURS}}}
    shared_project.write("resources/memo.meta.json", json.dumps(template))
    shared_project.write("resources/note.txt", "A note")


@pytest.mark.requirement("P-140", "P-141")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_an_enum_is_offered_by_what_is_typed(shared_speak: Speak, revision: str) -> None:
    client = shared_speak(revision)

    assert complete(client, "paint") == {"values": COLOURS, "total": 4, "hasMore": False}
    assert complete(client, "paint", "colour", "gr") == {"values": ["green", "Grey"], "total": 2, "hasMore": False}
    assert complete(client, "paint", "colour", "GRE")["values"] == ["green", "Grey"]
    assert complete(client, "paint", "colour", "x") == {"values": [], "total": 0, "hasMore": False}


@pytest.mark.parametrize(
    ("name", "argument", "values"),
    [
        ("paint", "size", ["small", "large"]),
        ("paint", "both", ["a"]),
        ("paint", "list", ["x", "y"]),
        ("paint", "odd", ["1", "2.5", "true", "text"]),
        ("listed", "tone", ["warm", "cold"]),
    ],
)
def test_other_places_where_a_schema_names_values(
    shared_speak: Speak, name: str, argument: str, values: list[str]
) -> None:
    """Of an enum only what may be given as an argument is offered, each value once."""
    assert complete(shared_speak(), name, argument)["values"] == values


@pytest.mark.parametrize("typed", ["", " sky "])
def test_where_nothing_is_known_nothing_is_suggested(shared_speak: Speak, typed: str) -> None:
    assert complete(shared_speak(), "paint", "free", typed) == {"values": [], "total": 0, "hasMore": False}


@pytest.mark.requirement("P-141")
@pytest.mark.parametrize("uri", ["memo://{colour}/{free}", "memo://red/x"])
def test_a_template_is_named_by_its_text_or_by_an_address_of_it(shared_speak: Speak, uri: str) -> None:
    assert complete(shared_speak(), uri, "colour", "b")["values"] == ["blue"]


@pytest.mark.requirement("P-140")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_more_than_a_hundred_values_come_in_pages(shared_speak: Speak, revision: str) -> None:
    client = shared_speak(revision)
    first = complete(client, "paint", "many")
    second = complete(client, "paint", "many", cursor=first["nextCursor"])
    third = complete(client, "paint", "many", cursor=second["nextCursor"])

    assert [len(page["values"]) for page in (first, second, third)] == [100, 100, 50]
    assert first["values"] + second["values"] + third["values"] == MANY
    assert [page["total"] for page in (first, second, third)] == [250, 250, 250]
    assert [page["hasMore"] for page in (first, second, third)] == [True, True, False]
    assert "nextCursor" not in third


def forged(offset: Any) -> str:
    from mcpgreen.protocol import pagination
    from mcpgreen.text import jsontext

    return pagination.encode("completion", offset, jsontext.digest(["paint", "colour"]), "")


@pytest.mark.parametrize("cursor", ["rubbish", 5, {}, "e30", forged(-3)], ids=ascii)
def test_a_foreign_cursor_is_refused(shared_speak: Speak, cursor: Any) -> None:
    error = shared_speak().error("completion/complete", about("paint", cursor=cursor))
    assert error["code"] == -32602
    assert "without a cursor" in error["message"]


def test_the_cursor_of_another_argument_is_refused(shared_speak: Speak) -> None:
    client = shared_speak()
    cursor = complete(client, "paint", "many")["nextCursor"]
    assert client.error("completion/complete", about("paint", "colour", cursor=cursor))["code"] == -32602


@pytest.mark.requirement("P-141", "P-142")
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "Completion ref is required"),
        ({"ref": "paint"}, "Completion ref is required"),
        ({"ref": {"name": "paint"}}, "Completion ref is required"),
        ({"ref": {"type": "ref/tool", "name": "x"}}, "Completion ref is invalid"),
        ({"ref": {"type": "ref/prompt"}}, "Completion ref is invalid"),
        ({"ref": {"type": "ref/prompt", "name": ""}}, "Completion ref is invalid"),
        ({"ref": {"type": "ref/resource", "name": "x"}}, "Completion ref is invalid"),
        ({"ref": {"type": "ref/resource", "uri": 5}}, "Completion ref is invalid"),
        ({"ref": {"type": "ref/prompt", "name": "paint"}}, "Completion argument name is required"),
        ({"ref": {"type": "ref/prompt", "name": "paint"}, "argument": {}}, "Completion argument name is required"),
        (about("paint", ""), "Completion argument name is required"),
        (about("paint", value=5), "argument.value must be a string."),  # type: ignore[arg-type]
        (about("paint", context=[]), "context must be an object."),
        (about("paint", context={"arguments": []}), "context.arguments must be an object."),
        (about("paint", value="x" * 70_000), "argument.value may have at most 65536 characters."),
        (about("x" * 10_000), "Completion ref is invalid: it is longer than 8192 characters"),
        (about("x:" + "y" * 10_000), "Completion ref is invalid: it is longer than 8192 characters"),
        (about("nobody"), "Prompt 'nobody' not found"),
        (about("memo:nowhere"), "Resource or template 'memo:nowhere' not found"),
        (about("paint", "flavour"), "'paint' has no argument 'flavour'; it has colour, size, both, "),
        (about("memo://{colour}/{free}", "flavour"), "'memo' has no argument 'flavour'; it has colour, free."),
    ],
    ids=lambda value: ascii(value)[:60],
)
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_a_request_that_makes_no_sense_is_refused(
    shared_speak: Speak, revision: str, params: Json, message: str
) -> None:
    error = shared_speak(revision).error("completion/complete", params)
    assert error["code"] == -32602
    assert error["message"].startswith(message)


@pytest.mark.parametrize(
    "script", ["pick.txt.completion.sh", "pick.txt.completion", "pick.completion.sh", "pick.completion"]
)
def test_a_script_beside_a_prompt_comes_before_its_schema(project: ProjectBuilder, speak: Speak, script: str) -> None:
    project.prompt("pick.txt", "{{colour}}", arguments={"properties": {"colour": {"enum": COLOURS}}})
    project.program(f"prompts/{script}", printing(["mauve"]))
    client = speak()

    assert complete(client, "pick") == {"values": ["mauve"], "total": 1, "hasMore": False}
    assert [prompt["name"] for prompt in client.result("prompts/list")["prompts"]] == ["pick"]


@pytest.mark.parametrize("uri", ["memo://{colour}", "memo://red"])
def test_a_template_has_a_script_beside_its_description(project: ProjectBuilder, speak: Speak, uri: str) -> None:
    project.write("resources/memo.meta.json", json.dumps({"uriTemplate": "memo://{colour}"}))
    project.program("resources/memo.completion.sh", printing(["mauve"]))
    assert complete(speak(), uri)["values"] == ["mauve"]


def test_scripts_are_looked_for_beside_the_item_and_nowhere_else(project: ProjectBuilder, speak: Speak) -> None:
    """A dot in a folder's name was taken for that of a suffix: a script outside the project was run."""
    project.prompt("a.b/pick", "{{colour}}")
    project.write("resources/c.d/list", '# mcp: {"uriTemplate": "memo://{colour}"}\n')
    for place in ("prompts/a", "resources/c", "."):
        project.program(f"{place}.completion", "touch ran; echo '[]'")
    client = speak(wire={"cwd": project.root})

    assert complete(client, "pick")["values"] == []
    client.request("completion/complete", about("memo://{colour}"))
    assert not (project.root / "ran").exists()


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_script_sees_the_question_and_its_context(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    project.prompt("pick.txt", "{{colour}}", description="Picks")
    project.program(
        "prompts/pick.completion",
        "env -0 > env; printf '[]'",
    )
    question = about("pick", "colour", 'r"', context={"arguments": {"size": "large"}}, limit=7)
    assert speak(revision).result("completion/complete", question)["completion"]["values"] == []

    seen = dict(line.split("=", 1) for line in project.read("env").split("\0") if "=" in line)
    assert json.loads(seen["MCP_COMPLETION_ARGS_JSON"]) == {
        "query": 'r"',
        "prefix": 'r"',
        "argument": {"name": "colour", "value": 'r"'},
        "context": {"arguments": {"size": "large"}},
        "ref": {"type": "ref/prompt", "name": "pick"},
    }
    assert (seen["MCP_COMPLETION_NAME"], seen["MCP_COMPLETION_LIMIT"], seen["MCP_COMPLETION_OFFSET"]) == (
        "pick",
        "7",
        "0",
    )
    assert (seen["MCP_PROMPT_REL_PATH"], json.loads(seen["MCP_PROMPT_METADATA"])["description"]) == (
        "pick.txt",
        "Picks",
    )
    assert seen["PWD"] == str(project.root)
    assert len(seen["MCP_COMPLETION_ARGS_HASH"]) == 64


@pytest.mark.parametrize(
    ("printed", "completion"),
    [
        ([], {"values": [], "total": 0, "hasMore": False}),
        ("", {"values": [], "total": 0, "hasMore": False}),
        (["b", "a"], {"values": ["b", "a"], "total": 2, "hasMore": False}),
        ({"suggestions": ["a"]}, {"values": ["a"], "total": 1, "hasMore": False}),
        ({"values": ["a"]}, {"values": ["a"], "total": 1, "hasMore": False}),
        ({"suggestions": ["a"], "total": 9}, {"values": ["a"], "total": 9, "hasMore": False}),
        ({"suggestions": ["a", "b"], "total": 1}, {"values": ["a", "b"], "total": 2, "hasMore": False}),
        ({"suggestions": ["a"], "total": "many"}, {"values": ["a"], "total": 1, "hasMore": False}),
        ({"suggestions": ["a"], "hasMore": True}, {"values": ["a"], "hasMore": True}),
        ({"suggestions": ["a"], "next": 5}, {"values": ["a"], "hasMore": True}),
        ({"suggestions": ["a"], "next": 1, "hasMore": False}, {"values": ["a"], "total": 1, "hasMore": False}),
        ({"suggestions": ["a"], "next": 1, "hasMore": None}, {"values": ["a"], "hasMore": True}),
        ({"suggestions": ["a"], "nextCursor": "own"}, {"values": ["a"], "hasMore": True}),
        ({"suggestions": ["a"], "hasMore": True, "total": 50}, {"values": ["a"], "total": 50, "hasMore": True}),
        ({}, {"values": [], "total": 0, "hasMore": False}),
    ],
    ids=ascii,
)
def test_what_a_script_may_print(project: ProjectBuilder, speak: Speak, printed: Any, completion: Json) -> None:
    project.prompt("pick.txt", "{{colour}}")
    project.program("prompts/pick.completion", printing(printed))
    answer = complete(speak(), "pick")

    assert ("nextCursor" in answer) is answer["hasMore"]
    answer.pop("nextCursor", None)
    assert answer == completion


@pytest.mark.parametrize(
    "printed",
    ["[1, 2]", '["a", null]', '{"suggestions": "a"}', "5", '"a"', "null"],
)
def test_what_is_no_list_of_texts_is_an_error(project: ProjectBuilder, speak: Speak, printed: str) -> None:
    project.prompt("pick.txt", "{{colour}}")
    project.program("prompts/pick.completion", printing(printed))
    error = speak().error("completion/complete", about("pick"))

    assert error["code"] == -32603
    assert error["message"].startswith("Completion provider emitted invalid JSON")


@pytest.mark.parametrize("context", [None, {}, {"arguments": None}], ids=str)
def test_a_script_finds_the_other_arguments_also_where_there_are_none(
    project: ProjectBuilder, speak: Speak, context: Json | None
) -> None:
    project.prompt("pick.txt", "{{colour}}")
    project.program("prompts/pick.completion", "printf %s \"$MCP_COMPLETION_ARGS_JSON\" > asked; printf '[]'")
    speak().result("completion/complete", {**about("pick"), **({} if context is None else {"context": context})})

    assert json.loads(project.read("asked"))["context"] == {"arguments": {}}


def test_a_script_that_pages_is_asked_for_each_page(project: ProjectBuilder, speak: Speak) -> None:
    project.prompt("pick.txt", "{{colour}}")
    project.program(
        "prompts/pick.completion",
        'o=$MCP_COMPLETION_OFFSET; printf \'{"suggestions":["v%s","v%s"],"hasMore":%s,"next":%s}\' '
        "$o $((o+1)) $([ $o -lt 4 ] && echo true || echo false) $([ $o -lt 4 ] && echo $((o+2)) || echo null)",
    )
    client = speak()
    pages = [complete(client, "pick", limit=2)]
    while "nextCursor" in pages[-1]:
        pages.append(complete(client, "pick", limit=2, cursor=pages[-1]["nextCursor"]))

    assert [page["values"] for page in pages] == [["v0", "v1"], ["v2", "v3"], ["v4", "v5"]]
    assert pages[-1]["total"] == 6


@pytest.mark.requirement("P-140")
def test_the_list_of_a_script_that_does_not_page_is_cut_into_pages(project: ProjectBuilder, speak: Speak) -> None:
    """Each page was the first one again, for ever."""
    project.prompt("pick.txt", "{{colour}}")
    project.program("prompts/pick.completion", printing(MANY))
    client = speak()
    first = complete(client, "pick")
    second = complete(client, "pick", cursor=first["nextCursor"])
    third = complete(client, "pick", cursor=second["nextCursor"])

    assert first["values"] + second["values"] + third["values"] == MANY
    assert [page["total"] for page in (first, second, third)] == [250, 250, 250]
    assert third["hasMore"] is False


@pytest.mark.requirement("P-140")
def test_too_many_values_in_one_page_of_a_script_are_cut(project: ProjectBuilder, speak: Speak) -> None:
    project.prompt("pick.txt", "{{colour}}")
    project.program("prompts/pick.completion", printing({"suggestions": MANY}))
    answer = complete(speak(), "pick")

    assert (answer["values"], answer["hasMore"]) == (MANY[:100], True)


def test_a_script_that_cannot_be_started_is_an_error(project: ProjectBuilder, speak: Speak) -> None:
    project.prompt("pick.txt", "{{colour}}")
    project.program("prompts/pick.completion", "#!/no/such/interpreter\n")
    error = speak().error("completion/complete", about("pick"))
    assert (error["code"], error["message"].startswith("Completion 'pick' could not be started")) == (-32603, True)


@pytest.mark.requirement("G-safe-path", "P-142")
@pytest.mark.parametrize("fault", ["mode", "link"])
def test_a_script_that_others_could_change_is_refused(
    project: ProjectBuilder, speak: Speak, fault: str, tmp_path: Any
) -> None:
    """It was run, though a tool like it is not."""
    project.prompt("pick.txt", "{{colour}}", arguments=[{"name": "colour", "enum": COLOURS}])
    script = project.program("prompts/pick.completion", "touch ran; echo '[]'")
    if fault == "mode":
        script.chmod(0o777)
    else:
        script.rename(tmp_path / "elsewhere")
        script.symlink_to(tmp_path / "elsewhere")
    error = speak().error("completion/complete", about("pick"))

    assert error["code"] == -32602
    assert error["message"].startswith("Completion 'pick' path rejected by policy: ")
    assert str(tmp_path) not in error["message"]
    assert not (project.root / "ran").exists()


@pytest.mark.requirement("P-142")
def test_scripts_are_bounded_in_number(project: ProjectBuilder, speak: Speak) -> None:
    project.prompt("pick.txt", "{{colour}}")
    project.program("prompts/pick.completion", "echo x >> started; until [ -e go ]; do sleep 0.01; done; echo '[]'")
    client = speak(max_concurrent_requests=2)
    ids = [client.start("completion/complete", about("pick")) for _ in range(5)]
    eventually(lambda: (project.root / "started").exists() and len(project.read("started").split()) == 2)
    client.result("prompts/list")
    assert len(project.read("started").split()) == 2

    project.write("go", "")
    assert all(client.wire.response(id)["result"]["completion"]["values"] == [] for id in ids)


@pytest.mark.requirement("P-142")
def test_a_question_too_long_for_a_script_is_an_error(project: ProjectBuilder, speak: Speak) -> None:
    project.prompt("pick.txt", "{{colour}}")
    project.program("prompts/pick.completion", "echo '[]'")
    client = speak()
    error = client.error("completion/complete", about("pick", "colour", "x" * 1_000_000))

    assert error["code"] == -32602
    assert "at most 65536" in error["message"]
    assert complete(client, "pick")["values"] == []
