r"""The LaTeX of papers as MathML, which browsers typeset, and as plain text for those who listen.

One pass reads a formula and writes both. It knows what the studies use: letters, scripts, accents,
fractions, roots, fences, alphabets and the signs in the tables below. What it does not know is an
error, never half a formula.

    mathml(r"\alpha_*^{-2}")          <math>...</math>
    plain(r"as $\frac12\log 2$")      as 1/2 log 2
"""

import re
import unicodedata
from html import escape
from typing import Literal, NamedTuple

from markupsafe import Markup

from provingground.errors import InputError

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "zeta": "ζ", "eta": "η",
    "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "ϕ", "chi": "χ",
    "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ",
    "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
LETTERS = GREEK | {
    "varepsilon": "ε", "varphi": "φ", "ell": "ℓ", "infty": "∞", "partial": "∂", "nabla": "∇",
    "top": "⊤", "perp": "⊥", "star": "⋆", "prime": "′", "dots": "…", "ldots": "…", "cdots": "⋯",
    "emptyset": "∅", "hbar": "ℏ", "#": "#", "%": "%", "&": "&", "$": "$", "_": "_",
}  # fmt: skip
RELATIONS = {
    "geq": "≥", "ge": "≥", "leq": "≤", "le": "≤", "neq": "≠", "ne": "≠", "approx": "≈", "sim": "∼",
    "propto": "∝", "gtrsim": "≳", "lesssim": "≲", "ll": "≪", "gg": "≫", "equiv": "≡", "in": "∈",
    "notin": "∉", "subset": "⊂", "subseteq": "⊆", "to": "→", "rightarrow": "→", "leftarrow": "←",
    "mapsto": "↦", "mid": "|", "simeq": "≃", "Rightarrow": "⇒", "iff": "⇔", "asymp": "≍",
}  # fmt: skip
OPERATORS = {
    "pm": "±", "mp": "∓", "times": "×", "cdot": "⋅", "odot": "⊙", "otimes": "⊗", "oplus": "⊕",
    "circ": "∘", "cap": "∩", "cup": "∪", "setminus": "∖", "wedge": "∧", "vee": "∨", "div": "÷",
}  # fmt: skip
LARGE = {"sum": "∑", "prod": "∏", "int": "∫"}
FUNCTIONS = {
    "log", "exp", "ln", "sin", "cos", "tan", "tanh", "arccos", "arcsin", "arctan", "max", "min",
    "sup", "inf", "lim", "arg", "det", "dim", "Pr",
}  # fmt: skip
FENCES = {
    "{": "{", "}": "}", "|": "‖", "langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋",
    "lceil": "⌈", "rceil": "⌉", "lVert": "‖", "rVert": "‖", "Vert": "‖", "lvert": "|",
    "rvert": "|", "vert": "|",
}  # fmt: skip
OPENING = set("([{⟨⌊⌈")
ACCENTS = {  # as a sign above, and as a combining character
    "hat": ("^", "\u0302"), "widehat": ("^", "\u0302"), "tilde": ("~", "\u0303"),
    "widetilde": ("~", "\u0303"), "bar": ("¯", "\u0304"), "overline": ("¯", "\u0304"),
    "dot": ("˙", "\u0307"), "ddot": ("¨", "\u0308"), "vec": ("→", "\u20d7"),
}  # fmt: skip
SPACES = {",": 0.17, ":": 0.22, ";": 0.28, " ": 0.25, "quad": 1.0, "qquad": 2.0, "!": 0.0}
ALPHABETS = {"mathcal": "SCRIPT", "mathscr": "SCRIPT", "mathbb": "DOUBLE-STRUCK", "mathbf": "BOLD",
             "boldsymbol": "BOLD", "mathfrak": "FRAKTUR"}  # fmt: skip
