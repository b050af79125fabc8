"""Python scripts are forked from a running interpreter: seen by nobody but the clock, and with nothing left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
import venv
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from mcpgreen.running.processes.stopping import Tags
from tests.support.client import Client
from tests.support.processes import children_of, command_of
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import text_of

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not Tags().are_limits, reason="scripts are forked on Linux only"
)

Speak = Callable[..., Client]
ENV = "#!/usr/bin/env python3\n"
# Whether it was forked can be seen by what the kernel says was started.
HOW = "print('warm' if b'sdk/warm/start.py' in open('/proc/self/cmdline', 'rb').read() else 'fresh', end='')\n"
WAIT = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\nwhile True: time.sleep(0.01)\n"


def how(client: Client, name: str = "how") -> str:
    return text_of(client.call_tool(name))


def become_warm(client: Client, name: str = "how") -> None:
    eventually(lambda: how(client, name) == "warm")


def helpers_of(client: Client) -> list[int]:
    """The helpers and spares of a server: those of its children that run our program."""
    return [child for child in children_of(client.wire.process.pid) if "sdk/warm/start.py" in command_of(child)]


def started_at(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@pytest.fixture(autouse=True)
def _is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCPGREEN_WARM_PYTHON", raising=False)


@pytest.fixture
def client(project: ProjectBuilder, speak: Speak) -> Client:
    project.forked_tool("how", HOW)
    return speak()


def test_the_first_call_is_a_fresh_start_and_later_ones_are_forked(client: Client) -> None:
    assert how(client) == "fresh"
    become_warm(client)
    assert how(client) == "warm"


def test_every_script_has_a_process_of_its_own_that_is_a_child_of_the_server(
    project: ProjectBuilder, speak: Speak
) -> None:
    project.forked_tool("how", HOW)
    project.forked_tool("who", "import os\nprint(os.getpid(), os.getppid(), os.getsid(0), os.getpgid(0), end='')")
    client = speak()
    become_warm(client)
    seen = [text_of(client.call_tool("who")).split() for _ in range(3)]

    assert len({pid for pid, *_ in seen}) == 3
    for pid, parent, session, group in seen:
        assert parent == str(client.wire.process.pid)
        assert pid == session == group


def test_a_script_sees_the_environment_of_its_call_alone(project: ProjectBuilder, speak: Speak) -> None:
    project.forked_tool("how", HOW)
    project.forked_tool("see", "import os, json\nprint(json.dumps(dict(os.environ), sort_keys=True), end='')")
    warm, fresh = speak(), speak(warm_python="false")
    become_warm(warm)
    seen = [text_of(client.call_tool("see", {"n": 1})) for client in (warm, fresh)]
    # Places, numbers and what is set differ.
    names = [set(eval(text)) - {"MCPGREEN_WARM_PYTHON", "MCPBASH_WARM_PYTHON"} for text in seen]

    assert names[0] == names[1]
    assert all('\\"n\\":1' in text for text in seen)


def test_a_script_gets_its_keys_with_its_job_and_the_helper_never_has_them(
    project: ProjectBuilder, speak: Speak
) -> None:
    project.forked_tool("how", HOW, env=["WEATHER_KEY"])
    project.forked_tool("key", "import os\nprint(os.environ['WEATHER_KEY'], end='')", env=["WEATHER_KEY!"])
    # A helper is started with variables of such names, so a tool that asks for one is started afresh.
    project.forked_tool("lasting", HOW, env=["XDG_WEATHER"])
    client = speak(env={"WEATHER_KEY": "hunter2", "XDG_WEATHER": "hunter2"})
    assert how(client, "lasting") == "fresh"
    become_warm(client)  # a helper for the other one would have started by now, too
    time.sleep(0.3)

    assert how(client, "key") == "hunter2"
    assert how(client, "lasting") == "fresh"
    assert helpers_of(client)
    for pid in helpers_of(client):
        assert b"hunter2" not in Path(f"/proc/{pid}/environ").read_bytes()


def test_a_script_that_changes_is_run_as_it_is_now(project: ProjectBuilder, client: Client) -> None:
    become_warm(client)
    project.forked_tool("how", "print('one', end='')")
    assert how(client) == "one"
    project.forked_tool("how", "print('two', end='')")
    assert how(client) == "two"


def test_so_is_one_that_looks_as_before(project: ProjectBuilder, client: Client) -> None:
    """As when files with fixed times are unpacked over it."""
    path = project.forked_tool("how", HOW.replace("'warm'", "'cosy'"))
    eventually(lambda: how(client) == "cosy")
    status = path.stat()
    path.write_text(path.read_text().replace("cosy", "snug"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert how(client) in ("snug", "fresh")
    eventually(lambda: how(client) == "snug")


@pytest.mark.parametrize("is_installed", [False, True])
def test_a_module_that_is_loaded_ahead_and_changes_is_loaded_again(
    project: ProjectBuilder, speak: Speak, tmp_path: Path, is_installed: bool
) -> None:
    """One of a path that Python is given, or of an editable installation."""
    source = tmp_path / "source"
    source.mkdir()
    python, settings = sys.executable, {"tool_env_mode": "allowlist", "tool_env_allowlist": "PYTHONPATH"}
    if is_installed:
        venv.create(tmp_path / "venv", symlinks=True)
        python, settings = f"{tmp_path}/venv/bin/python", {}
        (site,) = (tmp_path / "venv" / "lib").glob("*/site-packages")
        (site / "editable.pth").write_text(f"{source}\n")
    (source / "prices.py").write_text("from prices_in import VALUE\n")
    (source / "prices_in.py").write_text("VALUE = 1\n")
    script = "import sys\nis_loaded = 'prices' in sys.modules\nimport prices\nprint(is_loaded, prices.VALUE, end='')"
    project.tool("price", f"#!{python}\n{script}", warm=["prices"])
    client = speak(env={"PYTHONPATH": f"{Path(__file__).parents[3]}:{source}"}, **settings)
    eventually(lambda: how(client, "price") == "True 1")
    (source / "prices_in.py").write_text("VALUE = 2002\n")

    eventually(lambda: how(client, "price") in ("True 2002", "False 2002"), within_secs=20)
    assert how(client, "price") in ("True 2002", "False 2002")
    eventually(lambda: how(client, "price") == "True 2002")


def test_a_module_that_changes_while_it_is_loaded_ahead_is_never_the_old_one(
    project: ProjectBuilder, speak: Speak, tmp_path: Path
) -> None:
    """Its file has been read when it changes, but its import takes longer than that."""
    source = tmp_path / "source"
    source.mkdir()
    wait = f"""import os, sys, time
