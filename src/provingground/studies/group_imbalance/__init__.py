"""Group imbalance: a one-hidden-layer network on a Gaussian mixture of groups."""

from provingground.study import Simulator, Study

from . import experiments, theory
from .descent import (
    DescentConfig,
    DescentProbes,
    LargeMapConfig,
    MapConfig,
    MapProbes,
    StartsConfig,
    StartsProbes,
    simulate_descent,
    simulate_map,
    simulate_starts,
)
from .model import Config, LocalProbes, Probes, WideConfig, simulate_fit, simulate_local
from .tensor import TensorConfig, TensorProbes, simulate_tensor

BIBTEX = """
@article{li2024group_imbalance,
  author = {H. Li and S. Zhang and Y. Zhang and M. Wang and S. Liu and P.-Y. Chen},
  title = {How does promoting the minority fraction affect generalization? {A} theoretical
    study of one-hidden-layer neural network on group imbalance},
  journal = {IEEE J. Sel. Top. Signal Process.},
  volume = {18},
  number = {2},
  year = {2024},
}
"""

STUDY = Study(
    name="group_imbalance",
    title="Group imbalance of a one-hidden-layer network",
    cite="H. Li, S. Zhang, Y. Zhang, M. Wang, S. Liu, P.-Y. Chen, How does promoting the minority "
    "fraction affect generalization? A theoretical study of one-hidden-layer neural network on "
    "group imbalance, IEEE J. Sel. Top. Signal Process. 18(2), 2024",
    statement="A one-hidden-layer network trained on a mixture of groups converges linearly to a "
    r"point within $O(\sqrt{d\log n/n})$ of its teacher, given $n \gtrsim \mathcal "
    r"B(\Psi)\,d\log^2d$ samples (Theorem 2). All of it gets worse when a group's covariance "
    "leaves a medium range or its mean leaves 0; more of a minority helps if its covariance is "
    "the smallest, and harms if it is the largest (Corollary 4.4.1).",
    simulators={
        "fit": Simulator(Config, simulate_fit, Probes, "float64", "the minimiser, by Newton"),
        "wide": Simulator(WideConfig, simulate_fit, Probes, "float64", "for any number of neurons"),
        "local": Simulator(Config, simulate_local, LocalProbes, "float64", "limits of large n"),
        "descent": Simulator(
            DescentConfig, simulate_descent, DescentProbes, "float64", "Algorithm 1, in time"
        ),
        "starts": Simulator(
            StartsConfig, simulate_starts, StartsProbes, "float64", "from tensor and other starts"
        ),
        "tensor": Simulator(
            TensorConfig, simulate_tensor, TensorProbes, "float64", "Subroutine 1 alone"
        ),
        "map": Simulator(MapConfig, simulate_map, MapProbes, says="from many starts, as a success"),
        "large_map": Simulator(
            LargeMapConfig, simulate_map, MapProbes, says="the same, one program for all sizes"
        ),
    },
    theory=theory.theory,
    experiments=experiments.EXPERIMENTS,
    bibtex=BIBTEX,
)
