"""`bundle`: the file is what the format demands, and starts as a client would start it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.cli.sharing.bundle import require_valid
from mcpgreen.errors import ProjectError
from tests.cli.test_commands import mcpgreen

# By the published rules of MCPB 0.3: members that have to be there, and the type of each.
REQUIRED = {"manifest_version": str, "name": str, "version": str, "description": str, "author": dict, "server": dict}
OPTIONAL = {
    "display_name": str,
    "long_description": str,
    "repository": dict,
    "homepage": str,
    "documentation": str,
    "support": str,
    "icon": str,
    "tools": list,
    "prompts": list,
    "keywords": list,
    "license": str,
    "privacy_policies": list,
    "compatibility": dict,
    "user_config": dict,
}
CONF = """# How the bundle is described
MCPB_NAME="my-bundle"  # not that of the server
MCPB_AUTHOR_NAME='Ada Lovelace'
MCPB_AUTHOR_EMAIL=ada@example.com
MCPB_REPOSITORY="https://github.com/ada/my-bundle"
MCPB_KEYWORDS="one two"
MCPB_LICENSE=MIT
MCPB_DESCRIPTION="$(touch ran) `touch ran`"
MCPB_INCLUDE="data data/table.csv .env"
MCPB_LONG_DESCRIPTION_FILE=README.md
MCPB_USER_CONFIG_FILE="user-config.json"
MCPB_USER_CONFIG_ENV_MAP="api_key=MY_API_KEY region=MY_REGION"
MCPB_USER_CONFIG_ARGS_MAP="folders"
"""
USER_CONFIG = {
    "api_key": {"type": "string", "title": "API key", "description": "From your account", "sensitive": True},
    "region": {"type": "string"},
    "folders": {"type": "directory", "title": "Folders", "multiple": True},
}
SECRET = "token-that-nobody-may-see"
SHOW = """#!/bin/sh
# mcp: {"description": "Show what the user chose", "inputSchema": {"type": "object"}}
printf '{"key": "%s", "region": "%s", "roots": "%s"}' "${MY_API_KEY-}" "${MY_REGION-unset}" "$MCP_ROOTS_PATHS"
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bundled")
    root = place / "demo"
    mcpgreen("new", "demo", "--lang", "sh", cwd=place)
    (root / "tools/show.sh").write_text(SHOW, encoding="utf-8")
    (root / "tools/show.sh").chmod(0o755)
    (root / "tools/__pycache__").mkdir()
    (root / "tools/__pycache__/x.pyc").touch()
    (root / "data").mkdir()
    (root / "data/table.csv").write_text("a,b\n", encoding="utf-8")
    (root / "private.txt").write_text("not served", encoding="utf-8")
    (root / "icon.png").write_bytes(b"\x89PNG")
    (root / "mcpb.conf").write_text(CONF, encoding="utf-8")
    (root / "user-config.json").write_text(json.dumps(USER_CONFIG), encoding="utf-8")
    mcpgreen("scaffold", "resource", "notes", cwd=root)
    mcpgreen("scaffold", "prompt", "explain", cwd=root)
    mcpgreen("scaffold", "skill", "tidy", cwd=root)
    (root / "resources/plain.txt").write_text("plain\n", encoding="utf-8")
    plant_secrets(root)
    return root


BACKUPS = [f"tools/show.sh.{ending}" for ending in ("BAK", "bak", "orig", "rej", "swo", "tmp")]


def plant_secrets(root: Path) -> None:
    """What the server would not serve, and more ways to it than one."""
    left = ("data/table.csv~", "tools/#show.sh#", "tools/show.sh.swp", *BACKUPS)  # by editors and others
    for name in (
        ".env",
        "config/.netrc",
        "tools/.show.sh.swp",
        "data/.aws/credentials",
        "data/.aws/config",
        "data/sets.bak/a",
        *left,
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(SECRET, encoding="utf-8")
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "key.txt").write_text(SECRET, encoding="utf-8")
    (root / "resources/env.txt").symlink_to("../.env")
    (root / "resources/key.txt").symlink_to(outside / "key.txt")
    (root / "data/outside").symlink_to(outside)
    (root / "data/aws").symlink_to(".aws")
    (root / "icon.svg").symlink_to(outside / "key.txt")
    (root / "server.d/env.sh").write_text(":\n", encoding="utf-8")


@pytest.fixture(scope="module")
def bundling(root: Path) -> subprocess.CompletedProcess[str]:
    return mcpgreen("bundle", "--output", str(root.parent / "out"), cwd=root)


