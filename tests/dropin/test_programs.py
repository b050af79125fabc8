"""Tools around other programs: configuration and downloads, a wrapped program, a studio."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.providers.site import Site
from tests.support.prerequisites import require_program
from tests.support.waiting import eventually, is_alive
from tests.support.wire import text_of

from .conftest import ENVELOPE, Json, OldTree, Serve

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")

FETCH = """
mcp_config_load --env FETCH_API_CONFIG --file "${MCPBASH_PROJECT_ROOT}/config.json" \\
  --example "${MCPBASH_PROJECT_ROOT}/config.example.json" --defaults '{"timeout": 30, "max_bytes": 1000}'
timeout="$(mcp_config_get '.timeout' --default 5)"
max_bytes="$(mcp_config_get '.max_bytes' --default 100)"
label="$(mcp_config_get '.label' --default none)"
url="$(mcp_args_require '.url')"
if [[ ! "${url}" =~ ^https:// ]]; then
  mcp_error "validation_error" "URL must use HTTPS" --hint "Begin with https://" --data "$(mcp_json_obj url "${url}")"
fi
host="$(printf '%s' "${url}" | sed -E 's|^https?://([^/:]+).*|\\1|')"
copy="$(mktemp)"
trap 'rm -f "${copy}"' EXIT
mcp_log_info "fetch" "fetching within ${timeout} s"
result="$(mcp_download_safe --url "${url}" --out "${copy}" --allow "${host}" --timeout "${timeout}" \\
  --max-bytes "${max_bytes}")"
if [[ "$(printf '%s' "${result}" | jq -r '.success')" == "true" ]]; then
  mcp_result_success "$(mcp_json_obj bytes "$(printf '%s' "${result}" | jq -r '.bytes')" \\
    preview "$(head -c 100 "${copy}")" label "${label}" timeout "${timeout}")"
else
  kind="$(printf '%s' "${result}" | jq -r '.error.type')"
  mcp_error "${kind}" "$(printf '%s' "${result}" | jq -r '.error.message')" --hint "Try another address"
fi
"""

DETECT = """#!/usr/bin/env bash
set -euo pipefail
detect_cli() {  # NAME HINT: where a program is, also if PATH does not say so
  local name="$1" variable candidate override=""
  variable="$(printf '%s_CLI' "${name}" | tr '[:lower:]-' '[:upper:]_')"
  override="${!variable:-}"
  for candidate in "${override}" "${HOME}/.local/bin/${name}" "/usr/local/bin/${name}" "/usr/bin/${name}"; do
    [[ -n "${candidate}" && -x "${candidate}" ]] && { printf '%s\\n' "${candidate}"; return 0; }
  done
  command -v "${name}" 2>/dev/null && return 0
  printf '%s is missing. Install: %s\\n' "${name}" "$2" >&2
  return 1
}
"""

WRAPPER_HEAD = '#!/usr/bin/env bash\nset -uo pipefail\nsource "${MCP_SDK:?MCP_SDK is not set}/tool-sdk.sh"\n'
WRAPPER = """
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "${here}/../../lib/cli-detect.sh"
command_name="$(mcp_args_get '.command // empty')"
case "${command_name}" in
  version)
    program="$(detect_cli gadget "make gadget")" || mcp_fail -32603 "gadget not found"
    output="$("${program}" --version 2>&1)" || {
      message="$(mcp_extract_cli_error "${output}" "" 9)"
      mcp_result_error "$(mcp_json_obj type cli_error message "gadget failed: ${message}")"
      exit 0
    }
    mcp_result_success "$(mcp_json_obj version "${output}")" ;;
  "") mcp_fail_invalid_args "Missing required argument: command" ;;
  *) mcp_fail_invalid_args "Unknown command: ${command_name}" ;;
esac
"""

MEDIA_LIB = """#!/usr/bin/env bash
set -euo pipefail
media_path() {  # PATH: below one of the roots
  local path="$1" root
  while IFS= read -r root; do
    [[ -n "${root}" ]] || continue
    if mcp_roots_contains "${root}/${path}"; then printf '%s/%s' "${root}" "${path}"; return 0; fi
  done <<<"${MCP_ROOTS_PATHS}"
  mcp_fail -32602 "Access denied: ${path} is outside allowed roots"
}
"""

TRANSCODE = """
script_dir="$(cd "$(dirname "$0")" && pwd)"
source "${script_dir}/../../lib/media.sh"
json_bin="${MCPBASH_JSON_TOOL_BIN:-}"
input="$(media_path "$(mcp_args_require '.input')")"
output="$(media_path "$(mcp_args_require '.output')")"
if [[ ! -f "${input}" ]]; then
  mcp_result_error "$(mcp_json_obj type not_found message "Input file not found" hint "${MCP_ROOTS_COUNT} roots")"
  exit 0
