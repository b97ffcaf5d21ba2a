"""Benign and harmful overfitting of a two-layer vision transformer."""

from provingground.study import Simulator, Study

from . import experiments, theory
from .model import Config, Probes, simulate_full, simulate_span

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
)
