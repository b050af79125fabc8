"""The official TypeScript clients. Each visits the project once per mode, over pipes and over HTTP, and reports; every
test reads one topic."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients import scenario
from tests.support.http import HttpServer
from tests.support.once import once
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import text_of

CLIENT_KILL_SECS = 4.0  # after closing the pipe; the signal before it comes after CLIENT_GRACE_SECS

VISITORS = {
    # name: (driver, mode, revision that it agrees on)
    "2.x-default": ("client2.mjs", "default", "2025-11-25"),
    "2.x-auto": ("client2.mjs", "auto", "2026-07-28"),
    "2.x-pin": ("client2.mjs", "pin", "2026-07-28"),
    "1.x": ("client1.mjs", "default", "2025-11-25"),
}
HTTP = "-http"  # at the end of the name of a visit
BY_PIPE = sorted(VISITORS)
BY_HTTP = [name + HTTP for name in BY_PIPE if name != "2.x-pin"]  # test_typescript_http.py has it over HTTP


@dataclass(frozen=True)
class Visit:
    """What a client reported of its visit."""

    report: dict[str, Any]
    revision: str
    project: ProjectBuilder

    def __getitem__(self, topic: str) -> Any:
        told = self.report[topic]
        assert not (isinstance(told, dict) and "thrown" in told), told
        return told

    def __repr__(self) -> str:
        return f"<Visit of {self.project.root}>"


@pytest.fixture(scope="module", params=[*BY_PIPE, *BY_HTTP])
def visit(request: pytest.FixtureRequest, drivers: Path, tmp_path_factory: pytest.TempPathFactory) -> Visit:
    return visit_of(request.param, drivers, tmp_path_factory)


@pytest.fixture(scope="module", params=BY_PIPE)
def visit_by_pipe(request: pytest.FixtureRequest, drivers: Path, tmp_path_factory: pytest.TempPathFactory) -> Visit:
    return visit_of(request.param, drivers, tmp_path_factory)


@pytest.fixture(scope="module", params=BY_HTTP)
def visit_by_http(request: pytest.FixtureRequest, drivers: Path, tmp_path_factory: pytest.TempPathFactory) -> Visit:
    return visit_of(request.param, drivers, tmp_path_factory)


def visit_of(name: str, drivers: Path, tmp_path_factory: pytest.TempPathFactory) -> Visit:
    driver, mode, revision = VISITORS[name.removesuffix(HTTP)]

    def visit_project(place: Path) -> dict[str, Any]:
        project = scenario.build(place / "project")
        scenario.add_picture(project)
        if not name.endswith(HTTP):
            return {"report": scenario.driven(drivers / driver, mode, project), "root": str(project.root)}
        with HttpServer(project.root, http_trust_client_roots=True) as server:
            report = scenario.driven(drivers / driver, mode, project, url=server.url)
        return {"report": report, "root": str(project.root)}

    told = once(tmp_path_factory, f"visit-{name}", visit_project)
    return Visit(told["report"], revision, ProjectBuilder(Path(told["root"])))


def test_the_client_agrees_on_its_revision(visit: Visit) -> None:
    assert visit["meeting"]["revision"] == visit.revision
    assert visit["meeting"]["server"]["name"] == "test-project"
    assert visit["meeting"]["server"]["version"] == "1.2.3"


def test_the_client_lists_all_tools_with_their_schemas(visit: Visit) -> None:
    tools = {tool["name"]: tool for tool in visit["list"]["tools"]}

    assert list(tools) == scenario.TOOLS
    assert tools["greet"]["description"] == "Greets somebody"
    assert tools["greet"]["inputSchema"]["required"] == ["name"]
    assert tools["weigh"]["outputSchema"]["required"] == ["grams"]


def test_the_roots_of_a_client_that_shook_hands_reach_its_tools(visit: Visit) -> None:
    """A stateless client is not asked; its tools see the configured roots."""
    project = str(visit.project.root)
    own = [f"{project}/tools", f"{project}/aside"], [f"{project}/aside"]
    is_asked = visit.revision == "2025-11-25"

    assert (visit["roots"]["first"], visit["roots"]["last"]) == (own if is_asked else ([project], [project]))


@pytest.mark.requirement("G-http-clients")
def test_a_text_tool_answers_with_its_output(visit: Visit) -> None:
    assert not visit["text"].get("isError")
    assert text_of(visit["text"]) == "Hello Zoë"
    assert "structuredContent" not in visit["text"]


def test_a_tool_with_a_declared_output_answers_with_structure_and_text(visit: Visit) -> None:
    assert not visit["structured"].get("isError")
    assert visit["structured"]["structuredContent"] == {"grams": 1200, "label": "Zürich"}
    assert "1200" in text_of(visit["structured"])


def test_a_tool_that_exits_with_1_answers_with_an_error_result(visit: Visit) -> None:
    assert visit["failing"]["isError"]
    assert "the disk is on fire" in text_of(visit["failing"])


def test_arguments_that_do_not_fit_answer_with_an_error_result(visit: Visit) -> None:
    assert visit["badArguments"]["isError"]
    assert "name" in text_of(visit["badArguments"])


def test_an_unknown_tool_is_a_protocol_error(visit: Visit) -> None:
    assert visit.report["unknownTool"]["thrown"]["code"] == -32602


def test_progress_reaches_the_callback_while_the_tool_runs(visit: Visit) -> None:
    progress = visit["progress"]

    assert progress["heard"] == [{"progress": step, "total": 100, "message": f"at {step}"} for step in scenario.STEPS]
    assert text_of(progress["result"]) == "arrived"


def test_log_messages_of_the_wanted_level_reach_the_handler(visit: Visit) -> None:
    log = visit["log"]

    assert [(message["level"], message["data"]) for message in log["heard"]] == [
        ("warning", "a turn"),
        ("error", {"the": "end"}),
    ]
    assert text_of(log["result"]) == "told"


def test_a_cancelled_call_ends_its_processes_and_nothing_else(visit: Visit) -> None:
    cancel = visit["cancel"]  # the driver itself waited until the processes were gone

    assert cancel["wereAlive"] == [True, True]
    assert cancel["outcome"] == "rejected"
    assert text_of(cancel["afterwards"]) == "Hello again"


def test_a_tool_added_while_connected_is_announced_listed_and_callable(visit: Visit) -> None:
    added = visit["added"]

    assert added["announced"] == added["listed"] == sorted([*scenario.TOOLS, "latecomer"])
    assert text_of(added["result"]) == "better late"


def test_the_client_reads_text_and_a_large_picture(visit: Visit) -> None:
    resources = visit["resources"]

    assert {"letter", "picture"} <= set(resources["names"])
    assert resources["letter"]["text"] == "Dear Zoë\n"
    assert resources["letter"]["mimeType"] == "text/plain"
    picture = (visit.project.root / "resources" / "picture.png").read_bytes()
    assert len(picture) == scenario.PICTURE_BYTES
    assert resources["picture"] == {"type": "image/png", "digest": hashlib.sha256(picture).hexdigest()}


def test_a_resource_that_does_not_exist_is_a_protocol_error(visit: Visit) -> None:
    """A handshake client is told -32002; the 2.x client shows its callers the code of the stateless era instead."""
    assert visit.report["absentResource"]["thrown"]["code"] in (-32002, -32602)


def test_the_client_lists_templates_and_completes_and_reads_them(visit: Visit) -> None:
    assert visit["templates"] == {"names": ["said"], "values": ["hello", "help"], "said": "hello"}


def test_a_subscriber_hears_once_of_one_change(visit: Visit) -> None:
    assert visit["subscription"] == {"heard": 1, "text": "Dear all\n"}


def test_the_client_gets_a_prompt_and_completes_its_argument(visit: Visit) -> None:
    prompt = visit["prompt"]

    assert [argument["name"] for argument in prompt["arguments"]] == ["guest", "tone"]
    assert prompt["values"] == scenario.TONES
    assert [message["content"]["text"] for message in prompt["messages"]] == ["Write a funny invitation for Zoë."]


def test_the_client_finds_nothing_odd_in_what_the_server_sends(visit: Visit) -> None:
    assert visit["errors"] == []


def test_the_server_leaves_by_itself_when_the_client_closes(visit_by_pipe: Visit) -> None:
    close = visit_by_pipe["close"]

    assert (close["code"], close["signal"]) == (0, None)
    assert close["closedMs"] < scenario.CLIENT_GRACE_SECS * 1000


def test_a_client_that_leaves_in_the_middle_of_a_call_needs_no_sigkill(visit_by_pipe: Visit) -> None:
    """It may still finish until the client loses patience and sends SIGTERM; that has to end everything."""
    leaving = visit_by_pipe["leavingInACall"]  # the driver itself waited until the processes of the call were gone

    assert (leaving["code"], leaving["signal"]) == (0, None)
    assert leaving["closedMs"] < CLIENT_KILL_SECS * 1000


def test_a_call_of_a_stateless_client_that_leaves_ends_and_one_of_a_session_goes_on(visit_by_http: Visit) -> None:
    leaving = visit_by_http[
        "leavingInACall"
    ]  # the driver itself waited until the processes of a stateless call were gone

    assert leaving["wasSession"] == (visit_by_http.revision == "2025-11-25")
    assert leaving.get("areAlive") == ([True, True] if leaving["wasSession"] else None)


def test_the_visit_leaves_no_process_behind(visit: Visit) -> None:
    eventually(lambda: not scenario.processes_of(visit.project))


def test_the_client_verifies_the_files_of_a_skill(drivers: Path, tmp_path: Path) -> None:
    project = ProjectBuilder(tmp_path / "project")
    odd = "name: odd\ndescription: >\n  Two\n  lines\nvalues: {on: yes, n: 010, e: 1e3, d: 2026-01-02}\n"
    text = f"\ufeff---\n{odd}---\n\nText\n"
    project.write("skills/odd/SKILL.md", text.replace("\n", "\r\n"))
    project.write("skills/odd/a (1)/ü & b.md", "# Ü\n")
    (project.root / "skills/odd/data.bin").write_bytes(bytes(range(256)))

    found = scenario.driven(drivers / "skills.mjs", "pin", project)

    assert (found["odd"]["files"], len(found["odd"]["children"])) == ([True, True, True], 3)
    assert found["odd"]["frontmatter"]["values"] == {"on": "yes", "n": 10, "e": 1000, "d": "2026-01-02"}
