"""Least squares by gradient descent: the skeleton of a study, with a law known exactly."""

from provingground.study import Simulator, Study

from . import experiments, theory
from .model import Config, Probes, simulate

STUDY = Study(
    name="toy",
    title="Least squares by gradient descent",
    cite="L. Breiman and D. Freedman, How many variables should be entered in a regression "
    "equation?, J. Amer. Statist. Assoc. 78, 1983",
    simulators={"descent": Simulator(Config, simulate, Probes)},
    theory=theory.theory,
    experiments=experiments.EXPERIMENTS,
)
