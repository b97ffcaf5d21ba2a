"""The numbers of an experiment as scripts that its pages load: small, and safe for any name.

A page that is opened from a folder may fetch nothing, so data come as `atlas.add(...)`. Records
are lists, never objects with names as keys: a label may be called `__proto__`.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from provingground import grid, plot
from provingground.atlas.latex import plain
from provingground.atlas.shelf import Entry
from provingground.study import Cases, Points

MOST = 60_000  # numbers in the data of a page: below a megabyte with a file of cells
SHORT = 24  # places of a long dim, such as the steps, in the data of a page
LONG = 160  # and in those of a cell
OF_A_CHUNK = 24_000  # numbers in a file of cells


class Raw(str):
    """Text that is a script already."""


def script(call: str, given: Any) -> bytes:
    """A call with one argument, in ASCII, with nothing that could end a script."""
    return f"{call}({_json(given)});\n".encode()


def _json(given: Any) -> str:
    if isinstance(given, Raw):
        return str(given)
    if isinstance(given, Mapping):
        return "{" + ",".join(f"{_json(str(k))}:{_json(v)}" for k, v in given.items()) + "}"
    if isinstance(given, list | tuple):
        return "[" + ",".join(map(_json, given)) + "]"
    if isinstance(given, np.generic):
        given = given.item()
    if isinstance(given, float) and not math.isfinite(given):
        return "null" if math.isnan(given) else f"{'-' * (given < 0)}1e999"
    text = json.dumps(given, default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def numbers(values: Any) -> Raw:
    """An array as a flat list of numbers with five digits."""
    flat = np.asarray(values).ravel()
    if flat.dtype.kind not in "biuf":
        return Raw(_json([None] * flat.size))
    if flat.dtype.kind == "b":
        flat = flat.astype(int)
    if flat.dtype.kind in "iu":
        return Raw("[" + ",".join(map(str, flat.tolist())) + "]")
    return Raw("[" + ",".join(map(_digits, flat.tolist())) + "]")


def _digits(x: float) -> str:
    if not math.isfinite(x):
        return "null" if x != x else "1e999" if x > 0 else "-1e999"
    return f"{x:.5g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


# -------------------------------------------------------------------------------- dims


def places(length: int, most: int) -> np.ndarray:
    """Which of the places of a long dim are kept: its ends, half of them evenly spaced and half of
    them dense at the start."""
    if length <= most:
        return np.arange(length)
    even = np.linspace(0, length - 1, most // 2 + 1)
    dense = np.geomspace(1, length - 1, most // 2)
    return np.unique(np.concatenate([even, dense]).round().astype(int))


def dim(ds: xr.Dataset, name: str, kind: str) -> dict[str, Any]:
    """What a page is told of an axis."""
    known = ds.coords.get(name)
    labels = list(range(ds.sizes[name])) if known is None else known.values.tolist()
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in labels)
    about: Mapping[str, Any] = {} if known is None else known.attrs
    return {
        "name": name,
        "says": plain(str(about.get("long_name") or name.replace("_", " "))),
        "symbol": plain(f"${about['symbol']}$") if about.get("symbol") else "",
        "labels": labels if kind == "axis" else [_short(v) for v in labels],  # these may be set
        "numeric": numeric,
        "log": numeric and _is_log([float(v) for v in labels]),
        "kind": kind,
        "index": known is None,  # a place in a matrix, not a setting
    }


def _short(label: Any) -> Any:
    return float(f"{label:.6g}") if isinstance(label, float) else label


def _is_log(labels: Sequence[float]) -> bool:
    """Whether values are spaced more evenly in the logarithm."""
    if len(labels) < 3 or min(labels) <= 0 or max(labels) < 8 * min(labels):
        return False
    ratios = [np.diff(np.sort(f(labels))) for f in (np.log, np.asarray)]
    spread = [float(np.std(r) / max(np.mean(r), 1e-300)) for r in ratios]
    return spread[0] < spread[1]


def kinds(ds: xr.Dataset) -> dict[str, str]:
    """The dims of a Dataset: those of the grid, the seed, those of probes."""
    axes = json.loads(ds.attrs["grid"])
    return {str(d): "axis" if d in axes else "seed" if d == "seed" else "probe" for d in ds.dims}


# -------------------------------------------------------------------------- experiment


def experiment(entry: Entry, theory: xr.Dataset | None) -> dict[str, Any]:
    """All that the page of an experiment needs to draw: axes, parameters, values."""
    ds = entry.ds
    assert ds is not None
    short = {d: places(ds.sizes[d], SHORT) for d, kind in kinds(ds).items() if kind == "probe"}
    kept = ds.isel(short)
    variables = [v for v in _probes(kept)] + ([] if theory is None else _theory(theory))
    used = {d for v in variables for d in v["dims"]} | set(json.loads(ds.attrs["grid"])) | {"seed"}
    dims = [dim(kept, d, kind) for d, kind in kinds(ds).items() if d in used]
    first = chunk_size(ds)
    return {
        "study": entry.study.name,
        "experiment": entry.experiment.name,
        "title": plain(entry.study.title),
        "scale": ds.attrs["scale"],
        "missing": entry.missing,
        "dims": dims,
        "axes": [d for d in dims if d["kind"] == "axis"],
        "seeds": ds.sizes["seed"],
        "chunk": first,
        "variables": variables,
        "parameters": parameters(entry),
    }


def _probes(ds: xr.Dataset) -> Iterator[dict[str, Any]]:
    """Every variable; where they are too long, seeds or steps of the longest are left out."""
    found = {str(n): v for n, v in ds.data_vars.items() if v.dtype.kind in "biuf"}
    found = {n: v for n, v in found.items() if n != "diverged" or bool(v.any())}
    means: dict[str, xr.Dataset] = {}
    size = {n: v.size for n, v in found.items()}
    while sum(size.values()) > MOST:
        name = max(size, key=lambda n: size[n])
        long = [str(d) for d in found[name].dims if kinds(ds)[str(d)] == "probe"]
        longest = max(long, key=lambda d: found[name].sizes[d], default="")
        if longest and found[name].sizes[longest] > 4:
            found[name] = found[name].isel({longest: slice(-1, None)}).squeeze(longest, drop=True)
        elif name not in means and "seed" in found[name].dims:
            means[name] = plot.summary(found[name])
            size[name] = 3 * means[name]["mean"].size
            continue
        else:
            del found[name]
            means.pop(name, None)
            size.pop(name)
            continue
        size[name] = found[name].size
    for name, values in found.items():
        about = ds[name].attrs
        made: dict[str, Any] = {
            "name": name,
            "says": plain(str(about.get("long_name") or name.replace("_", " "))),
            "symbol": plain(f"${about['symbol']}$") if about.get("symbol") else "",
            "kind": "probe",
        }
        if name in means:
            table = means[name]
            made |= {"dims": [str(d) for d in table["mean"].dims], "values": numbers(table["mean"])}
            made |= {"low": numbers(table["low"]), "high": numbers(table["high"])}
        else:
            made |= {"dims": [str(d) for d in values.dims], "values": numbers(values)}
        yield made


def _theory(theory: xr.Dataset) -> list[dict[str, Any]]:
    """What the theory says along the axes: its predictions, and how many conditions hold."""
    made = []
    for name, values in theory.data_vars.items():
        if name == "margin" or not values.dims:
            continue
        words = "conditions that hold" if name == "satisfied" else str(name).replace("_", " ")
        made.append(
            {
                "name": f"theory {name}",
                "says": plain(str(values.attrs.get("long_name") or words)),
                "symbol": "",
                "kind": "theory",
                "dims": [str(d) for d in values.dims],
                "values": numbers(values),
            }
        )
    return made


def parameters(entry: Entry) -> list[dict[str, Any]]:
    """What may be set, with its range, in the order of declaration."""
    assert entry.ds is not None
    scale = entry.ds.attrs["scale"]
    sweep = grid.plan(entry.study, entry.experiment, scale, yes=True)
    settings, _ = grid.declared(entry.study, entry.experiment, scale)
    known = {name: p.default for name, p in sweep.table.items()} | dict(sweep.fixed)
    for axis in sweep.axes:
        known |= axis.settings[len(axis.labels) // 2]
    derived = {name for sets in sweep.sets for name in sets(dict(known))}
    several = [g.settings for g in settings.values() if isinstance(g, Cases | Points)]
    points = [p for some in several for p in (some.values() if isinstance(some, Mapping) else some)]
    chosen = {name for point in points for name in point}  # what a label sets cannot be set
    made = []
    for name, given in settings.items():
        if isinstance(given, Cases):
            labels = list(given.settings)
            made.append(_parameter(name, "case", labels[0], labels))
    for name, p in sweep.table.items():
        if isinstance(settings.get(name), Points) or name in chosen:
            continue
        record = _parameter(name, p.type.__name__, known.get(name, p.default), p.choices)
        record |= {"says": plain(p.says), "symbol": plain(f"${p.symbol}$") if p.symbol else ""}
        record |= {"low": p.low, "high": p.high, "shape": not p.traced, "derived": name in derived}
        made.append(record | {"axis": grid.is_axis(settings.get(name))})
    return made


def _parameter(name: str, kind: str, value: Any, choices: Any = None) -> dict[str, Any]:
    return {
        "name": name,
        "says": name.replace("_", " "),
        "symbol": "",
        "type": kind,
        "low": None,
        "high": None,
        "choices": None if choices is None else list(choices),
        "value": value,
        "shape": True,
        "axis": kind == "case",
        "derived": False,
    }


# ------------------------------------------------------------------------------- theory


def theory(entry: Entry, found: xr.Dataset) -> dict[str, Any]:
    """What the theory says at every setting: margins by condition, predictions, and the settings
    themselves."""
    ds = entry.ds
    assert ds is not None
    own = kinds(ds)
    axes = [d for d, kind in own.items() if kind == "axis"]
    names = [n for n in entry.study.simulator(entry.experiment.trainings.simulator)[1].config.pars]
    settings = []
    for name in names:
        if name in ds.coords and set(ds[name].dims) <= set(axes):
            values = ds[name]
            flat: Any = values.values.ravel().tolist()
            about = values.attrs
            settings.append(
                {
                    "name": name,
                    "says": plain(str(about.get("long_name", name))),
                    "symbol": plain(f"${about['symbol']}$") if about.get("symbol") else "",
                    "dims": [str(d) for d in values.dims],
                    "values": flat,
                }
            )
    known = "condition" in found.margin.dims  # a parameter may have the name of the margins
    conditions = found.condition.values.tolist() if known else []
    margins = [
        {
            "name": str(name),
            "says": plain(str(name)),
            "dims": [str(d) for d in found.margin.dims if d != "condition"],
            "values": numbers(found.margin.isel(condition=n)),
        }
        for n, name in enumerate(conditions)
    ]
    predictions = [
        {
            "name": str(name),
            "says": plain(str(v.attrs.get("long_name") or str(name).replace("_", " "))),
            "dims": [str(d) for d in v.dims],
            "values": numbers(v),
        }
        for name, v in found.data_vars.items()
        if name not in ("margin", "satisfied")
    ]
    return {
        "dims": [dim(ds, d, "axis") for d in axes],
        "settings": settings,
        "conditions": margins,
        "predictions": predictions,
        "vacuous": [name for name in found.attrs.get("vacuous", "").split(", ") if name],
    }


# -------------------------------------------------------------------------------- cells


def _of_cells(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset with long dims of probes thinned, for reading by cells."""
    long = {d: places(ds.sizes[d], LONG) for d, kind in kinds(ds).items() if kind == "probe"}
    return ds.isel(long)


