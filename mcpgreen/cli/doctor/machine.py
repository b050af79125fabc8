"""What has to be there before a project can be served: Python, packages, an event loop, programs. Part of `doctor`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata

from mcpgreen.cli.checking.findings import ERROR, OK, WARNING, Check
from mcpgreen.running.scripts import jq
from mcpgreen.settings.settings import Settings

OLDEST_PYTHON = (3, 10)
PACKAGES = ("gevent", "ujson", "jsonschema", "pyyaml", "docopt-ng", "rich")
OPTIONAL = ("jq",)
SLOW_JQ = "jq-1.6"
GOOD_BACKENDS = ("epoll", "kqueue", "linuxaio", "iouring")
_OLDEST = re.compile(r"([A-Za-z0-9_.-]+)[^;]*>=\s*([\w.]+)")


def machine_checks(environ: Mapping[str, str], settings: Settings | None) -> Iterator[Check]:
    yield _python()
    yield from _packages()
    yield _loop()
    path = jq.path_in(environ)
    if settings is not None:
        yield _jq(settings, path)
    bash = shutil.which("bash", path=path)
    lack = Check("bash", WARNING, "there is no bash on the PATH: hooks and .sh scripts cannot run", "install bash")
    yield Check("bash", OK, bash) if bash else lack


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Check("python", ERROR, f"Python {version} at {sys.executable} is too old", "use Python 3.10 or newer")
    return Check("python", OK, f"Python {version} at {sys.executable}")


def _packages() -> Iterator[Check]:
    wanted = _wanted()
    found, faults = [], 0
    for name in (*PACKAGES, *OPTIONAL):
        is_needed = name in PACKAGES
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            if is_needed:
                faults += 1
                yield Check(
                    "packages", ERROR, f"{name} is missing", f"install it: {sys.executable} -m pip install {name}"
                )
            continue
        found.append(f"{name} {version}")
        oldest = wanted.get(name)
        if oldest and _numbers(version) < _numbers(oldest):
            faults += 1
            fix = f"install a newer one: {sys.executable} -m pip install --upgrade {name}"
            yield Check("packages", WARNING, f"{name} {version} is older than {oldest}, the oldest that is tried", fix)
    if not faults:
        yield Check("packages", OK, ", ".join(found))


def _wanted() -> dict[str, str]:
    """The oldest version of each package, as our own distribution names it; nothing if we are not installed."""
    try:
        lines = metadata.requires("mcpgreen") or []
    except metadata.PackageNotFoundError:
        return {}
    found = (_OLDEST.match(line) for line in lines if "extra ==" not in line)
    return {each[1].lower(): each[2] for each in found if each}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:4])


def _loop() -> Check:
    import gevent

    try:
        backend = str(gevent.get_hub().loop.backend)
    except (ImportError, OSError, RuntimeError, SystemError, ValueError, TypeError) as error:
        fix = f"install gevent anew: {sys.executable} -m pip install --force-reinstall gevent"
        return Check("loop", ERROR, f"gevent has no event loop: {error}", fix)
    if backend in GOOD_BACKENDS:
        return Check("loop", OK, f"gevent {gevent.__version__} with {backend}")
    fix = "unset GEVENT_BACKEND and LIBEV_FLAGS"
    return Check("loop", WARNING, f"gevent uses {backend}, which is slow with many connections", fix)


def _jq(settings: Settings, path: str) -> Check:
    name, program = jq.find_json_tool(settings, path)
    if program:
        return Check("jq", OK, f"{name} at {program}{_slowness_of(program)}")
    if settings.json_tool == "none":
        return Check("jq", OK, "none, as json_tool says")
    fix = f"install jq, or the package: {sys.executable} -m pip install jq"
    return Check("jq", WARNING, "there is none, so shell tools cannot read their arguments", fix)


def _slowness_of(program: str) -> str:
    """What is to be said of a jq that compiles its own library at each start. Nothing is run that a project names."""
    if program != shutil.which("jq"):
        return ""
    try:
        told = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=5).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    is_slow = told.decode("utf-8", "replace").strip() == SLOW_JQ
    return f": {SLOW_JQ} takes 30 ms to start, newer ones take 4" if is_slow else ""
