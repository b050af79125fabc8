"""What stands in the files of a project, and where: descriptions and scripts, read without running anything."""
