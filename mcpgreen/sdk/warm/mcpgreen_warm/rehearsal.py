"""What a spare does, from its first instruction to the end of a script, done ahead in the helper itself.

The interpreter learns by it how its instructions are used and where attributes are found, and the linker which
functions are called. Whoever is forked later need not learn it again: each thing that it learns is a page that it
changes, and those are most of what a fork takes.

Rule: nothing is different afterwards.
"""

from __future__ import annotations

import _socket
import os
import sys
import time
from atexit import _ncallbacks as count_of_exit_functions
from gc import get_objects
from struct import pack

from mcpgreen_warm.preparing.preloading import Kept
from mcpgreen_warm.preparing.reading import UNFIT
from mcpgreen_warm.script import Script, flush, is_anything_left
from mcpgreen_warm.spare import LOOK_SECS, Spare
from mcpgreen_warm.surroundings import descriptors, signature_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpgreen_warm.helper import Helper

TIMES = 20  # an instruction is learnt within less
VARIABLES = b"\0".join((b'MCP_TOOL_ARGS_JSON={"name":"value"}', *(b"MCP_%d=." % number for number in range(9))))


def rehearse(helper: Helper) -> None:
    """With the SDK, if that is there."""
    path = os.fsencode(__file__)
    signature = signature_of(os.stat(path))
    kept = Kept(__file__, signature, _rehearse_script.__code__, imports_sdk="mcp_tool" in sys.modules)
    kept.is_fit = True
    helper.kept[path] = kept
    look_at, helper.look_at = helper.look_at, time.monotonic() + LOOK_SECS
    control = os.dup(0)
    head = b"%d %d . %s" % (helper.tag, control, signature)
    packet = b"\0\0".join((head, path, b"", VARIABLES))
    try:
        for _ in range(TIMES):
            _rehearse_once(helper, packet)
            _rehearse_patterns()
            is_anything_left(get_objects())
    except UNFIT:
        pass  # something has just changed, or has an unlucky name: then forks learn for themselves
    finally:
        os.close(control)
        del helper.kept[path]
        helper.look_at = look_at


def rehearse_alone(helper: Helper) -> None:
    """In a spare that has time for it: have pages of its own for what will be changed."""
    helper.surroundings.have_changed()
    for name in helper.used:
        __import__(name)
    _rehearse_script()
    _rehearse_patterns()
    flush()
    is_anything_left(get_objects())
    descriptors()


def _rehearse_script() -> None:
    """As a script that has an argument and prints something."""
    import os
    import sys

    if "mcp_tool" in sys.modules:
        import mcp_tool

        try:
            if mcp_tool.arg("name"):
                mcp_tool.require("name")
            mcp_tool.emit_text("")
            if "mcp_tool_functions" in sys.modules:
                sys.modules["mcp_tool_functions"]._rehearse()
        except Exception:
            pass  # the usual arguments are no good
        mcp_tool._documents.clear()
    if "json" in sys.modules:
        import json

        json.loads(json.dumps({"name": ["value", 1.5, True, None]}, separators=(",", ":")))
    os.environ.get("MCP_TOOL_ARGS_JSON")
    sys.stdout.write("")


def _rehearse_patterns() -> None:
    patterns = sys.modules.get("re._compiler") or sys.modules.get("sre_compile")
    if patterns is not None:
        patterns.compile("(a|b)[^c-e]*x+?$")


def _rehearse_once(helper: Helper, packet: bytes) -> None:
    modules = dict(sys.modules)
    words, original = sys.argv[:], sys.orig_argv[:] if sys.version_info >= (3, 10) else []
    directory = sys.path[0]
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    spare = Spare(helper, theirs, is_rehearsal=True)
    helper.script = Script(helper.harmless, descriptors=sys.maxsize, leave=_stay)
    try:
        ours.sendmsg([packet], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, pack("3i", 1, 2, 0))])
        script = spare.script([])
        exec(script.code, script.names)
        if count_of_exit_functions():
            script.is_over()  # they are for the scripts, and not for us
        else:
            script.end()
    finally:
        ours.close()
        sys.modules.update(modules)
        helper.environment.take_off()
        helper.environment.put_on(sdk=sys.modules.get("mcp_tool"))
        helper.script = Script(helper.harmless, descriptors=helper.descriptors)
        sys.argv[:], sys.path[0] = words, directory
        if sys.version_info >= (3, 10):
            sys.orig_argv[:] = original


def _stay(status: int) -> None:
    """Where a script would end the process."""
