# shellcheck shell=bash
# Part of the shell SDK: progress, log lines and the debug log.
#
# Sourced by tool-sdk.sh when one of its functions is called; do not source it alone.

# Appends one line to a stream of the server. In a subshell, because writing to a closed pipe ends the shell.
# One printf is one write, so that lines of parallel writers do not mix.
__mcp_send() {
  local stream=$1 line=$2
  if [[ $stream =~ ^/dev/fd/[0-9]+$ ]]; then
    # Use the inherited descriptor: opening /dev/fd fails without /proc, or if it belongs to another user.
    (printf '%s\n' "$line" >&"${stream##*/}") 2>/dev/null
  else
    (printf '%s\n' "$line" >>"$stream") 2>/dev/null
  fi
}

mcp_progress() {
  local percent=${1:-0} message=${2:-} total=${3:-} token=${MCP_PROGRESS_TOKEN:-} params
  [[ -n ${MCP_PROGRESS_STREAM:-} ]] || return 0
  if [[ ! $percent =~ ^[0-9]+$ ]]; then
    percent=0
  elif ((${#percent} > 9 || 10#$percent > 100)); then
    percent=100
  fi
  # Without a total a client cannot draw a bar.
  [[ $total =~ ^(0|[1-9][0-9]*)$ ]] || total=100
  params="\"progress\":$((10#$percent)),\"total\":$total"
  if [[ -n $message ]]; then
    __mcp_quote "$message"
    params+=",\"message\":$__MCP_OUT"
  fi
  if [[ $token =~ ^(0|-?[1-9][0-9]*)$ ]]; then
    params+=",\"progressToken\":$token"
  elif [[ -n $token ]]; then
    __mcp_quote "$token"
    params+=",\"progressToken\":$__MCP_OUT"
  fi
  __mcp_send "$MCP_PROGRESS_STREAM" \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{$params}}" || :
}

mcp_task_begin() {
  [[ -z ${MCP_LOG_STREAM:-} ]] || __mcp_send "$MCP_LOG_STREAM" '{"task":"begin"}' || :
}

mcp_log() {
  local level=${1:-info} logger=${2:-tool} data=${3:-null}
  [[ $level != *[[:upper:]]* ]] || level=$(printf '%s' "$level" | tr '[:upper:]' '[:lower:]')
  case $level in
    debug | info | notice | warning | error | critical | alert | emergency) ;;
    *)
      __mcp_warn "mcp_log: unknown level $level, using info"
      level=info
      ;;
  esac
  [[ -n ${MCP_LOG_STREAM:-} ]] || return 0
  __mcp_on_one_line "$data"
  data=$__MCP_OUT
  __mcp_quote "$logger"
  __mcp_send "$MCP_LOG_STREAM" "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"$level\",\"logger\":$__MCP_OUT,\"data\":$data}}" || :
}

__mcp_log_text() {
  __mcp_quote "${3-}"
  mcp_log "$1" "${2:-}" "$__MCP_OUT"
}

mcp_log_debug() {
  __mcp_log_text debug "$@"
}

mcp_log_info() {
  __mcp_log_text info "$@"
}

mcp_log_warn() {
  __mcp_log_text warning "$@"
}

mcp_log_error() {
  __mcp_log_text error "$@"
}

mcp_debug() {
  [[ -n ${MCPBASH_DEBUG_LOG:-} ]] || return 0
  local IFS=' ' stamp
  # The printf of bash 3.2 cannot print the time.
  printf -v stamp '%(%H:%M:%S)T' -1 2>/dev/null || stamp=$(date +%H:%M:%S)
  { printf '[%s] %s\n' "$stamp" "$*" >>"$MCPBASH_DEBUG_LOG"; } 2>/dev/null || :
}
