"""Something between a client and a server that can fail: it passes bytes on, until its connections are cut."""

from __future__ import annotations

import contextlib
import re
import socket
import threading

CHUNK_BYTES = 65_536


class TcpProxy:
    """Passes on what comes to `url` to the same path of another one."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        place, slash, path = rest.partition("/")
        host, _, port = place.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}{slash}{path}"
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._passed = {True: bytearray(), False: bytearray()}  # by clients, by the server
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def sent(self, what: bytes) -> int:
        """How often clients have sent this."""
        return self._count(what, is_from_client=True)

    def received(self, what: bytes) -> int:
        """How often they were sent this."""
        return self._count(what, is_from_client=False)

    def last_header(self, name: str) -> str:
        """What clients have said last."""
        with self._lock:
            found = re.findall(rf"\r\n{name}: ([^\r]*)".encode(), bytes(self._passed[True]), re.IGNORECASE)
        return str(found[-1].decode("latin-1"))

    def cut(self) -> None:
        """All connections are lost, for both sides. New ones are served."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for sock in (each for pair in pairs for each in pair):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> TcpProxy:
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        self.cut()
        for thread in self._threads[1:]:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # it is closed
            server = socket.create_connection(self._target)
            with self._lock:
                self._pairs.append((client, server))
            pumps = [
                threading.Thread(target=self._pass_on, args=(client, server, True), daemon=True),
                threading.Thread(target=self._pass_on, args=(server, client, False), daemon=True),
            ]
            self._threads += pumps
            for pump in pumps:
                pump.start()

    def _count(self, what: bytes, *, is_from_client: bool) -> int:
        with self._lock:
            return bytes(self._passed[is_from_client]).lower().count(what.lower())

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_from_client: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                with self._lock:
                    self._passed[is_from_client] += data
                sink.sendall(data)
        for sock in (source, sink):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        # Each socket is read by one thread alone, which closes it.
        source.close()
