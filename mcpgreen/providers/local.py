"""Providers that run inside the server: `file:`, `ui:` for MCP Apps, and `echo://` for experiments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import BinaryIO
from urllib.parse import unquote_to_bytes

from mcpgreen.catalog.apps.resources import app_for, app_html
from mcpgreen.errors import InvalidParams, OutputTooLarge, ProjectError
from mcpgreen.files import confined
from mcpgreen.project.project import Project, open_project
from mcpgreen.providers.exits import FETCH_FAILED, NOT_FOUND, OUTSIDE_ROOTS, REFUSED, TOO_LARGE, ProviderFailure
from mcpgreen.settings.settings import Settings
from mcpgreen.text.uris import path_of

STATUS_OF = {confined.OutsideRoots: OUTSIDE_ROOTS, confined.NotFound: NOT_FOUND, confined.TooLarge: TOO_LARGE}
ECHO = "echo://"


def provide_file(uri: str, settings: Settings, out: BinaryIO) -> None:
    """Write a file to `out`. Allowed are the directories that the server names, else resources/ of the project."""
    root = os.path.realpath(settings.project_root or ".")
    named = settings.resources_roots.split(":") if settings.resources_roots else [settings.resources_dir or "resources"]
    allowed = [os.path.realpath(os.path.join(root, path)) for path in named if path]
    server_dir = os.path.realpath(os.path.join(root, settings.server_dir or "server.d"))
    limit_bytes = settings.max_resource_bytes
    path, private = path_of_uri(uri, base=root), confined.Private(root, server_dir)
    with open_path(path, allowed=allowed, private=private, limit_bytes=limit_bytes) as file:
        try:
            out.writelines(file.chunks(limit_bytes))
        except confined.FileFailure as failure:
            raise as_provider_failure(failure) from failure


@lru_cache(maxsize=16)  # one request asks several times, and a long path takes 0.2 ms
def path_of_uri(uri: str, *, base: str) -> str:
    """Return the path that a `file:` URI names. A relative path is below `base`. Raises ProviderFailure."""
    try:
        return path_of(uri, base=base)
    except ValueError as error:
        raise ProviderFailure(REFUSED, f"Invalid resource uri: {error}") from None


def open_path(path: str, *, allowed: Sequence[str], private: confined.Private, limit_bytes: int) -> confined.OpenFile:
    """Open a file for reading. Raises ProviderFailure, also for a file that is too large."""
    try:
        file = confined.open_file(path, allowed=allowed, private=private)
    except confined.FileFailure as failure:
        raise as_provider_failure(failure) from failure
    if file.size > limit_bytes:
        file.close()
        raise as_provider_failure(confined.TooLarge(limit_bytes))
    return file


def as_provider_failure(failure: confined.FileFailure) -> ProviderFailure:
    return ProviderFailure(STATUS_OF.get(type(failure), FETCH_FAILED), str(failure))


def provide_echo(uri: str, settings: Settings, out: BinaryIO) -> None:
    """Write what follows `echo://`, percent-decoded."""
    if not uri.startswith(ECHO):
        raise ProviderFailure(REFUSED, f"The URI must begin with {ECHO}.")
    out.write(unquote_to_bytes(uri.removeprefix(ECHO)))


def provide_ui(uri: str, settings: Settings, out: BinaryIO) -> None:
    """Write an app of the project that the environment names, or that contains the working directory."""
    project, _, _ = open_project({}, os.environ)
    out.write(html_of(uri, project, limit_bytes=settings.max_resource_bytes))


def html_of(uri: str, project: Project, *, limit_bytes: int) -> bytes:
    """Return the page of an app. Raises ProviderFailure."""
    try:
        app = app_for(uri, project, project.server_name())
        if app is None:
            raise ProviderFailure(NOT_FOUND, "There is no such app.")
        return app_html(app, limit_bytes=limit_bytes)
    except InvalidParams as error:
        raise ProviderFailure(REFUSED, error.message) from error
    except OutputTooLarge as error:
        raise ProviderFailure(TOO_LARGE, error.message) from error
    except ProjectError as error:
        raise ProviderFailure(FETCH_FAILED, f"The app cannot be shown: {error.reason}.") from error


PROVIDE = {"echo": provide_echo, "file": provide_file, "ui": provide_ui}
