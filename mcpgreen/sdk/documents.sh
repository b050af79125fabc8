# shellcheck shell=bash
# Part of the shell SDK: other programs' errors, long output, configuration.
#
# Sourced by tool-sdk.sh when one of its functions is called; do not source it alone.

__mcp_load results

# The reason why a program failed, from its stdout if that is JSON, otherwise from its stderr.
mcp_extract_cli_error() {
  local out=${1-} err=${2-} code=${3:-1} reason=""
  if [[ $out == *[![:space:]]* ]] && __mcp_has_json; then
    reason=$(printf '%s' "$out" | "$MCPBASH_JSON_TOOL_BIN" -rn '[inputs]
      | if length == 1 then .[0] else null end
      | if type == "object" then . else {} end
      | [
          (.error | if type == "object" then .message else . end),
          (if .success == false or .ok == false or .status == "error" then .message else null end),
          (.errors | if type == "array" then .[0] else null end | if type == "object" then .message else . end)
        ]
      | map(select(type == "string" and . != "")) | .[0] // ""' 2>/dev/null) || reason=""
  fi
  [[ -n $reason || $err != *[![:space:]]* ]] || reason=$err
  printf '%s\n' "${reason:-CLI exited with code $code}"
}

# shellcheck disable=SC2016 # the dollars are jq's
__MCP_TRUNCATE_PROGRAM='
  def problem($type; $message): {result: null, truncated: false, error: {type: $type, message: $message}};
  def size: tojson | utf8bytelength;
  # The longest beginning of an array that fits into this many bytes.
  def prefix($room):
    . as $items
    | (reduce .[] as $item ([0, 0, true];
        if .[2] | not then .
        else (.[1] + ($item | size) + (if .[0] > 0 then 1 else 0 end)) as $used
          | if $used <= $room then [.[0] + 1, $used, true] else [.[0], .[1], false] end
        end))[0] as $kept
    | $items[:$kept];
  def cut($at; $max):
    . as $whole
    | getpath($at) as $items
    | (setpath($at; []) | size) as $frame
    | ($items | prefix($max - $frame)) as $kept
    | if $frame > $max then problem("output_too_large"; "Everything around the array exceeds \($max) bytes by itself")
      else {result: ($whole | setpath($at; $kept)), truncated: true, kept: ($kept | length), total: ($items | length)}
        + (if $kept == [] then {_warning: "The first item alone exceeds the limit of \($max) bytes"} else {} end)
      end;
  def counted($at): getpath($at) | length | {kept: ., total: .};
  def reachable($at): reduce $at[] as $key ({value: ., found: true};
    if .found and (.value | type) == "object" and (.value | has($key)) then .value |= .[$key]
    else .found = false end);
  [inputs]
  | if length != 1 then error("not one value") else .[0]
      | ($path | if . == "" then null else split(".")[1:] end) as $at
      | reachable($at // []) as $reached
      | if $at != null and ($reached.found | not) then problem("path_not_found"; "There is nothing at \($path)")
        elif $at != null and ($reached.value | type) != "array" then
          problem("invalid_array_path"; "The value at \($path) must be an array, but its type is \($reached.value | type)")
        else (if $at != null then $at
            elif type == "array" then []
            elif type == "object" and (.results | type) == "array" then ["results"]
            else null end) as $at
          | if size <= $max then {result: ., truncated: false} + (if $at == null then {} else counted($at) end)
            elif $at != null then cut($at; $max)
            else problem("output_too_large"; "The output exceeds \($max) bytes, and has no array to shorten")
            end
        end
    end'

mcp_json_truncate() {
  local json="" max="" path="" has_path="" words=0 candidate
  while (($#)); do
    if [[ $1 == --array-path ]]; then
      has_path=yes path=${2-}
      shift $(($# > 1 ? 2 : 1))
      continue
    fi
    words=$((words + 1))
    case $words in
      1) json=$1 ;;
      2) max=$1 ;;
    esac
    shift
  done
  for candidate in "$max" "${MCPBASH_MAX_TOOL_OUTPUT_SIZE:-}" 10485760; do
    [[ ! $candidate =~ ^0*[1-9][0-9]{0,14}$ ]] || break
  done
  max=$((10#$candidate))
  if [[ -n $has_path && ! $path =~ ^(\.[A-Za-z_][A-Za-z0-9_]*)+$ ]]; then
    __mcp_print_truncate_problem invalid_path_syntax "A path looks like .data.items, found ${path:-none}"
  elif ! __mcp_has_json; then
    __mcp_on_one_line "${json:-null}"
    printf '{"result":%s,"truncated":false,"_warning":"Not shortened: minimal mode, no JSON tool"}\n' "$__MCP_OUT"
  else
    printf '%s' "$json" |
      "$MCPBASH_JSON_TOOL_BIN" -cn --argjson max "$max" --arg path "$path" "$__MCP_TRUNCATE_PROGRAM" 2>/dev/null ||
      __mcp_print_truncate_problem invalid_json "The input must be exactly one JSON value" "$json"
  fi
}

__mcp_print_truncate_problem() {
  local raw=""
  if (($# > 2)); then
    __mcp_quote "$3"
    raw=",\"raw\":$__MCP_OUT"
  fi
  __mcp_quote "$2"
  printf '{"result":null,"truncated":false,"error":{"type":"%s","message":%s%s}}\n' "$1" "$__MCP_OUT" "$raw"
}

mcp_config_load() {
  __mcp_quietly __mcp_config_load "$@"
}

# Merges defaults, example, file and variable. Later ones override earlier ones.
__mcp_config_load() {
  local variable="" file="" example="" defaults="" pieces="" found=""
  while (($#)); do
    case $1 in
      --env | --file | --example | --defaults)
        (($# > 1)) || {
          __mcp_warn "mcp_config_load: $1 needs a value"
          return 1
        }
        case $1 in
          --env) variable=$2 ;;
          --file) file=$2 ;;
          --example) example=$2 ;;
          --defaults) defaults=$2 ;;
        esac
        shift
        ;;
      *) __mcp_warn "mcp_config_load: ignored $1" ;;
    esac
    shift
  done
  [[ -z $defaults ]] || __mcp_add_config "the defaults" "$defaults"
  [[ -z $example ]] || __mcp_add_config_file "$example"
  [[ -z $file ]] || __mcp_add_config_file "$file"
  if [[ $variable =~ ^[A-Za-z_][A-Za-z0-9_]*$ && -n ${!variable:-} ]]; then
    if [[ ${!variable} =~ ^[[:space:]]*\{ ]]; then
      __mcp_add_config "the variable $variable" "${!variable}"
    else
      __mcp_add_config_file "${!variable}" required
    fi
  fi
  [[ -n $found ]] || return 1
  if __mcp_has_json; then
    # shellcheck disable=SC2016 # the dollar is jq's
    MCP_CONFIG_JSON=$(printf '%s' "$pieces" | "$MCPBASH_JSON_TOOL_BIN" -cn 'reduce inputs as $piece ({}; . + $piece)')
  else
    MCP_CONFIG_JSON=$pieces
  fi
  export MCP_CONFIG_JSON
}

__mcp_add_config_file() {
  if [[ -f $1 && -r $1 ]]; then
    __mcp_add_config "$1" "$(<"$1")"
  elif [[ -e $1 || -n ${2:-} ]]; then
    __mcp_warn "mcp_config_load: skipped $1, which cannot be read"
  fi
}

# Adds to the caller's "pieces" and sets its "found". Without a JSON tool, only the last source counts.
__mcp_add_config() {
  if ! __mcp_has_json; then
    __mcp_on_one_line "$2"
    pieces=$__MCP_OUT found=yes
  elif __mcp_compact "$2" && [[ $__MCP_OUT == "{"* ]]; then
    pieces+=$__MCP_OUT$'\n' found=yes
  else
    __mcp_warn "mcp_config_load: skipped $1, which is not a JSON object"
  fi
}

mcp_config_get() {
  __mcp_quietly __mcp_config_get "$@"
}

__mcp_config_get() {
  local path=${1:-.} default="" has_default="" value
  if [[ ${2:-} == --default ]]; then
    default=${3-} has_default=yes
  fi
  if __mcp_has_json; then
    value=$(printf '%s' "${MCP_CONFIG_JSON:-null}" | "$MCPBASH_JSON_TOOL_BIN" -rc \
      $'[\n'"$path"$'\n] | if all(. == null) then error("absent") else .[] end' 2>/dev/null) && {
      printf '%s\n' "$value"
      return 0
    }
  elif __mcp_config_scalar "$path"; then
    printf '%s\n' "$__MCP_OUT"
    return 0
  fi
  [[ -n $has_default ]] || return 1
  printf '%s\n' "$default"
}

# Without a JSON tool: reads a member of the outermost object that is a plain string, a number or a boolean.
__mcp_config_scalar() {
  local config=${MCP_CONFIG_JSON:-} wanted other colon='[[:space:]]*:[[:space:]]*' text='"([^"\\]*)"'
  [[ $1 =~ ^\.([A-Za-z_][A-Za-z0-9_]*)$ ]] || return 1
  wanted="^[^\"]*\"${BASH_REMATCH[1]}\"$colon($text|-?[0-9.eE+-]+|true|false)"
  other="^[^\"]*$text$colon($text|[^][\"{},[:space:]]+)"
  # Member after member, because a string may look like a member.
  while [[ ! $config =~ $wanted ]]; do
    [[ $config =~ $other ]] || return 1
    config=${config:${#BASH_REMATCH[0]}}
  done
  __MCP_OUT=${BASH_REMATCH[1]}
  [[ $__MCP_OUT != \"* ]] || __MCP_OUT=${BASH_REMATCH[2]}
}
