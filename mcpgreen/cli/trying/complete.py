"""`mcpgreen complete`: what a client would suggest for an argument of a prompt or a variable of a template."""

from __future__ import annotations

import sys
from typing import Any

from mcpgreen.cli.commands import Options
from mcpgreen.cli.output import print_json
from mcpgreen.cli.trying.client import LocalClient, serving
from mcpgreen.cli.trying.screen import Screen, harmless
from mcpgreen.cli.trying.values import values_of

PROMPT = "prompt:"


def run(options: Options) -> int:
    ref = options["REF"]
    reference: dict[str, Any] = {"type": "ref/resource", "uri": ref}
    if ref.startswith(PROMPT):
        reference = {"type": "ref/prompt", "name": ref[len(PROMPT) :]}
    params: dict[str, Any] = {
        "ref": reference,
        "argument": {"name": options["ARGUMENT"], "value": options["PREFIX"] or ""},
    }
    known = values_of(options["--with"], {})
    if known:
        params["context"] = {"arguments": known}
    with serving(options) as (server, _):
        result = LocalClient(server).ask("completion/complete", params)
    if options["--json"]:
        print_json(result)
        return 0
    completion = result["completion"]
    for value in completion["values"]:
        sys.stdout.write(f"{harmless(value)}\n")
    if not completion["values"]:
        Screen(options).note("(nothing)")
    elif completion.get("hasMore"):
        total = completion.get("total")
        Screen(options).note(f"… and more{f', {total} in all' if total else ''}")
    return 0
