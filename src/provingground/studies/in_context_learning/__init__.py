"""In-context learning of a one-layer transformer."""

from provingground.study import Simulator, Study

from . import experiments, theory
from .baselines import Fitted, Learners, simulate_learners
from .full import simulate_full
from .gpt2 import Decoder, DecoderProbes, simulate_decoder
from .mechanism import Mechanism, simulate_mechanism
from .model import Config, Probes, simulate

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
        "reduced": Simulator(Config, simulate, Probes, says="in coordinates of the patterns"),
        "mechanism": Simulator(
            Config, simulate_mechanism, Mechanism, says="the same, measured in every way"
        ),
        "full": Simulator(Config, simulate_full, Probes, says="all weights, as written"),
        "decoder": Simulator(
            Decoder, simulate_decoder, DecoderProbes, says="three layers, two heads"
        ),
        "learners": Simulator(
            Fitted, simulate_learners, Learners, says="beside fitted classifiers", host=True
        ),
    },
    theory=theory.theory,
    experiments=experiments.EXPERIMENTS,
    bibtex=BIBTEX,
)
