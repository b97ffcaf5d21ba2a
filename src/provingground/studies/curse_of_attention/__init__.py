"""Why attention loses to a residual linear model on next-step prediction."""

from provingground.study import Study, simulator

from . import (
    encoder,
    few,
    forecast,
    gaussian,
    head,
    kernel,
    linear,
    local,
    mlp,
    model,
    ridge,
    scalar,
    theory,
)
from .figures import EXPERIMENTS
from .hourly import etth

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
    "(Theorem 5.2), and neurons with $a_r = -1$ attend to the last step no more than to the others "
    "(Theorem 5.3). On "
    r"series whose last and next values differ in sign its risk is therefore not $\tilde "
    r"O(\sigma^2)$, whereas a residual linear network has $O(\sigma^2)$ (Proposition 6.3).",
    simulators={
        "descent": simulator(model, says="the paper's network and training"),
        "few": simulator(few, precision="float64", says="two samples, until the loss is gone"),
        "kernel": simulator(kernel, precision="float64", says="the tangent kernel at the start"),
        "linear": simulator(linear, precision="float64", says="linear networks by least squares"),
        "ridge": simulator(ridge, precision="float64", says="the best measure over neurons"),
        "gaussian": simulator(gaussian, says="one neuron on Gaussian series"),
        "local": simulator(local, precision="float64", says="section 7.1"),
        "scalar": simulator(scalar, says="section 7.2, variants of the paper's network"),
        "head": simulator(head, says="section 7.2, one head with an embedding"),
        "mlp": simulator(mlp, says="a baseline, one hidden layer"),
        "forecast": simulator(forecast, says="real series, linear forecasters"),
        "encoder": simulator(encoder, says="real series, an encoder"),
    },
    theory=theory.theory,
    experiments=EXPERIMENTS,
    data={"etth": etth},
    bibtex=BIBTEX,
)