def chunk_size(ds: xr.Dataset) -> int:
    """How many cells a file of cells holds."""
    own = kinds(ds)
    each = 0
    for values in _of_cells(ds).data_vars.values():
        each += math.prod(n for d, n in values.sizes.items() if own[str(d)] == "probe")
    return max(1, OF_A_CHUNK // max(each, 1))


def chunks(ds: xr.Dataset) -> int:
    """How many files of cells there are."""
    own = kinds(ds)
    cells = math.prod(n for d, n in ds.sizes.items() if own[str(d)] != "probe")
    return -(-cells // chunk_size(ds))


def cells(ds: xr.Dataset, number: int) -> dict[str, Any]:
    """Some cells with all that they report: curves, attention, other probes."""
    own, per = kinds(ds), chunk_size(ds)
    outer = [d for d, kind in own.items() if kind != "probe"]
    thin = _of_cells(ds)
    made = []
    for name, values in thin.data_vars.items():
        inner = [str(d) for d in values.dims if str(d) not in outer]
        whole = values.expand_dims({d: thin.sizes[d] for d in outer if d not in values.dims})
        flat = whole.transpose(*outer, *inner).values
        flat = flat.reshape(-1, *flat.shape[len(outer) :])[number * per : (number + 1) * per]
        if flat.dtype.kind not in "biuf":
            continue
        about = values.attrs
        made.append(
            {
                "name": str(name),
                "says": plain(str(about.get("long_name") or str(name).replace("_", " "))),
                "symbol": plain(f"${about['symbol']}$") if about.get("symbol") else "",
                "dims": inner,
                "values": [numbers(cell) for cell in flat],
            }
        )
    used = {d for v in made for d in v["dims"]}
    return {
        "chunk": number,
        "first": number * per,
        "dims": [dim(thin, d, "probe") for d, kind in own.items() if kind == "probe" and d in used],
        "probes": made,
    }
