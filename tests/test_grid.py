import dataclasses
import json
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Array, Float

from provingground.config import config, par, pars
from provingground.errors import InputError
from provingground.grid import plan
from provingground.keys import normal, stream
from provingground.parsing import parse_values
from provingground.study import (
    Experiment,
    Prediction,
    Refine,
    Simulator,
    Study,
    Trainings,
    axis,
    cases,
)


@config
class Config:
    count: int = par(4, "n", "things", low=1, high=50, value=True, pad=4)
    rate: float = par(0.5, r"\eta", "rate", low=0, high=10)
    width: int = par(3, "w", "width", low=1)
    kind: str = par("a", "k", "kind", choices=("a", "b"))
    fast: bool = par(True, "f", "fast")


@config
class Free:
    free: float = par(0.0, "f", "any number")


class Probes(eqx.Module):
    total: Float[Array, ""]


def simulate(cfg, key):
    return Probes(cfg.rate * jnp.sum(normal(stream(key, "data"), (cfg.width,))))


def changed(cfg, key):
    return Probes(2.0 * cfg.rate * jnp.sum(normal(stream(key, "data"), (cfg.width,))))


def experiment(name="first", **options):
    trainings = Trainings(**({"grid": {"rate": [1.0, 2.0]}, "seeds": 4} | options))  # pyright: ignore
    return Experiment(name, "s", trainings, (), lambda ds: None)


def study(*experiments, how=simulate, **options):
    simulators = {
        "one": Simulator(Config, how, Probes),
        "two": Simulator(Config, changed, Probes),
        "free": Simulator(Free, changed, Probes),
    }
    first = experiments or (experiment(),)
    made = Study("tiny", "t", "c", simulators, lambda cfg: Prediction((), {}), first)
    return dataclasses.replace(made, **options)


def planned(overrides=None, seeds=None, *, scale: Any = "quick", yes: Any = False, **options):
    first = experiment(**options)
    return plan(study(first), first, scale, overrides, seeds, yes=yes)


def points(*args, **options):
    return list(planned(*args, **options).points())


# ------------------------------------------------------------------------------ planning


def test_a_sweep_is_a_product_of_axes_and_seeds():
    sweep = planned(grid={"rate": [1.0, 2.0], "width": [3, 4, 5], "count": 7})
    assert [a.name for a in sweep.axes] == ["rate", "width"]
    assert sweep.fixed == {"count": 7}
    assert sweep.seeds == (0, 1, 2, 3)
    assert sweep.cells == 24
    found = [(p.config.rate, p.config.width, p.config.count) for p in sweep.points()]
    assert found == [(r, w, 7) for r in (1.0, 2.0) for w in (3, 4, 5)]


def test_quick_overrides_paper():
    options = dict(grid={"rate": [1, 2, 3], "width": 9}, quick={"rate": [1, 2], "seeds": 2})
    assert planned(**options).cells == 4
    assert planned(**options, scale="paper").cells == 12


def test_an_experiment_may_exist_at_paper_scale_only():
    with pytest.raises(InputError, match="'paper' only"):
        planned(paper_only=True)
    assert planned(paper_only=True, scale="paper").cells == 8


def test_overrides_replace_values_and_add_axes():
    sweep = planned({"rate": [3.0], "width": [1, 2], "kind": "b"})
    assert {a.name: a.labels for a in sweep.axes} == {"rate": [3.0], "width": [1, 2]}
    assert sweep.fixed == {"kind": "b"}


def test_an_axis_stays_an_axis_when_one_value_is_given():
    assert [a.labels for a in planned({"rate": 3}).axes] == [[3.0]]


def test_seeds_are_a_number_or_a_list():
    assert planned(seeds=2).seeds == (0, 1)
    assert planned(seeds=[5, 7]).seeds == (5, 7)
    assert planned(seeds=range(3, 6)).seeds == (3, 4, 5)
    assert planned(seeds=np.int64(2)).seeds == (0, 1)
    assert planned(seeds=np.array([5, 7])).seeds == (5, 7)
    assert planned(seeds=(np.int32(5), 7)).seeds == (5, 7)
    assert all(type(s) is int for s in planned(seeds=np.array([5, 7])).seeds)


