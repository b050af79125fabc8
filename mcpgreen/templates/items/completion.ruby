#!/usr/bin/env ruby
# Prints what could follow, as a JSON array of texts. The question is in the environment.
require 'json'

VALUES = %w[alpha beta gamma].freeze

question = JSON.parse(ENV.fetch('MCP_COMPLETION_ARGS_JSON', '{}'))
puts JSON.generate(VALUES.select { |value| value.start_with?(question.fetch('prefix', '')) })
