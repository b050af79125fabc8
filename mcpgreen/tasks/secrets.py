"""What must not lie on disk in the clear: secrets in arguments, and the answers of users.

Rule: `cryptography` is imported when something is sealed for the first time, and not before. It is imported in the
thread that writes to the disk, as it takes tens of milliseconds.
"""

from __future__ import annotations

import base64
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from mcpgreen.files.regular_files import existing_file, replacing
from mcpgreen.logs.secrets import Secrets
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

KEY_BYTES = 32


def shown_arguments(arguments: object, secrets: Secrets) -> Json:
    """Return the arguments as people may read them: without secrets, and long ones cut. `secrets` knows the names that
    the tool's schema declares as secret."""
    shown = secrets.with_values_in({"arguments": arguments}).copy({"arguments": arguments})
    arguments = shown.get("arguments") if isinstance(shown, dict) else None
    return arguments if isinstance(arguments, dict) else {}


class Vault:
    """Encrypts with a key made of the setting `state_key`, or with a random one that is kept in a file."""

    def __init__(self, key_path: str, state_key: str) -> None:
        self._key_path = key_path
        self._state_key = state_key
        self._fernet: Fernet | None = None

    def seal(self, plain: bytes) -> bytes:
        """Return ASCII. Raises OSError if there is no usable key."""
        return self._cipher().encrypt(plain)

    def unseal(self, sealed: bytes) -> bytes | None:
        """Undo `seal`; None if it was sealed with another key, or changed since."""
        from cryptography.fernet import InvalidToken

        with suppress(InvalidToken):
            return self._cipher().decrypt(sealed)
        return None

    def _cipher(self) -> Fernet:
        if self._fernet is None:
            from cryptography.fernet import Fernet

            self._fernet = Fernet(base64.urlsafe_b64encode(self._key()))
        return self._fernet

    def _key(self) -> bytes:
        if self._state_key:
            from hashlib import sha256

            return sha256(b"mcpgreen tasks\0" + self._state_key.encode("utf-8")).digest()
        if not os.path.lexists(self._key_path):
            with replacing(self._key_path) as file:
                file.write(os.urandom(KEY_BYTES))
        with open(existing_file(self._key_path), "rb") as file:
            key = file.read(KEY_BYTES + 1)
        if len(key) != KEY_BYTES:
            raise OSError(0, "this is not a key; remove it, and a new one is made", self._key_path)
        return key
