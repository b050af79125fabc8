"""`validate` and `lint` find what is planted in an otherwise correct project, and say where it is and what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.cli.checking.correct_project import (
    COUNT,
    described,
    faults_in,
    greet,
    greet_with,
    linted,
    validated,
)
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder

Plant = Callable[[ProjectBuilder], Any]
TEXT = {"type": "string", "description": "A text"}


class Fault(NamedTuple):
    """What is planted, and what is found of it."""

    name: str
    plant: Plant
    code: str
    file: str | None
    line: int | None = None
    level: str = "error"


def script(path: str, text: str) -> Plant:
    return lambda project: project.program(path, text)


def written(path: str, text: str) -> Plant:
    return lambda project: project.write(path, text)


def mode(path: str, bits: int) -> Plant:
    return lambda project: (project.root / path).chmod(bits)


def tool(**changes: Any) -> Plant:
    return lambda project: greet(project, **changes)


def arguments(**properties: Any) -> Plant:
    return lambda project: greet_with(project, **properties)


def schema(**fields: Any) -> Plant:
    return lambda project: greet(project, inputSchema={"type": "object", "properties": {"a": TEXT}, **fields})


def prompt(**changes: Any) -> Plant:
    return lambda project: described(project, "prompts/letter", {"description": "A letter", **changes})


def registered(project: ProjectBuilder) -> None:
    content = {"version": 1, "tools": [{"name": "greet", "path": "absent.sh"}]}
    project.write("server.d/register.json", json.dumps(content, indent=1)).chmod(0o644)


def second_greet(project: ProjectBuilder) -> None:
    project.program("tools/other", "echo")
    described(project, "tools/other", {"name": "greet", "description": "Another", "inputSchema": {"type": "object"}})


def file_for_folder(project: ProjectBuilder) -> None:
    (project.root / "tools").rename(project.root / "my-tools")
    project.write("tools", "")


def link_out(project: ProjectBuilder) -> None:
    (project.root / "tools" / "ls").symlink_to("/bin/ls")


def many_tools(project: ProjectBuilder) -> None:
    for number in range(130):
        project.program(f"tools/t{number}", "#!/bin/sh\n")
        described(project, f"tools/t{number}", {"description": f"Tool {number}", "inputSchema": {"type": "object"}})


def twin(project: ProjectBuilder, name: str, description: str) -> None:
    project.program(f"tools/{name}", "#!/bin/sh\n")
    described(project, f"tools/{name}", {"description": description, "inputSchema": {"type": "object"}})


COMMENT = "#!/usr/bin/env python3\n{}\nprint(1)\n"
SDK = 'import os, sys\nsys.path.insert(0, os.environ["MCP_SDK"])\n'
PYTHON = '#!/usr/bin/env python3\n# mcp: {"description": "Counts words", "inputSchema": {"type": "object"}}\n'
ARGUMENTS = "#!/bin/sh\n# Says a text.\n# @arg {}\n# @arg b  Another text\n"
FUNCTION = '#!/usr/bin/env python3\n"""Calls f."""\nimport mcp_tool\n@mcp_tool.tool\ndef f({}):\n    """Does it."""\n'
CHANGES = """#!/usr/bin/env python3
import mcp_tool
n = 0
seen: list = []
users = {{}}
@mcp_tool.tool{}
def f() -> str:
    \"\"\"Does it.\"\"\"
