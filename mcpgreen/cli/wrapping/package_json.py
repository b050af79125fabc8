"""Find the scripts of a package.json, with their descriptions."""

from __future__ import annotations

import os

from mcpgreen.cli.wrapping.shell_lines import EDGE, is_harmless
from mcpgreen.cli.wrapping.task_files import Parameter, Runner, Task, place_of, text_of
from mcpgreen.errors import ProjectError
from mcpgreen.text import jsontext

# Other package managers, by the lock file beside package.json.
OTHERS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lockb": "bun", "bun.lock": "bun"}
DIRECTORY_OPTION = {"npm": "--prefix", "pnpm": "--dir", "yarn": "--cwd", "bun": "--cwd"}
NAME_CHARS = 100


def runner_for(path: str, root: str) -> Runner:
    beside = os.path.dirname(os.path.realpath(path))
    program = next((name for file, name in OTHERS.items() if os.path.exists(os.path.join(beside, file))), "npm")
    directory = place_of(path, root)
    place = (DIRECTORY_OPTION[program], directory) if directory else ()
    quiet = ("--silent",) if program == "npm" else ()
    return Runner(program, (program, *place, "run", *quiet), ends_options=program == "npm")


def scripts_in(path: str) -> list[Task]:
    """Raises ProjectError."""
    try:
        package = jsontext.loads(text_of(path))
    except ValueError as error:
        raise ProjectError(path, f"it is not JSON: {error}") from error
    scripts = package.get("scripts") if isinstance(package, dict) else None
    if not isinstance(scripts, dict):
        raise ProjectError(path, 'it has no "scripts"')
    infos = package.get("scripts-info")
    infos = infos if isinstance(infos, dict) else {}
    tasks = []
    for name, script in scripts.items():
        is_hook = any(name.startswith(when) and name[len(when) :] in scripts for when in ("pre", "post"))
        if not isinstance(script, str) or is_hook or not _is_runnable(name):
            continue
        said = infos.get(name) or scripts.get(f"//{name}") or scripts.get(f"?{name}")
        text = said if isinstance(said, str) else f"Run the script {name}: {script}"
        words = Parameter("arguments", "Words that are added to the script.", is_repeated=True)
        if is_harmless(f"{script.replace(EDGE, '')} {EDGE}{words.name}{EDGE}", {words.name}):
            tasks.append(Task(name, text, (words,)))
        else:
            tasks.append(Task(name, text, refused=(f"words after {name}",)))
    return tasks


def _is_runnable(name: str) -> bool:
    """Whether a name can be given on a command line, and is no comment."""
    return 0 < len(name) <= NAME_CHARS and name.isprintable() and not name.startswith(("-", "/", "?", "_"))
