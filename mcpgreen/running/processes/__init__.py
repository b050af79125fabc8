"""Start, watch and limit processes, and leave none behind."""
