"""What `examples/run`, `examples/send` and `examples/check-env` share. Needs Python 3.9 and nothing else."""
