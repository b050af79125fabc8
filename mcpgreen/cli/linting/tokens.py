"""How many tokens a model reads for a tool: an estimate, for no two models count alike."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

CHARS_A_TOKEN = 4  # of English and of JSON; others are nearer to a token for each character
SHOWN_TO_MODELS = ("name", "description", "inputSchema")


def tokens_of(definition: Mapping[str, Any]) -> int:
    """Of what clients give to a model: neither title nor annotations, icons or outputSchema."""
    return tokens_in({key: definition[key] for key in SHOWN_TO_MODELS if key in definition})


def tokens_in(value: Any) -> int:
    # Not by ujson: it writes ASCII only, where each letter of another alphabet would count six times.
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    ascii_chars = sum(character.isascii() for character in text)
    return math.ceil(ascii_chars / CHARS_A_TOKEN) + len(text) - ascii_chars
