"""Wheels without a network: of the packages that the tests run with, and of the checkout."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.programs import completed
from tests.support.wire import CHECKOUT

LEFT_BY_INSTALLERS = ("INSTALLER", "REQUESTED", "direct_url.json", "RECORD")
LEFT_BY_RUNS = ("__pycache__", ".registry")
SOURCES = (
    *("setup.py", "pyproject.toml", "README.md", "LICENSE"),
    *("docs/mcpgreen.1", "mcpgreen", "project", "scripts/installed"),
)
TESTS_OF_OTHERS = "gevent/tests"  # half of all files


def wheels_of_environment(directory: Path) -> list[Path]:
    """pip, mcpgreen and all that it needs."""
    return [_own_wheel(directory), *(_repacked(each, directory) for each in ("pip", *sorted(_needs_of("mcpgreen"))))]


def _needs_of(name: str) -> set[str]:
    """What is installed of the packages that it requires, and of those that these require."""
    found: set[str] = set()
    pending = [name]
    for each in pending:
        for need in distribution(each).requires or ():
            required = re.match(r"[\w.-]+", need)
            if required is None or "extra ==" in need or required[0] in found or not _is_installed(required[0]):
                continue
            found.add(required[0])
            pending.append(required[0])
    return found


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _repacked(name: str, directory: Path) -> Path:
    package = distribution(name)
    tag = re.findall(r"(?m)^Tag: (.+)$", package.read_text("WHEEL") or "")[-1]
    members = {
        path.as_posix(): Path(str(path.locate())).read_bytes()
        for path in package.files or ()
        if ".." not in path.parts
        and path.suffix != ".pyc"
        and path.name not in LEFT_BY_INSTALLERS
        and not path.as_posix().startswith(TESTS_OF_OTHERS)
    }
    return _written(directory, package, tag, members)


def _own_wheel(directory: Path) -> Path:
    """Built from a copy: setuptools leaves things behind where it works."""
    with TemporaryDirectory() as place:
        for name in SOURCES:
            (Path(place) / name).parent.mkdir(exist_ok=True)
            if (CHECKOUT / name).is_dir():
                shutil.copytree(CHECKOUT / name, Path(place) / name, ignore=shutil.ignore_patterns(*LEFT_BY_RUNS))
            else:
                shutil.copy(CHECKOUT / name, Path(place) / name)
        program = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
        done = completed([sys.executable, "-c", program, str(directory)], cwd=place)
    assert done.returncode == 0, done.stderr
    (wheel,) = directory.glob("mcpgreen-*.whl")
    return wheel


def _written(directory: Path, package: Distribution, tag: str, members: dict[str, bytes]) -> Path:
    name = re.sub(r"[-_.]+", "_", package.metadata["Name"]).lower()
    about = next(path.rpartition("/")[0] for path in members if path.endswith(".dist-info/METADATA"))
    record = "".join(f"{path},,\n" for path in (*members, f"{about}/RECORD"))
    wheel = directory / f"{name}-{package.version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in {**members, f"{about}/RECORD": record.encode()}.items():
            info = zipfile.ZipInfo(path)
            info.external_attr = (0o100755 if content.startswith(b"#!") else 0o100644) << 16
            archive.writestr(info, content)
    return wheel
