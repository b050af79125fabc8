"""Commands that check a project and report what is wrong with it."""
