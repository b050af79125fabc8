"""`Vault`: what must not lie on disk in the clear is encrypted there: the params of calls, and the answers of users.

Rule: `cryptography` is imported when something is sealed for the first time, and not before. It is imported in the
thread that writes to the disk, as it takes tens of milliseconds.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from functools import cached_property
from typing import TYPE_CHECKING

from mcpgreen.files.regular_files import existing_file, replacing

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


class Vault:
    """Encrypts with a key made of the setting `state_key`, or with a random one that is kept in a file."""

    def __init__(self, key_path: str, state_key: str) -> None:
        self._key_path = key_path
        self._state_key = state_key

    def seal(self, plain: bytes) -> bytes:
        """Return ASCII. Raises OSError if there is no usable key."""
        return self._fernet.encrypt(plain)

    def unseal(self, sealed: bytes) -> bytes | None:
        """Undo `seal`; None if it was sealed with another key, or changed since."""
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(sealed)
        except InvalidToken:
            return None

    @cached_property
    def _fernet(self) -> Fernet:
        from cryptography.fernet import Fernet

        if self._state_key:
            from hashlib import sha256

            return Fernet(urlsafe_b64encode(sha256(b"mcpgreen tasks\0" + self._state_key.encode("utf-8")).digest()))
        if not os.path.lexists(self._key_path):
            with replacing(self._key_path) as file:
                file.write(Fernet.generate_key())
        try:
            with open(existing_file(self._key_path), "rb") as file:
                return Fernet(file.read())
        except ValueError:
            raise OSError(0, "this is not a key; remove it, and a new one is made", self._key_path) from None
