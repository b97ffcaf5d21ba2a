"""The figures, one room each, in order."""

from . import (
    activation,
    bounds,
    cor4_4_1,
    excess,
    fig4_1,
    fig4_2,
    fig4_3,
    fig4_4,
    fig4_5,
    fig4_6,
    fig4_7,
    fig4_8,
    figc_1,
    noise,
    tab4_1,
    tensor,
)

EXPERIMENTS = (
    *fig4_7.EXPERIMENTS,
    *excess.EXPERIMENTS,
    *fig4_6.EXPERIMENTS,
    *cor4_4_1.EXPERIMENTS,
    *activation.EXPERIMENTS,
    *tab4_1.EXPERIMENTS,
    *bounds.EXPERIMENTS,
    *fig4_5.EXPERIMENTS,
    *fig4_4.EXPERIMENTS,
    *noise.EXPERIMENTS,
    *fig4_2.EXPERIMENTS,
    *fig4_3.EXPERIMENTS,
    *figc_1.EXPERIMENTS,
    *tensor.EXPERIMENTS,
    *fig4_1.EXPERIMENTS,
    *fig4_8.EXPERIMENTS,
)
