"""Read the content of resources: one module for each kind of URI, which can also run as a program."""
