"""`mcpgreen lint`: find what breaks popular clients or confuses models, and estimate the tokens that models read.

`validate` reports what is not served, and what is wrong with files and scripts; `lint` does not repeat that.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.functions.module import Module
from mcpgreen.catalog.functions.reading import MARK
from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import ResourceTemplate
from mcpgreen.catalog.skills import Skill
from mcpgreen.catalog.tools import ATTRIBUTE_OF, TASK_FIELDS, Description, Tool
from mcpgreen.cli.checking.findings import Finding, Position, Problem, Report
from mcpgreen.cli.checking.item_checks import WORD_OF, discoveries, parts_of
from mcpgreen.cli.checking.places import Item, Source, source_of
from mcpgreen.cli.checking.remedies import explained
from mcpgreen.cli.checking.skill_texts import skill_problems
from mcpgreen.cli.checking.validate import registration_of
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import SAFE_NAME
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import say
from mcpgreen.logs.secrets import is_secret_name
from mcpgreen.project.project import Project
from mcpgreen.protocol.schemas.portable import kept_references, portable
from mcpgreen.running.scripts.shebang import is_python
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext
from mcpgreen.text.json_offsets import Keys
from mcpgreen.text.json_types import Json

# Tokens are estimated, because no two models count alike.
CHARS_A_TOKEN = 4  # of English and JSON; other scripts need about a token for each character
SHOWN_TO_MODELS = ("name", "description", "inputSchema")

# Of tools.
# Claude Code calls a tool mcp__SERVER__TOOL, and its provider takes names up to this length.
MAX_NAME_CHARS = 64
FULL_NAME = "mcp__{server}__{tool}"
MAX_DESCRIPTION_CHARS = 1024  # more is refused for functions by OpenAI
MAX_TOKENS = 2000
# The names that providers of models accept. Many agents pass on names as they are.
NAMES_OF = {
    "OpenAI": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "Anthropic": re.compile(r"[A-Za-z0-9_-]{1,128}"),
    "Amazon Bedrock": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "Gemini": re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}"),
}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_CHANGES = re.compile(r"^(delete|remove|drop|destroy|purge|write|update|create|insert|rm|kill)(?=[_-]|$)")

# Of their schemas.
TOP_LEVEL = ("oneOf", "anyOf", "allOf", "not", "enum", "if")
PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
MAX_DEPTH = 5  # objects in objects, where providers check arguments strictly
MAX_PROPERTIES = 100
MAX_CHOICES = 500
COMBINING = ("$ref", "oneOf", "anyOf", "allOf", "not", "if", "const", "enum")

# Of results.
MAX_SOURCE_BYTES = 131_072
RESULTS = {"image": "a picture", "audio": "a sound", "resource_link": "a link"}
_SHELL = re.compile(r"^[ \t]*mcp_result_(image|audio|resource_link)\b((?:[^\n\\]|\\.|\\\n)*)", re.MULTILINE)
_BLOCK = re.compile(r"(image|audio|resource_link)_block")

# Of state: methods that change a list, a set or a dictionary.
CHANGING = ("add", "append", "appendleft", "clear", "extend", "insert", "pop", "remove", "setdefault", "update")

# Of other items.
MAX_ICON_CHARS = 96 * 1024
ICON_SIZE = re.compile(r"\d+x\d+|any")
MIME_TYPE = re.compile(r"[\w.+!#$&^-]+/[\w.+!#$&^-]+(\s*;.*)?", re.DOTALL)
# By its second label: io.mcp/x is reserved, com.example.mcp/x is not.
RESERVED_PREFIX = re.compile(r"[A-Za-z0-9-]+\.(modelcontextprotocol|mcp)(\.[A-Za-z0-9.-]+)?/")

# Of lists.
MAX_TOOLS = 128  # more are refused by OpenAI and VS Code
MAX_LIST_TOKENS = 20_000
MAX_LIST_BYTES = 4 << 20  # clients close a connection with a line of 10 MiB
MAX_INSTRUCTION_CHARS = 2048
ALIKE = {
    "name": ("names-alike", "some clients cannot tell it apart from {}", "use names with different letters or digits"),
    "description": (
        "texts-alike",
        "it has the same description as {}, so a model cannot choose between them",
        "say in each description how it differs from the other tool",
    ),
}


def run(options: Options) -> int:
    """Return 1 if there are errors, or warnings with `--strict`; else 0."""
    status = (report := report_on(options)).print(as_json=options["--json"])
    if not options["--json"] and not any(each.fix for each in report.findings):
        say("These checks are about what clients and models see; mcpgreen validate checks whether everything works.\n")
    return status


def report_on(options: Options) -> Report:
    project, settings, environ = open_named(options)
    registration, _ = registration_of(project, settings, environ)
    findings: list[Finding] = []
    instructions = project.instructions() or ""
    if len(instructions) > MAX_INSTRUCTION_CHARS:
        shown = project.shown(project.server_file("server.instructions.md"))
        size = f"{len(instructions)} characters, about {tokens_in(instructions)} tokens"
        fix = "shorten it to what every call needs"
        sentence = f"{shown}: {size}; some clients cut it off after 2048 characters"
        findings.append(Finding("warning", "server", sentence, "instructions-long", fix, shown))
    found = discoveries(project, registration)
    for kind, discovery in found.items():
        if isinstance(discovery, OSError) or kind == "ui":  # pages are resources, too
            continue
        if kind == "skills":
            findings += [explained(project, kind, warning) for warning in discovery.warnings]
            tools = [] if isinstance(found["tools"], OSError) else [tool.name for tool in found["tools"].items]
            for skill in discovery.items:
                findings += _findings(project, kind, skill, skill.path, list(skill_problems(skill, tools)))
            continue
        items = [(item, source_of(project, registration, kind, item)) for item in discovery.items]
        for item, source in items:
            findings += _findings(project, kind, item, source.path, list(_problems(project, settings, item, source)))
        findings += _list_findings(project, kind, items)
    return Report(project, findings, 0, options["--strict"])


def _findings(
    project: Project, kind: str, item: Item | Skill, path: str | None, problems: list[Problem]
) -> Iterator[Finding]:
    subject = f"{WORD_OF[kind]} {item.name}"
    yield from (problem.about(project, kind, subject) for problem in problems)
    level = "info" if problems else "ok"
    file = project.shown(path) if path else None
    if isinstance(item, Tool):
        tokens = tokens_of(item.definition)
        sentence = f"{subject}: about {tokens} tokens"
        yield Finding(level, kind, sentence, "tokens", file=file, tokens=tokens, subject=subject)
    elif not problems:
        yield Finding(level, kind, subject, file=file)


def _problems(project: Project, settings: Settings, item: Item, source: Source) -> Iterator[Problem]:
    if isinstance(item, Tool):
        listed_name = item.name.replace(".", "_") if settings.replace_dots else item.name
        yield from _name_problems(listed_name, source, project.server_name())
        yield from _tool_problems(item, source)
        yield from _task_problems(item, settings, source)
        yield from _schema_problems(item, source)
        yield from _source_problems(item)
    elif isinstance(item, Prompt):
        yield from _prompt_problems(item, source)
    elif isinstance(item, ResourceTemplate) and not item.definition.get("description"):
        sentence = "it has no description, so clients don't know what its variables mean"
        yield source.warning("template-description", sentence, "add a description that explains the variables")
    yield from _common_problems(item, source)


def _name_problems(name: str, source: Source, server_name: str) -> Iterator[Problem]:
    if not SAFE_NAME.fullmatch(name):
        *others, last = [provider for provider, names in NAMES_OF.items() if not names.fullmatch(name)]
        providers = f"{', '.join(others)} and {last}" if others else last
        sentence = f"{providers} reject its name, so agents that pass it on unchanged cannot use their models"
        fix = "rename it, using up to 64 characters from A-Z a-z 0-9 _ -"
        if "." in name:
            fix += ", or set MCPGREEN_REPLACE_DOTS=true"
        yield source.warning("name-refused", sentence, fix, "name")
        return
    full = FULL_NAME.format(server=_NOT_IN_NAMES.sub("_", server_name), tool=name)
    if len(full) > MAX_NAME_CHARS:
        sentence = f"together with the server's name it is {full}, which is longer than {MAX_NAME_CHARS} characters"
        yield source.warning("name-long", sentence, "shorten the name of the server or the tool", "name")
    if name[:1] in "0123456789-":
        sentence = "Gemini rejects names that don't begin with a letter or _"
        yield source.warning("name-start", sentence, "begin the name with a letter", "name")


def _tool_problems(tool: Tool, source: Source) -> Iterator[Problem]:
    description = tool.definition.get("description") or ""
    hints = tool.definition.get("annotations") or {}
    if len(description) > MAX_DESCRIPTION_CHARS:
        sentence = f"its description has {len(description)} characters; some clients allow at most 1024"
        fix = "shorten it, or move details to the descriptions of the arguments"
        yield source.warning("description-long", sentence, fix, "description")
    elif description and _plain(description) == _plain(tool.name):
        sentence = "its description only repeats its name"
        yield source.warning("description-short", sentence, "describe what it does, and when to use it", "description")
    titles = (tool.definition.get("title"), hints.get("title"))
    if all(titles) and titles[0] != titles[1]:
        sentence = "title and annotations.title differ, and clients show one or the other"
        yield source.warning("title", sentence, "remove annotations.title", "annotations", "title")
    if hints.get("readOnlyHint") and hints.get("destructiveHint"):
        sentence = "readOnlyHint and destructiveHint contradict each other: a tool that only reads destroys nothing"
        yield source.warning("annotations", sentence, "remove the wrong one", "annotations", "destructiveHint")
    if hints.get("readOnlyHint") and (verb := _CHANGES.match(tool.name)):
        promise = "readOnlyHint says that it changes nothing, so clients run it without asking"
        fix = f"remove readOnlyHint if the tool does {verb[1]} something; otherwise rename the tool"
        sentence = f"it is called {tool.name}, but {promise}"
        yield source.warning("annotations", sentence, fix, "annotations", "readOnlyHint")
    tokens = tokens_of(tool.definition)
    if tokens > MAX_TOKENS:
        sentence = f"it costs about {tokens} tokens in every conversation"
        yield source.warning("tokens-many", sentence, f"shorten description and schema to {MAX_TOKENS} tokens")


def _task_problems(tool: Tool, settings: Settings, source: Source) -> Iterator[Problem]:
    """Find fields about tasks that have no effect."""
    described, defaults = tool.description, Description._field_defaults
    fields, reason = list(TASK_FIELDS), "its calls never become tasks"
    if (described.task or settings.tasks) not in ("never", "off"):
        begins_itself = described.task in ("always", "required") or described.task_begins == "script"
        fields, reason = ["taskAfterSecs"] if begins_itself else [], "the task begins without it"
    for field in (each for each in fields if getattr(described, (name := ATTRIBUTE_OF[each])) != defaults[name]):
        yield source.warning("task-fields", f"{field} has no effect: {reason}", "remove it, or change task", field)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _schema_problems(tool: Tool, source: Source) -> Iterator[Problem]:
    schema, output = tool.definition["inputSchema"], tool.definition.get("outputSchema")
    if output is not None and output.get("type") != "object":
        sentence = "its outputSchema is not an object, so most clients never see it"
        fix = "wrap the value in an object, as a property"
        yield source.warning("output-root", sentence, fix, "outputSchema", "type")
    for key in TOP_LEVEL:
        if key in schema:
            sentence = f"inputSchema has {key} at the top level, and providers reject all tools because of it"
            fix = "move it into a property, or explain it in the description"
            yield source.warning("top-level", sentence, fix, "inputSchema", key)
    kept = set(kept_references(schema))
    for keys, part in parts_of(schema):
        yield from _part(keys, part, kept, source)
        properties = part.get("properties")
        for name, value in properties.items() if isinstance(properties, dict) else ():
            yield from _property((*keys, "properties", name), value, source)
    count = len(schema.get("properties") or {})
    if count > MAX_PROPERTIES:
        sentence = f"it has {count} arguments; providers accept {MAX_PROPERTIES}, and models cope better with fewer"
        yield source.warning("arguments-many", sentence, "split it into several tools", "inputSchema", "properties")


def _part(keys: Keys, part: Json, kept: set[str], source: Source) -> Iterator[Problem]:
    place, way = _shown(keys), ("inputSchema", *keys)
    if part.get("$ref") in kept:
        sentence = f"{place} has a $ref that is recursive, or too large to expand; many clients don't follow references"
        yield source.warning("ref", sentence, "describe as many levels as you need, or accept any object", *way, "$ref")
    if "$dynamicRef" in part:
        sentence = f"{place} has a $dynamicRef, which many clients don't follow"
        yield source.warning("ref", sentence, "replace it with the schema that it refers to", *way, "$dynamicRef")
    kinds = part.get("type")
    if kinds == "array" and "items" not in part and "prefixItems" not in part:
        sentence = f"{place} is an array without items, and providers reject all tools because of it"
        yield source.warning("array-items", sentence, "add items, with the type of the elements", *way, "type")
    if isinstance(kinds, list):
        sentence = f"{place} has several types; clients get anyOf instead, which some don't understand"
        fix = "use one type; an optional argument is one that required doesn't list"
        yield source.warning("types", sentence, fix, *way, "type")
    choices = part.get("enum")
    if isinstance(choices, list):
        if not choices:
            sentence = f"{place} has an empty enum, so no value is valid"
            yield source.warning("enum", sentence, "list the choices, or remove enum", *way, "enum")
        elif not all(isinstance(choice, str) for choice in choices) and keys:
            sentence = f"{place} has enum values that are not strings, which Gemini rejects"
            yield source.warning("enum", sentence, "use strings, or minimum and maximum", *way, "enum")
        elif len(choices) > MAX_CHOICES:
            sentence = f"{place} has {len(choices)} enum values, more than providers accept"
            yield source.warning("enum", sentence, f"list at most {MAX_CHOICES}, or describe them", *way, "enum")
    if sum(key == "properties" for key in keys) > MAX_DEPTH:
        sentence = f"{place} is nested deeper than {MAX_DEPTH} objects, more than providers accept"
        yield source.warning("depth", sentence, "flatten it", *way)


def _property(keys: Keys, value: object, source: Source) -> Iterator[Problem]:
    place, way = _shown(keys), ("inputSchema", *keys)
    if not PROPERTY_NAME.fullmatch(str(keys[-1])):
        sentence = f"{place}: providers only accept argument names of up to 64 characters from A-Z a-z 0-9 _ . -"
        yield source.warning("argument-name", sentence, "rename the argument", *way)
    if isinstance(value, bool):
        sentence = f"{place} is {str(value).lower()} instead of a schema, so some clients reject all tools"
        yield source.warning("boolean-schema", sentence, "write an object with a type", *way)
        return
    if not isinstance(value, dict):
        return
    if not value.get("description") and "$ref" not in value and len(keys) == 2:
        sentence = f"the argument {place} has no description, so a model has to guess what to pass"
        yield source.warning("argument-description", sentence, "add a description", *way)
    if "type" not in value and not value.keys() & set(COMBINING):
        sentence = f"{place} has no type, so a model may pass anything, and some providers reject it"
        yield source.warning("argument-type", sentence, "add a type", *way)


def _shown(keys: Keys) -> str:
    """`properties.mail.items` as people say it: mail.items."""
    return ".".join(str(key) for key in keys if key != "properties") or "inputSchema"


def _source_problems(tool: Tool) -> Iterator[Problem]:
    """Find state in the wrong place, and results without text, which a model may not see, as far as the source says."""
    with suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # `validate` tells of these
        source = metadata.read_start(tool.path, MAX_SOURCE_BYTES)
        text = source.decode("utf-8", "replace")
        in_shell = [found for found in _SHELL.finditer(text) if "--text" not in found[2]]
        found: Iterable[tuple[int, str]] = [(text.count("\n", 0, each.start(1)) + 1, each[1]) for each in in_shell]
        if is_python(tool.path, source):
            tree = ast.parse(text)
            yield from _state_problems(tool, tree)
            found = _results_in_python(tree)
        for line, kind in found:
            sentence = f"its result is {RESULTS[kind]} without text, and many clients only show text to the model"
            fix = "add text that describes it"
            yield Problem("warning", "result-text", sentence, fix, tool.path, Position(line))


def _state_problems(tool: Tool, tree: ast.Module) -> Iterator[Problem]:
    """Find a global variable that the tool's function changes: without `stays`, the change is lost; with `server`,
    all callers share it, even a secret."""
    module, stays = Module(tree), tool.description.stays
    marked = [(each, mark) for each in module.all_functions for mark in each.decorator_list]
    marks = {each: ast.unparse(mark) for each, mark in marked if module.decorator_name(mark) == MARK}
    own = [each for each, mark in marks.items() if each.name == tool.name or f"name={tool.name!r}" in mark]
    for name, change in (found for each in own or marks for found in _changed_globals(each, module.assigned)):
        words = set(re.findall(r"\w+", ast.unparse(change))) - {"key", "keys"}
        rule, fix = "state-lost", 'add stays="session", or keep it in a file'
        sentence = f"it changes the global variable {name}, which is lost when its process ends after the call"
        if stays is not None:
            if stays.scope != "server" or not any(map(is_secret_name, words)):
                continue
            rule, fix = "secret-shared", 'use stays="session", or pass it with each call'
            sentence = f"it keeps what looks like a secret in {name}, in a process that all callers share"
        yield Problem("warning", rule, sentence, fix, tool.path, Position(change.lineno))
        return


def _changed_globals(function: ast.AST, names: Iterable[str]) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the global variables that a function changes, each with the statement."""
    nodes = list(ast.walk(function))
    declared = {name for each in nodes if isinstance(each, ast.Global) for name in each.names}
    own = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    own |= {each.arg for each in nodes if isinstance(each, ast.arg)}
    statements = [each for each in nodes if isinstance(each, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr))]
    for change, node in ((each, node) for each in statements for node in ast.walk(each)):
        if _called(node) in CHANGING or isinstance(getattr(node, "ctx", None), ast.Store):
            base = getattr(node, "func", node)
            known = declared if isinstance(base, ast.Name) else {*names} - own | declared
            while isinstance(base, (ast.Attribute, ast.Subscript)):
                base = base.value
            if isinstance(base, ast.Name) and base.id in known:
                yield base.id, change


