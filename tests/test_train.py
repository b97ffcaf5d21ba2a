import os
import subprocess
import sys
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provingground import lanes
from provingground.studies.benign_overfitting import model as benign
from provingground.train import descend, flow, iterate, lanes_run, log_steps, taped


@given(st.data())
def test_log_steps_are_distinct_and_end_at_the_last_step(data):
    steps = data.draw(st.integers(1, 5000))
    count = data.draw(st.integers(1, min(steps + 1, 60)))
    found = log_steps(steps, count)
    assert len(found) == count
    assert found[-1] == steps
    assert (np.diff(found) > 0).all()
    assert count == 1 or found[0] == 0


def test_log_steps_refuse_more_steps_than_there_are():
    with pytest.raises(ValueError, match="do not fit"):
        log_steps(3, 9)


def halve(x, t):
    return x / 2


def test_iterate_probes_at_the_chosen_steps():
    trace = iterate(halve, jnp.array(1.0), steps=8, at=[0, 2, 3, 8], probe=lambda x: x)
    np.testing.assert_array_equal(trace.probes, [1, 1 / 4, 1 / 8, 1 / 256])
    assert trace.last == 1 / 256
    assert trace.stopped_at == 8


def test_an_early_stop_repeats_the_last_value():
    trace = iterate(
        halve,
        jnp.array(1.0),
        steps=100,
        at=[1, 2, 50, 100],
        probe=lambda x: x,
        until=lambda x: x < 0.2,
    )
    np.testing.assert_array_equal(trace.probes, [1 / 2, 1 / 4, 1 / 8, 1 / 8])
    assert trace.stopped_at == 3


def test_a_condition_met_at_the_start_takes_no_step():
    assert iterate(halve, jnp.array(0.1), steps=9, until=lambda x: x < 1).stopped_at == 0


def test_the_number_of_steps_may_be_traced():
    last = jax.jit(lambda n: iterate(halve, jnp.array(1.0), steps=n).last)
    assert (float(last(1)), float(last(3))) == (1 / 2, 1 / 8)


@pytest.mark.parametrize("mode", ["serial", "wide"])
def test_lanes_stop_by_themselves_in_either_mode(mode):
    def train(start, factor):
        # `factor` is closed over, and batched
        return iterate(
            lambda x, t: x * factor,
            start,
            steps=50,
            at=[0, 50],
            probe=lambda x: x,
            until=lambda x: x < 0.1,
        )

    starts, factors = jnp.array([1.0, 2.0, 0.05]), jnp.array([0.5, 0.9, 0.5])
    with lanes_run(mode):
        together = jax.vmap(train)(starts, factors)
    alone = [train(*pair) for pair in zip(starts, factors, strict=True)]
    np.testing.assert_array_equal(together.stopped_at, [int(a.stopped_at) for a in alone])
    np.testing.assert_allclose(together.last, [float(a.last) for a in alone], rtol=1e-6)
    np.testing.assert_allclose(together.probes, np.stack([a.probes for a in alone]), rtol=1e-6)


# ------------------------------------------------------------------------ repacked lanes

STEPS = 150
MIX = jnp.array([[0.9, 0.1], [0.3, 0.7]])


def ladder(narrowest, shrink=4):
    """Within the block, lanes are packed down to another width."""
    return mock.patch.multiple(lanes, NARROWEST=narrowest, SHRINK=shrink)


@pytest.fixture(autouse=True, scope="module")
def narrow():
    """The numbers below are for lanes packed in quarters, down to 32."""
    with ladder(32):
        yield


def count_widths(calls, x):
    """Within a `step`: notes how many lanes take it, and gives x back."""

    def note(x):
        calls.append(x.size)
        return x

    return jax.pure_callback(note, x, x, vmap_method="broadcast_all")


def unit(key):
    """Two numbers from 0 to 1 (a cheap draw, to compile fast)."""
    return jax.random.key_data(key).astype(float) / 2.0**32


def wander(key, factor, limit, at=(0, 3, 40, STEPS), calls=None):
    """A training that stops after `limit` steps.

    It closes over arrays of the seed alone (`drift` and a key), of the point alone (`factor`), of
    both (`limit`) and of neither (`MIX`), and it has a key in its state.
    """
    drift = unit(jax.random.fold_in(key, 1))

    def step(state, t):
        count, x, own = state
        if calls is not None:
            count = count_widths(calls, count)
        own = jax.random.fold_in(own, t)
        return count + 1, factor * (x @ MIX) + drift + unit(own) - unit(key), own

    return iterate(
        step,
        (jnp.array(0, jnp.int32), jnp.zeros(2), jax.random.key(7)),
        steps=STEPS,
        at=at,
        probe=lambda state: {"x": state[1], "sum": factor * jnp.sum(state[1]), "none": None},
        until=lambda state: state[0] >= limit,
    )


