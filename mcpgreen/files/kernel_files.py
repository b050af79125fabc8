"""The files that the kernel makes up: /proc, /sys and /dev. They hold the secrets of processes, ours among them.

No file in them is served and none of them is a root, whoever names it. A project that lies there as a whole, in a
memory disk such as /dev/shm, is no part of the kernel: what is in its own directory is its own.

Needed before the first answer when the operator names roots, hence no `typing`.
"""

from __future__ import annotations

import os

from mcpgreen.text.uris import is_within

KERNEL_DIRECTORIES = ("/proc", "/sys", "/dev")
# Also where they are mounted a second time: containers often have the /proc of their host in another place.
KERNEL_FILESYSTEMS = frozenset(
    ("proc", "sysfs", "devtmpfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "pstore", "bpf")
)


def is_kernel_path(path: str) -> bool:
    """Whether an absolute path without links leads there."""
    return any(is_within(path, directory) for directory in KERNEL_DIRECTORIES)


def holds(directory: str, path: str) -> bool:
    """Whether what is allowed in a directory is allowed for a path in it. Both absolute and free of symbolic links."""
    return is_within(path, directory) and (not is_kernel_path(path) or is_kernel_path(directory))


def lies_in_kernel(device: int) -> bool:
    """Whether the files of a device (`st_dev`) are made up by the kernel. Where nobody can tell (not Linux): no."""
    number = b"%d:%d" % (os.major(device), os.minor(device))
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            for line in file:
                about, _, mounted = line.partition(b" - ")
                if about.split(b" ", 3)[2] == number:
                    return mounted.split(b" ", 1)[0].decode("ascii", "replace") in KERNEL_FILESYSTEMS
    except OSError:
        return False
    return False
