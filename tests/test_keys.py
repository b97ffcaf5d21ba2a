import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provingground import keys

DRAWS = [keys.normal, keys.uniform, keys.signs]


FEWER_AND_MORE = [(1, 2), (1, 9), (2, 9), (8, 9)]  # every other number of rows is compiled anew


@pytest.mark.parametrize("draw", DRAWS)
@given(rows=st.sampled_from(FEWER_AND_MORE), seed=st.integers(0, 99))
def test_more_rows_change_nothing(draw, rows, seed):
    key, (fewer, more) = keys.seed_key("s", seed), rows
    np.testing.assert_array_equal(draw(key, (fewer, 5)), draw(key, (more, 5))[:fewer])


@pytest.mark.parametrize("draw", DRAWS)
def test_precision_changes_nothing(draw):
    key = keys.seed_key("s", 0)
    single = draw(key, (7, 3))
    with jax.enable_x64(True):
        double = draw(key, (7, 3))
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(single, double)


def test_keys_differ_by_study_seed_and_stream():
    found = {
        tuple(np.asarray(jax.random.key_data(keys.stream(keys.seed_key(study, seed), name))))
        for study in ("a", "b")
        for seed in range(3)
        for name in ("data", "test")
    }
    assert len(found) == 12


def test_signs_are_fair():
    assert abs(float(keys.signs(keys.seed_key("s", 1), (4000,)).mean())) < 0.06


def test_streams_are_recorded():
    with keys.recorded_streams() as names:
        keys.stream(keys.seed_key("s", 0), "data")
    keys.stream(keys.seed_key("s", 0), "test")
    assert names == ["data"]


def test_several_streams_are_the_streams_of_their_names():
    key, names = keys.seed_key("study", 3), ("data/role", "test/role", "init")
    with keys.recorded_streams() as known:
        several = keys.streams(key, *names)
    assert known == list(names)
    one_by_one = jnp.stack([keys.stream(key, name) for name in names])
    np.testing.assert_array_equal(jax.random.key_data(several), jax.random.key_data(one_by_one))
