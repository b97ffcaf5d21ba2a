"""What decides whether a step learns the hard part: its size, the noise, the centre."""

from math import inf

import numpy as np

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, axis, cases

from .. import measures, theory
from ..measures import OWN, ending

BURSTS = "The bound is for the last record; bursts of noise lift the mean of the last ten."

ABL_TEMP = Experiment(
    "abl_temp",
    says="Stage 2 with a large or small step at a high or low temperature of its noise.",
    trainings=Trainings(
        grid={
            "lr2": [0.1, 0.005],
            "temperature": axis(
                [0.05, 1.0],
                "T_2/T_1",
                "temperature of stage 2 over stage 1",
                sets=measures.at_temperature,
            ),
        },
        seeds=1024,
        quick={"seeds": 96},
    ),
    claims=(
        *(
            Claim(
                f"{size}_step_{word}",
                f"a {size} step at a {word} temperature {'learns' if lr2 < 0.1 else 'misses'} "
                "the hard part (share of seeds that learn it)",
                measure=lambda ds, lr2=lr2, t=t: stats.share(
                    measures.learners(ds).sel(lr2=lr2, temperature=t)
                ),
                within=(0.6, 1) if lr2 < 0.1 else (0, 0.1),
                source="exact result: the gate",
                note=BURSTS if (size, word) == ("small", "high") else "",
            )
            for size, lr2 in (("large", 0.1), ("small", 0.005))
            for word, t in (("low", 0.05), ("high", 1.0))
        ),
        Claim(
            "step_over_noise",
            "a small step at a high temperature learns more often than a large one at a low",
            measure=lambda ds: stats.paired_difference(
                measures.learners(ds).sel(lr2=0.005, temperature=1.0, drop=True),
                measures.learners(ds).sel(lr2=0.1, temperature=0.05, drop=True),
            ),
            within=(0, 1),
            source="exact result: the gate",
        ),
        Claim(
            "noise_hides",
            "what hides the hard part is the noise of large steps: less of it lets them learn",
            measure=lambda ds: stats.share(measures.learners(ds).sel(lr2=0.1, temperature=0.05)),
            within=(0.5, 1),
            source="proof of Theorem 2",
            expected="fails",
            note="The step itself throws V out of the active region; noise only opens the door.",
        ),
    ),
    figure=measures.draw_temperature,
)

ETA_C = Experiment(
    "eta_c",
    says="The largest step size that learns the hard part, at a fixed temperature, against u.",
    trainings=Trainings(
        grid={
            "z_norm": [6.0, 9.0, 12.0, 16.0],
            "lr2": list(np.geomspace(0.006, 0.8, 12)),
            "temperature": axis(
                [0.05],
                "T_2/T_1",
                "temperature of stage 2 over stage 1",
                sets=measures.at_temperature,
            ),
        },
        seeds=256,
        quick={"lr2": list(np.geomspace(0.006, 0.8, 8)), "seeds": 16},
    ),
    claims=(
        Claim(
            "eta_c",
            "the critical step size falls with u with an exponent of about -4",
            measure=lambda ds: measures.gate(ds.isel(temperature=0)).law.slope,
            within=(-4.4, -3.2),
            source="exact result: the gate",
        ),
        Claim(
            "eta_c_low",
            "at every u the critical step size is at least half of 500 u^-4",
            measure=lambda ds: stats.worst(measures.gate_constants(ds.isel(temperature=0)), "low"),
            within=(250, inf),
            source="theory.critical_lr",
            note=OWN,
        ),
        Claim(
            "eta_c_high",
            "and at most twice that",
            measure=lambda ds: stats.worst(measures.gate_constants(ds.isel(temperature=0)), "high"),
            within=(-inf, 1000),
            source="theory.critical_lr",
            note=OWN,
        ),
    ),
    figure=lambda ds: measures.draw_gate(ds.isel(temperature=0)),
)

SCAN_UR = Experiment(
    "scan_ur",
    says="The hard part's centre against its offset: a gate at large u, both sides at small u.",
    trainings=Trainings(
        grid={"z_norm": [3.0, 4.0, 6.0, 9.0, 12.0, 16.0]},
        seeds=1024,
        quick={"z_norm": [3.0, 4.0, 9.0, 12.0, 16.0], "seeds": 48},
    ),
    claims=(
        Claim(
            "scan_ur",
            "the share of seeds that miss the hard part in stage 1 grows with u (rank correlation)",
            measure=lambda ds: stats.rank_correlation(
                (ending(ds.loss_hard, 1) > measures.MISSED).astype(float), "z_norm"
            ),
            within=(0.8, 1),
            source="exact result: the gate",
        ),
        Claim(
            "no_gate",
            "at u = r the large step learns the hard part too: no separate stages",
            measure=lambda ds: measures.missed(ds.sel(z_norm=3.0), 1),
            within=(0, 0.1),
            source="exact result: the gate",
            scale="paper",
        ),
        *(
            Claim(
                name,
                f"at u = {u:g} both sides are learned (median loss at the end)",
                measure=lambda ds, u=u: stats.median(ending(ds.loss_hard.sel(z_norm=u), 2)),
                within=(theory.FLOOR, 0.42),
                source="exact result: minimum at given norm",
                scale="paper" if u > 3 else None,  # undecided with few seeds
            )
            for name, u in (("two_sides", 3.0), ("two_sides_4", 4.0))
        ),
        Claim(
            "one_side",
            "from u = 9 on only one side is learned: largest median loss at the end",
            measure=lambda ds: stats.worst(
                [stats.median(ending(ds.loss_hard.sel(z_norm=u), 2)) for u in (9.0, 12.0, 16.0)]
            ),
            within=(0.51, 0.56),
            source="exact result: minimum at given norm",
        ),
    ),
    figure=measures.draw_scan,
)

PRESETS = Experiment(
    "presets",
    says="Other settings: the paper's t1, a weaker gate, and one in which both sides are near.",
    trainings=Trainings(
        grid={
            "preset": cases(
                {
                    "gate_t1": {"k1": 1.0},
                    "gate12": {"z_norm": 12.0},
                    "mild": {"z_norm": 8.0, "zeta_norm": 2.0, "lr2": 0.003, "k2": 10.0},
                    "two_sided": {
                        "z_norm": 3.5,
                        "zeta_norm": 2.5,
                        "weight_decay": 0.03,
                        "init_std": 1.4,
                        "lr1": 0.4,
                        "lr2": 0.008,
                        "k2": 3.0,
                    },
                }
            )
        },
        seeds=1024,
        quick={"seeds": 36},
    ),
    claims=(
        Claim(
            "presets_easy",
            "stage 1 learns the easy part in every setting",
            measure=lambda ds: stats.worst(
                measures.in_each(ds, lambda ds: stats.mean(ending(ds.loss_easy, 1)))
            ),
            within=(-inf, 0.25),
            source="Theorem 2",
        ),
        Claim(
            "presets_hard",
            "stage 2 lowers the loss of the hard part in every setting",
            measure=lambda ds: stats.worst(measures.in_each(ds, measures.hard_fall), "low"),
            within=(0, inf),
            source="Theorem 3",
        ),
        Claim(
            "paper_t1",
            "with the paper's t1 the stages are the same: the hard part is missed until t1",
            measure=lambda ds: measures.missed(ds.sel(preset="gate_t1"), 1),
            within=(0.9, 1),
            source="Theorem 1",
        ),
    ),
    figure=measures.draw_presets,
)
