"""A study in one cell of a notebook: a Config, a training, its probes, and a claim or two."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import numpy as np
import xarray as xr

from provingground import plot, registry
from provingground.claims import Claim
from provingground.config import pars
from provingground.errors import InputError, shortened, told_shortly
from provingground.programs import probe_dims
from provingground.study import Experiment, Prediction, Simulator, Study, Trainings

ONLY = "main"  # what the experiment is called
LOG_FROM = 15.0  # the ratio of the largest to the smallest value from which an axis is logarithmic


@told_shortly
def new_study(
    name: str,
    config: type,
    simulate: Callable[..., Any],
    probes: type,
    *,
    grid: Mapping[str, Any],
    seeds: int = 8,
    claims: Sequence[Claim] = (),
    figure: Callable[[xr.Dataset], Any] | None = None,
    theory: Callable[[Any], Prediction] | None = None,
    title: str = "",
    cite: str = "",
    precision: Literal["float32", "float64"] = "float32",
    host: bool = False,
) -> Study:
    """A study of one experiment, for `pg.run(study)`, `pg.check(study)` and `pg.figure(study)`.

    Args:
        name: letters, digits and underscores; results are stored under it.
        config: the parameters, a class made by `config`.
        simulate: one training, a pure function of a Config and a key.
        probes: what a training returns, an `equinox.Module` of jaxtyping arrays.
        grid: parameters with one value (fixed), a list of values (an axis), or `cases`.
        seeds: how many trainings there are at each point of the grid.
        claims: what the Dataset should show.
        figure: draws the Dataset (default: each probe against the first axes).
        theory: what is predicted at a Config (default: nothing).
        title, cite: words for tables and reports.
        precision, host: as in `Simulator`.
    """
    if name in registry.names():
        raise InputError(f"there is a study '{name}' already; give yours another name")
    if not hasattr(config, "pars"):
        raise InputError(f"config = {shortened(config)} is not allowed: a class with @config")
    if not callable(simulate):
        raise InputError(f"simulate = {shortened(simulate)} is not allowed: a function")
    if not (isinstance(probes, type) and issubclass(probes, eqx.Module)) or not probe_dims(probes):
        raise InputError(
            f"probes = {shortened(probes)} is not allowed: an equinox.Module whose fields are "
            'arrays of jaxtyping, such as Float[Array, "step"]'
        )
    for probe in probe_dims(probes):
        if probe in (*pars(config), "seed", "diverged"):
            raise InputError(f"the probe '{probe}' has the name of a parameter; rename one of them")
    for claim in claims:
        if not isinstance(claim, Claim):
            raise InputError(f"claims: {shortened(claim)} is not a Claim")
    title = title or name.replace("_", " ").capitalize()
    only = Experiment(
        ONLY,
        title,
        Trainings(grid, seeds),
        tuple(claims),
        figure or each_probe,
    )
    return Study(
        name=name,
        title=title,
        cite=cite,
        simulators={"simulate": Simulator(config, simulate, probes, precision, host=host)},
        theory=theory or _nothing,
        experiments=(only,),
    )


def _nothing(cfg: Any) -> Prediction:
    return Prediction((), {})


def each_probe(ds: xr.Dataset) -> Any:
    """A figure with a panel for each probe.

    Numbers are drawn against the first axis, in colours along the second; curves against their
    own dim, in colours along the first axis. Other axes are held at their first value. Where
    nothing is swept, a number is drawn for each training.
    """
    drawn = [ds[str(name)] for name in ds.data_vars if name != "diverged"]
    cols = min(len(drawn), 2) or 1
    rows = -(-len(drawn) // cols)
    fig, axes = plot.figure(rows, cols, title=ds.attrs.get("title", ""), seeds=ds.sizes["seed"])
    for ax, y in zip(axes, drawn, strict=False):
        dims = [str(dim) for dim in y.dims]
        axis = dims.index("seed")
        if len(dims) == 1:  # nothing was swept, so each training is a point
            y = y.rename(seed="training")
        x, *more = [*dims[axis + 1 :], *dims[:axis]] or ["training"]
        hue, held = next(iter(more), ""), more[1:]
        fixed = ", ".join(f"{plot.label(y[dim])} = {y[dim][0].item()}" for dim in held)
        y = y.isel(dict.fromkeys(held, 0))
        plot.curve(ax, y, x, hue=hue, log=_log(y, x))
        if fixed:
            ax.set_title(f"at {fixed}")
    for ax in axes[len(drawn) :]:
        ax.set_visible(False)
    return fig


def _log(y: xr.DataArray, x: str) -> str:
    """Which axes are better logarithmic: what is positive and spans more than a decade."""
    found = {"x": np.asarray(y[x].values), "y": plot.summary(y)["mean"].values}
    return "".join(which for which, values in found.items() if _is_wide(values))


def _is_wide(values: np.ndarray) -> bool:
    if not np.issubdtype(values.dtype, np.number):
        return False
    known = values[np.isfinite(values)]
    return bool(known.size and known.min() > 0 and known.max() / known.min() >= LOG_FROM)
