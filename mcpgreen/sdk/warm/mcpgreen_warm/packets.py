"""Packets with descriptors, as the server sends them."""

from __future__ import annotations

import _socket
import sys

PACKET_BYTES = 1 << 16
ANCILLARY_BYTES = 256


def received(socket: _socket.socket) -> tuple[bytes, list[int]]:
    """A packet and the descriptors that came with it; empty at the end."""
    packet, parts, _, _ = socket.recvmsg(PACKET_BYTES, ANCILLARY_BYTES, _socket.MSG_CMSG_CLOEXEC)
    data = b"".join(part for _, kind, part in parts if kind == _socket.SCM_RIGHTS)
    return packet, [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4)]
