"""`resources/read`: from a URI to its content, as text or as a blob."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import NamedTuple

from mcpgreen.catalog.items import comparable
from mcpgreen.catalog.resources import Resource, ResourceTemplate, provider_of
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.errors import InvalidParams, ResourceNotFound
from mcpgreen.features.call import Call, Route, without_target
from mcpgreen.features.scripts import Reports, ScriptFiles, allowed_secs
from mcpgreen.protocol import revision_fields
from mcpgreen.providers.exits import ProviderFailure
from mcpgreen.providers.local import path_of_uri
from mcpgreen.providers.reading import Content, Request
from mcpgreen.running.scripts.channel import Channel
from mcpgreen.running.scripts.environment import AUTH_VARIABLE, described, token_variable
from mcpgreen.running.scripts.scratch import CANCEL_FILE
from mcpgreen.running.shares import in_turns
from mcpgreen.text import jsontext, media
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import file_uri, problem_with, scheme_of

READ_TTL_MS = 0


class Target(NamedTuple):
    """What is to be read, and how its content is described."""

    request: Request
    mime_type: str | None  # as the author declared it
    meta: Json | None


def find_resource(call: Call) -> Target:
    return find(call, _uri_of(call))


def needs_process(call: Call, target: Target) -> bool:
    """Tell whether a read takes a process, roots that the client has yet to name, or more time than the reader has."""
    providers, request = call.services.providers, target.request
    if providers.needs_process(request.provider) or providers.is_large(request):
        return True
    return (
        request.provider == "file"
        and not call.are_roots_known
        and not providers.is_below(request, call.services.resource_directories)
    )


def find(call: Call, uri: str) -> Target:
    """Find how to read this URI: as a listed resource, by a template that fits it, or by the provider of its scheme."""
    fault = problem_with(uri)
    if fault:
        raise InvalidParams(f"Invalid resource uri: {fault}.")
    services = call.services
    resources = services.catalog.snapshot("resources")
    resource = _listed_at(resources, uri, services.project.root) or _app_at(resources, uri)
    _require_scopes_of_prompt(call, uri)
    own_file = file_uri(resource.path) if resource is not None and resource.path is not None else uri
    if any(services.catalog.hides(each, is_listed=resource is not None) for each in {uri, own_file}):
        raise ResourceNotFound(uri)
    if resource is not None:
        variables = {} if resource.path is None else {"MCP_RESOURCE_PATH": resource.path}
        return _target(resource, uri, variables, path=resource.path if scheme_of(uri) != "file" else None)
    for template in services.catalog.snapshot("resourceTemplates").items:
        values = template.template.match(uri)
        if values is not None:
            return _target(template, uri, _template_variables(template, values))
    provider = provider_of(uri)
    if not services.providers.knows(provider):
        raise ResourceNotFound(uri)
    return Target(Request(uri, provider, {"MCP_RESOURCE_URI": uri}), None, None)


def contents_of(call: Call, target: Target) -> Json:
    providers, request = call.services.providers, within_limits(call, target.request)
    content = _read_by_script(call, request) if providers.needs_process(request.provider) else providers.read(request)
    try:
        return {"contents": [_contents(target, content)], "ttlMs": READ_TTL_MS}
    finally:
        content.close()


def _read_by_script(call: Call, request: Request) -> Content:
    """Run a provider's script, which may report and ask as a tool does."""
    secs = allowed_secs(call, call.services.settings.resource_timeout_secs)
    with ScriptFiles(call) as files:
        variables = {
            **request.variables,
            **call.client_variables,
            "MCP_ASK_REPLY": files.reply_prefix,
            "MCP_CANCEL_FILE": os.fsdecode(files.place + CANCEL_FILE),
            "MCP_PROGRESS_TOKEN": token_variable(call.token),
        }
        content = call.services.providers.read(
            request._replace(variables=variables, secs=secs),
            listen=lambda deadline: Channel(Reports(call, deadline)).feed,
            serial=call.serial,
        )
        files.remove()
    return content


def within_limits(call: Call, request: Request) -> Request:
    """Add the directories below which a file may be read now, and the owner. A provider of the project also gets the
    claims of the caller, so that subscriptions do not share the read with another caller."""
    allowed = [*call.services.resource_directories, *call.roots.paths]
    request = request._replace(allowed=allowed, owner=call.stream.owner)
    if not call.auth_json or not call.services.providers.has_own(request.provider):
        return request
    return request._replace(variables={**request.variables, AUTH_VARIABLE: call.auth_json})


