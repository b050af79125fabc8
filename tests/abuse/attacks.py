"""What a hostile client does, one function each. All sizes, depths, numbers and types are drawn by lot.

Each is bounded: a line has at most MOST_BYTES (a little more than the server takes), a flood a few thousand messages.
An attack may leave requests open; whoever runs it waits for the server to become quiet again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.abuse.link import Json, Link, ignore
from tests.abuse.luck import MIB, Luck
from tests.abuse.scripts import hostile
from tests.support.wire import META_PREFIX, modern_meta

LONGEST_LINE = 4 * MIB - 1000  # what is longer is refused without its id
MOST_BYTES = 17 * MIB
DEEP_ROOT = "file:///tmp/" + "../tmp/" * 570
Attack = Callable[[Link, Luck], None]

ATTACKS: dict[str, Attack] = {}


def attack(function: Attack) -> Attack:
    ATTACKS[function.__name__.replace("_", "-")] = function
    return function


def raw(id: Any, method: str, params: bytes) -> bytes:
    """A request whose params are text of the attacker's."""
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}\n' % (json.dumps(id).encode(), method.encode(), params)


def note(method: str, params: Any = None) -> Json:
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def modern(link: Link, method: str, params: Json | None = None, **meta: Any) -> Json:
    """A request of the stateless era."""
    full = {**modern_meta(capabilities={"elicitation": {"form": {}}}), **meta}
    return link.request(method, {**(params or {}), "_meta": full})


# Lines that are no messages.


@attack
def nothing(link: Link, luck: Luck) -> None:
    """For comparison: what a ping takes while nobody does any harm."""
    link.wait(0.2)


@attack
def rubbish_bytes(link: Link, luck: Luck) -> None:
    lines = [luck.rng.randbytes(luck.size(1, 5000)).replace(b"\n", b"\r") for _ in range(luck.size(1, 2000))]
    odd = [b"", b"\0", b"\xef\xbb\xbf{}", b"\r\r\r", b"null", b"1", b'"', b"{}", b"[]", b"[[]]", b"\xff" * 3000]
    link.send(*lines, *(luck.pick(odd) for _ in range(luck.size(1, 3000))))


@attack
def tiny_lines(link: Link, luck: Luck) -> None:
    line = luck.pick([b"\n", b"1\n", b"{}\n", b"\r\n", b"[]\n", b'{"jsonrpc":"2.0","method":"x"}\n'])
    link.send(*[line] * luck.size(1000, 60_000))


@attack
def huge_line(link: Link, luck: Luck) -> None:
    filler = luck.pick([b"x", b" ", b"\0", b"[", b"\xf0\x9f\x9c\xa8"]) * luck.size(1000, MOST_BYTES)
    filler = filler[:MOST_BYTES]
    link.send(filler, b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + filler + b'"}}')


@attack
def dribbled_line(link: Link, luck: Luck) -> None:
    link.dribble(luck.costly_json(luck.size(10, 100_000)), pieces=luck.size(2, 60), pause_secs=0.002)


@attack
def costly_line(link: Link, luck: Luck) -> None:
    link.send(luck.costly_json(luck.size(10_000, MOST_BYTES))[:MOST_BYTES])


@attack
def costly_params(link: Link, luck: Luck) -> None:
    text = luck.costly_json(luck.size(10_000, 15 * MIB))[: 15 * MIB]
    method = luck.pick(["tools/call", "ping", "tools/list", "resources/read", "nonsense", "initialize"])
    params = luck.pick([b"%b", b'{"name":"quick","arguments":%b}', b'{"uri":%b}', b'{"cursor":%b}', b'{"_meta":%b}'])
    link.send(raw(link.new_id(), method, params % text))


@attack
def odd_numbers(link: Link, luck: Luck) -> None:
    numbers = [
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e999",
        b"-1e999",
        b"1e-999",
        b"01",
        b"-",
        b"1.",
        b"0x10",
        b"1" * 400,
    ]
    numbers.append(b"9" * luck.size(400, 1_000_000))
    for _ in range(luck.size(1, 30)):
        number = luck.pick(numbers)
        place = luck.pick([b'{"name":"strict","arguments":{"plain":[%b]}}', b'{"_meta":{"progressToken":%b}}', b"[%b]"])
        link.send(
            raw(link.new_id(), luck.pick(["tools/call", "ping"]), place % number),
            b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % number,
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}' % number,
            b'{"jsonrpc":"2.0","id":%b,"result":{}}' % number,
        )


