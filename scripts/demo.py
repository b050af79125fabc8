"""`make run`: a real client talks to the real server over a pipe, and you watch.

It takes some seconds at a terminal, ends by itself, and leaves the checkout as it is. The exit status is 0 if
everything went as it should.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from demonstration.conversation import Conversation, Failure
from demonstration.scenes import SCENES, Stage, prepare
from demonstration.screen import Screen, standard_screen

CHECKOUT = Path(__file__).resolve().parent.parent
LAUNCHER = CHECKOUT / "scripts" / "mcpgreen"
NEXT = "Next: scripts/mcpgreen new ../my-server, then docs/tutorial.md, docs/clients.md"  # fits 80 columns


def show(screen: Screen) -> int:
    screen.line("mcpgreen: a folder of scripts becomes an MCP server.", style="title")
    with tempfile.TemporaryDirectory(prefix="mcpgreen-demo-") as directory:
        project = Path(directory) / "project"
        prepare(CHECKOUT / "project", project)
        client = Conversation(LAUNCHER, project)
        try:
            for scene in SCENES:
                scene(Stage(screen, client, project))
                screen.pause(0.3)
        except BaseException:
            client.abandon()
            raise
        status = client.close()
    screen.line("")
    screen.line(NEXT)
    return status


def main() -> int:
    # A terminal whose encoding lacks a character shows a question mark.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    try:
        return show(standard_screen())
    except Failure as failure:
        print(f"The demonstration failed: {failure}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read it has seen enough, as in `make run | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
