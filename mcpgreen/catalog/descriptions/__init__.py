"""What stands beside an item, or in its first lines."""
