# shellcheck shell=bash
# Part of the shell SDK: set a variable for each @arg comment in the script.
#
# Sourced by tool-sdk.sh when its function is called; do not source it alone.
#
# The server reads the same comments (catalog/descriptions/in_script.py): change both. Every local name begins
# with __mcp_, so that it cannot hide a variable of the script.

mcp_args_parse() {
  __mcp_quietly __mcp_args_parse
}

__mcp_args_parse() {
  # For each comment: variable, name, type, whether it is required, default, and the cell of the table.
  local __mcp_variables=() __mcp_names=() __mcp_types=() __mcp_kinds=() __mcp_defaults=() __mcp_cells=()
  local __mcp_i __mcp_rows=""
  __mcp_has_json || mcp_fail_invalid_args "mcp_args_parse requires JSON tooling"
  __mcp_read_arg_lines
  if __mcp_find_cells; then
    __mcp_assign_cells
  else
    for ((__mcp_i = 0; __mcp_i < ${#__mcp_names[@]}; __mcp_i++)); do
      __mcp_rows+=${__mcp_variables[__mcp_i]}$'\x1f'${__mcp_names[__mcp_i]}$'\x1f'${__mcp_types[__mcp_i]}
      __mcp_rows+=$'\x1f'${__mcp_kinds[__mcp_i]}$'\x1f'${__mcp_defaults[__mcp_i]}$'\n'
    done
    __mcp_load jq
    __mcp_parse_by_filter "$__mcp_rows"
  fi
}

# Reads the comments, # @arg NAME[!][[CHOICES]][=DEFAULT] [TYPE] [TEXT], into the caller's arrays. One loop that takes each
# line apart, because regular expressions and functions take several times as long.
__mcp_read_arg_lines() {
  local __mcp_script=$0 __mcp_rest __mcp_known=" " __mcp_name __mcp_kind __mcp_default __mcp_type __mcp_word
  local __mcp_i=0
  [[ -r $__mcp_script ]] || __mcp_script=${MCP_TOOL_PATH:-}
  [[ -r $__mcp_script ]] || mcp_fail_invalid_args "mcp_args_parse: the script cannot be read"
  while IFS= read -r __mcp_rest || [[ -n $__mcp_rest ]]; do
    __mcp_rest=${__mcp_rest%$'\r'}
    if [[ $__mcp_rest == "# @arg "[![:space:]]* ]]; then # the usual form
      __mcp_rest=${__mcp_rest:7}
    else
      __mcp_rest=${__mcp_rest#"${__mcp_rest%%[![:space:]]*}"}
      [[ -z $__mcp_rest || $__mcp_rest == "#"* ]] || break
      __mcp_rest=${__mcp_rest#"${__mcp_rest%%[!#]*}"}
      __mcp_rest=${__mcp_rest#"${__mcp_rest%%[![:space:]]*}"}
      [[ $__mcp_rest == @arg[[:space:]]* ]] || continue
      __mcp_rest=${__mcp_rest:4}
      __mcp_rest=${__mcp_rest#"${__mcp_rest%%[![:space:]]*}"}
    fi
    __mcp_name=${__mcp_rest%%[!-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789]*}
    [[ -n $__mcp_name && $__mcp_name != [-0123456789]* && ${#__mcp_name} -le 64 ]] || continue
    __mcp_rest=${__mcp_rest:${#__mcp_name}} __mcp_kind=optional __mcp_default="" __mcp_type=string
    if [[ $__mcp_rest == !* ]]; then
      __mcp_kind=required __mcp_rest=${__mcp_rest:1}
    fi
    if [[ $__mcp_rest == "["* ]]; then
      __mcp_word=${__mcp_rest:1}
      __mcp_word=${__mcp_word%%[][]*}
      __mcp_rest=${__mcp_rest:$((${#__mcp_word} + 1))}
      [[ $__mcp_rest == "]"* ]] || continue
      __mcp_rest=${__mcp_rest:1}
    fi
    if [[ $__mcp_rest == "="[\"\']* ]]; then
      __mcp_word=${__mcp_rest:1:1}
      __mcp_default=${__mcp_rest:2}
      __mcp_default=${__mcp_default%%"$__mcp_word"*}
      __mcp_rest=${__mcp_rest:$((${#__mcp_default} + 2))}
      [[ $__mcp_rest == "$__mcp_word"* ]] || continue
      __mcp_rest=${__mcp_rest:1}
    elif [[ $__mcp_rest == "="* ]]; then
      __mcp_default=${__mcp_rest:1}
      __mcp_default=${__mcp_default%%[[:space:]]*}
      __mcp_rest=${__mcp_rest:$((${#__mcp_default} + 1))}
    fi
    [[ -z $__mcp_rest || $__mcp_rest == [[:space:]]* ]] || continue
    __mcp_rest=${__mcp_rest#"${__mcp_rest%%[![:space:]]*}"}
    case ${__mcp_rest%%[[:space:]]*} in
      int | integer | number) __mcp_type=number ;;
      list) __mcp_type=list ;;
      json) __mcp_type=json ;;
    esac
    __mcp_word=${__mcp_name//-/_}
    # A prefix for names that control the shell and other programs.
    case $__mcp_word in
      _* | BASH* | LD_* | DYLD_* | MCP* | auto_resume | histchars | *_proxy) __mcp_word=arg_$__mcp_word ;;
      *[abcdefghijklmnopqrstuvwxyz]*) ;;
      *) __mcp_word=arg_$__mcp_word ;;
    esac
    [[ $__mcp_known != *" $__mcp_word "* ]] || continue
    __mcp_known+="$__mcp_word "
    __mcp_variables[__mcp_i]=$__mcp_word __mcp_names[__mcp_i]=$__mcp_name __mcp_types[__mcp_i]=$__mcp_type
    __mcp_kinds[__mcp_i]=$__mcp_kind __mcp_defaults[__mcp_i]=$__mcp_default
    __mcp_i=$((__mcp_i + 1))
  done <"$__mcp_script"
}

# Finds the cell of each argument without a process; it is empty for an absent argument. Status 1: run jq.
__mcp_find_cells() {
  local __mcp_json=${MCP_TOOL_ARGS_JSON:-} __mcp_table=${MCP_TOOL_ARGS_TABLE:-} __mcp_i __mcp_pattern __mcp_cell
  [[ -z ${MCP_TOOL_ARGS_FILE:-} ]] && ! shopt -q nocasematch || return 1
  if [[ -z $__mcp_json || $__mcp_json == "{}" ]]; then
    __mcp_table=""
  elif [[ $__mcp_table != "$__mcp_json"$'\n'* ]]; then
    return 1
  fi
  for ((__mcp_i = 0; __mcp_i < ${#__mcp_names[@]}; __mcp_i++)); do
    __mcp_pattern=$'\n[.]'${__mcp_names[__mcp_i]}$'=([^\n]*)' __mcp_cell=""
    [[ ! $__mcp_table =~ $__mcp_pattern ]] || __mcp_cell=${BASH_REMATCH[1]}
    case $__mcp_cell in
      "" | vnull) [[ ${__mcp_types[__mcp_i]} != list || ${__mcp_defaults[__mcp_i]} != "["* ]] || return 1 ;;
      v*) ;;
      s* | e*) [[ ${__mcp_types[__mcp_i]} != json ]] || return 1 ;;
      a*) [[ ${__mcp_types[__mcp_i]} == list ]] || return 1 ;;
      *) return 1 ;;
    esac
    __mcp_cells[__mcp_i]=$__mcp_cell
  done
}

# Only names of variables, from the script itself, are evaluated, and no values.
__mcp_assign_cells() {
  local __mcp_i __mcp_cell __mcp_value
  for ((__mcp_i = 0; __mcp_i < ${#__mcp_names[@]}; __mcp_i++)); do
    __mcp_cell=${__mcp_cells[__mcp_i]}
    if [[ -z $__mcp_cell || ($__mcp_cell == vnull && ${__mcp_types[__mcp_i]} != json) ]]; then
      [[ ${__mcp_kinds[__mcp_i]} != required ]] || mcp_fail_invalid_args "${__mcp_names[__mcp_i]} is required"
      __mcp_cell=""
      __mcp_value=${__mcp_defaults[__mcp_i]}
    elif [[ $__mcp_cell == e* ]]; then
      printf -v __mcp_value %b "${__mcp_cell:1}"
    else
      __mcp_value=${__mcp_cell:1}
    fi
    if [[ ${__mcp_types[__mcp_i]} == list ]]; then
      __mcp_assign_items "${__mcp_variables[__mcp_i]}" "$__mcp_cell"
    else
      eval "${__mcp_variables[__mcp_i]}=\$__mcp_value"
    fi
  done
}

# VARIABLE CELL: sets an array to the cell, or without one to the caller's __mcp_value: a single item, or a default with
# commas between its items.
__mcp_assign_items() {
  local __mcp_items=$2 __mcp_separator=$'\t'
  eval "$1=()"
  case $2 in
    a*) __mcp_items=${2:1} ;;
    "")
      [[ -z $__mcp_value ]] || __mcp_items=,s${__mcp_value//,/,s}
      __mcp_separator=,
      ;;
    *) __mcp_items=$'\t'$2 ;;
  esac
  while [[ -n $__mcp_items ]]; do
    __mcp_items=${__mcp_items:1}
    __mcp_value=${__mcp_items%%"$__mcp_separator"*}
    __mcp_items=${__mcp_items:${#__mcp_value}}
    if [[ $__mcp_value == e* ]]; then
      printf -v __mcp_value %b "${__mcp_value:1}"
    else
      __mcp_value=${__mcp_value:1}
    fi
    eval "$1+=(\"\$__mcp_value\")"
  done
}
