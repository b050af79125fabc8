#!/usr/bin/env perl
# Prints the content of the resource whose URI is its argument; all of them begin with @SCHEME@:.
use strict;
use warnings;

my ($name) = $ARGV[0] =~ m{^[^:]*://(.+)};
if (!defined $name) {
    print STDERR 'the URI needs a name: @SCHEME@://NAME', "\n";
    exit 4;    # the URI is invalid; 3 would mean that there is no such resource
}
print "This is $name.\n";
