"""Write dist/mcpgreen: scripts/mcpgreen with the package inside, a file that can be copied anywhere.

    python scripts/build_launcher.py [--offline] [OUTPUT]

Builds our wheel and fetches pip's, so it needs the package index. With --offline the wheels of all other packages go in
as well, for this platform and each Python in PYTHONS for which all of them are to be had; then the launcher itself
needs no network.

The file is the shell script, and behind it a zip archive: Python runs the `__main__` of an archive whatever stands
before it. Equal contents have equal names of environments, so a launcher that is built anew from the same wheels finds
the environment that its former self has made.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
SHELL_PART = CHECKOUT / "scripts" / "mcpgreen"
PARTS = CHECKOUT / "scripts" / "launcher"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
VERSION_CONDITION = re.compile(r";.*\bpython_(full_)?version\b")
NO_TIME = (1980, 1, 1, 0, 0, 0)  # the archive is the same whenever it is made


def assemble(output: Path, wheels: Iterable[Path], *, pythons: Iterable[str] = ()) -> None:
    """Write a launcher with these wheels, of which one is ours and one is pip's."""
    members = {"__main__.py": PARTS / "install.py", "start.py": PARTS / "start.py"}
    members |= {f"wheels/{wheel.name}": wheel for wheel in sorted(wheels)}
    digest = hashlib.sha256()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, path in members.items():
            content = path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
            archive.writestr(zipfile.ZipInfo(name, NO_TIME), content)  # wheels are compressed already
    version = next(name.split("-")[1] for name in members if name.startswith("wheels/mcpgreen-"))
    script = SHELL_PART.read_text(encoding="utf-8")
    script = _with_value(script, "build", f"{version}-{digest.hexdigest()[:12]}")
    script = _with_value(script, "pythons", " ".join(pythons))
    output.parent.mkdir(parents=True, exist_ok=True)
    # In another file: the one in its place may be running, and a shell reads on in it.
    new = output.with_name(output.name + ".new")
    new.write_bytes(script.encode() + packed.getvalue())
    new.chmod(0o755)
    new.replace(output)


def _with_value(script: str, variable: str, value: str) -> str:
    changed, count = re.subn(rf"(?m)^{variable}='' *#", f"{variable}='{value}' #", script)
    if count != 1:
        raise SystemExit(f"{SHELL_PART} has no line for {variable}")
    return changed


def pip(*arguments: str) -> int:
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode


def needs_of(wheel: Path) -> list[str]:
    """What a wheel says that it requires, without its extras."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode("utf-8")
    return [need for need in re.findall(r"(?m)^Requires-Dist: (.+)$", text) if "extra ==" not in need]


def fetch(directory: Path, version: str) -> bool:
    """All that our wheel needs with this version of Python, if it is to be had for this platform."""
    needs = set(needs_of(next(directory.glob("mcpgreen-*.whl"))))
    while True:
        options = ("--dest", str(directory), "--only-binary=:all:", "--python-version", version)
        if pip("download", *options, *sorted(needs)):
            return False
        # For pip the version in a condition is its own Python's.
        found = (need for wheel in directory.glob("*.whl") for need in needs_of(wheel))
        unconditional = {need.partition(";")[0].strip() for need in found if VERSION_CONDITION.search(need)}
        if unconditional <= needs:
            return True
        needs |= unconditional


def main(arguments: list[str]) -> int:
    is_offline = "--offline" in arguments
    outputs = [Path(each) for each in arguments if each != "--offline"]
    output = outputs[0] if outputs else CHECKOUT / "dist" / "mcpgreen"
    # setuptools packs whatever an earlier build has left there, also of modules that are no more.
    shutil.rmtree(CHECKOUT / "build", ignore_errors=True)
    with tempfile.TemporaryDirectory() as directory:
        own = ("wheel", "--no-deps", "--wheel-dir", directory, str(CHECKOUT))
        if pip(*own) or pip("download", "--no-deps", "--dest", directory, "pip"):
            return 1
        pythons = []
        if is_offline:
            for version in PYTHONS:
                print(f"Fetching the packages for Python {version} ...", file=sys.stderr)
                if fetch(Path(directory), version):
                    pythons.append(version)
            if not pythons:
                return 1
        assemble(output, Path(directory).glob("*.whl"), pythons=pythons)
    print(f"wrote {output} ({output.stat().st_size / 1e6:.1f} MB{', for Python ' * bool(pythons)}{', '.join(pythons)})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
