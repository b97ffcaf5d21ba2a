"""The figures, one room each, in order."""

from . import fig2a, fig2b, fig2c, fig3

EXPERIMENTS = (
    *fig2a.EXPERIMENTS,
    *fig2b.EXPERIMENTS,
    *fig2c.EXPERIMENTS,
    *fig3.EXPERIMENTS,
)
