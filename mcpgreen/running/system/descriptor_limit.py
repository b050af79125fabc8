"""How many descriptors this process may have, and what fits into that: the number of a pipe, scripts at a time,
connections.

Most systems allow a thousand and more. With `ulimit -n 64` and the like the server still serves, fewer scripts at once.
"""

from __future__ import annotations

import resource

CONTROL_FD = 97  # above what scripts use by hand (3 to 9) and what shells take by themselves (10 and up, 63 and down)
HIGHEST_BY_HAND = 9
BELOW_THE_LIMIT = 4
# Of the server itself, with the descriptors that it needs for a moment to read the project or to start a script.
OWN_DESCRIPTORS = 36
DESCRIPTORS_OF_A_SCRIPT = 3
PASSING_CONNECTIONS = 32  # that have just come, or are about to go
ROOMY = 256


def descriptor_limit() -> int:
    """Every descriptor of this process, and of its children, has a lower number. Negative if there is no limit."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def fitting_descriptor(limit: int) -> int:
    """The number of the control pipe in a script: the usual one, or one below the limit."""
    if limit < 0 or limit > CONTROL_FD:
        return CONTROL_FD
    return max(HIGHEST_BY_HAND + 1, limit - BELOW_THE_LIMIT)


def has_room_for_helpers() -> bool:
    """Tell whether there are descriptors for processes that are started ahead of the scripts that need them."""
    return descriptor_limit() < 0 or descriptor_limit() >= ROOMY


def scripts_that_fit(wanted: int, limit: int) -> int:
    """How many scripts can run at a time if so many are wanted; at least one is tried."""
    if limit < 0:
        return wanted
    return max(1, min(wanted, (limit - OWN_DESCRIPTORS) // DESCRIPTORS_OF_A_SCRIPT))


def connections_that_fit(wanted: int, limit: int, *, scripts: int) -> int:
    """How many connections a server can have beside so many scripts; at least one is tried."""
    if limit < 0:
        return wanted
    room = limit - OWN_DESCRIPTORS - scripts * DESCRIPTORS_OF_A_SCRIPT - PASSING_CONNECTIONS
    return max(1, min(wanted, room))
