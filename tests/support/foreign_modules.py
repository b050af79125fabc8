"""Files of a project that are called like modules of Python, and leave a trace if somebody imports them."""

from __future__ import annotations

from pathlib import Path

NAMES = ("json", "jsonschema", "yaml", "base64", "signal", "shutil", "traceback", "socket", "rpds", "re", "difflib")
# What can stand at the end of PYTHONPATH: nothing, an empty part, a relative one.
PYTHON_PATHS = ["/", "", "lib", "/none::./lib"]
# Python imports these before it runs anything: only a shell can keep it from that.
AT_START = ("sitecustomize", "usercustomize", "encodings")


def plant_traps(root: Path, *more: str) -> Path:
    """The file that appears if one of them is imported."""
    trace = root / "trace"
    (root / "lib").mkdir(exist_ok=True)
    for name in (*NAMES, *more):
        text = f"import posix\nposix.open({str(trace)!r}, posix.O_CREAT)\nraise ImportError('not yours')\n"
        for place in (root, root / "lib"):
            (place / f"{name}.py").write_text(text, encoding="utf-8")
    return trace
