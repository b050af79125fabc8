"""The entry point, for `python -m mcpgreen` and the console script.

To serve over stdio, `serve` first claims the descriptors, before a module that could print is imported; then it answers
`initialize`, and only then imports gevent and the rest of the server. `cli.main` runs all other commands.
"""

from __future__ import annotations

import os
import sys

# Python has loaded these two already. Until `_import_nothing_from_here` has run, any other module, even `typing`, could
# come from the working directory.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgreen.project.project import Project
    from mcpgreen.settings.settings import Settings

PATCH_AFTER_SECS = 0.05


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    _take_back_python_path()
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


def _take_back_python_path() -> None:
    """Restore the PYTHONPATH that scripts/mcpgreen and scripts/installed/mcpgreen changed: tools need the original."""
    given = os.environ.pop("MCPGREEN_GIVEN_PYTHONPATH", None)
    if given:
        os.environ["PYTHONPATH"] = given
    elif given is not None:
        os.environ.pop("PYTHONPATH", None)


def _import_nothing_from_here() -> None:
    """Take the working directory out of sys.path, where `python -m`, `python -c` and empty or relative parts of
    PYTHONPATH put it. It is often the project, where a script or a client may leave a file called json.py."""
    package_home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    unsafe = {here, *(os.path.normpath(os.path.join(here, part)) for part in named if not os.path.isabs(part))}
    unsafe.discard(package_home)
    sys.path[:] = [place for place in sys.path if os.path.isabs(place) and place not in unsafe]


def _root_to_serve(arguments: list[str]) -> str | None:
    """Return the project root of a plain `serve` ("" when none is named); None for every other command line."""
    if not arguments:
        return None if os.isatty(0) else ""
    options = arguments[1:] if arguments[0] == "serve" else arguments
    if not options:
        return ""
    if len(options) == 2 and options[0] == "--project-root":
        return options[1] or None  # `cli.main` refuses an empty name
    if len(options) == 1 and options[0].startswith("--project-root="):
        return options[0].partition("=")[2] or None
    return None


def serve(root: str, http: str | None = None) -> int:
    """Serve over stdin and stdout, or over HTTP if there is an address. Return the exit status."""
    if http is not None:
        return serve_http(root, http)
    import gc

    gc.disable()  # until all modules are loaded: what they make stays, and looking for garbage takes milliseconds
    parent_pid = os.getppid()
    stdin, stdout = claim_stdio()
    _take_over_signals()
    _unblock_signals()
    from mcpgreen import journal
    from mcpgreen.errors import ProjectError
    from mcpgreen.first_answer import Opening
    from mcpgreen.project.project import open_project, operator_roots, remote_token, require_tmp_root
    from mcpgreen.protocol.admission import Identity
    from mcpgreen.protocol.revisions import offered_capabilities

    journal.never_block()
    try:
        project, settings, environ = open_project({"project_root": root} if root else {}, os.environ)
        # If these are wrong, the server does not start, so they are checked before `initialize` is answered.
        token, roots = remote_token(settings), operator_roots(project, settings)
        require_tmp_root(project, settings)
    except ProjectError as error:
        journal.error("%s", error)
        return 1
    close_log = _set_up_log(settings, project)
    identity = Identity(project.server_info(), project.instructions())
    has_tasks, has_skills = settings.tasks != "off", project.has_skills
    offered = offered_capabilities(is_minimal=settings.force_minimal, has_tasks=has_tasks, has_skills=has_skills)
    opening = Opening(stdin, stdout, identity, offered=offered, log_level=settings.log_level, token=token)
    if settings.tasks != "off":  # otherwise the tools decide what is offered
        opening.answer()
    patch()
    from mcpgreen.engine.server import Server
    from mcpgreen.transports import stdio

    os.chdir(project.root)  # where scripts run
    server = Server(settings, project, environ=environ, identity=identity, roots=roots)
    server.services.keeper_environ = os.environ
    if os.isatty(stdin):
        from mcpgreen.cli.output import welcome

        welcome(server)
    try:
        return stdio.serve(server, stdin, stdout, opening, token=token, parent_pid=parent_pid)
    finally:
        close_log()