def is_unread(block: object) -> bool:
    """Tell whether a content block embeds a resource that has yet to be read."""
    resource = block.get("resource") if isinstance(block, dict) else None
    return (
        isinstance(resource, dict) and isinstance(resource.get("uri"), str) and not resource.keys() & {"text", "blob"}
    )


def _contents(target: Target, content: Content) -> Json:
    head = next(content.chunks(), b"")
    contents: Json = {
        "uri": target.request.uri,
        "mimeType": media.mime_type(content.name, head[: media.HEAD_BYTES], target.mime_type),
        **media.text_or_blob(lambda: in_turns(content.chunks())),
    }
    if target.meta:
        contents["_meta"] = target.meta
    return contents


def _uri_of(call: Call) -> str:
    """Return the URI of a request, which may also name a listed resource instead."""
    uri, name = call.params.get("uri"), call.params.get("name")
    if isinstance(uri, str) and uri:
        return uri
    if uri is not None and not isinstance(uri, str):
        raise InvalidParams("uri must be a string.")
    if not isinstance(name, str) or not name:
        raise InvalidParams("Resource name or uri required")
    resource: Resource | None = call.services.catalog.snapshot("resources").by_name.get(name)
    if resource is None:
        raise ResourceNotFound(name)
    return resource.uri


def _listed_at(snapshot: Snapshot, uri: str, root: str) -> Resource | None:
    """Find a listed resource by its URI, and a file whatever way its URI is written."""
    if "by uri" not in snapshot.cache:
        files = (item for item in snapshot.items if item.path is not None and item.provider == "file")
        snapshot.cache["by path"] = {item.path: item for item in files}
        snapshot.cache["by uri"] = {item.uri: item for item in snapshot.items}
    found: Resource | None = snapshot.cache["by uri"].get(uri)
    if found is None and scheme_of(uri) == "file":
        with suppress(ProviderFailure):  # reading it will say why
            found = snapshot.cache["by path"].get(path_of_uri(uri, base=root))
    return found


def _require_scopes_of_prompt(call: Call, uri: str) -> None:
    """Require the scopes of a prompt for reading its file, which may be below a root."""
    root, prompts_dir = call.services.project.root, call.services.project.prompts_dir
    place = comparable(uri, root)
    if scheme_of(uri) == "file" and place.startswith(comparable(file_uri(prompts_dir), root)):
        for prompt in call.services.catalog.snapshot("prompts").items:
            file = file_uri(os.path.join(prompts_dir, prompt.relative_path))
            if prompt.scopes and comparable(file, root) == place:
                call.require_scopes(prompt.scopes)


def _app_at(snapshot: Snapshot, uri: str) -> Resource | None:
    """Find an app by its name; the server in the URI does not matter."""
    if scheme_of(uri) != "ui":
        return None
    name = uri.rpartition("/")[2]
    apps = (item for item in snapshot.items if item.provider == "ui")
    return next((app for app in apps if app.uri.rpartition("/")[2] == name), None)


def _target(item: Resource | ResourceTemplate, uri: str, more: dict[str, str], *, path: str | None = None) -> Target:
    about = {"MCP_RESOURCE_NAME": item.name, "MCP_RESOURCE_URI": uri}
    variables = {**about, **described("MCP_RESOURCE_METADATA", item.registry_entry), **more}
    return Target(Request(uri, item.provider, variables, path), item.mime_type, item.definition.get("_meta"))


def _template_variables(template: ResourceTemplate, values: dict[str, str]) -> dict[str, str]:
    """Return the values of the template's variables for a script, one by one and as JSON."""
    return {
        **{"MCP_RESOURCE_VAR_" + re.sub(r"\W", "_", name): value for name, value in values.items()},
        "MCP_RESOURCE_ARGS_JSON": jsontext.dumps(values).decode("ascii"),
        "MCP_RESOURCE_TEMPLATE": template.template.text,
    }


READ = Route(
    find_resource,
    contents_of,
    needs_process=needs_process,
    may_repeat=lambda call, target: True,
    fit=revision_fields.fit_contents,
    has_own_limit=True,  # of the content, which is longer once it is written as JSON
)
SUBSCRIBE = Route(
    find_resource,
    lambda call, target: call.services.subscriptions.subscribe(call, target.request),
    needs_process=needs_process,
)
UNSUBSCRIBE = without_target(lambda call: call.services.subscriptions.unsubscribe(call))