def _results_in_python(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        blocks: list[ast.expr] = []
        if isinstance(node, ast.Return) and node.value is not None:
            blocks = node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]
        elif isinstance(node, ast.Call) and _called(node) == "result" and not node.keywords:
            blocks = node.args
        kinds = [_BLOCK.fullmatch(_called(block)) for block in blocks]
        if kinds and kinds[0] is not None and all(kinds):
            yield blocks[0].lineno, kinds[0][1]


def _called(node: ast.AST) -> str:
    """Return the last part of the name of a called function; empty for anything else."""
    function = getattr(node, "func", None)
    return str(getattr(function, "attr", "") or getattr(function, "id", ""))


def _prompt_problems(prompt: Prompt, source: Source) -> Iterator[Problem]:
    if not SAFE_NAME.fullmatch(prompt.name):
        sentence = "clients turn its name into a command, and only accept up to 64 characters from A-Z a-z 0-9 _ -"
        yield source.warning("prompt-name", sentence, "rename it", "name")
    if not prompt.definition.get("description"):
        sentence = "no description, so people don't know what it is for"
        yield source.warning("prompt-description", sentence, "add a description")
    is_list = isinstance(source.fields.get("arguments"), list)
    for index, argument in enumerate(prompt.definition.get("arguments", ())):
        if not argument.get("description"):
            sentence = f"its argument {argument['name']} has no description, so people don't know what to enter"
            way = ("arguments", index) if is_list else ("arguments", "properties", argument["name"])
            yield source.warning("argument-description", sentence, "add a description", *way)


