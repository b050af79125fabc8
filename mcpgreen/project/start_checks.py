"""Check the settings that keep a server from starting if they are wrong, before `initialize` is answered.

Modules are imported only if the setting is used, so that the first answer does not wait for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpgreen.project.project import Project
    from mcpgreen.project.roots import Roots
    from mcpgreen.protocol.token import RemoteToken
    from mcpgreen.settings.settings import Settings


def remote_token(settings: Settings) -> RemoteToken | None:
    """Return the token that messages have to carry. Raises ProjectError for a token that could be guessed."""
    if not settings.remote_token:
        return None
    from mcpgreen.protocol.token import configured_token

    return configured_token(settings)


def require_tmp_root(project: Project, settings: Settings) -> None:
    """Raises ProjectError if the setting `tmp_root` names a directory that cannot be used."""
    if settings.tmp_root:
        from mcpgreen.running.scripts.temporary import require_usable

        require_usable(settings.tmp_root, root=project.root)


def operator_roots(project: Project, settings: Settings) -> Roots | None:
    """Return the roots that the operator names, or None. Raises ProjectError if one of them cannot be used."""
    if not settings.roots:
        return None
    from mcpgreen.project.roots import configured_roots

    return configured_roots(project.root, settings.roots)
