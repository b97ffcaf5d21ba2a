"""The figures, one room each, in order."""

from . import (
    case12,
    expressivity,
    fig1a,
    lemma_i3,
    linear,
    ntk,
    ood_risk,
    ordered,
    positions,
    remedies,
    sign_theorem,
    thm5_2,
    thm5_3,
    width_data_time,
)

# At the quick scale later ones find cells of earlier ones in the store.
EXPERIMENTS = (
    *ood_risk.EXPERIMENTS,
    *linear.EXPERIMENTS,
    *expressivity.EXPERIMENTS,
    *thm5_2.EXPERIMENTS,
    *lemma_i3.EXPERIMENTS,
    *sign_theorem.EXPERIMENTS,
    *ordered.EXPERIMENTS,
    *thm5_3.EXPERIMENTS,
    *ntk.EXPERIMENTS,
    *width_data_time.EXPERIMENTS,
    *fig1a.EXPERIMENTS,
    *case12.EXPERIMENTS,
    *remedies.EXPERIMENTS,
    *positions.EXPERIMENTS,
)
