"""The questions that a prompt's description lists: asked before the prompt is made, the answers become arguments. And
those that its program prints: asked, and it is run again.

Rule: what the client gave as an argument counts, and is not asked for.
"""

from __future__ import annotations

from typing import Any

from mcpgreen.catalog.prompts import Prompt
from mcpgreen.errors import InternalError, InvalidParams, MissingClientCapability, Unanswered
from mcpgreen.features.call import Call
from mcpgreen.protocol.input import requests
from mcpgreen.protocol.input.shapes import ELICIT, LIST_ROOTS

Json = dict[str, Any]


def answers_to(call: Call, prompt: Prompt, arguments: Json) -> Json:
    """Arguments by name. Raises InvalidParams if the person does not want to answer."""
    asked = {
        key: question for key, question in prompt.input_requests.items() if not _is_answered(key, question, arguments)
    }
    if not asked:
        return {}
    answers = _ask(call, prompt, asked)
    found: Json = {}
    for key, question in asked.items():
        found.update(_arguments_in(prompt, key, question, answers[key]))
    return found


def take_answers(call: Call, prompt: Prompt, asked: Any, state: Any) -> None:
    """Ask what the program of a prompt printed, so that it can be run again with the answers and its state."""
    fault = requests.fault_of(asked) or requests.fault_of_state(state)
    if fault:
        raise InternalError(f"Prompt '{prompt.name}' asks what cannot be asked: {fault}")
    answers = _ask(call, prompt, asked, own_state=state, knows_answers=False)
    call.interaction.answers |= answers
    call.interaction.own_state = state


def _ask(call: Call, prompt: Prompt, asked: Json, **options: Any) -> Json:
    try:
        return call.services.asking.ask(call, asked, **options)
    except MissingClientCapability as error:
        raise MissingClientCapability(f"Prompt '{prompt.name}': {error.message}", data=error.data) from error
    except Unanswered as error:
        raise InternalError(f"Prompt '{prompt.name}' asked, and there is no answer: {error}") from error


def _is_answered(key: str, question: Json, arguments: Json) -> bool:
    """Whether the arguments have all that the question would bring."""
    schema = question.get("params", {}).get("requestedSchema")
    return all(name in arguments for name in schema["properties"]) if schema else key in arguments


def _arguments_in(prompt: Prompt, key: str, question: Json, answer: Json) -> Json:
    if question["method"] == LIST_ROOTS:
        return {key: "\n".join(root["uri"] for root in answer["roots"])}
    if question["method"] == ELICIT:
        if answer["action"] != "accept":
            did = "declined to answer" if answer["action"] == "decline" else "closed the question"
            raise InvalidParams(f"Prompt '{prompt.name}' cannot be made: the person {did} ({key}).")
        return {name: _as_argument(value) for name, value in (answer.get("content") or {}).items()}
    content = answer["content"]
    blocks = content if isinstance(content, list) else [content]
    return {key: "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))}


def _as_argument(value: Any) -> Any:
    """Several choices as one text."""
    return ", ".join(map(str, value)) if isinstance(value, list) else value
