# shellcheck shell=bash
# Part of the shell SDK: results, and plain JSON, which is parsed without starting a process.
#
# Sourced by tool-sdk.sh when one of its functions is called; do not source it alone.

# Compacts plain JSON: a string, an integer of up to 15 digits, true, false, null, an object of these, or an array of
# strings, with only the escapes that a JSON tool would write. All JSON tools print such values in the same way. If
# "type" and "message" are strings, they are left in __MCP_TYPE and __MCP_MESSAGE. Status 1: run the JSON tool.
#
# The JSON is cut at its quotation marks: every second part is the inside of a string. One loop without functions and
# regular expressions, because these take longer to start than to run.
__mcp_compact_plain() {
  local backslash=\\ quote=\" first_mask=$'\x02' second_mask=$'\x03' is_masked="" had_globs=yes
  local rest=$1 IFS=\" part parts i state=start next end="" name="" known=" " compact=""
  ((${#rest} <= 4000)) && ! shopt -q nocasematch || return 1
  [[ $rest != *[![:ascii:]]* ]] || __mcp_is_utf8 "$rest" || return 1
  [[ $rest != *[[:cntrl:]]* || ${rest//[$'\t\n\r']/} != *[[:cntrl:]]* ]] || return 1
  if [[ $rest == *"$backslash"* ]]; then
    is_masked=yes # two control characters replace the escaped ones
    rest=${rest//"$backslash$backslash"/"$first_mask"}
    rest=${rest//"$backslash$quote"/"$second_mask"}
    [[ $rest != *"$backslash"[!nrt]* && $rest != *"$backslash" ]] || return 1
  fi
  [[ $- != *f* ]] || had_globs=""
  set -f
  # shellcheck disable=SC2206 # the splitting is intended; the blank keeps an empty last part
  parts=($rest" ")
  [[ -z $had_globs ]] || set +f
  ((${#parts[@]} % 2 && ${#parts[@]} <= 200)) || return 1
  __MCP_TYPE="" __MCP_MESSAGE=""
  for ((i = 0; i < ${#parts[@]}; i += 2)); do
    # The text between two strings tells whether the second is a name or a value.
    part=${parts[i]}
    if [[ $part == *[$' \t\n\r']* ]]; then
      __mcp_trim "$part"
      part=$__MCP_OUT
    fi
    case $state:$part in
      name::) next=value ;;
      value:,)
        next=value
        [[ $end != "}" ]] || next=name
        [[ -n $end ]] || return 1
        ;;
      "value:$end") next=nothing ;;
      "start:{") next=name end="}" ;;
      "start:[") next=value end="]" ;;
      start:) next=value ;;
      "start:{}" | "start:[]") next=nothing ;;
      name::*[,\}]) __mcp_close_member || return 1 ;;
      start:*) __mcp_is_scalar "$part" && next=nothing || return 1 ;;
      *) return 1 ;;
    esac
    compact+=$part
    [[ $next != nothing ]] || break
    ((i + 1 < ${#parts[@]})) || return 1
    part=\"${parts[i + 1]}\" state=$next
    [[ $part != *[$'\t\n\r']* ]] || return 1
    if [[ $state == name ]]; then
      [[ $known != *" $part "* ]] || return 1 # a JSON tool would drop one of two equal names
      name=$part known+="$part "
    elif [[ $name == '"type"' ]]; then
      __MCP_TYPE=$part
    elif [[ $name == '"message"' ]]; then
      __MCP_MESSAGE=$part
    fi
    compact+=$part
  done
  ((i + 1 == ${#parts[@]})) || return 1
  if [[ -n $is_masked ]]; then
    compact=${compact//"$first_mask"/"$backslash$backslash"}
    compact=${compact//"$second_mask"/"$backslash$quote"}
    __MCP_MESSAGE=${__MCP_MESSAGE//"$first_mask"/"$backslash$backslash"}
    __MCP_MESSAGE=${__MCP_MESSAGE//"$second_mask"/"$backslash$quote"}
  fi
  __MCP_OUT=$compact
}

# Removes blanks at both ends.
__mcp_trim() {
  __MCP_OUT=${1#"${1%%[!$' \t\n\r']*}"}
  __MCP_OUT=${__MCP_OUT%"${__MCP_OUT##*[!$' \t\n\r']}"}
}

# Reads the rest of a member in the caller's "part": a value that is not a string, and the comma or brace.
__mcp_close_member() {
  next=name
  [[ $part == *, ]] || next=nothing
  __mcp_trim "${part:1:${#part}-2}"
  __mcp_is_scalar "$__MCP_OUT" || return 1
  part=:$__MCP_OUT${part:${#part}-1}
}

__mcp_is_scalar() {
  case $1 in
    true | false | null | 0) ;;
    *) [[ ${1#-} == [123456789]* && ${1#-} != *[!0123456789]* ]] && ((${#1} <= 15)) ;;
  esac
}

# In a subshell, because bash 3.2 would keep a locale that is local to a function.
__mcp_is_utf8() (
  { set +x; } 2>/dev/null # do not trace the pattern
  LC_ALL=C
  pattern=$'^([ -~\t\n\r]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}'
  pattern+=$'|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})*$'
  [[ $1 =~ $pattern ]]
)

# Compacts exactly one JSON value. Status 1 for anything else.
__mcp_compact() {
  __mcp_compact_plain "$1" || { __mcp_load jq && __mcp_compact_any "$1"; }
}

mcp_is_valid_json() {
  ! __mcp_has_json || __mcp_compact_plain "${1-}" || { __mcp_load jq && __mcp_is_one_value "${1-}"; }
}

mcp_emit_json() {
  if __mcp_has_json && __mcp_compact "${1-}"; then
    printf '%s\n' "$__MCP_OUT"
  else
    printf '%s\n' "${1-}"
  fi
}

mcp_result_success() {
  local json=${1-} max envelope
  for max in "${2:-}" "${MCPBASH_MAX_TEXT_BYTES:-}" 102400; do
    [[ -z $max || $max == *[!0123456789]* ]] || ((${#max} > 18)) || break
  done
  max=$((10#$max))
  # A character has at most four bytes.
  if __mcp_has_json && __mcp_compact_plain "$json" && ((4 * (${#__MCP_OUT} + 30) <= max)); then
    envelope="{\"success\":true,\"result\":$__MCP_OUT}"
    __mcp_quote "$envelope"
    printf '{"content":[{"type":"text","text":%s}],"structuredContent":%s,"isError":false}\n' "$__MCP_OUT" "$envelope"
  else
    __mcp_load jq
    __mcp_wrap "$json" "$max"
  fi
}
