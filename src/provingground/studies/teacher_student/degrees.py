"""Beyond the paper: groups of two sizes. The recursion of Lemma C.2 with a logit for each size;
the columns share the values alone."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe
from provingground.train import iterate

from .data import Config as PaperConfig
from .data import values_of
from .model import record_steps, report
from .recursion import Population, leak_of, population_excess, population_step


@config
class Config(PaperConfig):
    """A part of the columns has groups of another size."""

    teacher: str = par("gcn", "f^*", "teacher, whose values are taken", choices=("gcn", "sts"))
    tokens: int = par(36, "D", "tokens", low=5, value=True)
    group: int = par(4, "K", "size of most groups", low=1, value=True)
    other: int = par(12, "K'", "size of the other groups", low=1, value=True)
    part: float = par(0.5, r"\phi", "part of the columns with the other size", low=0, high=1)
    steps: int = par(200_000, "T", "steps", low=1)


class Probes(eqx.Module):
    """What one training reports; `degree` numbers the two sizes."""

    test_loss: Float[Array, "step"] = probe("excess loss", r"L - L_{\mathrm{opt}}")
    value: Float[Array, "step"] = probe("projection of W_V on V*", "C_1")
    leaks: Float[Array, "step degree"] = probe("attention outside of the support", r"\epsilon")
    energy: Float[Array, ""] = probe("teacher energy", r"\mathcal{V} = \sum_m\|v_m\|^2")
    stopped_at: Int[Array, ""] = probe("last step", "T")
    step: Int[Array, "step"] = probe("step", "t")


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """Gradient descent on the population loss, exactly, as a recursion of three numbers."""
    d, energy = jnp.asarray(cfg.tokens, float), jnp.sum(values_of(cfg, key) ** 2)
    k = jnp.stack([jnp.asarray(cfg.group, float), jnp.asarray(cfg.other, float)])
    columns = d * jnp.stack([1 - jnp.asarray(cfg.part), jnp.asarray(cfg.part)])

    def measure(state: Population) -> dict[str, Float[Array, "..."]]:
        leaks = leak_of(state.logit, d, k)
        loss = population_excess(state.value, leaks, d, k, energy, cfg.kappa, columns)
        return dict(test_loss=loss, value=state.value, leaks=leaks)

    trace = iterate(
        lambda s, t: population_step(s, t == 0, d, k, energy, cfg.lr, cfg.kappa, columns),
        Population(jnp.zeros(()), jnp.zeros(2)),
        steps=cfg.steps,
        at=record_steps(cfg)[1],
        probe=measure,
    )
    return Probes(**report(cfg, trace), energy=energy)
