# shellcheck shell=bash
# Part of the shell SDK: JSON functions that need the JSON tool, and what they do without one.
#
# Sourced by the other files when one of its functions is called; do not source it alone.

# The arguments are the names of a file and of a variable; one of them has the document.
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

# Never in a file, even if a server sets such a variable.
mcp_auth_raw() {
  __mcp_quietly __mcp_document __MCP_NO_FILE MCP_AUTH_JSON
}

# SOURCE FILTER HAS_DEFAULT DEFAULT: the output of mcp_args_get, mcp_meta_get and mcp_auth_get.
__mcp_filter() {
  local source=$1 program=$2 status=0
  if ! __mcp_has_json; then
    __mcp_warn "mcp_${source}_get: no JSON tool, cannot read $2"
    [[ -n $3 ]] || return 1
    printf '%s\n' "$4"
    return 0
  fi
  if [[ -n $3 ]]; then
    program=$'[\n'$program$'\n] | if all(. == null) then $default else .[] end'
  fi
  "mcp_${source}_raw" | "$MCPBASH_JSON_TOOL_BIN" -rc --arg default "$4" "$program" || status=$?
  ((status == 0)) || __mcp_warn "mcp_${source}_get: cannot read $2"
  return "$status"
}

# ROWS: mcp_args_parse for arguments that are not plain, in one run of the JSON tool. Every local name begins with __mcp_,
# as in arguments.sh.
__mcp_parse_by_filter() {
  local __mcp_json=${MCP_TOOL_ARGS_JSON:-} __mcp_commands __mcp_program
  # It prints a command for each row: an assignment, or a failure.
  # shellcheck disable=SC2016 # the dollars are jq's
  __mcp_program='
  def refuse($text): "mcp_fail_invalid_args " + ($text | @sh);
  def word: if type == "string" then . else tojson end | @sh;
  def holds_nul: [.. | strings | select(split("\u0000") | length > 1)] | length > 0;
  def items: if type == "array" then . else [.] end | map(word) | "(" + join(" ") + ")";
  def default_items:
    if startswith("[") then (try fromjson catch []) elif . == "" then [] else split(",") end | items;
  . as $args
  | $rows | split("\n")[] | select(. != "") | split("\u001f")
  | . as [$variable, $name, $type, $kind, $default]
  | ($args | has($name)) as $is_there
  | $args[$name] as $value
  | if $is_there and ($value != null or $type == "json") then
      if $value | holds_nul then refuse("\($name) has a character that a variable cannot contain: U+0000")
      elif $type == "list" then $variable + "=" + ($value | items)
      elif $type == "json" then $variable + "=" + ($value | tojson | @sh)
      elif $type == "number" and ($value | type) == "number" then
        $variable + "=" + ($value | word) + "\n__mcp_number_as_written \($variable) \($name)"
      else $variable + "=" + ($value | word) end
    elif $kind == "required" then refuse("\($name) is required")
    elif $type == "list" then $variable + "=" + ($default | default_items)
    else $variable + "=" + ($default | @sh) end'
  if [[ -n ${MCP_TOOL_ARGS_FILE:-} && -f $MCP_TOOL_ARGS_FILE ]]; then
    IFS= read -r -d '' __mcp_json <"$MCP_TOOL_ARGS_FILE" || :
  fi
  [[ -n $__mcp_json ]] || __mcp_json='{}'
  __mcp_commands=$(printf '%s' "$__mcp_json" |
    "$MCPBASH_JSON_TOOL_BIN" -r --arg rows "$1" "$__mcp_program" 2>/dev/null) ||
    mcp_fail_invalid_args "mcp_args_parse: the arguments are not a JSON object"
  eval "$__mcp_commands"
}

# Some versions of jq write 1.0 as 1 and round long integers, so the number is taken from the text if that is clear.
__mcp_number_as_written() {
  local __mcp_key="\"$2\"[[:space:]]*:" __mcp_twice __mcp_once
  __mcp_twice="$__mcp_key.*$__mcp_key" __mcp_once="${__mcp_key}[[:space:]]*(-?[0-9][-+.eE0-9]*)"
  [[ ! $__mcp_json =~ $__mcp_twice && $__mcp_json =~ $__mcp_once ]] || return 0
  printf -v "$1" '%s' "${BASH_REMATCH[1]}"
}

__mcp_is_one_value() {
  printf '%s' "$1" | "$MCPBASH_JSON_TOOL_BIN" -en '[inputs] | length == 1' >/dev/null 2>&1
}

# One value of any kind.
__mcp_compact_any() {
  __MCP_OUT=$(printf '%s' "$1" |
    "$MCPBASH_JSON_TOOL_BIN" -cn '[inputs] | if length == 1 then .[0] else error("not one value") end' 2>/dev/null)
}

# JSON MAX_BYTES: the output of mcp_result_success.
__mcp_wrap() {
  # shellcheck disable=SC2016 # the dollars are jq's
  local program='
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
  if ! __mcp_has_json; then
    __mcp_wrap_unread "$1" "$2"
  elif ! printf '%s' "$1" | "$MCPBASH_JSON_TOOL_BIN" -cn --argjson max "$2" "$program" 2>/dev/null; then
    __mcp_load errors
    __mcp_print_internal_error "Invalid JSON passed to mcp_result_success"
  fi
}

# Success without a JSON tool: the value is not checked.
__mcp_wrap_unread() {
  local json=$1 max=$2 envelope
  if [[ $json != *[![:space:]]* ]]; then
    __mcp_load errors
    __mcp_print_internal_error "Empty data passed to mcp_result_success"
    return 0
  fi
  __mcp_on_one_line "$json"
  envelope="{\"success\":true,\"result\":$__MCP_OUT}"
  if (($(mcp_byte_length "$envelope") <= max)); then
    __mcp_quote "$envelope"
  else
    __mcp_quote "Success: response too large for text content"
  fi
  printf '{"content":[{"type":"text","text":%s}],"structuredContent":%s,"isError":false}\n' "$__MCP_OUT" "$envelope"
}

# The output of mcp_result_error.
__mcp_print_error_object() {
  printf '%s' "$1" | "$MCPBASH_JSON_TOOL_BIN" -cn '[inputs]
    | if length == 1 and (.[0] | type) == "object" then .[0] else error("not one object") end
    | . + {type: (.type // "internal_error"), message: (.message // "Unknown error")}
    | {
        content: [{type: "text", text: (.message | tostring)}],
        structuredContent: {success: false, error: .},
        isError: true
      }' 2>/dev/null
}
