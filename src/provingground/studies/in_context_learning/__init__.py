"""In-context learning of a one-layer transformer."""

from provingground.study import Study, simulator

from . import decoder, full, graphs, learners, mechanism, model, theory
from .figures import EXPERIMENTS

BIBTEX = """
@inproceedings{li2024in_context_learning,
  author = {H. Li and M. Wang and S. Lu and X. Cui and P.-Y. Chen},
  title = {How do nonlinear transformers learn and generalize in in-context learning?},
  booktitle = {International Conference on Machine Learning (ICML)},
  year = {2024},
}
"""

STUDY = Study(
    name="in_context_learning",
    title="How nonlinear transformers learn and generalise in context",
    cite="H. Li, M. Wang, S. Lu, X. Cui, P.-Y. Chen, How do nonlinear transformers learn and "
    "generalize in in-context learning?, ICML 2024",
    statement="A one-layer transformer trained on a few classification tasks solves unseen ones "
    "in context if the training tasks give each pattern each label equally often, for which "
    "$M_1$ of the $M_1(M_1-1)$ tasks are enough (Theorem 6.3.3), and even tasks on new patterns "
    "whose coefficients in the old ones sum to 1 or more (Theorem 6.3.4). Pruning its small "
    r"neurons is free; pruning a share $R$ of the large ones costs $\Omega(R)$ (Theorem 6.3.7).",
    simulators={
        "reduced": simulator(model, says="in coordinates of the patterns"),
        "mechanism": simulator(mechanism, says="the same, measured in every way"),
        "graphs": simulator(graphs, says="on other task graphs, tested on pairs of patterns"),
        "full": simulator(full, says="all weights, as written"),
        "decoder": simulator(decoder, says="three layers, two heads"),
        "learners": simulator(learners, says="beside fitted classifiers", host=True),
    },
    theory=theory.theory,
    experiments=EXPERIMENTS,
    bibtex=BIBTEX,
)
