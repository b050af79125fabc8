"""Tools that are Python functions: the signature and docstring are read from the source, which is never run."""
