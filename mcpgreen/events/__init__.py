"""The one stream of what happens in a server, and how viewers get it. Knows nothing of calls but their numbers."""
