"""Wheels without a network: of the packages that the tests run with, and of the checkout."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from tests.support.wire import CHECKOUT

LEFT_BY_INSTALLERS = ("INSTALLER", "REQUESTED", "direct_url.json", "RECORD")
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
    """As setup.py would have it built, which takes packages that are not there."""
    package = distribution("mcpgreen")
    about = f"mcpgreen-{package.version}.dist-info"
    members = dict(_files("mcpgreen", "mcpgreen")) | dict(_files("project", "mcpgreen/default_project"))
    needs = "".join(f"Requires-Dist: {need}\n" for need in package.requires or ())
    told = f"Metadata-Version: 2.1\nName: mcpgreen\nVersion: {package.version}\n{needs}"
    members[f"{about}/METADATA"] = told.encode()
    members[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return _written(directory, package, "py3-none-any", members)


def _files(directory: str, target: str) -> Iterator[tuple[str, bytes]]:
    for path in (CHECKOUT / directory).rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and ".registry" not in path.parts:
            yield f"{target}/{path.relative_to(CHECKOUT / directory).as_posix()}", path.read_bytes()


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
