"""Large contents in small pieces, with a turn for everybody else in between.

To read, decode or encode ten megabytes takes up to a second, and meanwhile the server would hear nobody. Only for
greenlets that may wait: not in the hub, and not between a check and its effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import gevent

# Not 0: fifty such sleeps may follow each other before the hub looks whether anybody has written to us.
A_MOMENT_SECS = 1e-6
STRETCH_BYTES = 131_072  # at worst, when each byte has to be replaced and escaped, it takes 10 ms


def in_turns(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes; whoever consumes them does so in stretches."""
    done_bytes = 0
    for chunk in chunks:
        for start in range(0, len(chunk), STRETCH_BYTES):
            if done_bytes >= STRETCH_BYTES:
                let_others()
                done_bytes = 0
            piece = chunk if len(chunk) <= STRETCH_BYTES else chunk[start : start + STRETCH_BYTES]
            done_bytes += len(piece)
            yield piece


def let_others() -> None:
    """Go on when all who are ready have had their turn."""
    gevent.sleep(A_MOMENT_SECS)
