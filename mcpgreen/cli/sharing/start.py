"""Start the copy of mcpgreen in `lib/`, next to this file. Copied into bundles and vendored projects.

It is run by the Python that a client finds, so it also works in Pythons that are too old to serve, to find a newer one;
only after that it imports parts of mcpgreen. stdout belongs to the protocol.

The compiled parts of `lib/` fit one kind of Python. If this Python is of another kind, a fitting one is looked for on
this machine; if there is none, the same packages are downloaded once, into the user's cache.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__" and not sys.flags.isolated:
    # Without -I, PYTHONPATH may lead to the project, which may have a json.py.
    os.execv(sys.executable, [sys.executable, "-I", os.path.abspath(__file__), *sys.argv[1:]])

import json  # noqa: E402
import runpy  # noqa: E402
import shutil  # noqa: E402
import stat  # noqa: E402
import subprocess  # noqa: E402

OLDEST = (3, 10)
LIBRARY = os.path.join(HERE, "lib")
# The PATH of programs that are started from a desktop lacks most of these.
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
        _give_up("no Python 3.10 or newer was found; install one")
    sys.path.insert(0, LIBRARY)
    if about["kind"] != kind_of_this_python():
        _continue_with_another_python(about, needs_same_kind=True)
        sys.path[0] = _fetch_library(about)
        for name in [name for name in sys.modules if name.partition(".")[0] == "mcpgreen"]:
            del sys.modules[name]  # it is from LIBRARY
    # The folders after `--` were chosen by the user of a bundle.
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    _prepare_environment(about, sys.argv[at + 1 :])
    _mend_modes(about)
    sys.argv[1:] = sys.argv[1:at] or ["serve"]
    if about.get("needs_packages") and sys.argv[1] == "serve":
        _install_packages(os.path.join(HERE, about["project"], ".environments"))
    runpy.run_module("mcpgreen", run_name="__main__", alter_sys=True)


def kind_of_this_python() -> str:
    """Return the kind of Python that compiled packages have to fit."""
    import _imp

    return f"{sys.implementation.name} {_imp.extension_suffixes()[0]} {os.uname().machine}"


def _is_placeholder(text: str) -> bool:
    """Tell whether a client has left a placeholder, because the user has not filled it in."""
    return text.startswith("${user_config.") and text.endswith("}")


def _prepare_environment(about: dict, folders: "list[str]") -> None:  # type: ignore[type-arg]  # older Pythons
    for name in [name for name, value in os.environ.items() if _is_placeholder(value)]:
        del os.environ[name]
    if not any(os.environ.get(name) for name in ROOT_VARIABLES):
        os.environ[ROOT_VARIABLES[0]] = os.path.normpath(os.path.join(HERE, about["project"]))
    roots = [folder for folder in folders if os.path.isdir(folder) and not _is_placeholder(folder)]
    if roots and not os.environ.get("MCPGREEN_ROOTS"):
        os.environ["MCPGREEN_ROOTS"] = os.pathsep.join(roots)


def _mend_modes(about: dict) -> None:  # type: ignore[type-arg]  # older Pythons
    """Correct the modes of files: unpacking may lose executable bits or let a group write, and no script would run."""
    if "executables" not in about:
        return
    from mcpgreen.files.regular_files import change_mode

    project, here = os.path.realpath(os.path.join(HERE, about["project"])), os.path.realpath(HERE)
    executables = {os.path.join(project, path) for path in about["executables"]}
    for directory, directories, files in os.walk(project):
        directories[:] = [name for name in directories if os.path.join(directory, name) != here]
        for path in [directory, *(os.path.join(directory, name) for name in files)]:
            add = 0o111 if path in executables else 0
            try:
                mode = os.lstat(path).st_mode
                if (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and (mode & 0o022 or add & ~mode):
                    change_mode(path, add=add, remove=0o022)
            except OSError as error:
                _say(f"{path}: {error.strerror}; the server may refuse to run it")


def _install_packages(place: str) -> None:
    """Install the packages of the tools in the background, as the client waits for its first answer. The process gets
    another parent, because the server ends unknown children, and no pipe, because the client may wait for its end."""
    script = 'umask 022; mkdir -p "$0" && "$@" >"$0/install.log" 2>&1 &'
    command = ["/bin/sh", "-c", script, place, sys.executable, "-I", os.path.abspath(__file__), "deps", "install"]
    none = subprocess.DEVNULL
    subprocess.call(command, stdin=none, stdout=none, stderr=none, start_new_session=True)


def _continue_with_another_python(about: dict, *, needs_same_kind: bool) -> None:  # type: ignore[type-arg]
    """Replace this process with another Python. Return only if there is none."""
    versions = [about["python"]] if needs_same_kind else ["3.14", "3.13", "3.12", "3.11", "3.10"]
    names = [f"python{version}" for version in versions] + ["python3"]
    here = os.environ.get("PATH", "").split(os.pathsep)
    places = os.pathsep.join([*here, *(os.path.expanduser(place) for place in USUAL_PLACES)])
    for name in names:
        program = shutil.which(name, path=places)
        is_fit, kind = _probe(program) if program else (False, "")
        if program and is_fit and (kind == about["kind"] or not needs_same_kind):
            os.execv(program, [program, "-I", os.path.abspath(__file__), *sys.argv[1:]])


def _probe(program: str) -> "tuple[bool, str]":
    """Return whether a Python is new enough, and its kind."""
    try:
        said = subprocess.check_output(
            [program, "-I", "-c", KIND_PROGRAM], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PROBE_SECS
        )
    except (OSError, subprocess.SubprocessError):
        return False, ""
    is_new, _, kind = said.decode("utf-8", "replace").strip().partition(" ")
    return is_new == "True", kind


def _fetch_library(about: dict) -> str:  # type: ignore[type-arg]  # older Pythons
    """Return the library for this Python, cached or made now. If several processes make it, the first counts."""
    import hashlib
    import tempfile

    from mcpgreen.files.regular_files import private_directory

    key = hashlib.sha256(f"{about['sha256']} {kind_of_this_python()}".encode()).hexdigest()[:32]
    caches = os.environ.get("XDG_CACHE_HOME") or ""
    if not os.path.isabs(caches):
        caches = os.path.expanduser("~/.cache")
    ours = os.path.join(caches, "mcpgreen")
    cache = os.path.join(ours, "runtimes")
    place = os.path.join(cache, key)
    try:
        os.close(private_directory(ours))
        os.close(private_directory(cache))
        if os.path.lexists(place):
            os.close(private_directory(place))
            return place
        fresh = tempfile.mkdtemp(dir=cache)
    except OSError as error:
        _give_up(f"{cache}: {error.strerror}; set XDG_CACHE_HOME to a directory of your own")
    version = "{}.{}".format(*sys.version_info)
    _say(f"fetching packages for Python {version} (only once); Python {about['python']} would not need them")
    try:
        shutil.copytree(os.path.join(LIBRARY, "mcpgreen"), os.path.join(fresh, "mcpgreen"))
        packages = [f"{name}=={version}" for name, version in sorted(about["packages"].items())]
        command = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        command += ["--no-deps", "--only-binary", ":all:", "--target", fresh, *packages]
        if packages and subprocess.call(command, stdin=subprocess.DEVNULL, stdout=sys.stderr):
            _give_up(f"the packages could not be fetched; install Python {about['python']}, or let pip reach its index")
        try:
            os.rename(fresh, place)
        except OSError:
            if not os.path.isdir(place):
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return place


def _say(text: str) -> None:
    sys.stderr.write(f"mcpgreen: {text}\n")
    sys.stderr.flush()


def _give_up(text: str) -> None:
    _say(text)
    sys.exit(1)


if __name__ == "__main__":
    main()
