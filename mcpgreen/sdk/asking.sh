# shellcheck shell=bash
# Part of the shell SDK: ask the user, or the client's model.
#
# Sourced by tool-sdk.sh when one of its functions is called; do not source it alone.
#
# A question is one line on the control pipe. It names a FIFO that is made for the answer. The server watches the time
# limit, so every question gets an answer, even if only that there was none.

__mcp_load messages
__mcp_load results

# The limit of a line. The server drops longer lines, and the script would wait forever.
__MCP_ASK_MAX_BYTES=1048000

# Asks $1, a map from keys to requests as one line of valid JSON, and leaves the map of answers in __MCP_OUT. Status 1 if
# nothing was asked; then __MCP_OUT is the status for all keys, and __MCP_ASK_MESSAGE says why.
__mcp_ask() {
  local requests=$1 timeout=${2:-} line stream=${MCP_PROGRESS_STREAM:-${MCP_LOG_STREAM:-}} fifo number=0
  __MCP_ASK_MESSAGE=""
  if [[ -n ${__MCP_CALL:-} ]]; then
    __mcp_ask_staying "$requests" "$timeout"
    return
  fi
  if [[ -z ${MCP_ASK_REPLY:-} || -z $stream ]]; then
    __mcp_unasked unsupported "There is no client to ask" || return 1
  fi
  ! mcp_is_cancelled || __mcp_unasked cancelled "The call was cancelled" || return 1
  # Another subshell of this script may ask at the same time. The one that makes the FIFO owns the number. Only mkfifo
  # tells that it exists, because it may be gone a moment later.
  while :; do
    number=$((number + 1))
    fifo=$MCP_ASK_REPLY.$$.$number
    mkfifo -m 600 "$fifo" 2>/dev/null && break
    [[ -w ${MCP_ASK_REPLY%/*} && $number -lt 1000 ]] ||
      __mcp_unasked error "The file for the reply cannot be created" || return 1
  done
  __mcp_quote "$fifo"
  line="{\"ask\":$requests,\"reply\":$__MCP_OUT${timeout:+,\"timeoutSecs\":$timeout}}"
  if (($(mcp_byte_length "$line") > __MCP_ASK_MAX_BYTES)); then
    rm -f -- "$fifo"
    __mcp_unasked invalid "The question has more than $__MCP_ASK_MAX_BYTES bytes" || return 1
  fi
  if ! __mcp_send "$stream" "$line"; then
    rm -f -- "$fifo"
    __mcp_unasked error "The server has stopped" || return 1
  fi
  __MCP_OUT=$(<"$fifo") || __MCP_OUT=""
  rm -f -- "$fifo"
  [[ -n $__MCP_OUT ]] || __mcp_unasked error "The server did not answer" || return 1
}

__mcp_unasked() {
  __MCP_OUT=$1 __MCP_ASK_MESSAGE=$2
  return 1
}

# Asks one question: method, params, seconds, and a filter for the result. Leaves the status in __MCP_ASK_STATUS, and the
# filtered result, or the reason why there is none, in __MCP_OUT.
__mcp_ask_one() {
  local method=$1 params=$2 timeout=$3 filter=$4
  if ! __mcp_ask "{\"question\":{\"method\":\"$method\",\"params\":$params}}" "$timeout"; then
    __MCP_ASK_STATUS=$__MCP_OUT __MCP_OUT=$__MCP_ASK_MESSAGE
    return 0
  fi
  __MCP_OUT=$(printf '%s' "$__MCP_OUT" | "$MCPBASH_JSON_TOOL_BIN" -r ".question
    | if .status == \"answered\" then \"answered\", (.result | $filter | tojson)
      else .status // \"error\", (.message // \"\" | tostring) end" 2>/dev/null) ||
    __MCP_OUT=$'error\nThe server did not answer in JSON'
  __MCP_ASK_STATUS=${__MCP_OUT%%$'\n'*}
  __MCP_OUT=${__MCP_OUT#"$__MCP_ASK_STATUS"}
  __MCP_OUT=${__MCP_OUT#$'\n'}
}

# The first argument that is a positive number; without one, the server decides.
__mcp_ask_timeout() {
  local candidate
  __MCP_OUT=""
  for candidate in "$@"; do
    if [[ $candidate =~ ^([0-9]{1,6}\.[0-9]{1,3}|[0-9]{1,6})$ && $candidate == *[1-9]* ]]; then
      [[ $candidate == 0.* ]] || while [[ $candidate == 0* ]]; do candidate=${candidate#0}; done
      __MCP_OUT=$candidate
      return 0
    fi
  done
}

# Prints the outcome of a form or URL without an answer for the script, and the reason for people. Status 1.
__mcp_elicit_failed() {
  local action=$1 reason=$2 message=$3
  __mcp_warn "mcp_elicit: $message"
  __mcp_quote "$message"
  printf '{"action":"%s","content":null,"reason":"%s","message":%s}\n' "$action" "$reason" "$__MCP_OUT"
  return 1
}

# $1: form or url, $2: the params as one line of valid JSON, $3: seconds.
__mcp_elicit() {
  local mode=$1 params=$2 timeout answer
  # Ask even if the client seems not to support it: the server decides, and records which capability was missing.
  if [[ -z ${MCP_ASK_REPLY:-}${__MCP_CALL:-} ]]; then
    [[ ${MCP_ELICIT_SUPPORTED:-0} == 1 && " ${MCP_ELICIT_MODES:-form url} " == *" $mode "* ]] ||
      __mcp_elicit_failed decline unsupported "This client cannot show a $mode to the user" || return 1
    __mcp_elicit_failed error not_configured "The server does not let this script ask questions" || return 1
  fi
  __mcp_ask_timeout "$3" "${MCPBASH_ELICITATION_TIMEOUT:-}"
  timeout=$__MCP_OUT
  __mcp_ask_one elicitation/create "$params" "$timeout" '{action: (.action // "cancel"), content: .content}'
  answer=$__MCP_OUT
  case $__MCP_ASK_STATUS in
    answered) printf '%s\n' "$answer" ;;
    unsupported) __mcp_elicit_failed decline unsupported "${answer:-This client cannot show a $mode to the user}" ;;
    timeout) __mcp_elicit_failed error timeout "${answer:-There was no answer in time}" ;;
    invalid) __mcp_elicit_failed error invalid "$answer" ;;
    cancelled) __mcp_elicit_failed cancel cancelled "${answer:-The call was cancelled}" ;;
    *) __mcp_elicit_failed error error "${answer:-The question failed}" ;;
  esac
}

mcp_elicit() {
  __mcp_quietly __mcp_elicit_one "$@"
}

__mcp_elicit_one() {
  local message=${1-} wanted=${2-} timeout=${3:-} mode=${4:-form} params
  __mcp_quote "$message"
  params="{\"mode\":\"$mode\",\"message\":$__MCP_OUT"
  case $mode in
    form)
      __mcp_has_json || __mcp_elicit_failed error no_json_tool "Asking needs a JSON tool" || return 1
      __mcp_compact "$wanted" && [[ $__MCP_OUT == "{"* ]] ||
        __mcp_elicit_failed error invalid "The schema must be a JSON object" || return 1
      params+=",\"requestedSchema\":$__MCP_OUT}"
      ;;
    url)
      __mcp_has_json || __mcp_elicit_failed error no_json_tool "Asking needs a JSON tool" || return 1
      __mcp_quote "$wanted"
      params+=",\"url\":$__MCP_OUT}"
      ;;
    *) __mcp_elicit_failed error invalid "The mode must be form or url, found $mode" || return 1 ;;
  esac
  __mcp_elicit "$mode" "$params" "$timeout"
}

mcp_elicit_url() {
  mcp_elicit "${1-}" "${2-}" "${3:-}" url
}

# A form with one required field. $1: message, $2: name of the field, $3: its schema as JSON.
__mcp_elicit_field() {
  __mcp_quote "$2"
  mcp_elicit "$1" "{\"type\":\"object\",\"properties\":{$__MCP_OUT:$3},\"required\":[$__MCP_OUT]}"
}

mcp_elicit_string() {
  __mcp_elicit_field "${1-}" "${2:-value}" '{"type":"string"}'
}

mcp_elicit_confirm() {
  __mcp_elicit_field "${1-}" confirmed '{"type":"boolean"}'
}

# Turns choices like VALUE:TITLE into objects in __MCP_OUT. The title is optional.
__mcp_titled() {
  local choice titled=""
  for choice in "$@"; do
    __mcp_quote "${choice%%:*}"
    titled+="${titled:+,}{\"const\":$__MCP_OUT,\"title\":"
    choice=${choice#*:}
    __mcp_quote "$choice"
    titled+="$__MCP_OUT}"
  done
  __MCP_OUT="[$titled]"
}

__mcp_need_choices() {
  (($# > 1)) || __mcp_elicit_failed error invalid "A choice needs at least one option"
}

mcp_elicit_choice() {
  __mcp_need_choices "$@" || return 1
  __mcp_elicit_field "$1" choice "{\"type\":\"string\",\"enum\":$(mcp_json_arr "${@:2}")}"
}

mcp_elicit_titled_choice() {
  __mcp_need_choices "$@" || return 1
  __mcp_titled "${@:2}"
  __mcp_elicit_field "$1" choice "{\"type\":\"string\",\"oneOf\":$__MCP_OUT}"
}

mcp_elicit_multi_choice() {
  __mcp_need_choices "$@" || return 1
  __mcp_elicit_field "$1" choices \
    "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":$(mcp_json_arr "${@:2}")}}"
}

mcp_elicit_titled_multi_choice() {
  __mcp_need_choices "$@" || return 1
  __mcp_titled "${@:2}"
  __mcp_elicit_field "$1" choices "{\"type\":\"array\",\"items\":{\"anyOf\":$__MCP_OUT}}"
}

mcp_sample() {
  __mcp_quietly __mcp_sample "$@"
}

# Statuses: 0 answered, 1 not supported, 2 wrong use, 3 no answer in time, 4 cancelled, 5 refused or failed.
__mcp_sample() {
  local messages=${1-} max_tokens=${2:-} options=${3:-} timeout params answer
  [[ -n $options ]] || options='{}'
  if ! __mcp_has_json; then
    __mcp_warn "mcp_sample: asking needs a JSON tool"
    return 2
  fi
  if [[ ! $max_tokens =~ ^[1-9][0-9]{0,8}$ ]]; then
    __mcp_warn "mcp_sample: the second argument must be a positive number of tokens"
    return 2
  fi
  # shellcheck disable=SC2016 # the dollars are jq's
  params=$(printf '%s\n%s' "$messages" "$options" | "$MCPBASH_JSON_TOOL_BIN" -cn --argjson most "$max_tokens" '[inputs]
    | if length != 2 or (.[1] | type) != "object" then error("not two") else . end
    | (.[0] | if type == "string" then [{role: "user", content: {type: "text", text: .}}]
        elif type == "array" and length > 0 then . else error("no messages") end) as $messages
    | .[1] + {messages: $messages, maxTokens: $most}' 2>/dev/null) || {
    __mcp_warn "mcp_sample: the messages must be a JSON array or string, and the options a JSON object"
    return 2
  }
  __mcp_ask_timeout "${4:-}"
  timeout=$__MCP_OUT
  __mcp_ask_one sampling/createMessage "$params" "$timeout" .
  answer=$__MCP_OUT
  if [[ $__MCP_ASK_STATUS == answered ]]; then
    printf '%s\n' "$answer"
    return 0
  fi
  __mcp_warn "mcp_sample: $__MCP_ASK_STATUS${answer:+: $answer}"
  case $__MCP_ASK_STATUS in
    unsupported) return 1 ;;
    invalid) return 2 ;;
    timeout) return 3 ;;
    cancelled) return 4 ;;
    *) return 5 ;;
  esac
}

mcp_ask() {
  __mcp_quietly __mcp_ask_all "$@"
}

# Statuses: 0 if all keys were answered, 1 if some were not, 2 for wrong use.
__mcp_ask_all() {
  local requests timeout status problem
  if ! __mcp_has_json; then
    __mcp_warn "mcp_ask: asking needs a JSON tool"
    return 2
  fi
  requests=$(printf '%s' "${1-}" | "$MCPBASH_JSON_TOOL_BIN" -cn '[inputs]
    | if length == 1 and (.[0] | type) == "object" and .[0] != {} then .[0] else error("no map") end
    | map_values(
        if type == "object"
          and (.method == "elicitation/create" or .method == "sampling/createMessage" or .method == "roots/list")
          and (.params == null or (.params | type) == "object")
        then {method: .method, params: (.params // {})} else error("no request") end)' 2>/dev/null) || {
    __mcp_warn 'mcp_ask: expected {"key": {"method": "elicitation/create", "params": {...}}, ...}; other methods are sampling/createMessage and roots/list'
    return 2
  }
  __mcp_ask_timeout "${2:-}"
  timeout=$__MCP_OUT
  if ! __mcp_ask "$requests" "$timeout"; then
    status=$__MCP_OUT
    # shellcheck disable=SC2016 # the dollars are jq's
    printf '%s' "$requests" | "$MCPBASH_JSON_TOOL_BIN" -c --arg status "$status" --arg message "$__MCP_ASK_MESSAGE" \
      'map_values({status: $status, message: $message})'
    [[ $status != invalid ]] || return 2
    return 1
  fi
  # shellcheck disable=SC2016 # the dollars are jq's
  printf '%s\n%s' "$requests" "$__MCP_OUT" | "$MCPBASH_JSON_TOOL_BIN" -r -n '[inputs] | .[1] as $answers
    | .[0] | with_entries(.value = ($answers[.key] // {status: "error", message: "The server did not answer this question"}))
    | (if all(.[]; .status == "answered") then 0 elif any(.[]; .status == "invalid") then 2 else 1 end),
      ([.[] | select(.status == "invalid") | .message // "The question is invalid" | tostring][0] // ""
        | split("\n") | join(" ")),
      (map_values(if .status == "answered" then .result else . end) | tojson)' | {
    IFS= read -r status
    IFS= read -r problem
    cat
    [[ -z $problem ]] || __mcp_warn "mcp_ask: $problem"
    return "${status:-1}"
  }
}
