r"""Gaussian expectations of $\sigma(x) = x$ for $x \ge 0$, $\kappa x$ below, in closed form.

$\kappa = 1$ is the identity, $\kappa = 0$ the ReLU, anything between a leaky ReLU. $x_1, x_2, x_3$
are independent, centred, of variances $a, b, c$. Plain numbers, NumPy arrays and DataArrays are
computed in float64, arrays of jax (also traced) in their own precision. Quadrature would be wrong
across the kink.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

PI = np.pi


def numpy_of(*arrays: Any) -> Any:
    """jax.numpy if one of the arrays is jax's, else NumPy."""
    return jnp if any(isinstance(x, jax.Array) for x in arrays) else np


def kernel(s: Any, t: Any, rho: Any, kappa: Any) -> Any:
    r"""$k(s, t, \rho) = E[\sigma(u)\sigma(w)]$ for s.d. $s, t$ and correlation $\rho$.

    With $\sigma(x) = \alpha x + \beta|x|$, $\alpha = (1+\kappa)/2$, $\beta = (1-\kappa)/2$:
    $k = st\,[\alpha^2\rho + \beta^2\frac2\pi(\sqrt{1-\rho^2} + \rho\arcsin\rho)]$.

    >>> float(kernel(1.0, 1.0, 1.0, 0.0))
    0.5
    """
    xp = numpy_of(s, t, rho, kappa)
    rho = xp.clip(rho, -1.0, 1.0)  # a correlation may miss its range by rounding
    bent = (2 / PI) * ((1 - rho**2) ** 0.5 + rho * xp.arcsin(rho))
    return s * t * (((1 + kappa) / 2) ** 2 * rho + ((1 - kappa) / 2) ** 2 * bent)


def f1(a: Any, kappa: Any) -> Any:
    r"""$F_1(a) = E[x_1\sigma(x_1)\sigma'(x_1)] = \frac{1+\kappa^2}2 a$."""
    return (1 + kappa**2) / 2 * a


def f2(a: Any, b: Any, kappa: Any) -> Any:
    r"""$F_2(a,b) = E[x_1\sigma(x_1+x_2)\sigma'(x_1+x_2)] = \frac{1+\kappa^2}2 a$, for every $b$."""
    return f1(a, kappa) + 0 * b


def f3(a: Any, b: Any, kappa: Any) -> Any:
    r"""$F_3(a,b) = E[(x_1+x_2)\sigma(x_1)\sigma'(x_1+x_2)]$.

    $\frac{(1+\kappa)^2}4a + \frac{(1-\kappa)^2}{2\pi}\big(a\arctan\sqrt{a/b} + \sqrt{ab}\big)$.
    """
    xp = numpy_of(a, b, kappa)
    bent = a * xp.arctan2(a**0.5, b**0.5) + (a * b) ** 0.5
    return (1 + kappa) ** 2 / 4 * a + (1 - kappa) ** 2 / (2 * PI) * bent


def f4(a: Any, b: Any, c: Any, kappa: Any) -> Any:
    r"""$F_4(a,b,c) = E[x_1\sigma(x_1+x_2)\sigma'(x_1+x_2+x_3)]$.

    $\frac{(1+\kappa)^2}4a + \frac{(1-\kappa)^2}{2\pi}a\big(\arctan\sqrt{(a+b)/c} +
    \frac{\sqrt{(a+b)c}}{a+b+c}\big)$.
    """
    xp = numpy_of(a, b, c, kappa)
    bent = xp.arctan2((a + b) ** 0.5, c**0.5) + ((a + b) * c) ** 0.5 / (a + b + c)
    return (1 + kappa) ** 2 / 4 * a + (1 - kappa) ** 2 / (2 * PI) * a * bent


def f5(a: Any, b: Any, c: Any, kappa: Any) -> Any:
    r"""$F_5(a,b,c) = E[x_2\sigma(x_1)\sigma'(x_1+x_2+x_3)]$.

    $\frac{(1-\kappa)^2}{2\pi}\,\frac{b\sqrt{a(b+c)}}{a+b+c}$.
    """
    return (1 - kappa) ** 2 / (2 * PI) * b * (a * (b + c)) ** 0.5 / (a + b + c)
