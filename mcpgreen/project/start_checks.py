"""What the operator has to have right before a server starts: a reason not to start is told before initialize.

What it takes to look is imported only if there is something to look at.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpgreen.project.project import Project
    from mcpgreen.project.roots import Roots
    from mcpgreen.protocol.token import RemoteToken
    from mcpgreen.settings.settings import Settings


def remote_token(settings: Settings) -> RemoteToken | None:
    """The token that messages have to carry. Raises ProjectError for one that could be guessed."""
    if not settings.remote_token:
        return None  # as nearly always: the first answer does not wait for an import
    from mcpgreen.protocol.token import configured_token

    return configured_token(settings)


def require_tmp_root(project: Project, settings: Settings) -> None:
    """Raises ProjectError for a directory for temporary files that is named and will not do."""
    if settings.tmp_root:
        from mcpgreen.running.scripts.temporary import require_usable

        require_usable(settings.tmp_root, root=project.root)


def operator_roots(project: Project, settings: Settings) -> Roots | None:
    """The roots that whoever starts the server names. Raises ProjectError for a bad one: fewer than were named is not
    what was asked for."""
    if not settings.roots:
        return None
    from mcpgreen.project.roots import configured_roots

    return configured_roots(project.root, settings.roots)
