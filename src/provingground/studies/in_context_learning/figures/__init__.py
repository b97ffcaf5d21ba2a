"""The figures, one room each, in order; the first is the headline."""

from . import fig6_2, fig6_3, fig6_4, fig6_5, fige_1, fige_2, graphs, readings, scaling

EXPERIMENTS = (
    *fig6_3.EXPERIMENTS,
    *fig6_2.EXPERIMENTS,
    *fig6_4.EXPERIMENTS,
    *fig6_5.EXPERIMENTS,
    *fige_1.EXPERIMENTS,
    *fige_2.EXPERIMENTS,
    *graphs.EXPERIMENTS,
    *scaling.EXPERIMENTS,
    *readings.EXPERIMENTS,
)
