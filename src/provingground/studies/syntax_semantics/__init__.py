"""Easy before hard: two stages of learning in a ReLU attention layer."""

from provingground.study import Simulator, Study

from . import experiments, theory
from .kq import KQProbes, simulate_kq
from .model import Config, Probes, simulate_full
from .reduced import simulate_reduced
from .still import GradientProbes, PictureProbes, simulate_gradient, simulate_picture
from .whole import WholeConfig, simulate_whole

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
        "reduced": Simulator(
            Config, simulate_reduced, Probes, "float64", says="the population in five numbers"
        ),
        "full": Simulator(Config, simulate_full, Probes, "float64", says="W and V on N prompts"),
        "whole": Simulator(
            WholeConfig, simulate_whole, Probes, "float64", says="all of U, or with softmax"
        ),
        "kq": Simulator(
            Config, simulate_kq, KQProbes, "float64", says="keys and queries, no noise"
        ),
        "picture": Simulator(Config, simulate_picture, PictureProbes, says="tokens in the plane"),
        "gradient": Simulator(
            Config, simulate_gradient, GradientProbes, "float64", says="Proposition 2 at two places"
        ),
    },
    theory=theory.theory,
    experiments=experiments.EXPERIMENTS,
    bibtex=BIBTEX,
)
