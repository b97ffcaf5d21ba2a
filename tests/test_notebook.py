"""A study that is made in one cell, and what a notebook does with it."""

import re
import sys
import traceback
import types
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, Int

import provingground as pg
from provingground import planning, plot, registry, stats
from provingground.claims import Claim
from provingground.errors import InputError, RunError
from provingground.keys import normal, stream
from provingground.study import SCALES, Condition, Prediction, cases
from tiny import ONE, Config, Probes, trained

GRID: dict[str, Any] = {"rate": [0.1, 0.2, 0.3]}


def made(**options):
    """A study of one cell."""
    return pg.new_study("own", Config, trained, Probes, **{"grid": GRID, "seeds": 3} | options)


def test_a_study_of_one_cell_is_run_checked_loaded_and_drawn(store):
    study = made(claims=[ONE])
    assert [v.verdict for v in pg.check(study, store=store, progress=False)] == ["holds"]
    ds = pg.run(study, store=store, progress=False)
    assert dict(ds.sizes) == {"rate": 3, "seed": 3, "step": 3}
    assert pg.load(study, store=store).identical(ds)
    assert pg.run(study, "main", store=store, progress=False).identical(ds)
    fig = pg.figure(study, store=store)
    assert pg.figure(ds, study=study)._repr_png_() == fig._repr_png_()
    assert plot.check_layout(fig) == []
    again = pg.replay(ds, study=study, rate=0.2, seed=1)
    assert again.weights.shape == (5, 2)


def test_what_is_not_said_has_a_sensible_form():
    study = made()
    assert (study.title, study.cite, len(study.experiments)) == ("Own", "", 1)
    assert pg.theory(study) == Prediction((), {})
    assert [study.experiments[0].trainings.seeds_at(s) for s in SCALES] == [3, 3]
    condition = Condition("rate", 0.5, "<=", 1.0)
    told = made(theory=lambda cfg: Prediction((condition,), {"x": 2 * cfg.rate}), title="A title")
    assert pg.conditions(told) == [condition]
    assert pg.theory(told, rate=0.25).values == {"x": 0.5}
    assert told.title == "A title"


class Clash(eqx.Module):
    rate: Float[Array, ""]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("own", dict, trained, Probes), {}, "config = .*dict.* a class with @config"),
        (("own", Config, None, Probes), {}, "simulate = None is not allowed: a function"),
        (("own", Config, trained, dict), {}, "probes = .*equinox.Module whose fields"),
        (("own", Config, trained, eqx.Module), {}, "probes = .*equinox.Module whose fields"),
        (("My own", Config, trained, Probes), {}, r"study name 'My own' must match \[a-z0-9_\]\+"),
        (("own", Config, trained, Probes), {"claims": [len]}, "len.* is not a Claim"),
        (("own", Config, trained, Clash), {}, "the probe 'rate' has the name of a parameter"),
    ],
)
def test_what_makes_no_study_is_refused(arguments, options, message):
    with pytest.raises(InputError, match=message):
        pg.new_study(*arguments, grid=GRID, **options)


# --------------------------------------------------------------------------- identity

CELL = """
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float
import provingground as pg
from provingground.keys import normal, stream
from provingground.config import config, par, probe

@config
class Config:
    rate: float = par(0.5, "r", "rate", low=0)

class Probes(eqx.Module):
    end: Float[Array, ""] = probe("end")

def scaled(x):
    return {factor} * x

def simulate(cfg, key):
    return Probes(scaled(cfg.rate * normal(stream(key, "data"), (3,)).sum()))

study = pg.new_study("typed", Config, simulate, Probes, grid=dict(rate=[1.0, 2.0]), seeds=2)
"""


def test_a_cell_that_is_changed_and_run_again_is_another_study(store, monkeypatch):
    """Its code is read from memory: there is no file."""
    notebook: Any = types.ModuleType("notebook_of_test")
    monkeypatch.setitem(sys.modules, "notebook_of_test", notebook)
    found = []
    for factor in (1.0, 3.0, 1.0):
        exec(CELL.format(factor=factor), vars(notebook))
        found.append(pg.run(notebook.study, store=store, progress=False))
    np.testing.assert_allclose(found[1].end, 3 * found[0].end, rtol=1e-6)
    np.testing.assert_array_equal(found[2].end, found[0].end)
    assert pg.load(notebook.study, store=store).identical(found[2])


# --------------------------------------------------------------------------- the figure


