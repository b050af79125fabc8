"""What the journal needs when somebody wants more than lines of text on stderr."""
