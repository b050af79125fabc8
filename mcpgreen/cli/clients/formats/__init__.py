"""The formats of clients' files: text in, text out, and every byte that is not ours stays."""
