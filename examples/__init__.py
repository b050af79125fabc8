"""Examples, from the first tool to what few servers can do; begin with README.md."""
