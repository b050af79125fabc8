from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog.descriptions import HEAD_BYTES, metadata
from mcpgreen.catalog.descriptions.metadata import meta_file_for, read_inline, read_meta_file
from mcpgreen.catalog.tools import Description, describe_tool
from mcpgreen.errors import ProjectError
from mcpgreen.files.confined import Private
from mcpgreen.text import jsontext

NO_ARGUMENTS = {"type": "object", "properties": {}}


def described(fields: dict[str, Any], *, file_name: str = "greet.sh", path: str = "/p/greet.meta.json") -> Description:
    return describe_tool(path, fields, stem=metadata.stem_of(file_name), private=Private(os.path.dirname(path)))


def written(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return str(path)


@pytest.mark.parametrize(
    ("present", "chosen"),
    [
        ({"greet.sh.meta.json", "greet.meta.json"}, "greet.sh.meta.json"),
        ({"greet.meta.json", "greet.sh.meta.yaml"}, "greet.meta.json"),
        ({"greet.sh.meta.yml", "greet.meta.yaml"}, "greet.sh.meta.yml"),
        ({"greet.meta.yml", "greet.meta.yaml"}, "greet.meta.yaml"),
        ({"greet.meta.yml"}, "greet.meta.yml"),
        ({"other.meta.json", "greet.json"}, None),
    ],
)
def test_the_most_specific_description_counts_and_json_before_yaml(present: set[str], chosen: str | None) -> None:
    assert meta_file_for("greet.sh", present) == chosen


def test_json_and_yaml_say_the_same(tmp_path: Path) -> None:
    json_path = written(tmp_path / "a.meta.json", '{"name": "a", "inputSchema": {"required": ["x"]}, "timeoutSecs": 5}')
    yaml_path = written(tmp_path / "a.meta.yaml", "name: a\ninputSchema:\n  required: [x]\ntimeoutSecs: 5\n")
    assert read_meta_file(json_path) == read_meta_file(yaml_path)


def test_a_date_in_yaml_stays_text(tmp_path: Path) -> None:
    path = written(tmp_path / "a.meta.yaml", "annotations:\n  lastModified: 2025-01-12T15:00:58Z\nsince: 2025-01-12\n")
    assert read_meta_file(path) == {"annotations": {"lastModified": "2025-01-12T15:00:58Z"}, "since": "2025-01-12"}


def test_a_byte_order_mark_is_forgiven(tmp_path: Path) -> None:
    assert read_meta_file(written(tmp_path / "a.meta.json", b'\xef\xbb\xbf{"name": "a"}')) == {"name": "a"}


def test_a_description_longer_than_one_read_is_read_to_its_end(tmp_path: Path) -> None:
    text = "x" * (5 * metadata.READ_BYTES)
    assert read_meta_file(written(tmp_path / "a.meta.json", jsontext.dumps({"description": text}))) == {
        "description": text
    }


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.meta.json", "{", "not valid JSON"),
        ("a.meta.json", "", "not valid JSON"),
        ("a.meta.json", b'{"name": "\xff"}', "not valid JSON"),
        ("a.meta.json", '{"inputSchema": {"maximum": 1e999}}', "not valid JSON"),
        ("a.meta.json", '{"maximum": 1' + "0" * 400 + ".0}", "not valid JSON"),
        ("a.meta.json", "[1]", "must be an object, found an array"),
        ("a.meta.yaml", "a: [", "not valid YAML"),
        ("a.meta.yaml", "a: .inf", "not valid YAML"),
        ("a.meta.yaml", "a: &a [*a]", "not valid YAML"),
        ("a.meta.yaml", "a: !!python/object/apply:os.getcwd []", "not valid YAML"),
        pytest.param("a.meta.yaml", "[" * 200_000, "nested deeper than 64 levels", id="yaml-brackets"),
        pytest.param("a.meta.yaml", "- " * 100_000, "nested deeper than 64 levels", id="yaml-dashes"),
        pytest.param("a.meta.yaml", "a: [" + "1," * 60_000 + "]", "more than 5000 values", id="yaml-many"),
        pytest.param("a.meta.yaml", "a: 1" + ":1" * 60_000, "a number has more than 100 digits", id="yaml-base-60"),
        pytest.param(
            "a.meta.yaml", "a: !!int '1" + ": 1" * 60_000 + "'", "a number has more than 100 digits", id="yaml-tagged"
        ),
        ("a.meta.yaml", "", "must be an object, found null"),
        ("a.meta.yaml", "just text", 'must be an object, found "just text"'),
        pytest.param("a.meta.json", " " * (metadata.MAX_META_BYTES + 1), "larger than", id="large"),
        pytest.param("a.meta.json", '{"a": [' + "[]," * 100_000 + "1]}", "more than 30000 values", id="many"),
    ],
)
def test_a_description_that_cannot_be_read_says_why(
    tmp_path: Path, name: str, content: str | bytes, reason: str
) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(ProjectError) as caught:
        read_meta_file(path)
    assert caught.value.path == path
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    "line",
    [
        '# mcp: {"name": "a"}',
        '#mcp:{"name": "a"}',
        '// mcp: {"name": "a"}',
        '-- mcp: {"name": "a"}',
        '/* mcp: {"name": "a"} */',
        '<!-- mcp: {"name": "a"} -->',
        'REM mcp: {"name": "a"}',
        '# the description: mcp: {"name": "a"}\r',
    ],
)
def test_an_inline_annotation_is_found_behind_any_comment_marker(line: str) -> None:
    assert read_inline("/p/a", f"#!/bin/sh\n{line}\nrun\n".encode()) == {"name": "a"}


