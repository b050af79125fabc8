"""Several servers behind a real proxy, as examples/proxy has it."""
