"""`echo://payload`: return the payload, percent-decoded. For trying things out."""

from __future__ import annotations

from typing import BinaryIO
from urllib.parse import unquote_to_bytes

from mcpgreen.providers.exits import refusal
from mcpgreen.settings.settings import Settings

SCHEME = "echo://"


def provide(uri: str, settings: Settings, out: BinaryIO) -> None:
    if not uri.startswith(SCHEME):
        raise refusal(f"The URI must begin with {SCHEME}.")
    out.write(unquote_to_bytes(uri.removeprefix(SCHEME)))
