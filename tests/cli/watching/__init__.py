"""The commands that show what happens in running servers."""
