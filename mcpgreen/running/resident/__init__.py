"""Processes that stay between calls: the life of one, and how many there are."""
