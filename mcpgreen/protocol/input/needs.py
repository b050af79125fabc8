"""What a description may say that a tool needs: a capability that a client declares, or a part of one."""

from __future__ import annotations

from mcpgreen.protocol.revisions import Feature

NEEDS = ("elicitation", "elicitation.form", "elicitation.url", "sampling", "sampling.tools", "roots")
# What a revision must have for a client to declare it. Needs that are not named here are in all of them.
FEATURE_OF_NEED = {
    "elicitation": Feature.ELICITATION,
    "elicitation.form": Feature.ELICITATION,
    "elicitation.url": Feature.URL_ELICITATION,
    "sampling.tools": Feature.SAMPLING_TOOLS,
}
