"""What a log does not show."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from mcpgreen.logs import secrets as secrets_module
from mcpgreen.logs.secrets import (
    HIDDEN,
    MAX_SHOWN_BYTES,
    MAX_VALUE_NODES,
    READ_CHARS,
    Secrets,
    is_secret_name,
    secret_names,
)

SECRET = "hunter2-and-more"


SECRET_NAMES = """
    password PASSWORD dbPassword passwd pwd passphrase secret clientSecret secrets
    token access_token refreshToken authToken AWS_SESSION_TOKEN mcpbash/remoteToken
    key api_key apiKey apikey x-api-key OPENAI_API_KEY private.key keys
    authorization Proxy-Authorization auth Cookie set-cookie credentials pin otp jwt requestState
"""


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_a_name_says_that_its_value_is_secret(name: str) -> None:
    assert is_secret_name(name, SECRET)


@pytest.mark.parametrize(
    "name",
    ["name", "keyboard", "monkey", "author", "authors", "spinner", "path", "compass", "progressToken", "PWD", ""],
)
def test_other_names_say_nothing(name: str) -> None:
    assert not is_secret_name(name, SECRET)


def test_a_number_of_tokens_is_no_secret() -> None:
    assert not is_secret_name("maxTokens", 1000)
    assert is_secret_name("tokens", ["a", "b"])


@pytest.mark.parametrize(
    "value",
    [
        {"password": SECRET},
        {"a": [{"b": {"api_key": SECRET}}]},
        {"token": [SECRET, {"x": SECRET}]},
        {"credentials": {"user": "me", "value": SECRET}},
        {"headers": [{"name": "Authorization", "value": SECRET}]},
        {"headers": ["Accept: */*", f"Authorization: Bearer {SECRET}"]},
        {"text": f'curl -H "Authorization: Basic {SECRET}" https://example.org'},
        {"text": f'Cookie: a={SECRET}; b="{SECRET}"\nnext'},
        {"text": f"sent Bearer {SECRET} along"},
        {"text": f"password={SECRET}&user=me"},
        {"text": f"API_KEY: '{SECRET}'"},
        {"uri": f"https://me:{SECRET}@example.org/?access_token={SECRET}"},
        {"text": json.dumps({"deep": {"clientSecret": SECRET, "pins": [1]}})},
        {"text": json.dumps(json.dumps({"password": SECRET}))},
        {"text": json.dumps({"password": SECRET}, indent=2)[:-3]},
    ],
)
def test_secrets_are_hidden_wherever_they_stand(value: Any) -> None:
    shown = Secrets().shown(value)

    assert SECRET not in shown
    assert HIDDEN in shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"{{'api_key': b'{SECRET}', 'n': 1}}", "{'api_key': [redacted], 'n': 1}"),
        (f"{{'password': 'it\\'s {SECRET}', 'n': 1}}", "{'password': [redacted], 'n': 1}"),
        (f'"password": "a\\"{SECRET}", "n"', '"password": [redacted], "n"'),
        (f"{{'token': ['a', '{SECRET}'], 'n': 1}}", "{'token': [redacted], 'n': 1}"),
        (f"{{'secret': {{'v': {{'w': ')}}'}}, 'x': ('{SECRET}',)}}, 'n': 1}}", "{'secret': [redacted], 'n': 1}"),
        (f'"secret": {{\n  "v": "{SECRET}"\n}}\nend', '"secret": [redacted]\nend'),
        (json.dumps(json.dumps({"secret": {"v": "}", "w": SECRET}, "n": 1})), r'"{\"secret\": [redacted], \"n\": 1}"'),
        (f"secret: ['{SECRET}", "secret: [redacted]"),
        (f"secret: [\n'{SECRET}", "secret: [redacted]"),
        ("Unexpected token: { at 5\nError: more", "Unexpected token: [redacted]\nError: more"),
        (f"psql --password {SECRET} -h db", "psql --password [redacted] -h db"),
        (f"x --db-token '{SECRET} 5' y", "x --db-token [redacted] y"),
        (f"run(['x', '--token', '{SECRET}', 'y'])", "run(['x', '--token', [redacted], 'y'])"),
        (f"curl -u me:{SECRET} https://x", "curl -u me:[redacted] https://x"),
        (f"curl --user 'me:{SECRET}' x", "curl --user 'me:[redacted]' x"),
        (f"postgres://u:p@{SECRET}@h/x", "postgres://u:[redacted]@h/x"),
        (f"postgres://u:p/{SECRET}@h/x", "postgres://u:[redacted]@h/x"),
        ("http://h:80/@scope/x", "http://h:80/@scope/x"),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----\nend", "[redacted]\nend"),
        (f"-----BEGIN PRIVATE KEY-----\\n{SECRET}", "[redacted]"),
        ("a ghp_abcdefghijklmnopqrstuvwxyz0123456789 b", "a [redacted] b"),
        ("a github_pat_11ABCDEFG0123456789_abcdefghi b", "a [redacted] b"),
        ("a glpat-abcdefghijklmnopqrst b", "a [redacted] b"),
        ("a sk-proj-abcdefghijklmnopqrstuvwx b", "a [redacted] b"),
        ("a sk_live_abcdefghijklmnopqrstuvwx b", "a [redacted] b"),
        ("a AKIAIOSFODNN7EXAMPLE b", "a [redacted] b"),
        ("a xoxb-1234567890-abcdef b", "a [redacted] b"),
        ("pwd=hunter2 MYSQL_PWD=hunter2", "pwd=[redacted] MYSQL_PWD=[redacted]"),
        ("PWD=/srv/shop OLDPWD=/srv", "PWD=/srv/shop OLDPWD=/srv"),
        ("mysqldump -u root -phunter2 shop", "mysqldump -u root -p[redacted] shop"),
        ("a eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.abcdefghijk b", "a [redacted] b"),
        ("x: line 3: API_KEY: set API_KEY to a key", "x: line 3: API_KEY: set API_KEY to a key"),
        (said := "KEY_TOKEN: parameter null or not set\nx: 3: MY_TOKEN: unbound variable", said),
        ("token: set user: ada, password: set", "token: [redacted] user: ada, password: [redacted]"),
        ("API_KEY=set it TOKEN: setup 1", "API_KEY=[redacted] it TOKEN: [redacted] 1"),
        ("task-force-of-many-people risk-of-something-else", "task-force-of-many-people risk-of-something-else"),
    ],
)
def test_secrets_are_known_by_how_they_look(said: str, shown: str) -> None:
    assert Secrets().text(said) == shown


@pytest.mark.parametrize(
    "beginning", ["AIza", "npm_", "hf_", "dckr_pat_", f"SG.{'y' * 20}.", "pypi-A", "ya29.", "rk_live_"]
)
def test_tokens_of_services_are_known_by_their_beginning(beginning: str) -> None:
    assert Secrets().text(f"a {beginning}{'x1Y' * 12} b") == "a [redacted] b"
    assert Secrets().text(f"a {beginning}x b") == f"a {beginning}x b"


def test_the_rest_is_shown_as_it_is() -> None:
    value = {"jsonrpc": "2.0", "id": 1, "params": {"name": "x", "arguments": {"n": [1, 2.5, None, True, "é\n"]}}}

    assert json.loads(Secrets().shown(value)) == value


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"properties": {"a": {"type": "string", "format": "password"}, "b": {"type": "string"}}}, {"a"}),
        ({"properties": {"a": {"writeOnly": True}, "b": {"writeOnly": False}}}, {"a"}),
        ({"properties": {"o": {"properties": {"a": {"format": "password"}}}}}, {"a"}),
        ({"properties": {"l": {"type": "array", "items": {"format": "password"}}}}, {"l"}),
        ({"properties": {"l": {"items": {"properties": {"a": {"writeOnly": True}}}}}}, {"a"}),
        ({"properties": {"a": {"anyOf": [{"type": "null"}, {"format": "password"}]}}}, {"a"}),
        ({"properties": {"a": {"$ref": "#/$defs/S"}}, "$defs": {"S": {"format": "password"}}}, {"a"}),
        ({"properties": {"m": {"additionalProperties": {"format": "password"}}}}, {"m"}),
        ({"additionalProperties": {"format": "password"}}, {"all"}),
        ({"patternProperties": {"^x": {"writeOnly": True}}}, {"all"}),
        ({"properties": {"a": {"$ref": "#"}}}, set()),
        ({"properties": {"a": {"$ref": "https://example.org/s"}}}, set()),
        ({"properties": "odd", "items": 5}, set()),
        (True, set()),
        (None, set()),
    ],
)
def test_a_schema_names_its_secrets(schema: Any, names: set[str]) -> None:
    assert secret_names(schema, whole=("all",)) == names


def test_a_secret_by_schema_is_hidden_in_values_and_in_text() -> None:
    secrets = Secrets({"note"})

    assert SECRET not in secrets.shown({"note": SECRET, "text": json.dumps({"note": SECRET}), "log": f"note={SECRET}"})


def test_a_value_that_is_secret_once_is_hidden_everywhere() -> None:
    secrets = Secrets({"note"}).with_values_in({"arguments": {"note": SECRET, "list": [{"pin": 123456}]}})

    assert secrets.text(f"got {SECRET} and 123456") == f"got {HIDDEN} and {HIDDEN}"


def test_a_value_is_also_found_as_json_writes_it() -> None:
    secret = 'quo"te-é-\n-end'
    secrets = Secrets().with_values_in({"password": secret})

    assert "end" not in secrets.text(f"printed {json.dumps(secret)}")


@pytest.mark.parametrize(
    "arguments",
    [
        lambda: {f"name{number}": number for number in range(500_000)},
        lambda: [{"password": f"secret{number}"} for number in range(101)],
        lambda: functools.reduce(lambda inner, _: {"more": inner}, range(20), {"password": SECRET}),
    ],
    ids=["wide", "many", "deep"],
)
def test_where_too_much_would_have_to_be_looked_at_nothing_is_shown(
    arguments: Callable[[], Any], monkeypatch: Any
) -> None:
    """Half a million arguments of a call that failed held everything for a second and a half."""
    looks: list[str] = []
    real = secrets_module.is_secret_name
    monkeypatch.setattr(secrets_module, "is_secret_name", lambda name, value: looks.append(name) or real(name, value))
    secrets = Secrets().with_values_in({"arguments": arguments()})

    assert secrets.text(f"got {SECRET}") == HIDDEN
    assert SECRET not in secrets.shown({"text": f"got {SECRET}", "rest": [SECRET]})
    assert len(looks) <= MAX_VALUE_NODES + 100


def test_what_is_long_is_cut_and_its_size_is_told() -> None:
    shown = Secrets().shown({"text": "x" * 100_000, "more": ["y" * 500] * 1000})

    assert len(shown) < MAX_SHOWN_BYTES + 100
    assert "100000 bytes" in shown


def test_no_part_of_a_known_secret_is_left_at_a_cut() -> None:
    secret = "0123456789abcdef"
    secrets = Secrets(values=[secret])
    for before in range(READ_CHARS - 20, READ_CHARS + 2):
        assert "0123" not in secrets.text("." * before + secret)


@pytest.mark.parametrize(
    "text",
    ["token" * 20_000, "password" + " " * 90_000, "://" + "a" * 90_000, 'secret="' + "\\" * 90_000, "{" * 90_000]
    + [
        each * 30_000
        for each in ("token:[", "eyJ-", "eyJabcdefgh.", "-u a:", "://a:@", "--token ", "-----BEGIN PRIVATE KEY-----")
    ],
)
def test_no_text_takes_long_to_look_through(text: str) -> None:
    began_at = time.process_time()
    Secrets({"a", "b"}).shown({"text": [text] * 20})

    assert time.process_time() - began_at < 30  # what went back and forth over such a text took hours


def test_deep_values_are_shown_as_far_as_they_are_read() -> None:
    value: Any = SECRET
    for _ in range(500):
        value = [value]

    assert "members" in Secrets().shown(value)


def test_numbers_that_json_cannot_express_are_shown_as_text() -> None:
    assert Secrets().shown([float("inf"), 10**30]) == f'["inf","{10**30}"]'
