"""The figures, one room each, in order: experiments find cells of others in the store."""

from . import (
    abl_temp,
    cor1,
    eta_c,
    fig3,
    imbalance,
    literal,
    output_bias,
    presets,
    prop2,
    rest,
    scan_ur,
    thm1,
    thm2,
    thm3,
    thm4,
    variants,
)

EXPERIMENTS = (
    *thm3.EXPERIMENTS,
    *thm1.EXPERIMENTS,
    *thm2.EXPERIMENTS,
    *thm4.EXPERIMENTS,
    *rest.EXPERIMENTS,
    *eta_c.EXPERIMENTS,
    *abl_temp.EXPERIMENTS,
    *scan_ur.EXPERIMENTS,
    *presets.EXPERIMENTS,
    *output_bias.EXPERIMENTS,
    *imbalance.EXPERIMENTS,
    *variants.EXPERIMENTS,
    *cor1.EXPERIMENTS,
    *literal.EXPERIMENTS,
    *fig3.EXPERIMENTS,
    *prop2.EXPERIMENTS,
)
