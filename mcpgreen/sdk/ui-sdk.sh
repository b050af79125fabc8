# shellcheck shell=bash
# Part of the shell SDK: results for clients that show MCP Apps, and apps from templates.
#
# Sourced by tool-sdk.sh when one of its functions is called. Older tools source it themselves.

if ! declare -F __mcp_quote >/dev/null; then
  # shellcheck source=/dev/null
  source "${BASH_SOURCE[0]%/*}/tool-sdk.sh"
fi
__mcp_load errors

mcp_client_supports_ui() {
  case ${MCPBASH_CLIENT_SUPPORTS_UI:-} in
    1 | true) return 0 ;;
    *) return 1 ;;
  esac
}

# The URI is for the reader of the script: clients know from the tool's description which app to show.
mcp_result_with_ui() {
  local text=${2-} data=${3:-} structured=""
  if ! mcp_client_supports_ui && __mcp_has_json && mcp_is_valid_json "$text"; then
    mcp_result_success "$text"
    return 0
  fi
  if [[ -n $data ]]; then
    if ! __mcp_has_json; then
      __mcp_on_one_line "$data"
    elif ! __mcp_compact "$data"; then
      __mcp_print_internal_error "Invalid JSON passed to mcp_result_with_ui"
      return 0
    fi
    [[ $__MCP_OUT == null ]] || structured=",\"structuredContent\":$__MCP_OUT"
  fi
  __mcp_quote "$text"
  printf '{"content":[{"type":"text","text":%s}]%s,"isError":false}\n' "$__MCP_OUT" "$structured"
}

mcp_result_with_ui_data() {
  mcp_result_with_ui "$@"
}

# Prints a template with its configuration as one document. The server has the templates, and fills them.
__mcp_ui_page() {
  local caller=$1 template=$2 config=${3:-} title=${4:-${MCP_TOOL_NAME:-Page}}
  local home=${MCPBASH_HOME:-${__MCP_SDK_DIR%/*}}
  # An empty or relative part of PYTHONPATH is the working directory, and no place for modules.
  local places
  places=$(printf '%s' "${PYTHONPATH:-}" | tr : '\n' | sed -n '/^\//p' | paste -sd : -)
  printf '%s' "$config" | PYTHONPATH=$places "${MCPGREEN_PYTHON:-python3}" -c '
import sys
sys.path[0] = sys.argv[1]
try:
    from mcpgreen.text import jsontext
    from mcpgreen.catalog.apps.templates import render
    from mcpgreen.errors import ProjectError
except ImportError as error:
    sys.exit(f"{sys.argv[2]}: the templates need MCPGREEN_PYTHON, the interpreter of the server ({error})")
try:
    config = jsontext.loads(sys.stdin.buffer.read())
    if not isinstance(config, dict):
        raise ValueError
    page = render(sys.argv[3], config, title=sys.argv[4])
except ValueError:
    sys.exit(f"{sys.argv[2]}: the configuration must be a JSON object")
except ProjectError as error:
    sys.exit(f"{sys.argv[2]}: {error.reason}")
sys.stdout.buffer.write(page.encode("utf-8"))' "${home%/*}" "$caller" "$template" "$title"
}

mcp_ui_form() {
  __mcp_ui_page mcp_ui_form form "$@"
}

mcp_ui_table() {
  __mcp_ui_page mcp_ui_table data-table "$@"
}

mcp_tool_meta_with_ui() {
  local visibility=${2:-model app}
  if [[ -z ${1:-} ]]; then
    __mcp_warn "mcp_tool_meta_with_ui: an app's URI is required"
    return 1
  fi
  __mcp_quote "$1"
  # shellcheck disable=SC2086 # the splitting at commas and blanks is intended
  printf '{"ui":{"resourceUri":%s,"visibility":%s}}\n' "$__MCP_OUT" "$(mcp_json_arr ${visibility//,/ })"
}
