"""docs/REMOTE.md tells the truth: its commands work, its settings and defaults exist, its metrics are measured."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from mcpgreen.settings.table import ROWS
from tests.deployment.cluster import free_port
from tests.support.http import HttpServer
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder
from tests.support.wire import clean_environment
from tests.test_docs_examples import CHECKOUT, blocks_of

PAGE = CHECKOUT / "docs" / "REMOTE.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = {block.info or block.language: block.text for block in blocks_of(PAGE)}
TOKEN = "t" * 40
ADDRESS = "127.0.0.1:8808"
ROUND = """{serve} 2>said &
until grep -q '^mcpgreen: serving' said; do kill -0 $! || exit 1; sleep 0.02; done
grep '^mcpgreen: serving' said
{call}
kill $!
wait $!
"""


def test_a_server_is_started_and_asked_as_the_page_says(tmp_path: Path) -> None:
    require_program("curl")
    require_program("openssl")
    project = shutil.copytree(CHECKOUT / "project", tmp_path / "project", ignore=shutil.ignore_patterns(".registry"))
    for path in Path(project).rglob("*"):
        path.chmod(path.stat().st_mode & ~0o022)  # whatever the umask of the clone
    address = f"127.0.0.1:{free_port()}"
    serve = BLOCKS["serve"].rstrip().replace("scripts/mcpgreen", str(CHECKOUT / "scripts" / "mcpgreen"))
    calls = "\necho\n".join(BLOCKS[each].rstrip() for each in ("call", "call-tool", "session"))
    script = ROUND.format(serve=serve, call=calls).replace(ADDRESS, address)

    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=clean_environment({"MCPGREEN_PYTHON": sys.executable}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done
    said, answer, *called = done.stdout.splitlines()
    assert said == BLOCKS["text"].strip().replace(ADDRESS, address)
    assert "hello" in {tool["name"] for tool in json.loads(answer)["result"]["tools"]}
    assert [json.loads(each)["result"]["structuredContent"]["sum"] for each in called] == [3, 3]


def test_every_metric_of_the_page_is_measured_and_no_other(project: ProjectBuilder) -> None:
    with HttpServer(project.root, http_token=TOKEN) as server:
        server.stateless(token=TOKEN).request("tools/list")
        with server.client(token=TOKEN).send("GET", path="/metrics") as reply:
            measured = set(re.findall(r"^(mcpgreen_\w+)", reply.body.decode(), re.MULTILINE))

    assert set(re.findall(r"^\| `(mcpgreen_\w+)` \|", TEXT, re.MULTILINE)) == measured - {
        "mcpgreen_http_requests_created"
    }


def test_every_setting_of_the_page_exists() -> None:
    names = {row.name for row in ROWS}
    variables = {variable for row in ROWS for variable in row.variables}

    assert set(re.findall(r"`(http_\w+)[`=]", TEXT)) <= names
    assert set(re.findall(r"MCPGREEN_[A-Z_]+", TEXT)) <= variables


def test_the_defaults_of_the_page_are_those_of_the_settings() -> None:
    defaults = {row.name: row.default for row in ROWS}
    shown = re.findall(r"^\| `(\w+)` \| ([\d.]+) (s|min|MiB) \|", TEXT, re.MULTILINE)
    unit = {"s": 1, "min": 60, "MiB": 1024 * 1024}

    assert len(shown) > 5
    assert {name: float(number) * unit[of] for name, number, of in shown} == {
        name: defaults[name] for name, _, _ in shown
    }
