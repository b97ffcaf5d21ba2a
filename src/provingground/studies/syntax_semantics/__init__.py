"""Easy before hard: two stages of learning in a ReLU attention layer."""

from provingground.study import Simulator, Study

from . import experiments, theory
from .model import (
    Config,
    GradientProbes,
    KQProbes,
    PictureProbes,
    Probes,
    simulate_full,
    simulate_gradient,
    simulate_kq,
    simulate_picture,
    simulate_reduced,
)

STUDY = Study(
    name="syntax_semantics",
    title="Easy before hard: two stages of learning in a ReLU attention layer",
    cite="Mastering syntax, unlocking semantics: a mathematically provable two-stage learning "
    "process in transformers, anonymous, under double-blind review, 2024",
    simulators={
        "reduced": Simulator(
            Config, simulate_reduced, Probes, "float64", says="the population in five numbers"
        ),
        "full": Simulator(Config, simulate_full, Probes, "float64", says="W and V on N prompts"),
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
)
