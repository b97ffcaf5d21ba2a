"""What makes two cells the same."""

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from jaxtyping import Array, Float

from provingground import api, identity, planning, programs
from provingground.errors import InputError, RunError
from provingground.grid import plan
from provingground.keys import normal, stream
from provingground.replaying import replay
from provingground.store import Store
from provingground.study import Experiment, Prediction, Simulator, Study, Trainings, cases
from test_grid import planned
from test_grid import study as gridded
from tiny import Config

# ---------------------------------------------------------------------------------- cells

IDS = """
import json, sys
from provingground import planning
planned = planning.job("toy/risk", seeds=2, store=sys.argv[1], settings={"samples": [20, 40]})
known = [i.fingerprint for i in planned.identities.values()]
print(json.dumps([planned.ids.astype(str).tolist(), known]))
"""


def test_equal_settings_have_equal_identities_in_every_process(tmp_path):
    command = [sys.executable, "-c", IDS, str(tmp_path / "there")]
    there = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    job = planning.job("toy/risk", seeds=2, store=tmp_path / "here", settings={"samples": [20, 40]})
    fingerprints = [i.fingerprint for i in job.identities.values()]
    assert json.loads(there.stdout) == [job.ids.astype(str).tolist(), fingerprints]
    assert job.ids.shape == (6, 2)
    assert len(set(job.ids.ravel())) == 12


