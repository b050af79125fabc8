# shellcheck shell=sh
# The guardian: waits on descriptor 3 until the server has exited, and cleans up if it was killed.
#
#   sh -c "$(cat guardian.sh)" NAME PATTERN SESSION
#
# PATTERN matches the tags of the server's calls, SESSION is the server's own. See processes/guardian.py.
#
# pgrep shows no environment (SC2009), and fields are split on purpose (SC2086).
# shellcheck disable=SC2009,SC2086

remove() {
  if rm -rf -- "$@" 2>/dev/null; then return; fi
  for tree in "$@"; do
    if [ ! -L "$tree" ]; then chmod -R u+rwx -- "$tree" 2>/dev/null || :; fi # a directory in it is shut
  done
  rm -rf -- "$@" 2>/dev/null || :
}
trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 ALRM
state='' socket=''
while IFS= read -r line <&3; do
  case $line in
    goodbye) exit 0 ;;
    'state '*) state=${line#state } ;;
    'socket '*) socket=${line#socket } ;;
    clear) remove "${state:?}"/removed.* ;;
  esac
done
tagged() {
  if [ -r /proc/self/limits ]; then
    {
      grep -lsE "^Max realtime timeout +$1 " /proc/[0-9]*/limits
      grep -lsE "MCPGREEN_CALL=$1" /proc/[0-9]*/environ
    } | tr -dc '0-9\n' | sort -u
  else
    ps axeww -o pid= -o command= | grep -E "MCPGREEN_CALL=$1" | grep -v 'grep -E' | awk '{print $1}'
  fi
}
look_at() {
  state_of='' group=0 session=0 threads=0
  stat=''
  # All of it: the name of a process may have a newline, and what then looks like the rest.
  { while IFS= read -r line || [ -n "$line" ]; do stat="$stat $line"; done <"/proc/$1/stat"; } 2>/dev/null
  set -- ${stat##*) }
  state_of=$1 group=$3 session=$4 threads=${18}
}
quiet=0
while [ "$quiet" -lt 5 ]; do
  quiet=$((quiet + 1))
  for pid in $(tagged "$1"); do
    look_at "$pid"
    # A process whose first thread has ended looks dead, and is not.
    if [ "$state_of" = Z ] && [ "${threads:-0}" -le 1 ]; then continue; fi
    # Another user can read a tag, and carry it, to keep us busy.
    if ! kill -s 0 "$pid" 2>/dev/null; then continue; fi
    quiet=0
    # Its group at once: a process that keeps forking and ending is gone before its number could be killed. Not if it
    # is still in the session of the server, as the server itself is, and a script that is just being started: that is
    # the group of the program that started the server.
    if [ "${group:-0}" -gt 1 ] && [ "$session" != "$2" ]; then kill -s KILL -- "-$group" 2>/dev/null || :; fi
    kill -s KILL "$pid" 2>/dev/null || :
  done
  sleep 0.05 2>/dev/null || sleep 1
done
if [ -n "$state" ]; then remove "$state"; fi
if [ -n "$socket" ]; then
  remove "$socket"
  rmdir -- "${socket%/*}" 2>/dev/null || : # unless other servers have theirs there
fi
