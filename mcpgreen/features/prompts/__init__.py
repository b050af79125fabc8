"""`prompts/get`."""