def ids(setting=None, seeds=(0,), *, fingerprint="f", data="d", owner="tiny", **options):
    """The identities of all cells of a plan, points in grid order."""
    sweep = planned(setting, seeds, **options)
    found = np.full((sweep.cells // len(seeds), len(seeds)), b"", "S32")
    for group in sweep.groups():
        found[group.points] = identity.cell_ids(
            gridded(name=owner), group, fingerprint, data, seeds
        )
    return found


def test_everything_that_matters_changes_the_identity():
    def one(*args, **options):
        (((cell,),),) = (ids(*args, **({"grid": {}} | options)),)
        return cell

    double = {"case": cases({"x": {"precision": "float64"}})}
    found = [
        one(),
        one({"rate": 0.6}),
        one({"count": 3}),
        one({"width": 4}),
        one({"kind": "b"}),
        one(simulator="two"),
        one(grid=double),
        one(seeds=[1]),
        one(fingerprint="g"),
        one(data="e"),
        one(owner="other"),
    ]
    assert len(set(found)) == len(found)
    assert all(len(cell) == 32 for cell in found)
    assert one({"rate": 0.5, "count": 4}) == found[0]


def test_seeds_have_identities_of_their_own():
    (many,) = ids(grid={}, seeds=range(100))
    assert len(set(many)) == 100
    assert ids(grid={}, seeds=[7]).tolist() == [[many[7]]]


def test_no_rate_is_no_rate_whatever_its_sign():
    assert ids({"rate": [0.0]}).tolist() == ids({"rate": [-0.0]}).tolist()


def test_the_identity_is_that_of_the_setting_not_of_the_grid():
    wide = ids({"rate": [1.0, 2.0], "count": [3, 4]}, range(4))
    narrow = ids({"rate": 2.0, "count": [4]}, [3], name="second")
    assert narrow.tolist() == [[wide[3, 3]]]


def test_data_are_told_apart_by_content_type_and_shape():
    one = np.arange(6.0)
    found = [one, one + 1, one.astype(np.float32), one.reshape(2, 3), {"x": one}, [one, one]]
    assert len({identity.digest_of_data(d) for d in found}) == len(found)
    assert identity.digest_of_data({"x": one}) == identity.digest_of_data({"x": one.copy()})
    assert identity.digest_of_data(None) == ""


# -------------------------------------------------------------------------------- programs


class Probes(eqx.Module):
    total: Float[Array, ""]


def simulate(cfg, key):
    return Probes(cfg.rate * jnp.sum(normal(stream(key, "data"), (cfg.width,))))


def renamed(settings, random_key):
    # the same arithmetic under other names, with a comment

    drawn = normal(stream(random_key, "data"), (settings.width,))
    return Probes(settings.rate * jnp.sum(drawn))


def changed(cfg, key):
    return Probes(2.0 * cfg.rate * jnp.sum(normal(stream(key, "data"), (cfg.width,))))


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


def lowered(how, setting=None):
    owner = study(how=how)
    point = next(plan(owner, owner.experiments[0], "quick", setting).points())
    return identity.lowered_text(owner, point.program, point.config, None)[0]


def test_names_and_comments_leave_the_program_and_arithmetic_changes_it():
    assert lowered(simulate) == lowered(renamed)
    assert lowered(simulate) != lowered(changed)


def test_values_leave_the_program_and_shapes_change_it():
    assert lowered(simulate, {"rate": 0.9}) == lowered(simulate)
    assert lowered(simulate, {"width": 4}) != lowered(simulate)


def test_the_program_does_not_depend_on_the_study_s_name():
    owner = study(name="other")
    point = next(plan(owner, owner.experiments[0]).points())
    text, _ = identity.lowered_text(owner, point.program, point.config, None)
    assert len(text) == len(lowered(simulate))


def identified(how, store, trace=True, **options):
    owner = study(how=how, **options)
    point = next(plan(owner, owner.experiments[0]).points())
    return identity.identify(owner, [point], None, "", store, trace)[point.program]


def test_fingerprints_are_kept_and_not_lowered_again(store, monkeypatch):
    first = identified(simulate, store)
    text = lowered(simulate).encode()
    assert first.fingerprint == first.lowered == hashlib.sha256(text).hexdigest()[:40]
    assert first.known
    monkeypatch.setattr(identity, "lowered_text", None)
    assert identified(simulate, Store(store.path), trace=False) == first


@pytest.mark.parametrize("other", [renamed, changed])
def test_a_fingerprint_is_that_of_what_is_computed(store, other):
    same = identified(simulate, store).fingerprint == identified(other, store).fingerprint
    assert same == (other is renamed)


@pytest.mark.parametrize("note", ["", "f" * 39, "F" * 40, "f" * 41, "\n", "g" * 40, " " + "f" * 40])
def test_a_note_that_is_no_fingerprint_is_not_taken_for_one(store, note):
    first = identified(simulate, store)
    store.set_note("fingerprints", first.runs, note)
    assert identified(simulate, Store(store.path)) == first
    assert store.note("fingerprints", first.runs) == first.lowered


def test_what_is_set_in_jax_is_no_other_code_but_another_name(store):
    first = identified(simulate, store)
    with jax.threefry_partitionable(False):
        other = identified(simulate, store)
    assert other.runs != first.runs
    assert other.lowered != first.lowered  # as it draws other numbers
    assert identified(simulate, store) == first


def test_the_precision_of_products_that_is_set_outside_does_not_count(store):
    def product(cfg, key):
        x = normal(stream(key, "data"), (cfg.width, cfg.width))
        return Probes(cfg.rate * jnp.sum(x @ x))

    first = lowered(product)
    with jax.default_matmul_precision("bfloat16"):
        assert lowered(product) == first


def test_adopted_results_are_found_by_the_program_not_by_the_code(store):
    new = identified(changed, store)
    owner = study(how=changed)
    program = next(plan(owner, owner.experiments[0]).points()).program
    identity.adopt(owner, program, new, "0" * 40, store)
    again = identified(changed, store)
    assert (again.fingerprint, again.lowered) == ("0" * 40, new.lowered)
    assert identified(simulate, store).fingerprint != "0" * 40


# ---------------------------------------------------------- what code alone does not tell


def reads_a_file(path):
    def simulate(cfg, key):
        with open(path) as file:
            return Probes(cfg.rate * float(file.read()))

    return simulate


def loads_an_array(path):
    def simulate(cfg, key):
        return Probes(cfg.rate * jnp.asarray(np.memmap(path, np.float32, "r")[0]))

    return simulate


def reads_by_an_installed_package(path):
    """Nothing in the code says that a file is read."""

    def simulate(cfg, key):
        return Probes(cfg.rate * float(xr.open_dataset(path, engine="scipy").x))

    return simulate


def test_what_reads_a_file_is_lowered_each_time(store, tmp_path, monkeypatch):
    path, array, dataset = (tmp_path / name for name in ("a.txt", "a.bin", "a.nc"))

    def written(value):
        path.write_text(str(value))
        array.write_bytes(np.float32(value).tobytes())
        dataset.write_bytes(bytes(xr.Dataset({"x": float(value)}).to_netcdf(engine="scipy")))

    for how in (
        reads_a_file(path),
        loads_an_array(array),
        reads_by_an_installed_package(str(dataset)),
    ):
        written(2)
        first = identified(how, store)
        assert not first.known
        assert identified(how, store) == first
        written(3)
        assert identified(how, store).fingerprint != first.fingerprint
        written(2)
        assert identified(how, store).fingerprint == first.fingerprint
    assert not list(store.path.rglob("fingerprints/*"))


def test_a_file_that_changes_while_it_runs_ends_the_run(store, tmp_path, monkeypatch):
    path = tmp_path / "rate"
    path.write_text("2")
    lower = programs.Programs._lower

    def late(self, program, configs, wide, deep):
        path.write_text("3")
        return lower(self, program, configs, wide, deep)

    monkeypatch.setattr(programs.Programs, "_lower", late)
    monkeypatch.setattr(programs, "_COMPILED", {})  # of other tests, of equal code
    owner = study(how=reads_a_file(path))
    with pytest.raises(RunError, match="another one each time"):
        api.run(owner, "first", store=store)
    assert not list(store.path.rglob("*.nc"))


def by_the_clock(cfg, key):
    return Probes(cfg.rate * float(time.perf_counter_ns() % 1_000_000))


def by_chance(cfg, key):
    return Probes(cfg.rate * np.float32(np.random.uniform()))  # noqa: NPY002


@pytest.mark.parametrize("how", [by_the_clock, by_chance])
def test_what_is_another_program_each_time_is_refused(store, how):
    with pytest.raises(RunError, match="'one' of tiny is another one each time"):
        api.run(study(how=how), "first", store=store)
    assert not list(store.path.rglob("*.nc"))


def by_the_environment(cfg, key):
    return Probes(cfg.rate * float(os.environ["RATE"]) + jnp.sum(normal(key, (2,))))


def test_the_environment_that_is_read_while_tracing_counts(store, monkeypatch):
    found = []
    for rate in ("1.0", "2.0", "1.0"):
        monkeypatch.setenv("RATE", rate)
        found.append(api.run(study(how=by_the_environment), "first", store=store).total)
    assert found[0].identical(found[2])
    np.testing.assert_allclose(
        found[1] - found[0], (found[0].rate * xr.ones_like(found[0])).values, rtol=1e-5
    )


# ------------------------------------------------------------------- code that is changed


def doubled(x):
    return x * 2


def outer(cfg, key):
    return Probes(cfg.rate * doubled(jnp.sum(normal(stream(key, "data"), (cfg.width,)))))


def test_code_that_changes_while_it_runs_ends_the_run(store, monkeypatch):
    lower = programs.Programs._lower

    def late(self, program, configs, wide, deep):
        monkeypatch.setitem(globals(), "doubled", lambda x: x * 3)
        return lower(self, program, configs, wide, deep)

    monkeypatch.setattr(programs.Programs, "_lower", late)
    monkeypatch.setattr(programs, "_COMPILED", {})  # of other tests, of equal code
    with pytest.raises(RunError, match="was changed while it ran"):
        api.run(study(how=outer), "first", store=store)
    assert not list(store.path.rglob("*.nc"))


def test_a_patch_is_seen_by_one_cell_and_by_replay(store, monkeypatch):
    owner = study(how=outer)
    point = next(plan(owner, owner.experiments[0]).points())
    before = programs.single(owner, point, 0)["total"]
    monkeypatch.setitem(globals(), "doubled", lambda x: x * 6)
    np.testing.assert_allclose(programs.single(owner, point, 0)["total"], 3 * before, rtol=1e-6)
    ds = api.run(owner, "first", store=store)
    again = replay(ds, seed=0, rate=point.config.rate, study=owner)
    np.testing.assert_allclose(again.probes.total, 3 * before, rtol=1e-6)


@jax.jit
def inner(x):
    return doubled(x)


def with_inner(cfg, key):
    return Probes(cfg.rate * inner(jnp.sum(normal(stream(key, "data"), (cfg.width,)))))


def test_a_program_that_was_compiled_of_other_code_is_not_called(tmp_path, monkeypatch):
    owner = study(how=with_inner)
    before = api.run(owner, "first", store=tmp_path / "a").total
    monkeypatch.setitem(globals(), "doubled", lambda x: x * 10)
    np.testing.assert_allclose(
        api.run(owner, "first", store=tmp_path / "b").total, 5 * before, rtol=1e-6
    )
    monkeypatch.undo()
    assert api.run(owner, "first", store=tmp_path / "c").total.identical(before)


# ---------------------------------------------------------------------------------- host


def on_host(cfg, key):
    drawn = np.asarray(normal(stream(key, "data"), (cfg.width,)))
    return Probes(jnp.float32(doubled(cfg.rate * drawn.sum())))


def host_study(how=on_host):
    return dataclasses.replace(
        study(), simulators={"one": Simulator(Config, how, Probes, host=True)}
    )


def test_a_patch_of_a_host_simulator_makes_other_cells(store, monkeypatch):
    before = api.run(host_study(), "first", store=store).total
    monkeypatch.setitem(globals(), "doubled", lambda x: x * 4)
    np.testing.assert_allclose(
        api.run(host_study(), "first", store=store).total, 2 * before, rtol=1e-6
    )
    monkeypatch.undo()
    assert api.run(host_study(), "first", store=store).total.identical(before)


def test_a_host_simulator_that_changes_while_it_runs_ends_the_run(store, monkeypatch):
    def patched_meanwhile(study, *args, _run=programs.run):
        monkeypatch.setitem(globals(), "doubled", lambda x: x * 5)
        return _run(study, *args)

    monkeypatch.setattr(programs, "run", patched_meanwhile)
    with pytest.raises(RunError, match="was changed while it ran"):
        api.run(host_study(), "first", store=store)
    assert not list(store.path.rglob("*.nc"))


def test_a_closure_runs_on_the_host_and_what_it_holds_counts(store):
    def times(factor):
        return lambda cfg, key: Probes(jnp.float32(factor * cfg.rate))

    for factor in (2.0, 3.0, 2.0):
        ds = api.run(host_study(times(factor)), "first", store=store)
        np.testing.assert_allclose(ds.total.isel(seed=0), factor * ds.rate)


@pytest.mark.parametrize("how", [by_the_clock, by_the_environment])
def test_a_host_simulator_whose_code_does_not_tell_is_refused(store, how):
    with pytest.raises(InputError, match=r"its code does not tell.*it uses (time|os)\."):
        api.run(host_study(how), "first", store=store)


# ------------------------------------------------------------------------------ callbacks


def called_back(x):
    return np.asarray(doubled(x), np.float32)


def with_callback(cfg, key):
    kind = jax.ShapeDtypeStruct((), jnp.float32)
    return Probes(jax.pure_callback(called_back, kind, cfg.rate, vmap_method="sequential"))


def test_functions_that_a_program_calls_back_count(store, monkeypatch):
    owner = study(how=with_callback)
    before = api.run(owner, "first", store=store).total
    monkeypatch.setitem(globals(), "doubled", lambda x: x * 8)
    np.testing.assert_allclose(api.run(owner, "first", store=store).total, 4 * before)


# ----------------------------------------------------------------- in a process of its own


def test_a_new_process_keeps_fingerprints_and_the_next_one_finds_them(tmp_path):
    """What jax itself reads, to find its devices or compiled programs, is no input."""
    run = (
        "import sys; from provingground import identity, planning; hashed = identity._hashed\n"
        "identity._hashed = lambda *args: (print('lowered'), hashed(*args))[1]\n"
        "settings = dict(samples=[40], noise=[1.0], steps=11)\n"
        "planning.job('toy/risk', seeds=1, store=sys.argv[1], settings=settings).identities"
    )
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_PLATFORMS"):
        environment.pop(name, None)
    told = [
        subprocess.run(
            [sys.executable, "-c", run, str(tmp_path / "store")],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert told == [["lowered"], []]
