"""Deeper networks, as functions of one sequence."""
