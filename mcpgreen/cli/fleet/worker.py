"""A worker: a server without clients, which runs the calls that it claims from the ledger, inside a worker of Celery.

Each of Celery's messages is a ring of the bell. It is answered in a place of the worker: as long as something waits
there, the place claims a call and runs it. A place is free again when its script has ended or asks something.
"""

from __future__ import annotations

import os
import re
import signal
import socket

import gevent
from gevent.event import Event
from gevent.lock import BoundedSemaphore

from mcpgreen import journal
from mcpgreen.cli.commands import Options
from mcpgreen.engine.server import Server
from mcpgreen.errors import UsageError
from mcpgreen.features.fleet.tasks import FleetTasks
from mcpgreen.fleet import bell, labels
from mcpgreen.fleet.address import VARIABLE, url_of
from mcpgreen.project.project import open_project, operator_roots, require_tmp_root

LOOK_SECS = 1.0  # between two looks for calls whose bell was not heard
QUIET_SECS = 0.1


class Worker:
    def __init__(self, tasks: FleetTasks, project: str, *, name: str, slots: int, url: str) -> None:
        self._tasks = tasks
        self._project = project
        self._places = BoundedSemaphore(slots)
        self._heard = {labels.ANY}  # the queues whose bell is heard
        self._stopped = Event()
        tasks.on_drain = self.drain
        app = bell.app_of(url, project, slots=slots)
        app.task(name=bell.TASK)(self.look)
        queues = [bell.celery_queue(project, labels.ANY)]
        options = {"without_mingle": True, "without_gossip": True, "loglevel": "WARNING"}
        self._celery = app.WorkController(
            app=app, hostname=f"mcpgreen@{name}", pool_cls="gevent", queues=queues, **options
        )

    def look(self) -> None:
        """Run what waits, in one place, until nothing waits any more."""
        with self._places:
            while (task := self._tasks.claim()) is not None:
                if self._tasks.ledger.has_more and not self._places.locked():
                    gevent.spawn(self.look)
                task.freed.wait()

    def _look_again(self) -> None:
        """Look from time to time, and hear the bells of new queues."""
        while not self._tasks.is_draining:
            self._tasks.find_queues()
            consumer = self._celery.consumer
            if consumer is not None and consumer.task_consumer is not None:
                for queue in set(self._tasks.queues) - self._heard:
                    consumer.add_task_queue(bell.celery_queue(self._project, queue))
                    self._heard.add(queue)
            if not self._places.locked():
                gevent.spawn(self.look)
            gevent.sleep(LOOK_SECS)

    def drain(self) -> None:
        """Leave the bells to others. `run` returns when what runs has ended."""
        if self._celery.consumer is not None and self._celery.consumer.task_consumer is not None:
            self._celery.consumer.task_consumer.cancel()

    def stop(self) -> None:
        if self._tasks.is_draining:
            self._stopped.set()
        else:
            gevent.spawn(self._tasks.drain)

    def run(self) -> None:
        helpers = [gevent.spawn(self._celery.start), gevent.spawn(self._look_again)]
        while not self._tasks.is_draining or len(self._tasks):
            if self._stopped.wait(QUIET_SECS):
                break
        gevent.killall(helpers, block=False)


def work(options: Options, *, slots: int) -> int:
    """Be a worker until it is drained or stopped. Return the exit status."""
    root = options["--project-root"]
    project, settings, environ = open_project({"project_root": root} if root else {}, os.environ, needs_own=True)
    if not settings.fleet_url:
        raise UsageError(f"A worker needs a fleet: --fleet URL, or {VARIABLE}.")
    url, name = url_of(settings.fleet_url), options["--name"] or f"{socket.gethostname()}-{os.getpid()}"
    if not re.fullmatch(r"[\w.-]{1,64}", name):
        raise UsageError("--name may have letters, digits, dots and dashes, 64 at most.")
    require_tmp_root(project, settings)
    journal.set_level(settings.stderr_level)
    os.chdir(project.root)
    settings = settings.with_values(max_concurrent_requests=slots, tasks="auto")
    server = Server(settings, project, environ=environ, roots=operator_roots(project, settings))
    own = sorted(filter(None, (options["--labels"] or "").split(",")))
    server.services.fleet_member = {
        "name": name, "labels": own, "slots": slots, "host": socket.gethostname(), "pid": os.getpid()
    }  # fmt: skip
    try:
        server.watch()
        tasks = server.services.fleet
        tasks.ledger.queues()  # or it cannot work
        worker = Worker(tasks, project.server_name(), name=name, slots=slots, url=url)
        for number in (signal.SIGTERM, signal.SIGINT):
            gevent.signal_handler(number, worker.stop)
        journal.write(f"mcpgreen: worker {name}, labels: {', '.join(own) or 'none'}\n".encode())
        worker.run()
    finally:
        server.stop()
    return 0
