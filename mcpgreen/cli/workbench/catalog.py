"""The catalog as the page shows it, and as the disk is now.

The definitions come from the server, as a client gets them; what is wrong and what is left out comes from a report,
which another process makes after each change. So a change is shown at once, and what is wrong with it a moment later.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.cli.linting import tokens_in, tokens_of
from mcpgreen.cli.trying.local_client import LocalClient, Refused
from mcpgreen.cli.trying.requests import KINDS, Kind
from mcpgreen.cli.workbench.playing import WITH_UI
from mcpgreen.cli.workbench.report import PROGRAM, key_of
from mcpgreen.engine.server import Server
from mcpgreen.protocol.revisions import SKILLS_EXTENSION
from mcpgreen.running.processes.run import Deadline, Limits, Script, ScriptRun, unheard
from mcpgreen.running.scripts.environment import packed
from mcpgreen.running.shares import Turns, let_others
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

QUIET_SECS = 0.05  # after a change, before a look: another one often follows
REPORT_SECS = 600.0  # there may be thousands of scripts
REPORT_BYTES = 32 << 20
MOST_VAIN = 2  # reports in a row that say the same, while files change
REST_SECS = 5.0


class Catalog:
    """`on_change` is called with the digest whenever something else is to be shown. Must be closed."""

    def __init__(self, server: Server, on_change: Callable[[str], object]) -> None:
        self._server = server
        self._on_change = on_change
        self._lists: dict[str, list[Json]] = {}
        self._report: Json = {"items": {}, "leftOut": [], "findings": []}
        self._problems: list[Json] = []  # of lists that the server refuses
        self.digest = ""
        self._shown = b""
        self._has_lists, self._news = Event(), Event()
        self._news.set()
        self._client = LocalClient(server, on_notification=lambda _: self._news.set(), capabilities=WITH_UI)
        self._interest = server.services.disk.interest(lambda _: self._news.set())
        self._greenlet = gevent.spawn(self._run)

    def close(self) -> None:
        self._greenlet.kill()
        self._client.close()

    def current(self) -> bytes:
        """Return the catalog as JSON. Waits for the first look."""
        self._has_lists.wait()
        return self._shown

    def _run(self) -> None:
        vain = 0
        while True:
            self._news.wait()
            gevent.sleep(QUIET_SECS)
            self._news.clear()
            self._look()
            self._show()
            self._has_lists.set()
            self._interest.want_only(self._server.services.catalog.watched_directories(), let_others)
            report = self._new_report() or self._report
            vain = vain + 1 if self._news.is_set() and report == self._report else 0
            self._report = report
            self._show()
            if vain > MOST_VAIN:  # the checks run register.sh, which may itself write files here each time
                gevent.sleep(REST_SECS)

    def _look(self) -> None:
        self._lists, self._problems = {kind.word: [] for kind in KINDS}, []
        for kind in KINDS:
            if kind.word == "skills" and SKILLS_EXTENSION not in self._server.services.offered:
                continue
            try:
                listed = self._client.all_of(kind.method, kind.member)
            except Refused as refused:
                problem = {"level": "error", "code": kind.word, "sentence": str(refused), "fix": None}
                self._problems.append({**problem, "file": None, "line": None})
            else:
                self._lists[kind.word] = [*self._items(kind, listed)]

    def _items(self, kind: Kind, listed: list[Json]) -> Iterator[Json]:
        services, turns = self._server.services, Turns()
        paths = {key_of(item.definition): item.path for item in services.catalog.snapshot(kind.member).items}
        count = tokens_of if kind.word == "tools" else tokens_in
        for definition in listed:
            path = paths.get(key_of(definition))
            file = services.project.shown(path) if path else None
            yield {"definition": definition, "file": file, "tokens": count(definition)}
            turns.pause()

    def _show(self) -> None:
        findings = self._report["items"]
        shown: Json = {
            word: [{**item, "findings": findings.get(word, {}).get(key_of(item["definition"]), [])} for item in items]
            for word, items in self._lists.items()
        }
        shown |= {"leftOut": self._report["leftOut"], "findings": [*self._problems, *self._report["findings"]]}
        digest = jsontext.digest(shown)
        if digest != self.digest:
            self.digest, self._shown = digest, jsontext.dumps({"digest": digest, **shown})
            self._on_change(digest)

    def _new_report(self) -> Json | None:
        """Return the report on what is on disk now; None if there is none."""
        runner, root = self._server.services.runner, self._server.services.project.root
        command = [sys.executable, "-I", "-c", PROGRAM, root, *sys.path]
        run = ScriptRun(
            Script("The report on the project", sys.executable, command),
            packed(os.environ),
            Deadline(REPORT_SECS),
            Limits(REPORT_BYTES, REPORT_BYTES),
            runner.next_serial(),
            unheard,
        )
        try:
            outcome = runner.run(run)
            report: Json = jsontext.loads(b"".join(outcome.stdout), let_others)
            outcome.place.release()
        except (OSError, ValueError) as error:
            journal.warning("the project cannot be checked now: %s", error)
            return None
        return report