def keep(root: str) -> int:
    """Run the tasks that outlive a server over stdio. Return the exit status. It has started us; stdin is a socket."""
    fd = claim_stdio()[0]
    patch()
    from mcpgreen import journal
    from mcpgreen.engine.server import Server
    from mcpgreen.features.tasks import keeper
    from mcpgreen.project.project import open_project, operator_roots

    journal.never_block()
    project, settings, environ = open_project({"project_root": root}, os.environ)
    close_log = _set_up_log(settings, project)
    os.chdir(project.root)
    server = Server(settings, project, environ=environ, roots=operator_roots(project, settings))
    try:
        server.watch()
        server.observe("keeper")
        keeper.keep(server.services, fd)
        server.stop()
    finally:
        close_log()
    return 0


def serve_http(root: str, address: str) -> int:
    """Serve over HTTP at this address. Return the exit status. Raises ProjectError and UsageError."""
    patch()
    from mcpgreen import journal
    from mcpgreen.engine.server import Server
    from mcpgreen.project.project import open_project, operator_roots, require_tmp_root
    from mcpgreen.transports.http import serving

    project, settings, environ = open_project({"project_root": root} if root else {}, os.environ)
    roots = operator_roots(project, settings)
    require_tmp_root(project, settings)
    journal.never_block()
    close_log = _set_up_log(settings, project)
    if os.isatty(2) and settings.origin("stderr_level") == "default":
        journal.set_level("info")  # a person sees every request
    os.chdir(project.root)
    server = Server(serving.prepared_settings(settings), project, environ=environ, roots=roots)
    if os.isatty(2):
        from mcpgreen.cli.output import welcome_over_http

        welcome_over_http(server)
    try:
        return serving.serve(server, address, os.environ)
    finally:
        close_log()


def _set_up_log(settings: Settings, project: Project) -> Callable[[], None]:
    """Log what and where the settings say; return the function that ends it."""
    from mcpgreen import journal

    journal.set_level(settings.stderr_level)
    close_log: Callable[[], None] = lambda: None  # noqa: E731
    if settings.log_file or settings.log_format != "text":
        from mcpgreen.logs.outputs import set_up

        close_log = set_up(settings, project.root)
    for note in settings.notes:
        journal.warning("%s", note)
    return close_log


def _take_over_signals() -> None:
    """Restore the defaults of signals that the starting process ignored, for us and for scripts: with SIGCHLD ignored,
    we would not learn the end of a child. SIGPIPE and SIGXFSZ stay as Python sets them: a failed write is an error.

    Until the engine handles signals there is nothing to clean up, so SIGTERM, SIGHUP and SIGINT end the process."""
    import signal

    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGHUP, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def _unblock_signals() -> None:
    """Unblock all signals: scripts would inherit blocked ones, and we need SIGCHLD and SIGTERM."""
    import signal

    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def claim_stdio() -> tuple[int, int]:
    """Move the protocol to private descriptors; fd 1 then leads to stderr and fd 0 to /dev/null.

    So no library and no child can read or write the protocol by accident.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # A later open would get this number, and be mistaken for the stream.
            os.open(os.devnull, os.O_RDWR)
    stdin, stdout = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return stdin, stdout


def patch() -> None:
    """Load gevent, and soon make `time.sleep` cooperative for libraries that call it while we serve. Not at once:
    `gevent.monkey` takes as long to import as a look at a hundred tools, and the client's first request goes first."""
    import tokenize  # noqa: F401  # a traceback needs it, also when no file can be opened any more

    from gevent import config, spawn_later

    config.track_greenlet_tree = False  # costs a stack for each greenlet, and is for debuggers only
    config.format_context = "builtins.repr"  # the default, pprint, costs 10 ms and is used for crash reports only
    spawn_later(PATCH_AFTER_SECS, _patch_sleep)


def _patch_sleep() -> None:
    import time

    from gevent import monkey, sleep

    # Not `patch_module`: its events have no subscribers and cost 6 ms.
    monkey.patch_item(time, "sleep", sleep)


if __name__ == "__main__":
    sys.exit(main())
