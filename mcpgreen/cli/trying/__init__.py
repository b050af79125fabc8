"""Commands that try what a project offers, as a client would, for people at a terminal and for scripts."""
