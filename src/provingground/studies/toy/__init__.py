"""Least squares by gradient descent: the skeleton of a study, with a law known exactly."""

from provingground.study import Study, simulator

from . import model, theory
from .figures import EXPERIMENTS

STUDY = Study(
    name="toy",
    title="Least squares by gradient descent",
    cite="L. Breiman and D. Freedman, How many variables should be entered in a regression "
    "equation?, J. Amer. Statist. Assoc. 78, 1983",
    statement="The mean excess risk of least squares with $N$ samples of $d$ Gaussian inputs and "
    r"label noise $\sigma$ is exactly $\sigma^2d/(N-d-1)$, and gradient descent that runs long "
    "enough finds the least-squares solution.",
    simulators={"descent": simulator(model)},
    theory=theory.theory,
    experiments=EXPERIMENTS,
)