def grid_of(seeds, points):
    keys = jax.random.split(jax.random.key(1), seeds)
    return keys, jnp.linspace(0.1, 0.9, points)


def nested(train, *, batch=jax.vmap):
    """As the engine batches: over seeds, and inside over points, where the key is not batched."""

    def of_seed(key, factors, *rest):
        return batch(lambda args: train(key, *args))((factors, *rest))

    return lambda keys, factors, *rest: batch(lambda args: of_seed(args[0], factors, *args[1:]))(
        (keys, *rest)
    )


def one_by_one(train):
    """`nested`, lane by lane."""
    return nested(train, batch=lambda f: lambda args: jax.lax.map(f, args))


def assert_same(found, wanted):
    found, wanted = (
        eqx.tree_at(lambda t: t.last[2], t, jax.random.key_data(t.last[2])) for t in (found, wanted)
    )
    np.testing.assert_array_equal(found.stopped_at, wanted.stopped_at)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-6), found, wanted)


def limits_of(seeds, points):
    """Stopping times from 3 to 150."""
    spread = np.geomspace(3, STEPS, seeds * points).astype(np.int32)
    return np.random.default_rng(0).permutation(spread).reshape(seeds, points)


@pytest.mark.parametrize(
    ("seeds", "points"), [(4, 40), (1, 70), (3, 64)], ids=["few points", "one seed", "many"]
)
def test_repacked_lanes_are_lanes_alone(seeds, points):
    args = (*grid_of(seeds, points), jnp.asarray(limits_of(seeds, points)))
    found = jax.jit(nested(wander))(*args)
    assert_same(found, jax.jit(one_by_one(wander))(*args))
    with ladder(narrowest=10**6):
        assert_same(found, jax.jit(nested(wander))(*args))
    np.testing.assert_array_equal(found.stopped_at, args[-1])


SMALL = (3, 5)


@pytest.fixture(scope="module", params=[8, 2], ids=["all as one row", "row by row"])
def small(request):
    """Compiled once: repacked down to 2 lanes, and lane by lane; each lane has its own steps."""

    def own_steps(key, factor, limit, steps):
        return wander(key, factor, limit, at=steps[None])

    with ladder(narrowest=2), mock.patch.object(lanes, "LEAST_IN_A_ROW", request.param):
        assert lanes.widths(SMALL) == ([15, 4, 2] if request.param > 5 else [5, 2, 1])
        packed = jax.jit(nested(wander)).lower(*grid_of(*SMALL), np.zeros(SMALL, np.int32))
        zeros = [np.zeros(SMALL, np.int32)] * 2
        packed_own = jax.jit(nested(own_steps)).lower(*grid_of(*SMALL), *zeros)
    return (
        (packed.compile(), jax.jit(one_by_one(wander))),
        (packed_own.compile(), jax.jit(one_by_one(own_steps))),
    )


def whole_numbers(most):
    numbers = st.one_of(st.integers(0, 5), st.integers(0, most))
    return st.lists(numbers, min_size=15, max_size=15).map(
        lambda found: np.array(found, np.int32).reshape(SMALL)
    )


@given(limits=whole_numbers(2 * STEPS))
def test_lanes_may_stop_at_any_time(small, limits):
    packed, alone = small[0]
    found = packed(*grid_of(*SMALL), limits)
    assert_same(found, alone(*grid_of(*SMALL), limits))
    np.testing.assert_array_equal(found.stopped_at, np.minimum(limits, STEPS))


