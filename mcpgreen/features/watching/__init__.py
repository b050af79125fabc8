"""Subscriptions, and how a change of what is subscribed to is noticed."""
