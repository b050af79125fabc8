# shellcheck shell=bash
# Shell SDK for tool scripts: arguments in, results, progress and log lines out.
#
# Source it at the top of a tool: source "${MCP_SDK:?}/tool-sdk.sh"
#
# Here is what most tools use. The rest is in files beside this one that are sourced when one of their functions is
# called for the first time, because every call of every tool pays for what is read here.
#
# Rules of these files:
#  * The grammar of bash 3.2, because that is what macOS ships.
#  * Every variable of the environment may be absent; the SDK also works at the desk, outside of the server.
#  * A process costs more than a string. Private functions hand their value over in __MCP_OUT instead of printing it,
#    and a JSON processor runs only where text has to be parsed.
#  * Documents travel through pipes, never as arguments: one argument may not exceed 128 KiB on Linux.
#  * A script with "set -x" shows what it does itself. Functions that learn a value from elsewhere (arguments, metadata,
#    configuration, answers) do their work through __mcp_quietly: values may be secrets, and a client reads stderr.

# Another shell would stop at the first line that it does not know, and say something else.
if [ -z "${BASH_VERSION:-}" ]; then
  echo "tool-sdk.sh needs bash: begin the script with #!/usr/bin/env bash" >&2
  exit 1
fi

set -euo pipefail

# Read by tools that watch the cancel file themselves.
# shellcheck disable=SC2034
MCP_TOOL_CANCELLATION_FILE=${MCP_CANCEL_FILE:-}

__MCP_OUT=""

