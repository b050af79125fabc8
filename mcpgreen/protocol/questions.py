"""What may be asked of the person or model at the other end: which capability that takes, how an older client has to
be asked, and whether an answer fits the question.

A question is `{"method": ..., "params": ...}` in the newest dialect: a form, a URL to visit, a sample of a model, the
roots. Pure functions; who asks and how the answer comes back is in `features.asking`.
"""

from __future__ import annotations

from typing import Any

from mcpgreen.errors import MissingClientCapability
from mcpgreen.protocol.revisions import Feature, Revision, supports_ui

Json = dict[str, Any]

ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"
LIST_ROOTS = "roots/list"
METHODS = (ELICIT, SAMPLE, LIST_ROOTS)

# What a description may say that a tool needs, as the capability that a client declares.
CAPABILITY_OF_NEED: dict[str, Json] = {
    "elicitation": {"elicitation": {}},
    "elicitation.form": {"elicitation": {"form": {}}},
    "elicitation.url": {"elicitation": {"url": {}}},
    "sampling": {"sampling": {}},
    "sampling.tools": {"sampling": {"tools": {}}},
    "roots": {"roots": {}},
}

MAX_QUESTIONS = 32
ACTIONS = ("accept", "decline", "cancel")
FIELD_TYPES = ("string", "number", "integer", "boolean", "array")


def need_of(question: Json) -> str:
    """Which capability a question takes, by the name that descriptions use."""
    params = question.get("params") or {}
    if question["method"] == ELICIT:
        return "elicitation.url" if params.get("mode") == "url" else "elicitation.form"
    if question["method"] == SAMPLE:
        return "sampling.tools" if params.get("tools") else "sampling"
    return "roots"


def is_met(need: str, capabilities: Json, revision: Revision) -> bool:
    """Whether a client of this revision declared what is needed. `elicitation: {}` means forms."""
    top, _, part = need.partition(".")
    if top == "elicitation" and not revision.has(Feature.ELICITATION):
        return False
    declared = capabilities.get(top)
    if type(declared) is not dict:
        return False
    if need == "elicitation.form":
        return "form" in declared or "url" not in declared
    if need == "elicitation.url":
        return revision.has(Feature.URL_ELICITATION) and type(declared.get("url")) is dict
    return not part or type(declared.get(part)) is dict


def require_met(needs: tuple[str, ...], capabilities: Json, revision: Revision) -> None:
    """Raises MissingClientCapability, which names all that are not met."""
    missing = [need for need in needs if not is_met(need, capabilities, revision)]
    if missing:
        required: Json = {}
        for need in missing:
            for top, parts in CAPABILITY_OF_NEED[need].items():
                required[top] = {**required.get(top, {}), **parts}
        raise MissingClientCapability(
            f"This needs a client with {', '.join(missing)}.", data={"requiredCapabilities": required}
        )


def client_variables(capabilities: Json, revision: Revision) -> dict[str, str]:
    """What a script may know of the client that it works for."""
    modes = [mode for mode in ("form", "url") if is_met(f"elicitation.{mode}", capabilities, revision)]
    return {
        "MCP_ELICIT_SUPPORTED": "1" if modes else "0",
        "MCP_ELICIT_MODES": " ".join(modes),
        "MCP_SAMPLING_SUPPORTED": "1" if is_met("sampling", capabilities, revision) else "0",
        "MCPBASH_CLIENT_SUPPORTS_UI": "1" if supports_ui(capabilities) else "0",
    }


def input_required(asked: Json, state: str) -> Json:
    """The result that sends a stateless client back with these questions."""
    return {"resultType": "input_required", "inputRequests": asked, "requestState": state}


def fault_of(asked: Any) -> str | None:
    """What is wrong with a set of questions by key."""
    if not isinstance(asked, dict) or not asked or len(asked) > MAX_QUESTIONS:
        return f"it must be an object with 1 to {MAX_QUESTIONS} questions"
    for key, question in asked.items():
        problem = problem_with(question)
        if problem:
            return f"{key}: {problem}"
    return None