# Messages that make no sense.


@attack
def odd_messages(link: Link, luck: Luck) -> None:
    """Every member of every kind of message may be anything."""
    messages = []
    for _ in range(luck.size(10, 500)):
        message = dict(luck.pick(_ordinary(link)))
        for _ in range(luck.rng.randint(1, 3)):
            key = luck.pick(["jsonrpc", "id", "method", "params", "result", "error", "extra"])
            if luck.chance(0.3):
                message.pop(key, None)
            else:
                message[key] = luck.odd_value()
        if message.get("method") not in ("shutdown", "exit"):
            messages.append(_encoded(message))
    link.send(*messages)


@attack
def odd_params(link: Link, luck: Luck) -> None:
    """Every param of every method may be anything."""
    messages = []
    for _ in range(luck.size(10, 500)):
        message = luck.pick(_ordinary(link))
        params = dict(message["params"])
        for _ in range(luck.rng.randint(1, 3)):
            key = luck.pick(
                [*params, "name", "arguments", "uri", "cursor", "limit", "timeoutSecs", "level", "ref", "_meta"]
            )
            if isinstance(params.get(key), dict) and luck.chance(0.6):
                params[key] = {**params[key], luck.pick([*params[key], "x", "type", "name"]): luck.odd_value()}
            else:
                params[key] = luck.odd_value()
        messages.append(_encoded({**message, "params": params}))
    link.send(*messages)


def _ordinary(link: Link) -> list[Json]:
    """One of each kind, as a client of either era sends it."""
    template = {"type": "ref/resource", "uri": "shout://{word}"}
    wanted: dict[str, Json] = {
        "tools/list": {"cursor": "x", "limit": 3},
        "tools/call": {"name": "quick", "arguments": {"a": 1}, "_meta": {"progressToken": 1}},
        "resources/list": {},
        "resources/templates/list": {},
        "resources/read": {"uri": "shout://hello"},
        "resources/subscribe": {"uri": "shout://hello"},
        "resources/unsubscribe": {"uri": "shout://hello"},
        "prompts/list": {},
        "prompts/get": {"name": "hello", "arguments": {"name": "Ada"}},
        "completion/complete": {
            "ref": template,
            "argument": {"name": "word", "value": "h"},
            "context": {"arguments": {}},
        },
        "logging/setLevel": {"level": "emergency"},
        "ping": {},
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
        "server/discover": {},
        "subscriptions/listen": {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["shout://x"]}},
        "sampling/createMessage": {},
    }
    old = [link.honest({"jsonrpc": "2.0", "id": link.new_id(), "method": m, "params": p}) for m, p in wanted.items()]
    new = [modern(link, method, params) for method, params in wanted.items()]
    notes = [
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/roots/list_changed",
        "notifications/x",
    ]
    return [*old, *new, *(link.honest(note(method, {"requestId": "none"})) for method in notes)]


