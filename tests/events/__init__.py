"""The stream of events, and viewers of it."""
