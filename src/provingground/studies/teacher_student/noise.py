r"""What noise adds to the excess loss of online SGD, over gradient descent on the population.

Late in training the weights fluctuate around those of the recursion. A mode of curvature $h$ that
gradients of covariance $\Sigma/N$ drive keeps up an excess of $\eta\,\mathrm{tr}\Sigma/(2N(2-\eta
h))$. Gradients are noisy since labels are, and since a batch holds few inputs: with $s_i$ a column
of the student's scores and $r_i = C_1s_i - s^*_i$ that of its error, row $m$ of the gradient is
$\sum_i\langle v_m, Xr_i\rangle Xs_i$. Columns enter through their overlaps alone.
"""

from typing import Any, NamedTuple

import numpy as np


class Floor(NamedTuple):
    """The parts of the excess: of label noise through the values and through attention, and of
    the noise of a batch's inputs through the values."""

    labels: Any
    attention: Any
    inputs: Any

    @property
    def total(self) -> Any:
        return self.labels + self.attention + self.inputs


def overlaps(teacher: str, d: int, k: int) -> list[tuple[int, int]]:
    """How many columns share how many tokens with a column, itself included."""
    if teacher == "cnn":
        return [(k, k), (d - k, 0)]
    if teacher == "gcn":
        ring = np.arange(d) < k
        shared = [int(np.sum(ring & np.roll(ring, shift))) for shift in range(d)]
        return [(shared.count(o), o) for o in sorted(set(shared))]
    return [(d, k)]


def sgd_floor(
    teacher: str,
    d: Any,
    k: Any,
    lr: Any,
    kappa: Any,
    dim: Any,
    outputs: Any,
    energy: Any,
    noise: Any,
    batch: Any,
    leak: Any,
    value: Any,
) -> Floor:
    r"""At a leak $\epsilon$ and $C_1$ of the recursion, with $H = DF_1$ the curvature of $W_V$.

    Labels, through the values: $Md\,H\eta\sigma_\xi^2/(2N\,(2-\eta H-\mu))$, times $1 +
    \frac23\epsilon$, for this noise also keeps attention from the last of its support:
    $\epsilon$ grows by $\frac13E\|\delta W\|^2(D-K)/(K\mathcal V)$.
    $\mu = \eta(d+1)\sum_{ij}g_{ij}\langle s_i,s_j\rangle^2/(NH)$ is what the inputs of a batch
    change in $H$.

    Labels, through attention: $\eta\sigma_\xi^2c_\sigma\mathcal V(\sum s^2 - 2\sum s^3 + (\sum
    s^2)^2)/(4N)$.

    Inputs: $\eta\mathcal V/(2N(2-\eta H-\mu))$ times $\sum_{ij}g_{ij}\,d\,\langle s_i,s_j\rangle
    \langle r_i,r_j\rangle + c_\sigma^2\langle r_i,s_j\rangle\langle r_j,s_i\rangle$, exact for the
    identity. For $\kappa < 1$ it is of leading order in the leak, and where groups overlap in part
    up to a fifth too small, with
    $g_{ij} = E[\sigma'^2\sigma'^2] = c_\sigma^2 + (\frac{1-\kappa^2}2)^2\frac2\pi\arcsin\rho_{ij}$.
    """
    c, bent = (1 + kappa**2) / 2, (1 - kappa**2) / 2
    p, q = (1 - leak) / k, leak / (d - k)
    a, b = value * p - 1 / k, value * q  # the error on and off the support

    def product(o: Any, x: tuple[Any, Any], y: tuple[Any, Any]) -> Any:
        """Of two columns whose supports share o tokens."""
        one = (k - o) * (x[0] * y[1] + x[1] * y[0])
        return o * x[0] * y[0] + one + (d - 2 * k + o) * x[1] * y[1]

    own = product(k, (p, q), (p, q))
    curvature = d * c * own
    inputs, shaken = 0.0, 0.0
    for number, o in overlaps(teacher, int(d), int(k)):
        seen, wrong = product(o, (p, q), (p, q)), product(o, (a, b), (a, b))
        both = c**2 + bent**2 * (2 / np.pi) * np.arcsin(np.clip(seen / own, -1, 1))
        inputs = inputs + d * number * (both * dim * seen * wrong)
        inputs = inputs + d * number * c**2 * product(o, (a, b), (p, q)) ** 2
        shaken = shaken + d * number * both * seen**2
    calm = 2 - lr * curvature - lr * (dim + 1) * shaken / (batch * curvature)
    squares, cubes = k * p**2 + (d - k) * q**2, k * p**3 + (d - k) * q**3
    return Floor(
        labels=dim * outputs * curvature * lr * noise**2 / (2 * batch * calm) * (1 + 2 * leak / 3),
        attention=lr * noise**2 * c * energy * (squares - 2 * cubes + squares**2) / (4 * batch),
        inputs=lr * energy * inputs / (2 * batch * calm),
    )
