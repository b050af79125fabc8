# shellcheck shell=bash
# Part of the shell SDK: run programs with progress reports or retries.
#
# Sourced by tool-sdk.sh when one of its functions is called; do not source it alone.

# Runs a command and turns lines of its stderr, or of a file, into progress.
# The variables have long names, because a command that is a function of the script sees the variables of its callers.
mcp_run_with_progress() {
  local __MCP_RUN_PATTERN="" __MCP_RUN_EXTRACT=json __MCP_RUN_INTERVAL=0.2 __MCP_RUN_TOTAL="" __MCP_RUN_STDOUT=""
  local __MCP_RUN_FOLLOWED="" __MCP_RUN_STDERR="" __MCP_RUN_DRY="" __MCP_RUN_QUIET="" __MCP_RUN_STATUS=0
  while (($#)); do
    case $1 in
      --dry-run) __MCP_RUN_DRY=yes ;;
      --quiet) __MCP_RUN_QUIET=yes ;;
      --pattern | --extract | --interval | --stdout | --progress-file | --total | --stderr-file)
        (($# > 1)) || __mcp_misused "$1 needs a value" || return 1
        case $1 in
          --pattern) __MCP_RUN_PATTERN=$2 ;;
          --extract) __MCP_RUN_EXTRACT=$2 ;;
          --interval) __MCP_RUN_INTERVAL=$2 ;;
          --stdout) __MCP_RUN_STDOUT=$2 ;;
          --progress-file) __MCP_RUN_FOLLOWED=$2 ;;
          --total) __MCP_RUN_TOTAL=$2 ;;
          --stderr-file) __MCP_RUN_STDERR=$2 ;;
        esac
        shift
        ;;
      --) shift && break ;;
      -*) __mcp_misused "unknown option $1" || return 1 ;;
      *) break ;;
    esac
    shift
  done
  (($#)) || __mcp_misused "a command is required" || return 1
  __mcp_check_run || return 1
  ! mcp_is_cancelled || return 130

  # Not "|| status=$?", which would switch off errexit in a command that is a function.
  local __MCP_RUN_ERREXIT=${-//[!e]/}
  set +e
  if [[ -n $__MCP_RUN_STDOUT ]]; then
    __mcp_run "$@" 36>"$__MCP_RUN_STDOUT" | __mcp_report
    __MCP_RUN_STATUS=${PIPESTATUS[0]}
  else
    { __mcp_run "$@" | __mcp_report; } 36>&1
    __MCP_RUN_STATUS=${PIPESTATUS[0]}
  fi
  [[ -z $__MCP_RUN_ERREXIT ]] || set -e
  return "$__MCP_RUN_STATUS"
}

__mcp_misused() {
  __mcp_warn "mcp_run_with_progress: $1"
  return 1
}

__mcp_check_run() {
  local status=0
  [[ -n $__MCP_RUN_PATTERN ]] || __mcp_misused "--pattern is required" || return 1
  # shellcheck disable=SC2319 # status 2 means a wrong pattern
  { [[ "" =~ $__MCP_RUN_PATTERN ]] || status=$?; } 2>/dev/null
  ((status < 2)) || __mcp_misused "--pattern is not a regular expression: $__MCP_RUN_PATTERN" || return 1
  case $__MCP_RUN_EXTRACT in
    json) __mcp_has_json || __mcp_misused "--extract json needs a JSON tool" || return 1 ;;
    match1 | ratio) ;;
    *) __mcp_misused "unknown extract mode $__MCP_RUN_EXTRACT" || return 1 ;;
  esac
  [[ -z $__MCP_RUN_TOTAL || $__MCP_RUN_TOTAL =~ ^0*[1-9][0-9]{0,12}$ ]] ||
    __mcp_misused "--total must be positive integer" || return 1
  [[ $__MCP_RUN_INTERVAL =~ ^([0-9]+\.?[0-9]*|\.[0-9]+)$ && $__MCP_RUN_INTERVAL == *[1-9]* ]] ||
    __mcp_misused "--interval must be a positive number" || return 1
  # "read -t 0" only checks for input, so the interval must be at least a microsecond.
  [[ ! $__MCP_RUN_INTERVAL =~ ^0*\.000 ]] || __MCP_RUN_INTERVAL=0.001
  ((BASH_VERSINFO[0] > 3)) || __MCP_RUN_INTERVAL=$((10#0${__MCP_RUN_INTERVAL%%.*} + 1)) # bash 3.2 has whole seconds only
  [[ -z $__MCP_RUN_STDOUT ]] || __mcp_empty "$__MCP_RUN_STDOUT" ||
    __mcp_misused "cannot write $__MCP_RUN_STDOUT" || return 1
  [[ -z $__MCP_RUN_FOLLOWED ]] || __mcp_empty "$__MCP_RUN_FOLLOWED" ||
    __mcp_misused "cannot write $__MCP_RUN_FOLLOWED" || return 1
  if [[ -n $__MCP_RUN_STDERR ]] && ! __mcp_empty "$__MCP_RUN_STDERR"; then
    __mcp_warn "mcp_run_with_progress: cannot write $__MCP_RUN_STDERR"
    __MCP_RUN_STDERR=""
  fi
}

__mcp_empty() {
  { : >"$1"; } 2>/dev/null
}

# Three processes in addition to the command: one waits for it, one watches the clock, one reads its stderr. They use only pipes,
# so that no file is left behind. 34: matching lines, 35: the stderr of the command, 36: its stdout.
__mcp_run() {
  # A script that handles the signal of a cancellation needs the status of the command.
  trap '' TERM
  # The last line of the pipe. A background job of the command may keep the pipe open for hours. Ticks come before it.
  local __MCP_RUN_END=$'\001'"end $$ $RANDOM$RANDOM " __MCP_RUN_TICK=$'\001'"tick $$ $RANDOM$RANDOM"
  {
    {
      __mcp_start "$@" 2>/dev/null | __mcp_watch 36>&-
    } 35>&1 | __mcp_sift 36>&-
  } 34>&1
  return "${PIPESTATUS[1]}"
}

# Prints the id of the command's process group, and later its status.
__mcp_start() {
  [[ ! -t 0 ]] || exec </dev/null # reading the terminal would stop a command in another process group
  set -m
  (
    set +m
    trap - TERM # children inherit ignored signals, and such a command could only be killed
    [[ -z $__MCP_RUN_ERREXIT ]] || set -e
    "$@"
  ) <&0 >&36 2>&35 34>&- 35>&- 36>&- &
  set +m
  printf '%s\n' "$!"
  wait "$!"
  printf '%s\n' "$?"
}

# Waits for the end of the command. Stops it if the call is cancelled or the script has ended.
__mcp_watch() {
  trap '' PIPE
  local group="" status="" part="" timed_out has_ended="" rest=""
  [[ -z $__MCP_RUN_FOLLOWED ]] || exec 33<"$__MCP_RUN_FOLLOWED"
  IFS= read -r group
  until IFS= read -r -t "$__MCP_RUN_INTERVAL" part; do
    timed_out=$?
    # The timeout may come in the middle of the line, or just after it; then only the end of the pipe follows.
    status+=$part part=""
    __mcp_follow
    printf '%s\n' "$__MCP_RUN_TICK" >&35
    # Bash 3.2 cannot distinguish a timeout from the end of the pipe.
    ((timed_out > 128 || BASH_VERSINFO[0] < 4)) || has_ended=yes
    [[ -z $has_ended || -z $status ]] || break
    if [[ -n $has_ended ]] || mcp_is_cancelled || ! kill -0 "$$" 2>/dev/null; then
      __mcp_stop "$group"
      IFS= read -r part
      break
    fi
  done
  status+=$part
  __mcp_follow
  [[ -z $rest ]] || __mcp_hear "$rest"
  ! mcp_is_cancelled || status=130
  printf '%s%s\n' "$__MCP_RUN_END" "${status:-1}" >&35
}

__mcp_stop() {
  local group=$1 tries
  kill -TERM -- "-$group" 2>/dev/null
  for ((tries = 0; tries < 20; tries++)); do
    kill -0 -- "-$group" 2>/dev/null || return 0
    sleep 0.05
  done
  kill -KILL -- "-$group" 2>/dev/null
}

# Reads new lines of the progress file. An unfinished line is kept in the caller's "rest".
__mcp_follow() {
  local line=""
  [[ -n $__MCP_RUN_FOLLOWED ]] || return 0
  while IFS= read -r line <&33; do
    __mcp_cut __mcp_hear "$rest$line"
    __mcp_hear "$__MCP_OUT"
    rest=""
  done
  __mcp_cut __mcp_hear "$rest$line"
  rest=$__MCP_OUT
  [[ $rest != *$'\r' ]] || { __mcp_hear "$rest"; rest=""; }
}

# Passes each piece of $2 that ends with a carriage return, like a redrawn progress bar, to $1. Leaves the rest in
# __MCP_OUT; it may end with a carriage return that belongs to the line break.
__mcp_cut() {
  local rest=$2 piece
  while [[ $rest == *$'\r'?* ]]; do
    piece=${rest%%$'\r'*}
    rest=${rest#*$'\r'}
    [[ -z $piece ]] || "$1" "$piece"
  done
  __MCP_OUT=$rest
}

# Reads the stderr of the command up to the end mark. Returns the status of the command. Without timeouts
# of "read": bash 3.2 drops the text before one. A tick says instead that no more of a line has come for a while.
__mcp_sift() {
  trap '' PIPE
  local line="" part="" status="" code tick
  exec 33>>"${__MCP_RUN_STDERR:-/dev/null}"
  while [[ -z $status ]]; do
    code=0 tick=""
    IFS= read -r part || code=$?
    [[ $part != *"$__MCP_RUN_TICK" ]] || tick=yes part=${part%"$__MCP_RUN_TICK"}
    __mcp_cut __mcp_sort "$line$part"
    line=$__MCP_OUT part=""
    if [[ -n $tick ]]; then
      [[ $line != *$'\r' ]] || { __mcp_sort "$line" && line=""; }
      continue
    fi
    [[ $code == 0 || -n $line ]] || break
    if [[ $line == *"$__MCP_RUN_END"* ]]; then
      status=${line##*"$__MCP_RUN_END"}
      line=${line%%"$__MCP_RUN_END"*}
      [[ -n $line ]] || break
    fi
    __mcp_sort "$line"
    line=""
  done
  return "${status:-1}"
}

# Handles one line of stderr: reports progress, or keeps the line.
__mcp_sort() {
  local line=${1%$'\r'}
  [[ -n $__MCP_RUN_FOLLOWED ]] || ! __mcp_hear "$line" || return 0
  printf '%s\n' "$line" >&33
  [[ -z $__MCP_RUN_FOLLOWED || -n $__MCP_RUN_QUIET ]] || mcp_debug "$line"
}

# Prints the progress of a matching line as "PERCENT MESSAGE", with "-" for no number. Status 1 for other lines. Long
# messages are cut, because the server would refuse them.
__mcp_hear() {
  local line=${1%$'\r'}
  if [[ ! $line =~ $__MCP_RUN_PATTERN ]]; then
    [[ -n $__MCP_RUN_QUIET ]] || mcp_debug "$line"
    return 1
  fi
  case $__MCP_RUN_EXTRACT in
    json) __MCP_OUT=$line ;;
    match1) __mcp_percent "${BASH_REMATCH[1]:-}" "${__MCP_RUN_TOTAL:-100}" ;;
    ratio) __mcp_percent "${BASH_REMATCH[1]:-}" "${BASH_REMATCH[2]:-}" ;;
  esac
  [[ $__MCP_RUN_EXTRACT == json ]] || __MCP_OUT+=" ${line:0:1000}"
  { printf '%s\n' "$__MCP_OUT" >&34; } 2>/dev/null || :
}

