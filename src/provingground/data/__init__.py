"""Samplers and data that several studies share."""
