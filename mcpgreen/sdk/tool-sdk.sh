# shellcheck shell=bash
# Shell SDK for tool scripts: read arguments, print results, report progress, write log lines.
#
# Source it at the top of a tool: source "${MCP_SDK:?}/tool-sdk.sh"
#
# The functions that most tools use are here. A file next to this one is sourced when one of its functions is called for
# the first time, because every call of every tool pays for the lines that bash reads here.
#
# Rules of these files:
#  * Use the grammar of bash 3.2, which macOS ships.
#  * Every environment variable may be absent, because the SDK also works outside of the server.
#  * Starting a process is slow. Private functions return their value in __MCP_OUT instead of printing it, and the JSON
#    tool runs only for JSON that is not plain.
#  * Without the JSON tool, give the same answer that it would give, or run it. Name the characters of a pattern one by
#    one, because the range from a to z depends on the locale.
#  * Never evaluate data from a client.
#  * Pass documents through pipes, never as arguments: on Linux one argument has at most 128 KiB.
#  * "set -x" in a script must not show secrets, because a client reads stderr. Functions that read arguments, metadata,
#    configuration or answers do so through __mcp_quietly.

# Another shell would stop at the first unknown line, with a confusing message.
if [ -z "${BASH_VERSION:-}" ]; then
  echo "tool-sdk.sh needs bash: begin the script with #!/usr/bin/env bash" >&2
  exit 1
fi

set -euo pipefail

# For tools that watch the cancel file themselves.
# shellcheck disable=SC2034
MCP_TOOL_CANCELLATION_FILE=${MCP_CANCEL_FILE:-}

__MCP_OUT=""

# The directory of the other files. An absolute path, because the script may change its directory.
__MCP_SDK_DIR=${BASH_SOURCE[0]}
[[ $__MCP_SDK_DIR == */* ]] || __MCP_SDK_DIR=./$__MCP_SDK_DIR
[[ $__MCP_SDK_DIR == /* ]] || __MCP_SDK_DIR=$PWD/$__MCP_SDK_DIR
__MCP_SDK_DIR=${__MCP_SDK_DIR%/*}

# The server sets the JSON tool. Outside of it, find one: tools call "${MCPBASH_JSON_TOOL_BIN}" themselves.
if [[ -z ${MCPBASH_JSON_TOOL_BIN:-} && ${MCPBASH_JSON_TOOL:-} != none ]]; then
  case ${MCPBASH_JSON_TOOL:-} in
    gojq) MCPBASH_JSON_TOOL_BIN=$(type -P gojq || type -P jq || :) ;;
    *) MCPBASH_JSON_TOOL_BIN=$(type -P jq || type -P gojq || :) ;;
  esac
  if [[ -z $MCPBASH_JSON_TOOL_BIN ]] && type -P "${MCPGREEN_PYTHON:-python3}" >/dev/null; then
    MCPBASH_JSON_TOOL_BIN=$__MCP_SDK_DIR/json-tool
  fi
fi

__mcp_warn() {
  printf '%s\n' "$*" >&2 || :
}

# Runs a function of the SDK without tracing it.
__mcp_quietly() {
  if [[ $- != *x* ]]; then
    "$@"
    return
  fi
  { set +x; } 2>/dev/null
  # Not "|| status=$?", which would switch off errexit in the function.
  "$@"
  { __MCP_QUIET_STATUS=$? && set -x; } 2>/dev/null
  return "$__MCP_QUIET_STATUS"
}

__mcp_has_json() {
  local tool=${MCPBASH_JSON_TOOL_BIN:-}
  [[ ${MCPBASH_MODE:-full} != minimal && ${MCPBASH_JSON_TOOL:-} != none ]] || return 1
  if [[ $tool == */* ]]; then
    [[ -f $tool && -x $tool ]]
  else
    type -P "$tool" >/dev/null
  fi
}

