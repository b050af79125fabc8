"""`prompts/get`: a template with the arguments put in, or what a prompt's program says."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from typing import Any

from mcpgreen.catalog.descriptions.metadata import shown
from mcpgreen.catalog.prompts import Prompt
from mcpgreen.errors import InternalError, InvalidParams, RpcError
from mcpgreen.features import resources
from mcpgreen.features.call import Call
from mcpgreen.features.prompts import input
from mcpgreen.features.prompts.placeholders import Filling
from mcpgreen.features.scripts import MAX_ROUNDS, allowed_secs, as_text, encoded, output_or_error, run_for, take_answers
from mcpgreen.files.confined import FileFailure, OutsideRoots, Private, TooLarge, open_file
from mcpgreen.protocol.content import ROLES, problem_of_block
from mcpgreen.running.processes.deadline import Deadline
from mcpgreen.running.scripts import results
from mcpgreen.running.scripts.launch import Limits, Script
from mcpgreen.running.scripts.shebang import may_use_shell_sdk
from mcpgreen.running.turns import in_turns
from mcpgreen.text import jsontext, media

Json = dict[str, Any]

LARGE_TEXT_CHARS = 1 << 18


def runs_script(call: Call) -> bool:
    """Find the prompt and say whether a program has to be run for it, somebody has to be asked, or it takes more time
    than others should wait for."""
    name = call.params.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidParams("Prompt name is required")
    prompt: Prompt | None = call.services.snapshot("prompts").by_name.get(name)
    if prompt is None:
        if call.may_find_later("prompts"):
            return True
        raise InvalidParams(f"Prompt '{name}' not found")
    call.require_scopes(prompt.scopes)
    call.target = prompt
    if prompt.is_program or prompt.input_requests or resources.are_needed(prompt.messages):
        return True
    return _is_large(prompt, call.params.get("arguments"))


def get_prompt(call: Call) -> Json:
    prompt: Prompt = call.target
    arguments = _arguments(call, prompt)
    values = _values(prompt, arguments)
    # Arguments make a prompt no longer than a program could.
    limit_chars = call.services.settings.max_tool_output_size
    filling = Filling(values, limit_chars=limit_chars, has_dollars=prompt.placeholders != "braces")
    if prompt.is_program:
        given = {name: value for name, value in values.items() if value or name in arguments}
        result = _from_program(call, prompt, given)
    elif prompt.messages is not None:
        filled = [{**each, "content": filling.fill_all(each["content"])} for each in prompt.messages]
        result = {"messages": [_message(call, prompt, each) for each in filled]}
    else:
        result = {"messages": [_text_message(prompt.role, filling.fill(_template(call, prompt)))]}
    description = prompt.definition.get("description")
    return result if description is None else {"description": description, **result}


def _is_large(prompt: Prompt, arguments: Any) -> bool:
    values = arguments.values() if isinstance(arguments, dict) else ()
    if any(isinstance(value, str) and len(value) > LARGE_TEXT_CHARS for value in values):
        return True
    try:
        return prompt.path is not None and os.stat(prompt.path).st_size > LARGE_TEXT_CHARS
    except OSError:
        return False  # whoever reads it says why


def _arguments(call: Call, prompt: Prompt) -> Json:
    """What the client gave, and what it answered to the prompt's own input requests."""
    arguments = call.params.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise InvalidParams("arguments must be an object.")
    return {**input.answers_to(call, prompt, arguments), **arguments}


def _values(prompt: Prompt, arguments: Json) -> dict[str, str]:
    """What to put in, as text. Raises InvalidParams for what is no text and for what is missing."""
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
    """What stands for an optional argument that was left out: what its schema says, or nothing."""
    schema = prompt.schemas.get(name)
    value = schema.get("default") if isinstance(schema, dict) else None
    return "" if value is None else as_text(value)


def _template(call: Call, prompt: Prompt) -> str:
    assert prompt.path is not None
    content = b"".join(_file(call, prompt, prompt.path, prompt.relative_path))
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").rstrip("\r\n")


