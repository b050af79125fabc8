"""URIs from outside: which are URIs at all, and which path a file: URI names."""

from __future__ import annotations

import os
import random

import pytest

from mcpgreen.text import uris

BASE = "/srv/project"


@pytest.mark.parametrize(
    "uri",
    [
        "file:///a",
        "FILE:///a",
        "a:",
        "git+https://host/repo#main:path/x.md",
        "https://user@[::1]:80/a/b;c=1,2?q=%20&r[]='(*)'!$~",
        "x:" + "a" * 8190,
    ],
)
def test_a_uri_with_any_scheme_is_accepted(uri: str) -> None:
    assert uris.problem_with(uri) is None


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("", "empty"),
        ("/etc/passwd", "scheme"),
        ("notes", "scheme"),
        (":x", "scheme"),
        ("1x:y", "scheme"),
        ("a b:y", "scheme"),
        ("é:y", "scheme"),
        ("x:a b", "' ' must be percent-encoded"),
        ("x:a\nb", "U+000A must be percent-encoded"),
        ("x:a\x00b", "U+0000 must be percent-encoded"),
        ("x:a\x7fb", "U+007F must be percent-encoded"),
        ("x:\u00e9", "U+00E9 must be percent-encoded"),
        ("x:\ud800", "U+D800 must be percent-encoded"),
        ("x:a|b", "'|' must be percent-encoded"),
        ("x:{id}", "'{' must be percent-encoded"),
        ("x:a\\b", "must be percent-encoded"),
        ("x:a#b#c", "more than one #"),
        ("x:%", "two hexadecimal digits"),
        ("x:%4", "two hexadecimal digits"),
        ("x:%zz", "two hexadecimal digits"),
        ("x:%+1", "two hexadecimal digits"),
        ("x:%00", "%00"),
        ("x:" + "a" * 8191, "longer than 8192"),
    ],
)
def test_anything_else_is_refused_with_the_reason(uri: str, reason: str) -> None:
    assert reason in (uris.problem_with(uri) or "")


@pytest.mark.parametrize(
    ("uri", "scheme"), [("HTTPS://x", "https"), ("git+https:x", "git+https"), ("/x", ""), ("", ""), ("1:x", "")]
)
def test_the_scheme_is_told_in_lower_case(uri: str, scheme: str) -> None:
    assert uris.scheme_of(uri) == scheme


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b.txt", "/a/b.txt"),
        ("FILE:///a", "/a"),
        ("file://localhost/a", "/a"),
        ("file://LocalHost/a", "/a"),
        ("file:/a", "/a"),
        ("file:///a//b/./c/", "/a/b/c"),
        ("file:///a/%2e/b", "/a/b"),
        ("file:///two%20words/%C3%A9", "/two words/é"),
        ("file:///a%3Fb%23c", "/a?b#c"),
        ("file:///a/C:/b", "/a/C:/b"),
        ("file:///", "/"),
        ("file://./resources/greeting.txt", "/srv/project/resources/greeting.txt"),
        ("file://.//etc/passwd", "/srv/project/etc/passwd"),
        ("file:///...", "/..."),
        ("file:///two words/\u00e9.txt", "/two words/\u00e9.txt"),
        ("file:///two words/%C3%A9%20", "/two words/\u00e9 "),
        ('file:///a"<>^`{|}', '/a"<>^`{|}'),
        ("file:///100%/50%25/%zz/%", "/100%/50%/%zz/%"),
        ("file://./my notes.txt", "/srv/project/my notes.txt"),
    ],
)
def test_a_file_uri_names_a_path(uri: str, path: str) -> None:
    assert uris.path_of(uri, base=BASE) == path


@pytest.mark.parametrize("uri", ["file:///a/%252e%252e/b", "file:///a%252Fb", "file:///a%2500"])
def test_escapes_are_decoded_once(uri: str) -> None:
    assert uris.path_of(uri, base=BASE) == uri.removeprefix("file://").replace("%25", "%")


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("https:///a", "not a file: URI"),
        ("/a", "not a file: URI"),
        ("file://host/a", "another host"),
        ("file://127.0.0.1/a", "another host"),
        ("file://localhost:80/a", "another host"),
        ("file://user@localhost/a", "another host"),
        ("file://%2e/a", "another host"),
        ("file://../a", "another host"),
        ("file://localhost", "no path"),
        ("file://", "no path"),
        ("file:a", "file://./path"),
        ("file:", "file://./path"),
        ("file:///a/../b", "must not contain .."),
        ("file:///..", "must not contain .."),
        ("file://./../b", "must not contain .."),
        ("file:///a/%2e%2e/b", "must not contain .."),
        ("file:///a/.%2E/b", "must not contain .."),
        ("file:///a%2Fb", "encoded separators"),
        ("file:///a%2f..%2fb", "encoded separators"),
        ("file:///a%5Cb", "encoded separators"),
        ("file:///a\\b", "backslash"),
        ("file:///a b\\c", "backslash"),
        ("file:///a b/../c", "must not contain .."),
        ("file:///a%/../c", "must not contain .."),
        ("file:///a b\n", "U+000A must be percent-encoded"),
        ("file:///a\ud800", "U+D800 must be percent-encoded"),
        ("file:///a%00b", "%00"),
        ("file:///a%0Ab", "control characters"),
        ("file:///a%7Fb", "control characters"),
        ("file:///a?b", "neither query nor fragment"),
        ("file:///a#b", "neither query nor fragment"),
        ("file:///C:/x", "Windows drive"),
        ("file:///c|/x", "Windows drive"),
        ("file:///c%7C/x", "Windows drive"),
        ("file:///C%3a/x", "Windows drive"),
        ("file:////C:", "Windows drive"),
        ("file://C:/x", "Windows drive"),
        ("file://C:\\x", "Windows drive"),
        ("file:C:/x", "Windows drive"),
        ("file:///" + "a" * 8192, "longer than"),
    ],
)
def test_what_could_mean_something_else_is_refused_with_the_reason(uri: str, reason: str) -> None:
    with pytest.raises(ValueError) as refusal:
        uris.path_of(uri, base=BASE)

    assert reason in str(refusal.value)


def test_a_wrong_spelling_of_a_separator_stays_a_name() -> None:
    """%C0%AF is / for decoders that are too lenient."""
    assert os.fsencode(uris.path_of("file:///a%C0%AFb", base=BASE)) == b"/a\xc0\xafb"


def test_every_listed_path_is_found_again() -> None:
    choice = random.Random(6).choice
    characters = [" ", "%", "?", "#", ":", "é", "€", "\U0001f600", "\udcff", "a", "~", "|", "&", "+", "'"]
    for _ in range(500):
        path = "/top" + "".join(choice([*characters, "/x"]) for _ in range(12))
        assert uris.path_of(uris.file_uri(path), base=BASE) == path