@pytest.mark.parametrize(
    "head",
    [
        "#!/bin/sh\n# needs mcp: the protocol\n",
        'echo \'mcp: {"name": "a"}\'\n',
        "#!/bin/sh\n" + "\n" * 9 + '# mcp: {"name": "a"}\n',
        "",
    ],
    ids=["prose", "no comment", "eleventh line", "empty"],
)
def test_what_only_looks_like_an_annotation_is_none(head: str) -> None:
    assert read_inline("/p/a", head.encode()) is None


def test_the_first_annotation_counts_up_to_the_tenth_line() -> None:
    head = b"#!/bin/sh\n" + b"\n" * 8 + b'# mcp: {"name": "tenth"}\n# mcp: {"name": "later"}\n'
    assert read_inline("/p/a", head) == {"name": "tenth"}


@pytest.mark.parametrize(("line", "reason"), [("# mcp: {oops", "not valid JSON"), ('# mcp: ["x"]', "found an array")])
def test_a_broken_annotation_says_why(line: str, reason: str) -> None:
    with pytest.raises(ProjectError, match=reason):
        read_inline("/p/a", line.encode())


def test_an_annotation_that_is_cut_off_asks_for_a_file() -> None:
    head = (b'# mcp: {"description": "' + b"x" * HEAD_BYTES)[:HEAD_BYTES]
    with pytest.raises(ProjectError, match=r"use a \.meta\.json file"):
        read_inline("/p/a", head)


def test_without_fields_everything_has_a_default() -> None:
    description = described({})
    assert description.definition == {"name": "greet", "inputSchema": NO_ARGUMENTS}
    of_tasks = None, "call", None, None, None, None, False
    assert description[1:] == ({}, [], *[None] * 6, (), "auto", (), True, (), None, *of_tasks, (), 0, "")


