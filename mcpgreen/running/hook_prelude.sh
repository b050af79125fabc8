# shellcheck shell=bash
# The functions that a project's hook can call, and how its answer gets back to the server.
#
#   bash hook_prelude.sh VERB FD FILE [ARGUMENT...]
#
# Sources FILE as the hook that VERB names and writes what it has to say to the descriptor FD: the environment as
# `env -0` gives it, or records of two strings, each ended by a NUL: what it is, and its content.
#
# Rules of this file:
#  * The grammar of bash 3.2, because that is what macOS ships.
#  * No option of the shell is set: hooks were written for a shell without.
#  * A hook may return or exit at any place; what it has said until then counts.

__mcp_verb=$1 __mcp_fd=$2 __mcp_file=$3
shift 3
__mcp_arguments=("$@")
set --

__mcp_record() {
  printf '%s\0%s\0' "$1" "${2-}" >&"$__mcp_fd"
}

# JSON, by the processor that the server names

__mcp_jq() {
  if [[ -z ${MCPBASH_JSON_TOOL_BIN:-} ]]; then
    printf 'no JSON tool: install jq\n' >&2
    return 1
  fi
  "$MCPBASH_JSON_TOOL_BIN" "$@"
}

# A JSON string, with its quotes.
mcp_json_escape() {
  printf '%s' "${1-}" | __mcp_jq -Rs .
}

mcp_json_quote_text() {
  mcp_json_escape "$@"
}

# One JSON value on one line.
mcp_json_normalize_line() {
  printf '%s' "${1-}" | __mcp_jq -c .
}

# VALUE ...: an array of strings.
mcp_json_arr() {
  local value
  for value in "$@"; do
    mcp_json_escape "$value" || return
  done | __mcp_jq -sc .
}

# KEY VALUE ...: an object of strings.
mcp_json_obj() {
  mcp_json_arr "$@" |
    __mcp_jq -c '[recurse(.[2:]; length > 0) | select(length > 0) | {(.[0]): (.[1] // "")}] | add // {}'
}

# JSON [-r] FILTER: the value; fails when there is none.
mcp_json_extract() {
  local json=${1-} form=-c
  shift
  if [[ ${1-} == -r ]]; then
    form=-r
    shift
  fi
  printf '%s' "$json" |
    __mcp_jq "$form" $'[\n'"${1:-.}"$'\n] | if all(. == null) then error("no such value") else .[] end'
}

# JSON [-r] FILTER DEFAULT: the value, or the default when there is none or the JSON is not valid.
mcp_json_extract_optional() {
  local default=${3-}
  if [[ ${2-} == -r ]]; then
    default=${4-}
  fi
  mcp_json_extract "$@" 2>/dev/null || printf '%s\n' "$default"
}

# Log: LOGGER MESSAGE, or MESSAGE alone

__mcp_log() {
  local text=${2-}
  if (($# > 2)); then
    text="$2: ${*:3}"
  fi
  case $__mcp_verb in
    register | policy) __mcp_record "log $1" "$text" ;;
    *) printf '%s: %s\n' "$1" "$text" >&2 ;;
  esac
}

mcp_logging_debug() { __mcp_log debug "$@"; }
mcp_logging_info() { __mcp_log info "$@"; }
mcp_logging_notice() { __mcp_log notice "$@"; }
mcp_logging_warning() { __mcp_log warning "$@"; }
mcp_logging_error() { __mcp_log error "$@"; }
mcp_logging_critical() { __mcp_log critical "$@"; }
mcp_logging_alert() { __mcp_log alert "$@"; }
mcp_logging_emergency() { __mcp_log emergency "$@"; }

# register.sh: what is registered is recorded; the server checks it

mcp_tools_register_manual() { __mcp_record "item tools" "${1-}"; }
mcp_tools_manual_begin() { __mcp_record "begin tools"; }
mcp_tools_manual_finalize() { __mcp_record "finalize tools"; }
mcp_tools_manual_abort() { __mcp_record "abort tools"; }
mcp_register_tool() { mcp_tools_register_manual "$@"; }

mcp_resources_register_manual() { __mcp_record "item resources" "${1-}"; }
mcp_resources_manual_begin() { __mcp_record "begin resources"; }
mcp_resources_manual_finalize() { __mcp_record "finalize resources"; }
mcp_resources_manual_abort() { __mcp_record "abort resources"; }
mcp_register_resource() { mcp_resources_register_manual "$@"; }

