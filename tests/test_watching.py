"""What is watched is the cell: the same probes at the end, and on the way those of its steps."""

import jax.numpy as jnp
import numpy as np
import pytest

from provingground import api, grid, planning, programs, registry
from provingground.errors import DataMissing
from provingground.programs import data_of, single
from provingground.train import iterate
from provingground.watching import FRAMES, Watched, deviation, with_frames
from tiny import Config, Probes, tiny, trained

CLOSE = 1e-5


def watched(owner, which, seed=0, program=None):
    """A cell's probes when it is watched, and by itself, and what was heard."""
    sweep = grid.plan(owner, which, "quick", yes=True)
    point = next(p for p in sweep.points() if program in (None, p.program.simulator))
    data = data_of(owner, point.program.data)
    heard = []
    found = Watched(owner, point, data).run(point.config, seed, heard.append)
    return found, single(owner, point, seed), heard


def test_a_watched_training_ends_like_the_cell_and_tells_its_steps():
    study = tiny()
    found, alone, heard = watched(study, study.experiments[0])
    assert deviation(found, alone) <= CLOSE
    assert heard[0].step == 0
    assert heard[-1].step == heard[-1].steps == 4
    assert {frame.training for frame in heard} == {0}
    curve = {frame.step: float(frame.probes["curve"]) for frame in heard}
    for step, value in zip(alone["step"], alone["curve"], strict=True):
        assert curve[int(step)] == pytest.approx(float(value), rel=CLOSE)
    assert sorted(curve) == [0, 1, 2, 3, 4]


def test_values_share_a_program_and_seeds_too():
    study = tiny()
    sweep = grid.plan(study, study.experiments[0], "quick")
    points = [p for p in sweep.points() if p.config.count == 3]
    assert len(points) > 1
    seen = Watched(study, points[0], None)
    seen.compile()
    compiled = seen._compiled
    for point in points:
        for seed in (0, 7):
            found = seen.run(point.config, seed, lambda frame: None)
            assert deviation(found, single(study, point, seed)) <= CLOSE
    assert seen._compiled is compiled


def test_a_training_that_stops_early_tells_where():
    def stopping(cfg, key):
        trace = iterate(
            lambda x, t: x + 1.0, jnp.array(0.0), steps=1000, at=[0, 10, 1000],
            probe=lambda x: {"curve": x}, until=lambda x: x >= 37,
        )  # fmt: skip
        return Probes(trace.probes["curve"], trace.last, trace.step)

    study = tiny(how=stopping)
    found, alone, heard = watched(study, study.experiments[0])
    assert deviation(found, alone) <= CLOSE
    assert heard[-1].step == 37
    assert float(heard[-1].probes["curve"]) == 37


def test_a_cell_without_a_training_is_watched_in_silence():
    study = tiny(how=lambda cfg, key: Probes(jnp.zeros(3), jnp.array(cfg.rate), jnp.arange(3)))
    found, alone, heard = watched(study, study.experiments[0])
    assert deviation(found, alone) <= CLOSE
    assert heard == []


def test_a_training_inside_of_a_map_does_no_harm():
    def several(cfg, key):
        import jax

        found = jax.vmap(lambda s: trained(cfg, key, s))(jnp.array([1.0, 2.0]))
        return jax.tree.map(lambda x: x[1], found)

    study = tiny(how=several)
    found, alone, _ = watched(study, study.experiments[0])
    assert deviation(found, alone) <= CLOSE


@pytest.mark.parametrize("at", [[0], [5], [0, 1, 4], [100], [0, 3, 3, 9000], list(range(301))])
def test_steps_stay_among_the_further_ones(at):
    stops, places = map(np.asarray, with_frames(jnp.array(at, jnp.int32), FRAMES))
    assert (np.diff(stops) >= 0).all()
    assert stops[places].tolist() == at
    assert stops.min() >= 0
    assert stops.max() == at[-1]
    if at[-1] >= 1000:
        assert len(set(stops.tolist())) > FRAMES / 2


def test_deviations_are_relative_and_see_what_is_not_finite():
    a = {"x": np.array([1.0, 100.0]), "n": np.array([1, 2])}
    assert deviation(a, a) == 0
    assert deviation({"x": np.array([1.0, 101.0])}, a) == pytest.approx(0.01)
    assert deviation({"x": np.array([1.0, np.nan])}, a) == np.inf
    assert deviation({"x": np.array([1.0])}, a) == np.inf
    tiny, noise = {"x": np.array([1e-15])}, {"x": np.array([3e-15])}
    assert deviation(tiny, noise) < 1e-8
    assert deviation({"x": np.array([1e-8])}, {"x": np.array([2e-8])}) == pytest.approx(0.01)
    both = {"x": np.array([np.nan, 1.0])}
    assert deviation(both, both) == 0


def test_what_is_watched_equals_what_the_engine_stores(store):
    study = tiny()
    found, _, _ = watched(study, study.experiments[0])
    ds = api.run(study, "first", store=store, progress=False)
    cell = ds.isel(rate=0, count=0, seed=0)
    kept = {"curve": cell.curve.values, "last": cell["last"].values}
    assert deviation({n: found[n] for n in kept}, kept) <= CLOSE


def test_precision_is_that_of_the_simulator():
    study = tiny()
    sweep = planning.job(study, "first", settings={}).sweep
    point = next(sweep.points())
    program = point.program._replace(simulator="two", precision="float64")
    twice = point._replace(program=program)
    found = Watched(study, twice, None).run(point.config, 0, lambda frame: None)
    assert found["last"].dtype == np.float64
    assert deviation(found, single(study, twice, 0)) <= CLOSE
    assert isinstance(point.config, Config)


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_the_headline_of_every_study_can_be_watched(name):
    owner = registry.study(name)
    try:
        found, alone, heard = watched(owner, owner.experiments[0])
    except DataMissing as missing:
        pytest.skip(str(missing))
    assert deviation(found, alone) <= CLOSE
    assert heard
    programs.forget_compiled()
