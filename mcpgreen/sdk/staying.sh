# shellcheck shell=bash
# Part of the shell SDK: serve calls in a resident process.
#
# Sourced by tool-sdk.sh when one of its functions is called; do not source it alone.
#
# The server puts the table of the arguments in front of each call, so that none of this starts a process.
# shellcheck disable=SC2034  # other files read the variables of a call

__mcp_load jq
shopt -s lastpipe 2>/dev/null || : # for "command | mcp_answer"; bash 3.2 does not know it

__MCP_CALL=""      # the number of the call that has no answer yet
__MCP_CALL_LINE="" # the last call
__MCP_IS_READY=""
MCP_TOOL_META_FILE=- # no variable has it

mcp_next_call() { __mcp_quietly __mcp_next_call; }

__mcp_next_call() {
  local line
  if [[ -n $__MCP_CALL ]]; then
    mcp_answer --error "${MCP_TOOL_NAME:-The tool} gave no answer."
  elif [[ -z $__MCP_IS_READY ]]; then
    [[ -n ${MCP_CALLS_FD:-} ]] || { __mcp_warn "mcp_next_call: add \"stays\" to the description of the tool" && return 1; }
    __MCP_IS_READY=yes
    printf '{"ready":true}\n' >&"$MCP_ANSWERS_FD"
  fi
  while IFS= read -r -u "$MCP_CALLS_FD" line; do
    __mcp_take_call "$line" && return 0
  done
  return 1
}

# Sets the variables that a script has which is started for the call. Status 1 for a line that is no call.
__mcp_take_call() {
  local table="" rest=${1#'{'} backslash=\\ quote=\" pattern='^"call":([0-9]+),"tool":"([^"]*)",'
  if [[ $1 == '{"table":"'* ]]; then
    # In a JSON string each quote has a backslash before it, so this is the end of the table.
    table=${1%%'","call":'*}
    rest=${1:${#table}+2}
    table=${table#'{"table":"'}
    printf -v table %b "${table//"$backslash$quote"/"$quote"}"
  fi
  [[ $rest =~ $pattern ]] || return 1
  __MCP_CALL=${BASH_REMATCH[1]} MCP_TOOL_NAME=${BASH_REMATCH[2]} __MCP_CALL_LINE=$1 __MCP_CANCELLED=""
  MCP_TOOL_ARGS_TABLE=$table MCP_TOOL_ARGS_JSON=${table%%$'\n'*}
  if [[ $rest == *'"arguments":{},'* ]]; then
    MCP_TOOL_ARGS_JSON={}
  elif [[ -z $table ]]; then
    __mcp_part arguments && MCP_TOOL_ARGS_JSON=$__MCP_OUT
  fi
}

# A part of the call as JSON, in __MCP_OUT.
__mcp_part() {
  __MCP_OUT=$(printf '%s' "$__MCP_CALL_LINE" | "$MCPBASH_JSON_TOOL_BIN" -c ".$1 // {}") || __MCP_OUT={}
}

mcp_answer() { __mcp_quietly __mcp_answer "$@"; }

__mcp_answer() {
  local kind=result text
  if [[ ${1-} == --error ]]; then
    kind=error
    shift
  fi
  if (($#)); then
    text=$1
  else
    text=$(cat && printf x)
    text=${text%x}
  fi
  [[ -n $__MCP_CALL ]] || { __mcp_warn "mcp_answer: the call has an answer already" && return 1; }
  __mcp_quote "$text"
  printf '%s\n' "{\"$kind\":$__MCP_OUT,\"call\":$__MCP_CALL}" >&"$MCP_ANSWERS_FD"
  __MCP_CALL=""
}

# What belongs to a call and is rarely needed is taken from its line when it is.
mcp_meta_raw() { __mcp_quietly __mcp_part meta._meta && printf '%s\n' "$__MCP_OUT"; }
mcp_auth_raw() { __mcp_quietly __mcp_part meta.auth && printf '%s\n' "$__MCP_OUT"; }

mcp_is_cancelled() {
  local line
  while [[ -z $__MCP_CANCELLED ]] && read -t 0 -u "$MCP_CALLS_FD" && IFS= read -r -u "$MCP_CALLS_FD" line; do
    [[ $line != "{\"cancel\":$__MCP_CALL,"* ]] || __MCP_CANCELLED=yes
  done
  [[ -n $__MCP_CANCELLED ]]
}

# Asks $1, as __mcp_ask does, and waits for the reply. $2: seconds.
__mcp_ask_staying() {
  local line
  line="{\"ask\":$1,\"id\":$RANDOM,\"call\":$__MCP_CALL${2:+,\"timeoutSecs\":$2}}"
  printf '%s\n' "$line" >&"$MCP_ANSWERS_FD"
  while IFS= read -r -u "$MCP_CALLS_FD" line; do
    [[ $line != "{\"cancel\":$__MCP_CALL,"* ]] || break
    if [[ $line == '{"reply":'* ]]; then
      __MCP_OUT=$(printf '%s' "$line" | "$MCPBASH_JSON_TOOL_BIN" -c .reply)
      return
    fi
  done
  __MCP_CANCELLED=yes
  __mcp_unasked cancelled "The call was cancelled"
}
