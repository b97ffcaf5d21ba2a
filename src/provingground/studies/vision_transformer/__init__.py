"""Learning and generalisation of a shallow vision transformer."""

from provingground.study import Simulator, Study

from . import experiments, theory
from .model import Config, Probes, simulate
from .tokens import Tokens, simulate_tokens

BIBTEX = """
@inproceedings{li2023vision_transformer,
  author = {H. Li and M. Wang and S. Liu and P.-Y. Chen},
  title = {A theoretical understanding of shallow vision transformers: learning,
    generalization, and sample complexity},
  booktitle = {International Conference on Learning Representations (ICLR)},
  year = {2023},
}
"""

STUDY = Study(
    name="vision_transformer",
    title="Learning, generalisation and sample complexity of a shallow vision transformer",
    cite="H. Li, M. Wang, S. Liu, P.-Y. Chen, A theoretical understanding of shallow vision "
    "transformers: learning, generalization, and sample complexity, ICLR 2023",
    simulators={
        "patterns": Simulator(Config, simulate, Probes, says="on patterns: tokens without noise"),
        "tokens": Simulator(Tokens, simulate_tokens, Probes, says="on tokens, as written"),
    },
    theory=theory.theory,
    experiments=experiments.EXPERIMENTS,
    bibtex=BIBTEX,
)
