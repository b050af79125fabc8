#!/usr/bin/env perl
# This comment describes the tool to the model:
# mcp:
#   title: "@TITLE@"
#   description: Greet somebody by name.
#   inputSchema:
#     properties:
#       name: {type: string, default: World, description: Who to greet}
#   annotations: {readOnlyHint: true, openWorldHint: false}
use strict;
use warnings;
use JSON::PP;

# Arguments are a JSON object: in a variable, or in a file when they are long.
my $text = $ENV{MCP_TOOL_ARGS_JSON} || '{}';
if (my $file = $ENV{MCP_TOOL_ARGS_FILE}) {
    open my $handle, '<:raw', $file or die "$file: $!\n";
    local $/;
    $text = <$handle>;
}
my $arguments = decode_json($text);
my $name = $arguments->{name} // 'World';

binmode STDOUT, ':encoding(UTF-8)';
print "Hello, $name!\n";    # what is printed is the result
