"""What a client may read of what a script wrote to stderr."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import mcpgreen
from mcpgreen.logs.last_words import PIECE_CHARS, REASON_LINES, TAIL_BYTES, TAIL_LINES, LastWords, Places
from mcpgreen.logs.secrets import READ_CHARS, Secrets

ROOT, HOME = "/usr/shop", "/home/ada"
OURS = os.path.dirname(os.path.abspath(mcpgreen.__file__))
PLACES = Places(ROOT, HOME)
SECRETS = Secrets(values=["hunter2-and-more"])


def words(said: str | bytes) -> LastWords:
    return LastWords(said if isinstance(said, bytes) else said.encode(), SECRETS, PLACES)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("/usr/shop/tools/a.sh: line 3: jq: not found", "tools/a.sh: line 3: jq: not found"),
        ("cd /usr/shop", "cd ."),
        ("'/usr/shop/my data/x y.csv'", "'my data/x y.csv'"),
        ("/usr/shopping/list", "list"),
        ("cat /home/ada/.netrc", "cat ~/.netrc"),
        ("cd /home/ada: denied", "cd ~: denied"),
        ("/home/adam/x", "x"),
        ("/usr/lib/python3.11/json/decoder.py", "decoder.py"),
        ("PATH=/usr/local/bin:/usr/bin/X11", "PATH=bin:X11"),
        ("cc -I/home/ada/include -L/usr/lib/x", "cc -I~/include -Lx"),
        ("see file:///home/ada/x and file:///usr/lib/y", "see file://~/x and file://y"),
        ("//usr//lib//x", "x"),
        ("ls /usr/lib/", "ls lib/"),
        ("/tmp is full", "/tmp is full"),
        ("GET https://api.example.com/usr/lib/5 failed", "GET https://api.example.com/usr/lib/5 failed"),
        ("404 for /repos/ada/shop/issues", "404 for /repos/ada/shop/issues"),
        ("src/usr/lib and/or ./usr/lib/x", "src/usr/lib and/or ./usr/lib/x"),
        ("login with hunter2-and-more failed", "login with [redacted] failed"),
        ("Authorization: Bearer abcdefghijkl", "Authorization: [redacted]"),
        ("nul\0byte", "nulbyte"),
        ("\x1b[1;31m/usr/lib/x\x1b[0m: \x1b[Kno", "x: no"),
        ("Loading.../home/ada/x", "Loading...~/x"),
        ("Loading.../usr/lib/x", "Loading...x"),
        ("/mnt/home/ada/x", "x"),
        (r'"\/usr\/lib\/y" "\/usr\/shop\/tools\/a.sh"', r'"y" "tools\/a.sh"'),
        ("src\\/usr\\/lib", "src\\/usr\\/lib"),
        (r"'no\n/usr/lib/x'", r"'no\nx'"),
        ("file://localhost/usr/lib/y file://localhost/home/ada/z", "file://y file://~/z"),
        ("/./usr/lib/x /../usr/lib/y", "x y"),
        ("../../../usr/lib/x ../../usr/x", "x ../../usr/x"),
        ("cc -isystem/usr/lib/x '-I/usr/lib/y'", "cc -isystemx '-Iy'"),
        (r"C:\Users\ada\x.py and 'D:\\srv\\y' in c:/srv/z", "x.py and 'y' in z"),
        ("see a:/b and http://c/d/e", "see a:/b and http://c/d/e"),
        ("No: '/home/bob smith/My Documents/x y'", "No: 'x y'"),
        ('"/home/o\'brien/x (1)/[a]/z"', '"z"'),
        (r'{"a": "\"\/usr\/my lib\/x\""}', r'{"a": "\"x\""}'),
        ("'/home/bob/a:b,c;d/x' and \"file:///usr/my lib/y\"", "'x' and \"file://y\""),
        ("'/usr/lib/x: cannot read /usr/lib/y'", "'x: cannot read y'"),
        ("PWD=/usr/lib/x OLDPWD=/usr/shop/x", "PWD=x OLDPWD=x"),
    ],
)
def test_paths_of_the_machine_and_secrets_are_not_shown(said: str, shown: str) -> None:
    assert words(said).tail == shown + "\n"


@pytest.mark.parametrize("last", [b"", b"\n", b"\nit failed\n"])
def test_a_line_whose_beginning_was_not_read_is_not_shown(last: bytes) -> None:
    said = words(b"password=" + b"S3CR3T" * (READ_CHARS // 3) + last)

    assert said.lines == last.decode().split("\n")[1:2] if last.strip() else not "".join(said.lines)


def test_a_project_is_known_by_its_real_path_too(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    places = Places(str(tmp_path / "link"), "/")

    for name in ("real", "link"):
        said = f"{tmp_path}/{name}/tools/x: no".encode()
        assert LastWords(said, SECRETS, places).tail == "tools/x: no\n"


def test_only_the_last_lines_are_shown() -> None:
    tail = words("".join(f"line {number}\n" for number in range(100))).tail
    assert tail.splitlines() == [f"line {number}" for number in range(100 - TAIL_LINES, 100)]

    long = words("é" * 5000 + "end").tail
    assert len(long.encode()) <= TAIL_BYTES and long.endswith("éend\n")


def test_what_is_left_of_a_secret_at_the_cut_is_not_shown() -> None:
    said = b"x" + b"hunter2-and-more\n" + b"y\n" * (READ_CHARS // 2)
    lines = words(said[-READ_CHARS - 8 :]).lines

    assert set(lines) == {"y"}


TRACEBACK = f"""careful
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "{OURS}/sdk/warm/mcpgreen_warm/job.py", line 7, in run
    exec(code)
    ~~~~^^^^^^
  File "{ROOT}/tools/f.py", line 3, in f
    helper(5)
  File "{OURS}/sdk/python/mcp_tool.py", line 9, in helper
    raise ValueError("no")
  File "/usr/lib/python3.11/json/decoder.py", line 355, in decode
    raise KeyError