mcp_resources_templates_register_manual() { __mcp_record "item resourceTemplates" "${1-}"; }
mcp_resources_templates_manual_begin() { __mcp_record "begin resourceTemplates"; }
mcp_resources_templates_manual_finalize() { __mcp_record "finalize resourceTemplates"; }
mcp_resources_templates_manual_abort() { __mcp_record "abort resourceTemplates"; }
mcp_register_resource_template() { mcp_resources_templates_register_manual "$@"; }

mcp_prompts_register_manual() { __mcp_record "item prompts" "${1-}"; }
mcp_prompts_manual_begin() { __mcp_record "begin prompts"; }
mcp_prompts_manual_finalize() { __mcp_record "finalize prompts"; }
mcp_prompts_manual_abort() { __mcp_record "abort prompts"; }
mcp_register_prompt() { mcp_prompts_register_manual "$@"; }

mcp_completion_register_manual() { __mcp_record "item completions" "${1-}"; }
mcp_completion_manual_begin() { __mcp_record "begin completions"; }
mcp_completion_manual_finalize() { __mcp_record "finalize completions"; }
mcp_completion_manual_abort() { __mcp_record "abort completions"; }
mcp_register_completion() { mcp_completion_register_manual "$@"; }

# policy.sh: CODE MESSAGE [DATA_JSON], for the refused client

mcp_tools_error() {
  _MCP_TOOLS_ERROR_CODE=${1-} _MCP_TOOLS_ERROR_MESSAGE=${2-} _MCP_TOOLS_ERROR_DATA=${3-}
  __mcp_tell_error
}

# From the variables, because a policy may set them itself.
__mcp_tell_error() {
  __mcp_record "error code" "${_MCP_TOOLS_ERROR_CODE-}"
  __mcp_record "error message" "${_MCP_TOOLS_ERROR_MESSAGE-}"
  __mcp_record "error data" "${_MCP_TOOLS_ERROR_DATA-}"
}

# health-checks.sh

mcp_health_check_command() {
  if type -P "${1-}" >/dev/null; then
    printf 'ok: %s\n' "${2:-the command ${1-} is there}" >&2
    return 0
  fi
  printf 'failed: %s: there is no command %s\n' "${2:-command ${1-}}" "${1-}" >&2
  return 1
}

mcp_health_check_env() {
  if [[ -n ${!1:-} ]]; then
    printf 'ok: %s\n' "${2:-the variable $1 is set}" >&2
    return 0
  fi
  printf 'failed: %s: the variable %s is not set\n' "${2:-variable $1}" "$1" >&2
  return 1
}

# The hook itself

__mcp_tell_environment() {
  local status=$?
  trap - EXIT
  if ((status == 0)); then
    "$__mcp_env" -0 >&"$__mcp_fd" || status=$?
  fi
  exit "$status"
}

__mcp_judge() {
  local name=$1 metadata=$2 status=$3
  if [[ $metadata == @* ]]; then
    metadata=$(<"${metadata#@}") # too long for an argument
  fi
  if ! declare -F mcp_tools_policy_check >/dev/null; then
    ((status != 0)) || __mcp_record verdict none
    exit "$status"
  fi
  if mcp_tools_policy_check "$name" "$metadata"; then
    __mcp_record verdict allowed
    exit 0
  fi
  __mcp_tell_error
  __mcp_record verdict denied
  exit 1
}

case $__mcp_verb in
  environment)
    exec 1>&2
    __mcp_env=$(type -P env) # now: the hook may give us another PATH
    trap __mcp_tell_environment EXIT
    # shellcheck source=/dev/null
    source "$__mcp_file"
    exit
    ;;
  policy)
    exec 1>&2
    unset _MCP_TOOLS_ERROR_CODE _MCP_TOOLS_ERROR_MESSAGE _MCP_TOOLS_ERROR_DATA
    # shellcheck source=/dev/null
    source "$__mcp_file"
    __mcp_judge "${__mcp_arguments[@]}" "$?"
    ;;
  health)
    exec 1>&2
    # shellcheck source=/dev/null
    source "$__mcp_file"
    exit
    ;;
  register)
    # shellcheck source=/dev/null
    source "$__mcp_file"
    exit
    ;;
esac
