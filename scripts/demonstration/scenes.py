"""The scenes of the demonstration. Each shows one thing that the real server does, and fails if it does not.

Nothing is played: the bar is drawn from progress notifications, the cancelled process is looked for, and times are
measured.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

from demonstration.conversation import STATELESS_META, Conversation, Failure, Json
from demonstration.screen import Screen

TOOLS = Path(__file__).resolve().parent / "tools"
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "demo", "version": "1"},
}
DICE = """\
#!/bin/sh
# mcp: {"description": "Roll a die"}
echo "You rolled a $(($$ % 6 + 1))."
"""


class Stage:
    """What every scene needs: the screen, the conversation, and the project, a copy that may be changed."""

    def __init__(self, screen: Screen, client: Conversation, project: Path) -> None:
        self.screen = screen
        self.client = client
        self.project = project

    def sent(self, text: str) -> None:
        self.screen.line(f"→ {text}", style="sent", indent=5)

    def received(self, text: str) -> None:
        self.screen.line(f"← {text}", style="received", indent=5)

    def note(self, text: str) -> None:
        self.screen.note(text, indent=5)

    def install(self, name: str, text: str | None = None) -> str:
        """Put an executable into tools/, one of ours unless a text is given; its text."""
        target = self.project / "tools" / name
        shown = (TOOLS / name).read_text(encoding="utf-8") if text is None else text
        # Under another name first: the server notices the finished file.
        draft = target.with_name(f".{name}")
        draft.write_text(shown, encoding="utf-8")
        draft.chmod(0o755)
        draft.rename(target)
        return shown


def script_to_tool(stage: Stage) -> None:
    stage.screen.title("1  Your script → a tool")
    stage.note("tools/greet.sh, an executable file:")
    for line in stage.install("greet.sh").splitlines():
        stage.screen.line(line, style="code", indent=7)
    stage.screen.pause(0.5)
    stage.client.request("initialize", HELLO)
    stage.client.notify("notifications/initialized")
    tools = stage.client.request("tools/list")["tools"]
    greet = next((tool for tool in tools if tool["name"] == "greet"), None)
    if greet is None:
        raise Failure("The tool greet is not listed.")
    stage.note(f"What a client sees in its list of {len(tools)} tools:")
    stage.received(json.dumps(greet))
    stage.sent('tools/call greet {"name": "Ada"}')
    stage.received(text_of(stage.client.request("tools/call", {"name": "greet", "arguments": {"name": "Ada"}})))


def progress(stage: Stage) -> None:
    stage.screen.title("2  Progress while a script runs")
    stage.sent("tools/call count-words")
    running = stage.client.send("tools/call", {"name": "count-words", "_meta": {"progressToken": "words"}})
    while (message := stage.client.receive()).get("id") != running:
        if message.get("method") == "notifications/progress":
            draw(stage, message["params"])
    stage.received(text_of(message["result"]))


def cancel(stage: Stage) -> None:
    stage.screen.title("3  Cancel: the process is gone, not just forgotten")
    stage.sent('tools/call count-words {"pause": 5}')
    slow = {"name": "count-words", "arguments": {"pause": 5}, "_meta": {"progressToken": "slow"}}
    running = stage.client.send("tools/call", slow)
    process = int(str(stage.client.notice("notifications/message")["data"]).rpartition(" ")[2])
    draw(stage, stage.client.notice("notifications/progress"))
    stage.screen.pause(0.4)
    began_at = time.monotonic()
    stage.client.notify("notifications/cancelled", {"requestId": running})
    stage.sent("notifications/cancelled")
    wait_until_gone(process)
    stage.note(f"Process {process} was gone after {(time.monotonic() - began_at) * 1000:.0f} ms.")


def question(stage: Stage) -> None:
    stage.screen.title("4  A script asks before it acts")
    write_drafts(stage.project)
    stage.sent("tools/call remove-drafts")
    running = stage.client.send("tools/call", {"name": "remove-drafts"})
    while (asked := stage.client.receive()).get("method") != "elicitation/create":
        pass
    stage.received(f"elicitation/create: {asked['params']['message']}")
    stage.screen.pause(0.5)
    stage.sent("yes")
    stage.client.write({"id": asked["id"], "result": {"action": "accept", "content": {"confirmed": True}}})
    stage.received(text_of(stage.client.result(running)))
    expect_no_drafts(stage.project)


def hot_reload(stage: Stage) -> None:
    stage.screen.title("5  A new tool while the server runs: no restart")
    stage.note("tools/dice.sh, written now:")
    for line in DICE.splitlines():
        stage.screen.typed(line, indent=7)
    began_at = time.monotonic()
    stage.install("dice.sh", DICE)
    stage.client.notice("notifications/tools/list_changed")
    stage.received(f"notifications/tools/list_changed after {(time.monotonic() - began_at) * 1000:.0f} ms")
    stage.sent("tools/call dice")
    stage.received(text_of(stage.client.request("tools/call", {"name": "dice"})))


def both_eras(stage: Stage) -> None:
    stage.screen.title("6  The newest protocol, on the same pipe")
    stage.note(
        "Until now: revision 2025-11-25, where a client introduces itself once. From here: 2026-07-28, where each "
        "request stands alone. The same script asks, and its question comes back as the result of the call:"
    )
    write_drafts(stage.project)
    call: Json = {"name": "remove-drafts", "_meta": STATELESS_META}
    stage.sent("tools/call remove-drafts")
    asked = stage.client.request("tools/call", call)
    key, request = next(iter(asked["inputRequests"].items()))
    stage.received(f"{asked['resultType']}: {request['params']['message']}")
    stage.screen.pause(0.5)
    stage.sent("tools/call remove-drafts, again, with the answer: yes")
    answers = {key: {"action": "accept", "content": {"confirmed": True}}}
    call |= {"inputResponses": answers, "requestState": asked["requestState"]}
    stage.received(text_of(stage.client.request("tools/call", call)))
    expect_no_drafts(stage.project)


SCENES = (script_to_tool, progress, cancel, question, hot_reload, both_eras)


def prepare(project: Path, destination: Path) -> None:
    """Copy the example, and put the tools of the later scenes beside its own. The checkout stays as it is."""
    shutil.copytree(project, destination, ignore=shutil.ignore_patterns(".registry", "__pycache__"))
    for name in ("count-words.sh", "remove-drafts.py"):
        shutil.copy(TOOLS / name, destination / "tools")
    shutil.copytree(project.parent / "docs", destination / "pages", ignore=shutil.ignore_patterns("pictures"))
    for path in (destination, *destination.rglob("*")):
        # A clone may have files that a shared group can write to; such scripts are refused.
        path.chmod(path.stat().st_mode & ~0o022)


def draw(stage: Stage, told: Json) -> None:
    stage.screen.bar(told["progress"] / told.get("total", 100), told.get("message", ""), indent=5)


def text_of(result: Json) -> str:
    text = str(result["content"][0]["text"]).strip()
    if result.get("isError"):
        raise Failure(text)
    return text


def write_drafts(project: Path) -> None:
    (project / "drafts").mkdir(exist_ok=True)
    for number in range(3):
        (project / "drafts" / f"{number}.txt").write_text("Dear Sir or Madam\n", encoding="utf-8")


def expect_no_drafts(project: Path) -> None:
    if left := list((project / "drafts").iterdir()):
        raise Failure(f"{len(left)} drafts are still there.")


def wait_until_gone(process: int) -> None:
    give_up_at = time.monotonic() + 5
    while time.monotonic() < give_up_at:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.002)
    raise Failure(f"Process {process} outlived its call.")
