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


def _kind(when: str, fields: str, *, is_kept: bool = False) -> Kind:
    return Kind(when, dict(each.split(": ") for each in fields.split(", ")), is_kept)


KINDS = {
    "server": _kind(
        "a viewer begins; it is the first event that the viewer gets",
        "pid: number, started_at: number, calls: number, failures: number, running: number, project: text, name: text, "
        "version: text, transport: text, client?: text",
    ),
    "opened": _kind(
        "a client is known: by its handshake, or by its first stateless request",
        "client?: value, revision: word, era: word, transport: word",
        is_kept=True,
    ),
    "closed": _kind("a session has ended", "why: word", is_kept=True),
    "frame": _kind(
        "a message has come (in) or goes out (out)",
        "way: word, bytes: number, frame: shown, id?: value, method?: text, ms?: number, process?: number",
    ),
    "queued": _kind(
        "a request has become a call. `place`: the calls before it. `interaction`: the first call of those that one "
        "question and its retries make. `task`: the task that the request is about",
        "method: text, name?: text, id: value, arguments?: value, place: number, interaction?: number, task?: text",
    ),
    "started": _kind(
        "the process of a call has begun. `variables`: the names of its variables, and where each is from",
        "argv: value, cwd: text, pid: number, way: word, variables: list, waited_ms: number",
    ),
    "progress": _kind("a script reports progress", "progress: number, total?: number, message?: text"),
    "log": _kind("a script logs", "level: word, logger?: text, data: value"),
    "asked": _kind("the user or the model is asked", "key: text, method: word, message?: text"),
    "answered": _kind("a question has been answered, or will not be", "key: text, action: word"),
    "output": _kind(
        "a script has printed: while it runs, if somebody looks, and at its end",
        "stream: word, bytes: number, tail: tail",
    ),
    "exited": _kind(
        "the process of a call is over; a resident process is done with the call. `peak_kb` is absent if it is not "
        "known: the system counts what the server held when it started the process",
        "pid: number, exit?: number, signal?: number, wall_ms: number, user_ms?: number, system_ms?: number, "
        "peak_kb?: number",
    ),
    "ended": _kind(
        "a request is answered, or never will be. A call that becomes a task ends twice: when its request is answered "
        "(outcome `task`), and when the task is over. Without a call: the request was refused before it became one",
        "outcome: word, reason?: text, method: text, name?: text, queue_ms?: number, run_ms?: number, "
        "write_ms?: number, bytes?: number, interaction?: number, task?: word, by?: word, limit?: word",
        is_kept=True,
    ),
    "task": _kind("a task has begun, or changed", "task: word, tool: text, status: word, message?: text", is_kept=True),
    "changed": _kind(
        "a list has changed: the names, at most 20 of each",
        "source: word, added: value, removed: value, changed: value, why: word",
        is_kept=True,
    ),
    "left out": _kind("an item is not listed", "source: word, item: text, reason: text", is_kept=True),
    "fired": _kind("the client is told that a subscribed resource has changed", "uri: text"),
    "policy": _kind("an allow-list or policy.sh has decided", "name: text, decision: word, why?: text"),
    "sample": _kind(
        "two seconds have passed; `rss_kb` is the memory of the server",
        "rss_kb: number, running: number, waiting: number, links: number",
    ),
    "lost": _kind("this viewer was too slow: so many events are missing here", "count: number"),
}
ALL = frozenset(KINDS) - {"server", "lost"}  # of the stream; those two are made for each viewer
KEPT = frozenset(name for name, kind in KINDS.items() if kind.is_kept)
TYPES = {name: {field.rstrip("?"): type for field, type in kind.fields.items()} for name, kind in KINDS.items()}