"""
MARK = "import mcp_tool\n@mcp_tool.tool\n"
ALONE = PYTHON.replace("env python3", "env -S python3 -I")
GREET_FILE, COUNT_FILE = "tools/greet.meta.json", "tools/count.py"
ROOTS_FILE = "config/roots.json"

BY_VALIDATE = [
    # Variables
    Fault("env-unseen", script(COUNT_FILE, PYTHON + "import os\nprint(os.environ['API_KEY'])\n"), "env", COUNT_FILE, 4,
          "warning"),
    Fault("words", script("tools/say.sh", ARGUMENTS.format("a  A") + 'echo "$1"\n'), "command-line", "tools/say.sh", 5,
          "warning"),
    Fault("env-unfit", tool(env=["LD_PRELOAD"]), "env", GREET_FILE, 24, "warning"),
    Fault("env-comment", script("tools/say.sh", ARGUMENTS.format("a  A\n# @env API-KEY")), "env", "tools/say.sh", 4,
          "warning"),
    # The server
    Fault("server-json", written("server.d/server.meta.json", '{\n "name" "a"\n}'), "json-syntax",
          "server.d/server.meta.json", 2),
    Fault("server-name", written("server.d/server.meta.json", "{}"), "no-name", "server.d/server.meta.json"),
    Fault("server-title", written("server.d/server.meta.json", '{"name": "a",\n "title": 5}'), "field",
          "server.d/server.meta.json", 2, "warning"),
    Fault("server-icon", written("server.d/server.meta.json", '{"name": "a",\n "icons": [{"src": "no.png"}]}'), "icon",
          "server.d/server.meta.json", 2, "warning"),
    Fault("server-missing", lambda project: project.remove("server.d/server.meta.json"), "no-server-meta",
          "server.d/server.meta.json", None, "warning"),
    Fault("server-double", written("server.d/server.meta.json", '{"name": "a",\n "name": "b"}'), "json-double",
          "server.d/server.meta.json", 2, "warning"),
    Fault("env-line", written("server.d/env", "A=1\nnot a line\n"), "env", "server.d/env", 2, "warning"),
    Fault("roots-json", written(ROOTS_FILE, '{"roots":\n [}'), "json-syntax", ROOTS_FILE, 2),
    Fault("roots-list", written(ROOTS_FILE, '{"roots": {}}'), "field", ROOTS_FILE, 1),
    Fault("roots-array", written(ROOTS_FILE, "[]"), "not-an-object", ROOTS_FILE),
    Fault("roots-absent", written(ROOTS_FILE, '{"roots": [{"path": "nowhere"}]}'), "root", ROOTS_FILE, None, "warning"),
    Fault("roots-number", written(ROOTS_FILE, '{"roots": [5]}'), "root", ROOTS_FILE, None, "warning"),
    Fault("hook-syntax", written("server.d/policy.sh", "true\nif then\n"), "syntax", "server.d/policy.sh", 2),
    Fault("hook-writable", mode("server.d/policy.sh", 0o666), "writable", "server.d/policy.sh"),
    Fault("hook-fails", written("server.d/env.sh", "exit 3\n"), "hook", "server.d/env.sh"),
    Fault("hook-no-script", written("server.d/register.sh", "true\n"), "not-executable", "server.d/register.sh"),
    Fault("env-writable", mode("server.d/env", 0o666), "writable", "server.d/env"),
    Fault("register-json", written("server.d/register.json", '{"version": 1,\n "tools": [}'), "json-syntax",
          "server.d/register.json", 2),
    Fault("register-version", written("server.d/register.json", '{\n "version": 2}'), "field",
          "server.d/register.json", 2),
    Fault("register-key", written("server.d/register.json", '{\n "version": 1,\n "completion": []}'), "unknown-field",
          "server.d/register.json", 3),
    Fault("register-completion", written("server.d/register.json",
          '{"version": 1, "completions": [\n {"name": "letter",\n  "path": "absent.sh"}]}'), "path",
          "server.d/register.json", 3),
    Fault("byte-order-mark", lambda project: project.write("tools/count.py", "\ufeff" + COUNT).chmod(0o755),
          "byte-order-mark", "tools/count.py", 1),
    Fault("timeout", tool(timeout=5), "unknown-field", GREET_FILE, 24, "warning"),
    Fault("parameters", tool(parameters={}), "unknown-field", GREET_FILE, 24, "warning"),
    Fault("required-in-property", arguments(name={**TEXT, "required": True}), "schema-invalid", GREET_FILE, 10),
    Fault("register-path", registered, "path", "server.d/register.json", 6),
    # Scripts
    Fault("bash", script("tools/greet.sh", "echo\nif then\nfi\n"), "syntax", "tools/greet.sh", 3),
    Fault("sh", script("tools/add", "#!/bin/sh\nif then\n"), "syntax", "tools/add", 2),
    Fault("python", script(COUNT_FILE, PYTHON + "x = (\n"), "syntax", COUNT_FILE, 3),
    Fault("node", script("tools/add", "#!/usr/bin/env node\nlet x = ;\n"), "syntax", "tools/add", 2),
    Fault("provider-syntax", lambda project: project.provider("table.sh", "case\n"), "syntax", "providers/table.sh", 2),
    Fault("completion-syntax", written("prompts/letter.completion.sh", "if then\n"), "syntax",
          "prompts/letter.completion.sh", 1),
    Fault("prompt-syntax", script("prompts/say", "#!/bin/bash\n( \n"), "syntax", "prompts/say", 3),
    Fault("crlf-first-line", script("tools/add", "#!/bin/sh\r\necho\r\n"), "crlf", "tools/add", 1),
    Fault("crlf-later", script("tools/greet.sh", "#!/bin/bash\necho\necho\r\n"), "crlf", "tools/greet.sh", 3),
    Fault("no-interpreter", script("tools/add", "#!/no/such/program\n"), "interpreter", "tools/add", 1),
    Fault("empty", lambda project: project.write("tools/greet.sh", "\n").chmod(0o755), "empty", "tools/greet.sh", None,
          "warning"),
    Fault("empty-plain", lambda project: project.write("tools/add", "").chmod(0o755), "empty", "tools/add", None,
          "warning"),
    Fault("empty-provider", lambda project: project.write("providers/table.sh", "").chmod(0o755), "empty",
          "providers/table.sh", None, "warning"),
    Fault("not-on-path", script("tools/add", "#!/usr/bin/env no-such-program\n"), "interpreter", "tools/add", 1),
    Fault("no-first-line", lambda project: project.write("tools/add", "echo\n").chmod(0o755), "no-shebang",
          "tools/add", None, "warning"),
    Fault("writable", mode("tools/greet.sh", 0o757), "writable", "tools/greet.sh"),
    Fault("not-executable", mode("tools/greet.sh", 0o644), "not-executable", "tools/greet.sh", None, "warning"),
    Fault("sdk-not-found", script(COUNT_FILE, ALONE + "import mcp_tool\n"), "sdk-import", COUNT_FILE, 3),
    Fault("sdk-too-late", script(COUNT_FILE, ALONE + "import mcp_tool\n" + SDK), "sdk-import", COUNT_FILE, 3),
    Fault("sdk-name", script(COUNT_FILE, PYTHON + SDK + "from mcp_tool import argz\n"), "sdk-name", COUNT_FILE, 5),
    Fault("import", script(COUNT_FILE, PYTHON + "import os\nimport no_such_module.part\n"), "import", COUNT_FILE, 4),
    Fault("function-type", script("tools/f.py", FUNCTION.format("a: Foreign")), "open-type", "tools/f.py", 5,
          "warning"),
    Fault("function-result", script("tools/f.py", FUNCTION.replace("):", ") -> Foreign:").format("a: int")),
          "open-type", "tools/f.py", 5, "warning"),
    Fault("functions", script("tools/f.py", PYTHON + MARK + "def f(): 0\n" + MARK + "def g(): 0\n"), "functions",
          "tools/f.py", 2),
    Fault("function-large", script("tools/f.py", PYTHON + MARK + "def f(): 0\n" + "#" * 140_000), "unread",
          "tools/f.py", 1, "warning"),
    Fault("function-option", script("tools/f.py", FUNCTION.format("a: int").replace("l\ndef", "l(titel=1)\ndef")),
          "option", "tools/f.py", 4, "warning"),
    Fault("link", link_out, "link", "tools/ls"),
    Fault("file-for-folder", file_for_folder, "not-a-folder", "tools"),
    # Descriptions
    Fault("json", written(GREET_FILE, '{"description":\n "a"\n "b"}'), "json-syntax", GREET_FILE, 3),
    Fault("yaml", written("tools/add.meta.yaml", "name: add\ndescription: [a\ninputSchema: {}\n"), "yaml-syntax",
          "tools/add.meta.yaml", 3),
    Fault("comment", script(COUNT_FILE, COMMENT.format('# mcp: {"description" "x"}')), "json-syntax", COUNT_FILE, 2),
    Fault("yaml-comment", script(COUNT_FILE, COMMENT.format("# mcp:\n#   description: x\n#    title: y")),
          "yaml-syntax", COUNT_FILE, 4),
    Fault("yaml-comment-field", script(COUNT_FILE, COMMENT.format("# mcp:\n#   description: x\n#   timeoutSecs: soon")),
          "field", COUNT_FILE, 4),
    Fault("yaml-comment-annotation", script(COUNT_FILE, COMMENT.format(
        "# mcp:\n#   description: x\n#   inputSchema: {type: object}\n#   annotations:\n#     readOnlyHint: 1")),
        "annotation", COUNT_FILE, 6, "warning"),
    Fault("yaml-comment-double", script(COUNT_FILE, COMMENT.format(
        "# mcp:\n#   description: x\n#   inputSchema: {type: object}\n#   description: y")),
        "yaml-double", COUNT_FILE, 5, "warning"),
    Fault("yaml-comment-object", script(COUNT_FILE, COMMENT.format("# mcp:\n#   [1]")), "not-an-object", COUNT_FILE, 2),
    Fault("yaml-comment-empty", script(COUNT_FILE, COMMENT.format("# mcp:")), "comment-empty", COUNT_FILE, 2),
    Fault("yaml-double", written("tools/add.meta.yaml",
        "description: Adds\ninputSchema:\n  type: object\n  properties:\n"
        "    a: {type: number, description: A}\n    a: {type: string, description: B}\n"),
        "yaml-double", "tools/add.meta.yaml", 6, "warning"),
    Fault("arg-syntax", script("tools/say.sh", ARGUMENTS.format("a?  A text")), "arg-syntax", "tools/say.sh", 3,
          "warning"),
    Fault("arg-default", script("tools/say.sh", ARGUMENTS.format("a=x int  A number")), "arg-value", "tools/say.sh", 3,
          "warning"),
    Fault("arg-type", script("tools/say.sh", ARGUMENTS.format("a float A number")), "arg-type", "tools/say.sh", 3,
          "warning"),
    Fault("arg-double", script("tools/say.sh", ARGUMENTS.format("b  A text")), "arg-double", "tools/say.sh", 4,
          "warning"),
    Fault("arg-schema", script("tools/say.sh", ARGUMENTS.format("a  A text") + "# mcp:\n#   inputSchema: {}\n"),
          "arg-schema", "tools/say.sh", 6, "warning"),
    Fault("not-utf8", lambda project: (project.root / GREET_FILE).write_bytes(b'{"description":\n "\xff"}'), "not-utf8",
          GREET_FILE, 2),
    Fault("no-object", written(GREET_FILE, "[]"), "not-an-object", GREET_FILE),
    Fault("double-member", written(GREET_FILE, '{"description": "Greets",\n"inputSchema": {},\n"description": "x"}'),
          "json-double", GREET_FILE, 3, "warning"),
    Fault("lonely", written("tools/absent.meta.json", "{}"), "lonely", "tools/absent.meta.json"),
    Fault("same-name", second_greet, "double", "tools/other"),
    Fault("unknown-field", tool(descripton="Greets"), "unknown-field", GREET_FILE, 24, "warning"),
    Fault("wrong-type", tool(description=5), "field", GREET_FILE, 3),
    Fault("annotation", tool(annotations={"readOnlyHint": "yes"}), "annotation", GREET_FILE, 22, "warning"),
    Fault("icon", tool(icons=[{"src": "absent.png"}]), "icon", GREET_FILE, 24, "warning"),
    Fault("name", tool(name="gre.et"), "name", GREET_FILE, 2, "warning"),
    Fault("name-of-65", tool(name="g" * 65), "name", GREET_FILE, 2, "warning"),
    Fault("no-description", tool(description=None), "no-description", GREET_FILE, None, "warning"),
    Fault("no-schema", tool(inputSchema=None), "no-schema", GREET_FILE, None, "warning"),
    Fault("described-data", written("tools/add.txt", "data"), "not-executable", "tools/add.txt", None, "warning"),
    # Schemas
    Fault("required", schema(required=["b"]), "required", GREET_FILE, 13, "warning"),
    Fault("required-inside", arguments(a={**TEXT, "type": "object", "required": ["x"], "properties": {}}), "required",
          GREET_FILE, 11, "warning"),
    Fault("root-type", schema(type="array"), "schema-root", GREET_FILE, 4),
    Fault("unknown-type", arguments(a={**TEXT, "type": "strin"}), "schema-type", GREET_FILE, 8),
    Fault("pattern", arguments(a={**TEXT, "pattern": "("}), "schema-pattern", GREET_FILE, 10),
    Fault("slow-pattern", arguments(a={**TEXT, "pattern": "^(a+)+$"}), "slow-pattern", GREET_FILE, 4, "warning"),
    Fault("ref-nowhere", arguments(a={"$ref": "#/$defs/b"}), "schema-ref", GREET_FILE, 8),
    Fault("ref-elsewhere", arguments(a={"$ref": "https://example.org/b"}), "schema-ref", GREET_FILE, 8),
    Fault("dialect", schema(**{"$schema": "https://example.org/draft"}), "schema-dialect", GREET_FILE, 12),
    Fault("invalid-schema", arguments(a={**TEXT, "minLength": "3"}), "schema-invalid", GREET_FILE, 10),
    Fault("default", arguments(a={**TEXT, "default": 5}), "default", GREET_FILE, 10, "warning"),
    # Prompts and resources
    Fault("placeholder", written("prompts/letter.txt", "Dear\n{{too}}\n"), "placeholder", "prompts/letter.txt", 2,
          "warning"),
    Fault("prompt-arguments", prompt(arguments=[{"nam": "to"}]), "argument", "prompts/letter.meta.json", 3),
    Fault("prompt-role", prompt(role="system", arguments=[{"name": "to"}]), "role", "prompts/letter.meta.json", 3,
          "warning"),
    Fault("prompt-double", prompt(arguments=[{"name": "to"}, {"name": "to"}]), "double", "prompts/letter.meta.json", 3),
    Fault("both-addresses", lambda project: described(project, "resources/x", {"uri": "a://b", "uriTemplate": "a://{b}"}),
          "uri", "resources/x.meta.json", 3),
    Fault("no-address", lambda project: described(project, "resources/x", {"name": "x"}), "uri",
          "resources/x.meta.json"),
    Fault("template", lambda project: described(project, "resources/x", {"uriTemplate": "a://{b"}), "uri",
          "resources/x.meta.json", 2),
    Fault("provider", lambda project: described(project, "resources/x", {"uri": "engine://b"}), "no-provider",
          "resources/x.meta.json", 2),
    Fault("provider-writable", mode("providers/table.sh", 0o777), "writable", "providers/table.sh"),
    Fault("absent-file", lambda project: described(project, "resources/x", {"uri": "file://./absent.txt"}),
          "not-readable", "resources/x.meta.json", 2, "warning"),
    Fault("app", lambda project: described(project, "ui/a/ui", {"template": "no-such"}), "app",
          "ui/a/ui.meta.json", 2),
]  # fmt: skip

BY_LINT = [
    *(
        Fault(f"top-level-{key}", schema(**{key: [{"required": ["a"]}]}), "top-level", GREET_FILE, 12)
        for key in ("oneOf", "anyOf", "allOf")
    ),
    Fault("arg-description", script("tools/say.sh", ARGUMENTS.format("a")), "argument-description", "tools/say.sh", 3,
          "warning"),
    Fault("ref-recurses", arguments(a={**TEXT, "items": {"$ref": "#/properties/a"}}), "ref", GREET_FILE, 11),
    Fault("picture-alone", script("tools/greet.sh", "mcp_result_image \\\n  a.png\n"), "result-text",
          "tools/greet.sh", 2),
    Fault("link-alone", script("tools/greet.sh", "if true; then\n  mcp_result_resource_link a://b b\nfi\n"),
          "result-text", "tools/greet.sh", 3),
    Fault("block-alone", script("tools/count.py", COUNT + "import mcp_tool as m\nm.result(m.image_block('a'))\n"),
          "result-text", "tools/count.py", 11),
    Fault("block-returned", script("tools/count.py", COUNT + "def f():\n    return [image_block('a')]\n"),
          "result-text", "tools/count.py", 11),
    Fault("state-global", script("tools/f.py", CHANGES.format("") + "    global n\n    n += 1\n"), "state-lost",
          "tools/f.py", 10),
    Fault("state-list", script("tools/f.py", CHANGES.format("") + "    seen.append(1)\n"), "state-lost",
          "tools/f.py", 9),
    Fault("state-member", script("tools/f.py", CHANGES.format("") + "    users['a'].age = 1\n"), "state-lost",
          "tools/f.py", 9),
    Fault("secret-shared", script("tools/f.py", CHANGES.format("(stays='server')") + "    users[1] = auth()\n"),
          "secret-shared", "tools/f.py", 9),
    *(
        Fault(f"task-{number}", tool(**fields), "task-fields", GREET_FILE, 23 + len(fields))
        for number, fields in enumerate(
            (
                {"task": "always", "taskAfterSecs": 5},
                {"task": "auto", "taskBegins": "script", "taskAfterSecs": 5},
                {"task": "never", "taskSurvivesClient": True},
            )
        )
    ),
    Fault("boolean-schema", arguments(a=True), "boolean-schema", GREET_FILE, 7),
    Fault("no-items", arguments(a={**TEXT, "type": "array"}), "array-items", GREET_FILE, 8),
    Fault("types", arguments(a={**TEXT, "type": ["string", "null"]}), "types", GREET_FILE, 8),
    Fault("enum-empty", arguments(a={**TEXT, "enum": ["x"], "items": {"enum": [1]}}), "enum", GREET_FILE, 14),
    Fault("argument-description", arguments(a={"type": "string"}), "argument-description", GREET_FILE, 7),
    Fault("argument-type", arguments(a={"description": "Anything"}), "argument-type", GREET_FILE, 7),
    Fault("argument-name", arguments(**{"a b": TEXT}), "argument-name", GREET_FILE, 7),
    Fault("arguments-many", arguments(**{f"a{n}": TEXT for n in range(101)}), "arguments-many", GREET_FILE, 6),
    Fault("name-long", tool(name="g" * 60), "name-long", GREET_FILE, 2),
    Fault("name-start", tool(name="2greet"), "name-start", GREET_FILE, 2),
    Fault("description-long", tool(description="Greets. " * 200), "description-long", GREET_FILE, 3),
    Fault("description-is-name", tool(description="greet"), "description-short", GREET_FILE, 3),
    Fault("titles", tool(title="A", annotations={"title": "B"}), "title", GREET_FILE, 22),
    Fault("contradiction", tool(annotations={"readOnlyHint": True, "destructiveHint": True}), "annotations",
          GREET_FILE, 23),
    Fault("deletes", tool(name="delete_all"), "annotations", GREET_FILE, 22),
    Fault("output-root", tool(outputSchema={"type": "array", "items": {"type": "string"}}), "output-root",
          GREET_FILE, 25),
    Fault("icon-url", tool(icons=[{"src": "http://example.org/a.png"}]), "icon-url", GREET_FILE, 26),
    Fault("prompt-description", prompt(description=None, arguments=[{"name": "to", "description": "Who"}]),
          "prompt-description", "prompts/letter.meta.json"),
    Fault("prompt-argument", prompt(arguments=[{"name": "to"}]), "argument-description", "prompts/letter.meta.json", 4),
    Fault("prompt-name", prompt(name="a letter", arguments=[{"name": "to", "description": "Who"}]), "prompt-name",
          "prompts/letter.meta.json", 3),
    Fault("template-description", lambda project: described(project, "resources/row", {"uriTemplate": "table://{id}"}),
          "template-description", "resources/row.meta.json"),
    Fault("icon-size", tool(icons=[{"src": "https://example.org/a.png", "sizes": ["big"]}]), "icon-size",
          GREET_FILE, 27),
    Fault("meta-prefix", tool(_meta={"io.modelcontextprotocol/mine": 1}), "meta-prefix", GREET_FILE, 25),
    Fault("mime-type", lambda project: described(project, "resources/note", {"mimeType": "text"}), "mime-type",
          "resources/note.meta.json", 2),
    Fault("many-tools", many_tools, "list-long", None),
    Fault("names-alike", lambda project: twin(project, "Greet", "Something else"), "names-alike", GREET_FILE, 2),
    Fault("texts-alike", lambda project: twin(project, "other", "Greets somebody by name"), "texts-alike",
          "tools/other.meta.json", 2),
    Fault("instructions", written("server.d/server.instructions.md", "Do. " * 600), "instructions-long",
          "server.d/server.instructions.md"),
]  # fmt: skip


def name_of(fault: Fault) -> str:
    return fault.name


def require_found(fault: Fault, report: Any) -> None:
    found = faults_in(report)
    assert all(each.fix and each.code for each in found), found
    place = (fault.level, fault.code, fault.file, fault.line)
    places = [(each.level, each.code, each.file, each.position.line if each.position else None) for each in found]
    assert places == [place]


@pytest.mark.parametrize("fault", BY_VALIDATE, ids=name_of)
def test_validate_finds_it(correct: ProjectBuilder, fault: Fault) -> None:
    if fault.name == "node":
        require_program("node")
    fault.plant(correct)
    for name in ("register.json", "register.sh", "env.sh"):
        if (correct.root / "server.d" / name).exists():
            os.chmod(correct.root / "server.d" / name, 0o644)

    require_found(fault, validated(correct))


@pytest.mark.parametrize("fault", BY_LINT, ids=name_of)
def test_lint_finds_it_and_validate_does_not(correct: ProjectBuilder, fault: Fault) -> None:
    fault.plant(correct)

    require_found(fault._replace(level="warning"), linted(correct))
    assert faults_in(validated(correct)) == []


@pytest.mark.parametrize("fault", BY_VALIDATE, ids=name_of)
def test_lint_does_not_tell_it_again(correct: ProjectBuilder, fault: Fault) -> None:
    if fault.name == "env-writable":
        return  # it cannot be opened
    fault.plant(correct)

    assert not {each.code for each in faults_in(linted(correct))} & {fault.code}


def test_a_correct_project_gives_no_finding(correct: ProjectBuilder) -> None:
    for report in (validated(correct), linted(correct)):
        assert {finding.level for finding in report.findings} == {"ok"}, faults_in(report)
        assert report.findings


def test_there_are_enough_of_them() -> None:
    assert len(BY_VALIDATE) + len(BY_LINT) >= 60
    assert len({fault.name for fault in (*BY_VALIDATE, *BY_LINT)}) == len(BY_VALIDATE) + len(BY_LINT)


@pytest.mark.parametrize(
    ("name", "clients"),
    [
        ("gre.et", "OpenAI, Anthropic and Amazon Bedrock reject"),
        ("g" * 65, "OpenAI, Amazon Bedrock and Gemini reject"),
        (".", "OpenAI, Anthropic, Amazon Bedrock and Gemini reject"),
    ],
)
def test_lint_says_which_clients_refuse_a_name(correct: ProjectBuilder, name: str, clients: str) -> None:
    greet(correct, name=name)

    (found,) = faults_in(linted(correct))
    assert (found.code, found.position.line if found.position else None) == ("name-refused", 2)
    assert clients in found.message
    assert ("MCPGREEN_REPLACE_DOTS" in str(found.fix)) == ("." in name)


def test_a_name_whose_dots_are_replaced_is_refused_by_nobody(correct: ProjectBuilder) -> None:
    correct.write("server.d/env", "MCPGREEN_REPLACE_DOTS=true\n")
    greet(correct, name="gre.et")

    assert faults_in(linted(correct)) == faults_in(validated(correct)) == []


def test_a_picture_or_link_with_a_text_is_no_fault(correct: ProjectBuilder) -> None:
    shell = "mcp_result_image a.png \\\n  --text 'A map'\n# mcp_result_image a.png\n"
    correct.program("tools/greet.sh", shell)
    python = "mcp_tool.result('A map', image_block('a'))\nmcp_tool.result(image_block('a'), structured={})\n"
    correct.program("tools/count.py", COUNT + "import mcp_tool\nfrom mcp_tool import image_block\n" + python)

    assert faults_in(linted(correct)) == []


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ("", "n = 1\n    seen.sort()\n    print(users['a'])"),
        ("", "users = {}\n    users['a'] = 1\n    return users.pop('a')"),
        ('(stays="server")', "users['key'] = 1"),
        ('(stays="session")', "users['token'] = mcp_tool.auth()"),
    ],
)
def test_state_in_the_right_place_is_no_fault(correct: ProjectBuilder, options: str, body: str) -> None:
    correct.program("tools/f.py", f"{CHANGES.format(options)}    {body}\n")

    assert faults_in(linted(correct)) == []


def test_a_reference_that_is_written_out_is_no_fault(correct: ProjectBuilder) -> None:
    greet_with(correct, a={"$ref": "#/properties/b"}, b=TEXT)

    assert faults_in(linted(correct)) == []
