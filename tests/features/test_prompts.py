"""`prompts/list` and `prompts/get`, over the wire."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import MODERN, Json

PNG = b"\x89PNG\r\n\x1a\n not really"
DATA = base64.b64encode(PNG).decode()


def text_of(result: Json) -> str:
    """The text of the only message."""
    (message,) = result["messages"]
    assert message["content"]["type"] == "text"
    return str(message["content"]["text"])


def printing(value: Any) -> str:
    return f"#!/bin/sh\ncat <<'END'\n{json.dumps(value)}\nEND\n"


@pytest.fixture(scope="module", autouse=True)
def _prompts(shared_project: ProjectBuilder) -> None:
    shared_project.prompt(
        "greet.txt",
        "Hello {{name}}, ${tone} {{unknown}} ${unknown}\n\n",
        arguments={
            "properties": {
                "name": {"title": "Name", "description": "Whom to greet"},
                "tone": {"enum": ["warm", "cold"], "default": "warm"},
                "note": {},
            },
            "required": ["name"],
        },
        title="Greet",
        description="Says hello",
        icons=[{"src": "https://example.org/icon.png"}],
        _meta={"example/own": 1},
    )
    shared_project.prompt("plain.txt", "As it is: {{any}}")


@pytest.mark.requirement("P-043")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_list_has_the_fields_of_the_revision(shared_speak: Speak, revision: str) -> None:
    result = shared_speak(revision).result("prompts/list")
    greet, plain = result["prompts"]

    has_titles, has_icons = revision >= "2025-06-18", revision >= "2025-11-25"
    name = {"name": "name", "description": "Whom to greet", "required": True}
    assert greet == {
        "name": "greet",
        "description": "Says hello",
        "arguments": [
            {**name, "title": "Name"} if has_titles else name,
            {"name": "tone", "required": False},
            {"name": "note", "required": False},
        ],
        **({"title": "Greet", "_meta": {"example/own": 1}} if has_titles else {}),
        **({"icons": [{"src": "https://example.org/icon.png"}]} if has_icons else {}),
    }
    assert plain == {"name": "plain"}
    assert result["_meta"]["mcpbash/total"] == 2
    assert ("ttlMs" in result) is (revision == MODERN)


@pytest.mark.requirement("P-130", "P-131")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_arguments_are_put_in(shared_speak: Speak, revision: str) -> None:
    result = shared_speak(revision).get_prompt("greet", {"name": "Ada", "tone": "cold"})

    assert result["description"] == "Says hello"
    assert result["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Hello Ada, cold {{unknown}} ${unknown}"}}
    ]


@pytest.mark.requirement("P-130")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        (-1.5, "-1.5"),
        (10**18, "1000000000000000000"),
        (True, "true"),
        (False, "false"),
        ("", ""),
        ("a\\b \\n \\1", "a\\b \\n \\1"),
        ("two\nlines\r\n", "two\nlines\r\n"),
        ("\"quoted\" 'text'", "\"quoted\" 'text'"),
        ("{{tone}} ${tone}", "{{tone}} ${tone}"),
        ("$(rm -rf /) `id`", "$(rm -rf /) `id`"),
    ],
    ids=ascii,
)
def test_a_value_is_put_in_literally(shared_speak: Speak, value: Any, text: str) -> None:
    result = shared_speak().get_prompt("greet", {"name": value})
    assert text_of(result) == f"Hello {text}, warm {{{{unknown}}}} ${{unknown}}"


@pytest.mark.requirement("P-130")
@pytest.mark.parametrize("value", [None, {}, {"a": 1}, [], ["x"]], ids=ascii)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_a_value_that_is_no_text_is_refused(shared_speak: Speak, revision: str, value: Any) -> None:
    error = shared_speak(revision).error("prompts/get", {"name": "greet", "arguments": {"name": value}})
    assert error == {"code": -32602, "message": "Argument 'name' of prompt 'greet' must be a string."}


@pytest.mark.requirement("P-130")
def test_a_number_that_cannot_be_written_is_refused(shared_speak: Speak) -> None:
    """It ended as an internal error, with a traceback on stderr."""
    wire = shared_speak().wire
    wire.send_bytes(
        b'{"jsonrpc":"2.0","id":"huge","method":"prompts/get","params":{"name":"greet","arguments":{"name":1e999}}}\n'
    )
    error = wire.response("huge")["error"]
    assert (error["code"], "out of range" in error["message"]) == (-32602, True)
    assert "Traceback" not in wire.stderr


@pytest.mark.requirement("P-130")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("arguments", [{}, None, {"tone": "cold"}], ids=ascii)
def test_a_required_argument_must_be_there(shared_speak: Speak, revision: str, arguments: Json | None) -> None:
    error = shared_speak(revision).error("prompts/get", {"name": "greet", "arguments": arguments})
    assert error == {"code": -32602, "message": "Prompt 'greet' needs the argument name."}


def test_an_optional_argument_left_out_is_its_default_or_nothing(project: ProjectBuilder, speak: Speak) -> None:
    arguments = [{"name": "a"}, {"name": "b", "default": "B"}, {"name": "c", "schema": {"default": 5}}]
    project.prompt("fill.txt", "<{{a}}|{{b}}|{{c}}>", arguments=arguments)

    assert text_of(speak().get_prompt("fill")) == "<|B|5>"


def test_shell_code_in_a_prompt_stays_as_it_is_where_the_description_says_so(
    project: ProjectBuilder, speak: Speak
) -> None:
    code = 'Explain to {{name}}: for name in *; do echo "${name}"; done'
    project.prompt("shell.txt", code, arguments=[{"name": "name"}], placeholders="braces")
    said = [{"role": "user", "content": code}]
    project.prompt("said.txt", "", arguments=[{"name": "name"}], messages=said, placeholders="braces")
    project.prompt("odd.txt", code, placeholders="dollars")
    client = speak()

    for prompt in ("shell", "said"):
        assert text_of(client.get_prompt(prompt, {"name": "Ada"})) == code.replace("{{name}}", "Ada")
    assert client.error("prompts/get", {"name": "odd"})["code"] == -32602
    eventually(lambda: "placeholders must be one of all, braces" in client.wire.stderr)


@pytest.mark.requirement("P-130")
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "Prompt name is required"),
        ({"name": ""}, "Prompt name is required"),
        ({"name": 5}, "Prompt name is required"),
        ({"name": "nobody"}, "Prompt 'nobody' not found"),
        ({"name": "Greet"}, "Prompt 'Greet' not found"),
        ({"name": "../greet"}, "Prompt '../greet' not found"),
        ({"name": "greet", "arguments": []}, "arguments must be an object."),
        ({"name": "greet", "arguments": "name=Ada"}, "arguments must be an object."),
    ],
    ids=ascii,
)
def test_a_request_that_makes_no_sense_is_refused(shared_speak: Speak, params: Json, message: str) -> None:
    assert shared_speak().error("prompts/get", params) == {"code": -32602, "message": message}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"one\ntwo\n", "one\ntwo"),
        (b"one\r\ntwo\r\n\r\n", "one\r\ntwo"),
        (b"no newline", "no newline"),
        (b"  kept  \n", "  kept  "),
        (b"\xef\xbb\xbfwith a mark\n", "with a mark"),
        (b"caf\xe9 \xff", "caf\ufffd \ufffd"),
        (b"", ""),
    ],
    ids=ascii,
)
def test_the_text_is_that_of_the_file_without_its_last_newlines(
    project: ProjectBuilder, speak: Speak, content: bytes, text: str
) -> None:
    project.prompt("raw.txt", "").write_bytes(content)
    assert text_of(speak().get_prompt("raw")) == text


@pytest.mark.requirement("P-131", "P-004")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_messages_of_every_kind_are_fitted_to_the_revision(
    project: ProjectBuilder, speak: Speak, revision: str
) -> None:
    audio = {"type": "audio", "data": DATA, "mimeType": "audio/wav"}
    link = {"type": "resource_link", "uri": "https://example.org/{{name}}", "name": "site", "title": "Of {{name}}"}
    resource = {"uri": "memo:{{name}}", "mimeType": "text/plain", "text": "about {{name}}"}
    project.prompt(
        "talk.meta.json",
        json.dumps(
            {
                "messages": [
                    {"role": "user", "content": "Hello {{name}}"},
                    {"role": "assistant", "content": {"type": "text", "text": "Hello ${name}"}},
                    {"role": "system", "content": {"type": "image", "data": DATA, "mimeType": "image/png"}},
                    {"content": audio},
                    {"content": {"type": "resource", "resource": resource}},
                    {"content": link},
                ]
            }
        ),
    )
    messages = speak(revision).get_prompt("talk", {"name": "Ada"})["messages"]

    assert [message["role"] for message in messages] == ["user", "assistant", "user", "user", "user", "user"]
    contents = [message["content"] for message in messages]
    assert contents[0] == contents[1] == {"type": "text", "text": "Hello Ada"}
    assert contents[2] == {"type": "image", "data": DATA, "mimeType": "image/png"}
    as_resource = {"uri": "urn:mcpgreen:audio", "mimeType": "audio/wav", "blob": DATA}
    assert contents[3] == (audio if revision >= "2025-03-26" else {"type": "resource", "resource": as_resource})
    assert contents[4]["resource"] == {"uri": "memo:Ada", "mimeType": "text/plain", "text": "about Ada"}
    if revision >= "2025-06-18":
        assert contents[5] == {**link, "uri": "https://example.org/Ada", "title": "Of Ada"}
    else:
        assert contents[5] == {"type": "text", "text": "Of Ada <https://example.org/Ada>"}


@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_a_picture_or_sound_may_be_a_file_beside_the_description(
    project: ProjectBuilder, speak: Speak, revision: str
) -> None:
    for name in ("logo.png", "jingle.wav"):
        project.prompt(f"brand/{name}", "").write_bytes(PNG)
    show = [
        {"content": {"type": "image", "path": "{{which}}.png"}},
        {"content": {"type": "image", "path": "logo.png", "mimeType": "image/x-own"}},
        {"content": {"type": "audio", "path": "../brand/jingle.wav"}},
    ]
    project.write("prompts/brand/show.meta.json", json.dumps({"messages": show}))
    client = speak(revision)
    first, second, third = (each["content"] for each in client.get_prompt("show", {"which": "logo"})["messages"])

    assert first == {"type": "image", "data": DATA, "mimeType": "image/png"}
    assert second["mimeType"] == "image/x-own"
    assert (third.get("data") or third["resource"]["blob"]) == DATA
    assert [prompt["name"] for prompt in client.result("prompts/list")["prompts"]] == ["show"]


@pytest.mark.parametrize("path", ["../secret.png", "/etc/hostname", "link.png", "none.png", "nul\x00.png"], ids=ascii)
def test_a_file_outside_the_prompts_is_not_shown(project: ProjectBuilder, speak: Speak, path: str) -> None:
    project.write("secret.png", "secret")
    project.write("prompts/show.meta.json", json.dumps({"messages": [{"content": {"type": "image", "path": "{{p}}"}}]}))
    (project.root / "prompts" / "link.png").symlink_to(project.root / "secret.png")
    error = speak().error("prompts/get", {"name": "show", "arguments": {"p": path}})

    assert error["code"] == -32603
    assert error["message"].startswith("Prompt 'show' cannot be read: ")
    assert str(project.root) not in error["message"]


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_an_embedded_resource_that_has_only_an_address_is_read(
    project: ProjectBuilder, speak: Speak, revision: str
) -> None:
    project.write("resources/memo.md", "Remember")
    uri = f"file://{project.root}/resources/{{{{which}}}}.md"
    content = {"type": "resource", "resource": {"uri": uri}}
    project.write("prompts/recall.meta.json", json.dumps({"messages": [{"content": content}]}))
    (message,) = speak(revision).get_prompt("recall", {"which": "memo"})["messages"]

    assert message["content"]["resource"] == {
        "uri": f"file://{project.root}/resources/memo.md",
        "mimeType": "text/markdown",
        "text": "Remember",
    }


@pytest.mark.parametrize("which", ["none", "../secret"])
def test_an_embedded_resource_that_cannot_be_read_is_an_error_of_the_prompt(
    project: ProjectBuilder, speak: Speak, which: str
) -> None:
    project.write("secret.md", "secret")
    (project.root / "resources").mkdir()
    project.write("roots/x", "")
    uri = f"file://{project.root}/resources/{{{{which}}}}.md"
    content = {"type": "resource", "resource": {"uri": uri}}
    project.write("prompts/recall.meta.json", json.dumps({"messages": [{"content": content}]}))
    client = speak(env={"MCPGREEN_ROOTS": str(project.root / "roots")})
    error = client.error("prompts/get", {"name": "recall", "arguments": {"which": which}})

    assert error["code"] == -32603
    assert error["message"].startswith("Prompt 'recall' embeds a resource that cannot be read: ")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"type": "image", "data": "not base64!", "mimeType": "image/png"}, "content.data must be base64"),
        ({"type": "resource", "resource": {}}, "content.resource.uri must be a string"),
        ({"type": "image", "path": "logo.png", "annotations": []}, "content.annotations must be an object"),
    ],
    ids=ascii,
)
def test_a_block_that_clients_would_reject_is_an_error(
    project: ProjectBuilder, speak: Speak, content: Json, problem: str
) -> None:
    project.write("prompts/talk.meta.json", json.dumps({"messages": [{"content": content}]}))
    project.prompt("logo.png", "").write_bytes(PNG)
    error = speak().error("prompts/get", {"name": "talk"})

    assert error["code"] == -32603
    assert error["message"].startswith(f"Prompt 'talk' has an invalid message: {problem}")


@pytest.mark.requirement("P-131")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_what_a_program_prints_is_the_prompt(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    project.prompt("now.sh", "#!/bin/sh\necho 'The text, with {{name}}.'\necho\n", role="assistant")
    result = speak(revision).get_prompt("now", {"name": "Ada"})

    assert result["messages"] == [
        {"role": "assistant", "content": {"type": "text", "text": "The text, with {{name}}."}}
    ]


@pytest.mark.requirement("P-131")
@pytest.mark.parametrize("is_bare", [False, True])
def test_a_program_may_print_messages(project: ProjectBuilder, speak: Speak, is_bare: bool) -> None:
    messages = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": {"type": "image", "data": DATA, "mimeType": "image/png"}},
        {"content": {"type": "image", "path": "logo.png"}},
    ]
    project.prompt("logo.png", "").write_bytes(PNG)
    printed = messages if is_bare else {"description": "Made just now", "messages": messages}
    project.prompt("talk.sh", printing(printed), description="Made by a program")
    result = speak().get_prompt("talk")

    assert result["description"] == ("Made by a program" if is_bare else "Made just now")
    image = {"type": "image", "data": DATA, "mimeType": "image/png"}
    assert result["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Hello"}},
        {"role": "assistant", "content": image},
        {"role": "user", "content": image},
    ]


@pytest.mark.parametrize("printed", [{"code": 5}, [1, 2], [], {"messages": "none"}, [{"name": "Ada"}]], ids=ascii)
def test_other_json_is_text(project: ProjectBuilder, speak: Speak, printed: Any) -> None:
    project.prompt("data.sh", printing(printed))
    assert json.loads(text_of(speak().get_prompt("data"))) == printed


@pytest.mark.requirement("P-131")
@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": "system", "content": "x"}, 'the role must be user or assistant, found "system"'),
        ({"role": "user"}, "content must be a string or a block"),
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, "content must be a string or a block"),
        ({"role": "user", "content": {"text": "x"}}, "content must be a string or a block"),
        ({"content": {"type": "film"}}, "content.type 'film' is unknown"),
        ("hello", "each message must be an object"),
    ],
    ids=ascii,
)
def test_messages_that_clients_would_reject_are_an_error(
    project: ProjectBuilder, speak: Speak, message: Any, problem: str
) -> None:
    """Some of them went out as the JSON text of the messages."""
    project.prompt("talk.sh", printing({"messages": [message]}))
    error = speak().error("prompts/get", {"name": "talk"})

    assert error["code"] == -32603
    assert error["message"].startswith("Prompt 'talk' has an invalid message: ")
    assert problem in error["message"]


def test_a_program_sees_its_arguments_and_defaults(project: ProjectBuilder, speak: Speak) -> None:
    arguments = [{"name": "who", "required": True}, {"name": "tone", "default": "warm"}, {"name": "note"}]
    project.prompt(
        "show.sh", '#!/bin/sh\nprintf "%s %s" "$MCP_PROMPT_NAME" "$MCP_TOOL_ARGS_JSON"\n', arguments=arguments
    )
    name, _, given = text_of(speak().get_prompt("show", {"who": "A\\da\n", "other": 5})).partition(" ")

    assert name == "show"
    assert json.loads(given) == {"who": "A\\da\n", "tone": "warm", "other": "5"}


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_progress_and_log_of_a_program_reach_the_client(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    progress = json.dumps({"method": "notifications/progress", "params": {"progress": 1}})
    log = json.dumps({"method": "notifications/message", "params": {"level": "error", "data": "careful"}})
    project.prompt(
        "work.sh",
        f"#!/bin/sh\necho '{progress}' >> \"$MCP_PROGRESS_STREAM\"\necho '{log}' >> \"$MCP_LOG_STREAM\"\necho done\n",
    )
    client = speak(revision)
    meta = {"progressToken": "t", "io.modelcontextprotocol/logLevel": "info"}
    assert text_of(client.get_prompt("work", meta=meta)) == "done"

    assert client.wire.notices("notifications/progress")[0]["params"]["progressToken"] == "t"
    assert client.wire.notices("notifications/message")[-1]["params"]["data"] == "careful"


def test_a_program_that_prints_too_much_is_an_error(project: ProjectBuilder, speak: Speak) -> None:
    project.prompt("flood.sh", "#!/bin/sh\nwhile :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done\n")
    error = speak(max_tool_output_size=65_536).error("prompts/get", {"name": "flood"})
    assert (error["code"], error["message"]) == (-32603, "Prompt 'flood' printed too much")


@pytest.mark.requirement("G-safe-path")
@pytest.mark.parametrize("mode", [0o757])
def test_a_program_that_others_may_write_to_is_refused(project: ProjectBuilder, speak: Speak, mode: int) -> None:
    """It was run, though a tool with the same mode is not."""
    project.prompt("open.sh", "#!/bin/sh\ntouch ran\n").chmod(mode)
    error = speak().error("prompts/get", {"name": "open"})

    assert error["code"] == -32602
    assert (
        error["message"] == "Prompt 'open' path rejected by policy: it can be written to by others "
        "(run mcpgreen validate --fix)"
    )
    assert not (project.root / "ran").exists()
