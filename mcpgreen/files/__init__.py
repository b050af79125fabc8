"""Files that anyone may have written: opened without blocking, read within limits, watched."""
