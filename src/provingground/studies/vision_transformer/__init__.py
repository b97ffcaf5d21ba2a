"""Learning and generalisation of a shallow vision transformer."""

from provingground.study import Study, simulator

from . import model, pasted, photographs, theory, tokens
from .figures import EXPERIMENTS

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
    statement="A shallow vision transformer reaches zero test loss after "
    r"$\Theta(\eta^{-3/5}\alpha_*^{-1})$ steps once it has about $\alpha_*^{-2}$ samples, with "
    r"$\alpha_*$ the share of tokens that carry the label (Theorem 1); with attention frozen, as "
    r"in a convolutional network, it needs $\alpha_*^{-4}$ (Proposition 1). Attention moves to "
    "the tokens that matter (Proposition 2), so dropping irrelevant or noisy tokens saves "
    "samples.",
    simulators={
        "patterns": simulator(model, says="on patterns: tokens without noise"),
        "tokens": simulator(tokens, says="on tokens, as written"),
        "photographs": simulator(photographs, says="on photographs, a deep one"),
    },
    theory=theory.theory,
    experiments=EXPERIMENTS,
    data={"pasted": pasted.halves},
    bibtex=BIBTEX,
)
