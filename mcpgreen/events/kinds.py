"""The kinds of events, and the fields of each: one table, from which viewers, redaction and the documentation follow.

Rule: what a client, a script or a project has written is a TEXT, a TAIL or a VALUE, so that its secrets are removed. A
field whose name ends with a question mark may be absent.
"""

from __future__ import annotations

from typing import NamedTuple

NUMBER = "number"
WORD = "word"  # one of ours, or a name that cannot be secret
LIST = "list"  # of such words, or of pairs of them
TEXT = "text"
TAIL = "end of a text"
VALUE = "JSON"  # cut, if it is large
SHOWN = "text of JSON"  # without secrets already, and cut


class Kind(NamedTuple):
    when: str
    fields: dict[str, str]
    is_kept: bool = False  # also while nobody looks


KINDS = {
    "server": Kind(
        "a viewer begins; it is the first event that the viewer gets",
        {
            **dict.fromkeys(("pid", "started_at", "calls", "failures", "running"), NUMBER),
            **dict.fromkeys(("project", "name", "version", "transport", "client?"), TEXT),
        },
    ),
    "opened": Kind(
        "a client is known: by its handshake, or by its first stateless request",
        {"client?": VALUE, "revision": WORD, "era": WORD, "transport": WORD},
        is_kept=True,
    ),
    "closed": Kind("a session has ended", {"why": WORD}, is_kept=True),
    "frame": Kind(
        "a message has come (in) or goes out (out)",
        {
            "way": WORD,
            "bytes": NUMBER,
            "frame": SHOWN,
            "id?": VALUE,
            "method?": TEXT,
            "ms?": NUMBER,
            "process?": NUMBER,
        },
    ),
    "queued": Kind(
        "a request has become a call. `place`: the calls before it. `interaction`: the first call of those that one "
        "question and its retries make. `task`: the task that the request is about",
        {
            "method": TEXT,
            "name?": TEXT,
            "id": VALUE,
            "arguments?": VALUE,
            "place": NUMBER,
            "interaction?": NUMBER,
            "task?": TEXT,
        },
    ),
    "started": Kind(
        "the process of a call has begun. `variables`: the names of its variables, and where each is from",
        {"argv": VALUE, "cwd": TEXT, "pid": NUMBER, "way": WORD, "variables": LIST, "waited_ms": NUMBER},
    ),
    "progress": Kind("a script reports progress", {"progress": NUMBER, "total?": NUMBER, "message?": TEXT}),
    "log": Kind("a script logs", {"level": WORD, "logger?": TEXT, "data": VALUE}),
    "asked": Kind("the user or the model is asked", {"key": TEXT, "method": WORD, "message?": TEXT}),
    "answered": Kind("a question has been answered, or will not be", {"key": TEXT, "action": WORD}),
    "output": Kind(
        "a script has printed: while it runs, if somebody looks, and at its end",
        {"stream": WORD, "bytes": NUMBER, "tail": TAIL},
    ),
    "exited": Kind(
        "the process of a call is over; a resident process is done with the call. `peak_kb` is absent if it is not "
        "known: the system counts what the server held when it started the process",
        {
            "pid": NUMBER,
            "exit?": NUMBER,
            "signal?": NUMBER,
            "wall_ms": NUMBER,
            "user_ms?": NUMBER,
            "system_ms?": NUMBER,
            "peak_kb?": NUMBER,
        },
    ),
    "ended": Kind(
        "a request is answered, or never will be. A call that becomes a task ends twice: when its request is answered "
        "(outcome `task`), and when the task is over. Without a call: the request was refused before it became one",
        {
            "outcome": WORD,
            "reason?": TEXT,
            "method": TEXT,
            "name?": TEXT,
            **dict.fromkeys(("queue_ms?", "run_ms?", "write_ms?", "bytes?", "interaction?"), NUMBER),
            "task?": WORD,
            "by?": WORD,
            "limit?": WORD,
        },
        is_kept=True,
    ),
    "task": Kind(
        "a task has begun, or changed", {"task": WORD, "tool": TEXT, "status": WORD, "message?": TEXT}, is_kept=True
    ),
    "changed": Kind(
        "a list has changed: the names, at most 20 of each",
        {"source": WORD, "added": VALUE, "removed": VALUE, "changed": VALUE, "why": WORD},
        is_kept=True,
    ),
    "left out": Kind("an item is not listed", {"source": WORD, "item": TEXT, "reason": TEXT}, is_kept=True),
    "fired": Kind("the client is told that a subscribed resource has changed", {"uri": TEXT}),
    "policy": Kind("an allow-list or policy.sh has decided", {"name": TEXT, "decision": WORD, "why?": TEXT}),
    "sample": Kind(
        "two seconds have passed; `rss_kb` is the memory of the server and its helpers",
        dict.fromkeys(("rss_kb", "running", "waiting", "links"), NUMBER),
    ),
    "lost": Kind("this viewer was too slow: so many events are missing here", {"count": NUMBER}),
}
ALL = frozenset(KINDS) - {"server", "lost"}  # of the stream; those two are made for each viewer
KEPT = frozenset(name for name, kind in KINDS.items() if kind.is_kept)
TYPES = {name: {field.rstrip("?"): type for field, type in kind.fields.items()} for name, kind in KINDS.items()}