os.chdir({str(tmp_path)!r})
if 'start.py' in sys.argv[0]:
    open('begun', 'w').close()
    while not os.path.exists('go'): time.sleep(0.01)
"""
    (source / "prices.py").write_text(f"{wait}VALUE = 1\n")
    project.forked_tool("price", "import prices\nprint(prices.VALUE, end='')", warm=["prices"])
    settings = {"tool_env_mode": "allowlist", "tool_env_allowlist": "PYTHONPATH", "stderr_level": "info"}
    client = speak(env={"PYTHONPATH": f"{Path(__file__).parents[3]}:{source}"}, **settings)
    assert how(client, "price") == "1"
    eventually(lambda: (tmp_path / "begun").exists())
    (source / "prices.py").write_text("VALUE = 2\n")
    (tmp_path / "go").touch()

    eventually(lambda: how(client, "price") == "2" and "prices.py was changed while it started" in client.wire.stderr)
    assert {how(client, "price") for _ in range(5)} == {"2"}


@pytest.mark.parametrize("is_in_package", [False, True])
def test_a_module_that_is_found_earlier_than_the_one_loaded_ahead_is_used(
    project: ProjectBuilder, speak: Speak, tmp_path: Path, is_in_package: bool
) -> None:
    """In an earlier directory of the path, or a package beside the file of a submodule. Other files do not matter."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    (second / "shop").mkdir(parents=True)
    (second / "shop" / "__init__.py").write_text("from shop.inside import VALUE\n")
    (second / "shop" / "inside.py").write_text("VALUE = 1\n")
    script = "import sys\nis_loaded = 'shop' in sys.modules\nimport shop\nprint(is_loaded, shop.VALUE, end='')"
    project.forked_tool("price", script, warm=["shop"])
    settings = {"tool_env_mode": "allowlist", "tool_env_allowlist": "PYTHONPATH"}
    client = speak(env={"PYTHONPATH": f"{Path(__file__).parents[3]}:{first}:{second}"}, **settings)
    eventually(lambda: how(client, "price") == "True 1")
    (first / "data.txt").touch()
    (second / "shop" / "data.txt").touch()
    assert {how(client, "price") for _ in range(5)} == {"True 1"}
    new = second / "shop" / "inside" if is_in_package else first / "shop"
    new.mkdir()
    (new / "__init__.py").write_text("VALUE = 2\n")

    assert how(client, "price") == "False 2"
    eventually(lambda: how(client, "price") == "True 2")


