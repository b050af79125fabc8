"""Find out which users can write to a file. The user's private group is treated as the user.

Many systems give each user a group of the same name, and a umask of 002. Everything that such a user makes is writable
by that group, which has no other member. With an ACL, the group bits of a file show what named users may do at most, so
a file that has one is not trusted if these bits allow writing.

Rule: imported before the first answer. The databases of users and groups are asked once, and only when a file that its
group may write to is met, because they may be on the network.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
from collections.abc import Iterable, Iterator, Sequence

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
ACL = "system.posix_acl_access"
MAX_DATABASE_BYTES = 4 << 20

User = tuple[str, int, int]  # name, uid, gid of the primary group
Group = tuple[str, int, Sequence[str]]  # name, gid, names of the members


def others_may_write(place: str | int, status: os.stat_result) -> bool:
    """Tell whether a user other than the owner can write to a file or directory. `place` is its path, which is not
    followed if it is a link, or its descriptor."""
    if not status.st_mode & WRITABLE_BY_OTHERS:
        return False
    return bool(status.st_mode & stat.S_IWOTH) or status.st_gid != _own_group() or _has_acl(place)


def private_group(uid: int, users: Iterable[User], groups: Iterable[Group]) -> int | None:
    """Return the primary group of a user if it has the user's name and no other member, else None. The first entry of
    the user counts; all entries tell of others."""
    known = list(users)
    name, gid = next(((name, gid) for name, each, gid in known if each == uid), ("", -1))
    entries = [(group, members) for group, each, members in groups if each == gid]
    own_names = {each for each, owner, _ in known if owner == uid}
    is_shared = any(group == gid and owner != uid for _, owner, group in known)
    if not entries or entries[0][0] != name or is_shared:
        return None
    return gid if all(own_names.issuperset(members) for _, members in entries) else None


@functools.cache
def _own_group() -> int | None:
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid)
        # To list all users may take minutes where they are on the network. The files name the local ones.
        others = [(name, int(uid), int(gid)) for name, _, uid, gid, *_ in _entries("/etc/passwd")]
        more = [(name, int(gid), names.split(",") if names else []) for name, _, gid, names in _entries("/etc/group")]
    except (KeyError, OSError, ValueError):
        return None
    users = [(user.pw_name, user.pw_uid, user.pw_gid), *others]
    return private_group(os.geteuid(), users, [(group.gr_name, group.gr_gid, group.gr_mem), *more])


def _entries(path: str) -> Iterator[list[str]]:
    """Yield the lines of a local database. Raises ValueError if it is too large."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read(MAX_DATABASE_BYTES + 1)
    if len(text) > MAX_DATABASE_BYTES:
        raise ValueError(path)
    for line in text.splitlines():
        if line.strip() and line[0] not in "#+-":  # others are named on the network
            yield line.split(":")


def _has_acl(place: str | int) -> bool:
    if not hasattr(os, "getxattr"):
        return False  # elsewhere than on Linux, the bits of the group do not show them
    try:
        os.getxattr(place, ACL, follow_symlinks=isinstance(place, int))
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.ENOTSUP)
    return True
