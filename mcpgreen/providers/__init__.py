"""Where the content of resources comes from."""
