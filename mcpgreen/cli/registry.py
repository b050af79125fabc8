"""`mcpgreen scan` and `registry`: rewrite the files in `.registry/`, or print their content and age."""

from __future__ import annotations

import os

from mcpgreen import journal
from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.item_kinds import SOURCES, TITLE_OF, registry_file
from mcpgreen.catalog.manual.registration import Registrar
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import print_json
from mcpgreen.errors import InternalError
from mcpgreen.files.regular_files import without_waiting
from mcpgreen.running.hooks import HookShell
from mcpgreen.running.scripts import jq
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_BYTES = 64 << 20
# Older servers wrote apps under the second name.
ITEMS = ("items", "uiResources")


def run(options: Options) -> int:
    """Print one line of JSON. Return 1 if a kind could not be read."""
    if options.get("status"):
        return _print_status(options)
    project, settings, environ = open_named(options, logs_notes=True)
    project.server_info()  # logs what is wrong with it
    only_below = options["--filter"] or None
    shell = HookShell(environ, settings=settings, directory=project.root)
    registrar = Registrar(project, settings=settings, shell=shell)
    most = settings.registry_max_bytes
    catalog = Catalog(
        project, ttl_secs=0, max_bytes=most, only_below=only_below, on_hint=journal.info, registrar=registrar
    )
    for source in catalog.sources_of(only_below) if only_below else SOURCES:
        try:
            catalog.refresh(source, force=True)
        except InternalError:
            journal.debug("the status below says what went wrong")
    statuses = {kind: catalog.status(kind) for kind in TITLE_OF}
    mode = "minimal" if settings.force_minimal else "full"
    is_failed = any(status["status"] == "failed" for status in statuses.values())
    if is_failed or not options["--quiet"]:
        print_json({**statuses, "notificationsSent": False, "mode": mode})
    return 1 if is_failed else 0


def _print_status(options: Options) -> int:
    """Print the files as they are. Missing files are not an error, because the server does not need them."""
    project, settings, environ = open_named(options)
    name, _ = jq.find_json_tool(settings, jq.path_in(environ))
    report: Json = {"projectRoot": project.root, "jsonTool": name}
    for kind in TITLE_OF:
        report[kind] = file_status(registry_file(project, kind))
    print_json(report)
    return 0


def file_status(path: str) -> Json:
    """Tell whether a registry file exists and can be read, and its content."""
    found: Json = {"status": "missing", "path": path, "count": 0, "hash": None, "mtime": None}
    try:
        with open(path, "rb", opener=without_waiting) as file:
            found["mtime"] = int(os.fstat(file.fileno()).st_mtime)
            content = jsontext.loads(file.read(MAX_BYTES))
    except FileNotFoundError:
        return found
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict):
        return {**found, "status": "unreadable"}
    items: list[object] = next((content[name] for name in ITEMS if isinstance(content.get(name), list)), [])
    return {**found, "status": "present", "count": len(items), "hash": content.get("hash")}