def _file(call: Call, prompt: Prompt, path: str, named: str) -> list[bytes]:
    """The content of a file below prompts/, which errors call `named`."""
    services = call.services
    limit_bytes, prompts_dir = services.settings.max_resource_bytes, services.project.prompts_dir
    try:
        with open_file(path, allowed=[prompts_dir], private=Private(prompts_dir, services.project.server_dir)) as file:
            return list(file.chunks(limit_bytes))
    except OutsideRoots:
        reason = f"{named} lies outside prompts/"
    except TooLarge:
        reason = f"{named} has more than {limit_bytes} bytes (max_resource_bytes)"
    except FileFailure as failure:
        reason = f"{named}: {failure}"
    raise InternalError(f"Prompt '{prompt.name}' cannot be read: {reason}")


def _text_message(role: str, text: str) -> Json:
    written: Any = text if len(text) <= LARGE_TEXT_CHARS else jsontext.LargeText(in_turns(_pieces_of(text)))
    return {"role": role, "content": {"type": "text", "text": written}}


def _pieces_of(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), LARGE_TEXT_CHARS // 4):
        yield text[start : start + LARGE_TEXT_CHARS // 4].encode("utf-8", "surrogatepass")


def _message(call: Call, prompt: Prompt, message: Any) -> Json:
    """A message as clients accept it, of a description or of a program."""
    if not isinstance(message, dict):
        raise _invalid(prompt, "each message must be an object with a role and content")
    role, content = message.get("role", prompt.role), message.get("content")
    if role not in ROLES:
        raise _invalid(prompt, f"the role {shown(role)}; user and assistant exist")
    if isinstance(content, str):
        return _text_message(role, content)
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise _invalid(prompt, "content must be a text or one block with a type; several blocks are several messages")
    return {"role": role, "content": _block(call, prompt, content)}


def _block(call: Call, prompt: Prompt, content: Json) -> Json:
    """With the data of a file that the author only named, or the content of a resource that has only a URI."""
    if content["type"] in ("image", "audio") and "data" not in content and isinstance(content.get("path"), str):
        return _shown_file(call, prompt, content)
    if content["type"] == "resource" and resources.is_only_a_uri(content):
        _require_sound(prompt, {**content, "resource": {**content["resource"], "text": ""}})
        return {**content, "resource": {**_read(call, prompt, content["resource"]["uri"]), **content["resource"]}}
    _require_sound(prompt, content)
    return content


def _shown_file(call: Call, prompt: Prompt, content: Json) -> Json:
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
            services.environment.with_more(variables, call.roots.variables, call.about_the_client),
            entry_json=jsontext.dumps(prompt.registry_entry),
            arguments_json=encoded(given, "arguments"),
            deadline=Deadline(secs),
            limits=Limits.of(services.settings),
        )
        if error_report.strip():
            raise results.chosen_error(error_report)
        text = b"".join(output_or_error(script.label, outcome, secs)).decode("utf-8", "replace")
        printed = _printed_json(text)
        if not isinstance(printed, dict) or printed.get("resultType") != "input_required":
            return _from_output(call, prompt, text, printed)
        asked, state = printed.get("inputRequests"), printed.get("requestState")
        with input.explained(prompt):
            take_answers(call, script.label, asked, state, failure=InternalError)
    raise InternalError(f"Prompt '{prompt.name}' asked {MAX_ROUNDS} times without coming to an end.")


def _printed_json(text: str) -> Json | list[Any] | None:
    """The object or array that the program printed; anything else is text."""
    try:
        return jsontext.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except ValueError:
        return None


def _from_output(call: Call, prompt: Prompt, text: str, printed: Json | list[Any] | None) -> Json:
    """What the program says: description and messages (`{"messages": [...]}`, or the bare array), else a text."""
    if isinstance(printed, list):
        # Other arrays are text: only messages have content or a role.
        is_talk = printed and all(isinstance(each, dict) and each.keys() & {"content", "role"} for each in printed)
        printed = {"messages": printed} if is_talk else None
    if printed is None or not isinstance(printed.get("messages"), list):
        return {"messages": [_text_message(prompt.role, text.rstrip("\r\n"))]}
    result = {"messages": [_message(call, prompt, each) for each in printed["messages"]]}
    description = printed.get("description")
    return {"description": description, **result} if isinstance(description, str) else result
