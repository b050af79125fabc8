"""What a user can set, and how it is read."""
