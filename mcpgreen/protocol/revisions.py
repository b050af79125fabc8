"""The five protocol revisions, each written as a difference from the previous one.

No other module names a revision by its date: handlers speak the newest dialect, and `revision_fields` asks a revision
which features it has. A sixth revision is one more `.next(...)` and a place at the end of `REVISIONS`.

Rules: the tables contain what the official schemas say, and two lifecycle methods of the handshake era that come from
JSON-RPC tooling (`shutdown` and `exit`). Revisions are compared by position, never as strings.
"""

from __future__ import annotations

from collections.abc import Set
from functools import cache
from typing import NamedTuple

from mcpgreen.text.json_types import Json


class Era:
    """How a client introduces itself: once per connection, or in each request."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"


class Feature:
    """The differences between revisions, by which other modules ask for them."""

    AUDIO = "audio content"
    ANY_OUTPUT_SCHEMA = "output schemas of any type"
    ANY_STRUCTURED_VALUE = "structured content of any JSON type"
    BATCHES = "batches"
    BOOLEAN_PROPERTY_SCHEMAS = "boolean property schemas"
    CACHE_HINTS = "ttlMs and cacheScope"
    COMPLETIONS_CAPABILITY = "completions capability"
    DEFINITION_META = "_meta on definitions and content blocks"
    ELICITATION = "elicitation"
    ELICITATION_IDS = "ids of URL elicitations, and a notification when one is complete"
    ICONS = "icons"
    LAST_MODIFIED = "lastModified annotation"
    PRIMED_STREAMS = "an empty first event on HTTP streams, so that clients can resume them"
    PROGRESS_MESSAGE = "message in progress notifications"
    RESERVED_ERROR_CODES = "reserved error codes"
    RESOURCE_LINKS = "resource links in content"
    RESULT_TYPE = "resultType and serverInfo in each result"
    SAMPLING_TOOLS = "sampling with tools, and with several blocks in one message"
    STRUCTURED_CONTENT = "structured content"
    TASKS = "tasks that the client asks for"
    TITLES = "titles"
    TOOL_ANNOTATIONS = "tool annotations"
    URL_ELICITATION = "URL elicitation, and elicitation modes"
    UI_EXTENSION = "extension for user interfaces"


class Revision(NamedTuple):
    """One dated revision: which requests exist in it and which features its messages have."""

    name: str
    era: str
    requests: frozenset[str]
    features: frozenset[str]

    def next(
        self,
        name: str,
        *,
        era: str | None = None,
        gains: Set[str] = frozenset(),
        loses: Set[str] = frozenset(),
        adds_requests: Set[str] = frozenset(),
        drops_requests: Set[str] = frozenset(),
    ) -> Revision:
        """Make the revision that follows this one."""
        requests = (self.requests | adds_requests) - drops_requests
        return Revision(name, era or self.era, requests, (self.features | gains) - loses)

    def __repr__(self) -> str:
        return f"<Revision {self.name}>"


# The capability that a method needs. Other methods need none. The first revision has all of these methods; a later
# one gets its line below the revision that adds it.
CAPABILITY_OF = {
    "logging/setLevel": "logging",
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "resources/subscribe": "resources",
    "resources/unsubscribe": "resources",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "completion/complete": "completions",
}
# The methods of extensions, by the extension that a server must offer. They belong to the revisions that have it.
SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
EXTENSION_OF = dict.fromkeys(("skills/list", "skills/get", "resources/directory/read"), SKILLS_EXTENSION)
# The member of params that names the target of a method; over HTTP, the header Mcp-Name repeats it.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
NAMED_BY |= dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")
LIFECYCLE = {"initialize", "ping", "shutdown", "exit"}

FIRST = Revision("2024-11-05", Era.HANDSHAKE, frozenset(LIFECYCLE | CAPABILITY_OF.keys()), frozenset())
SECOND = FIRST.next(
    "2025-03-26",
    gains={
        Feature.AUDIO,
        Feature.BATCHES,
        Feature.COMPLETIONS_CAPABILITY,
        Feature.PROGRESS_MESSAGE,
        Feature.TOOL_ANNOTATIONS,
    },
)
THIRD = SECOND.next(
    "2025-06-18",
    gains={
        Feature.DEFINITION_META,
        Feature.ELICITATION,
        Feature.LAST_MODIFIED,
        Feature.RESOURCE_LINKS,
        Feature.STRUCTURED_CONTENT,
        Feature.TITLES,
    },
    loses={Feature.BATCHES},
)
FOURTH = THIRD.next(
    "2025-11-25",
    gains={
        Feature.ELICITATION_IDS,
        Feature.ICONS,
        Feature.PRIMED_STREAMS,
        Feature.SAMPLING_TOOLS,
        Feature.TASKS,
        Feature.UI_EXTENSION,
        Feature.URL_ELICITATION,
    },
    adds_requests={"tasks/get", "tasks/result", "tasks/list", "tasks/cancel"},
)
CAPABILITY_OF |= dict.fromkeys(FOURTH.requests - THIRD.requests | {"tasks/update"}, "tasks") | EXTENSION_OF
FIFTH = FOURTH.next(
    "2026-07-28",
    era=Era.STATELESS,
    gains={
        Feature.ANY_OUTPUT_SCHEMA,
        Feature.ANY_STRUCTURED_VALUE,
        Feature.BOOLEAN_PROPERTY_SCHEMAS,
        Feature.CACHE_HINTS,
        Feature.RESERVED_ERROR_CODES,
        Feature.RESULT_TYPE,
    },
    loses={Feature.ELICITATION_IDS, Feature.TASKS},
    adds_requests={"server/discover", "subscriptions/listen", "tasks/update", *EXTENSION_OF},
    drops_requests=LIFECYCLE
    | {"logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/result", "tasks/list"},
)

REVISIONS = (FIRST, SECOND, THIRD, FOURTH, FIFTH)
NEWEST = REVISIONS[-1]
BY_NAME = {revision.name: revision for revision in REVISIONS}
NEWEST_FIRST = [revision.name for revision in reversed(REVISIONS)]
LATEST_HANDSHAKE = [revision for revision in REVISIONS if revision.era == Era.HANDSHAKE][-1]
STATELESS = [revision for revision in REVISIONS if revision.era == Era.STATELESS]
STATELESS_NAMES = [revision.name for revision in STATELESS]
STATELESS_ONLY_REQUESTS = frozenset(
    request for revision in STATELESS for request in revision.requests - LATEST_HANDSHAKE.requests - {"tasks/update"}
)  # without a complete envelope, the error for these says what is missing

# The capabilities that a server can offer, with their options.
CAPABILITY_DETAILS: dict[str, Json] = {
    "logging": {},
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
}
CAPABILITY_NEEDS = {"completions": Feature.COMPLETIONS_CAPABILITY, "tasks": Feature.TASKS}

# The capabilities of a client that a description may name in `needs`, with the feature that a revision must have for a
# client to declare it. None: every revision has it.
CLIENT_NEEDS: dict[str, str | None] = {
    "elicitation": Feature.ELICITATION,
    "elicitation.form": Feature.ELICITATION,
    "elicitation.url": Feature.URL_ELICITATION,
    "sampling": None,
    "sampling.tools": Feature.SAMPLING_TOOLS,
    "roots": None,
}

# The extension for MCP Apps. They are resources, so a server without resources does not offer it.
UI_EXTENSION = "io.modelcontextprotocol/ui"
UI_DETAILS: Json = {"mimeTypes": ["text/html;profile=mcp-app"]}
# The extension for tasks, which the stateless era has in place of the capability.
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
TASKS_NEEDED: Json = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
# The extensions of the stateless era, by what a server has to offer.
EXTENSIONS: dict[str, tuple[str, Json]] = {"tasks": (TASKS_EXTENSION, {})}
EXTENSIONS[SKILLS_EXTENSION] = SKILLS_EXTENSION, {"directoryRead": True}


def negotiated(requested: str) -> Revision:
    """Return the revision to answer `initialize` with: the requested one, else the latest of the handshake era."""
    revision = BY_NAME.get(requested)
    if revision is not None and revision.era == Era.HANDSHAKE:
        return revision
    return LATEST_HANDSHAKE


@cache
def offered_capabilities(*, is_minimal: bool, has_tasks: bool = True, has_skills: bool = False) -> frozenset[str]:
    """Return the capabilities and extensions that this server offers: all, or logging alone in minimal mode. Skills are
    offered by a project that has a folder for them."""
    if is_minimal:
        return frozenset({"logging"})
    missing = set() if has_tasks else {"tasks"}
    return frozenset({*CAPABILITY_DETAILS, SKILLS_EXTENSION} if has_skills else CAPABILITY_DETAILS) - missing


def capabilities(offered: Set[str], revision: Revision, *, has_ui: bool = False) -> Json:
    """Return the `capabilities` object for a client of this revision. `has_ui`: the client supports MCP Apps."""
    named: Json = {
        name: dict(details)
        for name, details in CAPABILITY_DETAILS.items()
        if name in offered and (name not in CAPABILITY_NEEDS or CAPABILITY_NEEDS[name] in revision.features)
    }
    extensions: Json = {UI_EXTENSION: dict(UI_DETAILS)} if has_ui and "resources" in offered else {}
    for capability, (extension, details) in EXTENSIONS.items() if revision.era == Era.STATELESS else ():
        if capability in offered:
            extensions[extension] = dict(details)
    return {**named, "extensions": extensions} if extensions else named


def supports(extension: str, client_capabilities: Json) -> bool:
    """Tell whether a client has declared an extension."""
    extensions = client_capabilities.get("extensions")
    return type(extensions) is dict and extensions.get(extension) is not None
