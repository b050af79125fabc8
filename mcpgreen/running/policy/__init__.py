"""What may be executed."""
