"""Commands that share a project: as a bundle, with its own runtime, or through a registry."""