def _common_problems(item: Item, source: Source) -> Iterator[Problem]:
    """Problems that any kind of item can have."""
    for key in item.definition.get("_meta") or {}:
        if RESERVED_PREFIX.match(key):
            sentence = f"_meta.{key} has a prefix that the protocol reserves"
            yield source.warning("meta-prefix", sentence, "use a domain name of your own", "_meta", key)
    mime_type = item.definition.get("mimeType")
    if mime_type is not None and not MIME_TYPE.fullmatch(mime_type):
        sentence = f"mimeType {mime_type[:80]} is not valid, so clients don't know how to show it"
        yield source.warning("mime-type", sentence, "write type/subtype, such as text/plain", "mimeType")
    for index, icon in enumerate(item.definition.get("icons") or ()):
        src = str(icon.get("src", ""))
        if src.lower().startswith("http:"):
            sentence = "an icon has an http: URL, which clients don't load"
            fix = "use https:, or a file next to the description"
            yield source.warning("icon-url", sentence, fix, "icons", index, "src")
        elif len(src) > MAX_ICON_CHARS:
            sentence = "an icon is larger than 64 KiB, and every list repeats it"
            yield source.warning("icon-large", sentence, "use a smaller image", "icons", index, "src")
        for size in icon.get("sizes") or ():
            if not ICON_SIZE.fullmatch(size):
                sentence = f"an icon has the size {size[:40]}, which clients don't understand"
                yield source.warning("icon-size", sentence, "write WxH, such as 48x48, or any", "icons", index, "sizes")


