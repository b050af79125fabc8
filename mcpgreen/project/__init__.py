"""The folder that is served: where it is, how it introduces itself, which roots it names."""
