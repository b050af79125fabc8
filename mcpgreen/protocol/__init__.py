"""The protocol as data and pure functions: no I/O, no gevent, no clock except as an argument."""
