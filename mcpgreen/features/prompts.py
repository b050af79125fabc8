"""`prompts/get`: a template with the arguments put in, or what a prompt's program says."""

from __future__ import annotations

import os
from typing import Any

from mcpgreen import jsontext, media
from mcpgreen.catalog.prompts import ROLES, Prompt
from mcpgreen.confined import FileFailure, open_file
from mcpgreen.errors import InternalError, InvalidParams
from mcpgreen.features import resources
from mcpgreen.features.call import Call
from mcpgreen.features.placeholders import fill, fill_all
from mcpgreen.features.scripts import output_of
from mcpgreen.protocol import shapes
from mcpgreen.protocol.content import problem_of_block
from mcpgreen.running.starting import Script

Json = dict[str, Any]


def runs_script(call: Call) -> bool:
    """Find the prompt and say whether a program has to be run for it."""
    name = call.params.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidParams("Prompt name is required")
    prompt: Prompt | None = call.services.snapshot("prompts").by_name.get(name)
    if prompt is None:
        raise InvalidParams(f"Prompt '{name}' not found")
    call.target = prompt
    return prompt.is_program or resources.are_needed(prompt.messages)


def get_prompt(call: Call) -> Json:
    prompt: Prompt = call.target
    values = _values(prompt, call.params.get("arguments"))
    if prompt.is_program:
        messages = _from_program(call, prompt, values)
    elif prompt.messages is not None:
        messages = [_message(call, prompt, each, values) for each in prompt.messages]
    else:
        messages = [_text_message(prompt.role, fill(_template(call, prompt), values))]
    result: Json = {"messages": messages}
    if "description" in prompt.definition:
        result = {"description": prompt.definition["description"], **result}
    return result


def fit_result(call: Call, result: Json) -> Json:
    return shapes.fit_prompt_result(result, call.view.revision)


def _values(prompt: Prompt, arguments: Any) -> dict[str, str]:
    """What to put in, as text. Raises InvalidParams for what is no text and for what is missing."""
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise InvalidParams("arguments must be an object.")
    missing = [name for name in prompt.required if name not in arguments]
    if missing:
        raise InvalidParams(f"Prompt '{prompt.name}' needs the argument {', '.join(missing)}.")
    values = {each["name"]: _default(prompt, each["name"]) for each in prompt.definition.get("arguments", ())}
    for name, value in arguments.items():
        if isinstance(value, str):
            values[name] = value
        elif isinstance(value, (bool, int, float)):
            values[name] = jsontext.dumps(value).decode("ascii")
        else:
            raise InvalidParams(f"Argument '{name}' of prompt '{prompt.name}' must be a string.")
    return values


def _default(prompt: Prompt, name: str) -> str:
    """What stands for an optional argument that was left out: what its schema says, or nothing."""
    schema = prompt.schemas.get(name)
    value = schema.get("default") if isinstance(schema, dict) else None
    if value is None:
        return ""
    return value if isinstance(value, str) else jsontext.dumps(value).decode("ascii")


def _template(call: Call, prompt: Prompt) -> str:
    assert prompt.path is not None
    return b"".join(_file(call, prompt, prompt.path)).decode("utf-8", "replace").rstrip("\r\n")


def _file(call: Call, prompt: Prompt, path: str) -> list[bytes]:
    services = call.services
    try:
        with open_file(path, allowed=[services.project.prompts_dir]) as file:
            return list(file.chunks(services.settings.max_resource_bytes))
    except FileFailure as failure:
        raise InternalError(f"Prompt '{prompt.name}' cannot be read: {failure.text}") from failure


def _text_message(role: str, text: str) -> Json:
    return {"role": role, "content": {"type": "text", "text": text}}


def _message(call: Call, prompt: Prompt, template: Json, values: dict[str, str]) -> Json:
    role = template.get("role", prompt.role)
    content = fill_all(template["content"], values)
    if isinstance(content, str):
        return _text_message(role, content)
    return {"role": role, "content": _completed(call, prompt, content) or _checked(prompt, content)}


def _completed(call: Call, prompt: Prompt, content: Json) -> Json | None:
    """With the data of a file that the author only named, or the content of a resource that has only an address."""
    if content["type"] in ("image", "audio") and isinstance(content.get("path"), str) and "data" not in content:
        path = os.path.join(call.services.project.prompts_dir, os.path.dirname(prompt.relative_path), content["path"])
        chunks = _file(call, prompt, path)
        mime_type = media.mime_type(path, chunks[0] if chunks else b"", content.get("mimeType"))
        others = {key: value for key, value in content.items() if key != "path"}
        return {**others, "mimeType": mime_type, "data": jsontext.LargeBlob(chunks)}
    if resources.is_only_an_address(content):
        (contents,) = resources.read_uri(call, content["resource"]["uri"])["contents"]
        return {**content, "resource": {**contents, **content["resource"]}}
    return None


def _checked(prompt: Prompt, content: Json) -> Json:
    problem = problem_of_block(content)
    if problem:
        raise InternalError(f"Prompt '{prompt.name}' has an invalid message: content{problem}")
    return content


def _from_program(call: Call, prompt: Prompt, values: dict[str, str]) -> list[Json]:
    assert prompt.path is not None
    given = {name: value for name, value in values.items() if value or name in (call.params.get("arguments") or {})}
    output = output_of(
        call,
        Script(f"Prompt '{prompt.name}'", prompt.path, [prompt.path]),
        variables={"MCP_PROMPT_NAME": prompt.name, "MCP_PROMPT_PATH": prompt.path},
        arguments=given,
        entry=prompt.registry_entry,
        timeout_secs=prompt.timeout_secs or call.services.settings.default_tool_timeout,
    )
    text = b"".join(output).decode("utf-8", "replace")
    printed = _printed_messages(text)
    if printed is None:
        return [_text_message(prompt.role, text.rstrip("\r\n"))]
    return [_printed_message(prompt, each) for each in printed]


def _printed_messages(text: str) -> list[Any] | None:
    """The messages, if the program printed such: `{"messages": [...]}` or the bare array."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = jsontext.loads(text)
    except ValueError:
        return None
    messages = value.get("messages") if isinstance(value, dict) else value
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        return None
    return messages if all("content" in each for each in messages) else None


def _printed_message(prompt: Prompt, message: Json) -> Json:
    role, content = message.get("role", prompt.role), message["content"]
    if role not in ROLES:
        raise InternalError(
            f"Prompt '{prompt.name}' printed a message with the role {role!r}; user or assistant exist."
        )
    if isinstance(content, str):
        return _text_message(role, content)
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise InternalError(f"Prompt '{prompt.name}' printed a message whose content is neither text nor a block.")
    return {"role": role, "content": _checked(prompt, content)}
