"""Input requests: which capability of the client one takes, and whether an answer fits it.

An input request is `{"method": ..., "params": ...}` in the newest dialect: a form or a URL (elicitation), a sample of
a model, the roots. Its shape is the business of `shapes`; who asks and how the answer comes back, of `features.asking`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from mcpgreen.errors import MissingClientCapability
from mcpgreen.protocol.content import ROLES
from mcpgreen.protocol.input import forms
from mcpgreen.protocol.input.needs import FEATURE_OF_NEED
from mcpgreen.protocol.input.shapes import ELICIT, LIST_ROOTS, SAMPLE, blocks_of, problem_with
from mcpgreen.protocol.revisions import Revision, supports_ui
from mcpgreen.text import jsontext

Json = dict[str, Any]

MAX_REQUESTS = 32
MAX_KEY_CHARS = 200
MAX_ROUND_BYTES = 1 << 20  # as much as a line on the control pipe
MAX_STATE_BYTES = 100_000
MAX_PROBLEMS = 5  # named for one answer
NAMELESS = "question"  # the key of one that its author gave none, as the SDKs have it
ACTIONS = ("accept", "decline", "cancel")


def need_of(request: Json) -> str:
    """Which capability an input request takes, by the name that descriptions use."""
    params = request.get("params") or {}
    if request["method"] == ELICIT:
        return "elicitation.url" if params.get("mode") == "url" else "elicitation.form"
    if request["method"] == SAMPLE:
        return "sampling.tools" if params.get("tools") or "toolChoice" in params else "sampling"
    return "roots"


def is_met(need: str, capabilities: Json, revision: Revision) -> bool:
    """Whether a client of this revision declared what is needed. `elicitation: {}` means forms."""
    if need in FEATURE_OF_NEED and not revision.has(FEATURE_OF_NEED[need]):
        return False
    top, _, part = need.partition(".")
    declared = capabilities.get(top)
    if type(declared) is not dict:
        return False
    if need == "elicitation.form":
        return "form" in declared or "url" not in declared
    return not part or type(declared.get(part)) is dict


def lack_of(need: str) -> str:
    """What a script is told that asks a client without this."""
    return f"The client has no {need}."


def require_met(needs: Iterable[str], capabilities: Json, revision: Revision) -> None:
    """Raises MissingClientCapability, which names all that are not met."""
    missing = [need for need in needs if not is_met(need, capabilities, revision)]
    if missing:
        raise missing_capability(f"This needs a client with {', '.join(dict.fromkeys(missing))}.", missing)


def missing_capability(text: str, needs: Iterable[str]) -> MissingClientCapability:
    required: Json = {}
    for need in needs:
        top, _, part = need.partition(".")
        required.setdefault(top, {}).update({part: {}} if part else {})
    return MissingClientCapability(text, data={"requiredCapabilities": required})


def client_variables(capabilities: Json, revision: Revision, transport: str) -> dict[str, str]:
    """What a script may know of the client that it works for: the same object for clients that can do the same and come
    the same way, so that what is made of it can be kept."""
    modes = " ".join(mode for mode in ("form", "url") if is_met(f"elicitation.{mode}", capabilities, revision))
    return _client_variables(modes, is_met("sampling", capabilities, revision), supports_ui(capabilities), transport)


@cache  # there are sixteen for each transport
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
    """The same elicitation for a person whose last answer did not fit, with the reason."""
    if not problem or request["method"] != ELICIT:
        return request
    message = f"{request['params']['message']}\n\nThe last answer did not fit: {problem}."
    return {**request, "params": {**request["params"], "message": message}}


def input_required(asked: Json, state: str) -> Json:
    """The result that sends a stateless client back with these input requests."""
    return {"resultType": "input_required", "inputRequests": asked, "requestState": state}


def fault_of(asked: Any) -> str | None:
    """What is wrong with a set of input requests by key."""
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


def fault_of_state(state: Any) -> str | None:
    """What is wrong with the state that a script wants back: it comes in a variable of the environment."""
    if state is None:
        return None
    try:
        if isinstance(state, str) and "\0" not in state and len(state.encode("utf-8")) <= MAX_STATE_BYTES:
            return None
    except UnicodeEncodeError:
        pass  # half of a character
    return f"requestState must be a string of at most {MAX_STATE_BYTES} bytes of UTF-8 without NUL"


def problem_with_answer(request: Json, answer: Any) -> str | None:
    """Why an answer does not fit its input request."""
    if type(answer) is not dict:
        return "it must be an object"
    if request["method"] == LIST_ROOTS:
        roots = answer.get("roots")
        are_roots = type(roots) is list and all(type(each) is dict and type(each.get("uri")) is str for each in roots)
        return None if are_roots else "it needs roots: an array of objects with a uri"
    if request["method"] == SAMPLE:
        return _problem_with_sample(answer)
    if answer.get("action") not in ACTIONS:
        return f"its action must be one of {', '.join(ACTIONS)}"
    params = request["params"]
    if answer["action"] != "accept" or params.get("mode") == "url":
        return None
    content = {} if answer.get("content") is None else answer["content"]
    if type(content) is not dict:
        return "its content must be an object"
    return "; ".join(forms.problems_with(params["requestedSchema"], content)[:MAX_PROBLEMS]) or None


def _problem_with_sample(answer: Json) -> str | None:
    are_blocks = all(type(block) is dict and type(block.get("type")) is str for block in blocks_of(answer))
    has_all = answer.get("role") in ROLES and are_blocks and type(answer.get("model")) is str
    return None if has_all else "it needs role, content (one block or several) and model"
