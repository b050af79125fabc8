"""`skills/get` and `resources/directory/read`: the entry of one skill, and what a folder of a skill has in it.

`skills/list` is served as any list, and the files by `resources/read`: they are listed resources.
"""

from __future__ import annotations

import os
from urllib.parse import unquote

from mcpgreen.catalog.skills import SCHEME, Skill, uri_of
from mcpgreen.catalog.snapshot import LIST_TTL_MS
from mcpgreen.errors import InvalidParams
from mcpgreen.features.call import Call, Route
from mcpgreen.protocol import pagination
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

DIRECTORY = "inode/directory"


def _find(call: Call) -> tuple[Skill | None, str]:
    """Return the skill in which the URI of the request may be, and the path in its folder."""
    uri = call.params.get("uri")
    if not isinstance(uri, str) or not uri:
        raise InvalidParams("uri must be a string that is not empty.")
    name, _, path = uri.removeprefix(SCHEME).partition("/")
    skill: Skill | None = call.services.catalog.snapshot("skills").by_name.get(name)
    path = unquote(path)
    return (skill if uri == uri_of(name, path) else None), path


def find_skill(call: Call) -> Skill:
    skill, _ = _find(call)
    if skill is None or skill.definition["uri"] != call.params["uri"]:
        raise InvalidParams(f"There is no skill at {call.params['uri']}; skills/list has the URIs of all skills.")
    return skill


def find_children(call: Call) -> list[Json]:
    """Return what is in the folder with this URI."""
    skill, folder = _find(call)
    if skill is None or folder not in skill.directories:
        raise InvalidParams(f"{call.params['uri']} is not a folder of a skill; the folder of a skill is {SCHEME}NAME.")
    below = [each for each in skill.directories if each and os.path.dirname(each) == folder]
    folders = ({"name": os.path.basename(each), "uri": uri_of(skill.name, each)} for each in below)
    files = (file.definition for path, file in skill.files.items() if os.path.dirname(path) == folder)
    return [*({**each, "mimeType": DIRECTORY} for each in folders), *files]


def read_directory(call: Call, children: list[Json]) -> Json:
    listing = jsontext.digest([call.params["uri"], *children])
    start = pagination.offset_in(call.params.get("cursor"), DIRECTORY, listing, len(children))
    stop = start + pagination.page_length(call.params.get("limit"), call.services.settings.page_size)
    more = {"nextCursor": pagination.encode(DIRECTORY, stop, listing, "")} if stop < len(children) else {}
    return {"resources": children[start:stop], "ttlMs": LIST_TTL_MS, **more}


GET = Route(find_skill, lambda call, skill: {"skill": skill.definition, "ttlMs": LIST_TTL_MS})
READ_DIRECTORY = Route(find_children, read_directory)
