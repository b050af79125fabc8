"""The folder that is served: where it is, its `serverInfo`, its roots."""
