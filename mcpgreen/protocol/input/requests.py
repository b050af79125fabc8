"""Input requests: what would make a client reject one, how it looks in older revisions, which capability it needs, and
whether an answer matches it.

An input request is `{"method": ..., "params": ...}` in the newest dialect: a form or a URL (elicitation), a sample of
a model, the roots. A form is flat: strings, numbers, booleans, one or several of some values. A sample has messages of
text, images and audio, and tools if the client supports them. `features.asking` sends the requests and waits.

Answers to forms are checked here and not by jsonschema, because a form is flat and knows few keywords (`tidy`): the
check takes time in proportion to the answer, and the import of jsonschema would block the server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcpgreen.errors import MissingClientCapability
from mcpgreen.protocol.content import CONTENT_TYPES, ROLES
from mcpgreen.protocol.revisions import CLIENT_NEEDS, UI_EXTENSION, Feature, Revision, supports
from mcpgreen.protocol.schemas.problems import described, listed, quoted, shown
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"
LIST_ROOTS = "roots/list"
METHODS = (ELICIT, SAMPLE, LIST_ROOTS)

MAX_FIELDS = 500
MAX_NAME_CHARS = 200

ABOUT_A_FIELD = ("type", "title", "description", "default")
LIMITS_OF_A_FIELD = {
    "string": ("minLength", "maxLength", "format", "enum", "enumNames", "oneOf"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems", "items"),
}
TYPES_OF_A_FIELD = {"string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "array": (list,)}
FORMATS = ("email", "uri", "date", "date-time")
ABOUT_A_SAMPLE = (
    *("messages", "maxTokens", "modelPreferences", "systemPrompt", "includeContext"),
    *("temperature", "stopSequences", "metadata", "tools", "toolChoice"),
)
TOOL_BLOCKS = ("tool_use", "tool_result")

MAX_REQUESTS = 32
MAX_KEY_CHARS = 200
MAX_ROUND_BYTES = 1 << 20  # as much as a line on the control pipe
MAX_STATE_BYTES = 100_000
MAX_PROBLEMS = 5  # that are named for one answer
NAMELESS = "question"  # the key of a question without one, as in the SDKs
ACTIONS = ("accept", "decline", "cancel")


def need_of(request: Json) -> str:
    """The capability that an input request needs, by the name that descriptions use."""
    params = request.get("params") or {}
    if request["method"] == ELICIT:
        return "elicitation.url" if params.get("mode") == "url" else "elicitation.form"
    if request["method"] == SAMPLE:
        return "sampling.tools" if params.get("tools") or "toolChoice" in params else "sampling"
    return "roots"


def is_met(need: str, capabilities: Json, revision: Revision) -> bool:
    """Whether a client of this revision has declared a capability. `elicitation: {}` means forms."""
    feature = CLIENT_NEEDS[need]
    if feature is not None and feature not in revision.features:
        return False
    top, _, part = need.partition(".")
    declared = capabilities.get(top)
    if type(declared) is not dict:
        return False
    if need == "elicitation.form":
        return "form" in declared or "url" not in declared
    return not part or type(declared.get(part)) is dict


def lack_of(need: str) -> str:
    """The sentence for a script that asks a client without this capability."""
    return f"The client does not support {need}."


def require_met(needs: Iterable[str], capabilities: Json, revision: Revision) -> None:
    """Raise MissingClientCapability, with all missing capabilities, unless the client has declared every one."""
    missing = list(dict.fromkeys(need for need in needs if not is_met(need, capabilities, revision)))
    if not missing:
        return
    required: Json = {}
    for need in missing:
        top, _, part = need.partition(".")
        required.setdefault(top, {}).update({part: {}} if part else {})
    text = f"This needs a client with {', '.join(missing)}."
    raise MissingClientCapability(text, data={"requiredCapabilities": required})


def client_variables(capabilities: Json, revision: Revision, transport: str) -> dict[str, str]:
    """The environment variables that describe the client to a script."""
    modes = " ".join(mode for mode in ("form", "url") if is_met(f"elicitation.{mode}", capabilities, revision))
    return {
        "MCP_ELICIT_SUPPORTED": "1" if modes else "0",
        "MCP_ELICIT_MODES": modes,
        "MCP_SAMPLING_SUPPORTED": "1" if is_met("sampling", capabilities, revision) else "0",
        "MCPBASH_CLIENT_SUPPORTS_UI": "1" if supports(UI_EXTENSION, capabilities) else "0",
        "MCPBASH_TRANSPORT": transport,
        f"MCPBASH_TRANSPORT_{transport.upper()}": "true",
    }


def asked_again(request: Json, problem: str | None) -> Json:
    """The same elicitation, with the reason why the last answer did not fit."""
    if not problem or request["method"] != ELICIT:
        return request
    message = f"{request['params']['message']}\n\nThe last answer was not valid: {problem}."
    return {**request, "params": {**request["params"], "message": message}}


def fault_of(asked: object) -> str | None:
    """Say what is wrong with a set of input requests by key."""
    if not isinstance(asked, dict) or not asked or len(asked) > MAX_REQUESTS:
        return f"it must be an object with 1 to {MAX_REQUESTS} questions"
    for key, request in asked.items():
        if len(key) > MAX_KEY_CHARS:
            return f"the key {key[:20]}... is longer than {MAX_KEY_CHARS} characters"
        problem = problem_with(request)
        if problem:
            return problem if key == NAMELESS else f"{key}: {problem}"
    try:
        size_bytes = len(jsontext.dumps(asked))
    except ValueError:
        return "a number is out of range"
    return f"it has more than {MAX_ROUND_BYTES} bytes" if size_bytes > MAX_ROUND_BYTES else None


def fault_of_state(state: object) -> str | None:
    """Say what is wrong with the state that a script wants back. The script gets it in an environment variable."""
    if state is None:
        return None
    try:
        if isinstance(state, str) and "\0" not in state and len(state.encode("utf-8")) <= MAX_STATE_BYTES:
            return None
    except UnicodeEncodeError:
        pass  # half of a surrogate pair
    return f"requestState must be a string of at most {MAX_STATE_BYTES} bytes of UTF-8 without NUL"


def problem_with_answer(request: Json, answer: object) -> str | None:
    """Say why an answer does not fit its input request."""
    if not isinstance(answer, dict):
        return "it must be an object"
    if request["method"] == LIST_ROOTS:
        roots = answer.get("roots")
        are_roots = type(roots) is list and all(type(each) is dict and type(each.get("uri")) is str for each in roots)
        return None if are_roots else "it needs roots: an array of objects with a uri"
    if request["method"] == SAMPLE:
        are_blocks = all(type(block) is dict and type(block.get("type")) is str for block in blocks_of(answer))
        has_all = answer.get("role") in ROLES and are_blocks and type(answer.get("model")) is str
        return None if has_all else "it needs role, content (one block or several) and model"
    if answer.get("action") not in ACTIONS:
        return f"its action must be one of {', '.join(ACTIONS)}"
    params = request["params"]
    if answer["action"] != "accept" or params.get("mode") == "url":
        return None
    content = {} if answer.get("content") is None else answer["content"]
    if type(content) is not dict:
        return "its content must be an object"
    return "; ".join(problems_with_form(params["requestedSchema"], content)[:MAX_PROBLEMS]) or None


def problems_with_form(schema: Json, content: Json) -> list[str]:
    """Say what to change in the answer to a form. Members that the form does not have are ignored."""
    problems = [f"missing required field {quoted(name)}" for name in schema.get("required", ()) if name not in content]
    for name, field in schema["properties"].items():
        problem = _problem_with_value(field, content[name]) if name in content else None
        if problem:
            problems.append(f"{name} {problem}")
    return problems


def _problem_with_value(field: Json, value: object) -> str | None:
    kind = field["type"]
    is_whole = isinstance(value, float) and value.is_integer()
    if type(value) not in TYPES_OF_A_FIELD[kind] and not (kind == "integer" and is_whole):
        return f"must be {kind}, got {described(value)}"
    if isinstance(value, list):
        known = set(_choices(field["items"]))  # a set, because an answer may have thousands of items
        for index, item in enumerate(value):
            if type(item) is not str or item not in known:
                return f"[{index}] must be one of {listed(map(shown, sorted(known)))}, got {described(item)}"
        return _problem_with_number(len(value), field, "minItems", "maxItems", unit=" items")
    choices = _choices(field)
    if choices and value not in choices:
        return f"must be one of {listed(map(shown, choices))}, got {described(value)}"
    if isinstance(value, str):
        return _problem_with_number(len(value), field, "minLength", "maxLength", unit=" characters")
    if isinstance(value, (int, float)) and kind != "boolean":
        return _problem_with_number(value, field, "minimum", "maximum")
    return None


def _problem_with_number(number: float, field: Json, low: str, high: str, *, unit: str = "") -> str | None:
    is_low = low in field and number < field[low]
    if not is_low and not (high in field and number > field[high]):
        return None
    words, bound = ("at least", field[low]) if is_low else ("at most", field[high])
    counted = f"{shown(bound)}{unit[:-1] if bound == 1 else unit}"
    return f"must {'have' if unit else 'be'} {words} {counted}, got {shown(number)}"


def _choices(field: Json) -> list[str]:
    """The values to choose from, plain or with titles; empty for a field without choices."""
    titled = field.get("oneOf") or field.get("anyOf")
    return [each["const"] for each in titled] if titled else field.get("enum", [])


def problem_with(request: object) -> str | None:
    """Say what would make a client reject the input request."""
    if not isinstance(request, dict) or request.get("method") not in METHODS:
        return f"its method must be one of {', '.join(METHODS)}"
    params = request.get("params", {})
    if type(params) is not dict:
        return "its params must be an object"
    if request["method"] == SAMPLE:
        return _problem_with_sample(params)
    if request["method"] == ELICIT:
        return _problem_with_form(params) if params.get("mode", "form") == "form" else _problem_with_url(params)
    return None


def tidy(request: Json) -> Json:
    """A valid input request, reduced to the members that clients of the newest revision know."""
    method, params = request["method"], request.get("params") or {}
    if method != ELICIT:
        known = ABOUT_A_SAMPLE if method == SAMPLE else ()
        return {"method": method, "params": {key: params[key] for key in known if key in params}}
    if params.get("mode") == "url":
        return {"method": method, "params": {key: params[key] for key in ("mode", "message", "url")}}
    schema = params["requestedSchema"]
    fields = {name: _tidy_field(about) for name, about in schema["properties"].items()}
    tidied: Json = {"type": "object", "properties": fields}
    if schema.get("required"):
        tidied["required"] = schema["required"]
    return {"method": method, "params": {"mode": "form", "message": params["message"], "requestedSchema": tidied}}


def fit(request: Json, revision: Revision, *, elicitation_id: str) -> Json:
    """The params of a tidy input request for a client of this revision. Raises ValueError if it has no form of it."""
    params = dict(request["params"])
    if request["method"] == SAMPLE:
        if Feature.SAMPLING_TOOLS not in revision.features:
            params["messages"] = [old for message in params["messages"] for old in _old_messages(message, revision)]
    elif params.get("mode") == "url":
        if Feature.ELICITATION_IDS in revision.features:
            params["elicitationId"] = elicitation_id
    elif params.get("mode") == "form" and Feature.URL_ELICITATION not in revision.features:
        del params["mode"]
        schema = params["requestedSchema"]
        fields = {name: _old_field(name, field) for name, field in schema["properties"].items()}
        params["requestedSchema"] = {**schema, "properties": fields}
    return params


def _problem_with_form(params: Json) -> str | None:
    if type(params.get("message")) is not str:
        return "it needs a message (a string)"
    schema = params.get("requestedSchema")
    if (
        type(schema) is not dict
        or type(schema.get("properties")) is not dict
        or schema.get("type", "object") != "object"
    ):
        return "it needs a requestedSchema: an object with properties"
    required = schema.get("required", [])
    if type(required) is not list or not all(type(name) is str and name in schema["properties"] for name in required):
        return "required must be an array of field names"
    if len(schema["properties"]) > MAX_FIELDS:
        return f"a form has at most {MAX_FIELDS} fields"
    for name, about in schema["properties"].items():
        problem = "has a name that is too long" if len(name) > MAX_NAME_CHARS else _problem_with_field(about)
        if problem:
            return f"field {name[:MAX_NAME_CHARS]} {problem}"
    return None


def _problem_with_field(about: object) -> str | None:
    if not isinstance(about, dict) or about.get("type") not in tuple(LIMITS_OF_A_FIELD):
        return f"must have one of the types {', '.join(LIMITS_OF_A_FIELD)}"
    if not all(type(about.get(key, "")) is str for key in ("title", "description")):
        return "has a title or a description that is not a string"
    if about["type"] == "array":
        items = about.get("items")
        if type(items) is not dict or not _has_choices(items, "anyOf"):
            return "may be an array only if its items are an enum, or anyOf with const and title"
    elif ("enum" in about or "oneOf" in about) and not _has_choices(about, "oneOf"):
        return "must have an enum of strings, or oneOf with const and title"
    names = about.get("enumNames", [])
    if type(names) is not list or not all(type(name) is str for name in names):
        return "has enumNames that are not strings"
    for key in ("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"):
        if type(about.get(key, 0)) not in ((int, float) if key in ("minimum", "maximum") else (int,)):
            return f"has a {key} that is not a number"
    if "default" in about and type(about["default"]) not in TYPES_OF_A_FIELD[about["type"]]:
        return f"has a default that is not of the type {about['type']}"
    return None


def _has_choices(about: Json, titled: str) -> bool:
    """Whether a field has values to choose from, plain or with titles."""
    options = about.get(titled if titled in about else "enum")
    if type(options) is not list or not options:
        return False
    if titled not in about:
        return all(type(each) is str for each in options)
    return all(
        type(each) is dict and type(each.get("const")) is str and type(each.get("title")) is str for each in options
    )


def _tidy_field(about: Json) -> Json:
    """The field, reduced to the keywords that forms have."""
    field = {key: about[key] for key in (*ABOUT_A_FIELD, *LIMITS_OF_A_FIELD[about["type"]]) if key in about}
    if field.get("format") not in FORMATS:
        field.pop("format", None)
    if "oneOf" in field:
        field["oneOf"] = _titled(field["oneOf"])
        field.pop("enum", None)
    elif about["type"] == "array":
        items = field["items"]
        is_titled = "anyOf" in items
        field["items"] = {"anyOf": _titled(items["anyOf"])} if is_titled else {"type": "string", "enum": items["enum"]}
    return field


def _titled(options: list[Json]) -> list[Json]:
    return [{"const": each["const"], "title": each["title"]} for each in options]


def _old_field(name: str, field: Json) -> Json:
    """The field in the first version of forms: no arrays, titles beside the values, defaults for booleans only."""
    if field["type"] == "array":
        raise ValueError(f"This client does not support multiple choice ({name}).")
    old = {key: value for key, value in field.items() if key not in ("default", "oneOf")}
    if field["type"] == "boolean" and "default" in field:
        old["default"] = field["default"]
    if "oneOf" in field:
        old["enum"] = [choice["const"] for choice in field["oneOf"]]
        old["enumNames"] = [choice["title"] for choice in field["oneOf"]]
    return old


def _problem_with_url(params: Json) -> str | None:
    from mcpgreen.text.uris import problem_with as problem_with_uri

    if params.get("mode") != "url":
        return "its mode must be form or url"
    if type(params.get("message")) is not str or type(params.get("url")) is not str:
        return "it needs a message and a url (strings)"
    problem = problem_with_uri(params["url"])
    return f"its url is not an absolute URL: {problem}" if problem else None


def _problem_with_sample(params: Json) -> str | None:
    messages = params.get("messages")
    if type(messages) is not list or not messages:
        return "sampling needs messages (an array)"
    if type(params.get("maxTokens")) is not int or params["maxTokens"] < 1:
        return "sampling needs maxTokens (a positive integer)"
    for message in messages:
        if type(message) is not dict or message.get("role") not in ROLES:
            return f"each message must be an object with one of the roles {', '.join(ROLES)}"
        blocks = blocks_of(message)
        if not blocks:
            return "each message needs content: a block, or an array of blocks"
        for block in blocks:
            problem = _problem_with_block(block)
            if problem:
                return f"content {problem}"
    return None


def blocks_of(message: Json) -> list[Any]:
    content = message.get("content")
    return content if type(content) is list else [content]


def _problem_with_block(block: object) -> str | None:
    if not isinstance(block, dict) or type(block.get("type")) is not str:
        return "must be an object with a type"
    kind = block["type"]
    if kind in TOOL_BLOCKS:
        return None
    if kind not in CONTENT_TYPES or not CONTENT_TYPES[kind].may_be_sampled:
        return f"of the type {kind} cannot be part of a sampling request"
    needed = CONTENT_TYPES[kind].required
    has_all = all(type(block.get(name)) is str for name in needed)
    return None if has_all else f"of the type {kind} needs {' and '.join(needed)} (strings)"


def _old_messages(message: Json, revision: Revision) -> list[Json]:
    """The message as older revisions have it: one block each."""
    blocks = blocks_of(message)
    for block in blocks:
        since = Feature.SAMPLING_TOOLS if block["type"] in TOOL_BLOCKS else CONTENT_TYPES[block["type"]].since
        if since is not None and since not in revision.features:
            raise ValueError(f"This client's model does not accept {block['type']}.")
    return [{"role": message["role"], "content": block} for block in blocks]
