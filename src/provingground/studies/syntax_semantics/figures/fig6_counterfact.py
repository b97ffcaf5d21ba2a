"""Figure 6 on CounterFact, with a small decoder from scratch: what edited attention still knows."""

import xarray as xr

from provingground.claims import above, claim, exchange
from provingground.stats import Everywhere, everywhere, paired_ratio
from provingground.study import Experiment

from . import fig6
from .fig5_counterfact import COUNTERFACT, OURS
from .fig6 import HALF, draw_over

swapped = exchange("order", ("largest", "smallest"))

edits_rise = claim(
    f"Figures 6 and 8, left and middle, {OURS}",
    above(0.5),
    kind="own",
    rivals=fig6.RISE,
    name="edits_rise",
    says="on real data, late, right answers rise with the part of the largest singular values that "
    "is kept: with all by over a half of what is asked above those with a tenth (difference)",
)(fig6.exact_rises)

edits_never_cost = claim(
    "found here",
    above(-0.05),
    kind="own",
    rivals=fig6.rank_never_costs.rivals,
    name="edits_never_cost",
    says="on the way none of the largest singular values costs right answers, on real data, late "
    "(least step, up to 0.05)",
)(fig6.rank_never_costs)


@claim("found here", above(0.8), kind="own", rivals={"swapped": swapped})
def large_keep_types(ds: xr.Dataset) -> Everywhere:
    """on real data the largest half of the singular values keeps most of the right types, early
    and late (over those with all)"""
    typed = ds.edited_type.sel(order="largest", drop=True)
    whole = typed.isel(rho=-1, drop=True)
    return everywhere(paired_ratio, typed.sel(rho=HALF, method="nearest", drop=True), whole)


edited_answers_need_more = claim(
    "found here",
    above(0.02),
    kind="own",
    rivals={"as types": lambda ds: ds.assign(edited_exact=ds.edited_type)},
    name="edited_answers_need_more",
    says="on real data right answers need more of the largest singular values than right types do "
    "(difference of what 0.3 to 0.5 of them keep, late)",
)(fig6.answers_need_more)

small_keep_types = claim(
    f"Figures 6 and 8, right, {OURS}",
    above(0),
    kind="own",
    expected="fails",
    because=(large_keep_types,),
    name="small_keep_types",
    says="early, on real data, the smallest half of the singular values keeps more right types "
    "than the largest half (difference)",
)(fig6.small_hold_types)

CLAIMS = (
    edits_rise,
    edits_never_cost,
    large_keep_types,
    edited_answers_need_more,
    small_keep_types,
)
EXPERIMENTS = (
    Experiment(
        "fig6_counterfact",
        says="A decoder of CounterFact with part of the singular values of its attention.",
        trainings=COUNTERFACT,
        claims=CLAIMS,
        figure=lambda ds: draw_over(
            ds, "schedule", "CounterFact, a small decoder from scratch, edited"
        ),
    ),
)
