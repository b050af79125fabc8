"""Where the content of resources comes from: one module per kind of URI, each a small program of its own."""
