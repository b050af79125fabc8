#!/bin/sh
# source://TOOL: the script behind a tool. A provider gets the address as its argument and the variables of the
# template in its environment, prints the content, and says by its exit status what went wrong.
case "${MCP_RESOURCE_VAR_tool-}" in
  "" | *[!a-z_-]*)
    echo "The name of a tool has letters, dashes and underscores only." >&2
    exit 4
    ;;
esac
for script in tools/"$MCP_RESOURCE_VAR_tool"/*.sh tools/"$MCP_RESOURCE_VAR_tool"/*.py; do
  if [ -f "$script" ]; then
    exec cat "$script"
  fi
done
exit 3
