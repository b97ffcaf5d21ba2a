"""Real facts and questions as numbers: CounterFact and HotpotQA, of Figures 1 and 5 to 8.

A prompt is its words, each as a number made from its letters; what is longer than fits loses its
beginning, what is shorter is padded on the left. The answers to a relation's prompts in the whole
data set are one type. HotpotQA names no relations: there the form of an answer stands for them.

Letters in shapes: F facts, J prompts of a fact, T tokens, R relations, O answers.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from zlib import crc32

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Int

from provingground.data import real

WORD = re.compile(r"\w+|[^\w\s]")
ARTICLE = re.compile(r"^\W*(?:(?:the|an?)\b)?\W*", re.IGNORECASE)
FACT_TOKENS, QUESTION_TOKENS = 16, 20
LARGEST = 2**31 - 2


class Source(eqx.Module):
    """All facts of a data set. Relations are numbered from the most frequent on."""

    words: Int[Array | np.ndarray, "F J T"]
    answer: Int[Array | np.ndarray, "F"]
    relation: Int[Array | np.ndarray, "F"]
    types: Bool[Array | np.ndarray, "R O"]


def words(text: str) -> list[str]:
    """Words and marks, as they stand but for capitals."""
    return WORD.findall(text.lower())


def number(word: str) -> int:
    """A number that the letters of a word determine; never 0, which pads."""
    return 1 + crc32(word.encode()) % LARGEST


def row(text: str, tokens: int) -> list[int]:
    """The last words of a text, padded on the left."""
    last = [number(word) for word in words(text)[-tokens:]]
    return [0] * (tokens - len(last)) + last


def form(answer: str) -> str:
    """Yes or no; else with a digit; else by the first letter after an article."""
    if answer.strip().lower() in ("yes", "no"):
        return "yes or no"
    if re.search(r"\d", answer):
        return "number"
    return "name" if ARTICLE.sub("", answer)[:1].isupper() else "word"


def numbered(names: Sequence[str]) -> Int[np.ndarray, "F"]:
    """Names as numbers, the most frequent first; of equally frequent ones, by the alphabet."""
    found, which, counts = np.unique(list(names), return_inverse=True, return_counts=True)
    rank = np.empty(len(found), np.int32)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(found))
    return rank[which]


def source(
    prompts: Iterable[Sequence[str]], answers: Sequence[str], relations: Sequence[str], tokens: int
) -> Source:
    """Facts given as their prompts, answer and relation."""
    answer, relation = numbered(answers), numbered(relations)
    types = np.zeros((relation.max() + 1, answer.max() + 1), bool)
    types[relation, answer] = True
    rows = [[row(text, tokens) for text in texts] for texts in prompts]
    return Source(np.array(rows, np.int32), answer, relation, types)


@cache
def counterfact() -> Source:
    """A prompt and one paraphrase of every fact."""
    raw = {name: [b.decode() for b in column] for name, column in real.load("counterfact").items()}
    asked = (t.replace("{}", s, 1) for t, s in zip(raw["template"], raw["subject"], strict=True))
    prompts = zip(asked, raw["rephrase_prompt"], strict=True)
    return source(prompts, raw["target_true"], raw["relation"], FACT_TOKENS)


@cache
def hotpotqa() -> Source:
    """The questions of the development set that fit as a whole."""
    raw = real.load("hotpotqa")
    pairs = zip(raw["question"].tolist(), raw["answer"].tolist(), strict=True)
    told = [(q.decode(), a.decode()) for q, a in pairs]
    told = [(q, a) for q, a in told if len(words(q)) <= QUESTION_TOKENS]
    answers = [a for _, a in told]
    return source([(q,) for q, _ in told], answers, [form(a) for a in answers], QUESTION_TOKENS)
