"""Lists as clients get them: pages, and those of an earlier start."""