@given(limits=whole_numbers(2 * STEPS), steps=whole_numbers(STEPS))
def test_lanes_may_have_their_own_number_of_steps(small, limits, steps):
    packed, alone = small[1]
    found = packed(*grid_of(*SMALL), limits, steps)
    assert_same(found, alone(*grid_of(*SMALL), limits, steps))
    np.testing.assert_array_equal(found.stopped_at, np.minimum(limits, steps))


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (np.zeros(100), 0),  # all stop before the first step
        (np.where(np.arange(100) == 7, 999, 0), 32 * STEPS),  # one never stops
        (np.where(np.arange(100) == 7, 999, 10), 100 * 10 + 32 * (STEPS - 10)),
        (np.full(100, 999), 100 * STEPS),  # none stops
        (np.geomspace(3, STEPS, 100), 100 * STEPS * 0.55),
    ],
)
def test_finished_lanes_are_not_computed(limits, most):
    calls = []
    (key,), factors = grid_of(1, 100)  # the widths are 100 and 32
    train = jax.jit(jax.vmap(lambda f, n: wander(key, f, n, calls=calls)))
    found = jax.block_until_ready(train(factors, jnp.asarray(limits, jnp.int32)))
    np.testing.assert_array_equal(found.stopped_at, np.minimum(limits.astype(int), STEPS))
    assert set(calls) <= {100, 32}
    assert found.stopped_at.sum() <= sum(calls) <= most


@pytest.mark.parametrize(("seeds", "points"), [(8, 32), (64, 4)], ids=["in rows", "as one"])
def test_seeds_and_points_are_packed(seeds, points):
    calls = []
    limits = np.stack([np.roll(limits_of(1, 32)[0], 5 * i) for i in range(8)])
    args = (*grid_of(seeds, points), jnp.asarray(limits.reshape(seeds, points)))
    found = jax.jit(nested(lambda *args: wander(*args, calls=calls)))(*args)
    np.testing.assert_array_equal(jax.block_until_ready(found).stopped_at, args[-1])
    assert set(calls) == {256, 64, 32}
    assert sum(calls) < 256 * STEPS / 2


def test_what_the_lanes_of_a_seed_share_stays_shared():
    """A table of the seed's own would be copied for every lane if lanes of seeds were mixed."""

    def train(key, factor):
        table = jnp.outer(unit(key), jnp.ones(1000))

        def step(x, t):
            return x * factor + 0.0 * table.sum()

        return iterate(step, jnp.array(1.0), steps=50, until=lambda x: x < 0.1).last

    def copies(seeds, points):
        text = jax.jit(nested(train)).lower(*grid_of(seeds, points)).as_text()
        assert "stablehlo.case" in text
        return [line for line in text.splitlines() if "gather" in line and "x1000x" in line]

    assert copies(64, 4)
    assert not copies(8, 32)


def test_a_training_alone_is_a_plain_loop():
    def text(narrowest):
        with ladder(narrowest):
            key = jax.random.key(0)
            return jax.jit(lambda f, n: wander(key, f, n)).lower(0.5, 3).as_text()

    assert text(1) == text(10**6)
    assert "custom_call" not in text(1)


def test_few_lanes_are_not_repacked():
    def lowered(lanes):
        return jax.jit(jax.vmap(halved)).lower(jnp.ones(lanes)).as_text()

    def halved(x):
        return iterate(halve, x, steps=9, until=lambda x: x < 0.1)

    assert "stablehlo.case" not in lowered(63)
    assert "stablehlo.case" in lowered(64)


def test_repacked_lanes_nest_deeper_and_map():
    def train(factor, limit):
        return wander(jax.random.key(3), factor, limit)

    factors, limits = jnp.linspace(0.1, 0.9, 96), jnp.asarray(limits_of(1, 96)[0])
    flat = jax.jit(jax.vmap(train))(factors, limits)
    cubes = jax.jit(jax.vmap(jax.vmap(jax.vmap(train))))(
        factors.reshape(2, 3, 16), limits.reshape(2, 3, 16)
    )
    assert_same(jax.tree.map(lambda x: x.reshape(96, *x.shape[3:]), cubes), flat)
    chunks = jax.jit(lambda *pair: jax.lax.map(lambda p: train(*p), pair, batch_size=64))
    assert_same(chunks(factors, limits), flat)


def test_repacked_lanes_keep_their_precision():
    with jax.enable_x64(True):
        starts = jnp.geomspace(1.0, 1e30, 80)
        assert starts.dtype == jnp.float64
        train = jax.jit(jax.vmap(lambda x: iterate(halve, x, steps=200, until=lambda x: x < 1e-9)))
        found = train(starts)
        assert found.last.dtype == jnp.float64
        np.testing.assert_array_equal(found.last, np.ldexp(starts, -found.stopped_at))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_start_of_weak_type_takes_the_type_of_the_step(dtype):
    def train(factor):
        return iterate(lambda x, t: x * factor, jnp.array(1.0), steps=9, until=lambda x: x < 0.3)

    factors = jnp.linspace(0.1, 0.9, 80, dtype=dtype)
    found = jax.vmap(train)(factors)
    assert found.last.dtype == train(factors[0]).last.dtype == dtype
    assert (int(found.stopped_at.min()), int(found.stopped_at.max())) == (1, 9)


