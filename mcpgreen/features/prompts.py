"""`prompts/get`: a template with its arguments filled in, or the output of a prompt's program.

Input requests in the prompt's description are asked before the prompt is made, and the answers become arguments. An
argument that the client gave is not asked for.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mcpgreen.catalog.descriptions.metadata import shown
from mcpgreen.catalog.prompts import Prompt
from mcpgreen.errors import InternalError, InvalidParams, OutputTooLarge, RpcError
from mcpgreen.features import resources
from mcpgreen.features.call import Call, Route
from mcpgreen.features.scripts import (
    MAX_ROUNDS,
    allowed_secs,
    as_text,
    encoded,
    explained,
    named_item,
    output_or_error,
    run_for,
    take_answers,
)
from mcpgreen.files.confined import FileFailure, OutsideRoots, Private, TooLarge, open_file
from mcpgreen.protocol import revision_fields
from mcpgreen.protocol.content import CONTENT_TYPES, ROLES, problem_of_block
from mcpgreen.protocol.input.requests import ELICIT, LIST_ROOTS
from mcpgreen.running.processes.run import Deadline, Limits, Script
from mcpgreen.running.scripts import results
from mcpgreen.running.scripts.shebang import may_use_shell_sdk
from mcpgreen.running.shares import in_turns
from mcpgreen.text import jsontext, media
from mcpgreen.text.json_types import Json

LARGE_TEXT_CHARS = 1 << 18
# An argument may have any name. Names end at the next brace, so that matching is linear.
IN_BRACES = re.compile(r"\{\{([^{}]+)\}\}()")
IN_BRACES_OR_AFTER_DOLLAR = re.compile(r"\{\{([^{}]+)\}\}|\$\{([^{}]+)\}")


class Filling:
    """Puts arguments into a template: `{{name}}` and, if `has_dollars`, `${name}`, each replaced literally.

    Values are not searched for placeholders, and nothing is evaluated. A placeholder without an argument stays in the
    text. The length of all values together is bounded, because a short template may name a long value many times."""

    def __init__(self, values: Mapping[str, str], *, limit_chars: int, has_dollars: bool) -> None:
        self._values = values
        self._placeholder = IN_BRACES_OR_AFTER_DOLLAR if has_dollars else IN_BRACES
        self._limit_chars = limit_chars
        self._used_chars = 0

    def fill_all(self, value: Any) -> Any:
        """Fill every text of a JSON value, but not the names of members. Raises OutputTooLarge."""
        if isinstance(value, str):
            return self._placeholder.sub(self._value_for, value)
        if isinstance(value, list):
            return [self.fill_all(each) for each in value]
        if isinstance(value, dict):
            return {key: self.fill_all(each) for key, each in value.items()}
        return value

    def _value_for(self, match: re.Match[str]) -> str:
        in_braces, after_dollar = match.groups("")
        value = self._values.get(in_braces.strip() or after_dollar, match[0])
        self._used_chars += len(value)
        if self._used_chars > self._limit_chars:
            raise OutputTooLarge(f"With these arguments the prompt is longer than {self._limit_chars} characters")
        return value


def find_prompt(call: Call) -> Prompt:
    prompt: Prompt = named_item(call, call.services.catalog.snapshot("prompts"), "Prompt")
    call.require_scopes(prompt.scopes)
    return prompt


def needs_process(call: Call, prompt: Prompt) -> bool:
    """Tell whether a prompt runs a program, asks the user, or takes more time than the reader has."""
    if prompt.is_program or prompt.input_requests:
        return True
    embeds_unread = any(resources.is_unread(message.get("content")) for message in prompt.messages or ())
    return embeds_unread or _is_large(prompt, call.params.get("arguments"))


def get_prompt(call: Call, prompt: Prompt) -> Json:
    arguments = _arguments(call, prompt)
    values = _values(prompt, arguments)
    # The limit is the same as for the output of a program.
    limit_chars = call.services.settings.max_tool_output_size
    filling = Filling(values, limit_chars=limit_chars, has_dollars=prompt.placeholders != "braces")
    if prompt.is_program:
        given = {name: value for name, value in values.items() if value or name in arguments}
        result = _from_program(call, prompt, given)
    elif prompt.messages is not None:
        filled = [{**each, "content": filling.fill_all(each["content"])} for each in prompt.messages]
        result = {"messages": [_message(call, prompt, each) for each in filled]}
    else:
        result = {"messages": [_text_message(prompt.role, filling.fill_all(_template(call, prompt)))]}
    description = prompt.definition.get("description")
    return result if description is None else {"description": description, **result}


def _is_large(prompt: Prompt, arguments: object) -> bool:
    values = arguments.values() if isinstance(arguments, dict) else ()
    if any(isinstance(value, str) and len(value) > LARGE_TEXT_CHARS for value in values):
        return True
    try:
        return prompt.path is not None and os.stat(prompt.path).st_size > LARGE_TEXT_CHARS
    except OSError:
        return False  # reading it will say why


def _arguments(call: Call, prompt: Prompt) -> Json:
    """Return the arguments from the client, and its answers to the prompt's input requests."""
    arguments = call.params.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise InvalidParams("arguments must be an object.")
    return {**_ask_inputs(call, prompt, arguments), **arguments}


