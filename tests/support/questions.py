"""Questions and answers for tests, scripts that ask without an SDK, and a client that comes back with answers."""

from __future__ import annotations

from typing import Any

from tests.support.client import Client

Json = dict[str, Any]

FORM: Json = {"elicitation": {"form": {}}}
URL: Json = {"elicitation": {"url": {}}}
SAMPLING: Json = {"sampling": {}}
ROOTS: Json = {"roots": {}}
ALL: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}}  # but roots

# A script without an SDK, in Python; `ask` waits on a FIFO, or for a line in a resident process, which has `call`.
# What it says goes to stdout as JSON.
ASK = """
import json, os, sys, time
numbers = iter(range(1, 1000))
def control(line):
    with open(os.environ["MCP_PROGRESS_STREAM"], "a") as stream:
        stream.write(json.dumps(line) + "\\n")
def post(questions, **more):
    if "call" in globals():
        number = next(numbers)
        control({"ask": questions, "id": number, "call": call, **more})
        return number
    path = f"{os.environ['MCP_ASK_REPLY']}.{os.getpid()}.{next(numbers)}"
    os.mkfifo(path, 0o600)
    control({"ask": questions, "reply": path, **more})
    return path
def read(path):
    if "call" in globals():
        while (line := json.loads(next(calls))).get("id") != path:
            "cancel" in line and sys.exit("cancelled")
        return line["reply"]
    with open(path) as fifo:
        replies = json.loads(fifo.read())
    os.unlink(path)
    return replies
def ask(questions, **more):
    return read(post(questions, **more))
def form(message, **fields):
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}
def note(name, text=""):
    with open(os.path.join(os.environ["MCPGREEN_PROJECT_ROOT"], name), "a") as file:
        file.write(f"{text}\\n")
def wait_for(name):
    while not os.path.exists(os.path.join(os.environ["MCPGREEN_PROJECT_ROOT"], name)):
        time.sleep(0.01)
TEXT = {"type": "string"}
"""


def form(message: str, **fields: Json) -> Json:
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def url(message: str, address: str) -> Json:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": address}}


def sample(text: str, **more: Any) -> Json:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 10, **more}}


def accept(**content: Any) -> Json:
    return {"action": "accept", "content": content}


def printing(question: Json) -> str:
    """The body of a Python tool that prints its question, in two rounds, instead of asking and waiting."""
    return f"""
import json, os
answers = json.loads(os.environ.get("MCP_INPUT_RESPONSES_JSON") or "{{}}")
state = os.environ.get("MCP_REQUEST_STATE", "")
if len(state) < 2:
    asked = {{"who": {question!r}}}
    print(json.dumps({{"resultType": "input_required", "inputRequests": asked, "requestState": state + "x"}}))
else:
    print(state, answers["who"]["content"]["name"], end="")
"""


def said(text: str) -> Json:
    """What a model answered."""
    return {"role": "assistant", "content": {"type": "text", "text": text}, "model": "m", "stopReason": "endTurn"}


class Talk:
    """One request of a stateless client, through all its rounds: the same params each time, a new id."""

    def __init__(self, client: Client, method: str = "tools/call", /, **params: Any) -> None:
        self.client = client
        self.method = method
        self.params = params
        self.asked: Json = {}
        self.state: Any = None

    def begin(self, **options: Any) -> Json:
        return self._note(self.client.request(self.method, self.params, **options))

    def begun(self) -> Talk:
        self.begin()
        return self

    def answer(self, *answers: Json, state: Any = ..., **options: Any) -> Json:
        """Come back with answers, in the order of the open questions."""
        return self.come_back(dict(zip(self.asked, answers, strict=False)), state=state, **options)

    def come_back(self, responses: Any, *, state: Any = ..., **options: Any) -> Json:
        return self._note(self.client.request(self.method, self.retry_params(responses, state=state), **options))

    def retry_params(self, responses: Any, *, state: Any = ...) -> Json:
        state = self.state if state is ... else state
        return {**self.params, "inputResponses": responses, **({} if state is None else {"requestState": state})}

    def _note(self, answer: Json) -> Json:
        """The result or the error; open questions are remembered."""
        if "error" in answer:
            return answer["error"]
        result = answer["result"]
        if result["resultType"] == "input_required":
            self.asked, self.state = result["inputRequests"], result["requestState"]
        return result
