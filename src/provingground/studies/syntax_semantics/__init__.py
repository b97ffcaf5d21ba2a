"""Easy before hard: two stages of learning in a ReLU attention layer."""

from provingground.study import Study, simulator

from . import facts, gradient, kq, language, model, picture, reduced, theory, whole
from .figures import EXPERIMENTS
from .questions import counterfact, hotpotqa

BIBTEX = """
@misc{syntax_semantics,
  author = {Anonymous},
  title = {Mastering syntax, unlocking semantics: a mathematically provable two-stage
    learning process in transformers},
  note = {Under double-blind review},
  year = {2024},
}
"""

STUDY = Study(
    name="syntax_semantics",
    title="Easy before hard: two stages of learning in a ReLU attention layer",
    cite="Mastering syntax, unlocking semantics: a mathematically provable two-stage learning "
    "process in transformers, anonymous, under double-blind review, 2024",
    statement=r"A ReLU attention layer learns in two stages. At a large step $\eta_1$ it learns "
    "the easy, linearly separable part of its input and leaves the weights $V$ of the hard part "
    r"where they were (Theorems 1, 2); at a small step $\eta_2 \ll \eta_1$ it then learns the "
    "hard part and keeps the weights $W$ of the easy one (Theorems 3, 4), while the traces of "
    "$W$ and $V$ change their order (Corollary 1).",
    simulators={
        "reduced": simulator(reduced, precision="float64", says="the population in five numbers"),
        "full": simulator(model, precision="float64", says="W and V on N prompts"),
        "whole": simulator(whole, precision="float64", says="all of U, or with softmax"),
        "kq": simulator(kq, precision="float64", says="keys and queries, no noise"),
        "facts": simulator(facts, says="a small transformer and a table of facts"),
        "language": simulator(language, says="the same, and real facts and questions"),
        "picture": simulator(picture, says="tokens in the plane"),
        "gradient": simulator(gradient, precision="float64", says="Proposition 2, no training"),
    },
    theory=theory.theory,
    experiments=EXPERIMENTS,
    data={"counterfact": counterfact, "hotpotqa": hotpotqa},
    bibtex=BIBTEX,
)
