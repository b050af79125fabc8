"""The shapes of messages about tasks, of both wires: the official types have none for the extension."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]

MODERN = "2026-07-28"
EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
COMMON = {"taskId", "status", "createdAt", "lastUpdatedAt"}
PAYLOAD_OF = {"completed": {"result"}, "failed": {"error"}, "input_required": {"inputRequests"}}
STATUSES = {"working", "input_required", "completed", "failed", "cancelled"}
NOTIFICATIONS = {"notifications/tasks": MODERN, "notifications/tasks/status": "2025-11-25"}


def is_about_task(method: str, result: Json) -> bool:
    return method.startswith("tasks/") or (
        method == "tools/call" and (result.get("resultType") == "task" or "task" in result)
    )


def fault_of_result(method: str, result: Json, revision: str | None) -> str:
    """Say what is wrong with the result of `tasks/...`, or with a handle."""
    body = {key: value for key, value in result.items() if key != "_meta"}
    if revision == MODERN:
        kind = body.pop("resultType", None)
        if kind != ("task" if method == "tools/call" else "complete"):
            return f"resultType {kind}"
        if method in ("tasks/update", "tasks/cancel"):
            return f"not empty: {body}" if body else ""
        return _fault_of_task(body, "ttlMs", "pollIntervalMs", has_payload=method == "tasks/get")
    if method == "tasks/list":
        faults = [_fault_of_task(each, "ttl", "pollInterval") for each in body.pop("tasks")]
        return next(filter(None, faults), "") or (f"unknown: {body}" if body.keys() - {"nextCursor"} else "")
    if method == "tasks/result":
        return "" if RELATED in result.get("_meta", {}) else "no related task"
    return _fault_of_task(body.get("task", {}) if method == "tools/call" else body, "ttl", "pollInterval")


def fault_of_notification(method: str, params: Json) -> str:
    body = {key: value for key, value in params.items() if key != "_meta"}
    if method == "notifications/tasks":
        return _fault_of_task(body, "ttlMs", "pollIntervalMs", has_payload=True)
    return "a related task" if "_meta" in params else _fault_of_task(body, "ttl", "pollInterval")


def _fault_of_task(task: Json, ttl: str, poll_interval: str, *, has_payload: bool = False) -> str:
    payload = PAYLOAD_OF.get(str(task.get("status")), set()) if has_payload else set()
    if task.keys() - {"statusMessage", poll_interval} != COMMON | {ttl} | payload:
        return f"members: {sorted(task)}"
    if task["status"] not in STATUSES or not all(TIME.fullmatch(task[key]) for key in ("createdAt", "lastUpdatedAt")):
        return f"status or time: {task}"
    has_numbers = type(task.get(poll_interval, 1)) is int and (task[ttl] is None or type(task[ttl]) is int)
    return "" if has_numbers and type(task.get("statusMessage", "")) is str else f"types: {task}"
