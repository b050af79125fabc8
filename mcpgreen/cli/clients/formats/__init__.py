"""The formats of clients' files: edit text without changing any byte outside our entry."""
