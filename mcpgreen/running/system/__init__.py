"""What the operating system is asked for: limits, descendants, processors."""
