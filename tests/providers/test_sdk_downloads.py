"""The Python SDK: trying again, and fetching through the https provider from a real site."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.providers.conftest import Desk
from tests.providers.site import Site
from tests.support.programs import completed
from tests.support.wire import CHECKOUT

SDK = CHECKOUT / "mcpgreen" / "sdk"
HEAD = "import os, sys\nimport mcp_tool\n"

Fetch = Callable[..., Any]


def run_tool(directory: Path, body: str, **env: str) -> subprocess.CompletedProcess[str]:
    return completed(
        [sys.executable, "-B", "-W", "error", "-c", f"{HEAD}{body}"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SDK), **env},
        cwd=directory,
    )


def value_of(directory: Path, expression: str, **env: str) -> Any:
    ended = run_tool(directory, f"mcp_tool.emit_json({expression})", **env)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture
def download(tmp_path: Path, desk: Desk, site: Site) -> Fetch:
    """`download_safe` of a path of the site into `out`; loopback is open, but no host is allowed unless named."""
    env = {
        "SSL_CERT_FILE": desk.env["SSL_CERT_FILE"],
        "MCPGREEN_PYTHON": sys.executable,
        "MCPGREEN_NET_ALLOW_ADDRESSES": "127.0.0.1",
        "MCPBASH_HOME": str(CHECKOUT / "mcpgreen"),
    }

    def fetch(path: str, options: str = "allow=['127.0.0.1']", out: str = "out", **more: str) -> Any:
        url = f"https://127.0.0.1:{site.port}{path}"
        return value_of(tmp_path, f"mcp_tool.download_safe({url!r}, {out!r}, {options})", **{**env, **more})

    return fetch


def test_a_download_is_a_file(download: Fetch, tmp_path: Path) -> None:
    assert download("/ok") == {"success": True, "bytes": 9, "path": "out"}
    assert (tmp_path / "out").read_bytes() == b"caf\xc3\xa9\n\x00\xff\n"


def test_without_hosts_of_its_own_a_tool_has_those_of_the_operator(download: Fetch) -> None:
    assert download("/ok", "")["error"]["type"] == "host_blocked"
    assert download("/ok", "", MCPGREEN_HTTPS_ALLOW_HOSTS="127.0.0.1")["success"]


# What the operator sets (HTTPS_...), what the tool allows and denies, and whether 127.0.0.1 can be reached then.
HERE, OTHER = "127.0.0.1", "other.example"
REACHABLE: list[tuple[dict[str, str], list[str], list[str], bool]] = [
    ({}, [], [], False),
    ({}, [HERE], [], True),
    ({}, [OTHER, HERE], [OTHER], True),
    ({}, [HERE], [HERE], False),
    ({"MCPGREEN_ALLOW_HOSTS": HERE}, [], [], True),
    ({"MCPGREEN_ALLOW_HOSTS": HERE}, [OTHER], [], False),
    ({"MCPGREEN_ALLOW_ALL": "true"}, [], [], True),
    ({"MCPGREEN_ALLOW_ALL": "true"}, [], [HERE], False),
    ({"MCPGREEN_ALLOW_ALL": "true"}, [OTHER], [], False),
    ({"MCPBASH_ALLOW_ALL": "true"}, [OTHER], [], False),
    ({"MCPGREEN_ALLOW_ALL": "true"}, [""], [], False),
    ({"MCPGREEN_ALLOW_ALL": "true"}, ["", HERE], [""], True),
    ({"MCPGREEN_ALLOW_HOSTS": HERE}, [""], [], False),
    ({"MCPBASH_ALLOW_HOSTS": HERE}, [" "], [], False),
    ({"MCPGREEN_DENY_HOSTS": HERE}, [HERE], [OTHER], False),
    ({"MCPBASH_DENY_HOSTS": HERE}, [HERE], [OTHER], False),
    ({"MCPGREEN_DENY_HOSTS": "", "MCPBASH_DENY_HOSTS": HERE}, [HERE], [OTHER], False),
]


def by_python(settings: dict[str, str], allow: list[str], deny: list[str]) -> str:
    call = f"mcp_tool.download_safe(os.environ['URL'], 'out', allow={allow}, deny={deny})"
    return f"os.environ.update({settings})\nprint({call}['success'])\nfor n in {settings}: del os.environ[n]\n"


def by_shell(settings: dict[str, str], allow: list[str], deny: list[str]) -> str:
    words = [f"--allow '{host}'" for host in allow] + [f"--deny '{host}'" for host in deny]
    given = " ".join(f"{name}={value!r}" for name, value in settings.items())
    call = f'{given} mcp_download_safe --url "$URL" --out out {" ".join(words)}'
    return f"case $({call}) in *'\"success\":true'*) echo True ;; *) echo False ;; esac\n"


@pytest.mark.parametrize(
    ("row", "program"),
    [(by_python, [sys.executable, "-c", HEAD]), (by_shell, ["bash", "-c", '. "$MCP_SDK/tool-sdk.sh"\n'])],
)
def test_both_sdks_reach_the_same_hosts(
    desk: Desk, site: Site, tmp_path: Path, row: Callable[..., str], program: list[str]
) -> None:
    """In Python, a tool that allowed some hosts reached all of them if the operator allowed all."""
    rows = [
        ({name.replace("_", "_HTTPS_", 1): value for name, value in settings.items()}, allow, deny)
        for settings, allow, deny, _ in REACHABLE
    ]
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SDK),
        "MCP_SDK": str(SDK),
        "URL": f"https://127.0.0.1:{site.port}/ok",
        "SSL_CERT_FILE": desk.env["SSL_CERT_FILE"],
        "MCPGREEN_PYTHON": sys.executable,
        "MCPGREEN_NET_ALLOW_ADDRESSES": "127.0.0.1",
    }
    script = program[-1] + "".join(row(*each) for each in rows)
    printed = subprocess.check_output([*program[:-1], script], env=env, cwd=tmp_path, text=True, timeout=120)

    assert printed.split() == [str(is_reached) for *_, is_reached in REACHABLE]


@pytest.mark.parametrize(
    ("path", "options", "kind"),
    [
        ("/ok", "allow=['127.0.0.1'], deny=['127.0.0.1']", "host_blocked"),
        ("/broken", "allow=['127.0.0.1']", "network_error"),
        ("/silent", "allow=['127.0.0.1'], timeout=0.3", "network_error"),
        ("/big", "allow=['127.0.0.1'], max_bytes=1000", "size_exceeded"),
    ],
)
def test_a_download_that_fails_says_why_and_leaves_nothing(
    download: Fetch, tmp_path: Path, path: str, options: str, kind: str
) -> None:
    outcome = download(path, options)

    assert (outcome["success"], outcome["error"]["type"]) == (False, kind)
    assert outcome["error"]["message"]
    assert not list(tmp_path.glob("out*"))


def test_a_download_that_fails_leaves_the_file_that_was_there(download: Fetch, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old", encoding="utf-8")
    download("/broken")

    assert (tmp_path / "out").read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize(("path", "tries"), [("/broken", 3), ("/moved", 1)])
def test_only_what_may_pass_is_tried_again(download: Fetch, site: Site, path: str, tries: int) -> None:
    before = site.paths.count(path)
    download(path, "allow=['127.0.0.1'], retry=3, retry_delay=0.01")

    assert site.paths.count(path) - before == tries


def test_a_file_that_cannot_be_written_is_a_write_error(download: Fetch) -> None:
    assert download("/ok", out="/nonexistent/out")["error"]["type"] == "write_error"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ("'http://x.example/', 'out'", "invalid_url"),
        ("'file:///etc/passwd', 'out'", "invalid_url"),
        ("None, 'out'", "invalid_url"),
        ("'https://x.example/', 'out', max_bytes=0", "invalid_params"),
        ("'https://x.example/', 'out', timeout=61", "invalid_params"),
        ("'https://x.example/', 'out', timeout=0", "invalid_params"),
        ("'https://x.example/', 'out', retry=0", "invalid_params"),
        ("'https://x.example/', 'out', retry_delay=-1", "invalid_params"),
        ("'https://x y.example/', 'out'", "host_blocked"),
    ],
)
def test_a_download_that_makes_no_sense_fetches_nothing(tmp_path: Path, arguments: str, kind: str) -> None:
    outcome = value_of(tmp_path, f"mcp_tool.download_safe({arguments})", MCPGREEN_PYTHON=sys.executable)

    assert (outcome["success"], outcome["error"]["type"]) == (False, kind)


def test_an_sdk_without_its_provider_says_so(tmp_path: Path) -> None:
    """Somebody copied the SDK alone."""
    place = tmp_path / "copied" / "sdk"
    place.mkdir(parents=True)
    for file in (SDK / "python").glob("mcp_tool*.py"):
        (place / file.name).write_bytes(file.read_bytes())
    expression = "mcp_tool.download_safe('https://x.example/', 'out')"

    assert value_of(tmp_path, expression, PYTHONPATH=str(place))["error"]["type"] == "provider_unavailable"


def test_a_download_or_the_end_of_the_call(download: Fetch, tmp_path: Path) -> None:
    ended = run_tool(tmp_path, "print(mcp_tool.download_safe_or_fail('http://x.example/', 'out'))")

    assert ended.returncode == 1
    message = "Download failed (invalid_url): The URL must begin with https://."
    assert json.loads(ended.stdout) == {"code": -32602, "message": message, "data": None}


def test_a_download_that_works_gives_its_path(download: Fetch, desk: Desk, site: Site, tmp_path: Path) -> None:
    url = f"https://127.0.0.1:{site.port}/ok"
    ended = run_tool(
        tmp_path,
        f"print(mcp_tool.download_safe_or_fail({url!r}, 'out', allow=['127.0.0.1']))",
        SSL_CERT_FILE=desk.env["SSL_CERT_FILE"],
        MCPGREEN_PYTHON=sys.executable,
        MCPGREEN_NET_ALLOW_ADDRESSES="127.0.0.1",
    )

    assert (ended.stdout, ended.stderr) == ("out\n", "")


COUNTING = "echo x >> tries; [ $(wc -l < tries) -ge {enough} ] && echo done && exit 0; exit {status}"


@pytest.mark.parametrize(
    ("enough", "status", "tries", "ending"),
    [(1, 5, 1, 0), (3, 5, 3, 0), (9, 5, 4, 5), (9, 1, 1, 1), (9, 2, 1, 2), (9, 130, 4, 130)],
)
def test_a_program_is_tried_again_after_some_exit_statuses(
    tmp_path: Path, enough: int, status: int, tries: int, ending: int
) -> None:
    script = COUNTING.format(enough=enough, status=status)
    body = f"ended = mcp_tool.with_retry(4, 0.001, ['sh', '-c', {script!r}])\nprint(ended.returncode, ended.stdout)"
    printed = run_tool(tmp_path, body).stdout

    assert printed.split() == [str(ending), *(["done"] if ending == 0 else [])]
    assert (tmp_path / "tries").read_text(encoding="utf-8") == "x\n" * tries


CALLS = """
calls = []
def work():
    calls.append(1)
    if len(calls) < {enough}:
        raise {problem}
    return "done"
