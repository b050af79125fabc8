"""JSON Schema: checked, linted, and explained to a model."""
