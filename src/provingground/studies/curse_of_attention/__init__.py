"""Why attention loses to a residual linear model on next-step prediction."""

from provingground.study import Simulator, Study

from . import experiments, theory
from .model import (
    Config,
    Gaussian,
    GaussianProbes,
    KernelProbes,
    Probes,
    RidgeProbes,
    simulate,
    simulate_gaussian,
    simulate_kernel,
    simulate_ridge,
)

STUDY = Study(
    name="curse_of_attention",
    title="The curse of attention in next-step prediction",
    cite="Y. Ke, Y. Liang, Z. Shi, Z. Song, C. Yang, Curse of attention: a kernel-based perspective "
    "for why transformers fail to generalize on time series forecasting and beyond, 2024",
    simulators={
        "descent": Simulator(Config, simulate, Probes, says="the paper's network and training"),
        "kernel": Simulator(
            Config, simulate_kernel, KernelProbes, "float64", "tangent kernel at the start"
        ),
        "ridge": Simulator(
            Config, simulate_ridge, RidgeProbes, "float64", "best measure over neurons"
        ),
        "gaussian": Simulator(
            Gaussian, simulate_gaussian, GaussianProbes, says="attention on Gaussian series"
        ),
    },
    theory=theory.theory,
    experiments=experiments.EXPERIMENTS,
)
