"""The catalog as the page shows it, and as the disk is now.

The definitions come from the server, as a client gets them; what is wrong and what is left out is what `validate`,
`lint` and `list` say, which run as other processes after each change: they start interpreters, and take seconds in a
large project. So a change is shown at once, and what is wrong with it a moment later.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.cli.checking.findings import OK, STYLE_OF
from mcpgreen.cli.clients.launch import program_words
from mcpgreen.cli.linting import tokens_in, tokens_of
from mcpgreen.cli.mcp_client import Refused
from mcpgreen.cli.output import WORDS
from mcpgreen.cli.trying.local_client import LocalClient
from mcpgreen.cli.trying.requests import KINDS, Kind
from mcpgreen.cli.workbench.playing import WITH_UI
from mcpgreen.cli.workbench.streams import EventStream
from mcpgreen.engine.server import Server
from mcpgreen.protocol.revisions import REVISIONS, SKILLS_EXTENSION
from mcpgreen.running.processes.run import Deadline, Limits, Script, ScriptRun, unheard
from mcpgreen.running.scripts.environment import packed
from mcpgreen.running.shares import Turns, let_others
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

LEVELS = list(STYLE_OF)  # the worst first
QUIET_SECS = 0.05  # after a change, before a look: another one often follows
REST_SECS = 2.0  # between two checks: they run register.sh, which may itself write files here each time
CHECK_SECS = 600.0  # there may be thousands of scripts
MAX_CHECK_BYTES = 32 << 20


class Catalog:
    """`listeners` are told of each change. Must be closed, which ends them, too."""

    def __init__(self, server: Server) -> None:
        self.listeners: set[EventStream] = set()
        self._server = server
        self._lists: dict[str, list[Json]] = {}
        self._findings: list[Json] = []
        self._left_out: list[Json] = []
        self._shown = b""
        self._has_lists, self._has_news, self._is_unchecked = Event(), Event(), Event()
        self._has_news.set()
        info = server.services.identity.info
        revisions = [each.name for each in REVISIONS]
        self._project = {"name": info["name"], "root": server.services.project.root, "revisions": revisions}
        self._client = LocalClient(server, on_notification=lambda _: self._has_news.set(), capabilities=WITH_UI)
        self._interest = server.services.disk.interest(lambda _: self._has_news.set())
        self._greenlets = [gevent.spawn(self._look), gevent.spawn(self._check)]

    def close(self) -> None:
        gevent.killall(self._greenlets)
        self._client.close()
        for stream in self.listeners:
            stream.end()

    def current(self) -> bytes:
        """Return the catalog as JSON. Waits for the first look."""
        self._has_lists.wait()
        return self._shown

    def _look(self) -> None:
        while True:
            self._has_news.wait()
            gevent.sleep(QUIET_SECS)
            self._has_news.clear()
            self._lists = {kind.word: [*self._items(kind)] for kind in KINDS}
            self._show()
            self._has_lists.set()
            self._is_unchecked.set()
            self._interest.want_only(self._server.services.catalog.watched_directories(), let_others)

    def _check(self) -> None:
        while True:
            self._is_unchecked.wait()
            self._is_unchecked.clear()
            try:
                checked, linted, listed = map(self._said_by, ("validate", "lint", "list"))
            except (OSError, ValueError) as error:
                journal.warning("the project cannot be checked now: %s", error)
            else:
                found = [*checked.get("messages", ()), *linted.get("messages", ())]
                wanted = [each for each in found if each["level"] != OK and each["code"] != "tokens"]
                self._findings = sorted(wanted, key=lambda each: LEVELS.index(each["level"]))
                self._left_out = listed.get("leftOut", [])
                self._show()
            gevent.sleep(REST_SECS)

    def _said_by(self, command: str) -> Json:
        """Run a command of ours on what is on disk now, and return its JSON; nothing if it has none. Raises OSError and
        ValueError."""
        runner, root = self._server.services.runner, self._server.services.project.root
        words = [*program_words(os.environ), command, "--json", "--project-root", root]
        script, limits = Script(f"mcpgreen {command}", words[0], words), Limits(MAX_CHECK_BYTES, MAX_CHECK_BYTES)
        run = ScriptRun(script, packed(os.environ), Deadline(CHECK_SECS), limits, runner.next_serial(), unheard)
        outcome = runner.run(run)
        try:
            said: Json = jsontext.loads(b"".join(outcome.stdout) or b"{}", let_others)
        finally:
            outcome.place.release()
        return said

    def _items(self, kind: Kind) -> Iterator[Json]:
        services, turns = self._server.services, Turns()
        if kind.word == "skills" and SKILLS_EXTENSION not in services.offered:
            return
        try:
            listed = self._client.all_of(kind.method, kind.member)
        except Refused:
            return  # the checks say why
        count = tokens_of if kind.word == "tools" else tokens_in
        for definition, item in zip(listed, services.snapshot(kind.member).items, strict=False):
            path = getattr(item, "path", None)
            subject, file = f"{WORDS[kind.member]} {item.name}", services.project.shown(path) if path else None
            yield {"definition": definition, "subject": subject, "file": file, "tokens": count(definition)}
            turns.pause()

    def _show(self) -> None:
        """Put the findings beside their items, and tell if anything is different."""
        shown: Json = {word: [{**item, "findings": []} for item in items] for word, items in self._lists.items()}
        homes: dict[str, list[list[Json]]] = {each["path"]: [] for each in self._left_out}
        for item in (item for items in shown.values() for item in items):
            for place in filter(None, (item["subject"], item["file"])):
                homes.setdefault(place, []).append(item["findings"])
        remedies: dict[str, str | None] = {}
        general: list[Json] = []
        for finding in self._findings:
            subject, _, sentence = finding["message"].partition(": ")
            place = next((each for each in (subject, finding.get("file")) if each in homes), None)
            if subject == place:
                finding = {**finding, "message": sentence.removeprefix(f"{finding.get('file')}: ")}
            remedies.setdefault(subject, finding.get("fix"))
            for home in homes.get(place, [general]):
                home.append(finding)
        left_out = [{**each, "remedy": remedies.get(each["path"])} for each in self._left_out]
        encoded = jsontext.dumps({"project": self._project, **shown, "findings": general, "leftOut": left_out})
        if encoded != self._shown:
            self._shown = encoded
            for stream in self.listeners:
                stream.put({}, "catalog")
