#!/usr/bin/env ruby
# This comment describes the tool to the model:
# mcp:
#   title: "@TITLE@"
#   description: Greet somebody by name.
#   inputSchema:
#     properties:
#       name: {type: string, default: World, description: Who to greet}
#   annotations: {readOnlyHint: true, openWorldHint: false}
require 'json'

# Arguments are a JSON object: in a variable, or in a file when they are long.
file = ENV.fetch('MCP_TOOL_ARGS_FILE', '')
text = file.empty? ? ENV.fetch('MCP_TOOL_ARGS_JSON', '{}') : File.read(file, encoding: 'UTF-8')
arguments = JSON.parse(text.dup.force_encoding('UTF-8'))
name = arguments.fetch('name', 'World')

puts "Hello, #{name}!" # what is printed is the result
