"""Scripts that provide resources: how they are found, what they are told, what becomes of how they end."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.features.test_resources import read, refused
from tests.support.client import ALL_REVISIONS, Json, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import is_alive
from tests.support.wire import MODERN

SHOW_ENVIRONMENT = "env -0"


def environment_of(contents: Json) -> dict[str, str]:
    """What `env -0` printed, which is no text for its NULs."""
    import base64

    pairs = base64.b64decode(contents["blob"]).decode("utf-8").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


@pytest.mark.requirement("G-providers")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_script_provides_the_resources_of_its_scheme(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    project.provider("weather.sh", 'echo "$1: sunny"')
    project.described("berlin", uri="weather://berlin", mimeType="text/x-weather")
    client = speak(revision)

    assert read(client, "weather://berlin") == {
        "uri": "weather://berlin",
        "mimeType": "text/x-weather",
        "text": "weather://berlin: sunny\n",
    }
    assert read(client, "weather://unlisted")["text"] == "weather://unlisted: sunny\n"


@pytest.mark.requirement("G-providers")
def test_what_is_no_script_is_no_provider(project: ProjectBuilder, speak: Speak) -> None:
    project.write("providers/README.md", "Not a script.")
    project.provider(".hidden.sh", "echo no")
    (project.root / "providers/folder.sh").mkdir()
    client = speak()

    for scheme in ("readme", "README", "hidden", ".hidden", "folder"):
        assert refused(client, f"{scheme}://x")["code"] in (-32002, -32602)


@pytest.mark.requirement("G-providers")
@pytest.mark.parametrize("scheme", ["echo", "file", "https"])
def test_a_script_of_the_project_comes_before_ours(project: ProjectBuilder, speak: Speak, scheme: str) -> None:
    project.provider(f"{scheme}.sh", 'echo "mine: $1"')

    assert read(speak(), f"{scheme}:///x")["text"] == f"mine: {scheme}:///x\n"


@pytest.mark.requirement("G-providers")
def test_a_script_may_hand_on_to_ours(project: ProjectBuilder, speak: Speak) -> None:
    path = project.resource("guide.md", "# Guide")
    project.write("server.d/env", "SECRET_OF_THE_SERVER=1\n")
    project.provider("file.sh", 'exec "$MCPBASH_HOME/providers/file.sh" "$@"')
    client = speak()

    assert read(client, path.as_uri())["text"] == "# Guide"
    assert refused(client, "file:///etc/passwd")["message"] == "Resource outside allowed roots"
    assert refused(client, "file://./server.d/env")["message"] == "Resource outside allowed roots"


@pytest.mark.requirement("G-providers")
def test_scripts_may_come_and_change_while_the_server_runs(project: ProjectBuilder, speak: Speak) -> None:
    """One that became executable was not noticed until something else changed in the directory."""
    client = speak()
    assert refused(client, "late://x")["code"] == -32002
    script = project.provider("late", "#!/bin/sh\necho here", mode=0o600)
    read(client, "late://x")
    script.write_text("no script at all")
    assert refused(client, "late://x")["code"] == -32002
    script.write_text("#!/bin/sh\necho again")
    script.chmod(0o755)
    assert read(client, "late://x")["text"] == "again\n"
    script.unlink()
    assert refused(client, "late://x")["code"] == -32002


@pytest.mark.requirement("G-providers")
@pytest.mark.parametrize("mode", [0o757, 0o646])
def test_a_script_that_others_may_write_to_does_not_run(project: ProjectBuilder, speak: Speak, mode: int) -> None:
    project.provider("open.sh", "touch ran", mode=mode)
    error = refused(speak(), "open://x")

    assert error["code"] == -32602
    assert error["message"] == (
        "Resource provider 'open' path rejected by policy: it can be written to by others (run mcpgreen validate --fix)"
    )
    assert not (project.root / "ran").exists()


@pytest.mark.requirement("G-providers")
def test_a_script_elsewhere_does_not_run(project: ProjectBuilder, speak: Speak, tmp_path: Path) -> None:
    script = tmp_path / "elsewhere.sh"
    script.write_text("#!/bin/sh\necho no\n")
    script.chmod(0o755)
    (project.root / "providers").mkdir()
    os.symlink(script, project.root / "providers/link.sh")
    error = refused(speak(), "link://x")

    assert error["message"] == "Resource provider 'link' path rejected by policy: it points outside providers/"


@pytest.mark.requirement("G-templates")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_the_provider_of_a_template_gets_address_and_variables(
    project: ProjectBuilder, speak: Speak, revision: str
) -> None:
    project.provider("weather.sh", SHOW_ENVIRONMENT)
    template = "weather://{city}/days{?from,to}"
    project.described("forecast", uriTemplate=template, mimeType="text/x-weather", _meta={"x/y": 1}, provider="weather")
    uri = "weather://K%C3%B6ln/days?from=a%20b"
    contents = read(speak(revision), uri)
    seen = environment_of(contents)

    assert (contents["uri"], contents["mimeType"]) == (uri, "text/x-weather")
    assert seen["MCP_RESOURCE_URI"] == uri
    assert seen["MCP_RESOURCE_TEMPLATE"] == template
    assert seen["MCP_RESOURCE_NAME"] == "forecast"
    assert json.loads(seen["MCP_RESOURCE_ARGS_JSON"]) == {"city": "Köln", "from": "a b"}
    assert seen["MCP_RESOURCE_VAR_city"] == "Köln"
    assert seen["MCP_RESOURCE_VAR_from"] == "a b"
    assert "MCP_RESOURCE_VAR_to" not in seen
    assert json.loads(seen["MCP_RESOURCE_METADATA"])["uriTemplate"] == template


@pytest.mark.requirement("G-templates")
def test_a_resource_with_just_this_address_comes_before_a_template(project: ProjectBuilder, speak: Speak) -> None:
    project.provider("docs.sh", 'echo "by template: $MCP_RESOURCE_VAR_page"')
    project.described("page", uriTemplate="docs://{page}")
    project.resource("guide.md", "# Guide", uri="docs://guide")
    client = speak()

    assert read(client, "docs://guide")["text"] == "# Guide"
    assert read(client, "docs://other")["text"] == "by template: other\n"


@pytest.mark.requirement("G-templates")
def test_what_a_template_does_not_fit_is_not_read_by_it(project: ProjectBuilder, speak: Speak) -> None:
    project.provider("reports.sh", "echo never")
    project.described("page", uriTemplate="docs://{page}/view", provider="reports")
    client = speak()

    for uri in ("docs://a/b/view", "docs:///view", "docs://a/viewer", "docs://a"):
        assert refused(client, uri)["code"] == -32002


@pytest.mark.requirement("G-templates", "P-114")
def test_no_shell_sees_the_variables(project: ProjectBuilder, speak: Speak) -> None:
    project.provider("x.sh", 'printf "%s|%s" "$1" "$MCP_RESOURCE_VAR_word"')
    project.described("word", uriTemplate="x://{word}")
    uri = "x://%24%28touch%20owned%29%3B%60touch%20owned%60%0A%27%22"

    assert read(speak(), uri)["text"] == f"{uri}|$(touch owned);`touch owned`\n'\""
    assert not (project.root / "owned").exists()


@pytest.mark.requirement("G-templates", "P-121")
def test_a_template_of_file_addresses_is_confined_like_any_other(
    project: ProjectBuilder, speak: Speak, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    path = project.resource("guide.md", "# Guide")
    project.described("any", uriTemplate="file:///{+path}", mimeType="text/x-any")
    client = speak()

    assert read(client, path.as_uri())["mimeType"] == "text/markdown"
    assert read(client, (project.root / "server.d/../resources/guide.md").as_uri().replace("server.d/../", ""))["text"]
    for uri in ((tmp_path / "secret.txt").as_uri(), f"{project.root.as_uri()}/../secret.txt"):
        assert refused(client, uri)["code"] in (-32602, -32603)


@pytest.mark.requirement("G-providers", "G-resource-errors")
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
@pytest.mark.parametrize(
    ("status", "reason", "code", "message"),
    [
        (2, "", -32603, "Resource outside allowed roots"),
        (2, "/private/path", -32603, "Resource outside allowed roots"),
        (3, "", -32002, "Resource not found"),
        (4, "", -32602, "Invalid resource specification"),
        (4, "No such city", -32602, "No such city"),
        (5, "", -32603, "Resource fetch failed"),
        (5, "Station is down", -32603, "Station is down"),
        (6, "", -32603, "Resource exceeded size limit"),
        (6, "Too many days", -32603, "Too many days"),
        (7, "redirect:https://example.com/", -32603, "redirect:https://example.com/"),
        (1, "", -32603, "Resource provider failed"),
        (99, "Broken", -32603, "Broken"),
    ],
)
def test_the_exit_status_says_what_went_wrong(
    shared_project: ProjectBuilder,
    shared_speak: Speak,
    revision: str,
    status: int,
    reason: str,
    code: int,
    message: str,
) -> None:
    shared_project.provider("ends.sh", 'echo partial; printf "%s" "$MCP_RESOURCE_VAR_why" >&2; exit "${1##*/}"')
    shared_project.described("ends", uriTemplate="ends://{why}/{status}")
    shared_project.described("silent", uriTemplate="ends:/{status}")
    uri = shared_uri(reason, status)
    error = refused(shared_speak(revision), uri)

    if revision == MODERN and code == -32002:
        code = -32602
    assert (error["code"], error["message"]) == (code, message)
    assert error.get("data") == ({"uri": uri} if message == "Resource not found" else None)


def shared_uri(reason: str, status: int) -> str:
    from urllib.parse import quote

    return f"ends://{quote(reason, safe='')}/{status}" if reason else f"ends:/{status}"


@pytest.mark.requirement("G-providers")
@pytest.mark.skipif(sys.platform != "linux", reason="daemons are found on Linux")
def test_a_daemon_that_a_script_starts_goes_with_it(project: ProjectBuilder, speak: Speak) -> None:
    project.provider("forks.sh", "(setsid sleep 600 & echo $! > pid) ; echo done")

    assert read(speak(), "forks://x")["text"] == "done\n"
    assert not is_alive(project.read("pid"))


@pytest.mark.requirement("G-providers", "G-resource-size")
def test_a_script_that_prints_too_much_is_stopped(project: ProjectBuilder, speak: Speak) -> None:
    project.provider("endless.sh", "echo $$ > pid; exec yes")
    project.provider("over.sh", "head -c 1001 /dev/zero")
    project.provider("fits.sh", "printf '%01000d' 7")
    client = speak(max_resource_bytes=1000)

    for scheme in ("endless", "over"):
        assert refused(client, f"{scheme}://x") == {"code": -32603, "message": "Resource content exceeds 1000 bytes"}
    assert not is_alive(project.read("pid"))
    assert len(read(client, "fits://x")["text"]) == 1000


@pytest.mark.requirement("G-providers", "P-122")
@pytest.mark.parametrize(
    ("uri", "mime"),
    [
        ("any://a/data.json", "application/json"),
        ("any://a/data.json?x=1.md#y.txt", "application/json"),
        ("any://a/data", "text/plain"),
    ],
)
def test_the_type_of_what_a_script_provides_comes_from_the_address(
    project: ProjectBuilder, speak: Speak, uri: str, mime: str
) -> None:
    project.provider("any.sh", "echo '{}'")

    assert read(speak(), uri)["mimeType"] == mime


GIVEN = {"API_KEY": "secret", "NAMED": "named", "MCP_OWN": "own", "LC_ALL": "C", "http_proxy": "http://proxy.example"}


@pytest.mark.requirement("G-providers")
@pytest.mark.parametrize(
    ("settings", "unusual"),
    [
        ({}, set()),
        ({"provider_env_mode": "isolate", "provider_env_allowlist": "NAMED"}, set()),
        ({"provider_env_mode": "allowlist", "provider_env_allowlist": "NAMED"}, {"NAMED"}),
        ({"provider_env_mode": "inherit"}, set()),
        ({"provider_env_mode": "inherit", "provider_env_inherit_allow": "true"}, {"NAMED", "API_KEY"}),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
)
def test_the_mode_decides_which_variables_a_script_sees(
    project: ProjectBuilder, speak: Speak, settings: dict[str, Any], unusual: set[str]
) -> None:
    project.provider("show.sh", SHOW_ENVIRONMENT)
    seen = environment_of(read(speak(env=GIVEN, **settings), "show://x"))

    assert {name for name in ("NAMED", "API_KEY") if name in seen} == unusual
    assert {name: seen[name] for name in ("MCP_OWN", "LC_ALL", "http_proxy")} == {
        name: GIVEN[name] for name in ("MCP_OWN", "LC_ALL", "http_proxy")
    }


@pytest.mark.requirement("G-providers")
def test_a_script_knows_project_and_directories_and_runs_in_the_project(
    project: ProjectBuilder, speak: Speak, tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    project.provider("show.sh", 'export WORKING_DIRECTORY="$PWD" ARGUMENTS=$#; cat; env -0')
    client = speak(resources_roots=str(tmp_path / "more"), wire={"cwd": tmp_path})
    seen = environment_of(read(client, "show://x"))

    root = str(project.root)
    assert seen["WORKING_DIRECTORY"] == seen["MCPBASH_PROJECT_ROOT"] == seen["MCPGREEN_PROJECT_ROOT"] == root
    assert seen["ARGUMENTS"] == "1"
    assert seen["MCPBASH_RESOURCES_DIR"] == f"{root}/resources"
    assert seen["MCPBASH_PROVIDERS_DIR"] == f"{root}/providers"
    assert seen["MCP_RESOURCES_ROOTS"] == f"{root}/resources:{tmp_path}/more:{root}"
    assert os.path.isfile(f"{seen['MCPBASH_HOME']}/providers/file.sh")
    assert not os.path.exists(os.path.join(root, "core"))


@pytest.mark.requirement("G-providers")
def test_a_script_that_reads_a_described_file_is_told_where_it_is(project: ProjectBuilder, speak: Speak) -> None:
    path = project.resource("guide.md", "# Guide", uri="docs://guide", provider="shout")
    project.provider("shout.sh", 'tr a-z A-Z < "$MCP_RESOURCE_PATH"')

    contents = read(speak(), "docs://guide")
    assert (contents["text"], contents["uri"]) == ("# GUIDE", "docs://guide")
    assert path.exists()


@pytest.mark.requirement("G-providers", "G-remote-token")
def test_the_secrets_of_the_server_are_for_no_script(project: ProjectBuilder, speak: Speak) -> None:
    token = "0123456789abcdef0123456789abcdef"
    project.provider("show.sh", SHOW_ENVIRONMENT)
    client = speak(
        MODERN,
        remote_token=token,
        state_key="k" * 40,
        provider_env_mode="inherit",
        provider_env_inherit_allow="true",
        env={"MCPBASH_REMOTE_TOKEN": token},
    )
    seen = environment_of(read(client, "show://x", meta={"mcpbash/remoteToken": token}))

    assert token not in "".join(seen.values())
    assert not {name for name in seen if name.endswith(("REMOTE_TOKEN", "STATE_KEY"))}
