"""Samplers that several studies share."""
