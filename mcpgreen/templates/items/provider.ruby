#!/usr/bin/env ruby
# Prints the content of the resource whose URI is its argument; all of them begin with @SCHEME@:.
name = ARGV[0].sub(%r{\A[^:]*://}, '')
if name.empty?
  warn 'the URI needs a name: @SCHEME@://NAME'
  exit 4 # the URI is invalid; 3 would mean that there is no such resource
end
puts "This is #{name}."
