import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from jaxtyping import Array, Float

import tiny as small
from provingground import api, planning, programs
from provingground.keys import normal, seed_key, stream
from provingground.programs import Programs
from provingground.replaying import replay
from provingground.store import Store
from provingground.studies.toy import STUDY as TOY
from provingground.study import Experiment, Prediction, Simulator, Study, Trainings
from provingground.train import iterate
from tiny import Config, apart_from_attrs, count_computed, run, tiny


@pytest.fixture
def compiled(monkeypatch):
    """Which programs were compiled, and for how many points and seeds."""
    found = []
    compile = Programs._compile

    def counted(self, program, lowered, wide, deep):
        found.append((program, wide, deep))
        return compile(self, program, lowered, wide, deep)

    monkeypatch.setattr(Programs, "_compile", counted)
    monkeypatch.setattr(programs, "_COMPILED", {})  # of other tests, of equal code
    return found


# ------------------------------------------------------------------------------- lanes


def test_a_cell_alone_is_the_cell_in_lanes(store):
    study = tiny()
    ds = run(study, store)
    planned = planning.job(study, "first", store=store)
    for point in list(planned.sweep.points())[::4]:
        alone = programs.single(study, point, seed=2)
        at = ds.sel(rate=point.config.rate, count=point.config.count, seed=2)
        for name in ("curve", "last", "step"):
            np.testing.assert_allclose(at[name], alone[name], rtol=1e-5, atol=1e-6)


def test_padded_counts_are_unpadded_counts(store):
    ds = api.run(TOY, "risk", samples=[17], noise=[0.5], steps=40, seeds=2, store=store)
    simulator = TOY.simulators["descent"]
    cfg = simulator.config(samples=17, noise=0.5, steps=40)
    for seed in (0, 1):
        plain = jax.jit(lambda key: simulator.simulate(cfg, key))(seed_key("toy", seed))
        at = ds.isel(samples=0, noise=0).sel(seed=seed)
        np.testing.assert_allclose(at.train_loss, plain.train_loss, rtol=1e-5)
        np.testing.assert_allclose(at.test_loss, plain.test_loss, rtol=1e-5)


def test_values_share_a_compilation(store, compiled):
    rates = list(np.linspace(0, 1, 40))
    run(tiny(), store, rate=rates, count=[1, 2, 3, 4, 5, 8], width=[2, 3], seeds=2)
    programs = {program for program, _, _ in compiled}
    assert len(programs) == 4  # things laid out for 4 and for 8, two widths
    assert len(compiled) == len(set(compiled)) == 4


def test_sweeps_of_about_the_same_size_share_a_compilation(store, compiled):
    study = tiny()
    for points, seeds in ((5, 3), (8, 2), (6, 11), (7, 1), (8, 40)):
        run(study, store, rate=list(np.linspace(0, 1, points)), count=[5], seeds=seeds)
    assert [(wide, deep) for _, wide, deep in compiled] == [(8, 4)]


def test_lanes_that_only_fill_up_are_not_trained(store):
    steps = []

    def counted(cfg, key):
        def step(x, t):
            jax.debug.callback(lambda t: steps.append(int(t)), t)
            return x * cfg.rate

        trace = iterate(step, normal(stream(key, "data"), ()), steps=4, at=[0, 4], probe=jnp.abs)
        return small.Probes(trace.probes, trace.last, trace.step)

    ds = run(tiny(how=counted), store, rate=[0.1, 0.2, 0.3], count=[5], seeds=3)
    assert len(steps) == 9 * 4  # and not 4 points times 8 seeds
    assert (ds["last"] != 0).all()


def test_a_program_is_compiled_once_per_process(store, tmp_path, compiled):
    study = tiny()
    run(study, store, lanes=3)
    first = len(compiled)
    run(study, Store(tmp_path / "other"), lanes=3)
    assert len(compiled) == first


@pytest.mark.parametrize("error", [jax.errors.JaxRuntimeError, MemoryError])
def test_out_of_memory_halves_the_lanes(tmp_path, monkeypatch, error):
    study = tiny()
    plain = run(study, Store(tmp_path / "plain"))
    call, widths = Programs._call, []

    def small(self, program, lanes):
        widths.append(lanes.points * len(lanes.seeds))
        if widths[-1] > 2:
            raise error("RESOURCE_EXHAUSTED: out of memory")
        return call(self, program, lanes)

    monkeypatch.setattr(Programs, "_call", small)
    ds = run(study, Store(tmp_path / "small"))
    assert max(widths) > 2 >= min(widths)
    xr.testing.assert_allclose(apart_from_attrs(ds), apart_from_attrs(plain), rtol=1e-6)
    assert {int(n) for n in plain.attrs["lanes"].split(", ")} == {3}
    assert {int(n) for n in ds.attrs["lanes"].split(", ")} <= {1, 2}


