"""Who is at the other end: sessions, the streams on which their frames go, and the requests that wait."""
