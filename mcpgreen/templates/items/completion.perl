#!/usr/bin/env perl
# Prints suggestions as a JSON array of strings. The request is in the environment.
use strict;
use warnings;
use JSON::PP;

my @values = ('alpha', 'beta', 'gamma');

my $question = decode_json($ENV{MCP_COMPLETION_ARGS_JSON} || '{}');
my $typed = $question->{prefix} // '';
print encode_json([grep { index($_, $typed) == 0 } @values]), "\n";
