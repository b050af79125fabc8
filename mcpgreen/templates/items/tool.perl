#!/usr/bin/env perl
# What is printed here is the result. The arguments were checked against tool.meta.json before.
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

print encode_json({ message => "Hello, $name!" }), "\n";
