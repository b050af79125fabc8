"""`skills/get` and `resources/directory/read`: the entry of one skill, and what a folder of a skill has in it.

`skills/list` is served as any list, and the files by `resources/read`: they are listed resources.
"""

from __future__ import annotations

import os

from mcpgreen.catalog.skills import SCHEME, Skill, definition_of, uri_of
from mcpgreen.catalog.snapshot import LIST_TTL_MS
from mcpgreen.errors import InvalidParams
from mcpgreen.features.call import Call, Route
from mcpgreen.protocol import pagination
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

DIRECTORY = "inode/directory"


def find_skill(call: Call) -> Skill:
    uri = _uri_of(call)
    for skill in call.services.catalog.snapshot("skills").items:
        if skill.uri == uri:
            found: Skill = skill
            return found
    raise InvalidParams(f"There is no skill at {uri}; skills/list has the URIs of all skills.")


def find_children(call: Call) -> list[Json]:
    """Return what is in the folder with this URI."""
    uri = _uri_of(call)
    skill: Skill | None = call.services.catalog.snapshot("skills").by_name.get(uri.removeprefix(SCHEME).split("/")[0])
    uris = {folder: uri_of(skill.name, folder) for folder in skill.directories} if skill else {}
    folder = next((each for each in uris if uris[each] == uri), None)
    if skill is None or folder is None:
        raise InvalidParams(f"{uri} is not a folder of a skill; the folder of a skill is {SCHEME}NAME.")
    below = [each for each in uris if each and os.path.dirname(each) == folder]
    folders = [{"name": os.path.basename(each), "uri": uris[each], "mimeType": DIRECTORY} for each in below]
    files = [definition_of(skill, file) for file in skill.files if os.path.dirname(file.path) == folder]
    return [*folders, *files]


def read_directory(call: Call, children: list[Json]) -> Json:
    listing = jsontext.digest([call.params["uri"], *children])
    start = pagination.offset_in(call.params.get("cursor"), DIRECTORY, listing, len(children))
    stop = start + pagination.page_length(call.params.get("limit"), call.services.settings.page_size)
    result: Json = {"resources": children[start:stop], "ttlMs": LIST_TTL_MS}
    if stop < len(children):
        generated_at = call.services.catalog.snapshot("skills").generated_at
        result["nextCursor"] = pagination.encode(DIRECTORY, stop, listing, generated_at)
    return result


def _uri_of(call: Call) -> str:
    uri = call.params.get("uri")
    if not isinstance(uri, str) or not uri:
        raise InvalidParams("uri must be a string that is not empty.")
    return uri


GET = Route(find_skill, lambda call, skill: {"skill": skill.definition, "ttlMs": LIST_TTL_MS})
READ_DIRECTORY = Route(find_children, read_directory)
