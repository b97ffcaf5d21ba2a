"""Graph convolutional networks trained with graph topology sampling."""

from provingground.study import Study, simulator

from . import algorithm2, model, rows, sparse, theory
from .figures import EXPERIMENTS

BIBTEX = """
@inproceedings{li2022graph_sampling,
  author = {H. Li and M. Wang and S. Liu and P.-Y. Chen and J. Xiong},
  title = {Generalization guarantee of training graph convolutional networks with graph
    topology sampling},
  booktitle = {International Conference on Machine Learning (ICML)},
  year = {2022},
}
"""

STUDY = Study(
    name="graph_sampling",
    title="Graph convolutional networks and graph topology sampling",
    cite="H. Li, M. Wang, S. Liu, P.-Y. Chen, J. Xiong, Generalization guarantee of training graph "
    "convolutional networks with graph topology sampling, ICML 2022",
    statement="A graph convolutional network that sees a random part of the graph in every step "
    "learns as well as the best function of a class in which an effective matrix $A^* = AP^*$ "
    "stands for the adjacency $A$ (Theorem 5.3.1). The labels it needs grow with "
    r"$\|A^*\|_\infty$, with the largest degree and with $\log m$; sampling helps because it "
    "damps dominating groups of nodes.",
    simulators={
        "dense": simulator(model, says="practical form, dense products"),
        "sparse": simulator(sparse, says="lists of neighbours"),
        "algorithm2": simulator(algorithm2, says="Algorithm 2 as written"),
        "rows": simulator(rows, precision="float64", says="sampled matrices, no training"),
    },
    theory=theory.theory,
    experiments=EXPERIMENTS,
    bibtex=BIBTEX,
)
