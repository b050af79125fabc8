"""What a script of a project sees, and what becomes of what it says."""
