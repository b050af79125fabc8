# shellcheck shell=bash
# Part of the shell SDK: results with files, images, audio and links.
#
# Sourced by tool-sdk.sh when one of its functions is called; do not source it alone.

__mcp_load errors

mcp_result_text_with_resource() {
  local json=${1-} path="" mime="" uri="" entries=""
  while (($# > 1)); do
    case $2 in
      --path)
        __mcp_add_resource "$path" "$mime" "$uri"
        path=${3-} mime="" uri=""
        [[ -n $path ]] || mcp_log_warn "${MCP_TOOL_NAME:-tool}" "Skipped an embedded resource without a path"
        ;;
      --mime) mime=${3-} ;;
      --uri) uri=${3-} ;;
      *) __mcp_warn "mcp_result_text_with_resource: ignored $2" && shift && continue ;;
    esac
    shift $(($# > 2 ? 2 : 1))
  done
  __mcp_add_resource "$path" "$mime" "$uri"
  if [[ -n ${MCP_TOOL_RESOURCES_FILE:-} ]]; then
    printf '[%s]\n' "$entries" >"$MCP_TOOL_RESOURCES_FILE"
  fi
  mcp_result_success "$json"
}

# Appends to the caller's "entries".
__mcp_add_resource() {
  local path=$1 mime=$2 uri=$3 entry
  [[ -n $path ]] || return 0
  if [[ ! -f $path || ! -r $path ]]; then
    mcp_log_warn "${MCP_TOOL_NAME:-tool}" "Skipped the embedded resource $path: not a readable file"
    return 0
  fi
  [[ $path == /* ]] || path=$PWD/$path # the script may have left the project root
  if [[ -z $mime ]]; then
    mime=$(file -b --mime-type -- "$path" 2>/dev/null) || mime="" # without file(1) the server decides
  fi
  __mcp_quote "$path"
  entry="{\"path\":$__MCP_OUT"
  if [[ -n $mime ]]; then
    __mcp_quote "$mime"
    entry+=",\"mimeType\":$__MCP_OUT"
  fi
  if [[ -n $uri ]]; then
    __mcp_quote "$uri"
    entry+=",\"uri\":$__MCP_OUT"
  fi
  entries+="${entries:+,}$entry}"
}

# Prints an image or audio as a result. $1: "image" or "audio"; then the arguments of the caller.
__mcp_result_media() {
  local kind=$1 caller=mcp_result_$1 file="" data="" mime="" text="" has_data=""
  shift
  while (($#)); do
    case $1 in
      --base64 | --mime | --text)
        (($# > 1)) || __mcp_bad_result "$caller: $1 needs a value" || return 0
        case $1 in
          --base64) data=$2 has_data=yes ;;
          --mime) mime=$2 ;;
          --text) text=$2 ;;
        esac
        shift
        ;;
      -?*) __mcp_bad_result "$caller: unknown option $1" || return 0 ;;
      *) file=$1 ;;
    esac
    shift
  done
  if [[ -n $has_data ]]; then
    [[ $data != *[$' \t\r\n']* ]] || data=$(printf '%s' "$data" | tr -d ' \t\r\n')
    [[ -n $data && $data != *[!A-Za-z0-9+/=]* ]] || __mcp_bad_result "$caller: the data is not base64" || return 0
  elif [[ $file != - ]]; then
    [[ -f $file && -r $file && -s $file ]] || __mcp_bad_result "$caller: cannot read ${file:-a file without a name}" || return 0
    [[ -n $mime ]] || mime=$(__mcp_media_type "$file")
  fi
  [[ $mime == "$kind"/* ]] || __mcp_bad_result "$caller: --mime must be a type such as $kind/…, found ${mime:-none}" || return 0
  __mcp_print_media "$kind" "$mime" "$text" "$file" "$data"
}

# The data goes through pipes, because it may be too long for the shell.
__mcp_print_media() {
  local kind=$1 mime=$2 text=$3 file=$4 data=$5
  printf '{"content":['
  if [[ -n $text ]]; then
    __mcp_quote "$text"
    printf '{"type":"text","text":%s},' "$__MCP_OUT"
  fi
  printf '{"type":"%s","data":"' "$kind"
  if [[ -n $data ]]; then
    printf '%s' "$data"
  elif [[ $file == - ]]; then
    base64 | tr -d '\r\n'
  else
    base64 <"$file" | tr -d '\r\n'
  fi
  __mcp_quote "$mime"
  printf '","mimeType":%s}],"isError":false}\n' "$__MCP_OUT"
}

# The type by the name of the file, else by file(1).
__mcp_media_type() {
  case $1 in
    *.[Pp][Nn][Gg]) printf image/png ;;
    *.[Jj][Pp][Gg] | *.[Jj][Pp][Ee][Gg]) printf image/jpeg ;;
    *.[Gg][Ii][Ff]) printf image/gif ;;
    *.[Ww][Ee][Bb][Pp]) printf image/webp ;;
    *.[Ss][Vv][Gg]) printf image/svg+xml ;;
    *.[Ww][Aa][Vv]) printf audio/wav ;;
    *.[Mm][Pp]3) printf audio/mpeg ;;
    *.[Oo][Gg][Gg]) printf audio/ogg ;;
    *.[Ff][Ll][Aa][Cc]) printf audio/flac ;;
    *.[Mm]4[Aa]) printf audio/mp4 ;;
    *) file -b --mime-type -- "$1" 2>/dev/null || : ;;
  esac
}

# Prints a failed result for the model. The script goes on. Status 1, so that the caller returns.
__mcp_bad_result() {
  __mcp_warn "$1"
  __mcp_print_internal_error "$1"
  return 1
}

mcp_result_image() {
  __mcp_result_media image "$@"
}

mcp_result_audio() {
  __mcp_result_media audio "$@"
}

mcp_result_resource_link() {
  local uri=${1:-} name=${2:-} text="" link
  [[ $uri =~ ^[A-Za-z][A-Za-z0-9+.-]*:. ]] ||
    __mcp_bad_result "mcp_result_resource_link: the first argument must be a URI, found ${uri:-nothing}" || return 0
  [[ -n $name && $name != --* ]] || __mcp_bad_result "mcp_result_resource_link: the second argument must be a name" || return 0
  __mcp_quote "$uri"
  link="{\"type\":\"resource_link\",\"uri\":$__MCP_OUT"
  __mcp_quote "$name"
  link+=",\"name\":$__MCP_OUT"
  shift 2
  while (($#)); do
    (($# > 1)) || __mcp_bad_result "mcp_result_resource_link: $1 needs a value" || return 0
    __mcp_quote "$2"
    case $1 in
      --title) link+=",\"title\":$__MCP_OUT" ;;
      --description) link+=",\"description\":$__MCP_OUT" ;;
      --mime) link+=",\"mimeType\":$__MCP_OUT" ;;
      --size)
        [[ $2 =~ ^(0|[1-9][0-9]{0,14})$ ]] || __mcp_bad_result "mcp_result_resource_link: --size must be a number of bytes" || return 0
        link+=",\"size\":$2"
        ;;
      --text) text="{\"type\":\"text\",\"text\":$__MCP_OUT}," ;;
      *) __mcp_bad_result "mcp_result_resource_link: unknown option $1" || return 0 ;;
    esac
    shift 2
  done
  printf '{"content":[%s%s}],"isError":false}\n' "$text" "$link"
}
