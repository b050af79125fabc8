"""`mcpgreen read`: the content of a resource, as it is."""

from __future__ import annotations

import base64
import sys

from mcpgreen import journal
from mcpgreen.cli.commands import Options
from mcpgreen.cli.output import print_json
from mcpgreen.cli.trying.client import LocalClient, Refused, serving
from mcpgreen.cli.trying.nearest import suggestion
from mcpgreen.cli.trying.person import answers_for
from mcpgreen.cli.trying.screen import Screen


def run(options: Options) -> int:
    uri = options["URI"]
    with serving(options) as (server, _):
        client = LocalClient(server, answers=answers_for(options["--answer"]))
        listed = client.all_of("resources/list", "resources")
        # People know a resource by its name, too.
        uri = next((each["uri"] for each in listed if each["name"] == uri), uri)
        try:
            result = client.ask("resources/read", {"uri": uri})
        except Refused as refused:
            journal.error("%s", refused)
            known = [each["uri"] for each in listed] + [each["name"] for each in listed]
            for line in suggestion(uri, known).splitlines():
                journal.info("%s", line)
            return 1
    if options["--json"]:
        print_json(result)
    elif sys.stdout.isatty():
        screen = Screen(options)
        for contents in result["contents"]:
            screen.resource(contents)
    else:
        for contents in result["contents"]:
            content = contents["text"].encode("utf-8") if "text" in contents else base64.b64decode(contents["blob"])
            sys.stdout.buffer.write(content)
    return 0
