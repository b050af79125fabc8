"""Descriptions of items: in a file beside the item, or in its first lines."""
