"""The official TypeScript clients when HTTP fails them: connections that are lost, sessions that are over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients import scenario
from tests.support.http import HttpServer
from tests.support.once import once
from tests.support.waiting import eventually

SESSIONS = {"2.x": ("losing2.mjs", "default"), "1.x": ("losing1.mjs", "default")}


def report_of(name: str, driver: Path, mode: str, factory: pytest.TempPathFactory) -> dict[str, Any]:
    def lose_connections(place: Path) -> Any:
        project = scenario.build(place / "project")
        with HttpServer(project.root, KEEP_ALIVE_SECS=0.5) as server:  # when a stateless call becomes a stream
            report = scenario.driven(driver, mode, project, url=server.url)
        eventually(lambda: not scenario.processes_of(project))
        return report

    report: dict[str, Any] = once(factory, f"losing-{name}", lose_connections)
    return report


@pytest.fixture(scope="module", params=sorted(SESSIONS))
def report(request: pytest.FixtureRequest, drivers: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    driver, mode = SESSIONS[request.param]
    return report_of(request.param, drivers / driver, mode, tmp_path_factory)


def test_a_stateless_call_ends_with_its_connection(drivers: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    report = report_of("stateless", drivers / "losing2.mjs", "pin", tmp_path_factory)

    assert "1200" in report["calling"]["text"]  # the driver waited until the processes of the lost call were gone


def test_a_call_of_a_session_outlives_its_connection_until_it_is_cancelled(report: dict[str, Any]) -> None:
    assert report["calling"]["wereAlive"] == [True, True]  # and the driver waited until they were gone
    assert "enough" in report["calling"]["outcome"]


@pytest.mark.requirement("G-http-resuming")
def test_a_client_that_loses_two_connections_in_a_row_gets_the_rest_once(report: dict[str, Any]) -> None:
    assert report["resuming"] == {"steps": scenario.STEPS, "text": "arrived"}


def test_what_changed_while_the_stream_of_a_session_was_lost_is_told(report: dict[str, Any]) -> None:
    assert report["hearing"]["names"] == sorted([*scenario.TOOLS, "latecomer"])


def test_a_session_that_is_over_is_an_error_and_another_can_be_opened(report: dict[str, Any]) -> None:
    ended = report["ended"]

    assert ended["status"] == 204
    assert 404 in (ended["told"]["code"], ended["told"].get("status"))
    assert "send initialize" in ended["told"]["message"]
    assert ended["text"] == "better late"