fi
if [[ -f "${output}" ]]; then
  if [[ "${MCP_ELICIT_SUPPORTED:-0}" != "1" ]]; then
    mcp_result_error "$(mcp_json_obj type exists message "Output file already exists")"
    exit 0
  fi
  reply="$(mcp_elicit_confirm "Overwrite?")" || true
  if [[ "$("${json_bin}" -r '.content.confirmed // false' <<<"${reply}")" != "true" ]]; then
    mcp_result_error "$(mcp_json_obj type declined message "Overwrite declined")"
    exit 0
  fi
fi
mcp_run_with_progress --pattern 'frame=([0-9]+)' --extract match1 --total 4 --quiet -- \\
  ffmpeg -i "${input}" -y "${output}"
mcp_result_success "$(mcp_json_obj message "Transcoded" roots "${MCP_ROOTS_JSON}")"
"""

# Writes what a real one would tell of its frames, and waits if the input says so.
FFMPEG = """
for frame in 1 2 3 4; do echo "frame=${frame} fps=25" >&2; sleep 0.05; done
if [[ "$(cat "$2")" == endless ]]; then echo $$ >"$4.pid"; sleep 60; fi
cp "$2" "$4"
"""


@pytest.fixture
def fetching(tree: OldTree) -> OldTree:
    require_program("jq")
    schema = {"type": "object", "properties": {"url": {"type": "string"}}}
    tree.shell_tool("fetch-api-data", FETCH, name="fetch-api-data", inputSchema=schema, timeoutSecs=60)
    tree.json("config.example.json", {"timeout": 10, "label": "example"})
    return tree


def loopback(authority_file: str) -> dict[str, str]:
    return {
        "SSL_CERT_FILE": authority_file,
        "MCPGREEN_NET_ALLOW_ADDRESSES": "127.0.0.1",
        "MCPBASH_TOOL_ENV_MODE": "allowlist",
        "MCPBASH_TOOL_ENV_ALLOWLIST": "FETCH_API_CONFIG,SSL_CERT_FILE",
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_12_what_is_configured_is_fetched(
    fetching: OldTree, serve: Serve, site: Site, authority_file: Path, revision: str
) -> None:
    own = json.dumps({"label": "from the environment"})
    client = serve(revision, **loopback(str(authority_file)), FETCH_API_CONFIG=own)

    result = client.call_tool("fetch-api-data", {"url": f"https://127.0.0.1:{site.port}/ok"})
    fetched = result["structuredContent"]["result"]
    assert (int(fetched.pop("bytes")), fetched.pop("preview")[:4]) == (9, "café")
    assert fetched == {"label": "from the environment", "timeout": "10"}


def test_12_a_variable_that_is_not_passed_on_does_not_configure(fetching: OldTree, serve: Serve) -> None:
    client = serve(FETCH_API_CONFIG='{"label": "unseen"}')
    fetching.shell_tool(
        "label",
        'mcp_config_load --env FETCH_API_CONFIG --defaults \'{"label": "default"}\'\n'
        "mcp_emit_text \"$(mcp_config_get '.label')\"",
        name="label",
    )
    assert text_of(client.call_tool("label")) == "default"


def test_12_a_refusal_is_the_result_though_the_script_goes_on(fetching: OldTree, serve: Serve) -> None:
    """`mcp_error` prints and returns: what the script prints after it is a second document."""
    result = serve().call_tool("fetch-api-data", {"url": "http://example.invalid/"})

    assert result["isError"] is True
    assert result["structuredContent"]["error"]["type"] == "validation_error"
    assert "Begin with https://" in text_of(result)


def test_12_a_private_address_is_not_fetched(fetching: OldTree, serve: Serve) -> None:
    result = serve().call_tool("fetch-api-data", {"url": "https://127.0.0.1/"})
    assert result["isError"] is True
    assert result["structuredContent"]["error"]["type"] == "host_blocked"


@pytest.fixture
def wrapping(tree: OldTree) -> OldTree:
    tree.program("lib/cli-detect.sh", DETECT)
    tree.shell_tool("system-info", WRAPPER, head=WRAPPER_HEAD, name="system-info", timeoutSecs=10)
    tree.program("tools/system-info/smoke.sh", "exit 0")
    tree.write("tools/system-info/README.md", "How to use it\n")
    return tree


@pytest.mark.parametrize("revision", REVISIONS)
def test_15_a_program_is_found_by_the_projects_own_library(
    wrapping: OldTree, serve: Serve, tmp_path: Path, revision: str
) -> None:
    home = tmp_path / "home"
    wrapping.program("../home/.local/bin/gadget", 'echo "gadget 1.2"')
    client = serve(revision, HOME=str(home))

    assert list(client.tools()) == ["system-info"]
    result = client.call_tool("system-info", {"command": "version"})
    assert result["structuredContent"]["result"] == {"version": "gadget 1.2"}


def test_15_a_program_that_fails_does_not_end_the_script(wrapping: OldTree, serve: Serve, tmp_path: Path) -> None:
    wrapping.program("../home/.local/bin/gadget", 'echo \'{"error": {"message": "no battery"}}\'; exit 9')
    client = serve(HOME=str(tmp_path / "home"))

    failed = client.call_tool("system-info", {"command": "version"})
    assert (failed["isError"], text_of(failed)) == (True, "gadget failed: no battery")
    unknown = client.error("tools/call", {"name": "system-info", "arguments": {"command": "fly"}})
    assert (unknown["code"], unknown["message"]) == (-32602, "Unknown command: fly")
    missing = serve(HOME=str(tmp_path)).error(
        "tools/call", {"name": "system-info", "arguments": {"command": "version"}}
    )
    assert (missing["code"], missing["message"]) == (-32603, "gadget not found")


@pytest.fixture
def studio(tree: OldTree) -> OldTree:
    tree.write("lib/media.sh", MEDIA_LIB)
    tree.shell_tool("transcode", TRANSCODE, name="ffmpeg-transcode", outputSchema=ENVELOPE, timeoutSecs=60)
    tree.json("config/roots.json", {"roots": [{"path": "./media", "name": "Media"}]})
    tree.write("media/in.mp4", "frames")
    tree.program("bin/ffmpeg", FFMPEG)
    return tree


@pytest.fixture
def with_ffmpeg(studio: OldTree) -> dict[str, str]:
    return {"PATH": f"{studio.root / 'bin'}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_studio_progress_is_read_off_the_program(
    studio: OldTree, serve: Serve, with_ffmpeg: dict[str, str], revision: str
) -> None:
    client = serve(revision, **with_ffmpeg)
    arguments = {"input": "in.mp4", "output": "out.mp4"}
    result = client.call_tool("ffmpeg-transcode", arguments, meta={"progressToken": "t"})

    (root,) = json.loads(result["structuredContent"]["result"]["roots"])
    assert (root["name"], root["path"]) == ("Media", str(studio.root / "media"))
    assert studio.read("media/out.mp4") == "frames"
    told = {each["params"]["progress"]: each["params"] for each in client.wire.notices("notifications/progress")}
    assert set(told) <= {25, 50, 75, 100}
    assert told[100]["message"] == "frame=4 fps=25"


@pytest.mark.parametrize(("confirmed", "content"), [(True, "frames"), (False, "old")])
def test_studio_a_person_decides_whether_to_overwrite(
    studio: OldTree, serve: Serve, with_ffmpeg: dict[str, str], confirmed: bool, content: str
) -> None:
    studio.write("media/out.mp4", "old")
    client = serve(capabilities={"elicitation": {}}, **with_ffmpeg)
    id = client.start_tool("ffmpeg-transcode", {"input": "in.mp4", "output": "out.mp4"})
    client.answer(client.asked("elicitation/create"), {"action": "accept", "content": {"confirmed": confirmed}})

    assert client.wire.response(id)["result"]["isError"] is not confirmed
    assert studio.read("media/out.mp4") == content


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input": "absent.mp4", "output": "out.mp4"}, "Input file not found"),
        ({"input": "in.mp4", "output": "in.mp4"}, "Output file already exists"),
    ],
)
def test_studio_what_the_model_can_mend_is_a_result(
    studio: OldTree, serve: Serve, with_ffmpeg: dict[str, str], arguments: Json, message: str
) -> None:
    result = serve(**with_ffmpeg).call_tool("ffmpeg-transcode", arguments)
    assert (result["isError"], text_of(result)) == (True, message)


def test_studio_a_path_outside_the_roots_is_denied(studio: OldTree, serve: Serve, with_ffmpeg: dict[str, str]) -> None:
    arguments = {"input": "../server.d/server.meta.json", "output": "out.mp4"}
    denied = serve(**with_ffmpeg).error("tools/call", {"name": "ffmpeg-transcode", "arguments": arguments})
    assert denied["code"] == -32602
    assert "is outside allowed roots" in denied["message"]


def test_studio_the_program_ends_with_a_cancelled_call(
    studio: OldTree, serve: Serve, with_ffmpeg: dict[str, str]
) -> None:
    studio.write("media/in.mp4", "endless")
    client = serve(**with_ffmpeg)
    id = client.start_tool("ffmpeg-transcode", {"input": "in.mp4", "output": "out.mp4"})
    mark = studio.root / "media" / "out.mp4.pid"
    pid = eventually(lambda: mark.exists() and mark.read_text(encoding="utf-8").strip())
    client.wire.notify("notifications/cancelled", {"requestId": id})

    eventually(lambda: not is_alive(pid))
