"""Tools that are Python functions: their source is read for signature and docstring, and never run."""