UPRIGHT = {"mathrm", "text", "textrm", "operatorname", "mathsf", "mathtt", "mathit", "rm"}
SIZES = {"left", "right", "big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "middle"}
IGNORED = {"displaystyle", "textstyle", "limits", "nolimits"}

Kind = Literal["letter", "operator", "relation", "open", "close", "function", "space"]


class Piece(NamedTuple):
    """A part of a formula: its MathML, its text, and how it stands to its neighbours."""

    xml: str
    text: str
    kind: Kind = "letter"


NOTHING = Piece("<mrow></mrow>", "")


def _letter(sign: str) -> Piece:
    return Piece(f"<mi>{escape(sign)}</mi>", sign)


def _sign(sign: str, kind: Kind, options: str = "") -> Piece:
    return Piece(f"<mo{options}>{escape(sign)}</mo>", sign, kind)


def _fence(sign: str) -> Piece:
    kind: Kind = "open" if sign in OPENING else "close"
    return _sign(sign, kind, ' stretchy="false" lspace="0" rspace="0"')


def _styled(sign: str, alphabet: str) -> Piece:
    """A letter of another alphabet: in Unicode each has its own character."""
    kind = "DIGIT" if sign.isdigit() else "CAPITAL" if sign.isupper() else "SMALL"
    name = unicodedata.name(sign, "").rpartition(" ")[2]
    for form in (f"MATHEMATICAL {alphabet} {kind} {name}", f"{alphabet} CAPITAL {name}"):
        try:
            found = unicodedata.lookup(form)
        except KeyError:
            continue
        return Piece(f"<mi>{found}</mi>", sign)
    return _letter(sign)


def _short(text: str) -> str:
    """Text that may stand beside a slash, a root or a script without brackets."""
    return text if re.fullmatch(r"[^\s+−±/,=]*", text) else f"({text})"


def _row(pieces: list[Piece]) -> Piece:
    """Pieces one after the other, with the spaces that neighbours need.

    A sign with nothing before it is a prefix: it has no space after it.
    """
    xml, text, before = [], "", "open"
    for piece in pieces:
        made, kind = piece.xml, piece.kind
        if kind == "operator" and before in ("open", "operator", "relation"):
            made, kind = made.replace("<mo>", '<mo form="prefix">', 1), "open"
        pair = {kind, before}
        if "function" in pair and not pair & {"open", "relation", "operator", "space"}:
            made = f'<mspace width="0.17em"></mspace>{made}'
        apart = pair & {"relation", "operator"} or ("function" in pair and kind != "close")
        text += " " * bool(apart and before != "open") + piece.text
        xml.append(made)
        before = kind if kind != "space" else before
    joined = "".join(xml)
    return Piece(joined if len(pieces) == 1 else f"<mrow>{joined}</mrow>", " ".join(text.split()))


class _Reader:
    """Reads a formula from left to right."""

    def __init__(self, formula: str):
        self.formula, self.at = formula, 0

    def wrong(self, what: str) -> InputError:
        return InputError(f"the formula {self.formula} cannot be typeset: {what}")

    def next(self) -> str:
        r"""The next character, command (`\name`) or number; empty at the end."""
        found = re.compile(r"\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|.", re.S).match(self.formula, self.at)
        self.at = found.end() if found else self.at
        return found.group() if found else ""

    def peek(self) -> str:
        here = self.at
        found = self.next()
        self.at = here
        return found

    def skip(self) -> bool:
        """Skips white space; whether there was any."""
        here = self.at
        while self.peek().isspace():
            self.next()
        return self.at > here

    def row(self, until: str = "") -> Piece:
        """Everything up to a closing token, which is taken too."""
        pieces: list[Piece] = []
        while True:
            gap = self.skip()
            here, token = self.at, self.next()
            if token == until:
                return _row(pieces) if pieces else NOTHING
            if token in ("", "}"):
                raise self.wrong(f"{until or 'the opening brace'} is missing")
            if gap and pieces:
                pieces.append(Piece("", " ", "space"))
            self.at = here
            if (piece := self.scripted()) is not None:
                pieces.append(piece)

    def argument(self) -> Piece:
        """A group in braces, or the one token that follows; of a number the first digit."""
        self.skip()
        if re.match(r"\d", self.formula[self.at :]):
            self.at += 1
            return Piece(f"<mn>{self.formula[self.at - 1]}</mn>", self.formula[self.at - 1])
        found = self.atom()
        if found is None or not self.formula:
            raise self.wrong("something is missing at its end")
        return found

    def word(self) -> str:
        """The words of a group in braces (or the one letter that follows), as they stand."""
        self.skip()
        found = re.compile(r"\{([^{}]*)\}|(\w)").match(self.formula, self.at)
        if not found:
            raise self.wrong("words in braces are missing")
        self.at = found.end()
        return re.sub(r"\\[,;: ]|~", " ", found.group(1) or found.group(2) or "")

    def scripted(self) -> Piece | None:
        """An atom with what stands below and above it."""
        base = NOTHING if self.peek() in ("^", "_", "'") else self.atom()
        low: Piece | None = None
        high: list[Piece] = []
        while base is not None:
            here = self.at
            self.skip()
            token = self.peek()
            if token == "'":
                self.next()
                high.append(Piece("<mo>′</mo>", "′"))
            elif token == "_" and low is None:
                self.next()
                low = self.argument()
            elif token == "^":
                self.next()
                high.append(self.argument())
            else:
                self.at = here
                break
        if base is None or (low is None and not high):
            return base
        above = _row(high) if high else None
        tag = {(1, 0): "msub", (0, 1): "msup", (1, 1): "msubsup"}[low is not None, bool(high)]
        parts = "".join(p.xml for p in (base, low, above) if p)
        text = base.text + (f"_{_short(low.text)}" if low else "")
        if above:
            text += above.text if set(above.text) == {"′"} else f"^{_short(above.text)}"
        return Piece(f"<{tag}>{parts}</{tag}>", text, base.kind)

    def atom(self) -> Piece | None:
        """One letter, number, sign, group or command; None for a command that draws nothing."""
        token = self.next()
        if token == "{":
            return self.row("}")._replace(kind="letter")
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[:1].isdigit():
            return Piece(f"<mn>{token}</mn>", token)
        if token.isalpha():
            return _letter(token)
        if token in "=<>≥≤≈→∈" and token:
            return _sign(token, "relation")
        if token in "+-−±·×" and token:
            return _sign("−" if token == "-" else token, "operator")
        if token in "()[]|‖" and token:
            return _fence(token)
        if token == "/":
            return _sign(token, "letter", ' lspace="0" rspace="0"')
        if token in "*,.;:!?∗…′%@" and token:
            return Piece(f"<mo>{token}</mo>", token + " " * (token in ",;"))
        if token == "~":
            return Piece('<mspace width="0.25em"></mspace>', " ", "space")
        raise self.wrong(f"'{token}' is not known" if token else "something is missing at its end")

    def command(self, name: str) -> Piece | None:
        if name in LETTERS:
            return _letter(LETTERS[name])
        if name in RELATIONS:
            return _sign(RELATIONS[name], "relation")
        if name in OPERATORS:
            return _sign(OPERATORS[name], "operator")
        if name in LARGE:
            return _sign(LARGE[name], "function", ' movablelimits="true" largeop="false"')
        if name in FUNCTIONS:
            return Piece(f"<mi>{name}</mi>", name, "function")
        if name == "bmod":
            return _sign("mod", "operator")
        if name in FENCES:
            return _fence(FENCES[name])
        if name in SPACES:
            wide = SPACES[name]
            return Piece(f'<mspace width="{wide:g}em"></mspace>', " " * (wide > 0), "space")
        if name in ACCENTS:
            sign, mark = ACCENTS[name]
            inner = self.argument()
            over = f'<mover accent="true">{inner.xml}<mo stretchy="false">{sign}</mo></mover>'
            text = inner.text[:1] + mark + inner.text[1:]
            return Piece(over, unicodedata.normalize("NFC", text))
        if name in UPRIGHT:
            word = self.word()
            plain = ' mathvariant="normal"' * (len(word) == 1)
            return Piece(f"<mi{plain}>{escape(word)}</mi>", word)
        if name in ALPHABETS:
            return _row([_styled(sign, ALPHABETS[name]) for sign in self.word()])
        if name in ("frac", "tfrac", "dfrac"):
            up, down = self.argument(), self.argument()
            text = f"{_short(up.text)}/{_short(down.text)}"
            return Piece(f"<mfrac>{up.xml}{down.xml}</mfrac>", text)
        if name == "binom":
            up, down = self.argument(), self.argument()
            inner = f'<mfrac linethickness="0">{up.xml}{down.xml}</mfrac>'
            return Piece(
                f"<mrow><mo>(</mo>{inner}<mo>)</mo></mrow>", f"({up.text} over {down.text})"
            )
        if name == "sqrt":
            inner = self.argument()
            return Piece(f"<msqrt>{inner.xml}</msqrt>", f"√{_short(inner.text)}")
        if name in SIZES:
            self.skip()
            if name in ("left", "right") and self.peek() == ".":
                self.next()
                return None
            return self.atom()
        if name in IGNORED:
            return None
        if name == "begin" and self.word() == "pmatrix":
            return self.matrix()
        raise self.wrong(f"\\{name} is not known")

    def matrix(self) -> Piece:
        inner, end, rest = self.formula[self.at :].partition(r"\end{pmatrix}")
        if not end:
            raise self.wrong("the end of the matrix is missing")
        self.at = len(self.formula) - len(rest)
        rows = [[_read(entry) for entry in row.split("&")] for row in inner.split(r"\\")]
        cells = ["".join(f"<mtd>{p.xml}</mtd>" for p in row) for row in rows]
        table = "".join(f"<mtr>{row}</mtr>" for row in cells)
        text = "; ".join(", ".join(p.text for p in row) for row in rows)
        whole = f"<mrow><mo>(</mo><mtable>{table}</mtable><mo>)</mo></mrow>"
        return Piece(whole, f"({text})")


def _read(formula: str) -> Piece:
    reader = _Reader(formula.strip())
    try:
        return reader.row()
    except RecursionError:
        raise reader.wrong("it is nested too deep") from None


def mathml(formula: str) -> Markup:
    """A formula in LaTeX (without dollars) as MathML, with its text for those who listen."""
    piece = _read(formula)
    return Markup(f'<math alttext="{escape(piece.text)}">{piece.xml}</math>')


FORMULA = re.compile(r"\$\$?([^$]+)\$\$?")
_SCRIPT = r"\([-+\w/ .*]+\)|-?\d+(?:[./]\d+)?|-?[½¼¾]|[a-zA-Z]\b|[*#]|opt\b|max\b|min\b"
WRITTEN = re.compile(  # powers and indices as one types them: N^(-1/2), W_Q, alpha_*
    rf"(?<=[\w)|])\^({_SCRIPT})|(?<=\w)_([*#])|(?<![a-zA-Z0-9_][a-zA-Z])(?<=[a-zA-Z])_({_SCRIPT})"
)


def _typed(words: str) -> Markup:
    """Words with the powers and indices that are typed in them raised and lowered."""
    made, at = Markup(""), 0
    for found in WRITTEN.finditer(words):
        high, *low = found.groups()
        tag, script = ("sup", high) if high else ("sub", low[0] or low[1])
        script = script.strip("()").replace("-", "−")
        made += words[at : found.start()] + Markup(f"<{tag}>{escape(script)}</{tag}>")
        at = found.end()
    return made + words[at:]


def typeset(text: str) -> Markup:
    """Words with formulas between dollars, and powers and indices as one types them, for a page.

    A formula that cannot be read stays as it was written.
    """
    made, at = Markup(""), 0
    for found in FORMULA.finditer(text):
        made += _typed(text[at : found.start()])
        try:
            made += mathml(found.group(1))
        except InputError:
            made += Markup("<code>{}</code>").format(found.group(1))
        at = found.end()
    return made + _typed(text[at:])


def plain(text: str) -> str:
    """Words with formulas between dollars as text alone: "critical $N^{-1/2}$" is "N^(-1/2)"."""

    def words(found: re.Match[str]) -> str:
        try:
            return _read(found.group(1)).text.replace("−", "-")
        except InputError:
            return found.group(1)

    return " ".join(FORMULA.sub(words, text).split())
