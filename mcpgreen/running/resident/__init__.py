"""Resident processes, which serve many calls: the life of one, and how many there are."""
