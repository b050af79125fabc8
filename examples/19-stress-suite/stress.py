#!/usr/bin/env python3
"""Load a server with calls, cancel some of them, and check that every other call got an answer and nothing is left.

python3 stress.py [CALLS]
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

PATIENCE_SECS = 60
SLOW = 8
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "stress", "version": "1"}}


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def until(condition):
    give_up_at = time.monotonic() + PATIENCE_SECS
    while not condition():
        if time.monotonic() > give_up_at:
            sys.exit("waited too long")
        time.sleep(0.02)


def send(method, id=None, **params):
    message = {"jsonrpc": "2.0", "method": method, "params": params, **({} if id is None else {"id": id})}
    server.stdin.write(json.dumps(message) + "\n")


calls = int(sys.argv[1]) if sys.argv[1:] else 200
command = ["mcpgreen", "serve", "--project-root", "."]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", bufsize=1)
send("initialize", "hello", **HELLO)
server.stdout.readline()
send("notifications/initialized")

for number in range(SLOW):
    send("tools/call", f"slow {number}", name="slow")
until(lambda: len(list(Path().glob("slow.*.pid"))) == SLOW)
for number in range(calls):
    send("tools/call", number, name="quick")
for number in range(SLOW):
    send("notifications/cancelled", requestId=f"slow {number}")
answers = [json.loads(server.stdout.readline()) for _ in range(calls)]
started = [int(path.stem.split(".")[1]) for path in Path().glob("slow.*.pid")]
until(lambda: not any(map(is_alive, started)))
server.stdin.close()
rest = server.stdout.read()
status = server.wait()

print(f"{calls} quick calls alongside {SLOW} slow ones: {len({answer['id'] for answer in answers})} answers")
print(f"{SLOW} slow calls cancelled: {len(rest.splitlines())} answers, {sum(map(is_alive, started))} processes left")
print(f"the server exited with status {status}")
