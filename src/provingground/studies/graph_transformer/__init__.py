"""Generalisation of a one-layer Graph Transformer with a distance encoding."""

from provingground.study import Study, simulator

from . import citations, four, gat, gcn, graphs, model, nodes, patterns, theory, votes
from .figures import EXPERIMENTS
from .published import actor, cora, described
from .published import votes as counted

BIBTEX = """
@inproceedings{li2024graph_transformer,
  author = {H. Li and M. Wang and T. Ma and S. Liu and Z. Zhang and P.-Y. Chen},
  title = {What improves the generalization of graph transformers? {A} theoretical dive
    into self-attention and positional encoding},
  booktitle = {International Conference on Machine Learning (ICML)},
  year = {2024},
}
"""

STUDY = Study(
    name="graph_transformer",
    title="Generalisation of a one-layer Graph Transformer",
    cite="H. Li, M. Wang, T. Ma, S. Liu, Z. Zhang, P.-Y. Chen, What improves the generalization "
    "of graph transformers? A theoretical dive into self-attention and positional encoding, "
    "ICML 2024",
    statement="A one-layer Graph Transformer with a trainable bias for each distance reaches a "
    r"test loss of $2\epsilon_0$, where $\epsilon_0$ is the share of labels that contradict the "
    "vote of their neighbourhood (Theorem 3.4.4). It needs fewer labels for a larger share "
    r"$\gamma_d$ of telling nodes and a smaller confusion $\epsilon_S$; its bias finds the "
    r"distance $z_m$ that matters, and a graph convolution needs $\gamma_d^{-2}$ times as many "
    "labels (Theorem 3.4.6).",
    simulators={
        "counts": simulator(model, says="on counts of patterns by distance"),
        "nodes": simulator(nodes, says="on nodes, as written"),
        "graphs": simulator(graphs, says="on whole graphs"),
        "four": simulator(four, says="four classes, two copies"),
        "gat": simulator(gat, says="a GAT on ring 1"),
        "patterns": simulator(
            patterns, precision="float64", says="published graphs, directions of a class", host=True
        ),
        "votes": simulator(
            votes, precision="float64", says="published graphs, votes of the rings", host=True
        ),
        "citations": simulator(citations, says="a published graph, a Transformer block"),
        "gcn": simulator(gcn, says="a published graph, a graph convolution"),
    },
    theory=theory.theory,
    experiments=EXPERIMENTS,
    data={"described": described, "votes": counted, "cora": cora, "actor": actor},
    bibtex=BIBTEX,
)
