"""Other encodings in place of the distance (appendix B.5.2)."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim, exchange
from provingground.stats import Everywhere, everywhere, last
from provingground.study import Experiment, Trainings, cases

LEARN = ["distance", "laplacian"]
DO_NOT = ["none", "walk", "degree"]
exchanged = exchange("encoded", ("laplacian", "walk"))


@claim(
    "Theorem 3.4.4; appendix B.5.2",
    below(0.01),
    rivals={"walk for Laplacian": exchanged},
)
def encodings_learn(ds: xr.Dataset) -> Everywhere:
    """with the distance bias and with Laplacian eigenvectors the test error is zero (below 0.01)"""
    return everywhere(stats.mean, last(ds.test_error).sel(encoded=LEARN))


@claim("found here", above(0.2), kind="own", rivals={"walk for Laplacian": exchanged})
def encodings_do_not(ds: xr.Dataset) -> Everywhere:
    """with return probabilities of random walks, the degree or nothing it stays above 0.2"""
    return everywhere(stats.mean, last(ds.test_error).sel(encoded=DO_NOT))


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Other encodings", width=4.6)
    plot.curve(ax, ds.test_error, "step", hue="encoded")
    return fig


EXPERIMENTS = (
    Experiment(
        "encodings",
        says="Other encodings in place of the distance: eigenvectors, random walks, degree.",
        trainings=Trainings(
            grid={
                "lr": 0.1,
                "record": 31,
                "nodes": 400,
                "degree": 48,
                "key_width": 24,
                "value_width": 24,
                "confusion_ratio": 0.1,
                "noise": 0.01,
                "samples": 100,
                "steps": 600,
                "encoded": cases(
                    {
                        "distance": {},
                        "none": dict(bias_scale=0.0),
                        "laplacian": dict(bias_scale=0.0, absolute="laplacian"),
                        "walk": dict(bias_scale=0.0, absolute="walk"),
                        "degree": dict(bias_scale=0.0, absolute="degree"),
                    }
                ),
            },
            seeds=20,
            simulator="nodes",
            paper_only=True,
        ),
        claims=(encodings_learn, encodings_do_not),
        figure=draw,
    ),
)
