"""A script does not notice that it was forked: programs of every kind, fresh and warm, compared byte for byte."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mcpgreen.running.warm.interpreters import signature_of
from tests.running.warm.harness import SDK, Harness, Ran
from tests.running.warm.programs import DIFFERENT_ON_PURPOSE, PROGRAMS
from tests.running.warm.programs.program import Program

# Another interpreter than that of the tests: a file of the name python3.
PYTHON = Path(os.environ.get("MCPGREEN_TEST_PYTHON") or Path(sys.executable).with_name("python3"))
LOOK_SECS = 0.1  # of a spare
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


def settle(directory: Path) -> None:
    """As if nothing had changed there for long: what has just changed is looked at in each run."""
    for path in (directory, *directory.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            os.utime(path, (1, 1))


def scrubbed(ran: Ran, program: Program) -> Ran:
    def clean(text: bytes) -> bytes:
        text = ADDRESS.sub(b"0x", text)
        return re.sub(program.scrubbed.encode(), b"", text) if program.scrubbed else text

    return ran._replace(stdout=clean(ran.stdout), stderr=clean(ran.stderr))


def both(program: Program, harness: Harness) -> tuple[Ran, Ran, Ran]:
    """Fresh, by a spare that knows nothing of the program, and by one that has its code and modules at hand."""
    env = harness.environment(program.env)
    with on_disk(program, harness) as script:
        command = [script] if program.bytes.startswith(b"#!") else ["/usr/bin/env", "python3", script]
        fresh = harness.fresh(command, env, reads_stdout=program.reads_stdout)
        unknown = harness.warm(command, env, reads_stdout=program.reads_stdout)
        settle(harness.directory)
        harness.helper(env).prepare(script)
        known = harness.warm(command, env, reads_stdout=program.reads_stdout)
    return scrubbed(fresh, program), scrubbed(unknown, program), scrubbed(known, program)


@pytest.mark.parametrize("name", [name for name, each in PROGRAMS.items() if each.since <= sys.version_info[:2]])
def test_a_program_is_the_same_forked_as_started(harness: Harness, version: tuple[int, int], name: str) -> None:
    program = PROGRAMS[name]
    if version < program.since:
        pytest.skip("for newer interpreters")
    fresh, unknown, known = both(program, harness)

    assert unknown == fresh
    assert known == fresh


@pytest.mark.parametrize("name", DIFFERENT_ON_PURPOSE)
def test_what_differs_on_purpose_is_known(harness: Harness, name: str) -> None:
    """Else it is no reason any more, and the table is wrong."""
    soft, hard = resource.getrlimit(resource.RLIMIT_SIGPENDING)
    harness.helper(harness.environment({}))
    resource.setrlimit(resource.RLIMIT_SIGPENDING, (soft - 1, hard))
    try:
        fresh, unknown, known = both(DIFFERENT_ON_PURPOSE[name][1], harness)
    finally:
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (soft, hard))

    assert unknown.stdout != fresh.stdout != known.stdout
    assert unknown._replace(stdout=b"") == fresh._replace(stdout=b"") == known._replace(stdout=b"")


def test_c_has_the_environment_of_the_call_when_the_sdk_is_loaded(harness: Harness) -> None:
    """The helper has then taken a variable out of its own."""
    sdk = Program("import mcp_tool\n")
    with on_disk(sdk, harness) as script:
        helper = harness.helper(harness.environment({}))
        helper.prepare(script)
        helper.fork().dismiss()  # by then it has looked
    fresh, *warm = both(PROGRAMS["tells the environment of C"], harness)

    assert warm == [fresh, fresh]


def test_who_wants_to_know_of_forks_is_told(harness: Harness) -> None:
    """Only of the standard library is it known that a spare need not tell."""
    directory = harness.directory / "site"
    directory.mkdir()
    customize = "import os, sys\nos.register_at_fork(after_in_child=lambda: setattr(sys, 'told', os.getpid()))\n"
    (directory / "sitecustomize.py").write_text(customize)
    env = harness.environment({"PYTHONPATH": str(directory)})
    program = Program("import logging, os, random, sys, threading\nprint(sys.told == os.getpid())\n")
    with on_disk(program, harness) as script:
        harness.helper(env).prepare(script)
        ran = harness.warm([script], env)
    shutil.rmtree(directory)

    assert (ran.status, ran.stdout) == (0, b"True\n")


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "thread" in name])
def test_threads_are_the_same_if_the_start_of_the_interpreter_has_loaded_them(harness: Harness, name: str) -> None:
    directory = harness.directory / "site"
    directory.mkdir(exist_ok=True)
    (directory / "sitecustomize.py").write_text("import concurrent.futures.thread, logging, random, threading\n")
    program = PROGRAMS[name]
    env = {**program.env, "PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    fresh, *warm = both(replace(program, env=env), harness)

    assert warm == [fresh, fresh]


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
}


@pytest.mark.parametrize("name", OF_THE_END)
def test_what_happens_at_the_end_happens_at_the_end_of_each_script(harness: Harness, name: str) -> None:
    """And not in the helper, when it rehearses: there is one of its own here."""
    customize, source = OF_THE_END[name]
    directory = harness.directory / f"site of {name}"
    directory.mkdir()
    (directory / "sitecustomize.py").write_text(customize)
    path = os.pathsep.join((str(directory), SDK))
    fresh, *warm = both(Program(source, env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}), harness)

    assert fresh.stdout.strip()
    assert warm == [fresh, fresh]


def test_logging_counts_from_the_start_of_the_script(harness: Harness) -> None:
    source = """
        import logging, os
        started = logging._startTime / 1e9 if type(logging._startTime) is int else logging._startTime
        print(started >= float(os.environ['MCP_BEFORE']))
        """
    with on_disk(Program(source), harness) as script:
        harness.helper(harness.environment({})).prepare(script)
        assert harness.warm([script], harness.environment({"MCP_BEFORE": "0"})).stdout == b"True\n"
        ran = harness.warm([script], harness.environment({"MCP_BEFORE": str(time.time())}))

    assert ran.stdout == b"True\n"


def test_what_others_would_hear_of_is_not_loaded_ahead(harness: Harness) -> None:
    """With `tracemalloc`, warnings have one line more."""
    env = harness.environment({})
    with on_disk(
        Program("import sys\nif 0: import tracemalloc\nprint('tracemalloc' in sys.modules)"), harness
    ) as script:
        harness.helper(env).prepare(script)

        assert harness.warm([script], env).stdout == b"False\n"


def test_the_seed_of_hashes_is_the_same_in_one_helper(harness: Harness) -> None:
    _, unknown, known = both(Program("print(hash('text'))"), harness)

    assert unknown.stdout == known.stdout


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


@pytest.mark.parametrize("source", CHANCE)
def test_chance_is_another_in_each_run(harness: Harness, source: str) -> None:
    """Whoever is forked has the state of the helper's generators."""
    env = harness.environment({})
    with on_disk(Program(source), harness) as script:
        harness.helper(env).prepare(script)
        runs = [harness.warm([script], env) for _ in range(3)]

    assert [run.status for run in runs] == [0, 0, 0], runs
    assert len({run.stdout for run in runs}) == 3


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_script_that_was_edited_is_the_new_one(harness: Harness, is_settled: bool) -> None:
    """Also if it is of the same length, and a spare has the old one at hand."""
    env = harness.environment({})
    with on_disk(Program("print('one')"), harness) as script:
        if is_settled:
            settle(harness.directory)
        harness.helper(env).prepare(script)
        assert harness.warm([script], env).stdout == b"one\n"
        spare = harness.helper(env).fork()
        Path(script).write_bytes(Program("print('two')").bytes)

        assert harness.warm([script], env, spare=spare).stdout == b"two\n"


