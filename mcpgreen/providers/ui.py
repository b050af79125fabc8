"""`ui:` URIs: the MCP Apps of the project."""

from __future__ import annotations

import os
from typing import BinaryIO

from mcpgreen.catalog.apps.resources import app_for, app_html
from mcpgreen.errors import InvalidParams, OutputTooLarge, ProjectError
from mcpgreen.project.project import Project, open_project
from mcpgreen.providers.exits import FETCH_FAILED, NOT_FOUND, REFUSED, TOO_LARGE, ProviderFailure
from mcpgreen.settings.settings import Settings


def provide(uri: str, settings: Settings, out: BinaryIO) -> None:
    """Write an app of the project that the environment names, or that contains the working directory."""
    project, _, _ = open_project({}, os.environ)
    out.write(html_of(uri, project, limit_bytes=settings.max_resource_bytes))


def html_of(uri: str, project: Project, *, limit_bytes: int) -> bytes:
    """The page of an app. Raises ProviderFailure."""
    try:
        app = app_for(uri, project, project.server_name())
        if app is None:
            raise ProviderFailure(NOT_FOUND, "There is no such page.")
        return app_html(app, limit_bytes=limit_bytes)
    except InvalidParams as error:
        raise ProviderFailure(REFUSED, error.message) from error
    except OutputTooLarge as error:
        raise ProviderFailure(TOO_LARGE, error.message) from error
    except ProjectError as error:
        raise ProviderFailure(FETCH_FAILED, f"The page cannot be shown: {error.reason}.") from error
