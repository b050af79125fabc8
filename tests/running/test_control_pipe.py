"""The control pipe of a script: what it may say is bounded, in rate and in number of open questions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpgreen.running.scripts.channel import MAX_LINE_BYTES, Channel
from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, FORM, accept
from tests.support.waiting import eventually
from tests.support.wire import text_of

# Posts as many questions as the pipe takes, without looking at the answers, and says how many that were.
FLOOD = """
import select
control_fd = os.open(os.environ["MCP_PROGRESS_STREAM"], os.O_WRONLY | os.O_NONBLOCK)
line = json.dumps({"ask": {"who": form("x" * 4000, name=TEXT)}, "reply": os.environ["MCP_ASK_REPLY"] + ".1"}) + "\\n"
written = 0
while written < 1000 and select.select([], [control_fd], [], 0.5)[1]:
    os.write(control_fd, line.encode())
    written += 1
print(written, end="")
"""
PROGRESS = b'{"method":"notifications/progress","params":{"progress":%d}}\n'


class Ears:
    """Who listens to a channel."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.has_room = True

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append(progress)

    def log(self, level: str, logger: str | None, data: Any) -> None:
        self.heard.append(data)

    def ask(self, asked: Any, reply: Any, timeout_secs: float | None, *, size_bytes: int) -> None:
        self.heard.append(asked)
        self.has_room = False


def hear_all(channel: Channel) -> None:
    """As a reader does, without the rests."""
    eventually(lambda: not channel.feed(b""))


@pytest.fixture
def ears() -> Ears:
    return Ears()


@pytest.mark.requirement("G-control-bounds")
def test_a_script_that_asks_without_end_has_to_wait(project: ProjectBuilder, speak: Speak) -> None:
    """Its questions were read as fast as it wrote them, while its time stood still: 5 GB."""
    project.python_tool("flood", ASK + FLOOD)
    client = speak(capabilities=FORM)

    assert int(text_of(client.call_tool("flood"))) < 100


@pytest.mark.requirement("G-control-bounds", "G-ask-live")
def test_who_has_to_wait_gets_every_answer_in_the_end(project: ProjectBuilder, speak: Speak) -> None:
    """More questions at once than may be open."""
    posting = "paths = [post({'who': form(str(each), name=TEXT)}) for each in range(30)]"
    printing = "print(json.dumps([read(path)['who']['result']['content']['name'] for path in paths]), end='')"
    project.python_tool("asker", f"{ASK}\n{posting}\n{printing}")
    client = speak(capabilities=FORM)
    id = client.start_tool("asker")
    for _ in range(30):
        request = client.asked("elicitation/create")
        client.answer(request, accept(name=request["params"]["message"]))

    assert json.loads(text_of(client.wire.response(id)["result"])) == [str(each) for each in range(30)]


@pytest.mark.requirement("G-control-bounds")
def test_a_script_that_floods_its_control_pipe_does_not_keep_others_waiting(
    project: ProjectBuilder, speak: Speak
) -> None:
    project.tool("flood", 'echo > up; exec yes "{}" > "$MCP_PROGRESS_STREAM"')
    project.tool("hello", "echo hello")
    client = speak(KILL_GRACE_SECS=0.1)
    id = client.start_tool("flood")
    eventually((project.root / "up").exists)

    for _ in range(5):
        assert client.result("ping") == {}
    assert text_of(client.call_tool("hello")) == "hello\n"
    client.wire.notify("notifications/cancelled", {"requestId": id})
    assert text_of(client.call_tool("hello")) == "hello\n"


@pytest.mark.requirement("G-control-bounds")
def test_nothing_is_heard_while_there_is_no_room_for_questions(ears: Ears) -> None:
    channel = Channel(ears)
    assert channel.feed(b'{"ask":{"a":1}}\n{"ask":{"b":1}}\n' + PROGRESS % 5) > 0
    assert channel.feed(b"") > 0
    assert ears.heard == [{"a": 1}]

    ears.has_room = True
    assert channel.feed(b"") > 0
    ears.has_room = True
    hear_all(channel)
    assert ears.heard == [{"a": 1}, {"b": 1}, 5]


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
def test_lines_may_come_in_pieces(ears: Ears, size: int) -> None:
    text = b"".join(PROGRESS % number for number in range(20)) + b"\n\n{}\nnonsense\n" + PROGRESS % 20
    channel = Channel(ears)
    for start in range(0, len(text), size):
        channel.feed(text[start : start + size])
    hear_all(channel)

    assert ears.heard == list(range(21))


@pytest.mark.requirement("G-control-bounds")
def test_a_line_without_end_is_skipped_to_its_end(ears: Ears) -> None:
    channel = Channel(ears)
    for _ in range(3 * MAX_LINE_BYTES // 65536):
        channel.feed(b"x" * 65536)
    channel.feed(PROGRESS % 1)  # still the same line
    channel.feed(PROGRESS % 2)

    assert ears.heard == [2]


@pytest.mark.requirement("G-control-bounds")
@pytest.mark.parametrize(
    "questions",
    [
        {f"key {number}": {"method": "roots/list"} for number in range(5000)},
        {"k" * 100_000: {"method": "no/such"}, "other": {"method": "roots/list"}},
        {"k" * 100_000: {"method": "roots/list"}},
    ],
    ids=["many", "long key", "long key of a good one"],
)
def test_what_is_too_much_is_refused_in_few_words(
    project: ProjectBuilder, speak: Speak, questions: dict[str, Any]
) -> None:
    """The refusal repeated a long key for every key."""
    project.write("questions.json", json.dumps(questions))
    asking = "questions = json.load(open(os.environ['MCPGREEN_PROJECT_ROOT'] + '/questions.json'))"
    project.python_tool("asker", f"{ASK}\n{asking}\nprint(len(json.dumps(ask(questions))), end='')")
    client = speak(capabilities=FORM)
    assert int(text_of(client.call_tool("asker"))) < 250_000
    assert len(client.wire.stderr) < 5_000


@pytest.mark.requirement("G-control-bounds")
def test_a_script_that_asks_nonsense_again_and_again_is_mentioned_a_few_times(
    project: ProjectBuilder, speak: Speak
) -> None:
    loop = "\nfor _ in range(50): ask({'a': {'method': 'no/such'}})\nprint('done', end='')"
    project.python_tool("asker", ASK + loop)
    client = speak(capabilities=FORM)

    assert text_of(client.call_tool("asker")) == "done"
    assert 1 <= client.wire.stderr.count("an invalid question") < 20