@pytest.mark.parametrize("rates", [np.array([3.0, 4.0]), np.array([3.0]), np.linspace(1, 2, 3)])
def test_values_may_be_an_array(rates):
    (made,) = planned({"rate": rates}).axes
    assert made.labels == rates.tolist()
    (added,) = planned({"count": np.array([1, 2])}, grid={}).axes
    assert added.labels == [1, 2]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"rates": 1}, "unknown parameter 'rates'; did you mean 'rate'"),
        ({"rate": -1}, "rate = -1 is not allowed.*numbers from 0 to 10"),
        ({"rate": [1, math.nan]}, "rate = nan is not allowed"),
        ({"rate": []}, "rate has an empty list"),
        ({"rate": [1, 2, 1.0]}, "rate lists a value twice"),
        ({"count": 0}, "count = 0 is not allowed.*whole numbers from 1 to 50"),
        ({"count": math.inf}, "count = inf is not allowed"),
        ({"width": "wide"}, "width = 'wide' is not allowed"),
        ({"kind": "c"}, "one of a, b"),
        ({"fast": 1}, "true or false"),
        ({"rate": "1"}, "rate = '1' is not allowed"),
        ({"rate": True}, "rate = True is not allowed"),
        ({"rate": b"1"}, "is not allowed"),
        ({"rate": {1.0}}, "is not allowed"),
        ({"rate": [[1.0]]}, "is not allowed"),
        ({"rate": np.ones((2, 2))}, "is not allowed"),
        ({"width": 2**31}, "at most 2147483647"),
        ({"width": 10**5000}, "at most 2147483647"),
        ({3: 1}, "unknown parameter '?3"),
    ],
)
def test_bad_settings_are_refused_before_any_work(overrides, message):
    with pytest.raises(InputError, match=message):
        planned(overrides)


@pytest.mark.parametrize(
    "seeds",
    [
        0,
        [],
        -3,
        [1, 1],
        [0.5],
        1.5,
        True,
        [True],
        b"3",
        "3",
        {1, 2},
        math.nan,
        math.inf,
        np.array([0.0, 1.0]),
        np.array([[0, 1]]),
        range(-1, 3),
    ],
)
def test_bad_seeds_are_refused(seeds):
    with pytest.raises(InputError, match="seed"):
        planned(seeds=seeds)


@pytest.mark.parametrize("seed", [2**31, 2**40, 2**64])
def test_seeds_that_no_program_takes_are_refused(seed):
    with pytest.raises(InputError, match="seed"):
        planned(seeds=[seed])


def test_a_grid_with_an_unknown_name_is_refused():
    for wrong in ({"rates": [1.0]}, {"case": cases({"x": {"rates": 1.0}})}):
        with pytest.raises(InputError, match="did you mean 'rate'"):
            planned(grid=wrong)


CASES = {"case": cases({"slow": {"rate": 0.1}, "fast": {"rate": 1.0, "simulator": "two"}})}


def test_cases_label_an_axis_and_choose_simulator_and_precision():
    double = cases({"single": {}, "double": {"precision": "float64"}})
    sweep = planned(grid={**CASES, "numerics": double})
    found = [(p.config.rate, p.program.simulator, p.program.precision) for p in sweep.points()]
    assert found == [
        (0.1, "one", "float32"),
        (0.1, "one", "float64"),
        (1.0, "two", "float32"),
        (1.0, "two", "float64"),
    ]
    assert sweep.axes[0].labels == ["slow", "fast"]


def test_some_cases_can_be_chosen():
    assert planned({"case": ["fast"]}, grid=CASES).axes[0].labels == ["fast"]
    assert planned({"case": "slow"}, grid=CASES).axes[0].labels == ["slow"]
    with pytest.raises(InputError, match="did you mean 'fast'"):
        planned({"case": ["faster"]}, grid=CASES)
    with pytest.raises(InputError, match="rate is set by case"):
        planned({"rate": 0.3}, grid=CASES)


def test_an_axis_of_its_own_is_turned_into_parameters():
    options = dict(
        grid={
            "count": [2, 4],
            "load": axis([1, 3], "L", "load", sets=lambda s: {"rate": s["load"] / s["count"]}),
        },
    )
    sweep = planned(**options)
    assert [(a.name, a.labels) for a in sweep.axes] == [("count", [2, 4]), ("load", [1.0, 3.0])]
    assert [p.config.rate for p in sweep.points()] == [0.5, 1.5, 0.25, 0.75]
    assert sweep.table["load"].label == "load, $L$"
    assert [p.config.rate for p in points({"load": [2.0], "count": 4}, **options)] == [0.5]
    with pytest.raises(InputError, match=r"rate = 30\.0 is not allowed"):
        points({"load": [60.0]}, **options)


# ---------------------------------------------------------------------------- how many


