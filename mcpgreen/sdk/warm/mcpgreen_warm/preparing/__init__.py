"""What is done for a script before it is called: read it, and load what it uses."""
