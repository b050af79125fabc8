"""Subscriptions, and how changes to subscribed resources are noticed."""