class Many(eqx.Module):
    number: Float[Array, ""]
    whole: Int[Array, ""]
    curve: Float[Array, "step"]
    table: Float[Array, "step head"]
    step: Int[Array, "step"]


def many(cfg, key):
    x = jnp.abs(normal(stream(key, "x"), (4, 2))) * cfg.rate
    total = jnp.sum(x)
    return Many(total, jnp.asarray(cfg.width), x[:, 0], x, jnp.arange(4))


@pytest.mark.parametrize(
    "grid",
    [
        {"rate": [0.1, 1.0, 10.0]},
        {"rate": [0.1, 1.0], "count": [3, 5], "width": [1, 2, 3]},
        {"kind": cases({"narrow": {"width": 1}, "wide": {"width": 8}}), "rate": [1.0, 2.0]},
        {"rate": 1.0},
        {},
    ],
    ids=["one axis", "three axes", "cases", "fixed", "nothing"],
)
def test_every_probe_is_drawn_against_the_first_axes(store, grid):
    study = pg.new_study("many", Config, many, Many, grid=grid, seeds=3)
    pg.run(study, store=store, progress=False)
    fig = pg.figure(study, store=store)
    assert plot.check_layout(fig) == []
    assert len([ax for ax in fig.axes if ax.get_visible()]) == 4
    if "count" in grid:
        assert fig.axes[0].get_title("left") == "at width, $w$ = 1"


def test_wide_axes_are_logarithmic(store):
    study = pg.new_study("many", Config, many, Many, grid={"rate": [0.1, 1.0, 10.0]}, seeds=3)
    pg.run(study, store=store, progress=False)
    number, whole, curve, _ = (ax for ax in pg.figure(study, store=store).axes)
    assert (number.get_xscale(), number.get_yscale()) == ("log", "log")
    assert (whole.get_xscale(), whole.get_yscale()) == ("log", "linear")
    assert curve.get_xscale() == "linear"  # it begins at step 0


# --------------------------------------------------------------- Datasets, and names of studies


def test_a_figure_of_a_dataset_needs_its_study(store):
    study = made()
    ds = pg.run(study, store=store, progress=False)
    with pytest.raises(InputError, match=r"the study 'own' of the Dataset is not listed; say stu"):
        pg.figure(ds)
    with pytest.raises(InputError, match="the Dataset is of the study 'own', not of toy"):
        pg.figure(ds, study=registry.study("toy"))
    with pytest.raises(InputError, match="the Dataset is of the study 'own', not of 'own'"):
        pg.figure(ds, study="own")  # pyright: ignore
    with pytest.raises(InputError, match="does not say which study and experiment it is of"):
        pg.figure(ds.drop_attrs(), study=study)
    with pytest.raises(InputError, match="does not say which study and experiment it is of"):
        pg.replay(ds.drop_attrs(), study=study)
    with pytest.raises(InputError, match="a Dataset has its settings: experiment, seeds cannot"):
        pg.figure(ds, "main", study=study, seeds=3)
    with pytest.raises(InputError, match="study= is for the figure of a Dataset"):
        pg.figure("toy/risk", study=study)


def test_names_of_experiments_may_follow_their_study():
    def names(*targets, **options):
        return [f"{s.name}/{e.name}" for s, e in planning.chosen(targets, **options)]

    benign = registry.study("benign_overfitting")
    assert names(benign, "fig1a") == ["benign_overfitting/fig1a"]
    assert names("benign_overfitting", "fig1a", "fig1b", "toy") == [
        "benign_overfitting/fig1a",
        "benign_overfitting/fig1b",
        "toy/risk",
    ]
    assert names("toy/risk", "risk", benign, headline=True) == [
        "toy/risk",  # which was named twice
        "benign_overfitting/fig1b",
    ]
    assert names(made(), "main") == names(made()) == ["own/main"]


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (("toy", "risc"), "unknown experiment of toy, or study, 'risc'; did you mean 'risk'"),
        (("toy", "teacher_studnt"), "did you mean 'teacher_student'"),
        (("risk",), "unknown study 'risk'"),
        (("toy", 3), "target = 3 is not allowed"),
        (("toy/",), None),
        ((["toy"],), r"target = \['toy'\] is not allowed"),
    ],
)
def test_a_target_that_does_not_exist_is_told(targets, message):
    if message is None:
        assert len(planning.chosen(targets)) == 1
        return
    with pytest.raises(InputError, match=message):
        pg.check(*targets)


