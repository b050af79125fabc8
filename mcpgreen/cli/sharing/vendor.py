"""`mcpgreen vendor`: a copy of mcpgreen beside the project, and a script that serves with it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from contextlib import suppress

from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.languages import filled
from mcpgreen.cli.making.questions import asked, can_ask
from mcpgreen.cli.opening import opened
from mcpgreen.cli.output import step
from mcpgreen.cli.sharing.runtime import ABOUT, DIRECTORY, checksum, copy_runtime, needed_distributions
from mcpgreen.errors import ProjectError

LAUNCHER = "run-server.sh"


def run(options: Options) -> int:
    project, _, _ = opened(options)
    output = os.path.abspath(options["--output"] or project.root)
    place, launcher = os.path.join(output, DIRECTORY), os.path.join(output, LAUNCHER)
    if options["--verify"]:
        return _verify(place)
    if options["--dry-run"]:
        packages = " ".join(distribution.metadata["Name"] for distribution in needed_distributions())
        sys.stdout.write(f"Would write {place} and {launcher}, with {packages}\n")
        return 0
    existing = [path for path in (place, launcher) if os.path.lexists(path)]
    is_wanted = options["--upgrade"] or (
        existing and can_ask() and asked(f"{existing[0]} exists. Replace it", "no", ("yes", "no")) == "yes"
    )
    if existing and not is_wanted:
        raise ProjectError(existing[0], "this exists already; --upgrade replaces it")
    with step("Copying mcpgreen and its packages"):
        fields = _write(output, project_root=project.root)
    if options["--verbose"]:
        for name, version in fields["packages"].items():  # type: ignore[attr-defined]  # a JSON object
            sys.stderr.write(f"{name} {version}\n")
    sys.stdout.write(f"Vendored mcpgreen {fields['version']} to {place}\nServe with {launcher}\n")
    return 0


def _write(output: str, *, project_root: str) -> dict[str, object]:
    """Both under hidden names first, so that what is there serves until the new one is complete."""
    hidden = os.path.join(output, f"{DIRECTORY}-{secrets.token_hex(8)}")
    fresh, old, script = (os.path.join(hidden, name) for name in ("fresh", "old", LAUNCHER))
    place = os.path.join(output, DIRECTORY)
    try:
        os.makedirs(fresh, 0o755)
        fields = copy_runtime(fresh, project=os.path.relpath(project_root, place))
        with open(script, "x", encoding="utf-8") as file:
            file.write(filled("sharing/run-server.sh"))
        os.chmod(script, 0o755)
        with suppress(FileNotFoundError):
            os.rename(place, old)
        try:
            os.rename(fresh, place)
        except BaseException:
            with suppress(FileNotFoundError):
                os.rename(old, place)
            raise
        os.replace(script, os.path.join(output, LAUNCHER))
    except OSError as error:
        raise ProjectError(error.filename or output, f"it cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return fields


def _verify(place: str) -> int:
    try:
        with open(os.path.join(place, ABOUT), encoding="utf-8") as file:
            about = json.load(file)
        expected, version = about["sha256"], about["version"]
    except FileNotFoundError:
        raise ProjectError(place, "there is no copy here; mcpgreen vendor makes one") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProjectError(
            os.path.join(place, ABOUT), f"it cannot be used ({error}); vendor --upgrade writes it"
        ) from error
    if checksum(place) != expected:
        raise ProjectError(place, "it has been changed since it was copied; vendor --upgrade replaces it")
    sys.stdout.write(f"Verified mcpgreen {version} at {place}\n")
    return 0
