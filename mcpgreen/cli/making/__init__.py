"""Commands that create a project, or parts of one."""