def test_each_fork_has_a_stdin_of_its_own(project: ProjectBuilder, speak: Speak) -> None:
    project.forked_tool("how", HOW)
    project.forked_tool("block", "import os\nprint(os.get_blocking(0), end='')\nos.set_blocking(0, False)\n")
    client = speak()
    become_warm(client)

    assert {how(client, "block") for _ in range(5)} == {"True"}


def test_one_whose_first_line_changes_is_started_by_what_it_asks_for_now(
    project: ProjectBuilder, client: Client
) -> None:
    become_warm(client)
    project.tool("how", "#!/bin/sh\nprintf shell")
    assert how(client) == "shell"


@pytest.mark.parametrize("first_line", [f"#!{sys.executable} -u", "#!/usr/bin/env -S python3 -u"])
def test_what_a_start_depends_on_is_left_to_a_fresh_start(
    project: ProjectBuilder, speak: Speak, first_line: str
) -> None:
    project.tool("odd", f"{first_line}\n{HOW}")
    project.forked_tool("how", HOW)
    client = speak()
    become_warm(client)

    assert {how(client, "odd") for _ in range(3)} == {"fresh"}


def test_a_description_or_the_setting_switches_it_off(project: ProjectBuilder, speak: Speak) -> None:
    project.forked_tool("how", HOW)
    project.forked_tool("cold", HOW, warm=False)
    client, without = speak(), speak(warm_python="false")
    become_warm(client)

    assert {how(client, "cold") for _ in range(3)} == {"fresh"}
    assert {how(without) for _ in range(3)} == {"fresh"}
    assert not helpers_of(without)


def test_modules_are_loaded_ahead_if_a_description_asks_for_them(project: ProjectBuilder, speak: Speak) -> None:
    """Also those that are not of the standard library, which nobody loads by himself."""
    script = "import sys\nis_loaded = 'yaml' in sys.modules\nimport yaml\nprint(is_loaded, end='')"
    project.forked_tool("ahead", script, warm=["yaml"])
    project.forked_tool("plain", script)
    client = speak()

    eventually(lambda: how(client, "ahead") == "True")
    assert how(client, "plain") == "False"


def test_a_module_that_cannot_be_loaded_ahead_costs_nothing_but_time(project: ProjectBuilder, speak: Speak) -> None:
    project.forked_tool("ahead", HOW, warm=["no_such_module_anywhere"])
    client = speak(stderr_level="info")
    assert how(client, "ahead") == "fresh"

    eventually(lambda: how(client, "ahead") == "fresh" and "no_such_module_anywhere" in client.wire.stderr)


# Leaves a process that carries the tag of the helper, by which the server knows forks that it has not heard of yet.
IMPOSTOR = """import os, resource, signal, time
def tag_of(pid):
    with open(f'/proc/{pid}/limits') as file:
        return int(next(line for line in file if 'realtime timeout' in line).split()[3])
def is_helper(pid):
    with open(f'/proc/{pid}/cmdline', 'rb') as file:
        return b'sdk/warm/start.py' in file.read() and tag_of(pid) != tag_of('self')
parent = os.getppid()
siblings = open(f'/proc/{parent}/task/{parent}/children').read().split()
helper = int(next(filter(is_helper, siblings)))  # they are listed in the order of their birth
if os.fork() == 0:
    hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    resource.setrlimit(resource.RLIMIT_RTTIME, (tag_of(helper), hard))
    os.setsid()
    os.closerange(0, 256)
    open('.daemon', 'w').write(str(os.getpid()))
    os.rename('.daemon', 'daemon')
    time.sleep(600)
while not os.path.exists('daemon'): time.sleep(0.005)
"""


