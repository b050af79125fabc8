"""Descriptions of items: in a file next to the item, or in its first lines."""