def _values(prompt: Prompt, arguments: Json) -> dict[str, str]:
    """Return the values of all arguments as text. Raises InvalidParams if one is missing or cannot be text."""
    missing = [name for name in prompt.required if name not in arguments]
    if missing:
        raise InvalidParams(f"Prompt '{prompt.name}' needs the argument {', '.join(missing)}.")
    values = {each["name"]: _default(prompt, each["name"]) for each in prompt.definition.get("arguments", ())}
    for name, value in arguments.items():
        if not isinstance(value, (str, bool, int, float)):
            raise InvalidParams(f"Argument '{name}' of prompt '{prompt.name}' must be a string.")
        try:
            values[name] = as_text(value)
        except ValueError:
            raise InvalidParams(f"Argument '{name}' of prompt '{prompt.name}' is a number out of range.") from None
    return values


def _default(prompt: Prompt, name: str) -> str:
    """Return the value of an optional argument that was left out: the default of its schema, or an empty text."""
    schema = prompt.schemas.get(name)
    value = schema.get("default") if isinstance(schema, dict) else None
    return "" if value is None else as_text(value)


def _template(call: Call, prompt: Prompt) -> str:
    assert prompt.path is not None
    content = b"".join(_file(call, prompt, prompt.path, prompt.relative_path))
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").rstrip("\r\n")


def _file(call: Call, prompt: Prompt, path: str, named: str) -> list[bytes]:
    """Read a file below prompts/. Errors call it `named`."""
    services = call.services
    limit_bytes, prompts_dir = services.settings.max_resource_bytes, services.project.prompts_dir
    try:
        with open_file(path, allowed=[prompts_dir], private=Private(prompts_dir, services.project.server_dir)) as file:
            return list(file.chunks(limit_bytes))
    except OutsideRoots:
        reason = f"{named} is outside prompts/"
    except TooLarge:
        reason = f"{named} has more than {limit_bytes} bytes (max_resource_bytes)"
    except FileFailure as failure:
        reason = f"{named}: {failure}"
    raise InternalError(f"Prompt '{prompt.name}' cannot be read: {reason}")


def _text_message(role: str, text: str) -> Json:
    written: object = text
    if len(text) > LARGE_TEXT_CHARS:
        written = jsontext.LargeText(in_turns([text.encode("utf-8", "surrogatepass")]))
    return {"role": role, "content": {"type": "text", "text": written}}


def _message(call: Call, prompt: Prompt, message: object) -> Json:
    """Check a message of a description or a program, and return it as clients accept it."""
    if not isinstance(message, dict):
        raise _invalid(prompt, "each message must be an object with a role and content")
    role, content = message.get("role", prompt.role), message.get("content")
    if role not in ROLES:
        raise _invalid(prompt, f"the role must be user or assistant, found {shown(role)}")
    if isinstance(content, str):
        return _text_message(role, content)
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise _invalid(prompt, "content must be a string or a block with a type; use one message for each block")
    return {"role": role, "content": _block(call, prompt, content)}


def _block(call: Call, prompt: Prompt, content: Json) -> Json:
    """Complete a content block: with the data of the file that it names, or the content of the resource at its URI."""
    row = CONTENT_TYPES.get(content["type"])
    lacks_data = row is not None and "data" in row.required and "data" not in content
    if lacks_data and isinstance(content.get("path"), str):
        return _block_from_file(call, prompt, content)
    if content["type"] == "resource" and resources.is_unread(content):
        _require_sound(prompt, {**content, "resource": {**content["resource"], "text": ""}})
        return {**content, "resource": {**_read(call, prompt, content["resource"]["uri"]), **content["resource"]}}
    _require_sound(prompt, content)
    return content


def _block_from_file(call: Call, prompt: Prompt, content: Json) -> Json:
    place = os.path.join(call.services.project.prompts_dir, os.path.dirname(prompt.relative_path), content["path"])
    chunks = _file(call, prompt, place, content["path"])
    mime_type = media.mime_type(place, chunks[0] if chunks else b"", content.get("mimeType"))
    block = {**{key: value for key, value in content.items() if key != "path"}, "mimeType": mime_type}
    _require_sound(prompt, {**block, "data": ""})
    return {**block, "data": jsontext.LargeBlob(in_turns(chunks))}


