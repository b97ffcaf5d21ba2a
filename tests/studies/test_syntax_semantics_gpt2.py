"""GPT-2 from a folder: a tiny random one, written here, and folders that are to be refused."""

import json
import struct
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from provingground.errors import InputError
from provingground.studies.syntax_semantics import gpt2, published

D, LAYERS, POSITIONS = 8, 2, 16
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ hello"]
FACTS = [
    ("hello is", "hello", "greets"),
    ("a b", "c", "letter"),
    ("b c d", "e", "letter"),
    ("what follows f", "g", "letter"),
]


def written(path, arrays, dtypes=None):
    """A safetensors file of some arrays."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in arrays.items():
        dtype = (dtypes or {}).get(name, "F32")
        raw = array.astype(published.DTYPES[dtype]).tobytes()
        place = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": place}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def arrays(size):
    rng = np.random.default_rng(0)
    shapes = {
        "ln_1": D,
        "ln_2": D,
        "attn.c_attn": (D, 3 * D),
        "attn.c_proj": (D, D),
        "mlp.c_fc": (D, 4 * D),
        "mlp.c_proj": (4 * D, D),
    }
    found = {
        "wte.weight": (size, D),
        "wpe.weight": (POSITIONS, D),
        "ln_f.weight": D,
        "ln_f.bias": D,
    }
    for i in range(LAYERS):
        for part, shape in shapes.items():
            found[f"h.{i}.{part}.weight"] = shape
            found[f"h.{i}.{part}.bias"] = shape if isinstance(shape, int) else shape[1]
    return {name: rng.standard_normal(shape).astype("f4") for name, shape in found.items()}


@pytest.fixture
def folder(tmp_path):
    tokens = [*published.LETTERS.values(), *(m.replace(" ", "") for m in MERGES)]
    (tmp_path / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(tokens)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n")
    settings = dict(n_layer=LAYERS, n_head=2, n_embd=D, n_positions=POSITIONS)
    (tmp_path / "config.json").write_text(json.dumps(settings | {"vocab_size": len(tokens)}))
    written(tmp_path / "model.safetensors", arrays(len(tokens)))
    return tmp_path


# --------------------------------------------------------------------------- reading


def test_arrays_are_read_as_they_were_written(tmp_path):
    x = np.random.default_rng(1).standard_normal((3, 4)).astype("f4")
    half = (x.view("u4") >> 16).astype("u2")
    written(
        tmp_path / "m.safetensors",
        {"a": x, "b": x.astype("f2"), "c": half},
        {"b": "F16", "c": "BF16"},
    )
    found = published.tensors(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(found["a"], x)
    np.testing.assert_array_equal(found["b"], x.astype("f2").astype("f4"))
    np.testing.assert_allclose(found["c"], x, rtol=2**-7)


def header(**changes):
    told = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes
    text = json.dumps({"a": told}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(8)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"1234567",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2) + b"{}" + b"more",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 4) + b"\xff{}\xff",
        struct.pack("<Q", 11) + b'{"a":1,"a":',
        struct.pack("<Q", 17) + b'{"a": {}, "a":{}}',
        header(dtype="O"),
        header(dtype=["F32"]),
        header(shape=[3]),
        header(shape=[-2]),
        header(shape=[True, 2]),
        header(shape=2),
        header(data_offsets=[8, 16]),
        header(data_offsets=[8, 0]),
        header(data_offsets=[0]),
        header(data_offsets=[0, 4], shape=[1]),
        header(extra=1),
        struct.pack("<Q", 100000) + b"[" * 100000,
    ],
)
def test_what_is_malformed_is_refused(tmp_path, raw):
    (tmp_path / "m.safetensors").write_bytes(raw)
    with pytest.raises(InputError, match="not what GPT-2"):
        published.tensors(tmp_path / "m.safetensors")


def test_arrays_that_overlap_are_refused(tmp_path):
    told = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    text = json.dumps({"a": told, "b": told}).encode()
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    with pytest.raises(InputError, match="overlap"):
        published.tensors(tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("config.json", '{"n_layer": 2}'),
        ("config.json", '{"n_layer":2,"n_head":3,"n_embd":8,"n_positions":16,"vocab_size":261}'),
        ("config.json", '{"n_layer":3,"n_head":2,"n_embd":8,"n_positions":16,"vocab_size":261}'),
        ("vocab.json", '{"a": "b"}'),
        ("merges.txt", "a b c"),
    ],
)
def test_folders_that_do_not_fit_together_are_refused(folder, file, text):
    (folder / file).write_text(text)
    with pytest.raises(InputError):
        gpt2.evaluate(folder, FACTS)
    (folder / file).unlink()
    with pytest.raises(InputError, match="cannot be read"):
        gpt2.evaluate(folder, FACTS)


# ----------------------------------------------------------------------------- words


def test_frequent_neighbours_are_merged_in_their_order(folder):
    words = published.Words(folder)
    assert words.merged("hello") == ["hello"]
    assert words.merged("helo") == ["he", "l", "o"]
    assert words.merged("ellhell") == ["e", "ll", "hell"]
    names = {n: t for t, n in words.numbers.items()}
    found = [names[n] for n in words.tokens("hello hello, 'tis é\n")]
    assert found == ["hello", "Ġhello", ",", "Ġ", "'", "t", "i", "s", "Ġ", "Ã", "©", "Ċ"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("He's  42, isn't he?", ["He", "'s", " ", " 42", ",", " isn", "'t", " he", "?"]),
        ("a_b  ", ["a", "_", "b", "  "]),
    ],
)
def test_text_is_cut_as_gpt_2_cuts_it(text, pieces):
    assert published.PIECE.findall(text) == pieces


def test_every_byte_has_a_letter_of_its_own():
    assert len({*published.LETTERS.values()}) == 256
    assert published.LETTERS[ord(" ")] == "Ġ"


# --------------------------------------------------------------------------- network


def test_what_comes_later_is_not_seen(folder):
    w = gpt2.load(folder)
    row, last = jnp.array([5, 6, 7, 0, 0]), jnp.array(2)
    short = gpt2.scores(w, row[:3], last)
    np.testing.assert_allclose(gpt2.scores(w, row.at[3:].set(9), last), short, atol=1e-4)
    assert float(jnp.abs(gpt2.scores(w, row.at[0].set(9), last) - short).max()) > 1e-2


def test_attention_without_scores_is_a_mean(folder):
    b = {name: part[0] for name, part in gpt2.load(folder).blocks.items()}
    blind = b["attn.c_attn.weight"].at[:, : 2 * D].set(0.0)
    b |= {"attn.c_attn.weight": blind, "attn.c_attn.bias": jnp.zeros(3 * D)}
    x = jnp.asarray(np.random.default_rng(2).standard_normal((4, D)), jnp.float32)
    mean = jnp.cumsum(x @ blind[:, 2 * D :], axis=0) / jnp.arange(1.0, 5)[:, None]
    wanted = mean @ b["attn.c_proj.weight"] + b["attn.c_proj.bias"][None]
    np.testing.assert_allclose(gpt2.attention(b, x, 2), wanted, atol=1e-4)


@pytest.mark.parametrize("fused", [False, True])
def test_an_edit_keeps_the_rank_it_is_told(folder, fused):
    w = gpt2.load(folder)
    apart = gpt2.factors(w, fused)
    keep = (np.arange(D) < 3).astype(float)
    made, whole = (gpt2.edited(w, apart, k).blocks for k in (keep, np.ones(D)))
    for name in gpt2.EDITED:
        np.testing.assert_allclose(whole[name], w.blocks[name], atol=1e-5)
    split = np.asarray(made["attn.c_attn.weight"][0])
    parts = [split] if fused else np.split(split, 3, axis=-1)
    assert [np.linalg.matrix_rank(m, tol=1e-4) for m in parts] == [3] * len(parts)
    np.testing.assert_array_equal(made["mlp.c_fc.weight"], w.blocks["mlp.c_fc.weight"])


def test_types_are_the_answers_of_a_relation(folder):
    words = published.Words(folder)
    asked = gpt2.questions(words, FACTS, FACTS, 261)
    np.testing.assert_array_equal(asked.typed.sum(axis=1), [1, 1, 1, 1])  # "Ġ" begins " c", " e"
    assert asked.typed[0, words.numbers["Ġhello"]]
    assert (asked.tokens[0, asked.last[0]]) == words.numbers["s"]


def test_a_folder_is_evaluated(folder):
    found = gpt2.evaluate(folder, FACTS)
    assert found.edited_type.shape == (2, 10)
    assert (found.edited_type >= found.edited_exact).all()
    whole = found.isel(rho=-1)
    assert float(whole.edited_type[0]) == float(whole.edited_type[1])  # nothing is cut
