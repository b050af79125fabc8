#!/usr/bin/env perl
# Gives the content of addresses that begin with @SCHEME@: and gets one as its argument. What is printed is the content.
use strict;
use warnings;

my ($name) = $ARGV[0] =~ m{^[^:]*://(.+)};
if (!defined $name) {
    print STDERR 'an address needs a name: @SCHEME@://NAME', "\n";
    exit 4;    # the address makes no sense; 3 would say that there is nothing under it
}
print "This is $name.\n";
