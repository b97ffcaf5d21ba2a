"""One Experiment per figure: the grid, what it should show, and how it is drawn."""

from math import inf

from provingground import stats
from provingground.study import Claim, Experiment, cases

from . import measures

FEATURES = cases(measures.MODES)

OOD_RISK = Experiment(
    "ood_risk",
    says="Risk on sign-inconsistent series: attention, residual linear network, zero.",
    grid={"steps": 3000, "features": FEATURES, "noise": [0.0, 0.01, 0.03, 0.1]},
    seeds=16,
    quick={"steps": 300, "seeds": 8},
    claims=(
        Claim(
            "worse_than_zero",
            "the OOD risk of attention is above that of the zero predictor (smallest ratio)",
            measure=lambda ds: stats.worst(measures.over_zero(ds, "features", "noise"), "low"),
            within=(1, inf),
            source="Proposition 6.3(1), sign theorem",
        ),
    ),
    figure=measures.draw_risks,
)

EXPERIMENTS = (OOD_RISK,)
