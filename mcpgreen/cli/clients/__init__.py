"""The clients that start a server: what an entry looks like, where it goes, and how it is added and removed."""
