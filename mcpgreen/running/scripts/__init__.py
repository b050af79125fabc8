"""What a project's script sees, and what happens to its output."""
