"""A tool that does harm: `deed` says which, `seed` how, `scale` (0 to 1) how much. Run as a script, by the server.

Each deed is bounded by itself, also if nobody stops it: no more than LIMIT_BYTES are written, LIMIT_PROCESSES started,
and nothing lives longer than LIFE_SECS. `mark` stands in the command line of whatever is left behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable

LIMIT_BYTES = 64 << 20
LIMIT_PROCESSES = 1500
LIFE_SECS = 60.0
FORGED = "forged-by-a-script"  # as tests.abuse.link knows it

ARGUMENTS = json.loads(os.environ.get("MCP_TOOL_ARGS_JSON") or "{}")
RNG = random.Random(ARGUMENTS.get("seed", 0))
SCALE = float(ARGUMENTS.get("scale", 1.0))
MARK = str(ARGUMENTS.get("mark", "0"))
CONTROL = int(os.environ.get("MCP_LOG_STREAM", "/dev/fd/2").rpartition("/")[2])
ERROR_FILE = os.environ.get("MCP_TOOL_ERROR_FILE", "")
RESOURCES_FILE = os.environ.get("MCP_TOOL_RESOURCES_FILE", "")
REPLY = os.environ.get("MCP_ASK_REPLY", "")
STATE_DIR = os.path.dirname(ERROR_FILE)

DEEDS: dict[str, Callable[[], None]] = {}


def deed(function: Callable[[], None]) -> Callable[[], None]:
    DEEDS[function.__name__.replace("_", "-")] = function
    return function


def size(low: int, high: int) -> int:
    """Small ones as often as large ones."""
    high = max(low + 1, int(high * SCALE))
    return min(LIMIT_BYTES, int(low * (high / low) ** RNG.random()))


def write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        return


def costly_text(length: int) -> bytes:
    """Text that costs a reader more than its bytes."""
    kinds: list[Callable[[int], bytes]] = [
        lambda n: b"[" + b"[]," * (n // 3) + b"[]]",
        lambda n: b"[" + b"{}," * (n // 3) + b"{}]",
        lambda n: b"[" + b"[]," * (n // 3),
        lambda n: b"[" * min(n, 1_000_000),
        lambda n: b'{"a":' * (n // 5) + b"1" + b"}" * (n // 5),
        lambda n: b"[" + b"NaN," * (n // 4) + b"NaN]",
        lambda n: b"[" + b"1e999," * (n // 6) + b"1]",
        lambda n: b'{"content":[' + b'{"type":"text","text":""},' * (n // 26) + b'{"type":"text","text":"x"}]}',
        lambda n: b'{"content":[{"type":"text","text":"' + b"\\u0000" * (n // 6) + b'"}]}',
        lambda n: b'["' + b"\\ud800" * (n // 6) + b'"]',
        lambda n: b"{" + b",".join(b'"k%d":0' % i for i in range(n // 12)) + b"}",
        lambda n: b'{"a":1}\n' * (n // 8),
        lambda n: b"\0" * n,
        lambda n: b"\xff\xfe" * (n // 2),
        lambda n: b"x" * n,
        lambda n: b"\n" * n,
    ]
    return RNG.choice(kinds)(length)


@deed
def loud_stdout() -> None:
    write(1, costly_text(size(1000, 30 << 20)))


@deed
def costly_stdout() -> None:
    """Below the limit of the output, so that it is looked into."""
    write(1, costly_text(size(100_000, 9 << 20)))


@deed
def loud_stderr() -> None:
    write(2, costly_text(size(1000, 30 << 20)))
    sys.exit(RNG.choice([0, 1, 99, 255]))


@deed
def small_packets() -> None:
    """A pipe that hands over each write by itself: a few bytes at a time, as often as the server looks."""
    fd = RNG.choice([1, 2, CONTROL])
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_DIRECT | os.O_WRONLY)
    for _ in range(size(1000, 1_000_000)):
        os.write(fd, b"ab")


def full_folder(path: str) -> None:
    os.mkdir(path)
    for number in range(size(10, 60_000)):
        os.mkdir(f"{path}/{number}")


def deep_folder(path: str) -> None:
    home = os.open(".", os.O_RDONLY)
    os.mkdir(path)
    os.chdir(path)
    for _ in range(size(10, 3000)):
        os.mkdir("d")
        os.chdir("d")
    os.fchdir(home)


def socket_file(path: str) -> None:
    place = os.path.relpath(path)
    if len(place) < 100:
        socket.socket(socket.AF_UNIX).bind(place)


def sparse_file(path: str) -> None:
    with open(path, "wb") as file:
        file.truncate(RNG.choice([1 << 20, 1 << 30, 1 << 40]))


def locked_file(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0))


def odd_file(path: str) -> None:
    """Put something at this path that is hardly a file."""
    makers: list[Callable[[str], None]] = [os.mkfifo, os.mkdir, full_folder, deep_folder]
    makers += [socket_file, sparse_file, locked_file]
    if RNG.random() < 0.6:
        RNG.choice(makers)(path)
    else:
        os.symlink(RNG.choice([path, "/dev/zero", "/etc/passwd", "/nowhere"]), path)


@deed
def odd_error_file() -> None:
    odd_file(ERROR_FILE)


@deed
def costly_error_file() -> None:
    with open(ERROR_FILE, "wb") as file:
        text = costly_text(size(1000, 20 << 20))
        if RNG.random() < 0.3:
            text = b'{"code":-32602,"message":"' + b"m" * RNG.choice([1, 3_000_000]) + b'","data":' + text + b"}"
        file.write(text)


@deed
def odd_resources_file() -> None:
    odd_file(RESOURCES_FILE)


@deed
def costly_resources_file() -> None:
    with open(RESOURCES_FILE, "wb") as file:
        file.write(costly_text(size(1000, 20 << 20)))


@deed
def many_resources() -> None:
    """Far more files than anybody wants, and odd ones among them."""
    base = os.getcwd()
    odd = f"{base}/resources/odd.{os.getpid()}"
    odd_file(odd)
    paths = [odd, "/proc/self/environ", "/dev/zero", "/etc/shadow", "../../..", f"{base}/server.d/env", f"{base}/.env"]
    paths += [f"{base}/resources/note.txt", "\0", "x" * 5000, f"{base}/resources/big.txt"]
    with open(RESOURCES_FILE, "w", encoding="utf-8", errors="replace") as file:
        count = size(10, 100_000)
        if RNG.random() < 0.5:
            json.dump(
                [{"path": RNG.choice(paths), "mimeType": "m" * 10, "uri": "u:" + "x" * 50} for _ in range(count)], file
            )
        else:
            file.writelines(f"{RNG.choice(paths)}\tm\tu:x\n" for _ in range(count))
    write(1, b"done\n")
    os.system(f"rm -rf {odd}")


@deed
def control_flood() -> None:
    """Reports without end: useful ones, useless ones, half ones."""
    lines = [
        b'{"method":"notifications/progress","params":{"progress":%d,"message":"%b"}}',
        b'{"method":"notifications/message","params":{"level":"error","data":[%d,"%b"]}}',
        b'{"method":"notifications/message","params":{"level":"error","logger":"%d","data":1e999}}%b',
        b'{"ask":%d,"reply":"%b"}',
        b"%d %b",
        b'[%d,"%b",[[[[[[[[',
        b"%.0d%.0b\n",
    ]
    line = RNG.choice(lines)
    filler = b"x" * size(1, 100_000)
    total = size(100_000, 32 << 20)
    written = number = 0
    while written < total:
        data = line % (number, filler) + b"\n"
        write(CONTROL, data)
        written += len(data)
        number += 1
    write(CONTROL, costly_text(size(1000, 3 << 20)))


@deed
def asks_without_end() -> None:
    """Questions that nobody can answer as fast as they come, with places for replies of all sorts."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    form = {"mode": "form", "message": "m" * size(1, 20_000), "requestedSchema": schema}
    until = time.monotonic() + 3 * SCALE
    kind = RNG.choice(["none", "fifo", "folder", "elsewhere", "same", "odd"])
    for number in range(size(50, 100_000)):
        reply = f"{REPLY}.{os.getpid()}.{0 if kind == 'same' else number}"
        if kind == "fifo":
            os.mkfifo(reply)
        elif kind == "folder" and number < 100:
            os.mkdir(reply)
        elif kind == "elsewhere":
            reply = "/tmp/elsewhere"
        elif kind == "odd" and number < 20:
            odd_file(reply)
        ask = {f"q{key}": {"method": "elicitation/create", "params": form} for key in range(RNG.choice([1, 1, 5, 40]))}
        write(
            CONTROL, json.dumps({"ask": ask, "reply": reply, "timeoutSecs": RNG.choice([1, 60, 1e9])}).encode() + b"\n"
        )
        if time.monotonic() > until:
            break
    if RNG.random() < 0.5:
        time.sleep(LIFE_SECS)


