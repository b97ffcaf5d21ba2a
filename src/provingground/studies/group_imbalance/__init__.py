"""Group imbalance: a one-hidden-layer network on a Gaussian mixture of groups."""

from provingground.study import Study, simulator

from . import (
    bounds,
    closed,
    descent,
    images,
    large_map,
    local,
    model,
    pools,
    starts,
    tensor,
    theory,
    wide,
)
from . import map as success_map
from .figures import EXPERIMENTS

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
        "fit": simulator(model, precision="float64", says="the minimiser, by Newton"),
        "wide": simulator(wide, precision="float64", says="for any number of neurons"),
        "local": simulator(local, precision="float64", says="limits of large n"),
        "closed": simulator(closed, precision="float64", says="closed forms", host=True),
        "bounds": simulator(bounds, precision="float64", says="bounds and limits", host=True),
        "descent": simulator(descent, precision="float64", says="Algorithm 1, in time"),
        "starts": simulator(starts, precision="float64", says="from tensor and other starts"),
        "tensor": simulator(tensor, precision="float64", says="Subroutine 1 alone"),
        "map": simulator(success_map, says="from many starts, as a success"),
        "large_map": simulator(large_map, says="the same, one program for all sizes"),
        "images": simulator(images, says="real images of two groups"),
    },
    theory=theory.theory,
    experiments=EXPERIMENTS,
    data={"mnist": pools.mnist, "cifar": pools.cifar, "celeba": pools.celeba},
    bibtex=BIBTEX,
)
