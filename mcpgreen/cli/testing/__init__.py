"""Tests of a project's tools: their files, the calls through a real server, and what is expected of the answers."""