def test_a_million_cells_ask_and_a_hundred_million_are_refused():
    rates = {"rate": list(np.linspace(0, 1, 1000))}
    assert planned(rates, 1000).cells == 10**6
    with pytest.raises(InputError, match=r"1e\+06 cells: say yes"):
        planned(rates, 1001)
    assert planned(rates, 1001, yes=True).cells == 1_001_000
    with pytest.raises(InputError, match=r"more than the 1e\+08 allowed"):
        planned(rates, 10**6, yes=True)


@pytest.mark.parametrize("seeds", [10**9, 10**30, range(10**12)])
def test_too_many_seeds_are_refused_without_listing_them(seeds):
    with pytest.raises(InputError, match="allowed"):
        planned(seeds=seeds, yes=True)


def test_too_many_values_are_refused_without_listing_them():
    with pytest.raises(InputError, match="allowed"):
        planned({"rate": range(10**12)}, yes=True)


# ---------------------------------------------------------------- what cannot be chosen


def twice(settings):
    return {"width": 2 * settings.get("count", 4)} if settings.get("rate", 0.5) > 1 else {}


TWICE = {"rate": axis([1.0, 2.0], sets=twice)}


def test_what_is_derived_cannot_be_set():
    with pytest.raises(InputError, match=r"width.*derives it from count and rate"):
        planned({"width": 3, "count": 2, "rate": [2.0]}, grid=TWICE)
    sweep = planned({"width": 3, "rate": [0.5, 2.0]}, grid=TWICE)
    with pytest.raises(InputError, match="width cannot be set"):
        sweep.groups()  # not at its first point


def test_what_is_not_derived_can_be_set():
    sweep = planned({"width": 3, "rate": [0.1, 0.5]}, grid=TWICE)
    assert {p.config.width for p in sweep.points()} == {3}


def test_a_plan_can_be_made_again_from_its_settings():
    rates = axis((1.0, 2.0), sets=twice)
    options: dict[str, Any] = dict(grid={"count": 2, "width": 5, "rate": rates})
    sweep = planned({"count": 3}, **options)
    settings = {**sweep.fixed, **{a.name: list(a.labels) for a in sweep.axes}}
    again = planned(json.loads(json.dumps(settings)), **options)
    assert list(again.points()) == list(sweep.points())
    one = planned(settings | {"rate": 2.0}, **options)
    assert list(one.points()) == list(sweep.points())[1:]


@pytest.mark.parametrize(("labels", "says"), [(["x", "z"], "did you mean|Known: x"), ([3], "3"),
                                              ([], "different"), (["x", "x"], "different"),
                                              (None, "None")])  # fmt: skip
def test_cases_that_are_none_are_refused(labels, says):
    variants = cases({"x": {"width": 3}, "y": {"width": 4}})
    with pytest.raises(InputError, match=says):
        planned({"variant": labels}, grid={"variant": variants})


@pytest.mark.parametrize("rates", [[1.0, 3.0, 2.0], [3.0, 1.0, 2.0]])
def test_a_bisected_axis_has_its_values_in_order(rates):
    refine = Refine("rate", "total", 0.0)
    with pytest.raises(InputError, match="in order"):
        planned({"rate": rates}, refine=refine)
    for fine in (sorted(rates), sorted(rates, reverse=True), [2.0]):
        assert planned({"rate": fine}, refine=refine).axes[0].labels == fine


def test_values_that_the_precision_cannot_hold_are_refused():
    for values in (1e39, [1.0, -1e39]):
        sweep = planned({"free": values}, grid={}, simulator="free")
        with pytest.raises(InputError, match=r"free = .*e\+39.*from -3.403e\+38 to 3.403e\+38"):
            sweep.groups()
    exact = planned({"free": 1e39}, grid={"p": cases({"64": {"precision": "float64"}})},
                    simulator="free")  # fmt: skip
    assert exact.groups()[0].values.tolist() == [[1e39]]


# ------------------------------------------------------------------------------ reading

RATE, COUNT, KIND, FAST = (pars(Config)[n] for n in ("rate", "count", "kind", "fast"))


@pytest.mark.parametrize(
    ("p", "text", "values"),
    [
        (RATE, "2", 2.0),
        (RATE, " 1e-3 ", 1e-3),
        (RATE, "1,2.5", [1.0, 2.5]),
        (RATE, "1,", [1.0]),
        (RATE, "0:1:3", [0.0, 0.5, 1.0]),
        (RATE, "1:0:3", [1.0, 0.5, 0.0]),
        (RATE, "3:5:1", [3.0]),
        (COUNT, "7", 7),
        (COUNT, "1,2", [1, 2]),
        (COUNT, "1:3:5", [1, 2, 3]),
        (COUNT, "1e1", 10),
        (COUNT, "1:16:5log", [1, 2, 4, 8, 16]),
        (KIND, "b,a", ["b", "a"]),
        (FAST, "true", True),
        (FAST, "0,TRUE", [False, True]),
    ],
)
def test_values_are_read(p, text, values):
    found = parse_values(p, text)
    assert found == values
    assert type(found) is type(values)


