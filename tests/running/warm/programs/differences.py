"""What a forked program does see, on purpose: why it is so, and a program that shows it."""

from __future__ import annotations

from tests.running.warm.programs.program import Program

# By what differs: the reason, and the program.
DIFFERENT_ON_PURPOSE: dict[str, tuple[str, Program]] = {
    "one more frame": (
        "The script is run from a frame of ours: `traceback.print_stack`, `inspect.stack`, and warnings that are meant "
        "for the caller of the whole script show it.",
        Program("import sys\nprint(sys._getframe().f_back)"),
    ),
    "the depth of recursion": (
        "That frame counts: the limit is reached one call earlier.",
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
    "sys.modules": (
        "Modules that the helper or another script needed are there already, and what they have registered for the "
        "exit; to import them takes no time.",
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
    "the last collection": (
        "It is left out where nothing would come of it: `gc.callbacks` and `gc.set_debug` hear nothing.",
        Program("import gc, os\ngc.callbacks.append(lambda phase, info, write=os.write: write(1, phase.encode()))"),
    ),
    "the order of variables": (
        "Those of the call come after those that all calls have.",
        Program("import os\nprint(list(os.environ))"),
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