# Where the other files are. An absolute path, because the script may go elsewhere.
__MCP_SDK_DIR=${BASH_SOURCE[0]}
[[ $__MCP_SDK_DIR == */* ]] || __MCP_SDK_DIR=./$__MCP_SDK_DIR
[[ $__MCP_SDK_DIR == /* ]] || __MCP_SDK_DIR=$PWD/$__MCP_SDK_DIR
__MCP_SDK_DIR=${__MCP_SDK_DIR%/*}

# The server names the processor. At the desk nobody does, and tools call "${MCPBASH_JSON_TOOL_BIN}" themselves.
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

# Runs a function of ours, and shows nothing of it where the script traces its commands.
__mcp_quietly() {
  if [[ $- != *x* ]]; then
    "$@"
    return
  fi
  { set +x; } 2>/dev/null
  # Not "|| status=$?": that would take errexit away from the function.
  "$@"
  { __MCP_QUIET_STATUS=$? && set -x; } 2>/dev/null
  return "$__MCP_QUIET_STATUS"
}

__mcp_has_json() {
  [[ ${MCPBASH_MODE:-full} != minimal && ${MCPBASH_JSON_TOOL:-} != none ]] || return 1
  type -P "${MCPBASH_JSON_TOOL_BIN:-}" >/dev/null
}

# Escapes a short piece. Replacing is quadratic in bash, so long texts come here in slices.
# Patterns and replacements are quoted variables: the only spelling that all versions since 3.2 read alike.
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
  if ((${#1} <= 1000)); then
    __mcp_escape_piece "$1"
  else
    # Bytes instead of characters: slicing is fast, and a character cut in two is whole again after joining.
    __MCP_OUT=$(
      LC_ALL=C
      length=${#1}
      # In two steps, as each slice costs a copy of what it is cut from.
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

# A line break outside of a JSON string is white space, inside it is illegal: a blank says the same on one line.
__mcp_on_one_line() {
  __MCP_OUT=$1
  if [[ $__MCP_OUT == *[$'\n\r']* ]]; then
    __MCP_OUT=$(printf '%s' "$1" | tr '\n\r' '  ')
  fi
}

# Exactly one JSON value, compacted; otherwise status 1.
__mcp_compact() {
  __MCP_OUT=$(printf '%s' "$1" |
    "$MCPBASH_JSON_TOOL_BIN" -cn '[inputs] | if length == 1 then .[0] else error("not one value") end' 2>/dev/null) || return 1
}

mcp_json_escape() {
  __mcp_quote "${1-}"
  printf '%s' "$__MCP_OUT"
}

mcp_json_obj() {
  if (($# % 2)); then
    __mcp_warn "mcp_json_obj: expected pairs of key and value, got $# arguments"
    exit 1
  fi
  local members="" separator=""
  while (($#)); do
    __mcp_quote "$1"
    members+="$separator$__MCP_OUT:"
    __mcp_quote "$2"
    members+=$__MCP_OUT
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

mcp_is_valid_json() {
  __mcp_has_json || return 0
  printf '%s' "${1-}" | "$MCPBASH_JSON_TOOL_BIN" -en '[inputs] | length == 1' >/dev/null 2>&1
}

mcp_byte_length() (
  LC_ALL=C
  text=${1-}
  printf '%s\n' "${#text}"
)

# The names of a file and of a variable: whichever has the document.
__mcp_document() {
  local file=${!1:-} json=${!2:-}
  if [[ -n $file && -f $file ]]; then
    cat -- "$file"
  elif [[ -n $json ]]; then
    printf '%s\n' "$json"
  else
    printf '{}\n'
  fi
}

mcp_args_raw() {
  __mcp_quietly __mcp_document MCP_TOOL_ARGS_FILE MCP_TOOL_ARGS_JSON
}

mcp_meta_raw() {
  __mcp_quietly __mcp_document MCP_TOOL_META_FILE MCP_TOOL_META_JSON
}

mcp_args_get() {
  __mcp_quietly __mcp_get args "$@"
}

mcp_meta_get() {
  __mcp_quietly __mcp_get meta "$@"
}

__mcp_get() {
  local source=$1 filter=${2:-.} default="" has_default=""
  while (($# > 2)); do
    if [[ $3 == --default ]]; then
      default=${4-} has_default=yes
    fi
    shift
  done
  if ! __mcp_has_json; then
    __mcp_warn "mcp_${source}_get: no JSON tool, cannot read $filter"
    [[ -n $has_default ]] || return 1
    printf '%s\n' "$default"
    return 0
  fi
  local program=$filter status=0
  if [[ -n $has_default ]]; then
    program=$'[\n'$filter$'\n] | if all(. == null) then $default else .[] end'
  fi
  "mcp_${source}_raw" | "$MCPBASH_JSON_TOOL_BIN" -rc --arg default "$default" "$program" || status=$?
  ((status == 0)) || __mcp_warn "mcp_${source}_get: cannot read $filter"
  return "$status"
}

# The argument as text, empty when it is absent, null or "". A string that reads "null" is a value.
__mcp_argument() {
  __MCP_OUT=$(mcp_args_get $'[\n'"$1"$'\n] | if all(. == null or . == "") then empty else .[] end') || __MCP_OUT=""
}

# Reads the options of the mcp_args_* family into __MCP_OPT_*. What an older script may pass besides is only reported.
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

# The argument's text or its default in __MCP_OUT; fails the tool when there is neither.
__mcp_argument_or_default() {
  local pointer=$1 missing="$1 is required"
  if __mcp_has_json; then
    __mcp_argument "$pointer"
  else
    __MCP_OUT="" missing="$pointer requires JSON tooling or a default"
  fi
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
  __mcp_has_json || mcp_fail_invalid_args "$pointer requires JSON tooling"
  __mcp_argument "$pointer"
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

# Bash counts in 64 bits: 18 digits always fit, and longer numbers would compare wrongly without a word.
__mcp_require_integer() {
  local name=$1 value=$2
  [[ $value =~ ^-?[0-9]+$ ]] || mcp_fail_invalid_args "$name must be an integer"
  value=${value#-}
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
  # [ reads decimals; [[ and (( would take 010 for eight.
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

mcp_emit_json() {
  if __mcp_has_json && __mcp_compact "${1-}"; then
    printf '%s\n' "$__MCP_OUT"
  else
    printf '%s\n' "${1-}"
  fi
}

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

# shellcheck disable=SC2016 # the dollars are jq's
__MCP_SUCCESS_PROGRAM='
  def failure($text; $error):
    {content: [{type: "text", text: $text}], structuredContent: {success: false, error: $error}, isError: true};
  def summary:
    if type == "array" then "Success: array with \(length) items"
    elif type == "object" then "Success: object with \(length) keys"
    else "Success: " + (tostring | .[0:100]) end;
  [inputs]
  | if length == 1 then
      .[0] as $result
      | {success: true, result: $result} as $envelope
      | ($envelope | tojson) as $text
      | (if ($text | utf8bytelength) <= $max then $text else ($result | summary) end) as $text
      | {content: [{type: "text", text: $text}], structuredContent: $envelope, isError: false}
    elif length == 0 then
      "Empty data passed to mcp_result_success" as $text
      | failure($text; {type: "internal_error", message: $text})
    else
      failure("Error: input must be single JSON value";
        {type: "internal_error", message: "Input contained multiple JSON values", count: length})
    end'

mcp_result_success() {
  local json=${1-} max
  for max in "${2:-}" "${MCPBASH_MAX_TEXT_BYTES:-}" 102400; do
    [[ ! $max =~ ^[0-9]{1,18}$ ]] || break
  done
  if ! __mcp_has_json; then
    __mcp_wrap_unread "$json" "$max"
  elif ! printf '%s' "$json" | "$MCPBASH_JSON_TOOL_BIN" -cn --argjson max "$((10#$max))" "$__MCP_SUCCESS_PROGRAM" 2>/dev/null; then
    __mcp_print_internal_error "Invalid JSON passed to mcp_result_success"
  fi
}

# Success without a JSON tool: the value is taken at its word.
__mcp_wrap_unread() {
  local json=$1 max=$2 envelope
  if [[ $json != *[![:space:]]* ]]; then
    __mcp_print_internal_error "Empty data passed to mcp_result_success"
    return 0
  fi
  __mcp_on_one_line "$json"
  envelope="{\"success\":true,\"result\":$__MCP_OUT}"
  if (($(mcp_byte_length "$envelope") <= 10#$max)); then
    __mcp_quote "$envelope"
  else
    __mcp_quote "Success: response too large for text content"
  fi
  printf '{"content":[{"type":"text","text":%s}],"structuredContent":%s,"isError":false}\n' "$__MCP_OUT" "$envelope"
}

mcp_result_error() {
  local json=${1-}
  if ! __mcp_has_json; then
    __mcp_print_internal_error "Tool failed; see raw for details" "$json"
    return 0
  fi
  printf '%s' "$json" | "$MCPBASH_JSON_TOOL_BIN" -cn '[inputs]
    | if length == 1 and (.[0] | type) == "object" then .[0] else error("not one object") end
    | . + {type: (.type // "internal_error"), message: (.message // "Unknown error")}
    | {
        content: [{type: "text", text: (.message | tostring)}],
        structuredContent: {success: false, error: .},
        isError: true
      }' 2>/dev/null || __mcp_print_internal_error "Invalid error object passed to mcp_result_error" "$json"
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
  if [[ -n ${MCP_TOOL_ERROR_FILE:-} ]]; then
    { printf '%s\n' "$error" >"$MCP_TOOL_ERROR_FILE"; } 2>/dev/null || :
  fi
  printf '%s\n' "$error" || :
  __mcp_warn "$message"
  exit 1
}

mcp_fail_invalid_args() {
  mcp_fail -32602 "${1:-Invalid params}" "${2:-}"
}

# Appends one line to a stream of the server. The subshell takes the blow when the pipe is closed or gone.
# One printf is one write, so that lines of parallel writers do not mix.
__mcp_send() {
  local stream=$1 line=$2
  if [[ $stream =~ ^/dev/fd/[0-9]+$ ]]; then
    # The inherited descriptor itself: opening /dev/fd anew fails where /proc is absent or owned by someone else.
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
  # The printf of bash 3.2 cannot tell the time.
  printf -v stamp '%(%H:%M:%S)T' -1 2>/dev/null || stamp=$(date +%H:%M:%S)
  { printf '[%s] %s\n' "$stamp" "$*" >>"$MCPBASH_DEBUG_LOG"; } 2>/dev/null || :
}

mcp_is_cancelled() {
  [[ -n ${MCP_CANCEL_FILE:-} && -e $MCP_CANCEL_FILE ]]
}

mcp_roots_list() {
  if [[ -n ${MCP_ROOTS_PATHS:-} ]]; then
    printf '%s\n' "$MCP_ROOTS_PATHS"
  fi
}

mcp_roots_count() {
  printf '%s\n' "${MCP_ROOTS_COUNT:-0}"
}

# The absolute path without links, dots and double slashes; no part of it has to exist. Part by part, as the kernel does
# it: "link/.." is the parent of where the link leads to.
__mcp_physical_path() {
  __mcp_walk_path "$1" follow
}

# The same without following links.
__mcp_logical_path() {
  __mcp_walk_path "$1"
}

# PATH [follow]: whether links are followed.
__mcp_walk_path() {
  local rest=$1 follows=${2:-} walked="" part target links=0
  [[ $rest == /* ]] || rest=$PWD/$rest
  while [[ -n $rest ]]; do
    part=${rest%%/*}
    rest=${rest#"$part"}
    rest=${rest#/}
    case $part in
      "" | .) ;;
      ..) walked=${walked%/*} ;;
      *)
        if [[ -z $follows || ! -L $walked/$part ]]; then
          walked=$walked/$part
          continue
        fi
        links=$((links + 1))
        ((links <= 40)) || return 1
        target=$(readlink "$walked/$part" && printf x) || return 1
        target=${target%$'\n'x}
        [[ $target != /* ]] || walked=""
        rest=$target/$rest
        ;;
    esac
  done
  __MCP_OUT=${walked:-/}
}

mcp_path_collapse() {
  [[ -n ${1:-} ]] || return 1
  __mcp_logical_path "$1"
  printf '%s\n' "$__MCP_OUT"
}

mcp_path_normalize() {
  local walk=__mcp_physical_path
  case ${1:-} in
    --physical) shift ;;
    --logical) shift && walk=__mcp_logical_path ;;
  esac
  [[ -n ${1:-} ]] && "$walk" "$1" || return 1
  printf '%s\n' "$__MCP_OUT"
}

mcp_roots_contains() {
  local path rest=${MCP_ROOTS_PATHS:-} root
  [[ -n ${1:-} ]] && __mcp_physical_path "$1" || return 1
  path=$__MCP_OUT
  while [[ -n $rest ]]; do
    root=${rest%%$'\n'*}
    rest=${rest#"$root"}
    rest=${rest#$'\n'}
    if [[ -n $root ]] && __mcp_physical_path "$root" && [[ $path/ == "${__MCP_OUT%/}"/* ]]; then
      # The root / does not hold the kernel's files.
      [[ $__MCP_OUT == / && $path/ =~ ^/(proc|sys|dev)/ ]] || return 0
    fi
  done
  return 1
}

mcp_require_path() {
  __mcp_quietly __mcp_require_path "$@"
}

__mcp_require_path() {
  local pointer=${1:-.} path
  __mcp_read_options mcp_require_path "${@:2}"
  __mcp_has_json || mcp_fail_invalid_args "$pointer requires JSON tooling"
  __mcp_argument "$pointer"
  path=$__MCP_OUT
  if [[ -z $path && -n $__MCP_OPT_SINGLE_ROOT ]]; then
    if [[ ${MCP_ROOTS_COUNT:-0} != 1 && -z $__MCP_OPT_ALLOW_EMPTY ]]; then
      mcp_fail_invalid_args "$pointer is required when zero or multiple roots are configured"
    fi
    [[ ${MCP_ROOTS_COUNT:-0} != 1 || -z ${MCP_ROOTS_PATHS:-} ]] || path=${MCP_ROOTS_PATHS%%$'\n'*}
  fi
  if [[ -z $path ]]; then
    [[ -n $__MCP_OPT_ALLOW_EMPTY ]] || mcp_fail_invalid_args "$pointer is required"
    printf '\n'
    return 0
  fi
  if ! __mcp_physical_path "$path"; then
    mcp_fail_invalid_args "$pointer leads through too many symbolic links"
  fi
  path=$__MCP_OUT
  if [[ ${MCP_ROOTS_COUNT:-0} != 0 ]] && ! mcp_roots_contains "$path"; then
    mcp_fail_invalid_args "$pointer is outside configured MCP roots"
  fi
  printf '%s\n' "$path"
}

# The other files. Each defines its functions anew when one of them is called for the first time.
__mcp_load() {
  # shellcheck source=/dev/null
  source "$__MCP_SDK_DIR/$1.sh"
}

mcp_args_parse() { __mcp_load arguments; mcp_args_parse "$@"; }

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

mcp_client_supports_ui() { __mcp_load ui-sdk; mcp_client_supports_ui "$@"; }
mcp_result_with_ui() { __mcp_load ui-sdk; mcp_result_with_ui "$@"; }
mcp_result_with_ui_data() { __mcp_load ui-sdk; mcp_result_with_ui_data "$@"; }
mcp_ui_form() { __mcp_load ui-sdk; mcp_ui_form "$@"; }
mcp_ui_table() { __mcp_load ui-sdk; mcp_ui_table "$@"; }
mcp_tool_meta_with_ui() { __mcp_load ui-sdk; mcp_tool_meta_with_ui "$@"; }
