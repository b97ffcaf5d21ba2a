"""Closed forms that several studies share."""
