"""Python imports this module when it starts with this directory on PYTHONPATH: it sets the constants of the test."""

import os

if "TESTED_CONSTANTS" in os.environ:
    from tests.support import constants

    constants.apply()
