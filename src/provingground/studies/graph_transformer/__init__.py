"""Generalisation of a one-layer Graph Transformer with a distance encoding."""

from provingground.study import Simulator, Study

from . import experiments, theory
from .graph_level import GraphProbes, simulate_graphs
from .model import Config, Probes, simulate
from .nodes import simulate_nodes

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
        "counts": Simulator(Config, simulate, Probes, says="on counts of patterns by distance"),
        "nodes": Simulator(Config, simulate_nodes, Probes, says="on nodes, as written"),
        "graphs": Simulator(Config, simulate_graphs, GraphProbes, says="on whole graphs"),
    },
    theory=theory.theory,
    experiments=experiments.EXPERIMENTS,
    bibtex=BIBTEX,
)
