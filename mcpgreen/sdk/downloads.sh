# shellcheck shell=bash
# Part of the shell SDK: downloads through the https provider, which checks what is allowed.
#
# Sourced by tool-sdk.sh when one of its functions is called; do not source it alone.

mcp_download_safe() {
  __mcp_download "$@" || :
  __mcp_print_download
}

mcp_download_safe_or_fail() {
  __mcp_download "$@" || mcp_fail_invalid_args "Download failed ($__MCP_DOWNLOAD_TYPE): $__MCP_DOWNLOAD_MESSAGE"
  printf '%s\n' "$__MCP_DOWNLOAD_PATH"
}

__mcp_print_download() {
  local location=""
  if [[ -z $__MCP_DOWNLOAD_TYPE ]]; then
    __mcp_quote "$__MCP_DOWNLOAD_PATH"
    printf '{"success":true,"bytes":%s,"path":%s}\n' "$__MCP_DOWNLOAD_BYTES" "$__MCP_OUT"
    return 0
  fi
  if [[ -n $__MCP_DOWNLOAD_LOCATION ]]; then
    __mcp_quote "$__MCP_DOWNLOAD_LOCATION"
    location=",\"location\":$__MCP_OUT"
  fi
  __mcp_quote "$__MCP_DOWNLOAD_MESSAGE"
  printf '{"success":false,"error":{"type":"%s","message":%s%s}}\n' "$__MCP_DOWNLOAD_TYPE" "$__MCP_OUT" "$location"
}

__mcp_download_failed() {
  __MCP_DOWNLOAD_TYPE=$1 __MCP_DOWNLOAD_MESSAGE=$2
  return 1
}

# Leaves the outcome in __MCP_DOWNLOAD_*. Status 1 for a failure.
__mcp_download() {
  local url="" out="" allow="" deny="" max_bytes="" timeout="" attempts=1 delay=1
  local agent="mcpgreen/${MCPBASH_FRAMEWORK_VERSION:-0} (tool-sdk)"
  __MCP_DOWNLOAD_TYPE="" __MCP_DOWNLOAD_MESSAGE="" __MCP_DOWNLOAD_LOCATION="" __MCP_DOWNLOAD_BYTES=0
  __MCP_DOWNLOAD_PATH=""
  while (($#)); do
    case $1 in
      --url | --out | --allow | --deny | --max-bytes | --timeout | --user-agent | --retry | --retry-delay)
        (($# > 1)) || __mcp_download_failed invalid_params "$1 needs a value" || return 1
        case $1 in
          --url) url=$2 ;;
          --out) out=$2 ;;
          --allow) allow+=",$2" ;; # an empty one allows no host
          --deny) deny+="${deny:+ }$2" ;;
          --max-bytes) max_bytes=$2 ;;
          --timeout) timeout=$2 ;;
          --user-agent) agent=$2 ;;
          --retry) attempts=$2 ;;
          --retry-delay) delay=$2 ;;
        esac
        shift
        ;;
      *) __mcp_download_failed invalid_params "Unknown argument: $1" || return 1 ;;
    esac
    shift
  done
  __mcp_check_download || return 1

  # MCPGREEN_ variables override MCPBASH_ variables.
  local -a settings=("MCPGREEN_HTTPS_USER_AGENT=$agent")
  [[ -z $allow ]] || settings+=("MCPGREEN_HTTPS_ALLOW_HOSTS=$allow" MCPGREEN_HTTPS_ALLOW_ALL=false)
  [[ -z $deny ]] ||
    settings+=("MCPGREEN_HTTPS_DENY_HOSTS=${MCPGREEN_HTTPS_DENY_HOSTS:-${MCPBASH_HTTPS_DENY_HOSTS:-}} $deny")
  [[ -z $max_bytes ]] || settings+=("MCPGREEN_HTTPS_MAX_BYTES=$max_bytes")
  [[ -z $timeout ]] || settings+=("MCPGREEN_HTTPS_TIMEOUT_SECS=$timeout")
  __mcp_fetch "${settings[@]}"
}

