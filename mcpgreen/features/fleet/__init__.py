"""Calls that run on other machines: what the server that gets them does, and what the worker does."""
