"""Python scripts without the start of an interpreter: each runs in a process that was forked ahead of its call."""
