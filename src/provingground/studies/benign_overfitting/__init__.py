"""Benign and harmful overfitting of a two-layer vision transformer."""

from provingground.study import Study, simulator

from . import digits, full, model, theory
from .digits import mnist
from .figures import EXPERIMENTS

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
    statement="A two-layer vision transformer that fits its training data down to any loss "
    r"$\epsilon$ also predicts well if $N\,\mathrm{SNR}^2 = \Omega(1)$ (Theorem 4.1), and keeps a "
    r"test loss of order one if $N^{-1}\mathrm{SNR}^{-2} = \Omega(1)$ (Theorem 4.2): the two sides "
    r"meet where $N\,\mathrm{SNR}^2$ is some constant. On the way the values grow first, then "
    "attention becomes sparse, then the loss converges.",
    simulators={
        "span": simulator(model, says="inside the span of the tokens"),
        "full": simulator(full, says="all weights, as written"),
        "digits": simulator(digits, says="digits in a frame of noise"),
    },
    theory=theory.theory,
    experiments=EXPERIMENTS,
    data={"mnist": mnist},
    bibtex=BIBTEX,
)
