"""`make dist`: is what was built fit to be given away?

    python scripts/check_dist.py [DIRECTORY]

DIRECTORY (dist/ by default) has one wheel, which was built from the sdist beside it. It must hold every file of the
package and of the example, and work in a fresh environment: say its version, and serve a call to somebody who has no
project. The sdist must hold every file of examples/.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
# Where a wheel has the files of the checkout's directories.
PLACES = {"mcpgreen": "mcpgreen", "project": "mcpgreen/default_project"}
LEFT_BY_RUNS = ("__pycache__", ".registry", "default_project")
PATIENCE_SECS = 60

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}
CONVERSATION = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "getting_started"}},
)


def missing_files(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return sorted(set(expected_files()) - set(archive.namelist()))


def missing_examples(sdist: Path) -> list[str]:
    """Which the wheel need not have, but whoever takes the sources."""
    top = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as archive:
        present = set(archive.getnames())
    files = (path for path in (CHECKOUT / "examples").rglob("*") if path.is_file())
    kept = (path.relative_to(CHECKOUT) for path in files if not set(path.parts) & set(LEFT_BY_RUNS))
    return sorted({f"{top}/{path.as_posix()}" for path in kept} - present)


def expected_files() -> Iterator[str]:
    for directory, place in PLACES.items():
        for path in (CHECKOUT / directory).rglob("*"):
            inside = path.relative_to(CHECKOUT / directory)
            if path.is_file() and not any(part in LEFT_BY_RUNS for part in inside.parts):
                yield f"{place}/{inside.as_posix()}"


def try_out(wheel: Path, directory: Path) -> str:
    """Install it there and use it. What it says of its version."""
    environment, home = directory / "environment", directory / "home"
    home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python, program = environment / "bin" / "python", environment / "bin" / "mcpgreen"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
    given = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home)}
    version = subprocess.run([program, "--version"], env=given, cwd=home, capture_output=True, text=True, check=True)
    served = subprocess.run(
        [program, "serve"],
        input="".join(f"{json.dumps(message)}\n" for message in CONVERSATION),
        env=given,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
        check=True,
    )
    answers = {answer.get("id"): answer for answer in map(json.loads, served.stdout.splitlines())}
    told = answers[2]["result"]["content"][0]["text"]
    if f'"command": "{program}"' not in told:
        raise SystemExit(f"getting_started does not name {program}:\n{told}")
    return version.stdout.strip()


def main(arguments: list[str]) -> int:
    directory = Path(arguments[0]) if arguments else CHECKOUT / "dist"
    (wheel,) = directory.glob("*.whl")
    (sdist,) = directory.glob("*.tar.gz")
    for archive, missing in ((wheel, missing_files(wheel)), (sdist, missing_examples(sdist))):
        if missing:
            print(f"{archive} lacks {', '.join(missing)}")
            return 1
    with tempfile.TemporaryDirectory() as place:
        version = try_out(wheel.resolve(), Path(place))
    print(f"{wheel} and {sdist} are good: {version} was installed and served a call")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
