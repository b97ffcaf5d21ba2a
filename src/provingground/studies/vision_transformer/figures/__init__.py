"""The figures, one room each, in order."""

from . import (
    a6,
    fig2_1a,
    fig2_1b,
    fig2_2,
    fig2_3,
    fig2_4,
    fig2_5,
    fig2_6,
    gap,
    lemma_a3_1,
    lr_scaling,
)

EXPERIMENTS = (
    *fig2_1a.EXPERIMENTS,
    *gap.EXPERIMENTS,
    *fig2_1b.EXPERIMENTS,
    *fig2_2.EXPERIMENTS,
    *lr_scaling.EXPERIMENTS,
    *fig2_3.EXPERIMENTS,
    *fig2_4.EXPERIMENTS,
    *lemma_a3_1.EXPERIMENTS,
    *fig2_5.EXPERIMENTS,
    *fig2_6.EXPERIMENTS,
    *a6.EXPERIMENTS,
)
