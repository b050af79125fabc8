# shellcheck shell=bash
# Part of the shell SDK: arguments as variables, by the @arg comments of the script.
#
# Sourced by tool-sdk.sh when its function is called; not meant to be sourced alone.
#
# The comments are read as the server reads them (catalog/descriptions/argument_comments.py): what is changed here is
# changed there. Every local name begins with __mcp_, so that no argument is set in place of the script's variable.

__MCP_ARG_LINE='^[[:space:]]*#+[[:space:]]*@arg[[:space:]]+([A-Za-z_][A-Za-z0-9_-]{0,63})(!?)(\[[^][]*\])?'
__MCP_ARG_LINE+='(=("[^"]*"|'\''[^'\'']*'\''|[^[:space:]"'\''][^[:space:]]*|))?'
__MCP_ARG_LINE+='([[:space:]]+(int|integer|number|bool|boolean|string|list|json))?([[:space:]].*)?$'

# Prints a command for each row: an assignment, or the end of the tool.
# shellcheck disable=SC2016 # the dollars are jq's
__MCP_ARGS_PROGRAM='
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
      if $value | holds_nul then refuse("\($name) has a character that no variable can hold: U+0000")
      elif $type == "list" then $variable + "=" + ($value | items)
      elif $type == "json" then $variable + "=" + ($value | tojson | @sh)
      else $variable + "=" + ($value | word) end
    elif $kind == "required" then refuse("\($name) is required")
    elif $type == "list" then $variable + "=" + ($default | default_items)
    else $variable + "=" + ($default | @sh) end'

mcp_args_parse() {
  __mcp_quietly __mcp_args_parse
}

__mcp_args_parse() {
  local __mcp_json __mcp_rows="" __mcp_numbers="" __mcp_commands __mcp_row
  __mcp_has_json || mcp_fail_invalid_args "mcp_args_parse requires JSON tooling"
  __mcp_read_arg_lines
  __mcp_json=${MCP_TOOL_ARGS_JSON:-}
  if [[ -n ${MCP_TOOL_ARGS_FILE:-} && -f $MCP_TOOL_ARGS_FILE ]]; then
    IFS= read -r -d '' __mcp_json <"$MCP_TOOL_ARGS_FILE" || :
  fi
  [[ -n $__mcp_json ]] || __mcp_json='{}'
  __mcp_commands=$(printf '%s' "$__mcp_json" |
    "$MCPBASH_JSON_TOOL_BIN" -r --arg rows "$__mcp_rows" "$__MCP_ARGS_PROGRAM" 2>/dev/null) ||
    mcp_fail_invalid_args "mcp_args_parse: the arguments are no JSON object"
  eval "$__mcp_commands"
  while IFS= read -r __mcp_row; do
    [[ -z $__mcp_row ]] || __mcp_number_as_written "${__mcp_row%% *}" "${__mcp_row#* }"
  done <<<"$__mcp_numbers"
}

# Reads the comments into the caller's __mcp_rows (variable, name, type, required or not, default) and __mcp_numbers.
__mcp_read_arg_lines() {
  local __mcp_script=$0 __mcp_line __mcp_known=" " __mcp_name __mcp_kind __mcp_default __mcp_type __mcp_variable
  [[ -r $__mcp_script ]] || __mcp_script=${MCP_TOOL_PATH:-}
  [[ -r $__mcp_script ]] || mcp_fail_invalid_args "mcp_args_parse: the script cannot be read"
  while IFS= read -r __mcp_line || [[ -n $__mcp_line ]]; do
    __mcp_line=${__mcp_line%$'\r'}
    [[ $__mcp_line =~ ^[[:space:]]*(#|$) ]] || break
    [[ $__mcp_line == *@arg* && $__mcp_line =~ $__MCP_ARG_LINE ]] || continue
    __mcp_name=${BASH_REMATCH[1]} __mcp_kind=optional __mcp_default=${BASH_REMATCH[5]} __mcp_type=${BASH_REMATCH[7]:-string}
    [[ -z ${BASH_REMATCH[2]} ]] || __mcp_kind=required
    case $__mcp_default in \"* | \'*) __mcp_default=${__mcp_default:1:${#__mcp_default}-2} ;; esac
    __mcp_variable=${__mcp_name//-/_}
    # Letter by letter: what is between a and z depends on the locale, and setting that in here would outlast the function
    # in bash 3.2. A prefix for the names by which the shell and other programs are steered.
    case $__mcp_variable in
      *[!abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_]*) continue ;;
      _* | BASH* | LD_* | DYLD_* | MCP* | auto_resume | histchars | *_proxy) __mcp_variable=arg_$__mcp_variable ;;
      *[abcdefghijklmnopqrstuvwxyz]*) ;;
      *) __mcp_variable=arg_$__mcp_variable ;;
    esac
    [[ $__mcp_known != *" $__mcp_variable "* ]] || continue
    __mcp_known+="$__mcp_variable "
    __mcp_rows+=$__mcp_variable$'\x1f'$__mcp_name$'\x1f'$__mcp_type$'\x1f'$__mcp_kind$'\x1f'$__mcp_default$'\n'
    case $__mcp_type in int | integer | number) __mcp_numbers+="$__mcp_variable $__mcp_name"$'\n' ;; esac
  done <"$__mcp_script"
}

# Many a jq writes 1.0 as 1 and rounds long integers, so the number is taken from the text where that names it once.
__mcp_number_as_written() {
  local __mcp_key="\"$2\"[[:space:]]*:" __mcp_rest
  [[ $__mcp_json =~ $__mcp_key ]] || return 0
  __mcp_rest=${__mcp_json#*"${BASH_REMATCH[0]}"}
  [[ ! $__mcp_rest =~ $__mcp_key ]] || return 0
  [[ $__mcp_rest =~ ^[[:space:]]*(-?[0-9][-+.eE0-9]*) ]] || return 0
  printf -v "$1" '%s' "${BASH_REMATCH[1]}"
}
