#!/usr/bin/env perl
# mcp:
#   title: "@TITLE@"
#   description: Greet somebody by name, and count the greetings.
#   stays: @STAYS@
#   inputSchema:
#     properties:
#       name: {type: string, default: World, description: Who to greet}
use strict;
use warnings;
use JSON::PP;

open my $calls, '<&=', $ENV{MCP_CALLS_FD} or die "calls: $!\n";
open my $answers, '>&=', $ENV{MCP_ANSWERS_FD} or die "answers: $!\n";

sub answer {
    syswrite $answers, JSON::PP->new->ascii->encode({@_}) . "\n";
}

my $greetings = 0;    # the process is resident: this is kept between calls
answer(ready => JSON::PP::true);
while (my $line = <$calls>) {
    my $message = decode_json($line);
    my $arguments = $message->{arguments} or next;    # a cancellation
    $greetings++;
    my $name = $arguments->{name} // 'World';
    answer(result => "Hello, $name! Greeting $greetings.", call => $message->{call});
}
