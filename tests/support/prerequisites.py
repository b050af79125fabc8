"""What a test needs besides Python: absent, the test skips with a reason; in CI, where nothing may skip, it fails.

A run with MCPGREEN_NO_SKIPS set promises that everything is there.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.support.programs import completed

TYPESCRIPT_DIR = Path(__file__).resolve().parents[1] / "clients" / "typescript"
INSPECTOR_DIR = TYPESCRIPT_DIR.with_name("inspector")
GEMINI_DIR = TYPESCRIPT_DIR.with_name("gemini")
AXE_DIR = Path(__file__).resolve().parents[1] / "workbench" / "page"
CONFORMANCE_DIR = Path(__file__).resolve().parents[1] / "conformance"
FRAMEWORKS_DIR = CONFORMANCE_DIR.with_name("frameworks")
FRAMEWORKS_VENV = FRAMEWORKS_DIR.parents[1] / ".venv-frameworks"
FASTMCP_VENV = FRAMEWORKS_VENV.with_name(".venv-fastmcp")
OLDEST_NODE = 18
NOBODY = 65534


def require_program(name: str) -> str:
    """The path of a program."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")  # where Debian has servers
    if path is None:
        _missing(f"program missing: {name}")
    return path


def without_privileges() -> list[str]:
    """How a command begins that modes of files bind: for root a program that gives up being above them."""
    if os.geteuid() != 0:
        return []
    rights = "-dac_override,-dac_read_search"
    return [require_program("setpriv"), f"--bounding-set={rights}", f"--inh-caps={rights}"]


def as_somebody_else() -> list[str]:
    """How a command begins that is run by an ordinary user other than us. Only root can start one."""
    if os.geteuid() != 0:
        _skip_without_root()
    return [require_program("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def as_ordinary_user() -> list[str]:
    """How a command begins that is run by an ordinary user: by us, if we are one."""
    return as_somebody_else() if os.geteuid() == 0 else []


def python_of_ordinary_user() -> str:
    """A Python that such a user can run: ours may lie in root's home."""
    if os.geteuid() != 0:
        return sys.executable
    candidates = (sys.executable, "/usr/bin/python3")
    usable = next(filter(_can_nobody_run, candidates), None)
    return usable or _missing("program missing: a Python that an ordinary user can run")


def require_our_python_for_ordinary_user() -> None:
    """Ours, with our packages: in root's home it is out of reach."""
    if subprocess.run([*as_ordinary_user(), sys.executable, "-c", "import gevent"], capture_output=True).returncode:
        _missing(f"program missing: {sys.executable}, run by an ordinary user")


def _can_nobody_run(python: str) -> bool:
    try:
        done = completed([python, "-c", "import ctypes, json"], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    except OSError:
        return False
    return done.returncode == 0


def _skip_without_root() -> NoReturn:
    pytest.skip("only root can be another user", allow_module_level=True)


def require_perl_modules(*names: str) -> str:
    """The path of a Perl with these modules; a minimal system may have one without those of the standard library."""
    perl = require_program("perl")
    if subprocess.run([perl, *(f"-M{name}" for name in names), "-e", "1"], capture_output=True).returncode:
        _missing(f"Perl modules missing: {', '.join(names)}")
    return perl


def require_browser() -> str:
    """The path of a Chromium or Chrome."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        _missing(f"no browser: none of {', '.join(names)}")
    return path


def require_module(name: str) -> Any:
    """An imported module, for the top of a test module: `mcp = require_module("mcp")`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        _missing(f"Python module missing: {name} ({error})")


def require_node_modules(*packages: str) -> Path:
    """The directory with the node packages: that of the checkout, or MCPGREEN_NODE_MODULES."""
    node = require_program("node")
    shown = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.match(r"v(\d+)\.", shown)
    if version is None or int(version.group(1)) < OLDEST_NODE:
        _missing(f"node is too old: {shown.strip()}, {OLDEST_NODE} is needed")
    directory = Path(os.environ.get("MCPGREEN_NODE_MODULES") or TYPESCRIPT_DIR / "node_modules")
    if not all((directory / package / "package.json").is_file() for package in packages):
        _missing("node packages missing: run npm ci in tests/clients/typescript")
    return directory.resolve()


def require_conformance_suite() -> Path:
    """The directory with the packages of the conformance suite, among them a node of their own."""
    directory = CONFORMANCE_DIR / "node_modules"
    needed = ("@modelcontextprotocol/conformance/package.json", "node/bin/node")
    if not all((directory / path).is_file() for path in needed):
        _missing("node packages missing: run npm ci in tests/conformance")
    return directory


def require_inspector() -> tuple[str, Path]:
    """The node that the Inspector asks for, and the program that starts it."""
    directory = INSPECTOR_DIR / "node_modules"
    node = directory / "node" / "bin" / "node"
    program = directory / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
    if not (node.is_file() and program.is_file()):
        _missing("node packages missing: run npm install --no-package-lock in tests/clients/inspector")
    return str(node), program


def require_gemini() -> tuple[str, Path]:
    """A node that is new enough for Gemini CLI, and the program itself."""
    program = GEMINI_DIR / "node_modules" / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    if not program.is_file():
        _missing("node packages missing: run npm install --no-package-lock --omit=optional in tests/clients/gemini")
    return require_inspector()[0], program


def require_axe() -> str:
    """The script that looks for what people with a disability could not use on a page."""
    path = AXE_DIR / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        _missing("node packages missing: run npm install --no-package-lock in tests/workbench/page")
    return path.read_text(encoding="utf-8")


def require_frameworks() -> str:
    """A Python with the frameworks of docs/frameworks.md. What they need does not go together with our own packages."""
    if not (FRAMEWORKS_VENV / ".ready").is_file():
        _missing("frameworks missing: run make frameworks")
    return str(FRAMEWORKS_VENV / "bin" / "python")


def require_fastmcp() -> str:
    """A Python with FastMCP, its server included."""
    if not (FASTMCP_VENV / ".ready").is_file():
        _missing("FastMCP missing: run make frameworks")
    return str(FASTMCP_VENV / "bin" / "python")


def require_frameworks_of_node() -> tuple[str, Path]:
    """A node that is new enough for the frameworks of docs/frameworks.md, and the directory with their packages."""
    packages = FRAMEWORKS_DIR / "node" / "node_modules"
    if not (packages / ".ready").is_file():
        _missing("node packages missing: run make frameworks")
    return str(packages / "node" / "bin" / "node"), packages


def _missing(reason: str) -> NoReturn:
    if os.environ.get("MCPGREEN_NO_SKIPS"):
        pytest.fail(f"{reason} (MCPGREEN_NO_SKIPS is set)", pytrace=False)
    pytest.skip(reason, allow_module_level=True)
