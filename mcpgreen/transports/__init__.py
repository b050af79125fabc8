"""How bytes reach the engine."""
