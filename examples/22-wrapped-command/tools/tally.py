#!/usr/bin/env python3
# Made from ./bin/tally.py --help
# Written by mcpgreen wrap (511072ed82fc); change it as you like. The arguments' types are in tally.meta.json.
# A comment that begins with "Guess" marks something that the help left unclear; if it is wrong, correct both files.
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

command = mcp_tool.CommandLine("./bin/tally.py")
# Guess: a whole number, since the help calls the value N.
command.option("top", "--top={}")
command.flag("upper", "--upper")
# Guess: commands of this kind (argparse) treat -- as the end of the options.
command.end_of_options()
command.operand("words")
command.run()
