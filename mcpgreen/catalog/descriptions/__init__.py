"""Descriptions of items: in a file next to the item, or in its first lines."""

HEAD_BYTES = 32_768  # how much of a file is read to find a description in its comments