def test_a_spare_that_has_waited_looks_again(harness: Harness) -> None:
    """At what lies beside the script: it may have the name of a module by now."""
    env = harness.environment({})
    with on_disk(Program("import json; print(json.__name__, hasattr(json, 'own'))"), harness) as script:
        settle(harness.directory)
        harness.helper(env).prepare(script)
        spare = harness.helper(env).fork()
        time.sleep(2 * LOOK_SECS)
        Path(script).with_name("json.py").write_text("own = 1")

        assert harness.warm([script], env, spare=spare).stdout == b"json True\n"


def test_a_script_that_is_another_by_now_is_started_as_it_is(harness: Harness) -> None:
    """Between the look of the server and the run, it has become a program of another kind."""
    env = harness.environment({})
    with on_disk(Program("print('Python')"), harness) as script:
        harness.helper(env).prepare(script)
        seen = signature_of(os.stat(script))
        Path(script).write_text("#!/bin/sh\necho Shell $MCP_TOOL_ARGS_JSON\n")
        ran = harness.warm([script], env, signature=seen)

    assert (ran.status, ran.stdout) == (0, b'Shell {"name":"Ada"}\n')


def test_a_script_that_is_gone_is_not_found(harness: Harness) -> None:
    env = harness.environment({})
    with on_disk(Program("print('Python')"), harness) as script:
        seen = signature_of(os.stat(script))
        Path(script).unlink()
        ran = harness.warm([script], env, signature=seen)

    assert (ran.status, ran.stdout, ran.stderr) == (127, b"", f"{script}: No such file or directory\n".encode())
