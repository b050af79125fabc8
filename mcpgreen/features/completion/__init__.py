"""`completion/complete`."""
