"""Benign and harmful overfitting of a two-layer vision transformer."""

from provingground.study import Simulator, Study

from . import experiments, theory
from .model import Config, Probes, simulate_full, simulate_span

BIBTEX = """
@inproceedings{jiang2024benign_overfitting,
  author = {J. Jiang and W. Huang and M. Zhang and T. Suzuki and L. Nie},
  title = {Unveil benign overfitting for transformer in vision: training dynamics,
    convergence, and generalization},
  booktitle = {Advances in Neural Information Processing Systems (NeurIPS)},
  year = {2024},
}
"""

STUDY = Study(
    name="benign_overfitting",
    title="Benign overfitting of a two-layer vision transformer",
    cite="J. Jiang, W. Huang, M. Zhang, T. Suzuki, L. Nie, Unveil benign overfitting for "
    "transformer in vision: training dynamics, convergence, and generalization, NeurIPS 2024",
    simulators={
        "span": Simulator(Config, simulate_span, Probes, says="inside the span of the tokens"),
        "full": Simulator(Config, simulate_full, Probes, says="all weights, as written"),
    },
    theory=theory.theory,
    experiments=experiments.EXPERIMENTS,
    bibtex=BIBTEX,
)
