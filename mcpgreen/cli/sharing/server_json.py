"""`mcpgreen server-json`: describe the project for the MCP registry.

A name in the registry begins with the namespace of its owner. It is taken from the website or repository that the
project names, and never guessed, because a wrong one would claim to be another owner.
"""

from __future__ import annotations

import hashlib
import json
import re
from urllib.parse import urlsplit

from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import filled
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import say
from mcpgreen.cli.sharing.bundle import BundleSettings
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.text.json_types import Json

FULL_NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
NAMESPACE = re.compile(r"[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+")
ADDRESS_NUMBER = re.compile(r"[0-9.]+")
MAX_TEXT = 100  # characters of title and description in the registry
SOURCES = {"github.com": "github", "gitlab.com": "gitlab"}


def run(options: Options) -> int:
    project, _, _ = open_named(options)
    info = project.server_info()
    repository, website = BundleSettings(project).repository(), info.get("websiteUrl", "")
    description = info.get("description", "")
    if not 0 < len(description) <= MAX_TEXT:
        reason = f"the registry requires 1 to {MAX_TEXT} characters; fix server.d/server.meta.json"
        raise ProjectError("description", reason)
    server: Json = json.loads(filled("sharing/server.json"))
    server |= {
        "name": _full_name(options["--name"], info["name"], website, repository),
        "title": info["title"][:MAX_TEXT],
        "description": description,
        "version": info["version"],
    }
    if website:
        server["websiteUrl"] = website
    if repository:
        host = urlsplit(repository).hostname or ""
        server["repository"] = {"url": repository, "source": SOURCES.get(host, host)}
    packages = _bundle(options)
    if options["--image"]:
        packages.append({"registryType": "oci", "identifier": options["--image"], "transport": {"type": "stdio"}})
    if packages:
        server["packages"] = packages
    say(json.dumps(server, indent=2, ensure_ascii=False) + "\n", is_exact=True)
    return 0


def _full_name(wanted: str | None, name: str, website: str, repository: str) -> str:
    if wanted:
        full = wanted if "/" in wanted else f"{wanted}/{name}" if NAMESPACE.fullmatch(wanted) else ""
    else:
        namespace = namespace_of(website) or namespace_of(repository)
        if not namespace:
            advice = "give --name io.github.YOU, or set websiteUrl or repository in server.d/server.meta.json"
            raise ProjectError(name, f"the registry needs your namespace; {advice}")
        full = f"{namespace}/{name}"
    if not FULL_NAME.fullmatch(full):
        raise ProjectError(wanted or full, "this is not a valid registry name; use one such as io.github.you/my-server")
    return full


def namespace_of(url: str) -> str:
    """Return the namespace of the owner of a URL; empty if the URL does not show it."""
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    owner = parts.path.strip("/").partition("/")[0]
    if host == "github.com":
        return f"io.github.{owner}" if owner else ""
    if host in SOURCES or not NAMESPACE.fullmatch(host) or ADDRESS_NUMBER.fullmatch(host):
        return ""  # a shared host, or one without a provable owner
    return ".".join(reversed(host.split(".")))


def _bundle(options: Options) -> list[Json]:
    path, url = options["--bundle"], options["--url"]
    if bool(path) != bool(url):
        raise UsageError("Use --bundle and --url together: the file, and the URL to download it from.")
    if not path:
        return []
    try:
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise ProjectError(path, f"it cannot be read: {error.strerror}") from error
    return [{"registryType": "mcpb", "identifier": url, "fileSha256": digest, "transport": {"type": "stdio"}}]
