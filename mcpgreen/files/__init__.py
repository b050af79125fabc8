"""Files that anybody may have put there: opened without waiting, read within bounds, watched."""