def _list_findings(project: Project, kind: str, items: Sequence[tuple[Item, Source]]) -> Iterator[Finding]:
    size = sum(len(jsontext.dumps(item.definition)) for item, _ in items)
    if size > MAX_LIST_BYTES:
        sentence = f"the list of {kind} takes up {size >> 20} MiB, and clients close the connection at 10 MiB"
        yield Finding("warning", kind, sentence, "list-large", "shorten descriptions, schemas and icons")
    if kind != "tools" or not items:
        return
    firsts: dict[tuple[str, str], str] = {}
    for item, source in items:
        plain = re.sub(r"[^a-z0-9]", "_", item.name.lower())
        for field, text in (("name", plain), ("description", (item.definition.get("description") or "").strip())):
            first = firsts.setdefault((field, text), item.name)
            if text and first != item.name:
                code, sentence, fix = ALIKE[field]
                problem = source.warning(code, sentence.format(first), fix, field)
                yield problem.about(project, kind, f"tool {item.name}")
    tokens = sum(tokens_of(item.definition) for item, _ in items)
    if len(items) > MAX_TOOLS:
        sentence = f"there are {len(items)} tools; providers accept {MAX_TOOLS}"
        yield Finding("warning", kind, sentence, "list-long", "offer fewer, or split the project")
    if tokens > MAX_LIST_TOKENS:
        sentence = f"the tools cost about {tokens} tokens in every conversation"
        yield Finding("warning", kind, sentence, "list-tokens", "offer fewer, or shorten descriptions", tokens=tokens)
    else:
        yield Finding("ok", kind, f"all tools: about {tokens} tokens", "tokens", tokens=tokens)


def tokens_of(definition: Json) -> int:
    """Estimate the tokens of what clients give to a model: name, description and inputSchema."""
    shown = {key: definition[key] for key in SHOWN_TO_MODELS if key in definition}
    return tokens_in({**shown, "inputSchema": portable(shown["inputSchema"])} if "inputSchema" in shown else shown)


def tokens_in(value: object) -> int:
    # Not with ujson, which writes ASCII only: each letter of another alphabet would count six times.
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    ascii_chars = sum(character.isascii() for character in text)
    return math.ceil(ascii_chars / CHARS_A_TOKEN) + len(text) - ascii_chars
