"""Text formats on the wire and in files: JSON, URIs, MIME types."""
