"""Figure 3: the benign regime in time; and what Figure 4 has in common with it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, Claim, above, below, claim, equals
from provingground.stats import Estimate, Everywhere
from provingground.study import Experiment, Trainings

from .. import theory
from .lemma5_2 import dominance, dominance_needs
from .shared import (
    ATTENTION,
    BENIGN,
    DYNAMICS,
    early_speeds,
    late_time,
    loss_as_the_law,
    loss_of_uniform_queries,
    ratio,
    scaled,
    test_loss_law,
)


def trained(ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(attention="trained", drop=True)


def dynamics_claims(winner: str, loser: str, figure: str, lemma: str) -> tuple[Claim, ...]:
    """How the winner takes values and attention."""

    def speeds_ratio(ds: xr.Dataset) -> xr.DataArray:
        r = ratio(ds) / 2
        return r if winner == "signal" else 1 / r

    def with_attention(of: Callable[[Any], tuple[Any, Any]]) -> Altered:
        def altered(ds: xr.Dataset) -> xr.Dataset:
            most, least = of(ds.tokens)
            other = ds[f"attention_{loser}"]
            return ds.assign({f"attention_{winner}": other * (most / least)})

        return altered

    def the_speeds_alone(ds: xr.Dataset) -> xr.Dataset:
        made = ds[f"value_{loser}"] * speeds_ratio(ds)
        return ds.assign({f"value_{winner}": made.transpose(*ds.value_signal.dims)})

    @claim(
        f"{figure}, Lemma 5.1",
        equals(1, within=0.05),
        name=f"early_{winner}",
        rivals={
            "both noises small": scaled("value_noise", lambda ds: ds.noise / ds.noise_big),
            "a sum over all N samples": scaled("value_signal", lambda ds: 2.0),
        },
    )
    def early(ds: xr.Dataset) -> Everywhere:
        """both values start to grow at the speeds of Lemma 5.1 (ratio)"""
        at = trained(ds)
        grown = [
            (at[f"value_{token}"].isel(step=1) - at[f"value_{token}"].isel(step=0)) / speed
            for token, speed in zip(("signal", "noise"), early_speeds(at), strict=True)
        ]
        token = xr.DataArray(["signal", "noise"], dims="token", name="token")
        return stats.everywhere(stats.mean, xr.concat(grown, token))

    @claim(
        f"{figure}; made sharp here",
        equals(1, within=0.1),
        kind="own",
        name=f"attention_{winner}",
        law=with_attention(lambda m: theory.sparse_attention(m)),
        rivals={
            "every query chooses": with_attention(lambda m: (1 - 0.01 * m, 0.01)),
            "one query chooses": with_attention(lambda m: (2 * m - 1, m - 1)),
        },
    )
    def attention(ds: xr.Dataset) -> Estimate:
        """attention ends sparse: the queries of the signal and of noise token 2 see the winner
        alone, the others all tokens alike, so its mean over the loser's is (3M-2)/(M-2) (ratio)"""
        end = trained(ds).isel(step=-1)
        most, least = theory.sparse_attention(end.tokens)
        found = stats.paired_ratio(end[f"attention_{winner}"], end[f"attention_{loser}"])
        return found / float(most / least)

    @claim(
        figure,
        above(3),
        name=f"score_{winner}",
        rivals={"half of it": scaled(f"score_{winner}", lambda ds: 0.5)},
    )
    def score(ds: xr.Dataset) -> Estimate:
        """the query-key product with the winner grows faster: it ends larger by over 3"""
        end = trained(ds).isel(step=-1)
        return stats.paired_difference(end[f"score_{winner}"], end[f"score_{loser}"])

    @claim(
        figure,
        above(1.5),
        kind="own",
        name=f"value_{winner}",
        rivals={"the speeds alone": the_speeds_alone},
    )
    def value(ds: xr.Dataset) -> Estimate:
        """trained attention widens the gap: the winner's value over the loser's ends over 1.5 times
        that of their first speeds"""
        end = trained(ds).isel(step=-1)
        found = stats.paired_ratio(end[f"value_{winner}"], end[f"value_{loser}"])
        return found / float(speeds_ratio(end))

    @claim(
        lemma,
        above(1),
        bound="paper",
        expected="fails",
        name=f"dominance_{winner}",
        because=(dominance, dominance_needs),
        note="The figure lies outside what the lemmas ask for.",
    )
    def dominates(ds: xr.Dataset) -> Estimate:
        """the winner's value is over 3M times the loser's (ratio to 3M)"""
        end = trained(ds).isel(step=-1)
        found = stats.paired_ratio(end[f"value_{winner}"], end[f"value_{loser}"])
        return found / (3 * float(end.tokens))

    return attention, early, score, value, dominates


