"""Commands that look at a project and say what is wrong with it."""