@pytest.fixture(scope="module")
def bundle(root: Path, bundling: subprocess.CompletedProcess[str]) -> Path:
    done = bundling
    assert done.returncode == 0, done.stderr
    made = root.parent / "out/my-bundle-0.1.0.mcpb"
    assert re.fullmatch(rf"Created {made} \(\d+ files, \d+\.\d MB\)\n", done.stdout)
    assert list(made.parent.iterdir()) == [made]
    return made


@pytest.fixture(scope="module")
def manifest(bundle: Path) -> dict[str, Any]:
    with zipfile.ZipFile(bundle) as archive:
        parsed: dict[str, Any] = json.loads(archive.read("manifest.json"))
    return parsed


@pytest.fixture(scope="module")
def installed(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a careless program unpacks it: no executable bits, and all users may write."""
    place = tmp_path_factory.mktemp("extensions") / "installed"
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(place)
    for path in [place, *place.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)
    outside = place.parent / "outside.txt"
    outside.touch()
    outside.chmod(0o600)
    (place / "server/resources/outside.txt").symlink_to(outside)
    return place


def client_call(
    installed: Path,
    manifest: Mapping[str, Any],
    chosen: Mapping[str, str],
    *requests: dict[str, Any],
    python: str = "",
    **more: str,
) -> list[dict[str, Any]]:
    """Start the server by its manifest, with nothing else in the environment but a PATH, and ask."""
    config = manifest["server"]["mcp_config"]
    values = {"__dirname": str(installed), **{f"user_config.{key}": value for key, value in chosen.items()}}

    def expanded(text: str) -> str:
        return re.sub(r"\$\{([\w.]+)\}", lambda found: values.get(found[1], found[0]), text)

    # The Python that made the environment of the tests, not the environment: it has none of our packages.
    python = python or os.path.realpath(sys.executable)
    assert config["command"] == "python3"
    process = subprocess.Popen(
        [python, *map(expanded, config["args"])],
        env={"PATH": os.defpath, **{name: expanded(value) for name, value in config["env"].items()}, **more},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin and process.stdout and process.stderr
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [{"id": 0, "method": "initialize", "params": hello}, {"method": "notifications/initialized"}]
    messages += [{"id": number, **request} for number, request in enumerate(requests, start=1)]
    answers: dict[int, dict[str, Any]] = {}
    try:
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()
            while "id" in message and message["id"] not in answers:
                line = process.stdout.readline()
                assert line, process.stderr.read().decode()
                answer = json.loads(line)
                if "id" in answer:
                    answers[answer["id"]] = answer
    finally:
        process.stdin.close()
        said = process.stderr.read().decode()
        process.stdout.close()
        process.stderr.close()
        assert process.wait(timeout=120) == 0, said
    return [answers[number] for number in range(1, len(requests) + 1)]


def test_the_manifest_has_what_the_format_demands(manifest: dict[str, Any]) -> None:
    types = {**REQUIRED, **OPTIONAL}
    assert REQUIRED.keys() <= manifest.keys() <= types.keys()
    assert {name: type(value) for name, value in manifest.items()} == {name: types[name] for name in manifest}
    assert manifest["manifest_version"] == "0.3"
    server = manifest["server"]
    assert (server["type"], server["entry_point"]) == ("python", "server/.mcpgreen/start.py")
    assert set(server) == {"type", "entry_point", "mcp_config"}
    assert set(server["mcp_config"]) <= {"command", "args", "env"}
    assert all(isinstance(value, str) for value in server["mcp_config"]["env"].values())
    assert manifest["compatibility"] == {"platforms": [sys.platform], "runtimes": {"python": ">=3.10"}}
    for option in manifest["user_config"].values():
        assert {"type", "title", "description"} <= option.keys()
    for prompt in manifest["prompts"]:
        assert {"name", "text"} <= prompt.keys() <= {"name", "description", "arguments", "text"}


def test_what_mcpb_conf_says_is_in_the_manifest(manifest: dict[str, Any]) -> None:
    assert manifest["author"] == {"name": "Ada Lovelace", "email": "ada@example.com"}
    assert manifest["repository"] == {"type": "git", "url": "https://github.com/ada/my-bundle"}
    assert (manifest["keywords"], manifest["license"], manifest["icon"]) == (["one", "two"], "MIT", "icon.png")
    assert manifest["long_description"].startswith("# Demo\n")
    assert [tool["name"] for tool in manifest["tools"]] == ["hello", "show"]
    assert "${arguments.topic}" in manifest["prompts"][0]["text"]


def test_mcpb_conf_is_data_and_never_run(root: Path, manifest: dict[str, Any]) -> None:
    assert manifest["description"] == "$(touch ran) `touch ran`"
    assert not list(root.parent.rglob("ran"))


def test_only_what_is_served_is_packed(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    assert names[0] == "manifest.json"
    ours = {name for name in names if not name.startswith("server/.mcpgreen/")}
    assert {"icon.png", "server/tools/hello.sh", "server/data/table.csv", "server/.registry/tools.json"} <= ours
    assert "server/skills/tidy/SKILL.md" in ours
    assert not {name for name in ours if "private" in name or "pycache" in name or "test/" in name}
    assert (modes["server/tools/show.sh"], modes["server/data/table.csv"]) == (0o755, 0o644)


def test_what_is_hidden_or_lies_outside_is_left_out_and_named(
    bundle: Path, bundling: subprocess.CompletedProcess[str]
) -> None:
    """`.env`, `.netrc`, `.aws/` and swap files went to everybody who got the bundle."""
    with zipfile.ZipFile(bundle) as archive:
        assert [name for name in archive.namelist() if SECRET.encode() in archive.read(name)] == []
    told = re.findall(r"^mcpgreen: .*?(\S+) is left out: (.*)$", bundling.stderr, re.MULTILINE)
    hidden, outside = "it is hidden, or leads to something hidden", "it is outside the project"
    left = "it is a backup, or was left by an editor"
    assert sorted(told) == [
        (".env", hidden),
        ("config/.netrc", hidden),
        ("data/.aws", hidden),
        ("data/aws", hidden),
        ("data/outside", outside),
        ("data/sets.bak", left),
        ("data/table.csv~", left),
        ("icon.svg", outside),
        ("resources/env.txt", hidden),
        ("resources/key.txt", outside),
        ("tools/#show.sh#", left),
        ("tools/.show.sh.swp", hidden),
        *sorted((name, left) for name in ("tools/show.sh.swp", *BACKUPS)),
    ]
    assert "server.d/env.sh goes into the bundle" in bundling.stderr


def test_an_icon_that_leads_out_is_no_icon(tmp_path: Path) -> None:
    mcpgreen("new", "demo", "--lang", "sh", cwd=tmp_path)
    (tmp_path / "key").write_text(SECRET, encoding="utf-8")
    (tmp_path / "demo/icon.svg").symlink_to("../key")
    done = mcpgreen("bundle", cwd=tmp_path / "demo")
    assert (done.returncode, "icon.svg is left out" in done.stderr) == (0, True)

    (made,) = (tmp_path / "demo").glob("*.mcpb")
    with zipfile.ZipFile(made) as archive:
        assert "icon" not in json.loads(archive.read("manifest.json"))
        assert not {"icon.svg", "server/icon.svg"} & set(archive.namelist())


def test_no_place_of_this_machine_is_in_it(bundle: Path) -> None:
    """Addresses of files hold the directory in which the bundle was put together."""
    with zipfile.ZipFile(bundle) as archive:
        registered = [archive.read(name) for name in archive.namelist() if "/.registry/" in name]
    assert registered
    assert not any(b"mcpgreen-bundle-" in content for content in registered)


def test_it_starts_with_nothing_but_python_and_serves(
    installed: Path, manifest: dict[str, Any], tmp_path: Path
) -> None:
    chosen = {"api_key": "s3cret", "folders": str(tmp_path)}
    notes = (installed / "server/resources/notes.txt").as_uri()

    hello, shown, read, plain = client_call(
        installed,
        manifest,
        chosen,
        {"method": "tools/call", "params": {"name": "hello", "arguments": {"name": "Ada"}}},
        {"method": "tools/call", "params": {"name": "show"}},
        {"method": "resources/read", "params": {"uri": notes}},
        {"method": "resources/list"},
    )

    assert hello["result"]["content"][0]["text"] == "Hello, Ada!\n"
    # What the user left open is not a value, and scripts see what was chosen.
    assert shown["result"]["structuredContent"] == {"key": "s3cret", "region": "unset", "roots": str(tmp_path)}
    assert read["result"]["contents"][0]["text"] == "Replace this with the text that clients should read.\n"
    assert {resource["name"] for resource in plain["result"]["resources"]} == {"notes", "plain", "tidy"}
    # It got the mode of the link that leads to it.
    assert (installed.parent / "outside.txt").stat().st_mode & 0o777 == 0o600


def test_another_kind_of_python_fetches_its_packages_once(
    installed: Path, manifest: dict[str, Any], tmp_path: Path
) -> None:
    """Without an index, so nothing is fetched: this bundle says that it needs nothing but what its Python has."""
    about = installed / "server/.mcpgreen/vendor.json"
    before = about.read_text(encoding="utf-8")
    fields = {**json.loads(before), "kind": "cpython .cpython-399-other.so other", "python": "3.99"}
    call = {"method": "tools/call", "params": {"name": "hello"}}
    cache = {"XDG_CACHE_HOME": str(tmp_path), "PIP_NO_INDEX": "1"}
    try:
        about.write_text(json.dumps({**fields, "packages": {"no-such-package-of-ours": "1"}}), encoding="utf-8")
        python, script = os.path.realpath(sys.executable), installed / "server/.mcpgreen/start.py"
        env = {"PATH": os.defpath, **cache}
        refused = subprocess.run([python, script], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert (refused.returncode, refused.stdout) == (1, b"")
        assert b"the packages could not be fetched; install Python 3.99" in refused.stderr
        assert list((tmp_path / "mcpgreen/runtimes").iterdir()) == []

        about.write_text(json.dumps({**fields, "packages": {}}), encoding="utf-8")
        for _ in range(2):
            (answer,) = client_call(installed, manifest, {}, call, python=sys.executable, **cache)
            assert answer["result"]["content"][0]["text"] == "Hello, World!\n"
        (runtime,) = (tmp_path / "mcpgreen/runtimes").iterdir()
        assert (tmp_path / "mcpgreen").stat().st_mode & 0o777 == 0o700

        runtime.chmod(0o777)  # so others could have changed what is run
        refused = subprocess.run([python, script], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert (refused.returncode, refused.stdout) == (1, b"")
        assert (
            b"other users can write to it, or have put it there; set XDG_CACHE_HOME to a directory of your own"
            in refused.stderr
        )
    finally:
        about.write_text(before, encoding="utf-8")


def test_a_project_with_errors_is_not_bundled(tmp_path: Path) -> None:
    mcpgreen("new", "demo", cwd=tmp_path)
    (tmp_path / "demo/tools/hello.meta.json").write_text("{", encoding="utf-8")

    done = mcpgreen("bundle", cwd=tmp_path / "demo")

    assert (done.returncode, done.stdout) == (1, "")
    assert "tools/hello.meta.json: not valid JSON" in done.stderr
    assert not list((tmp_path / "demo").glob("*.mcpb"))


@pytest.mark.parametrize(
    ("arguments", "conf", "status", "reason"),
    [
        (["--platform", "win32"], "", 1, "in WSL, use linux"),
        (["--platform", "amiga"], "", 2, "choose linux, darwin, all"),
        (["--name", "no good"], "", 1, "this is not a valid bundle name"),
        (["--version", "1 0"], "", 1, "this is not a valid bundle version"),
        ([], "MCPB_INCLUDE=../secrets", 1, "must be a path inside the project"),
        ([], "MCPB_INCLUDE=/etc", 1, "must be a path inside the project"),
        ([], "MCPB_INCLUDE=missing", 1, "it does not exist"),
        ([], "MCPB_USER_CONFIG_ENV_MAP=key=KEY", 1, "user_config does not define it"),
        ([], "MCPB_USER_CONFIG_FILE=none.json", 1, "there is no such file"),
        ([], "MCPB_NAME='open", 1, "it cannot be read"),
        ([], "MCPB_HOMEPAGE=nowhere", 1, "homepage"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path: Path, arguments: list[str], conf: str, status: int, reason: str) -> None:
    mcpgreen("new", "demo", "--no-hello", cwd=tmp_path)
    (tmp_path / "demo/mcpb.conf").write_text(f"MCPB_AUTHOR_NAME=Ada\n{conf}\n", encoding="utf-8")

    done = mcpgreen("bundle", *arguments, cwd=tmp_path / "demo")

    assert (done.returncode, done.stdout) == (status, "")
    assert reason in done.stderr


@pytest.mark.parametrize(
    "change",
    [{"author": {}}, {"version": None}, {"extra": 1}, {"server": {"type": "shell"}}, {"homepage": "x"}],
    ids=str,
)
def test_a_manifest_that_breaks_the_rules_is_noticed(manifest: dict[str, Any], change: dict[str, Any]) -> None:
    require_valid(manifest)
    with pytest.raises(ProjectError):
        require_valid({**manifest, **change})