@pytest.mark.parametrize(
    ("target", "settings", "message"),
    [
        ("teacher_studnt", {}, "unknown study .*; did you mean 'teacher_student'"),
        ("toy/risk", {}, "theory takes a study and settings: 'toy', not 'toy/risk'"),
        ("toy", {"sampels": 3}, "unknown parameter 'sampels'; did you mean 'samples'"),
        ("toy", {"samples": [3, 4]}, "theory takes one value for samples, not a list of 2"),
        ("toy", {"samples": 0}, "samples = 0 is not allowed"),
        ("toy", {"samples": 3, "settings": {"samples": 4}}, "samples is set twice"),
    ],
)
@pytest.mark.parametrize("ask", [pg.theory, pg.conditions])
def test_settings_of_a_theory_are_checked(ask, target, settings, message):
    with pytest.raises(InputError, match=message):
        ask(target, **settings)


def test_a_theory_that_cannot_be_computed_is_told():
    study = made(theory=lambda cfg: Prediction((), {"x": 1 / (cfg.rate - cfg.rate)}))
    with pytest.raises(InputError, match=r"the theory of own cannot be computed at these.*ZeroDiv"):
        pg.theory(study)


def test_claims_of_a_cell_may_fail(store):
    low = Claim("low", "it is low", lambda ds: stats.mean(ds["last"]), (-2, -1), "ours")
    (verdict,) = pg.check(made(claims=[low]), store=store, progress=False)
    assert (verdict.verdict, verdict.surprise) == ("fails", True)


# --------------------------------------------------------------------------- what goes wrong


def test_a_figure_of_missing_cells_is_refused(store):
    study = made()
    pg.run(study, seeds=2, store=store, progress=False)
    with pytest.raises(RunError, match="3 of 9 cells of own/main are missing; `proving run own/m"):
        pg.figure(study, store=store)
    ds = pg.load(study, store=store)
    with pytest.raises(RunError, match="3 of 9 cells"):
        pg.figure(ds, study=study)


def test_a_figure_without_one_of_its_axes_says_which():
    ds = pg.run("toy/risk", samples=[30, 50], noise=[0.5, 1.0], seeds=3, progress=False)
    pg.figure(ds.sel(noise=[1.0]))
    with pytest.raises(InputError, match=r"cannot be drawn without the axis noise.*=\[...\]"):
        pg.figure(ds.sel(noise=1.0))


def test_a_study_cannot_have_the_name_of_one_that_is_there():
    with pytest.raises(InputError, match="there is a study 'toy' already"):
        pg.new_study("toy", Config, trained, Probes, grid=GRID, seeds=3)


def test_a_claim_with_a_mistake_is_named_with_its_place(store):
    bad = Claim("typo", "s", lambda ds: ds.los, (0, 1), "t")
    one, typo = pg.check(made(claims=[ONE, bad]), store=store, progress=False)
    assert (one.verdict, typo.verdict) == ("holds", "unmeasured")
    assert typo.trouble
    assert not one.trouble
    assert re.search(r"AttributeError.*_notebook.py", typo.note)


def frames(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("whole", [False, True])
def test_wrong_input_does_not_end_a_page_of_calls(monkeypatch, whole):
    monkeypatch.setenv("PROVING_TRACEBACK", "1" if whole else "")
    with pytest.raises(InputError, match="noise") as caught:
        pg.run("toy/risk", noise=-1.0)
    assert (len(frames(caught.value)) > 5) == whole
    if not whole:
        assert frames(caught.value)[-1] == "call"
        assert caught.value.__suppress_context__


def failing(cfg, key):
    raise ZeroDivisionError("of the user")


def test_an_error_of_one_s_own_code_keeps_its_place(store):
    study = pg.new_study("own", Config, failing, Probes, grid=GRID, seeds=3)
    with pytest.raises(RunError, match="ZeroDivisionError: of the user") as caught:
        pg.run(study, store=store, progress=False)
    assert "all others" not in str(caught.value)
    assert "failing" in frames(caught.value.__cause__ or caught.value)


def test_diverged_cells_are_told(store, capsys):
    study = made(grid={"rate": [0.1, 1e30]})
    ds = pg.run(study, store=store)
    assert f"{ds.attrs['diverged']} of 6 cells diverged" in capsys.readouterr().err
    assert ds.attrs["diverged"]
    pg.run(study, store=store, progress=False)
    assert not capsys.readouterr().err
