"""What a help text says: options, operands, and how their values are given. Pure functions of the text."""
