"""The figures, one room each, in order."""

from . import (
    fig7_1,
    fig7_2,
    fig7_3,
    fig7_4,
    fig7_5,
    fig7_6,
    fig7_7,
    figf_1,
    laws,
    lemmaf_3,
    noise,
    span,
    thm3,
    vote,
)

EXPERIMENTS = (
    *fig7_3.EXPERIMENTS,
    *fig7_4.EXPERIMENTS,
    *fig7_5.EXPERIMENTS,
    *fig7_2.EXPERIMENTS,
    *fig7_6.EXPERIMENTS,
    *span.EXPERIMENTS,
    *vote.EXPERIMENTS,
    *laws.EXPERIMENTS,
    *fig7_1.EXPERIMENTS,
    *thm3.EXPERIMENTS,
    *lemmaf_3.EXPERIMENTS,
    *noise.EXPERIMENTS,
    *fig7_7.EXPERIMENTS,
    *figf_1.EXPERIMENTS,
)