def test_the_definition_has_all_that_goes_on_the_wire_and_nothing_else() -> None:
    fields = {
        "name": "greet.someone",
        "title": "Greet",
        "description": "Says hello\nto you",
        "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]},
        "outputSchema": {"type": "array"},
        "annotations": {"readOnlyHint": True, "x-own": 1},
        "_meta": {"ui": {"resourceUri": "ui://a/b"}},
    }
    own = {"timeoutSecs": 2.5, "timeoutHint": "Ask for less", "progressExtendsTimeout": True, "maxTimeoutSecs": 60}

    description = described({**fields, **own, "needs": ["roots"], "mine": 1, "path": "elsewhere.sh"})

    assert description.definition == fields
    assert description.timeout_secs == 2.5
    assert description.timeout_hint == "Ask for less"
    assert description.progress_extends_timeout is True
    assert description.max_timeout_secs == 60
    assert description.needs == ["roots"]
    assert description.unlisted == {**own, "needs": ["roots"], "mine": 1}


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        ({"arguments": {"properties": {"x": {}}}}, {"type": "object", "properties": {"x": {}}}),
        ({"arguments": {"properties": {"x": {}}}, "inputSchema": {}}, NO_ARGUMENTS),
        ({"inputSchema": {"type": "", "properties": None}}, NO_ARGUMENTS),
        ({"inputSchema": None}, NO_ARGUMENTS),
        ({"inputSchema": {"properties": []}}, NO_ARGUMENTS),
        (
            {"inputSchema": {"type": "object", "additionalProperties": False}},
            {"type": "object", "additionalProperties": False, "properties": {}},
        ),
    ],
)
def test_the_input_schema_always_has_an_object_at_its_root(fields: dict[str, Any], schema: dict[str, Any]) -> None:
    assert described(fields).definition["inputSchema"] == schema


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": 5}, "name must be 1 to 128 characters"),
        ({"name": ""}, "name must be"),
        ({"name": "two words"}, 'found "two words"'),
        ({"name": "line\n"}, "name must be"),
        ({"name": "n" * 129}, "name must be"),
        ({"title": 1}, "title must be a string, found 1"),
        ({"description": ["a"]}, "description must be a string, found an array"),
        ({"inputSchema": []}, "inputSchema must be an object, found an array"),
        ({"inputSchema": True}, "inputSchema must be an object, found true"),
        ({"arguments": [{"name": "x"}]}, "arguments must be an object"),
        ({"inputSchema": {"type": "array"}}, 'inputSchema must have the type "object", found "array"'),
        ({"inputSchema": {"type": ["object"]}}, "found an array"),
        ({"inputSchema": {"properties": ["x"]}}, "inputSchema.properties must be an object"),
        ({"inputSchema": {"required": "x"}}, "inputSchema.required must be an array of strings"),
        ({"arguments": {"required": [1]}}, "arguments.required must be an array of strings"),
        ({"outputSchema": "x"}, "outputSchema must be an object or a boolean"),
        ({"annotations": []}, "annotations must be an object"),
        ({"_meta": "x"}, "_meta must be an object"),
        ({"timeoutSecs": 0}, "timeoutSecs must be a positive number, found 0"),
        ({"timeoutSecs": "5"}, "timeoutSecs must be a positive number"),
        ({"timeoutSecs": True}, "timeoutSecs must be a positive number"),
        ({"maxTimeoutSecs": -1}, "maxTimeoutSecs must be a positive number"),
        ({"maxConcurrent": 0}, "maxConcurrent must be a positive integer"),
        ({"process": "db"}, "process is for tools with stays; add stays"),
        ({"stays": "forever"}, "stays must be server, session, or an object such as"),
        ({"stays": {"workers": 2}}, "stays must be server, session, or an object such as"),
        ({"stays": {"for": "ever"}}, "stays.for must be one of server, session, found"),
        ({"stays": {"for": "server", "workers": 0}}, "stays.workers must be an integer from 1 to 64"),
        ({"stays": {"for": "server", "startSecs": "soon"}}, "stays.startSecs must be a positive number"),
        ({"stays": {"for": "server", "worker": 2}}, "stays.worker is unknown; stays has for, workers,"),
        ({"stays": {"for": "session", "workers": 2}}, "stays.workers must be 1 for a session"),
        ({"timeoutHint": 1}, "timeoutHint must be a string"),
        ({"scopes": "files:read"}, "scopes must be an array of at most 50 scopes"),
        ({"scopes": ["files:read files:write"]}, "scopes must be an array"),
        ({"scopes": ['a"b']}, "scopes must be an array"),
        ({"scopes": [""]}, "scopes must be an array"),
        ({"scopes": ["caf\u00e9"]}, "scopes must be an array"),
        ({"progressExtendsTimeout": "yes"}, "progressExtendsTimeout must be true or false"),
    ],
)
def test_what_no_client_could_use_is_refused_with_a_reason(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ProjectError) as caught:
        described(fields)
    assert caught.value.path == "/p/greet.meta.json"
    assert reason in caught.value.reason


def test_a_long_wrong_value_is_not_repeated_in_full() -> None:
    with pytest.raises(ProjectError) as caught:
        described({"name": "n" * 5000})
    assert len(caught.value.reason) < 150


