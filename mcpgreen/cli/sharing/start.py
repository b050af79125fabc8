"""Start the mcpgreen that lies beside this file, in `lib/`. Copied into bundles and vendored projects.

It runs alone, by whatever Python a client finds, and before anything of ours is known to work: so it imports nothing of
ours, and is written for Pythons that are too old to serve, to find a newer one. stdout belongs to the protocol.

What is compiled in `lib/` fits one kind of Python. Another one is looked for on this machine, and if there is none, the
same packages are fetched once, into the cache of the user.
"""

import json
import os
import runpy
import shutil
import subprocess
import sys

OLDEST = (3, 10)
HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(HERE, "lib")
# Programs that are started from a desktop have a PATH without most of these.
USUAL_PLACES = ("/usr/local/bin", "/opt/homebrew/bin", "/usr/bin", "~/.local/bin", "~/.pyenv/shims")
ROOT_VARIABLES = ("MCPGREEN_PROJECT_ROOT", "MCPBASH_PROJECT_ROOT")
PROBE_SECS = 10
KIND_PROGRAM = (
    "import _imp, os, sys; "
    "print(sys.version_info >= (3, 10), sys.implementation.name, _imp.extension_suffixes()[0], os.uname().machine)"
)


def main() -> None:
    with open(os.path.join(HERE, "vendor.json"), encoding="utf-8") as file:
        about = json.load(file)
    if sys.version_info < OLDEST:
        _continue_with_another_python(about, needs_same_kind=False)
        _give_up("it needs Python 3.10 or newer, and finds none; install one")
    library = LIBRARY
    if about["kind"] != kind_of_this_python():
        _continue_with_another_python(about, needs_same_kind=True)
        library = _fetched(about)
    words, folders = _split(sys.argv[1:])
    _prepare_environment(about, folders)
    _mend_modes(about)
    sys.path[:] = [library, *(place for place in sys.path if place != HERE)]
    sys.argv[1:] = words or ["serve"]
    runpy.run_module("mcpgreen", run_name="__main__", alter_sys=True)


def kind_of_this_python() -> str:
    """What the compiled parts of packages have to be made for."""
    import _imp

    return f"{sys.implementation.name} {_imp.extension_suffixes()[0]} {os.uname().machine}"


def _split(arguments: "list[str]") -> "tuple[list[str], list[str]]":
    """A command for mcpgreen, and after `--` what the user of a bundle has chosen."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], [folder for folder in arguments[at + 1 :] if not _is_placeholder(folder)]


def _is_placeholder(text: str) -> bool:
    """Clients leave in place what the user has not filled in."""
    return text.startswith("${user_config.") and text.endswith("}")


def _prepare_environment(about: dict, folders: "list[str]") -> None:  # type: ignore[type-arg]  # older Pythons
    for name in [name for name, value in os.environ.items() if _is_placeholder(value)]:
        del os.environ[name]
    if not any(os.environ.get(name) for name in ROOT_VARIABLES):
        os.environ[ROOT_VARIABLES[0]] = os.path.normpath(os.path.join(HERE, about["project"]))
    roots = [folder for folder in folders if os.path.isdir(folder)]
    if roots and not os.environ.get("MCPGREEN_ROOTS"):
        os.environ["MCPGREEN_ROOTS"] = os.pathsep.join(roots)


def _mend_modes(about: dict) -> None:  # type: ignore[type-arg]  # older Pythons
    """Programs that unpack a bundle may lose executable bits, or let a group write: then no script would be run."""
    if "executables" not in about:
        return
    project = os.path.normpath(os.path.join(HERE, about["project"]))
    executables = {os.path.join(project, path) for path in about["executables"]}
    for directory, directories, files in os.walk(project):
        directories[:] = [name for name in directories if os.path.join(directory, name) != HERE]
        for path in [directory, *(os.path.join(directory, name) for name in files)]:
            mode = os.lstat(path).st_mode & 0o7777
            wanted = (mode & ~0o022) | (0o111 if path in executables else 0)
            if wanted != mode:
                try:
                    os.chmod(path, wanted)
                except OSError as error:
                    _say(f"{path}: {error.strerror}; the server may refuse it")


def _continue_with_another_python(about: dict, *, needs_same_kind: bool) -> None:  # type: ignore[type-arg]
    """Returns if there is none."""
    versions = [about["python"]] if needs_same_kind else ["3.14", "3.13", "3.12", "3.11", "3.10"]
    names = [f"python{version}" for version in versions] + ["python3"]
    here = os.environ.get("PATH", "").split(os.pathsep)
    places = os.pathsep.join([*here, *(os.path.expanduser(place) for place in USUAL_PLACES)])
    for name in names:
        program = shutil.which(name, path=places)
        is_fit, kind = _probed(program) if program else (False, "")
        if program and is_fit and (kind == about["kind"] or not needs_same_kind):
            os.execv(program, [program, os.path.abspath(__file__), *sys.argv[1:]])


def _probed(program: str) -> "tuple[bool, str]":
    """Whether a Python is new enough, and of which kind it is."""
    try:
        said = subprocess.check_output(
            [program, "-c", KIND_PROGRAM], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PROBE_SECS
        )
    except (OSError, subprocess.SubprocessError):
        return False, ""
    is_new, _, kind = said.decode("utf-8", "replace").strip().partition(" ")
    return is_new == "True", kind


def _fetched(about: dict) -> str:  # type: ignore[type-arg]  # older Pythons
    """A library for this Python, from the cache, or made now. Several may try at once: the first one counts."""
    import hashlib
    import tempfile

    key = hashlib.sha256(f"{about['sha256']} {kind_of_this_python()}".encode()).hexdigest()[:32]
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "mcpgreen", "runtimes")
    place = os.path.join(cache, key)
    if os.path.isdir(place):
        return place
    version = "{}.{}".format(*sys.version_info)
    _say(f"packages for Python {version} are fetched, once; Python {about['python']} would have what it needs here")
    try:
        os.makedirs(cache, 0o700, exist_ok=True)
        fresh = tempfile.mkdtemp(dir=cache)
    except OSError as error:
        _give_up(f"{cache}: {error.strerror}; let XDG_CACHE_HOME name a directory that can be written to")
    try:
        shutil.copytree(os.path.join(LIBRARY, "mcpgreen"), os.path.join(fresh, "mcpgreen"))
        _install(about, fresh)
        try:
            os.rename(fresh, place)
        except OSError:
            if not os.path.isdir(place):
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return place


def _install(about: dict, place: str) -> None:  # type: ignore[type-arg]  # older Pythons
    packages = [f"{name}=={version}" for name, version in sorted(about["packages"].items())]
    if not packages:
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    status = subprocess.call(
        [*command, "--no-deps", "--only-binary", ":all:", "--target", place, *packages],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
    )
    if status:
        _give_up(f"the packages could not be fetched; install Python {about['python']}, or let pip reach its index")


def _say(text: str) -> None:
    sys.stderr.write(f"mcpgreen: {text}\n")
    sys.stderr.flush()


def _give_up(text: str) -> None:
    _say(text)
    sys.exit(1)


if __name__ == "__main__":
    main()
