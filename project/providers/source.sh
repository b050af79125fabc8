#!/bin/sh
# source://TOOL: the script behind a tool. A provider gets the URI as its argument and the template's variables in its
# environment, prints the content, and reports what went wrong through its exit status.
case "${MCP_RESOURCE_VAR_tool-}" in
  "" | *[!a-z_-]*)
    echo "A tool's name contains only letters, dashes and underscores." >&2
    exit 4
    ;;
esac
for script in tools/"$MCP_RESOURCE_VAR_tool"/*.sh tools/"$MCP_RESOURCE_VAR_tool"/*.py; do
  if [ -f "$script" ]; then
    exec cat "$script"
  fi
done
exit 3
