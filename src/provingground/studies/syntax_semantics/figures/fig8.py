"""Figure 8 on HotpotQA, with a small decoder from scratch: what edited attention still knows."""

from provingground.study import Experiment

from .fig6 import draw_over
from .fig6_counterfact import CLAIMS
from .fig7 import HOTPOTQA

EXPERIMENTS = (
    Experiment(
        "fig8",
        says="A decoder of HotpotQA, where types are forms, with part of the singular values of "
        "its attention.",
        trainings=HOTPOTQA,
        claims=CLAIMS,
        figure=lambda ds: draw_over(
            ds, "schedule", "HotpotQA (types are forms), a small decoder from scratch, edited"
        ),
    ),
)