@pytest.mark.parametrize(
    ("file_name", "name"),
    [
        ("greet.sh", "greet"),
        ("greet", "greet"),
        ("two words.py", "two-words"),
        ("gr\u00fc\u00df.sh", "gr--"),
        ("a.b.sh", "a.b"),
        ("n" * 200 + ".sh", "n" * 128),
    ],
)
def test_a_name_made_from_a_file_name_is_always_legal(file_name: str, name: str) -> None:
    assert described({}, file_name=file_name).definition["name"] == name


def test_bad_annotations_are_left_out_one_by_one() -> None:
    good = {"readOnlyHint": False, "audience": ["user"], "priority": 1, "lastModified": "2025-01-12T15:00:58.5+02:00"}
    bad = {"destructiveHint": "no", "title": 3}

    description = described({"annotations": {**good, **bad}})

    assert description.definition["annotations"] == good
    assert [complaint.split()[0] for complaint in description.complaints] == [
        "annotations.destructiveHint",
        "annotations.title",
    ]


@pytest.mark.parametrize(
    "annotations",
    [
        {"audience": ["user", "robot"]},
        {"audience": "user"},
        {"audience": [["user"]]},
        {"priority": 1.1},
        {"priority": True},
        {"lastModified": "2025-01-12T15:00:58"},
        {"lastModified": "2025-01-12"},
    ],
)
def test_annotations_that_would_void_a_whole_list_are_left_out(annotations: dict[str, Any]) -> None:
    description = described({"annotations": annotations})
    assert description.definition["annotations"] == {}
    assert len(description.complaints) == 1


def test_icons_beside_the_description_become_data(tmp_path: Path) -> None:
    (tmp_path / "icon.PNG").write_bytes(b"PNG")
    icons = [
        {"src": "icon.PNG", "sizes": "48x48", "theme": "light"},
        {"src": str(tmp_path / "icon.PNG"), "mimeType": "image/x-own", "sizes": ["any"], "theme": "pink"},
        {"src": "https://example.com/i.svg", "mimeType": 5},
        {"src": "data:image/png;base64,UE5H"},
    ]
    description = described({"icons": icons}, path=str(tmp_path / "greet.meta.json"))

    assert description.definition["icons"] == [
        {"src": "data:image/png;base64,UE5H", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"},
        {"src": "data:image/x-own;base64,UE5H", "mimeType": "image/x-own", "sizes": ["any"]},
        {"src": "https://example.com/i.svg"},
        {"src": "data:image/png;base64,UE5H"},
    ]
    assert description.complaints == []


def test_icons_that_are_no_list_are_left_out() -> None:
    description = described({"icons": {"src": "x"}})
    assert "icons" not in description.definition
    assert description.complaints == ["icons must be an array; they are left out"]


@pytest.mark.parametrize("count", [5, 9], ids=["some", "a billion"])
def test_aliases_count_as_what_they_name(tmp_path: Path, count: int) -> None:
    """Nine lines can stand for a billion values, and they would all be written out."""
    levels = "\n".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, count))
    path = tmp_path / "tool.meta.yaml"
    path.write_text(f"a0: &a0 [x, x]\n{levels}\n", encoding="utf-8")

    with pytest.raises(ProjectError, match="more than 5000 values, counting each alias"):
        read_meta_file(str(path))


def test_many_lists_side_by_side_are_not_deep(tmp_path: Path) -> None:
    path = tmp_path / "tool.meta.yaml"
    path.write_text("".join(f"x{number}: [1, {{a: 2}}]\n" for number in range(100)), encoding="utf-8")

    assert len(read_meta_file(str(path))) == 100


def test_a_fault_in_json_is_told_with_its_place_in_the_script(tmp_path: Path) -> None:
    script = tmp_path / "tool.sh"
    head = b'#!/bin/sh\n# mcp: {"description": "Greet"\necho hi\n'
    script.write_bytes(head)
    with pytest.raises(ProjectError) as caught:
        metadata.read_inline(str(script), head)

    assert "line 2 column " in caught.value.reason
    assert "a } is missing" in caught.value.reason


def test_a_file_is_read_to_its_end_or_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for size in (0, 1, 16_384, 16_385, 30_000, 40_000):
        path.write_bytes(b"x" * size)
        assert metadata.read_start(str(path), 30_000) == b"x" * min(size, 30_000)
