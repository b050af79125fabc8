"""Starts the program that Python scripts are forked from; its arguments are modules to be imported.

A script is run from here, and not from a function, so that it has one frame above its own and not several.
"""

import sys

from mcpgreen_warm.helper import Helper

helper = Helper(sys.argv[1:])
script = helper.serve()
if script is not None:
    try:
        exec(script.code, script.names)
    except BaseException as error:
        script.error = error
    end = script.end()
    if end is not None:
        raise end
