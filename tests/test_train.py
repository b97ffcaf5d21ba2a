import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert trace.probes.shape == (7,)
    assert isinstance(trace.last, Net)
