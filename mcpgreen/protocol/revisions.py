"""The five protocol revisions, each written as a difference to the one before.

Nothing else in the package knows a revision by its date: handlers speak the newest dialect, `revision_fields` asks a
revision which features it has. A sixth revision is one more `.next(...)` and a place at the end of `REVISIONS`.

Rules: only what the official schemas say goes into the tables (and the two lifecycle methods of the handshake era that
come from JSON-RPC tooling, `shutdown` and `exit`); revisions are compared by position, never as strings.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set
    from typing import Any


class Era:
    """How a client introduces itself: once per connection, or anew in each request."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"


class Feature:
    """Differences that somebody asks about. Plain strings: an enum would cost the first answer 7 ms."""

    AUDIO = "audio content"
    ANY_OUTPUT_SCHEMA = "output schemas with any root"
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
    PRIMED_STREAMS = "an empty first event on streams over HTTP, to go on from"
    PROGRESS_MESSAGE = "message in progress notifications"
    RESERVED_ERROR_CODES = "reserved error codes"
    RESOURCE_LINKS = "resource links in content"
    RESULT_TYPE = "resultType and serverInfo in each result"
    SAMPLING_TOOLS = "tools, and several blocks in one message, in sampling"
    STRUCTURED_CONTENT = "structured content"
    TITLES = "titles"
    TOOL_ANNOTATIONS = "tool annotations"
    URL_ELICITATION = "URL elicitation, and modes"
    UI_EXTENSION = "extension for user interfaces"
    VERSION_HEADER = "the revision as a header of each request over HTTP"


class Revision:
    """One dated revision: which requests exist in it and which features its messages have."""

    __slots__ = ("era", "features", "name", "requests")

    def __init__(self, name: str, *, era: str, requests: Set[str], features: Set[str]) -> None:
        self.name = name
        self.era = era
        self.requests = frozenset(requests)
        self.features = frozenset(features)

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
        return Revision(
            name,
            era=era or self.era,
            requests=(self.requests | adds_requests) - drops_requests,
            features=(self.features | gains) - loses,
        )

    def has(self, feature: str) -> bool:
        return feature in self.features

    def __repr__(self) -> str:
        return f"<Revision {self.name}>"


# Which capability has to be offered for a method to exist. Methods that are not named here need none; these are in the
# first revision already.
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
LIFECYCLE = {"initialize", "ping", "shutdown", "exit"}

FIRST = Revision("2024-11-05", era=Era.HANDSHAKE, requests=LIFECYCLE | CAPABILITY_OF.keys(), features=frozenset())
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
        Feature.VERSION_HEADER,
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

# What can be offered, and what an offered capability says of itself.
CAPABILITY_DETAILS: dict[str, dict[str, Any]] = {
    "logging": {},
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
}
CAPABILITY_NEEDS = {"completions": Feature.COMPLETIONS_CAPABILITY}

# MCP Apps, which a client shows. They are resources, so there are none where resources are not offered.
UI_EXTENSION = "io.modelcontextprotocol/ui"
UI_DETAILS: dict[str, Any] = {"mimeTypes": ["text/html;profile=mcp-app"]}


def negotiated(requested: str) -> Revision:
    """The handshake revision to answer with: the requested one, else the latest of that era."""
    revision = BY_NAME.get(requested)
    if revision is not None and revision.era == Era.HANDSHAKE:
        return revision
    return LATEST_HANDSHAKE


def offered_capabilities(*, is_minimal: bool) -> frozenset[str]:
    """What this server offers. Forced minimal mode masks everything but logging."""
    return frozenset({"logging"} if is_minimal else CAPABILITY_DETAILS)


def capabilities(offered: Set[str], revision: Revision, *, has_ui: bool = False) -> dict[str, Any]:
    """The `capabilities` object for what this server offers, as far as the revision has a word for it. `has_ui`: to a
    client that may hear of MCP Apps."""
    named: dict[str, Any] = {
        name: dict(details)
        for name, details in CAPABILITY_DETAILS.items()
        if name in offered and (name not in CAPABILITY_NEEDS or revision.has(CAPABILITY_NEEDS[name]))
    }
    if has_ui and "resources" in offered:
        named["extensions"] = {UI_EXTENSION: dict(UI_DETAILS)}
    return named


def supports_ui(client_capabilities: dict[str, Any]) -> bool:
    """Whether a client says that it can show MCP Apps."""
    extensions = client_capabilities.get("extensions")
    return type(extensions) is dict and extensions.get(UI_EXTENSION) is not None