@deed
def prints_questions() -> None:
    """The stateless style, with more than fits."""
    count = size(1, 2000)
    state = "s" * size(1, 9 << 20)
    question = {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": {}}}
    questions = {f"q{number}": question for number in range(count)}
    print(json.dumps({"resultType": "input_required", "inputRequests": questions, "requestState": state}))


@deed
def fork_chain() -> None:
    """A parent that is gone before anybody can look twice, again and again."""
    stop_at = time.monotonic() + min(3.0, 0.1 + 3 * SCALE * RNG.random())
    if os.fork():
        write(1, b"done\n")
        os._exit(0)
    os.closerange(0, 256)
    if RNG.random() < 0.5:
        shed_marks()
    while time.monotonic() < stop_at:
        if os.fork():
            os._exit(0)
        if RNG.random() < 0.5:
            os.setsid()
        time.sleep(RNG.choice([0, 0.001, 0.01]))
    linger()


@deed
def fork_fan() -> None:
    """Many children at once, in groups and sessions of their own."""
    for _ in range(size(2, LIMIT_PROCESSES)):
        if os.fork() == 0:
            if RNG.random() < 0.5:
                os.setsid()
            linger()
    if RNG.random() < 0.5:
        linger()
    write(1, b"done\n")


@deed
def daemon() -> None:
    """The old way to be forgotten, without the marks by which one could be known."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 256)
            shed_marks()
            linger()
        os._exit(0)
    os.wait()
    write(1, b"done\n")


def shed_marks() -> None:
    """Nothing of the call's is left: neither limits nor variables nor descriptors."""
    hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    resource.setrlimit(resource.RLIMIT_RTTIME, (hard, hard))
    if RNG.random() < 0.5:
        os.execve("/bin/sleep", ["sleep", MARK], {})


def linger() -> None:
    os.execve("/bin/sleep", ["sleep", MARK], os.environ.copy())


@deed
def closed_pipes() -> None:
    """Silent, and not over."""
    for fd in RNG.sample([1, 2, CONTROL], k=RNG.randint(1, 3)):
        os.close(fd)
    time.sleep(RNG.choice([0, 0.2, LIFE_SECS]))


@deed
def full_pipes_and_stopped() -> None:
    """Half a result, and then a stop."""
    write(RNG.choice([1, 2, CONTROL]), b"x" * size(1000, 2 << 20))
    os.kill(os.getpid(), signal.SIGSTOP)


@deed
def stubborn() -> None:
    """Deaf to every signal that can be ignored, with children of the same kind."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, signal.SIG_IGN)
    for _ in range(RNG.randint(0, 3)):
        if os.fork() == 0:
            linger()
    time.sleep(LIFE_SECS)


@deed
def writes_to_the_server() -> None:
    """Into everything that the server has open, as far as the system lets us. It lets root."""
    if os.geteuid() == 0:
        return
    parent = os.getppid()
    line = (
        json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": FORGED}}).encode() + b"\n"
    )
    for name in ("fd", "environ", "mem"):
        try:
            entries = os.listdir(f"/proc/{parent}/fd") if name == "fd" else [""]
        except OSError:
            continue
        for entry in entries:
            path = f"/proc/{parent}/{name}/{entry}".rstrip("/")
            try:
                if name != "fd":
                    with open(path, "rb") as file:
                        file.read(16)
                    write(1, FORGED.encode() + b" could read " + name.encode())
                    continue
                target = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                continue
            write(target, line)
            os.close(target)


@deed
def full_state_directory() -> None:
    """Files without number or end beside those of other calls."""
    with open(f"{STATE_DIR}/filler.large.{os.getpid()}", "wb") as file:
        file.write(b"x" * size(1000, 32 << 20))
    for number in range(size(10, 100_000)):
        os.close(os.open(f"{STATE_DIR}/filler.{number}.{os.getpid()}", os.O_CREAT | os.O_WRONLY, 0o600))


@deed
def altered_state_directory() -> None:
    """Away, closed, or something else."""
    kind = RNG.choice(["chmod", "remove", "file", "link", "fifo", "read-only"])
    if kind in ("chmod", "read-only"):
        os.chmod(STATE_DIR, 0 if kind == "chmod" else 0o500)
        return
    aside = f"{STATE_DIR}.aside"
    os.rename(STATE_DIR, aside)
    if kind == "file":
        open(STATE_DIR, "w").close()
    elif kind == "link":
        os.symlink(aside, STATE_DIR)
    elif kind == "fifo":
        os.mkfifo(STATE_DIR)
    if kind != "link":
        os.system(f"rm -rf {aside}")


@deed
def large_environment() -> None:
    """Children whose variables and command lines take long to read."""
    variables = {f"V{number}": "x" * 100_000 for number in range(min(18, size(2, 18)))}
    for _ in range(RNG.randint(1, 8)):
        if os.fork() == 0:
            os.setsid()
            os.execve("/bin/sleep", ["sleep", MARK], variables)
    write(1, b"done\n")


@deed
def changing_project() -> None:
    """Files that come and go where the server watches."""
    count = size(5, 400)
    folder = RNG.choice(["resources", "tools", "prompts"])
    made = []
    for number in range(count):
        path = f"{folder}/churn.{os.getpid()}.{number}"
        try:
            if RNG.random() < 0.1:
                odd_file(path)
            else:
                with open(path, "w", encoding="utf-8") as file:
                    file.write("#!/bin/sh\necho\n")
                os.chmod(path, 0o755)
        except OSError:
            continue
        made.append(path)
        if RNG.random() < 0.2:
            with open(path + ".meta.json", "wb") as file:
                file.write(costly_text(size(100, 900_000)))
            made.append(path + ".meta.json")
    time.sleep(RNG.choice([0, 0.15, 0.4]))
    for path in made:
        os.system(f"rm -rf {path}") if os.path.isdir(path) else os.unlink(path)


HEAD = "import mcp_tool\nimport enum\nfrom typing import Literal, TypedDict, Union\n"
MARKED = "@mcp_tool.tool\ndef f("


def costly_description() -> tuple[str, str]:
    """The suffix and the text of a tool that takes long to describe."""
    n = size(10, 6000)
    few = n // 200 + 2
    lists = "".join(f"l{i} = [{', '.join([f'l{i - 1}'] * 9)}]\n" for i in range(1, few))
    twins = "".join(f"class {c}{i}(A{i - 1}, B{i - 1}):\n  {c}{i}: int\n" for i in range(1, few) for c in "AB")
    merged = "".join(f"#   a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, few * 4))
    quotes = '"""'
    texts = [
        (".py", f"{HEAD}{'a;' * n * 10}\n{MARKED}x: int): 0\n"),
        (".py", f"{HEAD}f'{'{a}' * n * 7}'\n{MARKED}x: int): 0\n"),
        (".py", f"{HEAD}l0 = [0]\n{lists}{MARKED}x: list = l{few - 1}): 0\n"),
        (".py", f"{HEAD}class A0(TypedDict):\n  a: int\nclass B0(A0):\n  b: int\n{twins}{MARKED}x: A{few - 1}): 0\n"),
        (".py", f"{HEAD}X = g({'1, ' * n})\n{MARKED}{', '.join(f'p{i}: X' for i in range(250))}): 0\n"),
        (".py", f"{HEAD}{MARKED}x: Literal[{', '.join(map(str, range(n)))}]): 0\n"),
        (".py", f"{HEAD}{MARKED}x: Union[{', '.join(f'Literal[{i}]' for i in range(n))}]): 0\n"),
        (".py", f"{HEAD}{MARKED}{':#' * n * 8}"),
        (".py", f"{HEAD}{MARKED}a):\n {quotes}x\n\n Args:\n" + f"  a{' ' * 990}!\n" * few + f" {quotes}\n"),
        (".py", f"{HEAD}{MARKED}a):\n {quotes}x\n\n" + " args:\n" * n + f" {quotes}\n"),
        (".sh", f"#!/bin/sh\n#{'#' * n * 5} xmcp: {{\n"),
        (".sh", "#!/bin/sh\n" + "".join(f"# @arg a{i}\n" for i in range(n))),
        (".sh", f"#!/bin/sh\n# @arg x[{'|'.join(map(str, range(n)))}]={','.join(map(str, range(n)))} list\n"),
        (".sh", f"#!/bin/sh\n# mcp:\n#   a0: &a0 {{x: 1}}\n{merged}"),
        (".sh", f"#!/bin/sh\n# mcp: {'[' * n}\n"),
        (".sh", "#!/bin/sh\n# mcp:\n" + "".join(f"#   {' ' * i}a:\n" for i in range(min(n, 200)))),
    ]
    return RNG.choice(texts)


@deed
def costly_descriptions() -> None:
    """Tools that the server has to read before it can list them."""
    made = []
    for number in range(RNG.randint(1, 8)):
        suffix, text = costly_description()
        path = f"tools/churn.{os.getpid()}.{number}{suffix}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
        made.append(path)
    time.sleep(RNG.choice([0.3, 0.6]))
    for path in made:
        os.unlink(path)


@deed
def lines_before_json() -> None:
    """Lines that look as if a result began with each of them."""
    count = size(1, 40)
    rest = b"[" + b"[]," * size(10, 80_000) + b"[]"
    write(1, b"x" + b"\n{" * count + b'"a":' + rest + b"]}" * RNG.randint(0, 2))


@deed
def undeclared_output() -> None:
    """What no schema foresees, or takes long to check: for the tool that declares its output."""
    kind = RNG.choice(["unique", "pattern", "words", "costly", "deep"])
    if kind == "unique":
        print(json.dumps({"unique": [{"n": number, "list": [number]} for number in range(size(10, 6000))]}))
    elif kind == "pattern":
        print(json.dumps({"mail": "a" * RNG.randint(10, 32) + "!"}))
    elif kind == "words":
        print(json.dumps({"words": ["w" * RNG.randint(1, 12) for _ in range(size(10, 300_000))]}))
    elif kind == "deep":
        print('{"any":' * 120 + "1" + "}" * 120)
    else:
        write(1, costly_text(size(1000, 9 << 20)))


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(int(LIFE_SECS))
    DEEDS[ARGUMENTS["deed"]]()


if __name__ == "__main__":
    main()