def test_log_spacing_is_even_in_the_logarithm():
    np.testing.assert_allclose(parse_values(RATE, "0.01:1:3log"), [0.01, 0.1, 1], rtol=1e-12)


@given(st.floats(0, 10), st.floats(0, 10), st.integers(2, 30))
def test_spaced_values_keep_their_ends_and_stay_in_range(low, high, n):
    found = parse_values(RATE, f"{low!r}:{high!r}:{n}")
    assert (found[0], found[-1]) == (low, high)
    assert all(0 <= v <= 10 for v in found)


@pytest.mark.parametrize(
    ("p", "text", "message"),
    [
        (RATE, "much", "rate = 'much' is not allowed"),
        (RATE, "nan", "is not allowed"),
        (RATE, "inf", "is not allowed"),
        (RATE, "1,nan", "is not allowed"),
        (RATE, "-1", "numbers from 0 to 10"),
        (RATE, "", "empty list"),
        (RATE, " , ,", "empty list"),
        (RATE, "1,,2", "rate = '' is not allowed"),
        (RATE, ",1", "rate = '' is not allowed"),
        (RATE, "1,2,,", "rate = '' is not allowed"),
        (RATE, "1_0", "rate = '1_0' is not allowed"),
        (RATE, "0x1", "is not allowed"),
        (RATE, "\uff11", "is not allowed"),
        (RATE, "\u0661", "is not allowed"),
        (RATE, "1e", "is not allowed"),
        (RATE, ".", "is not allowed"),
        (RATE, "1 2", "is not allowed"),
        (RATE, "9" * 5000, "is not allowed"),
        (COUNT, "1_0", "count = '1_0' is not allowed"),
        (COUNT, "9" * 5000, "is not allowed"),
        (COUNT, "1e-1", "whole numbers"),
        (RATE, "0:1", "not understood"),
        (RATE, "0:1_0:3", "not understood"),
        (RATE, "0:1:\uff13", "not understood"),
        (RATE, "0:1:2:3", "not understood"),
        (RATE, "0:1:x", "not understood"),
        (RATE, "0:1:2.5", "not understood"),
        (RATE, "::", "not understood"),
        (RATE, "0:1:0", "n >= 1"),
        (RATE, "0:1:-4", "n >= 1"),
        (RATE, "0:1:4log", "positive ends"),
        (RATE, "nan:1:4", "numbers from 0 to 10"),
        (RATE, "0:inf:4", "numbers from 0 to 10"),
        (RATE, "0:11:4", "is not allowed"),
        (COUNT, "2.5", "whole numbers"),
        (COUNT, "1:51:4", "whole numbers"),
        (COUNT, "1:inf:4", "whole numbers"),
        (COUNT, "nan:4:4", "whole numbers"),
        (COUNT, "1e400:4:4", "whole numbers"),
        (FAST, "yes", "true or false"),
        (FAST, "0:1:2", "true or false"),
        (KIND, "c", "one of a, b"),
        (KIND, "a:b:2", "not understood"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_can(p, text, message):
    with pytest.raises(InputError, match=message):
        parse_values(p, text)


@pytest.mark.parametrize("spacing", ["", "log"])
@pytest.mark.parametrize("n", [10**9, 10**30])
def test_huge_numbers_of_values_are_refused_without_making_them(monkeypatch, n, spacing):
    for name in ("linspace", "geomspace"):
        monkeypatch.setattr(np, name, None)
    with pytest.raises(InputError, match="allowed"):
        parse_values(RATE, f"1:2:{n}{spacing}")


# ------------------------------------------------------------------------------- groups


def test_groups_are_the_points_as_arrays():
    options = dict(rate=[0.5, 1 / 3], width=[2, 3], count=[3, 9])
    sweep = planned(options, grid={}, seeds=2)
    points, groups = list(sweep.points()), sweep.groups()
    assert len(groups) == len({p.program for p in points}) == 4
    assert sorted(n for g in groups for n in g.points) == list(range(8))
    for group in groups:
        some = group.configs(np.arange(len(group.points)))
        assert some.count.dtype == np.int32
        assert some.rate.dtype == np.float32
        for row, number in enumerate(group.points):
            assert points[number].program == group.program
            config = points[number].config
            assert (some.count[row], some.width) == (config.count, config.width)
            assert some.rate[row] == np.float32(config.rate)
