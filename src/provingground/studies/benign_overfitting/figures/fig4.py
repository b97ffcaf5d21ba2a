"""Figure 4: the harmful regime in time."""

import xarray as xr

from provingground import stats
from provingground.claims import above, below, claim
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings

from .fig3 import draw_dynamics, dynamics_claims, trained
from .shared import ATTENTION, DYNAMICS, HARMFUL


@claim("Theorem 4.2, Figure 4; its proof (Lemma E.6) shows at least 0.1", above(0.1), bound="paper")
def harmful_test_loss(ds: xr.Dataset) -> Estimate:
    """the test loss stays of order one"""
    return stats.mean(trained(ds).test_loss)


@claim("found here", below(0.01), kind="own")
def harmful_test_error(ds: xr.Dataset) -> Estimate:
    """yet the test error is zero here"""
    return stats.mean(trained(ds).test_error)


@claim("frozen-attention baseline", above(2), kind="own")
def attention_does_harm(ds: xr.Dataset) -> Estimate:
    """training the attention raises the test loss over twice that of frozen attention here"""
    return stats.paired_ratio(
        trained(ds).test_loss, ds.test_loss.sel(attention="frozen", drop=True)
    )


EXPERIMENTS = (
    Experiment(
        "fig4",
        says="Harmful regime: attention, query-key products and values of signal and noise in "
        "time.",
        trainings=Trainings(
            grid={
                **DYNAMICS,
                **HARMFUL,
                "steps": 700,
                "record": 701,
                "attention": ATTENTION,
            },
            seeds=16,
            quick={"seeds": 12, "test_samples": 100},
        ),
        claims=(
            *dynamics_claims("noise", "signal", "Figure 4", "Lemma E.3"),
            harmful_test_loss,
            harmful_test_error,
            attention_does_harm,
        ),
        figure=draw_dynamics("Harmful regime, $N = 10$, $\\|\\mu\\| = 15$"),
    ),
)
