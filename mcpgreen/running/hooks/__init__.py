"""Shell hooks of a project."""
