"""The figures, one room each, in order."""

from . import (
    boundary,
    collapse,
    condition4_1,
    fig1,
    fig2,
    fig3,
    fig4,
    frozen,
    lemma5_2,
    numerics,
    stages,
    times,
)

EXPERIMENTS = (
    *fig1.EXPERIMENTS,
    *boundary.EXPERIMENTS,
    *collapse.EXPERIMENTS,
    *condition4_1.EXPERIMENTS,
    *frozen.EXPERIMENTS,
    *fig2.EXPERIMENTS,
    *fig3.EXPERIMENTS,
    *fig4.EXPERIMENTS,
    *lemma5_2.EXPERIMENTS,
    *stages.EXPERIMENTS,
    *times.EXPERIMENTS,
    *numerics.EXPERIMENTS,
)
