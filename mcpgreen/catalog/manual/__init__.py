"""Items that a project registers by hand."""
