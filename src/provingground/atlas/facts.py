"""Numbers, intervals, trainings and provenance in words."""

import json
import math
from collections.abc import Mapping
from typing import Any

import xarray as xr

from provingground.stats import Estimate
from provingground.verdict import Verdict

WHERE_FROM = {"seconds": "seconds of computing", "date": "computed on", "says": "experiment says"}


def number(x: float) -> str:
    """A number with four digits at most, very large and small ones as 4.2e-8."""
    if not math.isfinite(x):
        return "n/a" if math.isnan(x) else "∞" if x > 0 else "-∞"
    if x == 0 or 1e-3 <= abs(x) < 1e6:
        return f"{x:.4g}" if abs(x) < 1e4 else f"{x:.0f}"
    head, power = f"{x:.2e}".split("e")
    return f"{float(head):g}e{int(power)}"


def measured(estimate: Estimate, within: tuple[float, float]) -> str:
    """The value and its interval, with two digits of the interval's width.

    More digits where an end would be rounded onto a bound that it only comes close to.
    """
    known = [x for x in estimate if math.isfinite(x)]
    if not known:
        return "not measured"
    biggest, width = max(map(abs, known)), max(known) - min(known)
    if width <= 1e-5 * biggest or not 1e-3 <= biggest < 1e6:
        value, low, high = map(number, estimate)
        return f"{value} [{low}, {high}]"

    most = max(5 - math.floor(math.log10(biggest)), 0)
    decimals = min(max(1 - math.floor(math.log10(width)), 0), most)
    while decimals < most and any(x != b == round(x, decimals) for x in known for b in within):
        decimals += 1
    value, low, high = (
        f"{round(x, decimals) + 0.0:.{decimals}f}" if math.isfinite(x) else number(x)
        for x in estimate
    )
    return f"{value} [{low}, {high}]"


def bound(within: tuple[float, float]) -> str:
    """The bounds of a claim: "> 4", "< 3" or "0.93 to 1"."""
    low, high = within
    if math.isinf(low) or math.isinf(high):
        return f"> {number(low)}" if math.isfinite(low) else f"< {number(high)}"
    return f"{number(low)} to {number(high)}"


def gauge(estimate: Estimate, within: tuple[float, float]) -> list[float] | None:
    """Lower bound, upper bound, low, high and value as places (in percent) on a common strip."""
    value, low, high = (estimate.value if math.isnan(x) else x for x in estimate)
    if not math.isfinite(value):
        return None
    places = (*within, low, high, value)
    known = [x for x in places if math.isfinite(x)]
    margin = 0.15 * (max(known) - min(known)) or 1.0
    left, right = min(known) - margin, max(known) + margin
    return [round(100 * (min(max(x, left), right) - left) / (right - left), 1) for x in places]


def advice(verdict: Verdict) -> str:
    """What would decide an unknown claim; nothing where cells are missing or diverged."""
    known = math.isfinite(verdict.estimate.value) and not verdict.diverged
    if verdict.verdict != "unknown" or not known:
        return ""
    if needed := verdict.seeds_needed:
        return f"About {needed} seeds would decide it (now {verdict.seeds})."
    return "More seeds alone would not decide it."


def duration(seconds: float) -> str:
    """A time span in the unit that suits it."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def sweep(ds: xr.Dataset) -> str:
    """The trainings behind a figure: how many, over which axes, with how many seeds."""
    axes = []
    for name, labels in parsed(ds.attrs.get("grid", "")).items():
        words = ds[name].attrs.get("long_name") if name in ds.coords else None
        if len(labels) > 4 and not isinstance(labels[0], str):
            values = f"{len(labels)} values, {number(min(labels))} to {number(max(labels))}"
        else:
            texts = [shown(v) for v in labels[:8]]
            values = ("; " if any("," in text for text in texts) else ", ").join(texts)
            values += f" and {len(labels) - 8} more" * (len(labels) > 8)
        axes.append(f"{words or name.replace('_', ' ')} ({values})")
    lost = [f"{n} {k}" for k in ("diverged", "missing") if (n := ds.attrs.get(k, 0))]
    return (
        f"{ds.attrs.get('cells', 'All')} trainings"
        + f" over {' and '.join(axes)}" * bool(axes)
        + f", {ds.sizes.get('seed', 1)} seeds each"
        + f"; {' and '.join(lost)}" * bool(lost)
    )


def provenance(ds: xr.Dataset) -> dict[str, Any]:
    """Where a Dataset comes from, for reading: the code, the device, the seeds, then the rest.

    Every attribute is told; records become dicts of text.
    """
    seeds = ds["seed"].values.tolist() if "seed" in ds.coords else []
    first: dict[str, Any] = dict.fromkeys(("commit", "version", "date", "device"), "not recorded")
    first["seeds"] = f"{len(seeds)}: {shown(seeds)}" if seeds else "n/a"
    facts: dict[str, Any] = {}
    known = {name: value for name, value in ds.attrs.items() if value != "?"}
    for name, value in (first | known).items():
        inner = parsed(value)
        words = WHERE_FROM.get(str(name), str(name))
        facts[words] = {k: shown(v) for k, v in inner.items()} if inner else shown(value)
    return facts


def parsed(text: Any) -> Mapping[str, Any]:
    """The JSON object in an attribute; empty if it is none."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def shown(value: Any) -> str:
    """A setting as text; lists without brackets, numbers with sensible digits."""
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return f"{value:.6g}" if isinstance(value, float) else "none" if value == "{}" else str(value)
