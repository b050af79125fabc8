"""The part of the benchmark that goes over HTTP: servers on a port of loopback, a load generator in C, both eras.

The package is not called `http`, because its neighbours are imported by their bare names and would hide Python's own.
"""
