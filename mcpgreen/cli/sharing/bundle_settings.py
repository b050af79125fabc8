"""The settings of a bundle: from the command line, `mcpb.conf` and `server.d/server.meta.json`, in this order.

`mcpb.conf` looks like shell, but it is data: it is split as a shell would do it, and nothing is expanded or run.
"""

from __future__ import annotations

import json
import os
import pwd
import shlex
import subprocess
from contextlib import suppress
from typing import Any

from mcpgreen import journal
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of
from mcpgreen.project.project import Project
from mcpgreen.text.json_types import Json

CONF = "mcpb.conf"
PREFIX = "MCPB_"
MAX_BYTES = 1 << 20
# The keys of mcpb.conf that have an equivalent field in server.meta.json, and those without one.
_SHARED = """NAME VERSION DESCRIPTION REPOSITORY LICENSE KEYWORDS DOCUMENTATION SUPPORT PRIVACY_POLICIES
    LONG_DESCRIPTION_FILE USER_CONFIG_ENV_MAP USER_CONFIG_ARGS_MAP"""
_OWN = """AUTHOR_NAME AUTHOR_EMAIL AUTHOR_URL INCLUDE STATIC USER_CONFIG_FILE COMPAT_CLAUDE_DESKTOP RUNTIME_PYTHON
    RUNTIME_NODE"""
FIELD_OF = {key: key.lower() for key in _SHARED.split()} | {"HOMEPAGE": "websiteUrl"} | dict.fromkeys(_OWN.split(), "")


class BundleSettings:
    """The settings of one project. Raises ProjectError for unusable ones."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._conf = _read_conf(os.path.join(project.root, CONF))
        self._meta = _object(_text(os.path.join(project.server_dir, "server.meta.json")) or "{}", "server.meta.json")

    def value(self, key: str) -> Any:
        """The value in mcpb.conf, else in server.meta.json, else None."""
        if key in self._conf:
            return self._conf[key]
        return self._meta.get(FIELD_OF[key]) if FIELD_OF[key] else None

    def text(self, key: str) -> str:
        value = self.value(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ProjectError(key, f"{FIELD_OF[key]} in server.meta.json must be a text")
        return value.strip()

    def words(self, key: str) -> list[str]:
        """A list: the words of a text, or the members of an array."""
        value = self.value(key)
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
        return self.text(key).replace(",", " ").split()

    def pairs(self, key: str) -> dict[str, str]:
        """`one=ONE two=TWO`, or an object."""
        value = self.value(key)
        if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
            return value
        pairs = {}
        for word in self.words(key):
            name, equals, meant = word.partition("=")
            if not (name and equals and meant):
                raise ProjectError(CONF, f"{PREFIX}{key}: {word} is not name=VARIABLE")
            pairs[name] = meant
        return pairs

    def repository(self) -> str:
        value = self.value("REPOSITORY")
        if isinstance(value, dict):
            value = value.get("url")
        return value.strip() if isinstance(value, str) else ""

    def author(self) -> dict[str, str]:
        """The author, which the manifest requires. If nothing names one, it is the current user."""
        given = self._meta.get("author")
        author = {"name": given} if isinstance(given, str) else dict(given) if isinstance(given, dict) else {}
        for key in ("name", "email", "url"):
            if text := self.text(f"AUTHOR_{key.upper()}"):
                author[key] = text
        if not author.get("name"):
            author["name"] = _user_name(self.project.root)
            journal.warning("the author is %s; MCPB_AUTHOR_NAME in %s can say it better", author["name"], CONF)
        return {key: author[key] for key in ("name", "email", "url") if author.get(key)}

    def long_description(self) -> str:
        return self._file_text(self.text("LONG_DESCRIPTION_FILE"))

    def user_config(self) -> Json:
        """The options that clients ask the user for. Title and description are required; the name is their default."""
        name = self.text("USER_CONFIG_FILE")
        options = _object(self._file_text(name), name) if name else self._meta.get("user_config") or {}
        if not isinstance(options, dict) or not all(isinstance(option, dict) for option in options.values()):
            raise ProjectError(name or "user_config", "it must be an object of objects")
        return {
            key: {"title": key, "description": option.get("title", key), **option} for key, option in options.items()
        }

    def inside(self, name: str, key: str) -> str:
        """The path of a file or directory. Raises ProjectError if it is outside of the project."""
        path = os.path.realpath(os.path.join(self.project.root, name))
        if os.path.isabs(name) or ".." in name.split("/") or not path.startswith(self.project.root + os.sep):
            raise ProjectError(CONF, f"{PREFIX}{key}: {name} must be a path inside the project")
        return path

    def _file_text(self, name: str) -> str:
        text = _text(self.inside(name, "…_FILE")) if name else ""
        if text is None:
            raise ProjectError(name, "there is no such file in the project")
        return text


def _read_conf(path: str) -> dict[str, str]:
    try:
        words = shlex.split(_text(path) or "", comments=True)
    except ValueError as error:
        raise ProjectError(path, f"it cannot be read: {error}") from error
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        key = name.removeprefix(PREFIX)
        if equals and key != name and key in FIELD_OF:
            found[key] = value
            if "$" in value or "`" in value:
                journal.warning("%s: %s is taken as it stands; nothing in it is expanded or run", CONF, name)
        elif word != "export":
            journal.warning("%s: %s is ignored: it is no setting of a bundle", CONF, name[:80])
    return found


def _text(path: str) -> str | None:
    if not os.path.exists(path):
        return None
    try:
        return content_of(path, MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProjectError(path, f"it cannot be read: {error}") from error


def _object(text: str, shown: str) -> Json:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ProjectError(shown, f"it is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ProjectError(shown, "it must be a JSON object")
    return value


def _user_name(root: str) -> str:
    """The name of the current user, as git or the system has it."""
    command = ["git", "-C", root, "config", "--get", "user.name"]
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
        if name := done.stdout.decode("utf-8", "replace").strip():
            return name
    try:
        user = pwd.getpwuid(os.getuid())
    except KeyError:
        return "unknown"
    return user.pw_gecos.partition(",")[0].strip() or user.pw_name