def _read(call: Call, prompt: Prompt, uri: str) -> Json:
    try:
        contents: Json = resources.contents_of(call, resources.find(call, uri))["contents"][0]
    except RpcError as error:
        reason = f"{uri}: {error.message}"
        raise InternalError(f"Prompt '{prompt.name}' embeds a resource that cannot be read: {reason}") from error
    return contents


def _require_sound(prompt: Prompt, block: Json) -> None:
    problem = problem_of_block(block)
    if problem:
        raise _invalid(prompt, f"content{problem}")


def _invalid(prompt: Prompt, problem: str) -> InternalError:
    return InternalError(f"Prompt '{prompt.name}' has an invalid message: {problem}")


def _from_program(call: Call, prompt: Prompt, given: dict[str, str]) -> Json:
    assert prompt.path is not None
    services, project = call.services, call.services.project
    ground, wants_table = project.ground(project.prompts_dir), may_use_shell_sdk(prompt.path)
    script = Script(f"Prompt '{prompt.name}'", prompt.path, [prompt.path], ground, wants_table=wants_table)
    variables = {"MCP_PROMPT_NAME": prompt.name, "MCP_PROMPT_PATH": prompt.path}
    secs = allowed_secs(call, prompt.timeout_secs or services.settings.default_tool_timeout)
    for _ in range(MAX_ROUNDS):
        outcome, error_report, _ = run_for(
            call,
            script,
            services.environment.with_more(variables, call.roots.variables, call.client_variables),
            entry_json=jsontext.dumps(prompt.registry_entry),
            arguments_json=encoded(given, "arguments"),
            deadline=Deadline(secs),
            limits=Limits.of(services.settings),
        )
        if error_report.strip():
            raise results.chosen_error(error_report)
        text = b"".join(output_or_error(call, script.label, outcome, secs)).decode("utf-8", "replace")
        printed: Json | list[Any] | None = None  # the object or array that was printed
        if text.lstrip()[:1] in ("{", "["):
            with suppress(ValueError):
                printed = jsontext.loads(text)
        if not isinstance(printed, dict) or printed.get("resultType") != "input_required":
            return _from_output(call, prompt, text, printed)
        asked, state = printed.get("inputRequests"), printed.get("requestState")
        take_answers(call, script.label, asked, state, failure=InternalError)
    raise InternalError(f"Prompt '{prompt.name}' asked {MAX_ROUNDS} times without finishing.")


def _from_output(call: Call, prompt: Prompt, text: str, printed: Json | list[Any] | None) -> Json:
    """Read the output of a program: `{"description", "messages"}`, an array of messages, or anything else as text."""
    if isinstance(printed, list):
        # An array of anything but messages is plain text.
        are_messages = printed and all(isinstance(each, dict) and each.keys() & {"content", "role"} for each in printed)
        printed = {"messages": printed} if are_messages else None
    if printed is None or not isinstance(printed.get("messages"), list):
        return {"messages": [_text_message(prompt.role, text.rstrip("\r\n"))]}
    result = {"messages": [_message(call, prompt, each) for each in printed["messages"]]}
    description = printed.get("description")
    return {"description": description, **result} if isinstance(description, str) else result


def _ask_inputs(call: Call, prompt: Prompt, arguments: Json) -> Json:
    """Ask the input requests of a prompt and return arguments by name. Raises InvalidParams without an answer."""
    asked = {
        key: request
        for key, request in prompt.input_requests.items()
        if not arguments.keys() >= set(arguments_from(key, request))
    }
    if not asked:
        return {}
    with explained(f"Prompt '{prompt.name}'", InternalError):
        answers = call.services.asking.ask(call, asked)
    found: Json = {}
    for key, request in asked.items():
        found.update(_arguments_in(prompt, key, request, answers[key]))
    return found


def arguments_from(key: str, request: Json) -> list[str]:
    """Return the names of the arguments that come from the answer to an input request."""
    schema = request.get("params", {}).get("requestedSchema")
    return list(schema["properties"]) if schema else [key]


def _arguments_in(prompt: Prompt, key: str, request: Json, answer: Json) -> Json:
    if request["method"] == LIST_ROOTS:
        return {key: "\n".join(root["uri"] for root in answer["roots"])}
    if request["method"] == ELICIT:
        if answer["action"] != "accept":
            did = "declined to answer" if answer["action"] == "decline" else "dismissed the question"
            raise InvalidParams(f"Prompt '{prompt.name}' cannot be created: the user {did} ({key}).")
        # Several choices are one text.
        return {
            name: ", ".join(map(str, value)) if isinstance(value, list) else value
            for name, value in (answer.get("content") or {}).items()
        }
    content = answer["content"]
    blocks = content if isinstance(content, list) else [content]
    return {key: "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))}


GET = Route(
    find_prompt,
    get_prompt,
    needs_process=needs_process,
    may_repeat=lambda call, prompt: True,
    fit=revision_fields.fit_prompt_result,
)
