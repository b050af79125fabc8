"""The program that Python scripts are forked from, run by the interpreter that they ask for.

Not a part of the server: it imports nothing of ours, and runs on any CPython since 3.8. The server starts it and tells
it when to fork. A *spare* is a fork that waits; it becomes one script, once, and is the server's own child.

Rule: the script must not notice. Whatever cannot be done here exactly as `python FILE` does it is left to a fresh
start: the spare executes the command, with its number and its pipes.
"""
