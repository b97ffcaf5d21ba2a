"""The figures, one room each, in order."""

from . import (
    const,
    degrees,
    fig1,
    fig2a,
    fig2b,
    fig2c,
    fig3,
    fig4,
    fig5,
    floor,
    lemmas,
    rec_vs_sgd,
    tstar,
)

EXPERIMENTS = (
    *fig2a.EXPERIMENTS,
    *fig2b.EXPERIMENTS,
    *fig2c.EXPERIMENTS,
    *fig3.EXPERIMENTS,
    *rec_vs_sgd.EXPERIMENTS,
    *tstar.EXPERIMENTS,
    *const.EXPERIMENTS,
    *lemmas.EXPERIMENTS,
    *floor.EXPERIMENTS,
    *degrees.EXPERIMENTS,
    *fig1.EXPERIMENTS,
    *fig4.EXPERIMENTS,
    *fig5.EXPERIMENTS,
)