@pytest.mark.parametrize("stop", ["", "os.kill(helper, signal.SIGSTOP)\n"])
def test_the_tag_of_a_helper_protects_no_process(project: ProjectBuilder, speak: Speak, stop: str) -> None:
    """Neither of one that is stopped while it should fork, nor of one that forks in the moment of the search."""
    project.forked_tool("how", HOW)
    project.forked_tool("impostor", f"{IMPOSTOR}{stop}print('left', end='')\n")
    project.tool("hold", "until [ -e go ]; do sleep 0.01; done; printf held")
    client = speak()
    become_warm(client)
    held = client.start_tool("hold")
    assert how(client, "impostor") == "left"
    daemon = project.read("daemon")
    for _ in range(10):
        how(client)  # until the helper has to fork

    eventually(lambda: not is_alive(daemon), within_secs=10)
    project.write("go", "")
    assert text_of(client.wire.response(held)["result"]) == "held"
    become_warm(client)


def test_a_child_of_the_script_that_comes_to_its_end_does_not_end_the_call(
    project: ProjectBuilder, speak: Speak
) -> None:
    project.forked_tool("how", HOW)
    project.forked_tool(
        "family",
        "import os, sys\npid = os.fork()\nif pid == 0: sys.exit(3)\nos.waitpid(pid, 0)\nprint('parent', end='')\n",
    )
    client = speak(stderr_level="info")
    become_warm(client)

    eventually(lambda: how(client, "family") == "parent" and "family ok" in client.wire.stderr)
    eventually(lambda: how(client, "family") == "parent" and "exit 0, warm" in client.wire.stderr.split("family")[-1])
    assert {how(client, "family") for _ in range(5)} == {"parent"}


@pytest.mark.parametrize("status", [0, 3, 255])
def test_output_reports_and_status_are_whole(project: ProjectBuilder, speak: Speak, status: int) -> None:
    project.forked_tool("how", HOW)
    project.forked_tool(
        "much",
        "import sys, mcp_tool\n"
        "mcp_tool.progress(50, 'half')\n"
        "sys.stderr.write('e' * 70_000)\n"
        "sys.stdout.write('o' * 300_000)\n"
        f"sys.exit({status})\n",
    )
    client = speak(stderr_level="info")
    become_warm(client)

    def is_told() -> bool:
        answer = client.call_tool("much", meta={"progressToken": "half"})
        assert "o" * 300_000 in str(answer)
        return f"exit {status}, warm" in client.wire.stderr

    eventually(is_told)
    assert [notice["params"]["progress"] for notice in client.wire.notices("notifications/progress")][-1:] == [50]


def test_a_cancelled_script_is_gone(project: ProjectBuilder, speak: Speak) -> None:
    project.forked_tool("how", HOW)
    project.forked_tool("wait", WAIT)
    client = speak()
    become_warm(client)
    id = client.start_tool("wait")
    pid = eventually(lambda: (project.root / "pid").is_file() and project.read("pid"))
    client.wire.notify("notifications/cancelled", {"requestId": id})

    eventually(lambda: not is_alive(pid))


def test_a_script_past_its_deadline_is_stopped_with_its_children(project: ProjectBuilder, speak: Speak) -> None:
    project.forked_tool("how", HOW)
    child = "import subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    project.forked_tool("stuck", f"{child}open('child', 'w').write(str(child.pid))\n{WAIT}", timeoutSecs=1)
    client = speak()
    become_warm(client)

    assert client.call_tool("stuck")["isError"]
    assert not is_alive(project.read("child"))
    assert not is_alive(project.read("pid"))


def test_who_kills_helper_and_spares_costs_no_call(client: Client) -> None:
    become_warm(client)
    for pid in helpers_of(client):
        with suppress(ProcessLookupError):  # a spare that was not needed any more
            os.kill(pid, signal.SIGKILL)

    assert how(client) in ("warm", "fresh")  # a spare may have been on its way
    become_warm(client)


