#!/usr/bin/env perl
# mcp: {"description": "Translate a Windows path to its path in WSL", "inputSchema": {"properties": {"path": {"type": "string", "description": "Such as C:\\Users\\Ada"}}, "required": ["path"]}}
use strict;
use warnings;
use JSON::PP;

my $path = decode_json($ENV{MCP_TOOL_ARGS_JSON})->{path};
if ($path =~ m{^\\\\}) {
    print STDERR "A share such as $path has no path in WSL; mount it first.\n";
    exit 1;
}
$path =~ tr{\\}{/};
$path =~ s{^([A-Za-z]):(?=/|$)}{"/mnt/" . lc $1}e;
print "$path\n";