# Reads the variables of __mcp_download.
__mcp_check_download() {
  [[ -n $url ]] || __mcp_download_failed invalid_url "--url is required" || return 1
  [[ -n $out ]] || __mcp_download_failed invalid_params "--out is required" || return 1
  [[ -z $max_bytes || $max_bytes =~ ^[1-9][0-9]{0,14}$ ]] ||
    __mcp_download_failed invalid_params "--max-bytes must be a positive integer" || return 1
  [[ -z $timeout || $timeout =~ ^[1-9][0-9]{0,5}$ ]] ||
    __mcp_download_failed invalid_params "--timeout must be a positive integer" || return 1
  [[ -z $timeout ]] || ((timeout <= 60)) ||
    __mcp_download_failed invalid_params "--timeout cannot exceed 60 seconds" || return 1
  [[ $attempts =~ ^[1-9][0-9]{0,2}$ ]] || __mcp_download_failed invalid_params "--retry must be 1 or more" || return 1
  [[ $delay =~ ^([0-9]+\.?[0-9]*|\.[0-9]+)$ ]] ||
    __mcp_download_failed invalid_params "--retry-delay must be a number of seconds" || return 1
  [[ $url == [Hh][Tt][Tt][Pp][Ss]://?* ]] ||
    __mcp_download_failed invalid_url "Only https:// URLs can be downloaded" || return 1
}

# The file gets its name when it is complete.
__mcp_fetch() {
  local provider=${MCPBASH_HOME:-${__MCP_SDK_DIR%/*}}/providers/https.sh part status attempt reason=""
  [[ -f $provider ]] || __mcp_download_failed provider_unavailable "The https provider is missing" || return 1
  part=$out.$$.$RANDOM.part
  [[ ! -d $out ]] && (set -C && : >"$part") 2>/dev/null ||
    __mcp_download_failed write_error "Cannot write $out" || return 1
  for ((attempt = 1; ; attempt++)); do
    status=0
    reason=$(env "$@" bash "$provider" "$url" 2>&1 >"$part") || status=$?
    case $status in
      0 | 4 | 6 | 7) break ;;
    esac
    if ((attempt >= attempts)) || mcp_is_cancelled; then
      break
    fi
    sleep "$delay"
  done
  if ((status != 0)); then
    rm -f -- "$part"
    __mcp_explain_download "$status" "$reason"
    return 1
  fi
  __MCP_DOWNLOAD_BYTES=$(($(wc -c <"$part")))
  if ! mv -f -- "$part" "$out" 2>/dev/null; then
    rm -f -- "$part"
    __mcp_download_failed write_error "Cannot write $out" || return 1
  fi
  __MCP_DOWNLOAD_PATH=$out
}

__mcp_explain_download() {
  local status=$1 reason=$2 first
  first=${reason%%$'\n'*}
  case $status in
    4) __MCP_DOWNLOAD_TYPE=host_blocked __MCP_DOWNLOAD_MESSAGE=${reason:-The host is not allowed} ;;
    5) __MCP_DOWNLOAD_TYPE=network_error __MCP_DOWNLOAD_MESSAGE=${reason:-The download failed} ;;
    6) __MCP_DOWNLOAD_TYPE=size_exceeded __MCP_DOWNLOAD_MESSAGE=${reason:-The download is too large} ;;
    7)
      [[ $first != redirect:* ]] || __MCP_DOWNLOAD_LOCATION=${first#redirect:}
      __MCP_DOWNLOAD_TYPE=redirect
      __MCP_DOWNLOAD_MESSAGE="The URL has moved${__MCP_DOWNLOAD_LOCATION:+ to $__MCP_DOWNLOAD_LOCATION}"
      ;;
    *) __MCP_DOWNLOAD_TYPE=provider_error __MCP_DOWNLOAD_MESSAGE=${reason:-The https provider exited with status $status} ;;
  esac
}
