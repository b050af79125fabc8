#!/usr/bin/env ruby
# Prints suggestions as a JSON array of strings. The request is in the environment.
require 'json'

VALUES = %w[alpha beta gamma].freeze

question = JSON.parse(ENV.fetch('MCP_COMPLETION_ARGS_JSON', '{}'))
puts JSON.generate(VALUES.select { |value| value.start_with?(question.fetch('prefix', '')) })
