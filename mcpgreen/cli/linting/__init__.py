"""What of a project breaks clients that people use, or costs models more than it should."""
