"""`python -m mcpgreen` and the console script: the shortest way to the first answer.

Serving is the hot path: descriptors are claimed before anything is imported that could print, the greeting is answered
by the pure modules, and only then is gevent imported and the standard library patched. All other commands go to
`cli.main`.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgreen.catalog.lists.early import EarlyLists
    from mcpgreen.first_answer import Opening
    from mcpgreen.project.project import Project
    from mcpgreen.protocol.introduction import Identity
    from mcpgreen.settings.settings import Settings

# What takes long to import, in pieces of some milliseconds; first what a list needs that nobody has kept.
PIECES = (
    "mcpgreen.catalog.catalog",
    "mcpgreen.catalog.tools",
    "re",
    "typing",
    "zope.interface",
    "gevent",
    "gevent.lock",
    "gevent.subprocess",
    "mcpgreen.running.processes.runner",
    "mcpgreen.features.services",
    "mcpgreen.engine.router",
)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    _import_nothing_from_here()
    try:
        root = _root_to_serve(arguments)
        if root is not None:
            return serve(root)
        _unblock_signals()
        from mcpgreen.cli.main import run

        return run(arguments, serve=serve)
    except KeyboardInterrupt:
        return 130


def _import_nothing_from_here() -> None:
    """Python looks for modules in the working directory when it is started as `python -m` or `python -c`, and that is
    often the project, where a script or a client may leave a file called json.py."""
    package_home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    sys.path[:] = [place for place in sys.path if os.path.isabs(place) and (place != here or place == package_home)]


def _root_to_serve(arguments: list[str]) -> str | None:
    """The project root of a plain `serve` ("" when none is named); None for every other command line."""
    if not arguments:
        return None if os.isatty(0) else ""
    options = arguments[1:] if arguments[0] == "serve" else arguments
    if not options:
        return ""
    if len(options) == 2 and options[0] == "--project-root":
        return options[1] or None  # an empty name is for `cli.main` to refuse
    if len(options) == 1 and options[0].startswith("--project-root="):
        return options[0].partition("=")[2] or None
    return None


def serve(root: str, http: str | None = None) -> int:
    """Serve over stdin and stdout, or, if there is an address, over HTTP. The exit status."""
    if http is not None:
        return serve_http(root, http)
    parent_pid = os.getppid()
    stdin, stdout = claim_stdio()
    _take_over_signals()
    _unblock_signals()
    from mcpgreen import journal
    from mcpgreen.errors import ProjectError
    from mcpgreen.first_answer import Opening
    from mcpgreen.project.project import open_project
    from mcpgreen.project.start_checks import operator_roots, remote_token, require_tmp_root
    from mcpgreen.protocol.introduction import Identity
    from mcpgreen.protocol.revisions import offered_capabilities

    journal.never_block()
    try:
        project, settings, environ = open_project({"project_root": root} if root else {}, os.environ)
        # What is wrong with them is a reason not to start, and after the greeting it would be too late to say so.
        token, roots = remote_token(settings), operator_roots(project, settings)
        require_tmp_root(project, settings)
    except ProjectError as error:
        journal.error("%s", error)
        return 1
    journal.set_level(settings.stderr_level)
    close_log = _set_up_log(settings, project)
    for note in settings.notes:
        journal.warning("%s", note)
    identity = Identity(project.server_info(), project.instructions())
    offered = offered_capabilities(is_minimal=settings.force_minimal)
    opening = Opening(stdin, stdout, identity, offered=offered, log_level=settings.log_level, token=token)
    opening.greet()
    early = _prepare(opening, project, settings, identity)
    from mcpgreen.engine.server import Server
    from mcpgreen.transports import stdio

    os.chdir(project.root)  # where scripts run; a change of directory for each would cost two calls
    server = Server(settings, project, environ=environ, identity=identity, roots=roots, early=early)
    if os.isatty(stdin) or (opening.is_at_end and not opening.unread and os.isatty(2)):
        from mcpgreen.cli.welcome import welcome

        welcome(server)
    try:
        return stdio.serve(
            server,
            stdin,
            stdout,
            handshake=opening.handshake,
            greeting=opening.greeting,
            unsent=opening.unsent,
            first=opening.unread,
            is_at_end=opening.is_at_end,
            token=token,
            parent_pid=parent_pid,
        )
    finally:
        close_log()


def serve_http(root: str, address: str) -> int:
    """Serve over HTTP at this address. The exit status. Raises ProjectError and UsageError."""
    patch()
    from mcpgreen import journal
    from mcpgreen.engine.server import Server
    from mcpgreen.project.project import open_project
    from mcpgreen.project.start_checks import operator_roots, require_tmp_root
    from mcpgreen.transports.http import serving

    project, settings, environ = open_project({"project_root": root} if root else {}, os.environ)
    roots = operator_roots(project, settings)
    require_tmp_root(project, settings)
    journal.set_level(settings.stderr_level)
    journal.never_block()
    close_log = _set_up_log(settings, project)
    for note in settings.notes:
        journal.warning("%s", note)
    os.chdir(project.root)
    server = Server(serving.prepared_settings(settings), project, environ=environ, roots=roots)
    try:
        return serving.serve(server, address, os.environ)
    finally:
        close_log()


def _prepare(opening: Opening, project: Project, settings: Settings, identity: Identity) -> EarlyLists:
    """Import what the engine needs, piece by piece, and answer the first lists in between: a client that was greeted
    asks for them after some milliseconds, and nobody should wait for that."""
    from mcpgreen import journal
    from mcpgreen.catalog.lists.early import EarlyLists

    early = EarlyLists(project, settings, identity.info, os.environ)
    if not journal.tells_frames:  # who wants to see every message sees them in their order
        opening.lists = early
    opening.go_on()
    for name in PIECES:
        try:
            __import__(name)
        except ImportError:
            continue  # not every gevent needs every piece; what is needed is missed again below
        if name == "gevent":
            patch()
        opening.go_on()
    return early


def _set_up_log(settings: Settings, project: Project) -> Callable[[], None]:
    """Where the log goes, if not to stderr as text. What is returned ends it."""
    if not settings.log_file and settings.log_format == "text":
        return lambda: None
    from mcpgreen.logs.outputs import set_up

    return set_up(settings, project.root)


def _take_over_signals() -> None:
    """What whoever started us ignores is not ignored by us, nor by a hook that we start: with SIGCHLD ignored no end of
    a child would be noticed. Python's own choice is left alone: a write that fails is an error, not the end.

    Until the engine listens to signals itself there is nothing to clean up: leave as it would."""
    import _signal  # the part of `signal` that needs no import of enum, which would cost the first answer 7 ms

    for number in range(1, _signal.NSIG):
        if number not in (_signal.SIGPIPE, _signal.SIGXFSZ) and _signal.getsignal(number) == _signal.SIG_IGN:
            _signal.signal(number, _signal.SIG_DFL)
    _signal.signal(_signal.SIGTERM, lambda *_: os._exit(0))
    _signal.signal(_signal.SIGHUP, lambda *_: os._exit(0))
    _signal.signal(_signal.SIGINT, lambda *_: os._exit(130))


def _unblock_signals() -> None:
    """A blocked signal would stay so in all that we start: SIGCHLD tells us the end of a script, SIGTERM our own."""
    import _signal

    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def claim_stdio() -> tuple[int, int]:
    """Private descriptors for the protocol; fd 1 then leads to stderr and fd 0 to nothing.

    No library and no child can read or write the protocol by accident.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # A later open would take this number, and be mistaken for the stream.
            os.open(os.devnull, os.O_RDWR)
    stdin, stdout = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return stdin, stdout


def patch() -> None:
    """Make cooperative what code that we do not own may block in while we serve: sleeping, so far."""
    import time

    from gevent import config, monkey, sleep

    config.track_greenlet_tree = False  # notes the stack of whoever starts a greenlet, for debuggers
    config.format_context = "builtins.repr"  # the default, pprint, costs 10 ms and is used for crash reports only
    # Not `patch_module`: its events, to which nobody subscribes, cost 6 ms.
    monkey.patch_item(time, "sleep", sleep)


if __name__ == "__main__":
    sys.exit(main())
