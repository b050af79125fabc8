#!/usr/bin/env ruby
# Gives the content of addresses that begin with @SCHEME@: and gets one as its argument. What is printed is the content.
name = ARGV[0].sub(%r{\A[^:]*://}, '')
if name.empty?
  warn 'an address needs a name: @SCHEME@://NAME'
  exit 4 # the address makes no sense; 3 would say that there is nothing under it
end
puts "This is #{name}."
