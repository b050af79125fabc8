"""MCP Apps for the page: their HTML, for a frame without an origin, and what it may load.

Rule: an app gets nothing of the workbench: no cookie, no script, no answer. It speaks with the page by messages only.
"""

from __future__ import annotations

import re

from mcpgreen.catalog.apps.resources import MIME_TYPE
from mcpgreen.cli.trying.local_client import LocalClient
from mcpgreen.cli.workbench import door
from mcpgreen.cli.workbench.playing import WITH_UI
from mcpgreen.engine.server import Server
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.responses import NOT_FOUND
from mcpgreen.transports.http.wire.connection import Response

SOURCE = re.compile(r"[!#-&(-+\--:<-~]{1,200}")  # no space, quote, comma or semicolon
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' {resources}; style-src 'unsafe-inline' {resources}; "
    "img-src data: blob: {resources}; media-src data: blob: {resources}; font-src data: {resources}; "
    "connect-src {connect}; frame-src {frames}; base-uri {base}; form-action 'none'; frame-ancestors 'self'; "
    "sandbox allow-scripts allow-forms"
)


def app_response(server: Server, uri: str) -> Response:
    """Raises Rejected, and Refused if the server does not have it."""
    client = LocalClient(server, capabilities=WITH_UI)
    try:
        (content,) = client.ask("resources/read", {"uri": uri})["contents"]
    finally:
        client.close()
    if content.get("mimeType") != MIME_TYPE or "text" not in content:
        raise door.Rejected("This is not an MCP App.", NOT_FOUND)
    csp = content.get("_meta", {}).get("ui", {}).get("csp", {})
    headers = [("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", policy_of(csp))]
    return Response("200 OK", headers, [content["text"].encode("utf-8", "replace")])


def policy_of(csp: Json) -> str:
    """Return the policy for an app that names these origins."""
    named = {
        field: " ".join(each for each in csp.get(f"{field}Domains", ()) if SOURCE.fullmatch(each))
        for field in ("resource", "connect", "frame", "baseUri")
    }
    return POLICY.format(
        resources=named["resource"],
        connect=named["connect"] or "'none'",
        frames=named["frame"] or "'none'",
        base=named["baseUri"] or "'none'",
    )
