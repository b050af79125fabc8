"""Starts the program that Python scripts are forked from; its arguments are modules to be imported."""

import sys

from mcpgreen_warm.helper import Helper

status = Helper(sys.argv[1:]).serve()
if status is not None:
    sys.exit(status)
