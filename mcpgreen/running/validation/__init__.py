"""Values checked by their schemas, where a check can be stopped."""
