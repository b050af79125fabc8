"""Processes: started, watched, bounded, and none left behind."""
