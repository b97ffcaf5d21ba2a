"""Figure 6.4: in context against classifiers fitted on the context."""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim
from provingground.stats import Everywhere, everywhere, paired_difference
from provingground.study import Experiment, Trainings

TRAININGS = Trainings(
    grid={"width": 400, "steps": 2000, "test_samples": 150},
    seeds=5,
    quick={"width": 100, "steps": 500, "test_samples": 20},
    simulator="learners",
)


def lead(ds: xr.Dataset, alpha: float) -> Everywhere:
    """Error of each fitted classifier minus that in context, mean from 20 examples on."""
    y = ds.test_error.sel(alpha_prime=alpha, drop=True).sel(length=slice(20, None)).mean("length")
    others = y.isel(learner=slice(1, None))
    return everywhere(paired_difference, others, y.sel(learner="ICL", drop=True))


@claim(
    "Figure 6.4(b)",
    above(0),
    bound="paper",
    rivals={
        "linear SVM better": lambda ds: ds.assign(
            test_error=ds.test_error.where(
                ds.learner != "SVM, linear", ds.test_error.sel(learner="ICL", drop=True) - 0.02
            )
        )
    },
)
def icl_best(ds: xr.Dataset) -> Everywhere:
    """at alpha' = 0.6, from 20 examples on, every fitted classifier errs more (difference)"""
    return lead(ds, 0.6)


@claim("Figure 6.4(a)", below(0.08), scale="paper")
def icl_close(ds: xr.Dataset) -> Everywhere:
    """at alpha' = 0.8 the linear SVM is close (behind by less than 0.08)"""
    y = ds.test_error.sel(alpha_prime=0.8, drop=True).sel(length=slice(20, None))
    return everywhere(
        paired_difference, *(y.sel(learner=n, drop=True) for n in ("SVM, linear", "ICL"))
    )


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="In context, and fitted on the context (out of domain)")
    for ax, alpha in zip(axes, ds.alpha_prime.values, strict=True):
        for name in ds.learner.values:
            y = ds.test_error.sel(alpha_prime=alpha, learner=name, drop=True)
            plot.curve(ax, y.assign_attrs(ds.test_error.attrs), "length", label=name, log="x")
        ax.set_ylim(-0.01, 0.5)
        ax.set_title(rf"$\alpha' = {float(alpha):.1f}$")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig6_4",
        says="Error in context against classifiers fitted on the same contexts, out of domain.",
        trainings=TRAININGS,
        claims=(icl_best, icl_close),
        figure=draw,
    ),
)