try:
    print(mcp_tool.with_retry(3, 0, work{options}))
except Exception as error:
    print(type(error).__name__)
print(len(calls))"""


@pytest.mark.parametrize(
    ("enough", "problem", "options", "printed"),
    [
        (2, "ConnectionError()", "", "done 2"),
        (9, "ConnectionError()", "", "ConnectionError 3"),
        (9, "ValueError()", "", "ValueError 1"),
        (3, "ValueError()", ", retry_on=(ValueError,)", "done 3"),
    ],
)
def test_a_function_is_tried_again_after_some_exceptions(
    tmp_path: Path, enough: int, problem: str, options: str, printed: str
) -> None:
    body = CALLS.format(enough=enough, problem=problem, options=options)

    assert run_tool(tmp_path, body).stdout.split() == printed.split()


def test_a_cancelled_call_tries_nothing_again(tmp_path: Path) -> None:
    (tmp_path / "cancelled").touch()
    body = CALLS.format(enough=9, problem="OSError()", options="")

    assert run_tool(tmp_path, body, MCP_CANCEL_FILE="cancelled").stdout.split() == ["OSError", "1"]


@pytest.mark.parametrize("arguments", ["0, 1", "1, -1"])
def test_retries_that_make_no_sense_are_a_value_error(tmp_path: Path, arguments: str) -> None:
    ended = run_tool(tmp_path, f"mcp_tool.with_retry({arguments}, ['true'])")

    assert "ValueError: with_retry: attempts must be at least 1" in ended.stderr
