#!/usr/bin/env ruby
# What is printed here is the result. The arguments were checked against tool.meta.json before.
require 'json'

# Arguments are a JSON object: in a variable, or in a file when they are long.
file = ENV.fetch('MCP_TOOL_ARGS_FILE', '')
text = file.empty? ? ENV.fetch('MCP_TOOL_ARGS_JSON', '{}') : File.read(file, encoding: 'UTF-8')
arguments = JSON.parse(text.dup.force_encoding('UTF-8'))
name = arguments.fetch('name', 'World')

puts JSON.generate({ message: "Hello, #{name}!" })