__mcp_percent() {
  local part whole
  __MCP_OUT=-
  __mcp_thousandths "$1" && part=$__MCP_THOUSANDTHS || return 0
  __mcp_thousandths "$2" && whole=$__MCP_THOUSANDTHS || return 0
  ((whole == 0)) || __MCP_OUT=$((part * 100 / whole))
}

# Bash has no fractions. 13 digits before the point leave room for a multiplication by 100.
__mcp_thousandths() {
  [[ $1 =~ ^0*([0-9]{0,13})(\.([0-9]*))?$ && $1 == *[0-9]* ]] || return 1
  local fraction=${BASH_REMATCH[3]:-}000
  __MCP_THOUSANDTHS=$((10#0${BASH_REMATCH[1]}${fraction:0:3}))
}

# shellcheck disable=SC2016 # the dollars are jq's
__MCP_EVENT_PROGRAM='
  (try fromjson catch null)
  | if type == "object" then . else {} end
  | (try (.progress | tonumber) catch null) as $progress
  | (if $progress == null then "-" else [[$progress, 0] | max, 100] | min | floor end | tostring)
    + " " + (.message // "Working..." | tostring | split("\n") | join(" "))'

__mcp_report() {
  if [[ $__MCP_RUN_EXTRACT != json ]]; then
    __mcp_report_each
    return
  fi
  # One process for all lines. jq buffers its output without the option; gojq does not have or need it.
  local unbuffered=--unbuffered
  "$MCPBASH_JSON_TOOL_BIN" --unbuffered -n empty </dev/null >/dev/null 2>&1 || unbuffered=""
  "$MCPBASH_JSON_TOOL_BIN" ${unbuffered:+"$unbuffered"} -Rr "$__MCP_EVENT_PROGRAM" 2>/dev/null | __mcp_report_each
}

__mcp_report_each() {
  local line percent message last=0
  while IFS= read -r line; do
    percent=${line%% *} message=${line#* }
    if [[ $percent == - ]]; then
      # The server does not send it to the client, but extends the timeout.
      [[ -n $__MCP_RUN_DRY ]] || mcp_progress "$last" "$message"
      continue
    fi
    last=$((percent > 100 ? 100 : percent))
    if [[ -n $__MCP_RUN_DRY ]]; then
      __mcp_quote "$message"
      printf '{"progress":%s,"message":%s}\n' "$last" "$__MCP_OUT" >&2
    else
      mcp_progress "$last" "$message"
    fi
  done
}

# The statuses 0, 1 and 2 are final; after others it is worth another try.
mcp_with_retry() {
  local attempts=${1:-} base=${2:-} attempt status=0 delay
  if (($# < 3)) || [[ ! $attempts =~ ^0*[1-9][0-9]{0,5}$ ]] || ! __mcp_thousandths "$base"; then
    __mcp_warn "mcp_with_retry: expected a number of attempts, a delay in seconds, -- and a command"
    return 1
  fi
  delay=$__MCP_THOUSANDTHS
  shift 2
  [[ $1 != -- ]] || shift
  (($#)) || {
    __mcp_warn "mcp_with_retry: a command is required"
    return 1
  }
  for ((attempt = 1; ; attempt++)); do
    status=0
    "$@" || status=$?
    if ((status < 3 || attempt >= 10#$attempts)) || mcp_is_cancelled; then
      return "$status"
    fi
    mcp_debug "attempt $attempt of $attempts exited with status $status"
    __mcp_sleep_thousandths $((delay + delay * (RANDOM % 501) / 1000))
    delay=$((delay * 2))
  done
}

__mcp_sleep_thousandths() {
  local fraction=00$(($1 % 1000))
  sleep "$(($1 / 1000)).${fraction:${#fraction}-3}"
}
