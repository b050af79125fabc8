"""Commands that hand a project on: as a bundle, with a runtime of its own, or to a registry."""
