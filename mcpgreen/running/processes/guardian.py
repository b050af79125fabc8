"""The process that cleans up when the server is killed and cannot.

A `sh` of a few hundred kilobytes in a session of its own waits on a socket whose other end only the server holds. There
it learns which directory is the server's. An orderly server says goodbye; end of file without it means that the server
was killed: every process that carries one of the server's tags is killed, and the directory removed.

A socket, because a process that may look into the guardian could open a pipe anew by its entry in /proc, and say
goodbye in the server's place, or hold it open so that its end never comes. What a script can do is to kill or stop the
guardian; then another takes its place.

Chosen over a parent-death signal in each child: that would need a wrapper or `fork` for every call (0.4 ms and more)
and would reach the leader only. The guardian costs one spawn at the first call, and nothing per call.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from contextlib import suppress
from resource import struct_rusage
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.running.processes.spawning import reaper, spawn_helper
from mcpgreen.running.processes.stopping import CALL_DIGITS

# Not descriptor 0: a bash whose stdin is a socket takes itself for a remote shell, and reads its owner's .bashrc.
SOCKET_FD = 3
STARTS = 5
PERIOD_SECS = 60.0

SCRIPT = r"""
trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 ALRM
state=''
while IFS= read -r line <&3; do
  case $line in
    goodbye) exit 0 ;;
    'state '*) state=${line#state } ;;
  esac
done
tagged() {
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
  state_of='' group=0 session=0 threads=0
  stat=''
  # All of it: the name of a process may have a newline, and what then looks like the rest.
  { while IFS= read -r line || [ -n "$line" ]; do stat="$stat $line"; done <"/proc/$1/stat"; } 2>/dev/null
  set -- ${stat##*) }
  state_of=$1 group=$3 session=$4 threads=${18}
}
quiet=0
while [ "$quiet" -lt 5 ]; do
  quiet=$((quiet + 1))
  for pid in $(tagged "$1"); do
    look_at "$pid"
    # A process whose first thread has ended looks dead, and is not.
    if [ "$state_of" = Z ] && [ "${threads:-0}" -le 1 ]; then continue; fi
    # Another user can read a tag, and carry it, to keep us busy.
    if ! kill -s 0 "$pid" 2>/dev/null; then continue; fi
    quiet=0
    # Its group at once: one that forks again and again, and ends, is gone before its number could be killed. Not if it
    # is still in the session of the server, as the server itself is, and a script that is just being started: that is
    # the group of the program that started the server.
    if [ "${group:-0}" -gt 1 ] && [ "$session" != "$2" ]; then kill -s KILL -- "-$group" 2>/dev/null || :; fi
    kill -s KILL "$pid" 2>/dev/null || :
  done
  sleep 0.05 2>/dev/null || sleep 1
done
if [ -n "$state" ]; then rm -rf -- "$state"; fi
"""


class Guardian:
    """The guardian process. If it is killed, another one is started, a few times a minute."""

    def __init__(self, tag_prefix: str, known: set[bytes]) -> None:
        """`known` are the numbers of our children, as text; that of the guardian is always among them."""
        self._pattern = f"{tag_prefix}[0-9]{{{CALL_DIGITS}}}"
        self._known = known
        self._guarded = b""
        self._pid = 0  # while there is none
        self._socket_fd = -1
        self._timer: Any = None
        self._started_at: deque[float] = deque(maxlen=STARTS)

    def start(self) -> None:
        """Raises OSError when it cannot be started."""
        from _socket import socketpair  # `socket` would cost milliseconds, and we need two descriptors

        ours, theirs = (each.detach() for each in socketpair())
        try:
            os.set_blocking(ours, False)
            command = ["mcpgreen-guardian", "-c", SCRIPT, "mcpgreen-guardian", self._pattern, str(os.getsid(0))]
            env = {"PATH": os.environ.get("PATH", os.defpath)}
            self._pid = spawn_helper("/bin/sh", command, env, socket=theirs, as_fd=SOCKET_FD)
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        self._socket_fd = ours
        self._started_at.append(time.monotonic())
        self._known.add(b"%d" % self._pid)
        reaper().watch(self._pid, self._on_change)
        if self._guarded:
            self._tell(b"state " + self._guarded)

    def protect(self, directory: bytes) -> None:
        """Name the directory that is to be removed, instead of an earlier one."""
        self._guarded = directory
        self._tell(b"state " + directory)

    def dismiss(self, *, is_clean: bool) -> None:
        """Let the guardian go: the server ends by itself. If the server has not cleaned up, the guardian does."""
        self._stop_timer()
        if is_clean:
            self._tell(b"goodbye")
        self._forget()

    def _tell(self, line: bytes) -> None:
        if self._pid:
            with suppress(OSError):  # it has been killed; its successor will be told
                os.write(self._socket_fd, line + b"\n")

    def _on_change(self, status: int, usage: struct_rusage) -> None:
        """In the hub: the guardian has ended, or was stopped."""
        if os.WIFSTOPPED(status):
            os.kill(self._pid, signal.SIGKILL)  # one that is stopped guards nothing
            return
        self._forget()
        pause_secs = 0.0
        if len(self._started_at) == STARTS:
            pause_secs = max(0.0, self._started_at[0] + PERIOD_SECS - time.monotonic())
        journal.warning(
            "the process that would clean up after this server was killed; %s",
            f"another starts in {pause_secs:.0f} s" if pause_secs else "another takes its place",
        )
        if pause_secs:
            self._start_in(pause_secs)
        else:
            self._start_again()

    def _start_again(self) -> None:
        self._stop_timer()
        try:
            self.start()
        except OSError as error:
            journal.warning(
                "nothing would clean up after this server if it were killed: %s; tried again in a minute",
                error.strerror,
            )
            self._start_in(PERIOD_SECS)

    def _start_in(self, secs: float) -> None:
        self._timer = gevent.get_hub().loop.timer(secs, ref=False)
        self._timer.start(self._start_again)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.close()
            self._timer = None

    def _forget(self) -> None:
        """Stop watching it."""
        if self._pid:
            reaper().forget(self._pid)
            os.close(self._socket_fd)
            self._known.discard(b"%d" % self._pid)
            self._pid = 0
