"""`mcpgreen wrap --openapi`: a document of our own, its service on loopback, and the tools through the real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcpgreen.cli.clients.launch import shell_words
from mcpgreen.cli.wrapping.openapi import MAX_SCHEMAS, Document, Operation
from mcpgreen.cli.wrapping.tool_file import Blueprint
from tests.cli.test_commands import mcpgreen
from tests.cli.wrapping.test_wrap import Done, text_of
from tests.support.project import ProjectBuilder
from tests.support.terminal import at_terminal
from tests.support.wire import Wire, clean_environment

Json = dict[str, Any]

DOCUMENT = """
openapi: 3.0.3
info: {title: Orchard API, version: "1"}
servers: [{url: "SERVER/{stage}", variables: {stage: {default: v1}}}]
security: [{apiKey: []}]
paths:
  /trees/{treeId}:
    parameters:
      - {name: treeId, in: path, required: true, schema: {type: string}, description: Which tree}
    get:
      operationId: getTree
      summary: Look at a tree
      parameters:
        - {name: part, in: query, schema: {type: array, items: {type: string, enum: [leaf, root]}}}
        - {name: near, in: query, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: x-key, in: header, schema: {type: string}}
        - {name: Host, in: header, schema: {type: string}}
        - {name: where, in: query, style: deepObject, schema: {type: object}}
    delete: {operationId: cutTree, summary: Cut it down!, description: Really?, security: [{login: []}]}
  /trees:
    post:
      operationId: plant.tree
      description: Plant a tree. It grows.
      security: [{bearerAuth: []}, {}]
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: '#/components/schemas/Tree'}}}
  /wälder/{class}: {get: {operationId: import, parameters: [{name: "for", in: query, content: {application/json: {}}}]}}
  "@127.0.0.2/evil": {get: {}}
  /moved: {get: {security: [{queryKey: []}]}}
  /a/{treeId}: {get: {operationId: token, security: [{bearerAuth: []}]}}
  /b/{treeId}: {get: {operationId: query, security: [{queryKey: []}]}}
  /c/{treeId}: {get: {operationId: cookie, security: [{session: []}]}}
components:
  securitySchemes:
    apiKey: {type: apiKey, in: header, name: X-Key}
    queryKey: {type: apiKey, in: query, name: key}
    session: {type: apiKey, in: cookie, name: session}
    login: {type: http, scheme: basic}
    bearerAuth: {type: http, scheme: bearer}
  schemas:
    Tree:
      type: object
      required: [id, kind]
      properties:
        id: {type: integer, readOnly: true}
        kind: {type: string, example: oak}
        note: {type: string, nullable: true}
        height: {type: number, minimum: 0, exclusiveMinimum: true}
        children: {type: array, items: {$ref: '#/components/schemas/Tree'}}
