"""Training nonlinear transformers for chain-of-thought inference."""

from provingground.study import Study, simulator

from . import deep, full, model, plurality, theory, training
from .figures import EXPERIMENTS

BIBTEX = """
@misc{li2024chain_of_thought,
  author = {H. Li and M. Wang and S. Lu and X. Cui and P.-Y. Chen},
  title = {Training nonlinear transformers for chain-of-thought inference: a theoretical
    generalization analysis},
  eprint = {2410.02167},
  archiveprefix = {arXiv},
  year = {2024},
}
"""

STUDY = Study(
    name="chain_of_thought",
    title="Chain-of-thought inference of a one-layer transformer",
    cite="H. Li, M. Wang, S. Lu, X. Cui, P.-Y. Chen, Training nonlinear transformers for "
    "chain-of-thought inference: a theoretical generalization analysis, arXiv:2410.02167, 2024",
    statement="A one-layer transformer that is trained on examples of $K$ steps learns to attend "
    "to examples at its own step that share its current pattern. It then reasons step by step on "
    "new patterns, from noisy and partly wrong examples, once it sees about "
    r"$(\alpha'\tau^f\rho^f)^{-2}\log M$ of them (Theorem 4). Answering in one step needs more: "
    "the true output must also be the most probable one end to end (Theorem 5).",
    simulators={
        "reduced": simulator(model, says="trained coordinates of W alone"),
        "plurality": simulator(plurality, says="no network: a vote of the matched columns"),
        "training": simulator(training, says="without tests"),
        "full": simulator(full, says="all of W, as written"),
        "deep": simulator(deep, says="layers and heads, by Adam"),
    },
    theory=theory.theory,
    experiments=EXPERIMENTS,
    bibtex=BIBTEX,
)
