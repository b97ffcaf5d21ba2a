"""Boundaries from a part of the grid: the thresholds of the whole, and how much less it takes."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Array, Float

from provingground import api, planning, refine, stats
from provingground.claims import Claim
from provingground.config import config, par, probe
from provingground.engine import Job
from provingground.keys import normal, stream
from provingground.study import Experiment, Prediction, Refine, Simulator, Study, Trainings
from tiny import count_computed, with_trainings

LEVEL = 0.5
PLACES = np.geomspace(1, 100, 24)


@config
class Config:
    x: float = par(1.0, "x", "where on the curve", low=0)
    z: float = par(1.0, "z", "which curve", low=0)
    bend: float = par(3.0, "b", "steepness: negative for a falling curve")
    noise: float = par(0.1, "s", "how far seeds lie apart")
    ripple: float = par(0.0, "w", "waves on the curve")


class Probes(eqx.Module):
    y: Float[Array, ""] = probe("the curve")


def simulate(cfg, key):
    """A curve in log x that crosses a half near x = 20 / z, for each seed a bit elsewhere."""
    u, z = jnp.log(cfg.x), jnp.log(cfg.z)
    shift = cfg.noise * normal(stream(key, "data"), ())
    y = jax.nn.sigmoid(cfg.bend * (u + z - jnp.log(20.0) + shift))
    return Probes(y + cfg.ripple * jnp.sin(40.0 * u))


SLOPE = Claim(
    "slope",
    "the threshold falls as 1/z",
    lambda ds: stats.phase_boundary(ds["y"], "x", "z", LEVEL).law.slope,
    (-1.05, -0.95),
    "Theorem 1",
)


def make(rows=(1.0, 1.3, 1.8, 2.4, 3.2, 4.2, 5.6, 7.5), places=PLACES, seeds=4, **fixed) -> Study:
    """The study, refined ("traced") and with all cells ("full")."""
    grid = {"x": places, "z": list(rows), **fixed}
    full = Experiment("full", "s", Trainings(grid, seeds), (SLOPE,), lambda ds: None)
    traced = dataclasses.replace(
        with_trainings(full, refine=Refine("x", "y", LEVEL)), name="traced"
    )
    return Study(
        name="curves",
        title="t",
        cite="c",
        simulators={"one": Simulator(Config, simulate, Probes)},
        theory=lambda cfg: Prediction((), {}),
        experiments=(traced, full),
    )


def both(study: Study, store, **options: Any) -> tuple[xr.Dataset, xr.Dataset]:
    """The Datasets of both experiments, in stores of their own."""
    traced = api.run(study, "traced", store=store.path / "traced", progress=False, **options)
    full = api.run(study, "full", store=store.path / "full", progress=False, **options)
    return traced, full


def points(ds: xr.Dataset) -> xr.Dataset:
    """Thresholds of all rows, with their intervals."""
    found = [stats.threshold(ds["y"].sel(z=z), "x", LEVEL) for z in ds["z"].values]
    names = ("value", "low", "high")
    return xr.Dataset({n: ("z", [getattr(e, n) for e in found]) for n in names})


def run_cells(ds: xr.Dataset) -> int:
    return ds.attrs["cells"] - ds.attrs["skipped"]


# ---------------------------------------------------------------------- the same boundary


@pytest.mark.parametrize("fixed", [{}, {"bend": -3.0}], ids=["rising", "falling"])
def test_thresholds_are_those_of_the_full_grid(store, fixed):
    traced, full = both(make(**fixed), store)
    xr.testing.assert_allclose(points(traced), points(full), rtol=1e-6)
    assert np.isfinite(points(traced)["value"]).all()
    bounds = [stats.phase_boundary(ds["y"], "x", "z", LEVEL) for ds in (traced, full)]
    assert bounds[0].left_out == bounds[1].left_out == 0
    np.testing.assert_allclose(bounds[0].law.slope, bounds[1].law.slope, rtol=1e-6)
    np.testing.assert_allclose(bounds[0].law.constant, bounds[1].law.constant, rtol=1e-6)


def test_of_a_grid_of_24_places_a_third_is_enough(store):
    traced, full = both(make(), store)
    assert full.attrs["cells"] == traced.attrs["cells"] == 24 * 8 * 4
    assert full.attrs["skipped"] == 0
    assert run_cells(traced) <= full.attrs["cells"] / 3
    assert traced.attrs["missing"] == 0
    assert int(traced["y"].notnull().sum()) == run_cells(traced)
    assert not traced["diverged"].any()


def test_cells_that_were_run_are_those_of_the_full_grid(store):
    traced, full = both(make(), store)
    there = traced["y"].notnull()
    assert there.any("seed").equals(there.all("seed"))
    np.testing.assert_allclose(traced["y"].values[there], full["y"].values[there], rtol=1e-6)


def test_one_seed_is_enough_to_trace(store):
    traced, full = (xr.concat([ds] * 3, "seed") for ds in both(make(), store, seeds=1))
    np.testing.assert_allclose(points(traced)["value"], points(full)["value"], rtol=1e-6)
    assert traced.attrs["cells"] == 24 * 8
    assert run_cells(traced) <= full.attrs["cells"] / 3


def test_rows_that_never_cross_have_no_threshold_and_cost_little(store):
    """At z = 1000 the curve is above everywhere, at z = 0.01 below."""
    study = make(rows=[0.01, 0.02, 1000.0, 2000.0, 2.0, 3.0])
    traced, full = both(study, store)
    xr.testing.assert_allclose(points(traced), points(full), rtol=1e-6)
    assert np.isnan(points(traced)["value"].values).tolist() == [True] * 4 + [False] * 2
    each = traced["y"].notnull().any("seed").sum("x")
    for row in (0.01, 0.02, 1000.0, 2000.0):
        assert each.sel(z=row) <= 6
        assert traced["y"].sel(z=row).isel(x=[0, -1]).notnull().all()


@pytest.mark.parametrize("crossing", [1.02, 97.0])
def test_a_row_that_crosses_at_the_edge(store, crossing):
    rows = [20 / crossing, 4.0, 3.0, 2.0, 20 / crossing, 20 / crossing]
    rows = [z * (1 + i / 1000) for i, z in enumerate(rows)]  # no two alike
    traced, full = both(make(rows=rows, noise=0.001), store)
    xr.testing.assert_allclose(points(traced), points(full), rtol=1e-6)
    assert np.isfinite(points(traced)["value"]).all()


def test_curves_that_are_not_monotone_still_have_a_threshold_nearby(store):
    """Waves make several crossings, and which are found depends on where it looks."""
    traced, full = both(make(ripple=0.05, bend=2.0), store)
    found, wanted = points(traced)["value"], points(full)["value"]
    assert np.isfinite(found).all()
    assert (np.abs(np.log(found / wanted)) < 3 * np.log(PLACES[1] / PLACES[0])).all()
    assert traced.attrs["missing"] == 0


@pytest.mark.parametrize("places", [[5.0], [2.0, 80.0], [2.0, 20.0, 80.0]])
def test_short_axes_are_filled(store, places):
    traced, full = both(make(places=places), store)
    assert traced["y"].isel(x=[0, -1], z=[0, 4]).notnull().all()
    if len(places) > 1:
        xr.testing.assert_allclose(points(traced), points(full), rtol=1e-6)


def test_one_row_is_enough(store):
    traced, full = both(make(rows=[2.0]), store)
    xr.testing.assert_allclose(points(traced), points(full), rtol=1e-6)
    assert run_cells(traced) <= full.attrs["cells"] / 3


# --------------------------------------------------------------------- stored and resumed


def test_what_is_loaded_is_what_was_run(store, monkeypatch):
    study = make()
    ds = api.run(study, "traced", store=store, progress=False)
    computed = count_computed(monkeypatch)
    assert api.load(study, "traced", store=store).identical(ds)
    assert api.run(study, "traced", store=store, progress=False).identical(ds)
    assert computed == []


def test_results_of_the_full_grid_are_used_and_not_shown(store, monkeypatch):
    study = make()
    api.run(study, "full", store=store, progress=False)
    computed = count_computed(monkeypatch)
    ds = api.run(study, "traced", store=store, progress=False)
    assert computed == []
    assert ds.attrs["skipped"] > 0
    assert int(ds["y"].isnull().sum()) == ds.attrs["skipped"]


@pytest.mark.parametrize("stage", [1, 2, 4])
def test_a_sweep_that_was_broken_off_goes_on(store, tmp_path, monkeypatch, stage):
    study = make()
    whole = api.run(study, "traced", store=tmp_path / "whole", progress=False)
    run, begun = api.dispatch.run, []

    def broken(job: Job, *args: Any) -> None:
        begun.append(job)
        if len(begun) > stage:
            raise KeyboardInterrupt
        run(job, *args)

    with monkeypatch.context() as patch:
        patch.setattr(api.dispatch, "run", broken)
        with pytest.raises(KeyboardInterrupt):
            api.run(study, "traced", store=store, progress=False)
    half = api.load(study, "traced", store=store)
    assert half.attrs["missing"] > 0
    assert half.attrs["missing"] + half.attrs["skipped"] == int(half["y"].isnull().sum())
    stored = half.attrs["cells"] - int(half["y"].isnull().sum())

    computed = count_computed(monkeypatch)
    ds = api.run(study, "traced", store=store, progress=False)
    assert sum(computed) == run_cells(whole) - stored
    assert ds.drop_attrs().identical(whole.drop_attrs())
    assert ds.attrs["skipped"] == whole.attrs["skipped"]


def test_what_is_missing_is_counted_apart_from_what_is_skipped(store):
    ds = api.stored(planning.job(make(), "traced", store=_traced_nothing(store), trace=False))
    assert ds.attrs["missing"] == 2 * 2 * 4  # the ends of one row in four
    assert ds.attrs["missing"] + ds.attrs["skipped"] == ds.attrs["cells"]


def _traced_nothing(store):
    """A store that knows the programs of the study, and none of its cells."""
    assert planning.job(make(), "traced", store=store).identities
    return store


# ---------------------------------------------------------------------------- the verdict


def test_a_claim_on_a_refined_experiment_is_judged(store):
    study = make()
    verdict, all_cells = api.check(study, store=store, progress=False)
    assert verdict.experiment == "traced"
    assert verdict.verdict == all_cells.verdict == "holds"
    assert "missing" not in verdict.note
    np.testing.assert_allclose(verdict.estimate, all_cells.estimate, rtol=1e-6)


def test_a_claim_on_half_of_a_refined_experiment_is_not(store):
    ds = api.stored(planning.job(make(), "traced", store=_traced_nothing(store), trace=False))
    (verdict,) = api.verdicts(make(), make().experiments[0], ds)
    assert verdict.verdict == "unknown"
    assert "16 of 768 cells are missing" in verdict.note


# --------------------------------------------------------------------------- the bisection


def traced_by(values: np.ndarray, level: float = LEVEL) -> np.ndarray:
    """Which places of curves (row, place, seed) are tried, by the real loop without trainings."""
    rows, places, _ = values.shape
    job: Any = SimpleNamespace(
        sweep=SimpleNamespace(
            trainings=SimpleNamespace(refine=Refine("x", "y", level)),
            axes=[SimpleNamespace(name="z"), SimpleNamespace(name="x")],
            shape=(rows, places),
        ),
        study=SimpleNamespace(simulators={"one": Simulator(Config, simulate, Probes)}),
        groups=[SimpleNamespace(program=SimpleNamespace(simulator="one"))],
        only=None,
    )

    def dataset(job: Any) -> xr.Dataset:
        known = job.only.reshape(rows, places)
        return xr.Dataset({"y": (("z", "x", "seed"), np.where(known[..., None], values, np.nan))})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refine, "dataset", dataset)
        stages = sum(1 for _ in refine.stages(job))
    assert stages <= 4 * int(np.ceil(np.log2(max(places, 2)))) + 4
    return job.only.reshape(rows, places)


def crossings(values: np.ndarray, replicas: slice) -> list[tuple[int, int]]:
    """Row and place of each crossing (to the next place) of some replicas of all cells."""
    sides = refine._sides(values, LEVEL)[..., replicas]
    return [(int(r), int(p)) for r, p in np.argwhere((sides[:, 1:] != sides[:, :-1]).any(-1))]


@st.composite
def curves(draw, least_seeds: int = 1) -> np.ndarray:
    """Monotone curves, one per row and seed, as steps somewhere on the axis or beyond its ends.

    All rise or all fall; those of a row cross near each other, and rows anywhere."""
    rows, places = draw(st.integers(1, 9)), draw(st.integers(2, 33))
    seeds = draw(st.integers(least_seeds, 4))
    centre = draw(st.lists(st.integers(-3, places + 3), min_size=rows, max_size=rows))
    spread = draw(st.lists(st.integers(-3, 3), min_size=rows * seeds, max_size=rows * seeds))
    slope = draw(st.sampled_from([0.1, 0.5, 5.0])) * draw(st.sampled_from([-1, 1]))
    at = np.array(centre)[:, None] + np.reshape(spread, (rows, seeds)) + 0.3
    return 1 / (1 + np.exp(-slope * (np.arange(places)[None, :, None] - at[:, None, :])))


def test_a_row_in_which_one_mean_crosses_beside_its_neighbours_and_others_do_not():
    """The second row begins around place 2, where only the mean without its last seed crosses."""
    early, late = (np.arange(12) > at for at in (2.5, 8.5))
    most = 0.6 * early + 0.4 * late
    values = np.stack([np.stack([early] * 3, -1), np.stack([most, most, 0.2 * late], -1)])
    assert crossings(values, slice(0, 1)) == [(0, 2), (1, 8)]
    assert traced_by(values)[1, 8:10].all()


@given(curves())
def test_every_crossing_of_the_mean_is_bracketed(values):
    known = traced_by(values)
    for row, place in crossings(values, slice(0, 1)):
        assert known[row, place : place + 2].all()


@given(curves(least_seeds=2))
def test_every_crossing_without_one_seed_is_bracketed(values):
    known = traced_by(values)
    for row, place in crossings(values, slice(None)):
        assert known[row, place : place + 2].all()


@given(curves())
def test_rows_that_never_cross_are_known_at_both_ends(values):
    known = traced_by(values)
    crossed = {row for row, _ in crossings(values, slice(None))}
    for row in set(range(len(values))) - crossed:
        assert known[row, [0, -1]].all()


@given(st.integers(1, 12), st.integers(1, 40), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_noise_ends_too_and_what_it_brackets_are_crossings(rows, places, seeds, number):
    values = np.random.default_rng(number).normal(LEVEL, 1, (rows, places, seeds))
    known = traced_by(values)
    sides = refine._sides(values, LEVEL)
    for row in range(rows):
        for i, j in refine._pairs(sides[row], known[row]):
            assert j == i + 1
