"""Asking the person or model at the other end while a request is being served."""