"""


def test_the_frames_of_our_own_code_are_left_out() -> None:
    said = words(TRACEBACK + "ValueError: no\n")

    assert said.lines == [
        "careful",
        "Traceback (most recent call last):",
        '  File "tools/f.py", line 3, in f',
        "    helper(5)",
        '  File "decoder.py", line 355, in decode',
        "    raise KeyError",
        "ValueError: no",
    ]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", ""),
        ("\n \n", ""),
        ("first\n\nsecond\n", "first\nsecond"),
        (TRACEBACK + "ValueError: first\nsecond\n", "ValueError: first\nsecond"),
        (TRACEBACK + "OSError: no '/usr/shop/x y'\n", "OSError: no 'x y'"),
        (TRACEBACK + "ValueError: a\n\nDuring handling:\n\n" + TRACEBACK + "KeyError: 'b'\n", "KeyError: 'b'"),
        (TRACEBACK + "ValueError: caught\ndisk full\n", "ValueError: caught\ndisk full"),
        ("mcp_elicit: Nobody answered\ndisk full", "disk full"),
        ("mcp_elicit: Nobody answered\nmcp_json_obj: expected pairs", "mcp_json_obj: expected pairs"),
        (
            '  File "/usr/shop/tools/f.py", line 3\n    y = (\n        ^\nSyntaxError: closed',
            "SyntaxError: closed (f.py, line 3)",
        ),
    ],
)
def test_the_reason_is_the_exception_or_the_last_lines(said: str, reason: str) -> None:
    assert words(said).reason == reason


DEEP_STACKS = {
    "node": "{place}:3\n    throw no;\n    ^\n\n{message}\n{frames}\n\nNode.js v20.1.0\n    at parse ({place}:3:7)",
    "java": "Exception in thread main {message}\n{frames}\n\t... 3 more\n\tat shop.Main.parse(Main.java:3)",
    "ruby": "{place}:3:in `parse': {message}\n{frames}\n\t ... 9 levels...\n\tfrom {place}:3:in `load'",
    "perl": "{message} at {place} line 3.\n{frames}\n\tmain::parse(5) called at {place} line 3",
    "php": "PHP Fatal error: {message}\nStack trace:\n{frames}\n#3 {place}(3): parse()",
}


@pytest.mark.parametrize("language", DEEP_STACKS)
def test_the_frames_of_a_deep_stack_do_not_push_out_the_message(language: str) -> None:
    form, _, frame = DEEP_STACKS[language].rpartition("\n")
    place = "/usr/lib/shop/load"
    said = form.replace("{frames}", "\n".join([frame] * 30)).replace("{message}", "Error: Quota exceeded")
    reason = words(said.replace("{place}", place)).reason

    assert "Error: Quota exceeded" in reason
    assert frame.replace("{place}", "load").strip() not in reason


def test_a_text_of_nothing_but_frames_is_the_reason_itself() -> None:
    assert words("    at noon\n    at night").reason == "at noon\n    at night"


def test_a_long_reason_keeps_what_says_most() -> None:
    many = [f"line {number}" for number in range(50)]
    assert words("\n".join(many)).reason.splitlines() == many[-REASON_LINES:]

    raised = words(TRACEBACK + "ValueError: no\n" + "\n".join(many)).reason.splitlines()
    assert raised == ["ValueError: no", *many[1 - REASON_LINES :]]
    assert words(TRACEBACK + "ValueError: " + "x" * 9999).reason.startswith("ValueError: xxx")


@pytest.mark.parametrize(
    "said",
    [
        "/",
        "../",
        "..//",
        r"\/",
        "-a",
        "-a-",
        r"C:\\",
        "C:x",
        "file://a",
        "\tat ",
        "called at ",
        "/usr/",
        "/usr/a",
        "/usr/shop",
        " -I/",
        "file://",
        '  File "',
        " |",
        "a:/",
        "'/usr/a b/",
        "\"/usr/'/usr/",
        "'/usr/a:",
        "\n",
    ],
)
def test_no_text_takes_long_to_clean(said: str) -> None:
    """A pattern that begins anew at each character would take hours for so much."""
    text = (said * (1 << 20))[: 1 << 20]

    assert len(PLACES.hidden_in(text)) <= len(text)
    assert words(text).reason is not None


GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "/usr/lib/x.py", line 1, in <module>
  |     raise many
  | ExceptionGroup: many (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/usr/lib/x.py", line 3, in f
    |     open("/usr/lib/y")
    | FileNotFoundError: no '/usr/my lib/y'
    +---------------- 2 ----------------
    | ExceptionGroup: in (1 sub-exception)
    +-+---------------- 1 ----------------
      | KeyError: 'x'
      +------------------------------------
"""
MEMBERS = "ExceptionGroup: many (2 sub-exceptions)\nFileNotFoundError: no 'y'\nExceptionGroup: in (1 sub-exception)\n"