def _encoded(message: Json) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _compact(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


@attack
def odd_envelopes(link: Link, luck: Luck) -> None:
    """The stateless era says everything in each message."""
    names = ["protocolVersion", "clientCapabilities", "clientInfo", "logLevel"]
    messages = []
    for _ in range(luck.size(10, 400)):
        meta = {**modern_meta(), META_PREFIX + luck.pick(names): luck.odd_value(), luck.pick("abc"): luck.odd_value()}
        method = luck.pick(["tools/list", "tools/call", "server/discover", "subscriptions/listen", "ping"])
        messages.append(
            link.honest({"jsonrpc": "2.0", "id": link.new_id(), "method": method, "params": {"_meta": meta}})
        )
    link.send(*map(_encoded, messages))


@attack
def huge_names(link: Link, luck: Luck) -> None:
    """Ids, names, cursors, addresses and tokens that are far too long."""
    for _ in range(luck.size(1, 6)):
        long = luck.pick(["x", "\0", "\ud800", "ä", "/", "%", "{", "../"]) * luck.size(1000, 2 * MIB)
        link.send(
            *luck.rng.sample(
                [
                    _encoded(link.honest({"jsonrpc": "2.0", "id": long, "method": "ping"})),
                    _encoded(link.honest({"jsonrpc": "2.0", "id": long, "method": long})),
                    _encoded(link.call(long)),
                    _encoded(link.request("tools/list", {"cursor": long})),
                    _encoded(link.request("resources/read", {"uri": long})),
                    _encoded(link.request("resources/read", {"uri": "shout://" + long})),
                    _encoded(link.request("resources/read", {"uri": "echo://" + long})),
                    _encoded(link.request("resources/read", {"uri": "file:///" + long})),
                    _encoded(link.request("resources/subscribe", {"uri": "file:///" + long})),
                    _encoded(link.request("prompts/get", {"name": "hello", "arguments": {"name": long}})),
                    _encoded(link.request("prompts/get", {"name": "hello", "arguments": {long: long}})),
                    _encoded(link.request("logging/setLevel", {"level": long})),
                    _encoded(link.honest(note("notifications/cancelled", {"requestId": long}))),
                    _encoded(link.honest(note(long, {}))),
                ],
                k=4,
            )
        )


@attack
def huge_progress_token(link: Link, luck: Luck) -> None:
    token = "t" * luck.size(1000, 12 * MIB)
    call = link.call("reporting", {}, _meta={"progressToken": token})
    link.send(call)
    if len(token) < LONGEST_LINE:
        link.wait_for(call)


@attack
def batches(link: Link, luck: Luck) -> None:
    size = luck.size(10, 300_000)
    ping = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
    members: list[Callable[[], bytes]] = [
        lambda: b",".join([b"1"] * size),
        lambda: b",".join([b"{}"] * size),
        lambda: b",".join([b"[]"] * size),
        lambda: b",".join([b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'] * (size // 10 + 1)),
        lambda: b",".join(ping % number for number in range(size // 4 + 1)),
        lambda: b",".join(
            b'{"jsonrpc":"2.0","id":"l%d","method":"tools/list"}' % number for number in range(size // 4 + 1)
        ),
        lambda: b",".join([b'{"jsonrpc":"2.0","method":"notifications/x"}'] * (size // 4 + 1)),
        lambda: b",".join([b'{"jsonrpc":"2.0","id":1,"result":{}}'] * (size // 4 + 1)),
        lambda: b",".join([b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'] * (size // 6 + 1)),
        lambda: b",".join(_encoded(link.call("quick"))[:-1] for _ in range(size // 3000 + 1)),
        lambda: b",".join(_encoded(luck.pick(_ordinary(link)))[:-1] for _ in range(size // 3000 + 1)),
    ]
    link.send((b"[" + luck.pick(members)() + b"]")[:MOST_BYTES])


@attack
def answers_to_nothing(link: Link, luck: Luck) -> None:
    """Somebody guesses the numbers under which the server asks."""
    messages = []
    for number in range(luck.size(10, 5000)):
        outcome: Json = luck.pick(
            [{"result": {"roots": [{"uri": "file:///"}]}}, {"error": {"code": 1}}, {"result": 1, "error": 2}]
        )
        messages.append(
            _encoded({"jsonrpc": "2.0", "id": luck.pick([number, str(number), None, [], -number]), **outcome})
        )
    link.send(*messages)


@attack
def forged_states(link: Link, luck: Luck) -> None:
    asking = modern(link, "tools/call", {"name": "asking", "arguments": {}})
    result = link.ask(asking).get("result", {})
    state = str(result.get("requestState", "v1.x"))
    answers = {key: {"action": "decline"} for key in result.get("inputRequests", {})}
    retries = []
    for _ in range(luck.size(2, 300)):
        place = luck.rng.randrange(len(state))
        forged = luck.pick(
            [state[:place], state[:place] + "A" + state[place + 1 :], state * 2, "v1." + "A" * 500, "v9" + state]
        )
        forged = forged if luck.chance(0.9) else luck.odd_value()
        params = {
            "name": luck.pick(["asking", "quick", "strict"]),
            "arguments": luck.pick([{}, {"a": 1}]),
            "requestState": forged,
        }
        params["inputResponses"] = luck.pick(
            [answers, {}, luck.odd_value(), {key: luck.odd_value() for key in answers}]
        )
        retries.append(_encoded(modern(link, "tools/call", params)))
    retries.append(
        _encoded(modern(link, "tools/call", {"name": "asking", "requestState": "A" * luck.size(1000, 10 * MIB)}))
    )
    link.send(*retries)
    link.send(
        modern(
            link, "tools/call", {"name": "asking", "arguments": {}, "requestState": state, "inputResponses": answers}
        )
    )


# Too much of what is allowed.


@attack
def call_flood(link: Link, luck: Luck) -> None:
    name = luck.pick(["quick", "strict", "slow", "asking"])
    calls = [link.call(name) for _ in range(luck.size(10, 1500))]
    cancels = [link.honest(note("notifications/cancelled", {"requestId": call["id"]})) for call in calls]
    if luck.chance(0.5):
        mixed = [message for pair in zip(calls, cancels, strict=True) for message in pair]
        link.send(*mixed)
    else:
        link.send(*calls)
        luck.rng.shuffle(cancels)
        link.send(*cancels)


@attack
def heavy_calls(link: Link, luck: Luck) -> None:
    """Calls that wait in line, each with a lot to remember. Some scripts are not over soon: who does not read meanwhile
    hears no ping."""
    name, most_bytes = luck.pick([("slow", 256 * MIB), ("slower", 80 * MIB)])
    text = "x" * luck.size(10_000, 4 * MIB)
    count = min(200, int(most_bytes * luck.scale) // len(text) + 2)
    calls = [link.call(name, {"text": text}) for _ in range(count)]
    link.send(*map(_encoded, calls), within_secs=120)
    link.send(*(link.honest(note("notifications/cancelled", {"requestId": call["id"]})) for call in calls))


@attack
def bursts(link: Link, luck: Luck) -> None:
    """As many of the shortest requests of one kind as fit into a pipe, and more, each of which takes its time."""
    resources = link.project.as_uri() + "/resources/"
    context = {f"k{number}": "v" for number in range(luck.size(1, 50))}
    hello, word = {"type": "ref/prompt", "name": "hello"}, {"type": "ref/resource", "uri": "shout://{word}"}
    long_path, long_name = "a/" * luck.size(1, 240), "%61" * luck.size(1, 500)
    kinds: list[tuple[str, Callable[[int], Json]]] = [
        ("resources/read", lambda n: {"uri": luck.pick(["notes:note", "echo:x", "shout://x", "x:y", "file:///x"])}),
        ("resources/read", lambda n: {"uri": f"{resources}note.txt"}),
        ("resources/read", lambda n: {"uri": f"{resources}{long_path}{n}"}),
        ("resources/subscribe", lambda n: {"uri": f"{luck.pick(['echo:', 'file:///nowhere/', resources])}{n}"}),
        ("resources/subscribe", lambda n: {"uri": f"file:///{long_path}{n}"}),
        ("resources/subscribe", lambda n: {"uri": f"{resources}{long_name}{n}"}),
        ("resources/unsubscribe", lambda n: {"uri": f"echo:{n}"}),
        ("prompts/get", lambda n: {"name": "echoing", "arguments": {"name": "Ada"}}),
        ("completion/complete", lambda n: {"ref": hello, "argument": {"name": "name", "value": "A"}}),
        (
            "completion/complete",
            lambda n: {"ref": word, "argument": {"name": "word", "value": "A"}, "context": {"arguments": context}},
        ),
        ("tools/call", lambda n: {"name": "none"}),
        ("logging/setLevel", lambda n: {"level": "emergency"}),
    ]
    method, params = luck.pick(kinds)
    requests = [link.request(method, params(number)) for number in range(luck.size(100, 4000))]
    link.send(*map(_compact, requests))
    if method == "resources/subscribe":
        uris = [request["params"]["uri"] for request in requests]
        link.send(*(_compact(link.request("resources/unsubscribe", {"uri": uri})) for uri in uris))


@attack
def busy_batches(link: Link, luck: Luck) -> None:
    """Batches whose members take their time, with subscriptions that come and go."""
    resources = link.project.as_uri() + "/resources/"
    for _ in range(luck.size(1, 5)):
        places = [f"{luck.pick(['echo:', 'file:///nowhere/', resources])}{n}" for n in range(luck.size(10, 330))]
        batch = [
            link.request(method, {"uri": uri})
            for uri in places
            for method in ("resources/subscribe", "resources/read", "resources/unsubscribe")
        ]
        link.send(json.dumps(batch).encode())


@attack
def same_ids(link: Link, luck: Luck) -> None:
    calls = [
        link.request("tools/call", {"name": "slow"}, id=luck.pick(["a", "b", 1, 1.0, "1"]))
        for _ in range(luck.size(5, 500))
    ]
    link.send(*calls)
    link.send(*(link.honest(note("notifications/cancelled", {"requestId": id})) for id in ("a", "b", 1, "1")))


@attack
def listen_flood(link: Link, luck: Luck) -> None:
    uris = [f"file:///nowhere/{number}" for number in range(luck.size(1, 200))]
    filters = [{"toolsListChanged": True}, {"resourceSubscriptions": uris}, {"resourceSubscriptions": ["shout://x"]}]
    listens = [
        modern(link, "subscriptions/listen", {"notifications": luck.pick(filters)}) for _ in range(luck.size(10, 5000))
    ]
    link.send(*listens)
    link.send(*(link.honest(note("notifications/cancelled", {"requestId": listen["id"]})) for listen in listens))


@attack
def subscribe_flood(link: Link, luck: Luck) -> None:
    """Most to what only a script can tell, or to what is not there."""
    places = ["shout://", "echo://", "file:///nowhere/", f"{link.project.as_uri()}/resources/none/"]
    uris = [f"{luck.pick(places)}{number}" for number in range(luck.size(10, 600))]
    link.send(*(link.request("resources/subscribe", {"uri": uri}) for uri in uris))
    link.wait(0.3)
    link.send(*(link.request("resources/unsubscribe", {"uri": uri}) for uri in uris))


@attack
def colliding_ids(link: Link, luck: Luck) -> None:
    """Numbers that all have the same hash: whoever keeps them in a table looks through all of them."""
    numbers = [(2**61 - 1) * number for number in range(1, luck.size(10, 5000))]
    if luck.chance(0.5):
        _call_strict(link, {"unique": numbers})
        return
    listens = [
        {**modern(link, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}), "id": number}
        for number in numbers
    ]
    link.send(*listens)
    link.send(*(link.honest(note("notifications/cancelled", {"requestId": number})) for number in numbers))


@attack
def filled_prompt(link: Link, luck: Luck) -> None:
    """An argument that its prompt repeats."""
    name = luck.pick(["x", "\0", "ä", "{{name}}"]) * luck.size(10, MIB)
    get = link.request("prompts/get", {"name": "echoing", "arguments": {"name": name}})
    link.send(_encoded(get))
    link.wait_for(get)


@attack
def repeated_greetings(link: Link, luck: Luck) -> None:
    about = {
        "protocolVersion": luck.pick(["2024-11-05", "x"]),
        "capabilities": {"x": luck.odd_value()},
        "clientInfo": {},
    }
    greetings = [link.request(luck.pick(["initialize", "server/discover"]), about) for _ in range(luck.size(2, 2000))]
    link.send(*map(_encoded, greetings), *[link.honest(note("notifications/initialized"))] * 50)


@attack
def hostile_roots(link: Link, luck: Luck) -> None:
    """The client changes its mind all the time, and names what nobody can use."""
    roots = [
        {"uri": luck.pick(["file:///", "file:///proc", "x", "file://host/x", "file:///" + "a/" * 2000, DEEP_ROOT])}
    ]
    many = luck.pick([roots, roots * luck.size(10, 20_000), roots * 256, [luck.odd_value()] * 100, luck.odd_value()])
    link.answer = lambda request: {"jsonrpc": "2.0", "id": request["id"], "result": {"roots": many}}
    link.send(*[link.honest(note("notifications/roots/list_changed"))] * luck.size(1, 2000))
    uris = ["file:///proc/self/environ", "file:///etc/passwd", "file:///dev/zero", "file:///sys/kernel/uevent_seqnum"]
    link.send(*(link.request("resources/read", {"uri": uri}) for uri in uris))
    link.wait(0.1)


@attack
def unread_replies(link: Link, luck: Luck) -> None:
    """Requests for large things by somebody who does not read the answers."""
    big = link.request("resources/read", {"uri": "notes:big"})
    kinds = [big, link.request("tools/list"), link.call("quick"), link.call("chatty")]
    chosen = luck.pick(kinds)
    count = luck.size(5, 40 if chosen is big else 2000)
    link.offer(*(_encoded({**chosen, "id": link.new_id()}) for _ in range(count)), secs=0.5 + luck.scale)
    link.settle()


@attack
def odd_addresses(link: Link, luck: Luck) -> None:
    """Ways out of the directories that are served, and patterns that take long to match."""
    parts = [
        "..",
        "%2e%2e",
        "%2f",
        "\\",
        "/",
        "//",
        "etc",
        "passwd",
        ".env",
        "server.d",
        "env",
        "%00",
        "?",
        "#",
        ":",
        "C:",
        "{",
        "}",
    ]
    messages = []
    for _ in range(luck.size(10, 400)):
        scheme = luck.pick(
            ["file://", "file:///", "shout://", "echo://", "ui://", "https://", "git+https://", "FILE:", ""]
        )
        uri = scheme + "".join(luck.pick(parts) for _ in range(luck.size(1, 60)))
        messages.append(link.request(luck.pick(["resources/read", "resources/subscribe"]), {"uri": uri}))
    link.send(*messages)


@attack
def deep_addresses(link: Link, luck: Luck) -> None:
    """Paths of thousands of steps: whoever wants to know where one leads looks at each."""
    step = luck.pick(["a/", "./", "../", "tmp/../", "%61/", "proc/self/root/"])
    start = luck.pick(["file:///", "file:///tmp/", f"{link.project.as_uri()}/resources/", "file:"])
    uri = (start + step * luck.size(10, 4000))[: luck.pick([8000, 20_000])]
    method = luck.pick(["resources/read", "resources/subscribe", "resources/unsubscribe"])
    link.send(*(link.request(method, {"uri": f"{uri}{number}"}) for number in range(luck.size(1, 200))))


@attack
def completion_flood(link: Link, luck: Luck) -> None:
    refs = [{"type": "ref/prompt", "name": "hello"}, {"type": "ref/resource", "uri": "shout://{word}"}]
    context = {"arguments": {f"k{number}": "v" * 50 for number in range(luck.size(1, 2000))}}
    argument = {"name": luck.pick(["name", "word", "x"]), "value": "v" * luck.size(1, 200_000)}
    params = {"ref": luck.pick(refs), "argument": argument, "context": context}
    link.send(*(_encoded(link.request("completion/complete", params)) for _ in range(luck.size(1, 50))))


# Arguments that take long to check.


@attack
def unique_items(link: Link, luck: Luck) -> None:
    count = luck.size(10, 6000)
    kinds: list[Callable[[int], Any]] = [
        lambda n: {"n": n},
        lambda n: [n, [n]],
        lambda n: {"a": {"b": n}},
        lambda n: n / 2,
        str,
    ]
    kind = luck.pick(kinds)
    _call_strict(link, {"unique": [kind(number) for number in range(count)]})


@attack
def slow_pattern(link: Link, luck: Luck) -> None:
    _call_strict(link, {luck.pick(["mail", "slow"]): "a" * luck.rng.randint(5, 32) + "!"})


@attack
def many_words(link: Link, luck: Luck) -> None:
    _call_strict(link, {"words": [luck.pick(["a", "word", "Word", ""]) for _ in range(luck.size(10, 300_000))]})


@attack
def long_arguments(link: Link, luck: Luck) -> None:
    kinds: list[Callable[[int], Json]] = [
        lambda n: {"plain": list(range(n))},
        lambda n: {"plain": ["x"] * n},
        lambda n: {"text": "x" * (n * 4)},
        lambda n: {f"k{number}": number for number in range(n)},
        lambda n: {"tree": {f"k{number}": {"tree": {}} for number in range(n // 4)}},
        lambda n: {"choice": [{"kind": "c"}] * (n // 8)},
    ]
    _call_strict(link, luck.pick(kinds)(luck.size(10, 2_500_000)))


def _call_strict(link: Link, arguments: Json) -> None:
    call = link.call("strict", arguments)
    line = _encoded(call)[:MOST_BYTES]
    link.send(line)
    if len(line) < LONGEST_LINE:
        link.wait_for(call)


# Scripts.

ENDLESS = ("asks-without-end",)  # its time stands still while it asks


def _script_attack(deed: str) -> Attack:
    def run(link: Link, luck: Luck) -> None:
        if luck.chance(0.3):
            link.answer = ignore
        name = "declaring" if deed == "undeclared-output" else "hostile"
        calls = [
            link.call(
                name,
                {"deed": deed, "seed": luck.rng.getrandbits(30), "scale": luck.scale, "mark": link.mark},
                timeoutSecs=luck.pick([0.3, 1.5, 5 * luck.scale + 1]),
                **({"_meta": {"progressToken": "p"}} if luck.chance(0.5) else {}),
            )
            for _ in range(luck.pick([1, 1, 1, 3]))
        ]
        link.send(*calls)
        if luck.chance(0.3) or deed in ENDLESS:
            link.wait(luck.rng.uniform(0, 2 if deed in ENDLESS else 0.2))
            link.send(*(link.honest(note("notifications/cancelled", {"requestId": call["id"]})) for call in calls))
        else:
            link.wait_for(*calls)
        afterwards = link.call("quick")
        link.send(afterwards)
        link.wait_for(afterwards)

    run.__doc__ = hostile.DEEDS[deed].__doc__
    return run


for _name in hostile.DEEDS:
    ATTACKS[f"script: {_name}"] = _script_attack(_name)
