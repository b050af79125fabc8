"""A script does not notice that it was forked: programs of every kind, fresh and warm, compared byte for byte."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.running.warm.harness import SDK, Harness, Ran
from tests.running.warm.programs import DIFFERENT_ON_PURPOSE, PROGRAMS
from tests.running.warm.programs.program import Program

# Another interpreter than that of the tests: a file of the name python3.
PYTHON = Path(os.environ.get("MCPGREEN_TEST_PYTHON") or Path(sys.executable).with_name("python3"))
ADDRESS = re.compile(rb"0x[0-9a-f]{6,}")

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="scripts are forked on Linux only")


@pytest.fixture(scope="module")
def version() -> tuple[int, int]:
    words = subprocess.run([PYTHON, "-c", "import sys; print(*sys.version_info[:2])"], check=True, stdout=-1).stdout
    major, minor = map(int, words.split())
    return major, minor


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    harness = Harness(tmp_path_factory.mktemp("project").resolve(), PYTHON)
    yield harness
    harness.close()


@contextmanager
def on_disk(program: Program, harness: Harness) -> Iterator[str]:
    """The path of the script, with what lies beside it. Programs have the same place, one after the other."""
    directory = harness.directory / "tools"
    directory.mkdir()
    try:
        for name, content in program.files.items():
            file = directory / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        script = directory / program.name
        real = directory / (program.link_to or program.name)
        real.parent.mkdir(exist_ok=True)
        real.write_bytes(program.bytes)
        real.chmod(0o755)
        if real != script:
            script.symlink_to(real)
        yield str(script)
    finally:
        shutil.rmtree(directory)


def scrubbed(ran: Ran, program: Program) -> Ran:
    def clean(text: bytes) -> bytes:
        text = ADDRESS.sub(b"0x", text)
        return re.sub(program.scrubbed.encode(), b"", text) if program.scrubbed else text

    return ran._replace(stdout=clean(ran.stdout), stderr=clean(ran.stderr))


def both(program: Program, harness: Harness) -> tuple[Ran, Ran]:
    """Fresh, and forked."""
    env = harness.environment(program.env)
    with on_disk(program, harness) as script:
        command = [script] if program.bytes.startswith(b"#!") else ["/usr/bin/env", "python3", script]
        fresh = harness.fresh(command, env, reads_stdout=program.reads_stdout)
        forked = harness.warm(command, env, reads_stdout=program.reads_stdout)
    return scrubbed(fresh, program), scrubbed(forked, program)


@pytest.mark.parametrize("name", [name for name, each in PROGRAMS.items() if each.since <= sys.version_info[:2]])
def test_a_program_is_the_same_forked_as_started(harness: Harness, version: tuple[int, int], name: str) -> None:
    program = PROGRAMS[name]
    if version < program.since:
        pytest.skip("for newer interpreters")
    fresh, forked = both(program, harness)

    assert forked == fresh


@pytest.mark.parametrize("name", DIFFERENT_ON_PURPOSE)
def test_what_differs_on_purpose_is_known(harness: Harness, name: str) -> None:
    """Else it is no reason any more, and the table is wrong."""
    soft, hard = resource.getrlimit(resource.RLIMIT_SIGPENDING)
    harness.helper(harness.environment({}))
    resource.setrlimit(resource.RLIMIT_SIGPENDING, (soft - 1, hard))
    try:
        fresh, forked = both(DIFFERENT_ON_PURPOSE[name][1], harness)
    finally:
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (soft, hard))

    assert forked != fresh


OF_THE_END = {
    "a start": ("import atexit\natexit.register(print, 'end of all')\n", "import mcp_tool\nprint('script')\n"),
    "a finalizer": (
        "import weakref\nclass Kept: pass\nkept = Kept()\nweakref.finalize(kept, print, 'end of all')\n",
        "import mcp_tool\nprint('script')\n",
    ),
    "logging": (
        "",
        """
        import logging.handlers, sys, mcp_tool
        handler = logging.handlers.MemoryHandler(100, target=logging.StreamHandler(sys.stdout))
        logging.getLogger().addHandler(handler)
        logging.warning('kept')
        """,
    ),
    "hooks of forks": (
        "import os, sys\nos.register_at_fork(after_in_child=lambda: setattr(sys, 'told', os.getpid()))\n",
        "import os, sys\nprint(getattr(sys, 'told', os.getpid()) == os.getpid())\n",
    ),
    "threads": (
        "import concurrent.futures.thread, logging, random, threading\n",
        "import threading\nthreading.Thread(target=print, args=('thread',)).start()\nprint(threading.active_count())\n",
    ),
}


@pytest.mark.parametrize("name", OF_THE_END)
def test_what_the_start_of_the_interpreter_prepares_holds_for_each_script(harness: Harness, name: str) -> None:
    """There is a helper of its own for each `sitecustomize`."""
    customize, source = OF_THE_END[name]
    directory = harness.directory / f"site of {name}"
    directory.mkdir()
    (directory / "sitecustomize.py").write_text(customize)
    path = os.pathsep.join((str(directory), SDK))
    fresh, forked = both(Program(source, env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}), harness)

    assert fresh.stdout.strip()
    assert forked == fresh


CHANCE = [
    "import random; print(random.random())",
    "import random; print(random.SystemRandom().random())",
    "import uuid; print(uuid.uuid4())",
    "import uuid; print(uuid.uuid1())",
    "import secrets; print(secrets.token_hex())",
    "import os; print(os.urandom(8))",
    "import ssl; print(ssl.RAND_bytes(8))",
    "import tempfile; print(next(tempfile._get_candidate_names()))",
    "from multiprocessing import process; print(process.current_process().authkey)",
]


@pytest.mark.parametrize("is_loaded_ahead", [False, True])
@pytest.mark.parametrize("source", CHANCE)
def test_chance_is_another_in_each_run(harness: Harness, source: str, is_loaded_ahead: bool) -> None:
    """A fork has the state of the generators of its helper."""
    directory = harness.directory / "site of chance"
    if not directory.exists():
        directory.mkdir()
        (directory / "sitecustomize.py").write_text("import random, secrets, ssl, uuid, multiprocessing.process\n")
    env = harness.environment({"PYTHONPATH": str(directory)} if is_loaded_ahead else {})
    with on_disk(Program(source), harness) as script:
        runs = [harness.warm([script], env) for _ in range(3)]

    assert [run.status for run in runs] == [0, 0, 0], runs
    assert len({run.stdout for run in runs}) == 3


def test_a_script_that_was_edited_is_the_new_one(harness: Harness) -> None:
    """Also if it is of the same length, and the spare was forked before."""
    env = harness.environment({})
    with on_disk(Program("print('one')"), harness) as script:
        assert harness.warm([script], env).stdout == b"one\n"
        spare = harness.helper(env).fork()
        Path(script).write_bytes(Program("print('two')").bytes)

        assert harness.warm([script], env, spare=spare).stdout == b"two\n"


def test_a_script_that_is_gone_is_not_found(harness: Harness) -> None:
    env = harness.environment({})
    with on_disk(Program("print('Python')"), harness) as script:
        Path(script).unlink()
        ran = harness.warm([script], env)

    assert (ran.status, ran.stdout, ran.stderr) == (127, b"", f"{script}: No such file or directory\n".encode())
