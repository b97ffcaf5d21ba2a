"""The figures, one room each, in order."""

from . import (
    algorithm2,
    cap,
    ctrl_match,
    fig5_1,
    fig5_2,
    fig5_3,
    fig5_4,
    figd_1,
    lemma_d1_2,
    lemma_d1_3,
    lemma_d2_14,
    optimiser,
    takeaways,
)

EXPERIMENTS = (
    *ctrl_match.EXPERIMENTS,
    *fig5_1.EXPERIMENTS,
    *fig5_2.EXPERIMENTS,
    *fig5_3.EXPERIMENTS,
    *fig5_4.EXPERIMENTS,
    *lemma_d1_2.EXPERIMENTS,
    *lemma_d1_3.EXPERIMENTS,
    *lemma_d2_14.EXPERIMENTS,
    *takeaways.EXPERIMENTS,
    *cap.EXPERIMENTS,
    *algorithm2.EXPERIMENTS,
    *optimiser.EXPERIMENTS,
    *figd_1.EXPERIMENTS,
)
