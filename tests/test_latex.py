r"""LaTeX as MathML and as text: single constructs, and every formula of every study."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provingground import registry
from provingground.atlas.latex import GREEK, mathml, plain, typeset
from provingground.config import pars
from provingground.errors import InputError
from provingground.studies import STUDIES as LISTED
from provingground.study import Cases, Study

STUDIES = [*LISTED, "toy"]
FOLDER = Path(registry.__file__).parent / "studies"


def inner(formula: str) -> str:
    """The MathML of a formula without its outermost tag."""
    return re.sub(r"^<math [^>]*>|</math>$", "", mathml(formula))


def formulas(text: str) -> list[str]:
    return [a or b for a, b in re.findall(r"\$\$(.+?)\$\$|\$([^$]+)\$", text, re.S)]


@pytest.mark.parametrize(
    ("formula", "xml", "text"),
    [
        (r"\frac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>", "1/2"),
        (r"\frac{a+b}{2}", "<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac>",
         "(a + b)/2"),
        (r"x^10", "<mrow><msup><mi>x</mi><mn>1</mn></msup><mn>0</mn></mrow>", "x^10"),
        (r"\alpha_\#^{-2}", '<msubsup><mi>α</mi><mi>#</mi><mrow><mo form="prefix">−</mo><mn>2</mn>'
         "</mrow></msubsup>", "α_#^(-2)"),
        (r"\hat W_n", '<msub><mover accent="true"><mi>W</mi><mo stretchy="false">^</mo></mover>'
         "<mi>n</mi></msub>", "Ŵ_n"),
        (r"\mathcal D", "<mi>𝒟</mi>", "D"),
        (r"\mathcal{L}", "<mi>ℒ</mi>", "L"),
        (r"\mathrm{SNR}", "<mi>SNR</mi>", "SNR"),
        (r"\sqrt n", "<msqrt><mi>n</mi></msqrt>", "√n"),
        (r"K'", "<msup><mi>K</mi><mo>′</mo></msup>", "K′"),
        (r"w < 0", "<mrow><mi>w</mi><mo>&lt;</mo><mn>0</mn></mrow>", "w < 0"),
    ],
)  # fmt: skip
def test_constructs(formula: str, xml: str, text: str) -> None:
    assert inner(formula) == xml
    assert plain(f"${formula}$") == text


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"critical $N\,\mathrm{SNR}^{2}$", "critical N SNR^2"),
        (r"fit $\propto 1/{\epsilon}^{0.93}$", "fit ∝ 1/ϵ^0.93"),
        (r"$L_D \geq 0.2$", "L_D ≥ 0.2"),
        (r"floor: $\frac12\log 2$", "floor: 1/2 log 2"),
        (r"$\alpha_*-\alpha_\#$", "α_* - α_#"),
        (r"$\|W_t-\hat W_n\|_F$", "‖W_t - Ŵ_n‖_F"),
        (r"$x = -1$, $(-1)$", "x = -1, (-1)"),
        ("no formula, 5 $ each", "no formula, 5 $ each"),
    ],
)
def test_text(latex: str, text: str) -> None:
    assert plain(latex) == text


@pytest.mark.parametrize(
    "formula",
    [r"\foo", r"\frac1", "{x", "x}", "a^", r"\mathrm", "§", r"\hat", "{" * 9000 + "}" * 9000],
)
def test_what_cannot_be_read_is_an_error_and_stays_as_it_was(formula: str) -> None:
    with pytest.raises(InputError, match="cannot be typeset"):
        mathml(formula)
    ElementTree.fromstring(f"<p>{typeset(f'see ${formula}$ <b>')}</p>")
    assert "<math" not in typeset(f"${formula}$")


@pytest.mark.parametrize(
    ("typed", "made"),
    [
        ("falls as N^(-1/2)", "falls as N<sup>−1/2</sup>"),
        ("(alpha_* - alpha_#)^2", "(alpha<sub>*</sub> - alpha<sub>#</sub>)<sup>2</sup>"),
        ("L - L_opt, W_Q", "L - L<sub>opt</sub>, W<sub>Q</sub>"),
        ("grows as D^2.5, not as D^2.", "grows as D<sup>2.5</sup>, not as D<sup>2</sup>."),
        ("d_h^-½ eta", "d<sub>h</sub><sup>−½</sup> eta"),
        ("see prop2_rate, t_star", "see prop2_rate, t_star"),  # names stay
    ],
)
def test_powers_and_indices_as_one_types_them(typed: str, made: str) -> None:
    assert typeset(typed) == made


@given(st.text(alphabet=r"ab12{}^_\$ '|()+-=,<&#", max_size=30))
def test_any_text_gives_well_formed_markup(text: str) -> None:
    ElementTree.fromstring(f"<p>{typeset(text)}</p>")
    plain(text)


# --------------------------------------------------------------------------- the studies


def shown(study: Study) -> Iterator[tuple[str, str]]:
    """Symbols (bare LaTeX) and texts (with formulas) that pages show of a study."""
    yield from (("text", text) for text in (study.title, study.cite, study.statement))
    for simulator in study.simulators.values():
        about = [p.__dict__ for p in pars(simulator.config).values()]
        about += [f.metadata for f in simulator.probes.__dataclass_fields__.values()]
        for each in about:
            yield "symbol", each.get("symbol", "")
            yield "text", each.get("says", "")
    for experiment in study.experiments:
        yield "text", experiment.says
        for axis in (*experiment.trainings.grid.values(), *experiment.trainings.quick.values()):
            yield "symbol", getattr(axis, "symbol", "")
            labels = axis.settings if isinstance(axis, Cases) else ()
            yield from (("text", label) for label in labels)
        for claim in experiment.claims:
            yield from (("text", text) for text in (claim.says, claim.note, claim.source))


@pytest.mark.parametrize("name", STUDIES)
def test_whatever_a_page_shows_of_a_study_is_typeset(name: str) -> None:
    found = list(shown(registry.study(name)))
    for symbol in {text for kind, text in found if kind == "symbol" and text}:
        ElementTree.fromstring(mathml(symbol))
    for text in {text for kind, text in found if kind == "text"}:
        for formula in formulas(text):
            ElementTree.fromstring(mathml(formula))
        made = typeset(text)
        ElementTree.fromstring(f"<p>{made}</p>")
        assert not re.search(r"[$\\]", re.sub(r'alttext="[^"]*"', "", made))


@pytest.mark.parametrize("name", STUDIES)
def test_every_formula_in_the_files_of_a_study_converts(name: str) -> None:
    """Labels of figures, docstrings and the README; holes of f-strings are filled with a number."""
    texts: list[str] = []
    for path in (FOLDER / name).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [str(getattr(part, "value", "")) for part in node.values]
                holes = [isinstance(part, ast.FormattedValue) for part in node.values]
                texts.append(
                    "".join("1" if hole else part for part, hole in zip(parts, holes, strict=True))
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    page = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    texts.append(re.sub(r"```.*?```|`[^`]*`", "", page, flags=re.S))
    found = {formula for text in texts for formula in formulas(text)}
    assert len(found) > 20 or name == "toy"
    for formula in found:
        ElementTree.fromstring(mathml(formula))


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_states_its_paper_in_words(name: str) -> None:
    statement = registry.study(name).statement
    assert 80 < len(statement) < 600
    assert statement.endswith(".")
    assert 1 <= len(re.findall(r"\.(?:\s|$)", re.sub(r"\$[^$]*\$", "", statement))) <= 3


def test_greek_letters_are_what_unicode_calls_them() -> None:
    import unicodedata

    for name, sign in GREEK.items():
        called = unicodedata.name(sign).replace("LAMDA", "LAMBDA").replace(" SYMBOL", "")
        assert called.rpartition(" ")[2] in (name.upper(), "EPSILON"), name
