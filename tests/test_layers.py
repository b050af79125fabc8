"""The rules of the house: this repository keeps them, and a breach of each is found."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SCRIPT = REPOSITORY / "scripts" / "check_layers.py"

MONKEY = "gevent.monkey may be imported only in __main__ and cli.fleet.commands and tests/conftest.py."


spec = importlib.util.spec_from_file_location("check_layers", SCRIPT)
assert spec and spec.loader
check_layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_layers)


def checked(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), str(root)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)


def planted(root: Path, path: str, text: str) -> list[str]:
    """What is found in a tree that has nothing but this file and empty packages."""
    for package in ("protocol", "running", "catalog", "features", "engine", "transports", "cli", "sdk"):
        (root / "mcpgreen" / package).mkdir(parents=True, exist_ok=True)
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return list(check_layers.findings(root))


def test_this_repository_keeps_the_rules() -> None:
    result = checked(REPOSITORY)

    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)


def test_a_breach_is_told_and_makes_the_command_fail(tmp_path: Path) -> None:
    planted(tmp_path, "mcpgreen/engine/a.py", "from sys import stdout\n")
    result = checked(tmp_path)

    assert "a.py:1: sys.stdout belongs" in result.stdout
    assert (result.stderr, result.returncode) == ("", 1)


@pytest.mark.parametrize(
    ("path", "text", "finding"),
    [
        (
            "mcpgreen/protocol/a.py",
            "from mcpgreen.engine import router\n",
            "mcpgreen/protocol/a.py:1: protocol must not import mcpgreen.engine.router: engine is above it.",
        ),
        (
            "mcpgreen/text/uris.py",
            "import os\nimport mcpgreen.protocol.revision_fields\n",
            "mcpgreen/text/uris.py:2: leaves must not import mcpgreen.protocol.revision_fields: protocol is above it.",
        ),
        (
            "mcpgreen/features/a.py",
            "def f():\n    from ..engine.server import Server\n",
            "mcpgreen/features/a.py:2: features must not import mcpgreen.engine.server.Server: engine is above it.",
        ),
        (
            "mcpgreen/running/__init__.py",
            "from ..project import project\n",
            "mcpgreen/running/__init__.py:1: running must not import mcpgreen.project.project: project is above it.",
        ),
        (
            "mcpgreen/first_answer.py",
            "from mcpgreen.catalog import catalog\n",
            "mcpgreen/first_answer.py:1: first_answer may import only leaves, protocol, project.project, "
            "not mcpgreen.catalog.catalog.",
        ),
        (
            "mcpgreen/sdk/mcp_tool.py",
            "from mcpgreen.text import jsontext\n",
            "mcpgreen/sdk/mcp_tool.py:1: sdk stands alone and must not import mcpgreen.text.jsontext.",
        ),
        (
            "mcpgreen/cli/a.py",
            "from mcpgreen.sdk import mcp_tool\n",
            "mcpgreen/cli/a.py:1: cli must not import mcpgreen.sdk.mcp_tool, which is no part of the server.",
        ),
        (
            "mcpgreen/extras/a.py",
            "",
            "mcpgreen/extras/a.py:1: extras has no place in ORDER; give it one.",
        ),
        (
            "mcpgreen/cli/a.py",
            "def f():\n    import jsonschema.validators\n",
            "mcpgreen/cli/a.py:2: jsonschema may be imported only in protocol.schemas.validator.",
        ),
        (
            "mcpgreen/project/project.py",
            "import importlib\nyaml = importlib.import_module('yaml')\n",
            "mcpgreen/project/project.py:2: yaml may be imported only in catalog.descriptions.yaml_text.",
        ),
        (
            "mcpgreen/engine/a.py",
            "from gevent import subprocess\n",
            "mcpgreen/engine/a.py:1: gevent.subprocess may be imported only in running.processes.process.",
        ),
        (
            "mcpgreen/engine/a.py",
            "import gevent\ngevent.monkey.patch_all()\n",
            f"mcpgreen/engine/a.py:2: {MONKEY}",
        ),
        (
            "tests/test_a.py",
            "from gevent import monkey\n",
            f"tests/test_a.py:1: {MONKEY}",
        ),
        (
            "mcpgreen/journal.py",
            "import gevent\n",
            "mcpgreen/journal.py:1: leaves must not import gevent.",
        ),
        (
            "mcpgreen/cli/a.py",
            "import os\nos.chmod('x', 0o755)\n",
            "mcpgreen/cli/a.py:2: os.chmod may be imported only in files.regular_files.",
        ),
        (
            "mcpgreen/engine/a.py",
            "import logging\n",
            "mcpgreen/engine/a.py:1: logging may be imported nowhere.",
        ),
        (
            "mcpgreen/engine/a.py",
            "x = 1\n" * 501,
            "mcpgreen/engine/a.py:500: The module has 501 lines; split it, or say in its docstring "
            '"Over 500 lines because ...".',
        ),
        (
            "mcpgreen/features/a.py",
            "def f(revision):\n    return revision >= '2025-06-18'\n",
            "mcpgreen/features/a.py:2: A date stands here; only protocol/revisions.py knows revisions by date.",
        ),
        (
            "mcpgreen/features/a.py",
            "import sys\nsys.stdout.write('x')\n",
            "mcpgreen/features/a.py:2: sys.stdout belongs to the transport; use the journal or the sink.",
        ),
        (
            "mcpgreen/engine/a.py",
            "def f(:\n",
            "mcpgreen/engine/a.py:1: This is not Python: invalid syntax.",
        ),
    ],
)
def test_a_breach_is_found(tmp_path: Path, path: str, text: str, finding: str) -> None:
    assert planted(tmp_path, path, text) == [finding]


@pytest.mark.parametrize(("count", "is_crowded"), [(16, False), (17, True)])
def test_a_package_with_too_many_modules_is_found(tmp_path: Path, count: int, is_crowded: bool) -> None:
    """`__init__` and what lies in a package further down do not count."""
    for name in ("__init__", "room/a", *(f"m{number}" for number in range(1, count))):
        path = tmp_path / f"mcpgreen/engine/{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "tests").mkdir()
    for number in range(count):
        (tmp_path / f"tests/test_{number}.py").touch()
    (tmp_path / "mcpgreen/engine/last.py").touch()

    finding = "mcpgreen/engine: 17 modules are too many to find one in; 16 are enough. Make a room."
    assert list(check_layers.findings(tmp_path)) == [finding] * is_crowded


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("from mcpgreen.running.scripts.b import x\n", True),
        ("def f():\n    import mcpgreen.running.scripts.b\n", True),
        ("from mcpgreen.running import shares\n", True),
        ("if TYPE_CHECKING:\n    from mcpgreen.running.scripts.b import x\n", False),
        ("from mcpgreen.running.system import c\n", False),
    ],
)
def test_parts_of_a_package_that_import_each_other_in_a_circle_are_found(
    tmp_path: Path, text: str, is_found: bool
) -> None:
    others = {
        "scripts/b": "from mcpgreen.running import shares\n",
        "shares": "import mcpgreen.running.processes.a\n",
        "system/c": "",
    }
    for name, content in others.items():
        path = tmp_path / "mcpgreen" / "running" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    found = planted(tmp_path, "mcpgreen/running/processes/a.py", text)

    assert bool(found) is is_found
    assert all("in a circle" in each for each in found)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("mcpgreen/text/jsontext.py", "import ujson\n"),
        ("mcpgreen/protocol/schemas/validator.py", "def f():\n    import jsonschema\n"),
        ("mcpgreen/__main__.py", "import sys\nfrom gevent import monkey\nsys.stdout.flush()\n"),
        ("tests/conftest.py", "from gevent import monkey\n"),
        ("tests/test_a.py", "import ujson, logging\nday = '2025-06-18'\n"),
        ("mcpgreen/protocol/revisions.py", "FIRST = '2024-11-05'\n"),
        (
            "mcpgreen/protocol/a.py",
            '"""As of 2025-06-18."""\n\n\ndef f():\n    """2025-06-18, Tools."""  # 2025-06-18\n',
        ),
        ("mcpgreen/engine/a.py", '"""Rows.\n\nOver 500 lines because it is a table.\n"""\n' + "x = 1\n" * 600),
        (
            "mcpgreen/first_answer.py",
            "from mcpgreen.project.project import open_project\nfrom mcpgreen import errors\n",
        ),
        (
            "mcpgreen/first_answer.py",
            "from mcpgreen.project import project\nfrom mcpgreen.protocol import revision_fields\n",
        ),
        ("mcpgreen/features/a.py", "from mcpgreen.errors import RpcError\nfrom . import b\nimport gevent\n"),
        ("mcpgreen/cli/a.py", "import sys\nsys.stdout.write('x')\n"),
        ("mcpgreen/sdk/mcp_tool.py", "import sys\nsys.stdout.write('x')\n"),
        ("mcpgreen/sdk/parts/a.py", "from .b import c\n"),
        ("mcpgreen/default_project/tools/a.py", "import logging\nday = '2025-06-18'\n"),
    ],
)
def test_what_is_allowed_is_not_a_finding(tmp_path: Path, path: str, text: str) -> None:
    assert planted(tmp_path, path, text) == []
