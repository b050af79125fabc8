"""What a help text says: options, operands, and how their values are written. Pure functions of the text."""