def draw_dynamics(title: str) -> Callable[[xr.Dataset], Any]:
    def draw(ds: xr.Dataset):
        fig, axes = plot.figure(1, 3, title=title)
        pairs = (
            ("attention", "mean attention"),
            ("score", "query-key product"),
            ("value", "label-signed value, $V$"),
        )
        at = trained(ds)
        end = int(at.stopped_at.max()) + 1
        at = at.isel(step=slice(0, end + 1))
        for ax, (name, words) in zip(axes, pairs, strict=True):
            plot.curve(ax, at[f"{name}_signal"], "step", label="signal")
            plot.curve(ax, at[f"{name}_noise"], "step", label="noise token 2")
            ax.set_ylabel(words)
        for level in theory.sparse_attention(float(ds.tokens)):
            plot.theory_curve(axes[0], [0, end], [level] * 2, "sparse attention")
        early = np.arange(0, 6)
        for speed in early_speeds(at):
            plot.theory_curve(axes[2], early, early * float(speed.mean()), "Lemma 5.1")
        return fig

    return draw


@claim("Theorem 4.1, Figure 3", below(0.1))
def benign_test_loss(ds: xr.Dataset) -> Estimate:
    """the test loss is small"""
    return stats.mean(trained(ds).test_loss)


@claim(
    "derived from Lemma 5.5",
    equals(1, within=0.1),
    kind="own",
    law=loss_as_the_law,
    rivals={"all queries uniform": loss_of_uniform_queries},
)
def benign_test_loss_law(ds: xr.Dataset) -> Estimate:
    """the test loss is l(V (2M-1)/M^2) here (ratio); elsewhere see `loss_below_law`"""
    at = trained(ds)
    return stats.mean(at.test_loss / test_loss_law(at))


@claim(
    "Theorem 4.1 with its constant",
    equals(1, within=0.1),
    kind="own",
    rivals={"one query chooses": scaled("stopped_at", lambda ds: 1 + (ds.attention == "frozen"))},
)
def attention_speeds_up(ds: xr.Dataset) -> Estimate:
    """frozen attention takes longer by the factor that uniform instead of sparse attention has in
    the time to a small loss, here 4.5 (ratio)"""
    at = trained(ds)
    uniform, sparse = 1 / at.tokens, theory.sparse_attention(at.tokens)
    factor = late_time(at, at.eps, uniform, uniform) / late_time(at, at.eps, *sparse)
    fixed = ds.stopped_at.sel(attention="frozen", drop=True)
    return stats.paired_ratio(fixed, at.stopped_at * factor)


EXPERIMENTS = (
    Experiment(
        "fig3",
        says="Benign regime: attention, query-key products and values of signal and noise in time.",
        trainings=Trainings(
            grid={
                **DYNAMICS,
                **BENIGN,
                "steps": 700,
                "record": 701,
                "attention": ATTENTION,
            },
            seeds=16,
            quick={"seeds": 12, "test_samples": 100},
        ),
        claims=(
            *dynamics_claims("signal", "noise", "Figure 3", "Lemmas 5.2 and 5.3"),
            benign_test_loss,
            benign_test_loss_law,
            attention_speeds_up,
        ),
        figure=draw_dynamics("Benign regime, $N = 16$, $\\|\\mu\\| = 25$"),
    ),
)
