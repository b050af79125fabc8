"""Commands that write for you: a project, or a part of one."""
