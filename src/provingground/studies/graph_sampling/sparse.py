"""The training of `model` with lists of neighbours: no N x N array, and graphs of one's own."""

from jaxtyping import Array, Key

from provingground.train import by_lane

from .graph import Graph
from .model import Config, Probes, drawn_graph, random_task, train

__all__ = ["Config", "Probes", "simulate"]


def simulate(cfg: Config, key: Key[Array, ""], data: Graph | None = None) -> Probes:
    """One training on a random graph, or on one's own, with products over lists of neighbours."""

    def whole(cfg: Config) -> Probes:
        graph = drawn_graph(cfg, key, sparse=True) if data is None else data
        return train(cfg, key, random_task(cfg, key, graph))

    return by_lane(whole, cfg)
