"""The figures, one room each, in order."""

from . import risk

EXPERIMENTS = risk.EXPERIMENTS
