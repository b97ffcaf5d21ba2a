"""Repairs and variants: an output bias, more positives, no mask, softmax."""

from math import inf

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, cases

from .. import measures, theory
from ..measures import OWN, PILOT, ending

OUTPUT_BIAS = Experiment(
    "output_bias",
    says="A trained output bias: the repair that lets the loss of the hard part fall further.",
    trainings=Trainings(
        grid={"z_norm": [4.0, 16.0], "output_bias": [0.0, 1.0]}, seeds=1024, quick={"seeds": 36}
    ),
    claims=(
        Claim(
            "bias_gate",
            "with a bias the median loss falls below 3/4 log 2 at u = 16",
            measure=lambda ds: stats.median(
                ending(ds.loss_hard.sel(z_norm=16.0, output_bias=1), 2)
            ),
            within=(-inf, theory.ONE_SIDED),
            source="found here",
        ),
        Claim(
            "bias_floor",
            "and at u = 4, where most seeds learn both sides, below the floor",
            measure=lambda ds: stats.median(ending(ds.loss_hard.sel(z_norm=4.0, output_bias=1), 2)),
            within=(-inf, theory.FLOOR),
            source="found here",
            scale="paper",
        ),
        Claim(
            "bias_none",
            "which without a bias is impossible",
            measure=lambda ds: measures.least_hard_loss(ds.sel(output_bias=0)),
            within=(theory.FLOOR - 1e-6, inf),
            source="exact result",
        ),
    ),
    figure=measures.draw_bias,
)

MORE = ("two thirds", "three quarters")

IMBALANCE = Experiment(
    "imbalance",
    says="More positives than negatives in a context: the floor is gone, but training stays there.",
    trainings=Trainings(
        grid={
            "positives": cases(
                {"half": {}, MORE[0]: {"positive": 2 / 3}, MORE[1]: {"positive": 3 / 4}}
            )
        },
        seeds=1024,
        quick={"seeds": 36},
    ),
    claims=(
        Claim(
            "imbalance_positives",
            "positives are not learned: largest share of seeds with g(z) over 0.1 at the end",
            measure=lambda ds: stats.worst(
                [stats.share(ending(ds.hard_positive.sel(positives=p), 2) > 0.1) for p in MORE]
            ),
            within=(0, 0.1),
            source="found here",
            note=OWN,
        ),
        Claim(
            "imbalance_loss",
            "so no more than one side is learned: least median loss at the end",
            measure=lambda ds: stats.worst(
                [stats.median(ending(ds.loss_hard.sel(positives=p), 2)) for p in MORE], "low"
            ),
            within=(0.51, inf),
            source="found here",
        ),
    ),
    figure=measures.draw_imbalance,
)

VARIANTS = Experiment(
    "variants",
    says="The whole matrix U: with its blocks, without its mask, and with softmax attention.",
    trainings=Trainings(
        simulator="whole",
        grid={
            "variant": cases(
                {"blocks": {}, "unmasked": {"masked": False}, "softmax": {"softmax": True}}
            )
        },
        seeds=48,
        paper_only=True,
    ),
    claims=(
        Claim(
            "blocks",
            "the blocks of U are learned as W and V are: median loss of the hard part at the end",
            measure=lambda ds: stats.median(ending(ds.loss_hard.sel(variant="blocks"), 2)),
            within=(0.51, 0.56),
            source="Theorem 3, corrected",
        ),
        Claim(
            "unmasked_easy",
            "without the mask stage 1 learns the easy part as well",
            measure=lambda ds: stats.mean(ending(ds.loss_easy.sel(variant="unmasked"), 1)),
            within=(-inf, 0.25),
            source="Theorem 2 (b.2)",
        ),
        Claim(
            "unmasked_thm4",
            "and stage 2 keeps the loss of the easy part (mean absolute change)",
            measure=lambda ds: measures.easy_change(ds.sel(variant="unmasked")),
            within=(-inf, 0.08),
            source="Theorem 4 (d.2)",
            expected="fails",
            note="The hard part of the query reaches the easy tokens beside the diagonal of U, and "
            "takes over: W decays. The block structure is an assumption that matters.",
        ),
        Claim(
            "unmasked_loss",
            "without the mask the training loss ends lower (difference)",
            measure=lambda ds: stats.paired_difference(
                ending(ds.train_loss.sel(variant="unmasked", drop=True), 2),
                ending(ds.train_loss.sel(variant="blocks", drop=True), 2),
            ),
            within=(-inf, 0),
            source="found here",
        ),
        Claim(
            "softmax_easy",
            "with softmax the easy signal points along the target after stage 1 (cosine)",
            measure=lambda ds: stats.mean(ending(ds.w_cosine.sel(variant="softmax"), 1)),
            within=(0.95, 1 + 1e-9),
            source="Theorem 2 (b.1)",
        ),
        Claim(
            "softmax_stage1",
            "with softmax too stage 1 misses the hard part (share of seeds)",
            measure=lambda ds: measures.missed(ds.sel(variant="softmax"), 1),
            within=(0.9, 1),
            source="Theorem 1 (a.2)",
        ),
        Claim(
            "softmax_hard",
            "and stage 2 learns both sides: median loss at the end over its floor, at most 0.02",
            measure=lambda ds: stats.median(
                ending(ds.loss_hard.sel(variant="softmax"), 2) - theory.SOFTMAX_FLOOR
            ),
            within=(0, 0.02),
            source="found here",
            note=PILOT,
        ),
        Claim(
            "softmax_floor",
            "the floor of softmax, 1/2 log 2 + 1/2 log(1 + 1/e), is never crossed",
            measure=lambda ds: measures.least_hard_loss(ds.sel(variant="softmax")),
            within=(theory.SOFTMAX_FLOOR - 1e-6, inf),
            source="exact result",
        ),
    ),
    figure=measures.draw_variants,
)
