"""Tools that are Python functions: what signature and docstring say, read from the source and never run."""
