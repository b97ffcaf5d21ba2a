"""Real facts and questions as numbers, and what is drawn from them, on made ones."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from provingground import identity
from provingground.errors import DataMissing
from provingground.keys import seed_key
from provingground.studies.syntax_semantics import decoder, language, questions

KEY = seed_key("syntax_semantics", 0)
SMALL: dict[str, Any] = dict(
    facts=12, asked=12, relations=3, vocabulary=500, width=8, epochs=2, early=1, batch=8
)


def config(**changes) -> language.Config:
    return identity.typed(language.Config(**(SMALL | changes)), "float64")


@pytest.fixture(scope="module")
def source() -> questions.Source:
    """Forty facts: twenty of a relation, ten, six and four; six answers to each, two shared."""
    relation = np.repeat(["speaks", "plays", "lives in", "is"], [20, 10, 6, 4])
    answer = [f"{r if i % 6 > 1 else 'any'} {i % 6}" for i, r in enumerate(relation)]
    prompts = [
        (f"Person{i} {r}", f"What Person{i} {r} , if at all , is") for i, r in enumerate(relation)
    ]
    made = questions.source(prompts, answer, relation.tolist(), tokens=8)
    return jax.tree.map(jnp.asarray, made)


# ------------------------------------------------------------------------ as numbers


def test_words_and_marks_are_tokens():
    found = questions.words("The mother-tongue of Élodie's, No. 3")
    assert found == ["the", "mother", "-", "tongue", "of", "élodie", "'", "s", ",", "no", ".", "3"]


def test_a_row_holds_the_last_words_on_the_right():
    short, long = questions.row("one two", 4), questions.row("zero one two three four", 4)
    assert short == [0, 0, questions.number("one"), questions.number("two")]
    assert long == [questions.number(w) for w in ("one", "two", "three", "four")]
    assert 0 not in long
    assert max(long) < 2**31


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        ("yes", "yes or no"),
        ("No ", "yes or no"),
        ("Norway", "name"),
        ("the North Atlantic Conference", "name"),
        ('"We\'ll Burn That Bridge"', "name"),
        ("Ante", "name"),
        ("a pinball machine", "word"),
        ("director", "word"),
        ("from 1986 to 2013", "number"),
        ("3,677 seated", "number"),
    ],
)
def test_the_form_of_an_answer(answer, form):
    assert questions.form(answer) == form


def test_names_are_numbered_from_the_most_frequent():
    found = questions.numbered(["b", "c", "a", "c", "b", "c"])
    np.testing.assert_array_equal(found, [1, 0, 2, 0, 1, 0])


def test_the_answers_of_a_relation_are_a_type(source):
    types, answer, relation = (
        np.asarray(a) for a in (source.types, source.answer, source.relation)
    )
    assert source.words.shape == (40, 2, 8)
    assert types.sum() == len({*zip(relation.tolist(), answer.tolist(), strict=True)})
    assert types[relation, answer].all()
    assert sorted(types.sum(0))[-2:] == [4, 4]  # two answers suit all relations


# ----------------------------------------------------------------------------- drawn


@pytest.mark.parametrize(
    ("facts", "relations", "counts"),
    [
        (12, 3, [4, 4, 4, 0]),
        (12, 2, [6, 6, 0, 0]),
        (24, 3, [9, 9, 6, 0]),  # of a rare relation all there are
        (40, 4, [20, 10, 6, 4]),
    ],
)
def test_facts_are_drawn_evenly_from_the_most_frequent_relations(source, facts, relations, counts):
    cfg = config(facts=facts, relations=relations)
    at = np.asarray(language.drawn(cfg, KEY, source.relation))
    assert len({*at.tolist()}) == len(at) == min(facts + cfg.asked, 40)
    at = at[:facts]
    np.testing.assert_array_equal(np.bincount(source.relation[at], minlength=4), counts)


def test_seeds_draw_other_facts(source):
    draw = lambda seed: language.drawn(  # noqa: E731
        config(), seed_key("syntax_semantics", seed), source.relation
    )
    assert {*np.asarray(draw(0)).tolist()} != {*np.asarray(draw(1)).tolist()}


def test_the_task_is_what_was_drawn(source):
    cfg = config(asked=5)
    at, others = np.split(np.asarray(language.drawn(cfg, KEY, source.relation)), [12])
    task, types = language.task(cfg, KEY, source)
    prompts, asked = task.prompts, task.asked
    assert (prompts.tokens.shape, asked.tokens.shape) == ((24, 8), (5, 8))
    np.testing.assert_array_equal(prompts.tokens[:10:2], asked.tokens)  # the first of every fact
    np.testing.assert_array_equal(prompts.tokens > 0, prompts.exists)
    np.testing.assert_array_equal(prompts.answer[::2], prompts.answer[1::2])
    assert int(prompts.tokens.max()) < task.inputs
    same = np.asarray(source.answer)[at][:, None] == np.asarray(source.answer)[at][None, :]
    found = np.asarray(prompts.answer[::2])
    np.testing.assert_array_equal(found[:, None] == found[None, :], same)
    for old, new in zip(np.asarray(source.answer)[at], found, strict=True):
        np.testing.assert_array_equal(types[:, new], source.types[:, old])
    number = len({*found.tolist()})
    assert task.outputs == 12
    assert not types[:, number:].any()  # what is no answer is of no type
    assert task.typed(asked.answer, asked).all()
    assert task.unseen is not None
    np.testing.assert_array_equal(task.unseen.relation, np.asarray(source.relation)[others])
    np.testing.assert_array_equal(
        task.unseen.exists, np.asarray(source.words)[others, 0] > 0
    )  # none of which is learned
    assert not {*others.tolist()} & {*at.tolist()}


def test_words_share_tokens_where_the_vocabulary_is_small(source):
    whole, _ = language.task(config(vocabulary=5000), KEY, source)
    small, _ = language.task(config(vocabulary=7), KEY, source)
    count = lambda task: len(np.unique(task.prompts.tokens))  # noqa: E731
    assert count(small) <= 7 < count(whole)
    np.testing.assert_array_equal(whole.prompts.exists, small.prompts.exists)


def test_guesses_are_those_of_counting():
    """Three prompts of relation 0, one of relation 1; answer 1 is of both types."""
    asked = decoder.Prompts(
        jnp.zeros((4, 1), jnp.int32),
        jnp.ones((4, 1), bool),
        answer=jnp.array([0, 0, 1, 2], jnp.int32),
        relation=jnp.array([0, 0, 0, 1], jnp.int32),
    )
    types = jnp.array([[True, True, False], [False, True, True]])
    typed, right = language.guesses(asked, types)
    assert float(typed) == 1.0  # by answer 1
    assert float(right) == 0.75  # answers 0 and 2
    typed, _ = language.guesses(asked, types.at[1, 1].set(False))
    assert float(typed) == 0.75


def test_a_decoder_learns_what_is_drawn(source):
    cfg = config(epochs=60, lr=1e-2, asked=10, layers=1)
    found = jax.jit(language.simulate)(cfg, KEY, source)
    assert found.exact_accuracy[-1] == 1
    assert (found.type_accuracy >= found.exact_accuracy).all()
    np.testing.assert_allclose(found.edited_exact[1, :, -1], 1)  # with all singular values
    assert 1 / 10 <= float(found.exact_guess) < 1


# ------------------------------------------------------------------------- real ones


@pytest.mark.parametrize(
    ("name", "relations", "prompts"), [("counterfact", 34, 2), ("hotpotqa", 4, 1)]
)
def test_real_facts_are_whole(name, relations, prompts):
    try:
        found = getattr(questions, name)()
    except DataMissing as missing:
        pytest.skip(str(missing))
    assert found.types.shape[0] == relations or name == "counterfact"  # as fetched: templates
    assert found.words.shape[1] == prompts
    assert (found.words[:, :, -1] > 0).all()
    assert (np.diff(np.bincount(found.relation)) <= 0).all()
    assert found.types[found.relation, found.answer].all()
