"""Where frames go over HTTP: the answer to a POST, the stream of a session, events and their replay."""
