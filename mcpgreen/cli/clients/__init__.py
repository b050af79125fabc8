"""The clients that start a server: what an entry looks like, where it goes, and how it gets there and away."""
