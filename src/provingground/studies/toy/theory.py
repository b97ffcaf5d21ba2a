"""Every theorem as functions of plain numbers, and `theory(cfg)` which calls them."""

from typing import Any

from provingground.study import Condition, Prediction

from .model import Config


def excess_risk(samples: Any, dim: Any, noise: Any) -> Any:
    r"""Exact mean excess risk of least squares on Gaussian inputs, $\sigma^2 d/(N-d-1)$."""
    return noise**2 * dim / (samples - dim - 1)


def theory(cfg: Config) -> Prediction:
    """The law, and the condition under which the mean exists."""
    fits = Condition("samples", cfg.samples, ">=", cfg.dim + 2, "the mean excess risk is finite")
    stable = Condition("step size", cfg.lr, "<=", 0.5, "descent is stable where N is large")
    risk = excess_risk(cfg.samples, cfg.dim, cfg.noise) if fits.satisfied else float("inf")
    says = {"excess_risk": "mean excess risk, σ²d/(N - d - 1)"}
    return Prediction((fits, stable), {"excess_risk": risk}, says)
