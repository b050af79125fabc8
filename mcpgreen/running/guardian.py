"""The process that cleans up when the server is killed and cannot.

A `sh` of a few hundred kilobytes in a session of its own waits on a pipe whose other end only the server holds. An
orderly server says goodbye; end of file without it means that the server was killed: every process that carries one
of the server's marks is killed, and the state directory removed unless it is to be kept.

Chosen over a parent-death signal in each child: that would need a wrapper or `fork` for every call (0.4 ms and more)
and would reach the leader only. The guardian costs one spawn at the first call, and nothing per call.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from mcpgreen.running.marks import CALL_DIGITS

SCRIPT = r"""
trap '' HUP INT TERM
if read -r goodbye; then exit 0; fi
marked() {
  if [ -r /proc/self/limits ]; then
    {
      grep -lsE "^Max realtime timeout +$1 " /proc/[0-9]*/limits
      grep -lsE "MCPGREEN_CALL=$1" /proc/[0-9]*/environ
    } | tr -dc '0-9\n' | sort -u
  else
    ps axeww -o pid= -o command= | grep -E "MCPGREEN_CALL=$1" | grep -v 'grep -E' | awk '{print $1}'
  fi
}
look_at() {
  state='' group=0
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return
  set -- ${stat##*) }
  state=$1 group=$3
}
quiet=0
while [ "$quiet" -lt 5 ]; do
  quiet=$((quiet + 1))
  for pid in $(marked "$1"); do
    look_at "$pid"
    if [ "$state" = Z ]; then continue; fi
    quiet=0
    # Its group at once: who forks again and again, and ends, is gone before a number of his could be killed.
    if [ "$group" -gt 1 ]; then kill -KILL -- "-$group" 2>/dev/null || :; fi
    kill -KILL "$pid" 2>/dev/null || :
  done
  sleep 0.05 2>/dev/null || sleep 1
done
if [ -n "$2" ]; then rm -rf -- "$2"; fi
"""


class Guardian:
    """Watches over one server. Start it before the first script runs."""

    __slots__ = ("_pipe", "pid")

    def __init__(self, mark_prefix: str, state_dir: str | None) -> None:
        pattern = f"{mark_prefix}[0-9]{{{CALL_DIGITS}}}"
        read_end, self._pipe = os.pipe()
        try:
            self.pid = os.posix_spawn(
                "/bin/sh",
                ["mcpgreen-guardian", "-c", SCRIPT, "mcpgreen-guardian", pattern, state_dir or ""],
                {"PATH": os.environ.get("PATH", os.defpath)},
                # Not one descriptor of the server: a client that waits for the end of our output must see it.
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, read_end, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE],
            )
        finally:
            os.close(read_end)

    def dismiss(self) -> None:
        """The server ends by itself and has cleaned up."""
        with suppress(OSError):  # somebody killed the guardian; nothing is left for it to do
            os.write(self._pipe, b"goodbye\n")
        os.close(self._pipe)
