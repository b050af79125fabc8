"""Put our entry into a client's file, or take it out and leave what was there before.

What is to be done is decided on texts, shown, and then done. As long as a file is what we have made of it, taking an
entry out means making it anew from the backup, without that entry: every byte comes back. Once somebody else has
changed the file, only the entry is taken out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from os import rmdir, unlink
from typing import Any, NamedTuple

from mcpgreen.cli.clients.client_file import BACKUP, ClientFile, Refused
from mcpgreen.cli.clients.formats.spot import Format, Found, Spot, Unfit
from mcpgreen.cli.clients.records import Record, Records, digest

LOST = "lost"  # in place of a digest: there is no content to begin from


class Target(NamedTuple):
    path: str
    format: Format
    spot: Spot


class Change(NamedTuple):
    """What has become of a file, or would."""

    path: str  # where it really is
    before: str | None  # None: there was no file
    after: str | None
    backup: str | None = None
    is_recorded: bool = True

    @property
    def is_one(self) -> bool:
        return self.before != self.after


Show = Callable[[Change], None]


def install(target: Target, entry: Any, records: Records, *, show: Show, is_dry: bool = False) -> Change:
    """Raises Refused, and the file is as it was."""
    file = ClientFile(target.path)
    if not is_dry:
        file.make_directories()
    try:
        with _alone(file, is_dry=is_dry):
            return _installed(file, target, entry, records, show=show, is_dry=is_dry)
    except BaseException:
        with suppress(OSError):
            for directory in reversed(file.made):
                rmdir(directory)
        raise


def uninstall(target: Target, records: Records, *, show: Show, is_dry: bool = False) -> Change:
    """Raises Refused. Nothing to take out is no reason to complain."""
    file = ClientFile(target.path)
    if file.read() is None:
        return Change(file.path, None, None)
    with _alone(file, is_dry=is_dry):
        return _uninstalled(file, target, records, show=show, is_dry=is_dry)


def _alone(file: ClientFile, *, is_dry: bool) -> AbstractContextManager[None]:
    return nullcontext() if is_dry else file.locked()


def _installed(file: ClientFile, target: Target, entry: Any, records: Records, *, show: Show, is_dry: bool) -> Change:
    before = _text(file)
    file.require_changeable()
    record = records.of(file.path)
    try:
        found = target.format.find(before or "", target.spot)
        if found.entry == entry:
            return Change(file.path, before, before)
        known = _replayed(record, target) if record else None
        if record and known == (before or "") and before is not None:
            planned = record.with_entry(target.spot.name, entry)._replace(
                formers=_formers(record, before, found, target)
            )
            after = _replayed(planned, target) or ""
        else:
            planned = _begun_anew(record, before, found, target, file, entry)
            after = _put(before or "", target.format, target.spot, entry)
        _require_only_ours(before or "", after, target, entry)
    except Unfit as error:
        raise Refused(target.path, f"{error}; it is left as it is") from None
    show(Change(file.path, before, after))
    if is_dry:
        return Change(file.path, before, after)
    backup = None
    if before is not None:
        backup = planned.base or file.back_up()
        is_base = planned.base_digest == digest(file.content)
        planned = planned._replace(base=backup if is_base else planned.base, backups=(*planned.backups, backup))
    file.replace(_bytes(after, target))
    return Change(file.path, before, after, backup, records.keep(file.path, planned))


def _begun_anew(
    record: Record | None, before: str | None, found: Found, target: Target, file: ClientFile, entry: Any
) -> Record:
    """The record of a file that is not as we have left it, or that we have never seen."""
    old = record or Record()
    name = target.spot.name
    is_ours = name in dict(old.entries)
    return Record(
        base=None,
        # With an older entry of ours inside, the file is nothing to come back to.
        base_digest=LOST if is_ours and found.span else digest(file.content),
        entries=((name, entry),),
        formers=_formers(old, before, found, target),
        made_root=not found.has_root or old.made_root,
        made_directories=tuple(file.made) or old.made_directories,
    )


def _formers(record: Record, before: str | None, found: Found, target: Target) -> dict[str, str]:
    """With the source of an entry that is there and is none of ours."""
    if before is None or found.span is None or target.spot.name in dict(record.entries):
        return dict(record.formers)
    return {**record.formers, target.spot.name: before[slice(*found.span)]}


def _uninstalled(file: ClientFile, target: Target, records: Records, *, show: Show, is_dry: bool) -> Change:
    before = _text(file)
    if before is None:
        return Change(file.path, None, None)
    name = target.spot.name
    record = records.of(file.path)
    try:
        is_known = record is not None and name in dict(record.entries) and _replayed(record, target) == before
        rest = record.without(name) if record else Record()
        if is_known and record:
            after = _replayed(rest, target) if rest.entries or record.base_digest else None
        else:
            after = _taken(before, target, record)
    except Unfit as error:
        raise Refused(target.path, f"{error}; it is left as it is") from None
    change = Change(file.path, before, after)
    if not change.is_one:
        return change
    file.require_changeable()
    show(change)
    if is_dry:
        return change
    backup = None if is_known else file.back_up()
    if after is None:
        file.remove(list(record.made_directories) if record else [])
    else:
        file.replace(_bytes(after, target))
    if is_known and record and not rest.entries:
        _discard(record.backups, file)
    records.keep(file.path, rest)
    return Change(file.path, before, after, backup)


def _discard(backups: tuple[str, ...], file: ClientFile) -> None:
    """The file is what it was before the first of them."""
    for backup in backups:
        if backup.startswith(file.path + BACKUP):
            with suppress(OSError):
                unlink(backup)


def _taken(before: str, target: Target, record: Record | None) -> str | None:
    """Without our entry, from a file that others have changed since, or that we know nothing of."""
    spot = target.spot
    found = target.format.find(before, spot)
    if found.span is None:
        return before
    is_recorded = record is not None and (spot.name in dict(record.entries) or spot.name in record.formers)
    if not is_recorded and "mcpgreen" not in json.dumps(found.entry, default=str):
        raise Refused(target.path, f"the entry {spot.name} in it is none of mcpgreen; it is left as it is")
    former = record.formers.get(spot.name) if record else None
    if former is not None:
        return before[: found.span[0]] + former + before[found.span[1] :]
    after = target.format.removed(before, spot, drops_root=record is not None and record.made_root)
    _require_only_ours(after, before, target, found.entry)
    is_ours_alone = record is not None and record.base is None and not record.base_digest
    return None if is_ours_alone and not target.format.values(after, spot) else after


def _replayed(record: Record | None, target: Target) -> str | None:
    """The content as it was at first, with all entries of a record; None if that content is not known."""
    if record is None or record.base_digest == LOST:
        return None
    text = ""
    if record.base_digest:
        backup = ClientFile(record.base or "")
        try:
            content = backup.read()
        except Refused:
            return None
        if digest(content) != record.base_digest or content is None:
            return None
        text = content.decode("utf-8")
    for name, entry in record.entries:
        text = _put(text, target.format, target.spot._replace(name=name), entry)
    return text


def _put(text: str, format: Format, spot: Spot, entry: Any) -> str:
    span = format.find(text, spot).span
    if span is None:
        return format.inserted(text, spot, entry)
    return text[: span[0]] + format.rendered(text, spot, entry) + text[span[1] :]


def _require_only_ours(before: str, after: str, target: Target, entry: Any) -> None:
    """The client's values are what they were, and our entry. Raises Unfit."""
    values, spot = target.format.values, target.spot
    old = _members(values(before, spot) or values(spot.preamble, spot) if spot.preamble else values(before, spot))
    new = _members(values(after, spot))
    old_root, new_root = old.pop(spot.root, [None])[-1], new.pop(spot.root, [None])[-1]
    if old != new or _entries(new_root, spot) != {**_entries(old_root, spot), spot.name: [entry]}:
        raise Unfit("an entry in it would change something else")


def _members(value: Any) -> dict[str, list[Any]]:
    pairs = value[1] if isinstance(value, tuple) else (value or {}).items()
    members: dict[str, list[Any]] = {}
    for key, each in pairs:
        members.setdefault(key, []).append(each)
    return members


def _entries(root: Any, spot: Spot) -> dict[str, list[Any]]:
    if not spot.is_list:
        return _members(root)
    entries: dict[str, list[Any]] = {}
    for item in root or []:
        entries.setdefault(str(item.get("name")) if isinstance(item, dict) else repr(item), []).append(item)
    return entries


def _text(file: ClientFile) -> str | None:
    content = file.read()
    try:
        return None if content is None else content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(file.named, f"it is not UTF-8, at byte {error.start}; it is left as it is") from None


def _bytes(text: str, target: Target) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(target.path, "a path or variable of the entry is not UTF-8; it is left as it is") from None