def test_lanes_are_halved_seeds_first():
    lanes = programs.Lanes({"rate": np.arange(3.0)}, np.arange(5, dtype=np.int32), 3, 6)
    axis, first, second = lanes.halves()
    assert (axis, first.seeds.tolist(), second.seeds.tolist()) == (0, [0, 1], [2, 3, 4])
    assert [(h.wide, h.deep, h.points) for h in (first, second)] == [(3, 2, 3), (3, 3, 3)]
    axis, first, second = lanes._replace(seeds=lanes.seeds[:1], deep=1).halves()
    assert (axis, first.points, second.points) == (1, 1, 2)
    assert second.configs["rate"].tolist() == [1.0, 2.0]
    assert [(h.wide, h.deep) for h in (first, second)] == [(1, 1), (2, 1)]


# -------------------------------------------------------------------------------- host


class Probes(eqx.Module):
    total: Float[Array, ""]


def simulate(cfg, key):
    return Probes(cfg.rate * jnp.sum(normal(stream(key, "data"), (cfg.width,))))


def study(how=simulate, name="tiny"):
    first = Experiment(
        "first",
        "s",
        Trainings({"rate": [1.0, 2.0]}, 4),
        (),
        lambda ds: None,
    )
    simulators = {"one": Simulator(Config, how, Probes)}
    return Study(name, "t", "c", simulators, lambda cfg: Prediction((), {}), (first,))


def on_host(cfg, key):
    """Branches on a value and leaves jax, which no traced training can."""
    if (type(cfg.rate), type(cfg.width)) != (float, int):
        raise TypeError("plain numbers were asked for")
    drawn = np.asarray(normal(stream(key, "data"), (cfg.width,)))
    return Probes(jnp.asarray(cfg.rate * drawn.sum() if cfg.rate > 1 else 0.0, jnp.float32))


def host_study(how=on_host):
    simulators = {"one": Simulator(Config, how, Probes, host=True)}
    return dataclasses.replace(study(), simulators=simulators)


def test_a_host_simulator_runs_without_a_compiler(store, compiled):
    ds = run(host_study(), store, seeds=3)
    assert compiled == []
    assert (ds.total.sel(rate=1.0) == 0).all()
    traced = run(study(), store, seeds=3)
    np.testing.assert_allclose(ds.total.sel(rate=2.0), traced.total.sel(rate=2.0), rtol=1e-6)


def test_cells_of_a_host_simulator_are_kept_and_found(store, monkeypatch):
    once = run(host_study(), store, seeds=3)
    computed = count_computed(monkeypatch)
    again = run(host_study(), Store(store.path), seeds=4)
    assert sum(computed) == 2  # the new seed, at two rates
    np.testing.assert_array_equal(once.total, again.total.sel(seed=[0, 1, 2]))
    assert api.load(host_study(), "first", seeds=4, store=store).total.notnull().all()


def test_a_host_simulator_can_be_replayed(store):
    ds = run(host_study(), store, seeds=2)
    again = replay(ds, seed=1, rate=2.0, study=host_study())
    assert float(again.probes.total) == float(ds.total.sel(rate=2.0, seed=1))
    assert again.weights is None


@pytest.mark.parametrize(("most", "kept"), [("1000000000", 3), ("1", 1)])
def test_old_programs_are_let_go_where_maps_of_memory_run_out(monkeypatch, tmp_path, most, kept):
    """Processors map hundreds of parts of each program, and a process has a number of maps."""
    monkeypatch.setattr(programs, "_COMPILED", {})
    monkeypatch.setattr(programs, "MOST_MAPS", tmp_path / "most")
    (tmp_path / "most").write_text(most)
    found = [
        api.run(
            TOY,
            "risk",
            dim=dim,
            samples=[dim + 2],
            seeds=3,
            store=tmp_path / "store",
            progress=False,
        )
        for dim in (3, 4, 5)
    ]
    assert len([k for k in programs._COMPILED.values() if k.compiled is not None]) == kept
    assert all(bool(np.isfinite(ds.test_loss).all()) for ds in found)


def test_where_nothing_tells_of_maps_programs_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "MAPS", tmp_path / "none")
    assert not programs.crowded()
