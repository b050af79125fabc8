"""The kinds of events, and the fields of each: one table, from which viewers, redaction and the documentation follow.

The types of fields: a `number`; a `word`, which is one of ours or a name that cannot be secret; a `list` of such words,
or of pairs of them; a `text`; the `tail` of a text; a `value` of JSON, which is cut if it is large; and what is `shown`
of JSON as text: its secrets are removed already, and it is cut.

Rule: what a client, a script or a project has written is a text, a tail or a value, so that its secrets are removed. A
field whose name ends with a question mark may be absent.
"""

from __future__ import annotations

from typing import NamedTuple

PLAIN = frozenset({"number", "word", "list", "shown"})  # types of fields that have no secrets


class Kind(NamedTuple):
    when: str
    fields: dict[str, str]  # the type of each
    is_kept: bool  # also while nobody looks


def _kind(when: str, *, is_kept: bool = False, **names: str) -> Kind:
    """`names`: those of the fields of each type."""
    return Kind(when, {name: type for type, some in names.items() for name in some.split()}, is_kept)


KINDS = {
    "server": _kind(
        "a viewer begins; it is the first event that the viewer gets",
        number="pid started_at calls failures running",
        text="project name version transport client?",
    ),
    "opened": _kind(
        "a client is known: by its handshake, or by its first stateless request",
        is_kept=True,
        value="client?",
        word="revision era transport",
    ),
    "closed": _kind("a session has ended", is_kept=True, word="why"),
    "frame": _kind(
        "a message has come (in) or goes out (out)",
        word="way",
        number="bytes ms? process?",
        text="method?",
        value="id?",
        shown="frame",
    ),
    "queued": _kind(
        "a request has become a call. `place`: the calls before it. `interaction`: the first call of those that one "
        "question and its retries make. `task`: the task that the request is about",
        text="method name? task?",
        value="id arguments?",
        number="place interaction?",
    ),
    "started": _kind(
        "the process of a call has begun. `variables`: the names of its variables, and where each is from",
        value="argv",
        text="cwd",
        number="pid waited_ms",
        word="way",
        list="variables",
    ),
    "progress": _kind("a script reports progress", number="progress total?", text="message?"),
    "log": _kind("a script logs", word="level", text="logger?", value="data"),
    "asked": _kind("the user or the model is asked", text="key message?", word="method"),
    "answered": _kind("a question has been answered, or will not be", text="key", word="action"),
    "output": _kind(
        "a script has printed: while it runs, if somebody looks, and at its end",
        word="stream",
        number="bytes",
        tail="tail",
    ),
    "exited": _kind(
        "the process of a call is over; a resident process is done with the call. `peak_kb` is absent if it is not "
        "known: the system counts what the server held when it started the process",
        number="pid exit? signal? wall_ms user_ms? system_ms? peak_kb?",
    ),
    "ended": _kind(
        "a request is answered, or never will be. A call that becomes a task ends twice: when its request is answered "
        "(outcome `task`), and when the task is over. Without a call: the request was refused before it became one",
        is_kept=True,
        word="outcome task? by? limit?",
        text="method name? reason?",
        number="queue_ms? run_ms? write_ms? bytes? interaction?",
    ),
    "task": _kind("a task has begun, or changed", is_kept=True, word="task status", text="tool message?"),
    "changed": _kind(
        "a list has changed: the names, at most 20 of each",
        is_kept=True,
        word="source why",
        value="added removed changed",
    ),
    "left out": _kind("an item is not listed", is_kept=True, word="source", text="item reason"),
    "fired": _kind("the client is told that a subscribed resource has changed", text="uri"),
    "policy": _kind("an allow-list or policy.sh has decided", text="name why?", word="decision"),
    "sample": _kind(
        "two seconds have passed; `rss_kb` is the memory of the server", number="rss_kb running waiting links"
    ),
    "lost": _kind("this viewer was too slow: so many events are missing here", number="count"),
}
ALL = frozenset(KINDS) - {"server", "lost"}  # of the stream; those two are made for each viewer
KEPT = frozenset(name for name, kind in KINDS.items() if kind.is_kept)
TYPES = {name: {field.rstrip("?"): type for field, type in kind.fields.items()} for name, kind in KINDS.items()}
