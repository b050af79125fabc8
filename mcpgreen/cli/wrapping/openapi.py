"""Create a tool for each operation in an OpenAPI 3 document.

The document may come from anybody: its size is bounded, only references inside it are followed, and its names and texts
become literals and JSON, never code.

Rule: a key is never written to a file. The tool names the variable that has it, and sends it to one server only. The
document cannot choose another variable, such as AWS_SECRET_ACCESS_KEY, because all names begin with REST_.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit
from urllib.request import urlopen

from mcpgreen.catalog.descriptions import yaml_text
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import Draft, filled
from mcpgreen.cli.output import can_ask, did_you_mean, tell
from mcpgreen.cli.wrapping import tool_file
from mcpgreen.cli.wrapping.choosing import pick
from mcpgreen.cli.wrapping.reading.value_types import words_in
from mcpgreen.cli.wrapping.tool_file import Argument, Blueprint, literal, plain
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.files.regular_files import content_of
from mcpgreen.protocol.schemas.validator import BadSchema, compile_schema
from mcpgreen.text import jsontext
from mcpgreen.text.json_pointers import pointed_at
from mcpgreen.text.json_types import Json

MAX_DOCUMENT_BYTES = 20 << 20
MAX_YAML_VALUES = 200_000
MANY_OPERATIONS = 40
MAX_DEPTH = 12  # of schemas
MAX_SCHEMAS = 500  # of one operation
MAX_SCHEMA_BYTES = 50_000  # of one argument
MAX_VALUE_BYTES = 4000  # of an enum, a constant or a default
MAX_VARIABLE_CHARS = 60
FETCH_SECS = 20
METHODS = ("get", "head", "post", "put", "patch", "delete")
HINTS = {"get": {"readOnlyHint": True}, "head": {"readOnlyHint": True}, "delete": {"destructiveHint": True}}
ADDRESS = re.compile(r"https?://[^/\s{}@?#\\]+(?:[/?][^\s{}]*)?")
SERVER = re.compile(r"https?://[^/\s{}@?#\\]+(?:/[^\s{}?#]*)?")
JSON_TYPE = re.compile(r"(?i)application/(?:[\w.+-]+\+)?json\b")
# OpenAPI ignores parameters of the first three names; the others would change what the request is.
OWN_HEADERS = words_in("accept content-type authorization host content-length transfer-encoding connection cookie")
# How a key goes into the header Authorization.
FORMS = dict.fromkeys(("bearer", "oauth2", "openidconnect"), ("header", "Authorization", "Bearer {}"))
FORMS |= {"basic": ("header", "Authorization", "Basic {}")}
KEYWORDS = words_in(
    "type description enum const default format pattern examples minimum maximum multipleOf minLength maxLength "
    "minItems maxItems uniqueItems minProperties maxProperties required exclusiveMinimum exclusiveMaximum "
    "additionalProperties"
)


class Operation(NamedTuple):
    method: str
    path: str
    item: Json  # the path item around it
    fields: Json

    @property
    def label(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def name(self) -> str:
        return tool_file.tool_name(str(self.fields.get("operationId") or "")) or tool_file.tool_name(self.label)


def tools_in(
    document: Document, only: Sequence[str] | None, options: Options, existing: Container[str]
) -> Iterator[tuple[Blueprint, str]]:
    """Yield each chosen tool with its script. `existing` has the names of the tools that were made from the document
    before: then, only these are chosen without a person. Raises ProjectError and UsageError."""
    place, operations = document.place, dict(document.operations)
    for name in [name for name, each in operations.items() if only is None and document.has_other_body(each)]:
        tell(f"{operations.pop(name).label} is left out: it takes a body that is not JSON.\n")
    if not operations:
        raise ProjectError(place, "it has no operations that can become tools")
    chosen = list(operations)
    if only is not None:
        known = {str(each.fields.get("operationId")): name for name, each in operations.items()}
        known |= {each.label: name for name, each in operations.items()}
        known |= {form: name for name in operations for form in (name, name.removeprefix(document.prefix))}
        for name in only:
            if name not in known:
                raise UsageError(f"--only {name}: no such operation (--dry-run lists them){did_you_mean(name, known)}")
        chosen = list(dict.fromkeys(known[name] for name in only))
    elif not options["--dry-run"]:
        count, width = len(operations), max(map(len, operations))
        texts = [plain(f"{each.label}: {each.fields.get('summary') or ''}").rstrip(":") for each in operations.values()]
        rows = [f"{name:{width}}  {text}" for name, text in zip(chosen, texts, strict=True)]
        ticked = {at for at, name in enumerate(chosen) if name in existing}
        if not ticked and count <= MANY_OPERATIONS and not options["--update"]:
            ticked = set(range(count))
        if can_ask() and not options["--update"]:
            document.server_of(operations[chosen[0]], options["--server"])  # a person is told before, not after
            pick(rows, ticked)
        elif not ticked:
            tell("".join(f"{row}\n" for row in rows))
            raise UsageError(f"{place}: none of its {count} operations is a tool yet; choose some with --only NAME,...")
        elif left := ", ".join(name for at, name in enumerate(chosen) if at not in ticked):
            tell(f"Not tools yet: {plain(left)}; add them with --only NAME,...\n")
        chosen = [chosen[at] for at in sorted(ticked)]
    for name in chosen:
        yield document.tool(operations[name], name, options["--server"])


def read_document(place: str) -> Json:
    """Return the document in a file or at a URL. Raises ProjectError."""
    if "@" in _host(place):
        reason = "don't put a user name and password in the URL; download the document yourself, and use the file"
        raise ProjectError("--openapi", reason)
    try:
        if ADDRESS.fullmatch(place):
            with urlopen(place, timeout=FETCH_SECS) as response:
                raw = response.read(MAX_DOCUMENT_BYTES + 1)
            if len(raw) > MAX_DOCUMENT_BYTES:
                raise ProjectError(place, f"it is larger than {MAX_DOCUMENT_BYTES} bytes")
        else:
            raw = content_of(os.path.abspath(os.path.expanduser(place)), MAX_DOCUMENT_BYTES)
        start = raw.lstrip()[:1]
        if start == b"<":
            raise ProjectError(place, "it is a web page; find the address of the document there, often /openapi.json")
        document = jsontext.loads(raw.decode()) if start == b"{" else yaml_text.value_of(raw, MAX_YAML_VALUES)
    except (OSError, HTTPException) as error:
        advice = f"; download it with your key (curl -H 'Authorization: Bearer KEY' -o FILE {place!r}), and wrap FILE"
        is_refused = getattr(error, "code", 0) in (401, 403)
        raise ProjectError(place, f"it cannot be fetched: {str(error).strip('<>')}{advice * is_refused}") from error
    except ValueError as error:
        raise ProjectError(place, f"it is neither JSON nor YAML: {error}") from error
    if isinstance(document, dict) and "swagger" in document:
        raise ProjectError(place, "it is Swagger 2.0; convert it to OpenAPI 3, for example with npx swagger2openapi")
    if not isinstance(document, dict) or not str(document.get("openapi")).startswith("3."):
        raise ProjectError(place, 'it is not an OpenAPI 3 document: its "openapi" field must begin with "3."')
    return document


class Document:
    """An OpenAPI document, and what becomes of its parts."""

    def __init__(self, place: str, fields: Json, prefix: str = "") -> None:
        self.place, self.prefix, self._fields, self._schemas = place, prefix, fields, 0
        title = str(_object(fields.get("info")).get("title") or _host(place) or "service")[:40]
        self._title = plain(re.sub(r"(?i)\b(?:api|rest|openapi|v?\d[\d.]*)\b", "", title)).rstrip(".") or "service"
        self.operations: dict[str, Operation] = {}  # by the names of their tools
        for path, given in _object(fields.get("paths")).items():
            item = self._followed(given) if path.startswith("/") else {}  # "@evil.example.com/" would be another server
            for operation in (Operation(each, path, item, _object(item[each])) for each in METHODS if each in item):
                self.operations[tool_file.unique_name(prefix + operation.name, self.operations, joint="-")] = operation

    def tools_made(self, directory: str) -> dict[str, bool]:
        """Return the names of the tools there that were made from the document, and whether it still has them."""
        known, made = {self._source(each) for each in self.operations.values()}, {}
        for path in sorted(Path(directory).glob("*.py")):
            source = "".join(Draft({str(path): ""}).on_disk()).partition("\n# ")[2].partition("\n")[0]
            if source in known or re.fullmatch(rf"Made from [A-Z]+ /.* of {re.escape(self._title)}", source):
                made[path.stem] = source in known or path.stem in self.operations
        return made

    def _source(self, operation: Operation) -> str:
        return tool_file.comment(f"Made from {operation.label} of {self._title}")

    def tool(self, operation: Operation, name: str, server: str | None) -> tuple[Blueprint, str]:
        """Return the tool for an operation, and its script."""
        self._schemas = 0
        keys = self._keys(operation)
        arguments = list(self._arguments(operation, {(place, key.lower()) for _, _, place, key, _ in keys}))
        said = [str(operation.fields.get(field) or "") for field in ("summary", "description")]
        text = " ".join(dict.fromkeys(tool_file.sentence(each) for each in said if each.strip()))
        blueprint = Blueprint(
            name,
            f"{operation.label} of {self._title}",
            plain(f"{text} ({operation.label})" if text else operation.label),
            (),
            tuple(arguments),
            annotations={**HINTS.get(operation.method, {}), "openWorldHint": True},
            env=tuple(dict.fromkeys(variable + "!" * is_required for variable, is_required, *_ in keys)),
        )
        rows = [f"{literal(each.name)}: {_row((each.method, *each.words))}" for each in arguments]
        return blueprint, filled("wrapping/rest.python").format(
            source=self._source(operation),
            description=name + tool_file.DESCRIPTION_SUFFIX,
            method=literal(operation.method.upper()),
            url=literal(self.server_of(operation, server) + operation.path),
            parameters="{" + "".join(f"\n    {row}," for row in rows) + "\n" * bool(rows) + "}",
            keys=f"[{', '.join(map(_row, keys))}]",
        )

    def _arguments(self, operation: Operation, keys: Container[tuple[str, str]]) -> Iterator[Argument]:
        """Yield an argument for each parameter that is no key, and one for the body. Its words are its name there, and
        its style."""
        found: dict[tuple[str, str], Json] = {}
        for given in [*_list(operation.item.get("parameters")), *_list(operation.fields.get("parameters"))]:
            parameter = self._followed(given)
            found[str(parameter.get("name")), str(parameter.get("in"))] = parameter
        for name in re.findall(r"\{([^{}]+)\}", operation.path):
            found.setdefault((name, "path"), {"schema": {"type": "string"}})
        taken: set[str] = set()
        for (name, place), parameter in found.items():
            is_reserved = (place, name.lower()) in keys or (place == "header" and name.lower() in OWN_HEADERS)
            if place not in ("path", "query", "header") or is_reserved:
                continue
            style = "deep" if parameter.get("style") == "deepObject" else "repeated"
            style = "json" if "content" in parameter else style if parameter.get("explode", True) else "joined"
            inner = next(iter(_object(parameter.get("content")).values()), parameter)
            schema = self._checked(_object(inner).get("schema"))
            text = parameter.get("description") or schema.get("description") or f"The {place} parameter {name}."
            schema["description"] = plain(str(text))
            is_required = place == "path" or parameter.get("required") is True
            yield Argument(tool_file.take_name(name, taken), schema, place, (name, style), is_required=is_required)
        body, kind = self._body(operation)
        if kind is not None:
            schema = self._checked(_object(body["content"][kind]).get("schema"))
            schema.setdefault("description", "The body of the request.")
            name, is_required = tool_file.take_name("body", taken), body.get("required") is True
            yield Argument(name, schema, "body", (kind, ""), is_required=is_required)
        elif self.has_other_body(operation):
            raise ProjectError(self.place, f"{operation.label} takes a body that is not JSON; choose others (--only)")

    def has_other_body(self, operation: Operation) -> bool:
        """Tell whether the operation requires a body that is not JSON."""
        body, kind = self._body(operation)
        return kind is None and body.get("required") is True

    def _body(self, operation: Operation) -> tuple[Json, str | None]:
        body = self._followed(operation.fields.get("requestBody"))
        return body, next(filter(JSON_TYPE.match, _object(body.get("content"))), None)

    def _checked(self, given: object) -> Json:
        """Return a schema that the server accepts; one that allows everything in place of a wrong or large one."""
        schema = self._schema(given)
        try:
            compile_schema(schema)
            return schema if len(jsontext.dumps(schema)) <= MAX_SCHEMA_BYTES else {}
        except (BadSchema, ValueError):
            return {}

    def _schema(self, given: object, around: tuple[str, ...] = ()) -> Json:
        """Return a schema with its references filled in; one that allows everything where that would go too far."""
        self._schemas += 1
        schema: Json = {}
        reference = str(_object(given).get("$ref", ""))
        if len(around) > MAX_DEPTH or self._schemas > MAX_SCHEMAS or (reference and reference in around):
            return schema
        given, around = self._followed(given), (*around, reference)
        for keyword, value in given.items():
            if keyword == "properties":
                writable = {name: each for name, each in _object(value).items() if not _object(each).get("readOnly")}
                schema[keyword] = {name: self._schema(each, around) for name, each in writable.items()}
            elif keyword in ("items", "additionalProperties") and isinstance(value, dict):
                schema[keyword] = self._schema(value, around)
            elif keyword in ("allOf", "anyOf", "oneOf") and isinstance(value, list) and value:
                schema[keyword] = [self._schema(each, around) for each in value]
            elif keyword == "description":
                schema[keyword] = plain(str(value))
            elif keyword.startswith("exclusive") and isinstance(value, bool):
                continue  # OpenAPI 3.0
            elif keyword in KEYWORDS and len(str(value)) <= MAX_VALUE_BYTES:
                schema[keyword] = value
        names, known = _list(schema.pop("required", None)), schema.get("properties")
        if needed := [name for name in names if isinstance(name, str) and (known is None or name in known)]:
            schema["required"] = needed
        if given.get("nullable") is True:  # OpenAPI 3.0
            about = {"description": schema.pop("description")} if "description" in schema else {}
            schema = {"anyOf": [schema, {"type": "null"}], **about}
        return schema

    def _followed(self, given: object) -> Json:
        """Return what a reference refers to. Raises ProjectError for one that leads nowhere, or out of the document."""
        for _ in range(MAX_DEPTH):
            reference = _object(given).get("$ref")
            if not isinstance(reference, str):
                break
            try:
                given = pointed_at(self._fields, reference)
            except (LookupError, ValueError):
                reason = f"{plain(reference)} is not in the document; put all parts into one file"
                raise ProjectError(self.place, reason) from None
        return _object(given)

    def server_of(self, operation: Operation, server: str | None) -> str:
        """Return the address: the person's, else the first one of the operation, its path or the document."""
        servers = [_list(fields.get("servers")) for fields in (operation.fields, operation.item, self._fields)]
        first = _object(next((each[0] for each in servers if each), None))
        url = server or str(first.get("url") or "/")
        for name, variable in {} if server else _object(first.get("variables")).items():
            url = url.replace("{" + name + "}", str(_object(variable).get("default", "")))
        url = urljoin(self.place, url) if ADDRESS.fullmatch(self.place) else url
        if server and not SERVER.fullmatch(url):
            raise UsageError(f"--server {server}: a URL is needed, such as https://api.example.com/v1")
        if not SERVER.fullmatch(url):
            path = url if url.startswith("/") and url != "/" else ""
            reason = f"it only says that the service is at {path}" if path else "it does not say where the service is"
            raise UsageError(f"{self.place}: {reason}; add --server https://HOST{path}")
        return url.rstrip("/")

    def _keys(self, operation: Operation) -> list[tuple[str, bool, str, str, str]]:
        """Return a row for each key: its variable, whether it is required, its place, its name there, and its form. The
        first way in that is understood counts; the keys are optional if there is a way without."""
        ways = [_object(way) for way in _list(operation.fields.get("security", self._fields.get("security")))]
        schemes = _object(_object(self._fields.get("components")).get("securitySchemes"))
        # A key is easier to get than a token of OAuth.
        is_oauth = {name for name, each in schemes.items() if _object(each).get("type") in ("oauth2", "openIdConnect")}
        for way in sorted(filter(None, ways), key=lambda way: not is_oauth.isdisjoint(way)):
            rows = []
            for name in way:
                scheme = self._followed(schemes.get(name))
                place, label = str(scheme.get("in")), str(scheme.get("name"))
                kind = str(scheme.get("scheme" if scheme.get("type") == "http" else "type")).lower()
                target = FORMS.get(kind)
                if kind == "apikey" and place in ("header", "query", "cookie"):
                    target = ("header", "Cookie", label + "={}") if place == "cookie" else (place, label, "{}")
                if target:
                    rows.append((self._variable(name), {} not in ways, *target))
            if len(rows) == len(way):
                return rows
        return []

    def _variable(self, scheme: str) -> str:
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", f"rest {self._title} {scheme[:MAX_VARIABLE_CHARS]}").upper()
        return re.sub(r"[^A-Z0-9]+", "_", words)[:MAX_VARIABLE_CHARS].strip("_")


def source_name(place: str) -> str:
    """Return the name of a file, or of a document at a URL, without a query that may have a key."""
    return os.path.basename(urlsplit(place).path if ADDRESS.fullmatch(place) else place) or _host(place)


def _host(place: str) -> str:
    return found[1] if (found := re.match(r"https?://([^/?#]*)", place)) else ""


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _row(values: Sequence[str | bool]) -> str:
    return f"({', '.join(literal(value) if isinstance(value, str) else str(value) for value in values)})"
