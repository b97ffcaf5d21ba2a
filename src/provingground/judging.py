"""The verdicts on an experiment's claims, wherever it was run."""

import json
from collections.abc import Iterator
from itertools import product

import xarray as xr

from provingground import grid
from provingground.predicting import met
from provingground.study import Experiment, Study
from provingground.verdict import Verdicts, judge
from provingground.words import number


def verdicts(owner: Study, experiment: Experiment, ds: xr.Dataset) -> Verdicts:
    """The verdicts on all claims of an experiment at the Dataset's scale.

    Along an axis that the experiment does not have there is one for each value.
    """
    headline = experiment.name == owner.experiments[0].name
    claims = experiment.claims_at(ds.attrs["scale"])
    return Verdicts(
        judge(claim, part, headline, at, conditions)
        for at, part in places(owner, experiment, ds)
        for conditions in (met(owner, part),)
        for claim in claims
    )


def places(
    owner: Study, experiment: Experiment, ds: xr.Dataset
) -> Iterator[tuple[str, xr.Dataset]]:
    """A Dataset at each place of the axes that were added to an experiment's own, in words."""
    declared, _ = grid.declared(owner, experiment, ds.attrs["scale"])
    own = {name for name, given in declared.items() if grid.is_axis(given)}
    added = [a for a in json.loads(ds.attrs["grid"]) if a in ds.dims and a not in own]
    if not added:
        yield "", ds
        return
    told = [str(n) for n, c in ds.coords.items() if c.ndim == 1 and c.dims[0] in added]
    told = [n for n in told if n in ds.attrs["changed"].split(", ")]
    for place in product(*(range(ds.sizes[a]) for a in added)):
        part = ds.isel(dict(zip(added, place, strict=True)))
        part.attrs |= {"cells": part.diverged.size, "diverged": int(part.diverged.sum())}
        yield ", ".join(f"{n} = {number(part[n].item(), 4)}" for n in told), part