SHARDED = """
import jax, jax.numpy as jnp, numpy as np
from provingground.train import iterate

def train(factor):
    return iterate(lambda x, t: x * factor, jnp.ones(3), steps=300, at=[0, 20, 300],
                   probe=lambda x: x, until=lambda x: x[0] < 0.1)

mesh = jax.sharding.Mesh(jax.devices(), ("lanes",))
lanes = jax.sharding.PartitionSpec("lanes")
split = jax.shard_map(jax.vmap(train), mesh=mesh, in_specs=lanes, out_specs=lanes, check_vma=False)
factors = jnp.linspace(0.1, 0.99, 400)
found, wanted = jax.jit(split)(factors), jax.jit(jax.vmap(train))(factors)
assert len(found.last.sharding.device_set) == 4
jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6), found, wanted)
"""


def test_lanes_may_be_sharded():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run(
        [sys.executable, "-c", SHARDED],
        env={**os.environ, **flags},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------------- descend


class Net(eqx.Module):
    a: jax.Array
    b: jax.Array


def bowl(w):
    return 0.5 * jnp.sum(w.a**2) + 0.5 * jnp.sum((w.b - 1.0) ** 2)


START = Net(jnp.array([2.0, -1.0]), jnp.array([0.0]))


def test_descend_is_the_rule():
    trace = descend(bowl, START, optax.sgd(0.1), steps=3, at=[0, 1, 2, 3], probe=bowl)
    np.testing.assert_allclose(trace.last.a, 0.9**3 * START.a, rtol=1e-6)
    np.testing.assert_allclose(trace.probes, bowl(START) * 0.81 ** np.arange(4), rtol=1e-5)


def test_frozen_weights_stay():
    trace = descend(bowl, START, optax.sgd(0.1, momentum=0.9), steps=5, frozen=lambda w: w.a)
    np.testing.assert_array_equal(trace.last.a, START.a)
    assert trace.last.b[0] > 0.2


def test_descend_stops_at_a_loss():
    trace = descend(bowl, START, optax.sgd(0.1), steps=500, until=lambda loss, w: loss <= 0.01)
    before = descend(bowl, START, optax.sgd(0.1), steps=trace.stopped_at - 1)
    assert bowl(trace.last) <= 0.01 < bowl(before.last)


@pytest.mark.parametrize("lanes", [2, 100])
def test_descend_stops_when_the_loss_is_not_finite(lanes):
    def train(lr):
        return descend(
            bowl, START, optax.sgd(lr), steps=900, probe=bowl, until=lambda loss, w: loss <= 0.01
        )

    found = jax.vmap(train)(jnp.where(jnp.arange(lanes) % 2 == 0, 0.1, 30.0))
    assert (found.stopped_at[::2] > 20).all()
    assert (found.probes[::2] <= 0.01).all()
    assert (found.stopped_at < 60).all()
    assert not jnp.isfinite(found.probes[1::2]).any()


def test_a_study_stops_what_turned_nan():
    cfg = benign.Config(dim=16, samples=4, tokens=4, key_width=4, value_width=4, lr=1e30, steps=50)
    found = jax.jit(benign.simulate)(cfg, jax.random.key(0))
    assert found.stopped_at < 50
    assert jnp.isnan(found.train_loss[-1])


def test_batches_follow_the_step():
    def loss(w, x):
        return jnp.sum(w * x)

    trace = descend(
        loss, jnp.zeros(1), optax.sgd(1.0), steps=3, batch=lambda t: 10.0 ** t.astype(float)
    )
    np.testing.assert_allclose(trace.last, [-111.0])


def test_descent_with_small_steps_is_the_flow():
    times = jnp.array([0.5, 1.0])
    found = flow(bowl, START, times=times)
    np.testing.assert_allclose(found.a[:, 0], 2 * np.exp(-times), rtol=1e-4)
    small = descend(bowl, START, optax.sgd(1e-3), steps=1000)
    np.testing.assert_allclose(small.last.a, found.a[-1], rtol=1e-3)


def test_a_tape_holds_every_step_and_the_weights():
    with taped() as tape:
        descend(bowl, START, optax.sgd(0.1), steps=6, at=[6], probe=bowl)
    (trace,) = tape
    assert trace is not None
    assert trace.probes.shape == (7,)
    assert isinstance(trace.last, Net)
