"""What the project on disk offers, read into immutable snapshots. Never imports gevent."""