def test_a_helper_that_cannot_fork_is_given_up(project: ProjectBuilder, speak: Speak, tmp_path: Path) -> None:
    """Each call waited a quarter of a second for a fork, for ever."""
    (tmp_path / "site").mkdir()
    fail = "import errno, os\ndef fork(): raise OSError(errno.EAGAIN, 'too many')\nos.fork = fork\n"
    (tmp_path / "site" / "sitecustomize.py").write_text(fail)
    project.forked_tool("how", HOW)
    path = f"{Path(__file__).parents[3]}:{tmp_path / 'site'}"
    settings = {"tool_env_mode": "allowlist", "tool_env_allowlist": "PYTHONPATH"}
    client = speak(env={"PYTHONPATH": path}, stderr_level="info", **settings)

    eventually(lambda: how(client) == "fresh" and "are not forked: forking keeps failing" in client.wire.stderr)


def test_a_helper_that_is_stopped_is_ended(client: Client) -> None:
    become_warm(client)
    helper = min(helpers_of(client), key=started_at)
    os.kill(helper, signal.SIGSTOP)

    eventually(lambda: not is_alive(helper))
    become_warm(client)


def test_spares_that_are_stopped_keep_no_call_waiting(client: Client) -> None:
    """Also if the server has not heard of them yet: then it gives up their helper."""
    become_warm(client)
    _, *spares = sorted(eventually(lambda: (found := helpers_of(client))[1:] and found), key=started_at)
    for spare in spares:
        with suppress(ProcessLookupError):
            os.kill(spare, signal.SIGSTOP)

    def are_gone() -> bool:
        assert how(client) in ("warm", "fresh")  # and not that it took too long
        return not any(map(is_alive, spares))

    eventually(are_gone)


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_end_of_the_server_is_the_end_of_its_helpers(client: Client, is_killed: bool) -> None:
    become_warm(client)
    pids = helpers_of(client)
    assert pids
    if is_killed:
        client.wire.process.kill()
    else:
        client.wire.stop()

    eventually(lambda: not any(map(is_alive, pids)))


def test_spares_survive_a_search_for_what_scripts_have_left(project: ProjectBuilder, speak: Speak) -> None:
    """All that is unknown below the server is killed when no call is running, and a spare is unknown at first."""
    project.forked_tool("how", HOW)
    leave = "import os\nif os.fork() == 0:\n    os.setsid()\n    os.execlp('sleep', 'sleep', '600')\n"
    project.forked_tool("leave", f"{leave}print('left', end='')")
    client = speak()
    become_warm(client)
    for _ in range(20):
        assert how(client, "leave") == "left"

    become_warm(client)
    assert {how(client) for _ in range(3)} == {"warm"}


def test_another_interpreter_on_the_path_is_another_helper(
    project: ProjectBuilder, speak: Speak, tmp_path: Path
) -> None:
    places = [tmp_path / "first", tmp_path / "second"]
    for place in places:
        place.mkdir()
    (places[1] / "python3").symlink_to(sys.executable)
    project.tool("which", f"{ENV}import sys\nprint(sys.executable, end='')")
    client = speak(env={"PATH": f"{places[0]}:{places[1]}:/usr/bin:/bin"})
    found = {how(client, "which") for _ in range(3)}
    assert found == {str(places[1] / "python3")}
    eventually(lambda: len(helpers_of(client)) > 1)  # with a spare it is up, and knows what it was started from
    (places[0] / "python3").symlink_to(sys.executable)

    eventually(lambda: how(client, "which") == str(places[0] / "python3"))


def test_the_trace_says_why_a_script_was_started_afresh(project: ProjectBuilder, speak: Speak) -> None:
    project.forked_tool("how", HOW)
    project.forked_tool("never", HOW, warm=False)
    project.tool("shell", "printf fresh")
    client = speak(stderr_level="debug")
    for name in ("how", "never", "shell"):
        assert how(client, name) == "fresh"
    become_warm(client)

    def ends_with(name: str, end: str) -> bool:
        told = [line for line in client.wire.stderr.splitlines() if f"Tool '{name}' ran as process" in line]
        return any(line.endswith(end) for line in told)

    eventually(lambda: ends_with("how", ", warm"))
    assert ends_with("how", ", in a new Python process: no fork was ready for it")
    assert ends_with("never", ", in a new Python process: its description says so")
    assert ends_with("shell", " ms")
