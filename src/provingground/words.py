"""How numbers, symbols and forecasts are put into words, for terminals and notebooks."""

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from provingground.terminal import duration

if TYPE_CHECKING:
    from provingground.engine import Forecast


def number(value: Any, digits: int = 6) -> str:
    """A setting, which need not be a number."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def count(many: int, what: str) -> str:
    """So many of something.

    >>> count(1, "cell"), count(2, "cell")
    ('1 cell', '2 cells')
    """
    return f"{many} {what}" if many == 1 else f"{many} {what}s"


def symbol(latex: str) -> str:
    r"""A symbol of a paper in plain letters.

    >>> symbol(r"\tilde\sigma_p"), symbol(r"N_{\mathrm{test}}"), symbol(r"\|\delta\|")
    ('σ̃_p', 'N_test', '‖δ‖')
    """
    marks = {"tilde": "\u0303", "hat": "\u0302", "dot": "\u0307"}
    text = latex.replace(r"\|", "‖").replace(r"\ell", "l").replace(r"\#", "#")
    text = re.sub(r"\\(mathrm|mathcal) ?(\{([^{}]*)\}|(\w))", r"\3\4", text)
    text = re.sub(r"\\([A-Za-z]+) ?", lambda word: _letter(word[1], marks), text)
    text = re.sub(r"([\u0302\u0303\u0307])(\w)", r"\2\1", text)  # marks follow their letter
    return re.sub(r"[{}]", "", text)


def with_letters(text: str) -> str:
    """A text with the symbols in it, which stand between dollars, in plain letters."""
    return re.sub(r"\$([^$]*)\$", lambda found: symbol(found[1]), text)


def _letter(name: str, marks: dict[str, str]) -> str:
    """What a command of LaTeX stands for: a mark, a Greek letter, or itself (such as max)."""
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    name = {"varepsilon": "epsilon", "lambda": "lamda", "Lambda": "Lamda"}.get(name, name)
    try:
        return marks.get(name) or unicodedata.lookup(f"GREEK {size} LETTER {name.upper()}")
    except KeyError:
        return name


def leaves(tree: Any, lone: str) -> dict[str, Any]:
    """The arrays of a pytree by name; one that is the whole of it has the name `lone`.

    >>> leaves({"a": 1, "b": [2, 3]}, ""), leaves(4, "probe")
    ({'a': 1, 'b/[0]': 2, 'b/[1]': 3}, {'probe': 4})
    """
    from jax.tree_util import tree_leaves_with_path  # slow to import, and words are needed early

    return {
        "/".join(str(getattr(k, "key", getattr(k, "name", k))) for k in path) or lone: leaf
        for path, leaf in tree_leaves_with_path(tree)
    }


def cost(forecast: "Forecast", refined: bool = False) -> str:
    """How many cells are stored, what is left to run, and how long that takes, as far as is known.

    Of a `refined` sweep not all cells are run.
    """
    known = f"{count(forecast.cells, 'cell')}, {forecast.stored} stored"
    if forecast.unseen == forecast.cells:
        known = f"{count(forecast.cells, 'cell')}, some of which may be stored"
    elif forecast.unseen:
        known += f", and maybe some of {forecast.unseen} others"
    if not forecast.left:
        return f"{known}; nothing to run"
    programs, timed = forecast.programs, forecast.programs - forecast.untimed
    most = "at most " if refined or forecast.unseen else ""
    left = f"{most}{count(forecast.left, 'cell')} to run with {count(programs, 'program')}"
    told = f"{known}; {left}"
    if forecast.seconds is None or not timed:
        return f"{told}, not timed on this machine yet"
    told += f", about {duration(forecast.seconds)} of training"
    if forecast.compiling >= 1:
        told += f" and up to {duration(forecast.compiling)} of compiling"
    if forecast.untimed:
        told += f" for {timed} of the programs; the others are not timed on this machine yet"
    return told
