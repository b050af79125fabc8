"""`notifications/tasks`: tell a listen about each change of the tasks that it names."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mcpgreen.errors import InvalidParams, RpcError
from mcpgreen.features.tasks import wires
from mcpgreen.protocol import revision_fields
from mcpgreen.tasks.life import Task
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from mcpgreen.features.call import Call
    from mcpgreen.features.watching.subscriptions import Listen

MAX_IDS = 1000  # of one listen


def wanted_ids(call: Call) -> list[str]:
    """Return the ids that a listen names, each once. Raises MissingClientCapability and InvalidParams."""
    ids = call.params["notifications"]["taskIds"]
    wires.require_declared(call)
    if type(ids) is not list or len(ids) > MAX_IDS or not all(type(each) is str for each in ids):
        raise InvalidParams(f"notifications.taskIds must be an array of at most {MAX_IDS} strings.")
    return list(dict.fromkeys(ids))


class TaskNotices:
    """Tells one listen about those of the tasks that its caller may see. To make one may wait."""

    def __init__(self, listen: Listen, ids: list[str]) -> None:
        self._listen = listen
        self._tasks = listen.call.services.tasks
        self.ids: list[str] = []
        for task_id in ids:
            with suppress(InvalidParams):  # there is no such task
                task = self._tasks.find(listen.call, task_id)
                self.ids.append(task_id)
                self._tasks.watch(task_id, self.tell)
                self.tell(task)  # how it is now; held back until the listen is acknowledged

    def tell(self, task: Task) -> None:
        with suppress(RpcError):  # its result has expired
            meta = jsontext.dumps({revision_fields.SUBSCRIPTION_ID: self._listen.call.id})
            line = b'{"jsonrpc":"2.0","method":"notifications/tasks","params":%b,"_meta":%b}}'
            self._listen.send(line % (wires.detailed(self._tasks, task)[:-1], meta))

    def close(self) -> None:
        for task_id in self.ids:
            self._tasks.unwatch(task_id, self.tell)