@pytest.mark.parametrize("before", ["", TRACEBACK + "ValueError: no\n\nDuring handling:\n\n"])
@pytest.mark.parametrize("after", ["", "\nit failed"])
def test_an_exception_group_is_told_with_its_members(before: str, after: str) -> None:
    """The text for the model began with a frame."""
    assert words(before + GROUP + after).reason == f"{MEMBERS}KeyError: 'x'{after}"


def test_an_exception_group_whose_beginning_was_not_read_is_told_without_frames() -> None:
    assert words(GROUP.partition("\n")[2]).reason == f"{MEMBERS}KeyError: 'x'"


def test_a_text_that_repeats_stderr_is_known() -> None:
    said = words("cat: /usr/lib/x: gone\n\nmore\n")

    assert said.are_in("It failed.\ncat: /usr/lib/x: gone")
    assert not said.are_in("There is no /usr/lib/y\n")


def test_what_is_left_at_the_cut_of_a_secret_with_several_lines_is_not_shown() -> None:
    secret = "line one\nline two\nline three"
    for said in (b"y\n" * (READ_CHARS // 2 - 10), b"y\n" * (READ_CHARS // 2 - 5)):
        lines = LastWords(f"{secret}\n".encode() + said, Secrets(values=[secret]), PLACES).lines
        assert set(lines) <= {"y", "[redacted]"} and "y" in lines


KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + f"{'MIIE' * 16}\n" * 25 + "-----END RSA PRIVATE KEY-----\n"


@pytest.mark.parametrize("lines", [0, 1780, 1821, PIECE_CHARS // 9 - 30, PIECE_CHARS // 9])
def test_output_is_cleaned_wherever_a_key_stands(lines: int) -> None:
    """Cleaned piece by piece, most of a key near the end of a piece was sent."""
    for text in (KEY + "log line\n" * lines, "log line\n" * lines + KEY):
        cleaned = "".join(words("").cleaned_output(text))
        assert "MIIE" not in cleaned
        assert cleaned.count("log line\n") == lines


@pytest.mark.parametrize("times", [1, 1000, 9000])
def test_one_long_line_is_cleaned(times: int) -> None:
    text = "/usr/lib/x password=hunter2 hunter2-and-more " * times
    for said in (text, f"{text}\nthe end"):
        cleaned = "".join(words("").cleaned_output(said))
        assert "/usr" not in cleaned and "hunter2" not in cleaned
    assert cleaned.endswith("the end")


def test_no_value_of_a_call_shows_a_path() -> None:
    """The client chooses it, so it could leave the rest of each path."""
    secrets = SECRETS.with_values_in({"token": "/hom", "key": 'File "/usr'})
    said = LastWords(b'File "/usr/lib/x", /home/bob/y', secrets, PLACES, of_server=SECRETS)

    assert said.lines == ['File "x", y']
