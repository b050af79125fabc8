# shellcheck shell=bash
# Part of the shell SDK: error results and protocol errors.
#
# Sourced by tool-sdk.sh when one of its functions is called; do not source it alone.

__mcp_load results

# Prints the result of a failed tool. $1: the error object as JSON, $2: what the model reads.
__mcp_print_error() {
  __mcp_quote "$2"
  printf '{"content":[{"type":"text","text":%s}],"structuredContent":{"success":false,"error":%s},"isError":true}\n' \
    "$__MCP_OUT" "$1"
}

__mcp_print_internal_error() {
  local message=$1 error
  __mcp_quote "$message"
  error="{\"type\":\"internal_error\",\"message\":$__MCP_OUT"
  if (($# > 1)); then
    __mcp_quote "$2"
    error+=",\"raw\":$__MCP_OUT"
  fi
  __mcp_print_error "$error}" "$message"
}

mcp_result_error() {
  local json=${1-}
  if ! __mcp_has_json; then
    __mcp_print_internal_error "Tool failed; see raw for details" "$json"
  elif __mcp_compact_plain "$json" && [[ $__MCP_TYPE == \"* && $__MCP_MESSAGE == \"* ]]; then
    printf '{"content":[{"type":"text","text":%s}],"structuredContent":{"success":false,"error":%s},"isError":true}\n' \
      "$__MCP_MESSAGE" "$__MCP_OUT"
  else
    __mcp_load jq
    __mcp_print_error_object "$json" ||
      __mcp_print_internal_error "Invalid error object passed to mcp_result_error" "$json"
  fi
}

mcp_error() {
  local type=${1:-internal_error} message=${2:-Unknown error} hint="" error
  __mcp_quote "$type"
  error="{\"type\":$__MCP_OUT"
  __mcp_quote "$message"
  error+=",\"message\":$__MCP_OUT"
  while (($# > 2)); do
    case $3 in
      --hint)
        hint=${4-}
        __mcp_quote "$hint"
        error+=",\"hint\":$__MCP_OUT"
        ;;
      --data)
        __mcp_error_data "${4-}"
        error+=",\"data\":$__MCP_OUT"
        ;;
    esac
    shift
  done
  mcp_debug "error $type: $message"
  if [[ -n $hint ]]; then
    mcp_log_warn "${MCP_TOOL_NAME:-tool}" "$type: $message ($hint)"
  fi
  __mcp_print_error "$error}" "$message${hint:+$'\n'Hint: $hint}"
}

__mcp_error_data() {
  if ! __mcp_has_json; then
    __mcp_on_one_line "${1:-null}"
  elif ! __mcp_compact "$1"; then
    __mcp_quote "$1"
    __MCP_OUT="{\"_invalid_json\":$__MCP_OUT}"
  fi
}

mcp_fail() {
  local code=${1:-} message=${2:-Tool failed} data=null error
  [[ $code =~ ^(0|-?[1-9][0-9]{0,8})$ ]] || code=-32603
  if [[ -n ${3:-} ]] && __mcp_has_json && __mcp_compact "$3"; then
    data=$__MCP_OUT
  fi
  __mcp_quote "$message"
  error="{\"code\":$code,\"message\":$__MCP_OUT,\"data\":$data}"
  if [[ -n ${__MCP_CALL:-} ]]; then
    printf '%s\n' "{\"error\":$error,\"call\":$__MCP_CALL}" >&"$MCP_ANSWERS_FD"
  elif [[ -n ${MCP_TOOL_ERROR_FILE:-} ]]; then
    { printf '%s\n' "$error" >"$MCP_TOOL_ERROR_FILE"; } 2>/dev/null || :
  fi
  printf '%s\n' "$error" || :
  __mcp_warn "$message"
  exit 1
}

mcp_fail_invalid_args() {
  mcp_fail -32602 "${1:-Invalid params}" "${2:-}"
}