# Escapes a short piece. Replacing takes quadratic time in bash, so long strings are passed in slices.
# Patterns and replacements are quoted variables, the only form that all versions since 3.2 read in the same way.
__mcp_escape_piece() {
  __MCP_OUT=$1
  [[ $__MCP_OUT == *[\"\\[:cntrl:]]* ]] || return 0
  local backslash=\\ quote=\"
  __MCP_OUT=${__MCP_OUT//"$backslash"/"$backslash$backslash"}
  __MCP_OUT=${__MCP_OUT//"$quote"/"$backslash$quote"}
  [[ $__MCP_OUT == *[[:cntrl:]]* ]] || return 0
  __MCP_OUT=${__MCP_OUT//$'\n'/"${backslash}n"}
  __MCP_OUT=${__MCP_OUT//$'\t'/"${backslash}t"}
  __MCP_OUT=${__MCP_OUT//$'\r'/"${backslash}r"}
  [[ $__MCP_OUT == *[[:cntrl:]]* ]] || return 0
  local code control
  for code in 01 02 03 04 05 06 07 08 0b 0c 0e 0f 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f; do
    printf -v control '%b' "\\x$code"
    __MCP_OUT=${__MCP_OUT//"$control"/"${backslash}u00$code"}
  done
}

# A JSON string, with its quotes.
__mcp_quote() {
  if [[ $1 != *[\"\\[:cntrl:]]* ]]; then
    __MCP_OUT=$1
  elif ((${#1} <= 1000)); then
    __mcp_escape_piece "$1"
  else
    # Bytes instead of characters: slicing is fast, and joining repairs a character that was cut.
    __MCP_OUT=$(
      LC_ALL=C
      length=${#1}
      # In two steps, because each slice copies the text that it is cut from.
      for ((start = 0; start < length; start += 30000)); do
        part=${1:start:30000}
        for ((offset = 0; offset < ${#part}; offset += 1000)); do
          __mcp_escape_piece "${part:offset:1000}"
          printf '%s' "$__MCP_OUT"
        done
      done
    )
  fi
  __MCP_OUT="\"$__MCP_OUT\""
}

# A line break outside of a JSON string is white space, and inside it is illegal, so a blank can replace it.
__mcp_on_one_line() {
  __MCP_OUT=$1
  if [[ $__MCP_OUT == *[$'\n\r']* ]]; then
    __MCP_OUT=$(printf '%s' "$1" | tr '\n\r' '  ')
  fi
}

mcp_json_escape() {
  __mcp_quote "${1-}"
  printf '%s' "$__MCP_OUT"
}

mcp_json_obj() {
  if (($# % 2)); then
    __mcp_warn "mcp_json_obj: expected pairs of a key and a value, got $# arguments"
    exit 1
  fi
  local members="" separator=""
  while (($#)); do
    if [[ $1$2 != *[\"\\[:cntrl:]]* ]]; then # faster than a function call
      members+="$separator\"$1\":\"$2\""
    else
      __mcp_quote "$1"
      members+=$separator$__MCP_OUT
      __mcp_quote "$2"
      members+=:$__MCP_OUT
    fi
    separator=,
    shift 2
  done
  printf '%s' "{$members}"
}

mcp_json_arr() {
  local members="" separator="" value
  for value in "$@"; do
    __mcp_quote "$value"
    members+="$separator$__MCP_OUT"
    separator=,
  done
  printf '%s' "[$members]"
}

mcp_byte_length() (
  LC_ALL=C
  text=${1-}
  printf '%s\n' "${#text}"
)

# Evaluates a plain filter without a process, by the table that the server has made of the arguments
# (`table_of` in mcpgreen/running/scripts/environment.py describes it). Plain are .name and .a.b, also with an alternative for null and false,
# as in .name // "World". __MCP_OUT gets the result, and __MCP_KIND its kind: "text", "value" for another value that jq
# prints, "null", or "nothing". Status 1: run jq.
__mcp_look_up() {
  local json table="" path=${2%% // *} other=""
  # With nocasematch in the script, no comparison here would be exact.
  ! shopt -q nocasematch || return 1
  [[ $path == .* && $path != *[!abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.]* ]] || return 1
  [[ $path != *.[0123456789.]* && $path != *. ]] || return 1
  if [[ $path != "$2" ]]; then
    other=${2#* // }
    case $other in
      empty | true | false | null | 0) ;;
      \"*\") [[ $other != \"*[!abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.,:\;!?/+\ -]*\" ]] || return 1 ;;
      [123456789]*) [[ $other != *[!0123456789]* ]] && ((${#other} <= 15)) || return 1 ;;
      *) return 1 ;;
    esac
  fi
  if [[ $1 == args ]]; then
    json=${MCP_TOOL_ARGS_JSON:-} table=${MCP_TOOL_ARGS_TABLE:-}
    [[ -z ${MCP_TOOL_ARGS_FILE:-} ]] || return 1
  elif [[ $1 == auth ]]; then
    return 1
  else
    json=${MCP_TOOL_META_JSON:-}
    [[ -z ${MCP_TOOL_META_FILE:-} ]] || return 1
  fi
  [[ ${MCPBASH_MODE:-full} != minimal && ${MCPBASH_JSON_TOOL:-} != none ]] || return 1
  __MCP_OUT=null __MCP_KIND=null
  if [[ -n $json && $json != "{}" ]]; then
    [[ $table == "$json"$'\n'* ]] || return 1 # no table, or of other arguments
    __mcp_find_row "$table" "$path" || return 1
  fi
  [[ -n $other && ($__MCP_KIND == null || $__MCP_KIND$__MCP_OUT == valuefalse) ]] || return 0
  case $other in
    empty) __MCP_OUT="" __MCP_KIND=nothing ;;
    null) __MCP_OUT=null __MCP_KIND=null ;;
    \"*) __MCP_OUT=${other:1:${#other}-2} __MCP_KIND=text ;;
    *) __MCP_OUT=$other __MCP_KIND=value ;;
  esac
}

# One search, because ${table#*row} would try each length. __MCP_OUT and __MCP_KIND are already null.
__mcp_find_row() {
  local path=$2 pattern cell
  while [[ -n $path ]]; do
    pattern=$'\n'${path//./[.]}$'=([^\n]*)'
    if [[ $1 =~ $pattern ]]; then
      cell=${BASH_REMATCH[1]}
      if [[ $path != "$2" ]]; then # its parent
        [[ $cell == o || $cell == vnull ]]
        return
      fi
      case $cell in
        vnull) ;;
        s*) __MCP_OUT=${cell:1} __MCP_KIND=text ;;
        e*) printf -v __MCP_OUT %b "${cell:1}" && __MCP_KIND=text ;;
        v*) __MCP_OUT=${cell:1} __MCP_KIND=value ;;
        *) return 1 ;;
      esac
      return 0
    fi
    path=${path%.*}
  done
}

mcp_args_get() {
  __mcp_quietly __mcp_get args "$@"
}

mcp_meta_get() {
  __mcp_quietly __mcp_get meta "$@"
}

mcp_auth_get() {
  __mcp_quietly __mcp_get auth "$@"
}

__mcp_get() {
  local source=$1 filter=${2:-.} default="" has_default=""
  while (($# > 2)); do
    if [[ $3 == --default ]]; then
      default=${4-} has_default=yes
    fi
    shift
  done
  if ! __mcp_look_up "$source" "$filter"; then
    __mcp_load jq
    __mcp_filter "$source" "$filter" "$has_default" "$default"
  elif [[ -n $has_default && ($__MCP_KIND == null || $__MCP_KIND == nothing) ]]; then
    printf '%s\n' "$default"
  elif [[ $__MCP_KIND != nothing ]]; then
    printf '%s\n' "$__MCP_OUT"
  fi
}

# The argument as text; empty if it is absent, null or "". The string "null" is a value. Status 1: no JSON tool.
__mcp_argument() {
  if __mcp_look_up args "$1"; then
    [[ $__MCP_KIND != null ]] || __MCP_OUT=""
    while [[ $__MCP_OUT == *$'\n' ]]; do # like a command substitution
      __MCP_OUT=${__MCP_OUT%$'\n'}
    done
  elif __mcp_has_json; then
    __MCP_OUT=$(mcp_args_get $'[\n'"$1"$'\n] | if all(. == null or . == "") then empty else .[] end') || __MCP_OUT=""
  else
    __MCP_OUT=""
    return 1
  fi
}

# Reads the options of the mcp_args_* functions into __MCP_OPT_*. Unknown options of older scripts are only reported.
__mcp_read_options() {
  local caller=$1
  shift
  __MCP_OPT_HAS_DEFAULT="" __MCP_OPT_DEFAULT="" __MCP_OPT_MIN="" __MCP_OPT_MAX=""
  __MCP_OPT_SINGLE_ROOT="" __MCP_OPT_ALLOW_EMPTY=""
  while (($#)); do
    case $1 in
      --default-to-single-root) __MCP_OPT_SINGLE_ROOT=yes ;;
      --allow-empty) __MCP_OPT_ALLOW_EMPTY=yes ;;
      --default | --min | --max)
        (($# > 1)) || mcp_fail_invalid_args "$caller: $1 needs a value"
        case $1 in
          --default) __MCP_OPT_HAS_DEFAULT=yes __MCP_OPT_DEFAULT=$2 ;;
          --min) __MCP_OPT_MIN=$2 ;;
          --max) __MCP_OPT_MAX=$2 ;;
        esac
        shift
        ;;
      *) __mcp_warn "$caller: ignored $1" ;;
    esac
    shift
  done
}

# Leaves the text of the argument, or the default, in __MCP_OUT. Fails the tool without either.
__mcp_argument_or_default() {
  local pointer=$1 missing="$1 is required"
  __mcp_argument "$pointer" || missing="$pointer requires JSON tooling or a default"
  if [[ -z $__MCP_OUT ]]; then
    [[ -n $__MCP_OPT_HAS_DEFAULT ]] || mcp_fail_invalid_args "$missing"
    __MCP_OUT=$__MCP_OPT_DEFAULT
  fi
}

mcp_args_require() {
  __mcp_quietly __mcp_args_require "$@"
}

__mcp_args_require() {
  local pointer=${1:-.} message=${2:-}
  __mcp_argument "$pointer" || mcp_fail_invalid_args "$pointer requires JSON tooling"
  [[ -n $__MCP_OUT ]] || mcp_fail_invalid_args "${message:-$pointer is required}"
  printf '%s\n' "$__MCP_OUT"
}

mcp_args_bool() {
  __mcp_quietly __mcp_args_bool "$@"
}

__mcp_args_bool() {
  local pointer=${1:-.}
  __mcp_read_options mcp_args_bool "${@:2}"
  __mcp_argument_or_default "$pointer"
  case $__MCP_OUT in
    true | 1) printf 'true\n' ;;
    *) printf 'false\n' ;;
  esac
}

# Bash has 64 bits: 18 digits always fit, and longer numbers would silently compare wrongly.
__mcp_require_integer() {
  local name=$1 value=$2
  value=${value#-}
  [[ -n $value && $value != *[!0123456789]* ]] || mcp_fail_invalid_args "$name must be an integer"
  ((${#value} <= 18)) || mcp_fail_invalid_args "$name is out of range"
}

mcp_args_int() {
  __mcp_quietly __mcp_args_int "$@"
}

__mcp_args_int() {
  local pointer=${1:-.} value
  __mcp_read_options mcp_args_int "${@:2}"
  local min=$__MCP_OPT_MIN max=$__MCP_OPT_MAX
  [[ -z $min ]] || __mcp_require_integer "mcp_args_int: --min" "$min"
  [[ -z $max ]] || __mcp_require_integer "mcp_args_int: --max" "$max"
  # [ reads decimals; [[ and (( would read 010 as eight.
  if [ -n "$min" ] && [ -n "$max" ] && [ "$min" -gt "$max" ]; then
    mcp_fail_invalid_args "mcp_args_int: --min cannot exceed --max"
  fi
  __mcp_argument_or_default "$pointer"
  value=$__MCP_OUT
  __mcp_require_integer "$pointer" "$value"
  if [ -n "$min" ] && [ "$value" -lt "$min" ]; then
    mcp_fail_invalid_args "$pointer must be >= $min"
  fi
  if [ -n "$max" ] && [ "$value" -gt "$max" ]; then
    mcp_fail_invalid_args "$pointer must be <= $max"
  fi
  printf '%s\n' "$value"
}

mcp_emit_text() {
  printf '%s' "${1-}"
}

mcp_is_cancelled() {
  [[ -n ${MCP_CANCEL_FILE:-} && -e $MCP_CANCEL_FILE ]]
}

# The other files. The first call of a function sources its file, which defines the function again.
__MCP_LOADED=" "

__mcp_load() {
  [[ $__MCP_LOADED != *" $1 "* ]] || return 0
  __MCP_LOADED+="$1 "
  __mcp_quietly source "$__MCP_SDK_DIR/$1.sh"
}

mcp_args_raw() { __mcp_load jq; mcp_args_raw "$@"; }
mcp_meta_raw() { __mcp_load jq; mcp_meta_raw "$@"; }
mcp_auth_raw() { __mcp_load jq; mcp_auth_raw "$@"; }
mcp_args_parse() { __mcp_load arguments; mcp_args_parse "$@"; }

mcp_is_valid_json() { __mcp_load results; mcp_is_valid_json "$@"; }
mcp_emit_json() { __mcp_load results; mcp_emit_json "$@"; }
mcp_result_success() { __mcp_load results; mcp_result_success "$@"; }
mcp_result_error() { __mcp_load errors; mcp_result_error "$@"; }
mcp_error() { __mcp_load errors; mcp_error "$@"; }
mcp_fail() { __mcp_load errors; mcp_fail "$@"; }
mcp_fail_invalid_args() { __mcp_load errors; mcp_fail_invalid_args "$@"; }

mcp_progress() { __mcp_load messages; mcp_progress "$@"; }
mcp_task_begin() { __mcp_load messages; mcp_task_begin "$@"; }
mcp_log() { __mcp_load messages; mcp_log "$@"; }
mcp_log_debug() { __mcp_load messages; mcp_log_debug "$@"; }
mcp_log_info() { __mcp_load messages; mcp_log_info "$@"; }
mcp_log_warn() { __mcp_load messages; mcp_log_warn "$@"; }
mcp_log_error() { __mcp_load messages; mcp_log_error "$@"; }
mcp_debug() { __mcp_load messages; mcp_debug "$@"; }

mcp_roots_list() { __mcp_load paths; mcp_roots_list "$@"; }
mcp_roots_count() { __mcp_load paths; mcp_roots_count "$@"; }
mcp_roots_contains() { __mcp_load paths; mcp_roots_contains "$@"; }
mcp_path_collapse() { __mcp_load paths; mcp_path_collapse "$@"; }
mcp_path_normalize() { __mcp_load paths; mcp_path_normalize "$@"; }
mcp_require_path() { __mcp_load paths; mcp_require_path "$@"; }

mcp_result_text_with_resource() { __mcp_load content; mcp_result_text_with_resource "$@"; }
mcp_result_image() { __mcp_load content; mcp_result_image "$@"; }
mcp_result_audio() { __mcp_load content; mcp_result_audio "$@"; }
mcp_result_resource_link() { __mcp_load content; mcp_result_resource_link "$@"; }

mcp_run_with_progress() { __mcp_load running; mcp_run_with_progress "$@"; }
mcp_with_retry() { __mcp_load running; mcp_with_retry "$@"; }

mcp_extract_cli_error() { __mcp_load documents; mcp_extract_cli_error "$@"; }
mcp_json_truncate() { __mcp_load documents; mcp_json_truncate "$@"; }
mcp_config_load() { __mcp_load documents; mcp_config_load "$@"; }
mcp_config_get() { __mcp_load documents; mcp_config_get "$@"; }

mcp_download_safe() { __mcp_load downloads; mcp_download_safe "$@"; }
mcp_download_safe_or_fail() { __mcp_load downloads; mcp_download_safe_or_fail "$@"; }

mcp_ask() { __mcp_load asking; mcp_ask "$@"; }
mcp_sample() { __mcp_load asking; mcp_sample "$@"; }
mcp_elicit() { __mcp_load asking; mcp_elicit "$@"; }
mcp_elicit_url() { __mcp_load asking; mcp_elicit_url "$@"; }
mcp_elicit_string() { __mcp_load asking; mcp_elicit_string "$@"; }
mcp_elicit_confirm() { __mcp_load asking; mcp_elicit_confirm "$@"; }
mcp_elicit_choice() { __mcp_load asking; mcp_elicit_choice "$@"; }
mcp_elicit_titled_choice() { __mcp_load asking; mcp_elicit_titled_choice "$@"; }
mcp_elicit_multi_choice() { __mcp_load asking; mcp_elicit_multi_choice "$@"; }
mcp_elicit_titled_multi_choice() { __mcp_load asking; mcp_elicit_titled_multi_choice "$@"; }

mcp_next_call() { __mcp_load staying; mcp_next_call "$@"; }
mcp_answer() { __mcp_load staying; mcp_answer "$@"; }

mcp_client_supports_ui() { __mcp_load ui-sdk; mcp_client_supports_ui "$@"; }
mcp_result_with_ui() { __mcp_load ui-sdk; mcp_result_with_ui "$@"; }
mcp_result_with_ui_data() { __mcp_load ui-sdk; mcp_result_with_ui_data "$@"; }
mcp_ui_form() { __mcp_load ui-sdk; mcp_ui_form "$@"; }
mcp_ui_table() { __mcp_load ui-sdk; mcp_ui_table "$@"; }
mcp_tool_meta_with_ui() { __mcp_load ui-sdk; mcp_tool_meta_with_ui "$@"; }
