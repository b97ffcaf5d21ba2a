"""Why attention loses to a residual linear model on next-step prediction."""

from provingground.study import Simulator, Study

from . import experiments, local, model, remedies, series, theory

BIBTEX = """
@misc{ke2024curse_of_attention,
  author = {Y. Ke and Y. Liang and Z. Shi and Z. Song and C. Yang},
  title = {Curse of attention: a kernel-based perspective for why transformers fail to
    generalize on time series forecasting and beyond},
  year = {2024},
}
"""

STUDY = Study(
    name="curse_of_attention",
    title="The curse of attention in next-step prediction",
    cite="Y. Ke, Y. Liang, Z. Shi, Z. Song, C. Yang, Curse of attention: a kernel-based "
    "perspective for why transformers fail to generalize on time series forecasting and "
    "beyond, 2024",
    statement="A softmax attention layer trained in the kernel regime drives its training loss "
    "to zero while each neuron's weight $w_r$ takes the sign of its fixed output weight $a_r$ "
    "(Theorem 5.2), and neurons with $w_r < 0$ attend to the last step least (Theorem 5.3). On "
    r"series whose last and next values differ in sign its risk is therefore not $\tilde "
    r"O(\sigma^2)$, whereas a residual linear network has $O(\sigma^2)$ (Proposition 6.3).",
    simulators={
        "descent": Simulator(
            model.Config, model.simulate, model.Probes, says="the paper's network and training"
        ),
        "series": Simulator(
            model.Config,
            series.simulate_series,
            series.SeriesProbes,
            "float64",
            "the state-space model",
        ),
        "kernel": Simulator(
            model.Config,
            model.simulate_kernel,
            model.KernelProbes,
            "float64",
            "the tangent kernel at the start",
        ),
        "ridge": Simulator(
            model.Ridge,
            model.simulate_ridge,
            model.RidgeProbes,
            "float64",
            "the best measure over neurons",
        ),
        "gaussian": Simulator(
            model.Gaussian,
            model.simulate_gaussian,
            model.GaussianProbes,
            says="one neuron on Gaussian series",
        ),
        "local": Simulator(
            local.Local, local.simulate_local, local.LocalProbes, "float64", "section 7.1"
        ),
        "scalar": Simulator(
            remedies.Scalar,
            remedies.simulate_scalar,
            remedies.RemedyProbes,
            says="section 7.2, variants of the paper's network",
        ),
        "head": Simulator(
            remedies.Head,
            remedies.simulate_head,
            remedies.RemedyProbes,
            says="section 7.2, one head with an embedding",
        ),
    },
    theory=theory.theory,
    experiments=experiments.EXPERIMENTS,
    bibtex=BIBTEX,
)
