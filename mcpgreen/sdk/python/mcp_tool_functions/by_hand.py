"""Run a function tool as a command, with words like name=value, for trying it out."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

import mcp_tool

from mcp_tool_functions.conversion import (
    Signature,
    call_arguments,
    is_enum,
    member_of_enum,
    resolved,
    union_members,
)
from mcp_tool_functions.results import content_of, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mcp_tool import Json

    from mcp_tool_functions.conversion import Scope

    Function = Callable[..., Any]


def run_by_hand(function: Function, outcome: Callable[[list[Any], Json], Any]) -> int:
    """Call the function with the words of the command line, print its result, and return the exit status."""
    signature = Signature(function)
    words = {}
    for word in sys.argv[1:]:
        name, equals, text = word.partition("=")
        if not equals:
            return _usage(function, signature, "" if word in ("-h", "--help") else f"{word} is no NAME=VALUE")
        words[name] = text
    missing = [name for name in signature.required if name not in words]
    if missing:
        return _usage(function, signature, f"missing: {', '.join(missing)}")
    placed, named = call_arguments(function, _from_words(words, signature.kinds, signature.scope))
    result = outcome(placed, named)
    blocks = content_of(result)
    if blocks is not None and all(block["type"] == "text" for block in blocks):
        mcp_tool.emit_text("\n".join(block["text"] for block in blocks) + "\n")
    elif result is not None:
        print(json.dumps(blocks or plain(result), ensure_ascii=False, indent=2))
    return 0


def _usage(function: Function, signature: Signature, problem: str) -> int:
    stream = sys.stderr if problem else sys.stdout
    words = [f"{name}=…" if name in signature.required else f"[{name}=…]" for name in signature.names]
    lines = [f"{problem}\n"] if problem else []
    lines += [f"Usage: {os.path.basename(sys.argv[0])} {' '.join(words)}", ""]
    if function.__doc__:
        lines += [function.__doc__.strip(), ""]
    lines.append("Values that are not text are JSON. To call it like a client: mcpgreen run-tool NAME")
    print("\n".join(lines), file=stream)
    return 2 if problem else 0


def _from_words(words: Mapping[str, str], kinds: Mapping[str, Any], scope: Scope) -> Json:
    """The arguments that a person typed. A value is read as JSON unless the function wants text."""
    found: Json = {}
    for name, text in words.items():
        kind = resolved(kinds.get(name, object), scope)
        members = [resolved(each, scope) for each in union_members(kind) or (kind,)]
        found[name] = text
        if str not in members and not any(is_enum(each) and text in _choices(each) for each in members):
            with suppress(ValueError):  # the conversion will report the problem
                found[name] = json.loads(text)
    return found


def _choices(kind: Any) -> list[Any]:
    return [member_of_enum(member) for member in kind]
