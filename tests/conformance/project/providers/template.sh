#!/bin/sh
# test://template/{id}/data: the same data for every id.
case "${MCP_RESOURCE_VAR_id-}" in
  "" | *[!A-Za-z0-9]*)
    echo "An id has letters and digits only." >&2
    exit 4
    ;;
esac
printf '{"id":"%s","templateTest":true,"data":"Data for ID: %s"}' "$MCP_RESOURCE_VAR_id" "$MCP_RESOURCE_VAR_id"
