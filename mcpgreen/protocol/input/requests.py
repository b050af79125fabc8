"""Input requests: which capability of the client one needs, and whether an answer fits it.

An input request is `{"method": ..., "params": ...}` in the newest dialect: a form or a URL (elicitation), a sample of
a model, the roots. `shapes` checks the requests themselves; `features.asking` sends them and waits for the answers.

Answers to forms are checked here and not by jsonschema, because a form is flat and knows few keywords (`shapes.tidy`):
the check takes time in proportion to the answer, and the import of jsonschema would block the server.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from mcpgreen.errors import MissingClientCapability
from mcpgreen.protocol.content import ROLES
from mcpgreen.protocol.input.shapes import ELICIT, LIST_ROOTS, SAMPLE, TYPES_OF_A_FIELD, blocks_of, problem_with
from mcpgreen.protocol.revisions import CLIENT_NEEDS, Revision, supports_ui
from mcpgreen.protocol.schemas.problems import described, listed, quoted, shown
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

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
    if feature is not None and not revision.has(feature):
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
    return f"The client has no {need}."


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
    """The environment variables that describe the client to a script.

    Clients with the same capabilities and transport share one object, so that callers can cache what they derive.
    """
    modes = " ".join(mode for mode in ("form", "url") if is_met(f"elicitation.{mode}", capabilities, revision))
    return _client_variables(modes, is_met("sampling", capabilities, revision), supports_ui(capabilities), transport)


@cache  # sixteen entries for each transport
def _client_variables(modes: str, can_sample: bool, shows_apps: bool, transport: str) -> dict[str, str]:
    return {
        "MCP_ELICIT_SUPPORTED": "1" if modes else "0",
        "MCP_ELICIT_MODES": modes,
        "MCP_SAMPLING_SUPPORTED": "1" if can_sample else "0",
        "MCPBASH_CLIENT_SUPPORTS_UI": "1" if shows_apps else "0",
        "MCPBASH_TRANSPORT": transport,
        f"MCPBASH_TRANSPORT_{transport.upper()}": "true",
    }


def asked_again(request: Json, problem: str | None) -> Json:
    """The same elicitation, with the reason why the last answer did not fit."""
    if not problem or request["method"] != ELICIT:
        return request
    message = f"{request['params']['message']}\n\nThe last answer did not fit: {problem}."
    return {**request, "params": {**request["params"], "message": message}}


def input_required(asked: Json, state: str) -> Json:
    """The result that asks a stateless client to call again with answers."""
    return {"resultType": "input_required", "inputRequests": asked, "requestState": state}


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
        return _problem_with_number(len(value), field, "minItems", "maxItems", unit=" items", verb="have")
    choices = _choices(field)
    if choices and value not in choices:
        return f"must be one of {listed(map(shown, choices))}, got {described(value)}"
    if isinstance(value, str):
        return _problem_with_number(len(value), field, "minLength", "maxLength", unit=" characters", verb="have")
    if isinstance(value, (int, float)) and kind != "boolean":
        return _problem_with_number(value, field, "minimum", "maximum")
    return None


def _problem_with_number(
    number: float, field: Json, low: str, high: str, *, unit: str = "", verb: str = "be"
) -> str | None:
    if low in field and number < field[low]:
        return f"must {verb} at least {shown(field[low])}{unit}, got {shown(number)}"
    if high in field and number > field[high]:
        return f"must {verb} at most {shown(field[high])}{unit}, got {shown(number)}"
    return None


def _choices(field: Json) -> list[str]:
    """The values to choose from, plain or with titles; empty for a field without choices."""
    titled = field.get("oneOf") or field.get("anyOf")
    return [each["const"] for each in titled] if titled else field.get("enum", [])