def problem_with(question: Any) -> str | None:
    """What would make a client reject the question."""
    if type(question) is not dict or question.get("method") not in METHODS:
        return f"its method must be one of {', '.join(METHODS)}"
    params = question.get("params", {})
    if type(params) is not dict:
        return "its params must be an object"
    if question["method"] == ELICIT:
        return _problem_with_form(params) if params.get("mode", "form") == "form" else _problem_with_url(params)
    if question["method"] == SAMPLE:
        if type(params.get("messages")) is not list or not params["messages"]:
            return "sampling needs messages (an array)"
        if type(params.get("maxTokens")) is not int or params["maxTokens"] < 1:
            return "sampling needs maxTokens (a positive integer)"
    return None


def _problem_with_form(params: Json) -> str | None:
    if type(params.get("message")) is not str:
        return "it needs a message (a string)"
    schema = params.get("requestedSchema")
    if type(schema) is not dict or type(schema.get("properties")) is not dict:
        return "it needs a requestedSchema with properties"
    for name, field in schema["properties"].items():
        if type(field) is not dict or field.get("type") not in FIELD_TYPES:
            return f"field {name} must have one of the types {', '.join(FIELD_TYPES)}"
        if field["type"] == "array" and not _is_choice_of_several(field):
            return f"field {name} may be an array only of an enum"
    return None


def _problem_with_url(params: Json) -> str | None:
    if params.get("mode") != "url":
        return "its mode must be form or url"
    if type(params.get("message")) is not str or type(params.get("url")) is not str:
        return "it needs a message and a url (strings)"
    return None


def _is_choice_of_several(field: Json) -> bool:
    items = field.get("items")
    return type(items) is dict and any(type(items.get(key)) is list for key in ("enum", "anyOf", "oneOf"))


def fit(question: Json, revision: Revision, *, elicitation_id: str) -> Json:
    """The params as a client of this revision reads them. Raises ValueError for what it cannot be asked."""
    params = dict(question.get("params") or {})
    if question["method"] != ELICIT:
        return params
    if params.get("mode") == "url":
        if revision.has(Feature.ELICITATION_IDS):
            params["elicitationId"] = elicitation_id
        return params
    schema = params["requestedSchema"]
    params["requestedSchema"] = {"type": "object", **schema}
    if revision.has(Feature.URL_ELICITATION):
        params["mode"] = "form"
        return params
    params.pop("mode", None)
    fields = {name: _old_field(name, field) for name, field in schema["properties"].items()}
    params["requestedSchema"]["properties"] = fields
    return params


def _old_field(name: str, field: Json) -> Json:
    """As forms were first defined: no lists, titles beside the values, a default for booleans only."""
    if field["type"] == "array":
        raise ValueError(f"this client cannot choose several ({name})")
    old = {key: value for key, value in field.items() if key not in ("default", "oneOf")}
    if field["type"] == "boolean" and "default" in field:
        old["default"] = field["default"]
    if type(field.get("oneOf")) is list:
        old["enum"] = [choice.get("const") for choice in field["oneOf"]]
        old["enumNames"] = [choice.get("title", choice.get("const")) for choice in field["oneOf"]]
    return old


def problem_with_answer(question: Json, answer: Any) -> str | None:
    """Why an answer does not fit its question."""
    if type(answer) is not dict:
        return "it must be an object"
    if question["method"] == LIST_ROOTS:
        return None if type(answer.get("roots")) is list else "it needs roots (an array)"
    if question["method"] == SAMPLE:
        has_all = type(answer.get("role")) is str and "content" in answer and type(answer.get("model")) is str
        return None if has_all else "it needs role, content and model"
    if answer.get("action") not in ACTIONS:
        return f"its action must be one of {', '.join(ACTIONS)}"
    params = question.get("params") or {}
    if answer["action"] != "accept" or params.get("mode") == "url":
        return None
    content = answer.get("content")
    if type(content) is not dict:
        return "its content must be an object"
    from mcpgreen.protocol import schemas

    try:
        checker = schemas.compile_schema({"type": "object", **params["requestedSchema"]}, noun="field")
        return "; ".join(checker.problems(content)) or None
    except schemas.BadSchema:
        return None  # ours to mend, and no reason to refuse what somebody typed
