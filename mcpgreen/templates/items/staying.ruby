#!/usr/bin/env ruby
# mcp:
#   title: "@TITLE@"
#   description: Greet somebody by name, and count the greetings.
#   stays: @STAYS@
#   inputSchema:
#     properties:
#       name: {type: string, default: World, description: Who to greet}
require 'json'

calls = IO.for_fd(ENV.fetch('MCP_CALLS_FD').to_i, 'r:UTF-8')
answers = IO.for_fd(ENV.fetch('MCP_ANSWERS_FD').to_i, 'w:UTF-8')
answers.sync = true

greetings = 0 # the process is resident: this is kept between calls
answers.puts({ ready: true }.to_json)
calls.each_line do |line|
  message = JSON.parse(line)
  arguments = message['arguments'] or next # a cancellation
  greetings += 1
  text = "Hello, #{arguments.fetch('name', 'World')}! Greeting #{greetings}."
  answers.puts({ result: text, call: message['call'] }.to_json)
end
