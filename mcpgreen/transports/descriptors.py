"""Descriptors that never block, and that are left as they were found.

Non-blocking mode belongs to the open file description, which we may share with the program that started us. So a pipe
or terminal is opened again through /proc, which gives us a description of our own, and a socket gets a flag in each
call. Only where there is no /proc is the mode set, and restored at the end.
"""

from __future__ import annotations

import fcntl
import os
import stat


class Endpoint:
    """One end of the protocol: a descriptor that never blocks in `read` and `write`."""

    def __init__(self, fd: int, flags: int) -> None:
        self._inherited = fd
        self._restored_flags: int | None = None
        self._socket = None
        self.fd = fd
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            import socket

            self._socket = socket.socket(fileno=os.dup(fd))
            self._no_wait = socket.MSG_DONTWAIT
        elif not self.is_regular_file():  # a file never blocks, and a second description would have its own position
            try:
                self.fd = os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            except OSError:
                self._restored_flags = fcntl.fcntl(fd, fcntl.F_GETFL)
                fcntl.fcntl(fd, fcntl.F_SETFL, self._restored_flags | os.O_NONBLOCK)

    def read(self, size: int) -> bytes:
        """Return b"" at the end. Raises BlockingIOError when there is nothing yet."""
        if self._socket is not None:
            return self._socket.recv(size, self._no_wait)
        return os.read(self.fd, size)

    def write(self, data: bytes | memoryview) -> int:
        if self._socket is not None:
            return self._socket.send(data, self._no_wait)
        return os.write(self.fd, data)

    def is_regular_file(self) -> bool:
        return stat.S_ISREG(os.fstat(self.fd).st_mode)

    def is_pipe(self) -> bool:
        return stat.S_ISFIFO(os.fstat(self.fd).st_mode)

    def close(self) -> None:
        if self._restored_flags is not None:
            fcntl.fcntl(self._inherited, fcntl.F_SETFL, self._restored_flags)
        if self._socket is not None:
            self._socket.close()
        elif self.fd != self._inherited:
            os.close(self.fd)


def is_hung_up(fd: int) -> bool:
    """Whether the other end of this pipe is closed."""
    import select

    poller = select.poll()
    poller.register(fd, 0)
    return bool(poller.poll(0))
