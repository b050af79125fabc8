"""What a forked program does see, on purpose: why it is so, and a program that shows it."""

from __future__ import annotations

from tests.running.warm.programs.program import Program

# By what differs: the reason, and the program.
DIFFERENT_ON_PURPOSE: dict[str, tuple[str, Program]] = {
    "frames of the helper": (
        "The script is run from there: `traceback.print_stack` and `inspect.stack` show them, and so does the message "
        "about a `sys.excepthook` that fails.",
        Program("import sys\nprint(sys._getframe().f_back)"),
    ),
    "the depth of recursion": (
        "Those frames count: the limit is reached some calls earlier.",
        Program(
            """
            def depth(n):
                try:
                    return depth(n + 1)
                except RecursionError:
                    return n
            print(depth(1))
            """
        ),
    ),
    "names of the file": (
        "`__loader__` is None and `__package__` is empty; `__file__` is still there at the exit.",
        Program("print(__loader__, repr(__package__))"),
    ),
    "sys.modules": (
        "What the helper has loaded is there already, and `sys.meta_path` has a finder for the SDK.",
        Program("import sys\nprint(len(sys.modules))"),
    ),
    "functions that trace": (
        "One that is still set when the script is over sees how we end it.",
        Program(
            """
            import os, sys
            def profile(frame, event, arg, write=os.write):
                if event == 'call':
                    write(1, frame.f_code.co_name.encode())
            sys.setprofile(profile)
            """
        ),
    ),
    "the command line that others see": (
        "`ps` and /proc/PID/cmdline show the helper, from which the process was forked.",
        Program("print(open('/proc/self/cmdline').read())"),
    ),
    "the environment that others see": (
        "/proc/PID/environ shows that of the helper, without the variables of the call.",
        Program("print('MCP_TOOL_ARGS_JSON' in open('/proc/self/environ').read())"),
    ),
    "what was used before the first line": (
        "Time and memory count from the fork on; memory that is shared with the helper counts as well.",
        Program("import resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)"),
    ),
    "objects that are not collected": (
        "All that was there before the script is left out of collections: `gc.get_objects` does not show it.",
        Program("import gc\nprint(gc.get_freeze_count())"),
    ),
    "objects that are left": (
        "At the end, files are written that a fresh start may lose. `__del__` may be called in another order, and not "
        "at all for an object that only a module of the helper holds.",
        Program("import json\nclass Kept:\n    def __del__(self): print('deleted')\njson.kept = Kept()"),
    ),
    "messages about a coding": (
        "A file that names an unknown coding is refused in other words.",
        Program(content=b"#!/usr/bin/env python3\n# coding: there-is-none\nprint(1)\n"),
    ),
    "the seed of hashes": (
        "It is chosen at the helper's start: sets of texts have the same order in all that is forked from it.",
        Program("print(hash('text'))"),
    ),
    "limits of the server": (
        "What is changed for a running server, as by `prlimit`, holds for helpers that start later.",
        Program("import resource\nprint(resource.getrlimit(resource.RLIMIT_SIGPENDING))"),
    ),
}
