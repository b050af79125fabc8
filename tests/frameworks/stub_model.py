"""A stand-in for a model: an HTTP server on loopback that asks for tool calls, and keeps what it is told of them.

It speaks as OpenAI (responses) and Gemini do, only so far as the frameworks of docs/frameworks.md listen. A framework
finds it by the variables that its own client library reads, so a program needs no change to be tried.

Rule: what to answer depends on the request alone. Without results, the calls are asked for, all at once; with results,
the conversation is over.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Json = dict[str, Any]

LAST_WORDS = "All tools have been called."
USAGE = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), 1)
DETAILS = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}


class Conversation(NamedTuple):
    """What one run of an agent told the model: the tools that it may call, and then what they gave, by name."""

    tools: dict[str, Json]
    results: dict[str, Json]


class StubModel:
    """Use it as a context manager. `calls` are the arguments by the name of the tool."""

    def __init__(self, calls: Mapping[str, Json]) -> None:
        self.calls = calls
        self.conversations: list[Conversation] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def environment(self) -> dict[str, str]:
        """What leads the client libraries here, and keeps frameworks from calling home."""
        url = f"http://127.0.0.1:{self._server.server_port}"
        return {
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "stub",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GOOGLE_API_KEY": "stub",
            "LANGSMITH_TRACING": "false",
            "MASTRA_TELEMETRY_DISABLED": "1",
        }

    def __enter__(self) -> StubModel:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, request: Json) -> Json:
        is_gemini = "GenerateContent" in path or "generateContent" in path
        tools, results = (_gemini_parts if is_gemini else _openai_parts)(request)
        if results:
            named = {self._plain(name): result for name, result in results.items()}
            self.conversations.append(Conversation({self._plain(name): tool for name, tool in tools.items()}, named))
            calls = {}
        else:
            calls = {name: self.calls[self._plain(name)] for name in tools if self._plain(name) in self.calls}
        return (_gemini_answer if is_gemini else _openai_answer)(calls)

    def _plain(self, name: str) -> str:
        """Without what a framework puts before the name, if it does."""
        return next((known for known in self.calls if name.endswith(known)), name)


def _openai_parts(request: Json) -> tuple[dict[str, Json], dict[str, Json]]:
    tools = {tool["name"]: tool for tool in request.get("tools", [])}
    told = [item for item in request["input"] if item.get("type") == "function_call_output"]
    return tools, {item["call_id"].removeprefix("call-"): item for item in told}


def _openai_answer(calls: Mapping[str, Json]) -> Json:
    output: list[Json] = [
        {
            "type": "function_call",
            "id": f"fc-{name}",
            "call_id": f"call-{name}",
            "name": name,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        for name, arguments in calls.items()
    ]
    text = {"type": "output_text", "text": LAST_WORDS, "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": uuid.uuid4().hex,  # LangGraph takes two answers with one id for the same
        "object": "response",
        "created_at": 0,
        "model": "stub",
        "status": "completed",
        "output": output or [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {**USAGE, **DETAILS},
    }


def _gemini_parts(request: Json) -> tuple[dict[str, Json], dict[str, Json]]:
    declared = [tool for tools in request.get("tools", []) for tool in tools.get("functionDeclarations", [])]
    told = [
        part["functionResponse"] for each in request["contents"] for part in each["parts"] if "functionResponse" in part
    ]
    return {tool["name"]: tool for tool in declared}, {item["name"]: item for item in told}


def _gemini_answer(calls: Mapping[str, Json]) -> Json:
    parts: list[Json] = [{"functionCall": {"name": name, "args": arguments}} for name, arguments in calls.items()]
    content = {"role": "model", "parts": parts or [{"text": LAST_WORDS}]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": "stub"}


def _handler_for(model: StubModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send({}, is_stream=False)  # Gemini is asked for what it knows of a model

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = model.answer(self.path, request)
            self._send(answer, is_stream="streamGenerateContent" in self.path)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing: pytest shows what failed."""

        def _send(self, answer: Json, *, is_stream: bool) -> None:
            body = json.dumps(answer).encode()
            if is_stream:
                body = b"data: " + body + b"\r\n\r\n"
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")  # libraries keep connections, and the next program has another loop
            self.end_headers()
            self.wfile.write(body)

    return Handler
