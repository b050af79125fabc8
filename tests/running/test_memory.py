"""What a server gives back of the memory that large arguments and outputs took."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.wire import clean_environment

# Large blocks among small ones that stay, as they come and go while calls run.
PROGRAM = """
import re
from mcpgreen.running.system import keep_large_blocks_apart

def taken_mib():
    with open("/proc/self/status") as file:
        return int(re.search(r"VmRSS:[^0-9]*([0-9]+)", file.read())[1]) // 1024

CALL
before = taken_mib()
bytes(b"x" * (4 << 20))
large, small = [], []
for _ in range(20):
    large.append(b"x" * (4 << 20))
    small.append([bytes(700) for _ in range(300)])
del large
print(taken_mib() - before)
"""


@pytest.mark.skipif("CS_GNU_LIBC_VERSION" not in os.confstr_names, reason="it is glibc that keeps them")
def test_large_blocks_are_given_back_although_small_ones_stay() -> None:
    """After calls with large arguments the server had twice the memory that it needed."""
    program = PROGRAM.replace("CALL", "keep_large_blocks_apart()")
    ended = subprocess.run([sys.executable, "-c", program], env=clean_environment(), capture_output=True, check=True)

    assert int(ended.stdout) < 40
