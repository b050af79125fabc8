"""What attacks draw by lot. The same seed draws the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")

MIB = 1 << 20


class Luck:
    """A seeded source of sizes, choices and odd values. `scale`, up to 1, bounds how large things get."""

    def __init__(self, seed: int, *, scale: float = 1.0) -> None:
        self.seed = seed
        self.scale = scale
        self.rng = random.Random(seed)

    def size(self, low: int, high: int) -> int:
        """Small ones as often as large ones."""
        high = max(low + 1, int(high * self.scale))
        return int(low * (high / low) ** self.rng.random())

    def pick(self, choices: Sequence[T]) -> T:
        return self.rng.choice(choices)

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    def odd_value(self) -> Any:
        """Anything that JSON can say and nobody expects."""
        return self.pick(
            [
                None, True, False, 0, -1, 1.5, 1e308, -0.0, 2**53, 2**64, 10**300, "", "\0", "\ud800", "\u2028",
                "x" * 2000, [], {}, [[]], [None] * 50, {"": ""}, {"a": {"b": [1, {"c": None}]}}, "../../etc/passwd", "file:///",
                "%s%n", "__proto__", "$ref", "{{name}}", "${name}", "\r\n", "-1", "NaN", "🜨" * 100,
            ]
        )  # fmt: skip

    def costly_json(self, size: int) -> bytes:
        """A text that costs whoever reads it more than its bytes; not always valid."""
        kinds = [
            lambda: b"[" + b"[]," * (size // 3) + b"[]]",
            lambda: b"[" + b"{}," * (size // 3) + b"{}]",
            lambda: b"[" + b'"",' * (size // 3) + b'""]',
            lambda: b"[" + b"1," * (size // 2) + b"1]",
            lambda: b"{" + b",".join(b'"k%d":[]' % number for number in range(size // 12)) + b"}",
            lambda: b"[" + b"[]," * (size // 3),
            lambda: b'{"a":[' + b"1," * (size // 2),
            lambda: b'"' + b"x" * size,
            lambda: b"[" * min(size, 2 * MIB),
            lambda: b"[" * min(size // 2, MIB) + b"]" * min(size // 2, MIB),
            lambda: b'{"a":' * (size // 5) + b"1" + b"}" * (size // 5),
            lambda: b"[" + b"NaN," * (size // 4) + b"NaN]",
            lambda: b"[" + b"-Infinity," * (size // 10) + b"1]",
            lambda: b"[" + b"1e999," * (size // 6) + b"1]",
            lambda: b"1" * size,
            lambda: b"[" + b"9" * (size // 2) + b"." + b"9" * (size // 2) + b"]",
            lambda: b'["' + b"\\ud800" * (size // 6) + b'"]',
            lambda: b'["' + b"\\u0000" * (size // 6) + b'"]',
            lambda: b'["' + b'\\"' * (size // 2) + b'"]',
            lambda: b" " * size + b"{}",
        ]
        return self.pick(kinds)()
