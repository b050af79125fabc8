"""Calls that outlive their request: tasks of both wires."""
