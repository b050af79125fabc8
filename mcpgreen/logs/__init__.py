"""Logs other than lines of text on stderr: JSON, files, and what they must not show."""
