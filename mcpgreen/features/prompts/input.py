"""The input requests that a prompt's description lists: asked before the prompt is made, the answers become arguments.

Rule: what the client gave as an argument counts, and is not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcpgreen.catalog.prompts import Prompt
from mcpgreen.errors import InternalError, InvalidParams, MissingClientCapability, Unanswered
from mcpgreen.features.call import Call
from mcpgreen.protocol.input.shapes import ELICIT, LIST_ROOTS
from mcpgreen.text.json_types import Json


def answers_to(call: Call, prompt: Prompt, arguments: Json) -> Json:
    """Arguments by name. Raises InvalidParams if the person does not want to answer."""
    asked = {
        key: request
        for key, request in prompt.input_requests.items()
        if not arguments.keys() >= set(arguments_from(key, request))
    }
    if not asked:
        return {}
    with explained(prompt):
        answers = call.services.asking.ask(call, asked)
    found: Json = {}
    for key, request in asked.items():
        found.update(_arguments_in(prompt, key, request, answers[key]))
    return found


@contextmanager
def explained(prompt: Prompt) -> Iterator[None]:
    """Why there is no answer, with the name of the prompt."""
    try:
        yield
    except MissingClientCapability as error:
        raise MissingClientCapability(f"Prompt '{prompt.name}': {error.message}", data=error.data) from error
    except Unanswered as error:
        raise InternalError(f"Prompt '{prompt.name}' asked, and there is no answer: {error}") from error


def arguments_from(key: str, request: Json) -> list[str]:
    """The names of the arguments that the answer to an input request becomes."""
    schema = request.get("params", {}).get("requestedSchema")
    return list(schema["properties"]) if schema else [key]


def _arguments_in(prompt: Prompt, key: str, request: Json, answer: Json) -> Json:
    if request["method"] == LIST_ROOTS:
        return {key: "\n".join(root["uri"] for root in answer["roots"])}
    if request["method"] == ELICIT:
        if answer["action"] != "accept":
            did = "declined to answer" if answer["action"] == "decline" else "closed the question"
            raise InvalidParams(f"Prompt '{prompt.name}' cannot be made: the person {did} ({key}).")
        # Several choices are one text.
        return {
            name: ", ".join(map(str, value)) if isinstance(value, list) else value
            for name, value in (answer.get("content") or {}).items()
        }
    content = answer["content"]
    blocks = content if isinstance(content, list) else [content]
    return {key: "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))}
