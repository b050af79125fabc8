"""A fleet of one test: a Redis, servers and workers as processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mcpgreen.fleet.ledger import RedisTaskStore
from tests.support.client import Client, Speak
from tests.support.constants import variables_of
from tests.support.fleet import Worker
from tests.support.project import ProjectBuilder
from tests.support.redis import Redis, running_redis
from tests.support.wire import LATEST_HANDSHAKE

LEASE_SECS = 2
QUICK = {"fleet_lease_secs": LEASE_SECS, "fleet_wait_secs": 2}


class Fleet:
    def __init__(self, redis: Redis, project: ProjectBuilder, speak: Speak) -> None:
        self.redis = redis
        self.project = project
        self._speak = speak
        self.workers: list[Worker] = []

    def worker(self, *arguments: str, root: Any = None, **settings: Any) -> Worker:
        env = variables_of({**QUICK, **settings})
        self.workers.append(Worker(root or self.project.root, self.redis.url, env=env, arguments=arguments))
        return self.workers[-1].ready()

    def client(self, revision: str = LATEST_HANDSHAKE, **options: Any) -> Client:
        return self._speak(revision, fleet_url=self.redis.url, **{**QUICK, **options})

    def ledger(self) -> RedisTaskStore:
        return RedisTaskStore(self.redis.url, "test-project")


@pytest.fixture
def redis() -> Iterator[Redis]:
    with running_redis() as started:
        yield started


@pytest.fixture
def fleet(redis: Redis, project: ProjectBuilder, speak: Speak) -> Iterator[Fleet]:
    made = Fleet(redis, project, speak)
    yield made
    for worker in made.workers:
        worker.end()
