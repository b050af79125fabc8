"""The items that a project offers, read from disk into immutable snapshots. Never imports gevent."""
