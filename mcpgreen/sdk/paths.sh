# shellcheck shell=bash
# Part of the shell SDK: roots and paths.
#
# Sourced by tool-sdk.sh when one of its functions is called; do not source it alone.

mcp_roots_list() {
  if [[ -n ${MCP_ROOTS_PATHS:-} ]]; then
    printf '%s\n' "$MCP_ROOTS_PATHS"
  fi
}

mcp_roots_count() {
  printf '%s\n' "${MCP_ROOTS_COUNT:-0}"
}

# The absolute path without links, dots and double slashes; it need not exist. Resolved part by part, like in the kernel:
# "link/.." is the parent of the target of the link.
__mcp_physical_path() {
  __mcp_walk_path "$1" follow
}

# The same without following links.
__mcp_logical_path() {
  __mcp_walk_path "$1"
}

# PATH [follow]: with "follow", links are resolved.
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
      # The root / does not contain the kernel's files.
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