"""
KEYS = {
    "REST_ORCHARD_API_KEY": "key-1",
    "REST_ORCHARD_QUERY_KEY": "query/1",
    "REST_ORCHARD_LOGIN": "ada:word",
    "REST_ORCHARD_SESSION": "cookie-1",
    "REST_ORCHARD_BEARER_AUTH": "bearer-1",
}


class Orchard(BaseHTTPRequestHandler):
    """Answers with what it was asked, and with failures where the path asks for them."""

    other = ""
    keys: tuple[str | None, ...] = ()  # of the last request

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        Orchard.keys = self.headers["X-Key"], self.headers["Authorization"]
        if self.path.startswith("/openapi.yaml"):
            self._send(200, DOCUMENT.replace("SERVER", ""))
        elif "/moved" in self.path:
            self.send_response(302)
            self.send_header("Location", self.other)
            self.end_headers()
        elif urlsplit(self.path).path.endswith("/closed"):
            self._send(401, "no")
        elif self.path.endswith("/ill"):
            self._send(418, f"the tree is ill for {self.headers['X-Key']}")
        elif self.path.endswith("/huge"):
            self._send(200, "x" * 1_500_000)
        else:
            names = ("X-Key", "X-Trace", "Authorization", "Content-Type")
            headers = {name: self.headers[name] for name in names if self.headers[name]}
            self._send(200, json.dumps([self.command, self.path, headers, body]))

    do_GET = do_POST = do_DELETE = _answer

    def _send(self, status: int, text: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture(scope="module")
def orchard() -> Iterator[str]:
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Orchard) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    Orchard.other = f"http://127.0.0.1:{servers[1].server_port}/elsewhere"
    yield f"http://127.0.0.1:{servers[0].server_port}"
    for server in servers:
        server.shutdown()
        server.server_close()


def wrap(project: ProjectBuilder, *words: str) -> Done:
    return mcpgreen("wrap", "--openapi", *words, cwd=project.root)


@pytest.fixture(scope="module")
def wrapped(orchard: str, tmp_path_factory: pytest.TempPathFactory) -> ProjectBuilder:
    project = ProjectBuilder(tmp_path_factory.mktemp("orchard"))
    project.write("openapi.yaml", DOCUMENT.replace("SERVER", orchard))
    done = wrap(project, "openapi.yaml")
    assert done.returncode == 0, done.stderr
    assert "8 tools from openapi.yaml.\n" in done.stderr
    assert f"To try a tool, set {', '.join(sorted(KEYS))} in your shell." in done.stderr
    assert f"run {shell_words(clean_environment())} config --client CLIENT --install --env REST_" in done.stderr
    for words in ((), ("--dry-run",)):
        assert "keys" not in wrap(project, "openapi.yaml", *words).stderr
    return project


def described(project: ProjectBuilder, name: str) -> Json:
    return json.loads(project.read(f"tools/{name}.meta.json"))  # type: ignore[no-any-return]


def test_names_descriptions_hints_and_keys_come_from_the_document(wrapped: ProjectBuilder) -> None:
    tree, plant, cut = (described(wrapped, name) for name in ("getTree", "plant-tree", "cutTree"))

    assert tree["description"] == "Look at a tree. (GET /trees/{treeId})"
    assert plant["description"] == "Plant a tree. It grows. (POST /trees)"
    assert cut["description"] == "Cut it down! Really? (DELETE /trees/{treeId})"
    assert tree["annotations"] == {"readOnlyHint": True, "openWorldHint": True}
    assert cut["annotations"] == {"destructiveHint": True, "openWorldHint": True}
    assert [each["env"] for each in (tree, plant, cut)] == [
        ["REST_ORCHARD_API_KEY!"],
        ["REST_ORCHARD_BEARER_AUTH"],
        ["REST_ORCHARD_LOGIN!"],
    ]
    assert described(wrapped, "GET-moved")["description"] == "GET /moved"


def test_parameters_and_body_become_arguments(wrapped: ProjectBuilder) -> None:
    schema = described(wrapped, "getTree")["inputSchema"]
    body = described(wrapped, "plant-tree")["inputSchema"]["properties"]["body"]

    assert (list(schema["properties"]), schema["required"]) == (
        ["treeId", "part", "near", "X_Trace", "where"],
        ["treeId"],
    )
    assert schema["properties"]["treeId"] == {"type": "string", "description": "Which tree"}
    assert body == {
        "type": "object",
        "description": "The body of the request.",
        "properties": {
            "kind": {"type": "string"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "height": {"type": "number", "minimum": 0},
            "children": {"type": "array", "items": {}},
        },
        "required": ["kind"],
    }


@pytest.fixture
def served(wrapped: ProjectBuilder) -> Iterator[Wire]:
    allowed = {"MCPBASH_TOOL_ENV_MODE": "allowlist", "MCPBASH_TOOL_ENV_ALLOWLIST": ",".join(KEYS)}
    with Wire(wrapped.root, env={**KEYS, **allowed}) as wire:
        wire.handshake()
        yield wire


def test_the_tools_call_the_service(served: Wire, wrapped: ProjectBuilder) -> None:
    def call(name: str, **arguments: Any) -> tuple[bool, str]:
        result = served.call_tool(name, arguments)
        return result["isError"], text_of(result)

    def asked(name: str, **arguments: Any) -> list[Any]:
        is_error, text = call(name, **arguments)
        assert not is_error, text
        return json.loads(text)  # type: ignore[no-any-return]

    path = "/v1/trees/a%2Fb%20%3F?part=leaf&part=root&near=1%2C2&where%5Bage%5D=3"
    arguments = {"treeId": "a/b ?", "part": ["leaf", "root"], "near": [1, 2], "X_Trace": "t", "where": {"age": 3}}
    assert asked("getTree", **arguments) == ["GET", path, {"X-Key": "[key]", "X-Trace": "t"}, ""]
    assert Orchard.keys == ("key-1", None)
    headers = {"Authorization": "Bearer [key]", "Content-Type": "application/json"}
    planted = asked("plant-tree", body={"kind": "ä", "height": None, "note": None})
    assert planted == ["POST", "/v1/trees", headers, '{"kind": "\\u00e4", "note": null}']
    assert Orchard.keys == (None, "Bearer bearer-1")
    assert asked("cutTree", treeId="x")[1:3] == ["/v1/trees/x", {"Authorization": "Basic [key]"}]
    assert Orchard.keys == (None, "Basic YWRhOndvcmQ=")
    assert asked("import", **{"class": "x", "for": [1]})[1] == "/v1/w%C3%A4lder/x?for=%5B1%5D"

    assert call("getTree", treeId="ill") == (True, "GET failed: HTTP 418 I'm a Teapot.\nthe tree is ill for [key]")
    sent = "The key (sent in the header Authorization as Basic USER:PASSWORD) comes from REST_ORCHARD_LOGIN, which is "
    assert f"Unauthorized.\n{sent}set: check its value. To change it: mcpgreen" in call("cutTree", treeId="closed")[1]
    for name, way in (
        ("getTree", "header X-Key"),
        ("token", "header Authorization as Bearer VALUE"),
        ("query", "query parameter key"),
        ("cookie", "cookie session"),
    ):
        assert f"The key (sent in the {way}) comes from REST_ORCHARD_" in call(name, treeId="closed")[1]
    assert call("getTree", treeId="..")[1] == "treeId must not be empty, '.' or '..': it is a part of the path."
    assert call("getTree", treeId="x", X_Trace="a\r\nEvil: b") == (
        True,
        "A value has characters that a header cannot have.",
    )
    is_error, text = call("GET-moved")
    assert is_error and "redirects to another server, which is not followed: 127.0.0.1" in text and "query" not in text
    is_error, text = call("getTree", treeId="huge")
    assert text.endswith("xx\n[Only the first 1000000 bytes are shown.]") and len(text) < 1_000_100


def test_without_its_key_a_tool_says_which_variable_to_set(wrapped: ProjectBuilder) -> None:
    done = mcpgreen("run-tool", "getTree", "--args", '{"treeId": "x"}', "--project-root", str(wrapped.root))

    assert "REST_ORCHARD_API_KEY" in done.stdout
    assert "Set it in this shell (export REST_ORCHARD_API_KEY=...), and run the tool again." in done.stderr


def test_a_document_at_a_url_may_name_its_server_relatively(project: ProjectBuilder, orchard: str) -> None:
    done = wrap(project, f"{orchard}/openapi.yaml?token=t-1", "--only", "getTree,GET /moved", "--name", "orchard")

    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4), done.stderr
    assert f'"{orchard}/v1/trees/{{treeId}}"' in project.read("tools/orchard-getTree.py")
    assert "t-1" not in project.read("tools/orchard-getTree.py") + done.stderr


def test_a_service_that_cannot_be_reached_is_named(project: ProjectBuilder) -> None:
    project.write("openapi.json", document(servers=[{"url": "http://127.0.0.1:1/v1"}]))
    assert wrap(project, "openapi.json").returncode == 0
    done = mcpgreen("run-tool", "a", "--plain", "--project-root", str(project.root))

    assert "GET failed: the service at 127.0.0.1:1 cannot be reached: " in done.stdout


def document(**fields: Any) -> str:
    paths = {"/a": {"get": {"operationId": "a"}}}
    return json.dumps({"openapi": "3.1.0", "servers": [{"url": "http://127.0.0.1"}], "paths": paths, **fields})


def test_wrapping_again_replaces_what_was_not_edited(project: ProjectBuilder) -> None:
    paths: Json = {f"/{name}": {"get": {"operationId": name}} for name in "abcde"}
    project.write("api.json", document(paths=paths))
    assert wrap(project, "api.json").returncode == 0
    for name in "bd":
        project.write(f"tools/{name}.py", project.read(f"tools/{name}.py") + "# mine\n")
    for name in "ab":
        paths[f"/{name}"]["get"]["summary"] = "Changed"
    del paths["/c"]
    project.write("moved.json", document(paths={**paths, "/f": {"get": {"operationId": "f"}}}))

    dry = wrap(project, "moved.json", "--update", "--dry-run").stdout
    assert [line.split()[0] for line in dry.splitlines()] == ["gone", "changed", "conflict", "edited", "same", "new"]
    assert dry.startswith("gone     c\n")
    done = wrap(project, "moved.json")
    tools, left = f"{project.root}/tools", "Not tools yet: f; add them with --only NAME,...\n"
    assert (done.returncode, done.stdout) == (0, "")
    changed = "a: it is out of date; to replace it, add --update.\nb: it is out of date"
    assert done.stderr.startswith(left + changed)
    assert "has the operations of these tools; to delete them: rm tools/c.py tools/c.meta.json\n" in done.stderr
    done = wrap(project, "moved.json", "--update")
    assert (done.stdout, left in done.stderr) == (f"{tools}/a.py\n{tools}/a.meta.json\n", True)
    assert "Changed. (GET /a)" in project.read("tools/a.meta.json") and "# mine\n" in project.read("tools/b.py")
    assert wrap(project, "moved.json", "--update", "--only", "f").stdout == f"{tools}/f.py\n{tools}/f.meta.json\n"
    assert "d: you have edited it, so it is kept.\n" in wrap(project, "moved.json", "--update", "--only", "d").stderr


def test_another_document_with_the_same_names_is_wrapped_for_the_first_time(project: ProjectBuilder) -> None:
    both: Json = {f"/{name}": {"get": {"operationId": name}} for name in "ab"}
    project.write("api.json", document())
    project.write("other.json", document(paths=both, info={"title": "Other"}))
    assert wrap(project, "api.json").returncode == 0

    refused = wrap(project, "other.json", "--update")
    assert (refused.returncode, "none of its 2 operations is a tool yet" in refused.stderr) == (2, True)
    assert wrap(project, "other.json").stdout.endswith("/tools/b.py\n" + f"{project.root}/tools/b.meta.json\n")
    both["/moved"] = both.pop("/b")
    project.write("other.json", document(paths=both, info={"title": "Other"}))
    assert wrap(project, "other.json", "--dry-run").stdout.splitlines()[-1] == "changed  b: GET /moved"


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ('{"swagger": "2.0"}', [], "it is Swagger 2.0; convert it to OpenAPI 3, for example"),
        ('{"openapi": "4.0"}', [], "it is not an OpenAPI 3 document"),
        ("[1, 2]", [], "it is not an OpenAPI 3 document"),
        ("{,", [], "it is neither JSON nor YAML"),
        ("\n<!DOCTYPE html>", [], "it is a web page; find the address of the document there"),
        ("a: [", [], "it is neither JSON nor YAML"),
        (document(paths={}), [], "it has no operations"),
        (document(servers=[]), [], "it does not say where the service is; add --server https://HOST"),
        (document(servers=[{"url": "file:///etc"}]), [], "it does not say where the service is"),
        (document(servers=[{"url": "https://a@b.example"}]), [], "it does not say where the service is"),
        (document(servers=[{"url": "https://a.example/?x"}]), [], "it does not say where the service is"),
        (document(servers=[{"url": "https://{host}/"}]), [], "it does not say where the service is"),
        (document(), ["--server", "a.example"], "--server a.example: a URL is needed, such as https://"),
        (document(paths={"a.example/": {"get": {}}}), [], "it has no operations"),
        (document(paths={"/a": {"$ref": f"#/paths/{'9' * 5000}"}}), [], "is not in the document; put all parts"),
        (document(), ["--only", "b"], "--only b: no such operation (--dry-run lists them)\n"),
        (document(), ["--only", ","], "--only needs names, separated by commas"),
        (
            document(paths={f"/{at}": {"get": {}} for at in range(41)}),
            [],
            "\nGET-9   GET /9\nGET-10  GET /10\n",
        ),
        (document(paths={"/a": {"$ref": "other.yaml#/a"}}), [], "other.yaml#/a is not in the document; put all parts"),
        (
            document(paths={"/a": {"put": {"requestBody": {"required": True, "content": {"text/csv": {}}}}}}),
            ["--only", "PUT /a"],
            "PUT /a takes a body that is not JSON; choose others (--only)",
        ),
        (
            document(paths={"/a": {"put": {"requestBody": {"required": True, "content": {"text/csv": {}}}}}}),
            [],
            "PUT /a is left out: it takes a body that is not JSON.\n",
        ),
    ],
)
def test_what_cannot_be_wrapped_is_told_with_a_remedy(
    project: ProjectBuilder, text: str, words: list[str], message: str
) -> None:
    project.write("api.txt", text)

    done = wrap(project, "api.txt", *words)

    assert (done.returncode in (1, 2), done.stdout) == (True, "")
    assert message in done.stderr


def test_a_person_chooses_among_many_operations(project: ProjectBuilder) -> None:
    project.write("api.json", document(paths={f"/{at}": {"get": {"summary": "Look"}} for at in range(41)}))
    answers = [("0 chosen.", "3-4 9\n"), ("3 chosen.", "9\n"), ("2 chosen.", "\n")]
    seen = at_terminal(["wrap", "--openapi", "api.json"], cwd=project.root, answers=answers)

    assert "   3 [ ] GET-2   GET /2: Look\n" in seen.text
    assert sorted(path.name for path in project.root.glob("tools/*.py")) == ["GET-2.py", "GET-3.py"]
    assert "Not tools yet: GET-0, GET-1, GET-4, GET-5, " in wrap(project, "api.json").stderr
    seen = at_terminal(["wrap", "--openapi", "api.json"], cwd=project.root, answers=[("2 chosen.", "\n")])
    assert "   3 [x] GET-2   GET /2: Look\n" in seen.text and "   5 [ ] GET-4 " in seen.text


def test_a_file_or_service_that_is_not_there_is_told(project: ProjectBuilder, orchard: str) -> None:
    assert "don't put a user name and password in the URL" in wrap(project, "https://ada:word@a.example/x").stderr
    assert "HTTP Error 418: I'm a Teapot\n" in wrap(project, f"{orchard}/ill").stderr
    assert f"Bearer KEY' -o FILE '{orchard}/closed'), and wrap FILE\n" in wrap(project, f"{orchard}/closed").stderr
    assert wrap(project, "missing.yaml").returncode == 1


def made(fields: Json, operation: Json | None = None, item: Json | None = None) -> tuple[Blueprint, str]:
    base = {"servers": [{"url": "https://a.example"}]}
    return Document("x.json", {**base, **fields}).tool(Operation("get", "/p", item or {}, operation or {}), "x", None)


def test_operations_with_one_name_are_told_apart(project: ProjectBuilder) -> None:
    project.write("api.json", document(paths={f"/{at}": {"get": {"operationId": f"a{at}b"}} for at in ". -"}))

    assert wrap(project, "api.json", "--only", "a-b-2,a.b").returncode == 0
    assert sorted(path.name for path in project.root.glob("tools/*.py")) == ["a-b-2.py", "a-b.py"]
    assert 'URL = "GET", "http://127.0.0.1/ "' in project.read("tools/a-b-2.py")


def test_the_nearest_server_counts() -> None:
    servers = [[{"url": f"https://{host}.example/{{v}}", "variables": {"v": {"default": 2}}}] for host in "bc"]

    assert '"https://b.example/2/p"' in made({}, item={"servers": servers[0]})[1]
    assert '"https://c.example/2/p"' in made({}, {"servers": servers[1]}, {"servers": servers[0]})[1]


@pytest.mark.parametrize(
    ("title", "scheme", "variable"),
    [
        ("AWS", {"type": "http", "scheme": "bearer"}, "REST_AWS_SECRET_ACCESS_KEY!"),
        ("x" * 9999, {"type": "apiKey", "in": "query", "name": "k"}, f"REST_{'X' * 40}_SECRET_ACCESS!"),
        ("AWS", {"type": "apiKey", "in": "path", "name": "k"}, None),
        ("AWS", {"type": "http", "scheme": "digest"}, None),
    ],
)
def test_a_document_chooses_neither_another_variable_nor_another_way(title: str, scheme: Json, variable: str) -> None:
    ways = {"security": [{"secretAccessKey": []}], "components": {"securitySchemes": {"secretAccessKey": scheme}}}

    assert made({"info": {"title": title}, **ways})[0].env == ((variable,) if variable else ())


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "file"},
        {"minimum": "a"},
        {"type": {}},
        {"properties": {"a": {"enum": 3}}},
        {"properties": {f"p{at}" * 50: {} for at in range(400)}},
        {"enum": ["x" * 5000]},
        {"required": [{}, []]},
        {"pattern": "(?<x>a+)+"},
    ],
)
def test_a_wrong_or_large_schema_allows_everything(schema: Json) -> None:
    blueprint, _ = made({}, {"parameters": [{"name": "a", "in": "query", "schema": schema}]})

    assert blueprint.arguments[0].schema == {"description": "The query parameter a."}


def test_a_hostile_document_becomes_neither_code_nor_a_large_schema(tmp_path: Path) -> None:
    evil = '"""\n\'; import os #{}{0}\u202e'
    schemas: Json = {
        f"S{level}": {
            "properties": {f"p{number}": {"$ref": f"#/components/schemas/S{level + 1}"} for number in range(9)}
        }
        for level in range(8)
    }
    schemas["S8"] = {"type": "string"}
    fields: Json = {
        "info": {"title": evil},
        "servers": [{"url": "http://127.0.0.1"}],
        "security": [{evil: []}],
        "components": {"schemas": schemas, "securitySchemes": {evil: {"type": "apiKey", "in": "cookie", "name": evil}}},
    }
    parameters = [{"name": evil, "in": "query", "schema": {"$ref": "#/components/schemas/S0"}, "description": evil}]
    operation = Operation("get", f"/{evil}", {}, {"operationId": evil, "summary": evil, "parameters": parameters})

    blueprint, script = Document(evil, fields).tool(operation, "x", None)

    tree = compile(script, "x", "exec", flags=0x400)  # the syntax tree alone
    allowed = {"Import", "ImportFrom", "Expr", "Assign", "AugAssign", "FunctionDef", "ClassDef", "For", "If", "Try"}
    assert {type(node).__name__ for node in tree.body} <= allowed
    assert script.isascii()
    assert len(json.dumps(blueprint.arguments[0].schema)) < 40 * MAX_SCHEMAS


def test_null_patterns_and_easier_keys_are_kept(project: ProjectBuilder) -> None:
    note = {"type": "string", "nullable": True, "description": "A note", "pattern": "^[a-z]+$"}
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": {"note": note}}}}}
    ways = [{"token": []}, {"key": []}]
    schemes = {"token": {"type": "oauth2", "flows": {}}, "key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Notes"},
        "servers": [{"url": "/v1"}],
        "paths": {"/notes": {"patch": {"operationId": "patchNote", "requestBody": body, "security": ways}}},
        "components": {"securitySchemes": schemes},
    }
    project.write("api.json", json.dumps(document))

    assert "the service is at /v1; add --server https://HOST/v1" in wrap(project, "api.json").stderr
    assert wrap(project, "api.json", "--server", "http://127.0.0.1:1/v1").returncode == 0
    described = json.loads(project.read("tools/patchNote.meta.json"))
    assert described["env"] == ["REST_NOTES_KEY!"]
    written = described["inputSchema"]["properties"]["body"]["properties"]["note"]
    assert written == {"anyOf": [{"type": "string", "pattern": "^[a-z]+$"}, {"type": "null"}], "description": "A note"}
