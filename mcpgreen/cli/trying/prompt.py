"""`mcpgreen prompt`: the messages that a prompt becomes."""

from __future__ import annotations

from mcpgreen import journal
from mcpgreen.cli.commands import Options
from mcpgreen.cli.output import print_json
from mcpgreen.cli.trying.client import LocalClient, Refused, serving
from mcpgreen.cli.trying.nearest import left_out, suggestion
from mcpgreen.cli.trying.person import answers_for
from mcpgreen.cli.trying.screen import Screen
from mcpgreen.cli.trying.values import values_of


def run(options: Options) -> int:
    name = options["NAME"]
    with serving(options) as (server, _):
        client = LocalClient(server, answers=answers_for(options["--answer"]))
        arguments = values_of(options["ARGUMENT"], {})
        try:
            result = client.ask("prompts/get", {"name": name, "arguments": arguments})
        except Refused as refused:
            journal.error("%s", refused)
            known = server.services.snapshot("prompts").by_name
            if name not in known:
                for line in suggestion(name, known, left_out(server)).splitlines():
                    journal.info("%s", line)
            return 1
    if options["--json"]:
        print_json(result)
        return 0
    screen = Screen(options)
    for message in result["messages"]:
        if len(result["messages"]) > 1:
            screen.text(f"[{message['role']}]", "bold")
        screen.content([message["content"]])
    return 0
