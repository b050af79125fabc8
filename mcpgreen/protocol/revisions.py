"""The five protocol revisions, each written as a difference from the previous one.

No other module names a revision by its date: handlers speak the newest dialect, and `revision_fields` asks a revision
which features it has. A sixth revision is one more `.next(...)` and a place at the end of `REVISIONS`.

Rules: the tables contain what the official schemas say, and two lifecycle methods of the handshake era that come from
JSON-RPC tooling (`shutdown` and `exit`). Revisions are compared by position, never as strings.
"""

from __future__ import annotations

from collections.abc import Set
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
# The member of params that names the target of a method; over HTTP, the header Mcp-Name repeats it.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
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
        Feature.UI_EXTENSION,
        Feature.URL_ELICITATION,
    },
)
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
    loses={Feature.ELICITATION_IDS},
    adds_requests={"server/discover", "subscriptions/listen"},
    drops_requests=LIFECYCLE | {"logging/setLevel", "resources/subscribe", "resources/unsubscribe"},
)

REVISIONS = (FIRST, SECOND, THIRD, FOURTH, FIFTH)
NEWEST = REVISIONS[-1]
BY_NAME = {revision.name: revision for revision in REVISIONS}
NEWEST_FIRST = [revision.name for revision in reversed(REVISIONS)]
LATEST_HANDSHAKE = [revision for revision in REVISIONS if revision.era == Era.HANDSHAKE][-1]
STATELESS = [revision for revision in REVISIONS if revision.era == Era.STATELESS]
STATELESS_NAMES = [revision.name for revision in STATELESS]
STATELESS_ONLY_REQUESTS = frozenset(
    request for revision in STATELESS for request in revision.requests - LATEST_HANDSHAKE.requests
)

# The capabilities that a server can offer, with their options.
CAPABILITY_DETAILS: dict[str, Json] = {
    "logging": {},
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
}
CAPABILITY_NEEDS = {"completions": Feature.COMPLETIONS_CAPABILITY}

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


def negotiated(requested: str) -> Revision:
    """Return the revision to answer `initialize` with: the requested one, else the latest of the handshake era."""
    revision = BY_NAME.get(requested)
    if revision is not None and revision.era == Era.HANDSHAKE:
        return revision
    return LATEST_HANDSHAKE


def offered_capabilities(*, is_minimal: bool) -> frozenset[str]:
    """Return the capabilities that this server offers: all, or logging alone in minimal mode."""
    return frozenset({"logging"} if is_minimal else CAPABILITY_DETAILS)


def capabilities(offered: Set[str], revision: Revision, *, has_ui: bool = False) -> Json:
    """Return the `capabilities` object for a client of this revision. `has_ui`: the client supports MCP Apps."""
    named: Json = {
        name: dict(details)
        for name, details in CAPABILITY_DETAILS.items()
        if name in offered and (name not in CAPABILITY_NEEDS or CAPABILITY_NEEDS[name] in revision.features)
    }
    if has_ui and "resources" in offered:
        named["extensions"] = {UI_EXTENSION: dict(UI_DETAILS)}
    return named


def supports_ui(client_capabilities: Json) -> bool:
    """Tell whether a client has declared that it shows MCP Apps."""
    extensions = client_capabilities.get("extensions")
    return type(extensions) is dict and extensions.get(UI_EXTENSION) is not None
