"""`skills/get` and `resources/directory/read`: the entry of one skill, and what a folder of a skill has in it.

`skills/list` is served as any list, and the files by `resources/read`: they are listed resources.
"""

from __future__ import annotations

from mcpgreen.catalog.skills import DIRECTORY, SCHEME, Skill
from mcpgreen.catalog.snapshot import LIST_TTL_MS
from mcpgreen.errors import InvalidParams
from mcpgreen.features.call import Call, Route
from mcpgreen.protocol import pagination
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json


def _skill_around(call: Call) -> Skill | None:
    """Return the skill in which the URI of the request may be."""
    uri = call.params.get("uri")
    if not isinstance(uri, str) or not uri:
        raise InvalidParams("uri must be a string that is not empty.")
    name = uri.removeprefix(SCHEME).partition("/")[0]
    skill: Skill | None = call.services.catalog.snapshot("skills").by_name.get(name)
    return skill


def find_skill(call: Call) -> Skill:
    skill = _skill_around(call)
    if skill is None or skill.definition["uri"] != call.params["uri"]:
        raise InvalidParams(f"There is no skill at {call.params['uri']}; skills/list has the URIs of all skills.")
    return skill


def find_children(call: Call) -> list[Json]:
    """Return what is in the folder with this URI."""
    skill, uri = _skill_around(call), call.params["uri"]
    if skill is None or uri not in skill.folders:
        raise InvalidParams(f"{uri} is not a folder of a skill; the folder of a skill is {SCHEME}NAME.")
    return skill.folders[uri]


def read_directory(call: Call, children: list[Json]) -> Json:
    listing = jsontext.digest([call.params["uri"], *children])
    start = pagination.offset_in(call.params.get("cursor"), DIRECTORY, listing, len(children))
    stop = start + pagination.page_length(call.params.get("limit"), call.services.settings.page_size)
    more = {"nextCursor": pagination.encode(DIRECTORY, stop, listing, "")} if stop < len(children) else {}
    return {"resources": children[start:stop], "ttlMs": LIST_TTL_MS, **more}


GET = Route(find_skill, lambda call, skill: {"skill": skill.definition, "ttlMs": LIST_TTL_MS})
READ_DIRECTORY = Route(find_children, read_directory)
