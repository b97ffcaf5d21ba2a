"""What is measured on the Datasets of the experiments, and how they are drawn."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.stats import Estimate

from . import theory
from .model import PopulationConfig

PLAIN = PopulationConfig()

CNN = dict(teacher="cnn", tokens=36, group=4)
GCN = dict(teacher="gcn", tokens=20, group=3)
STS = dict(teacher="sts", tokens=20, group=4, kappa=1.0)
GSLP = dict(teacher="gslp", tokens=20, group=1, kappa=1.0, outputs=1, lr=0.05)

TASKS: dict[str, dict[str, Any]] = {
    "CNN, ReLU": {**CNN, "kappa": 0.0},
    "CNN, leaky ReLU": {**CNN, "kappa": 0.1},
    "GCN, ReLU": {**GCN, "kappa": 0.0},
    "GCN, leaky ReLU": {**GCN, "kappa": 0.1},
    "STS": STS,
    "GSLP": GSLP,
}


# ------------------------------------------------------------------------- what was set


def setting(ds: xr.Dataset, name: str) -> Any:
    """A parameter of the cells: along the axis of tasks, another axis, or one number."""
    if name in ds.coords:
        return ds[name]
    plain = json.loads(ds.attrs["settings"]).get(name, getattr(PLAIN, name))
    if "task" not in ds.coords:
        return plain
    tasks = np.atleast_1d(ds.task.values)
    values = [TASKS.get(str(t), {}).get(name, plain) for t in tasks]
    return xr.DataArray(values, {"task": tasks}, "task") if ds.task.ndim else values[0]


def settings(ds: xr.Dataset, *names: str) -> tuple[Any, ...]:
    return tuple(setting(ds, name) for name in names)


def of(ds: xr.Dataset, form: str) -> xr.Dataset:
    """The trainings of one form, at the recorded steps that they reached."""
    ds = ds.sel(form=form, drop=True)
    return ds.isel(step=slice(1, None)).sel(step=slice(1, int(ds.stopped_at.max())))


def each_task(
    measure: Callable[[xr.Dataset], Estimate], side: Any, without: str = ""
) -> Callable[[xr.Dataset], Estimate]:
    """The worst estimate over the tasks, one of them perhaps left out."""
    return lambda ds: stats.worst(
        [measure(ds.sel(task=t)) for t in ds.task.values if t != without], side
    )


def last_decade(y: xr.DataArray) -> tuple[float, float]:
    end = float(y.step[-1])
    return end / 10, end


def late_slope(form: str, probe: str) -> Callable[[xr.Dataset], Estimate]:
    """Exponent of a probe in t over the last decade of a training."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = of(ds, form)[probe]
        return stats.power_law(y, "step", last_decade(y)).slope

    return measure


def final(form: str, ratio: Callable[[xr.Dataset], xr.DataArray]) -> Callable[..., Estimate]:
    """The mean over seeds of a function of the Dataset at the last step."""
    return lambda ds: stats.mean(ratio(of(ds, form).isel(step=-1)))


# --------------------------------------------------------------------------- Theorem 3.1


def over_excess_law(ds: xr.Dataset) -> xr.DataArray:
    r"""$4\eta T(L - L_{\rm opt})/(KD(D-K))$."""
    d, k, lr = settings(ds, "tokens", "group", "lr")
    return ds.test_loss / theory.excess_law(d, k, lr, ds.step)


def over_leak_law(ds: xr.Dataset) -> xr.DataArray:
    d, k, lr, kappa = settings(ds, "tokens", "group", "lr", "kappa")
    return ds.leak / theory.leak_law(d, k, lr, ds.energy, ds.step, kappa)


def over_score_identity(ds: xr.Dataset) -> xr.DataArray:
    return ds.score_error / theory.score_distance(ds.leak, *settings(ds, "tokens", "group"))


def floor(ds: xr.Dataset, leak: xr.DataArray) -> xr.DataArray:
    d, k, lr, kappa, dim, outputs, noise, batch = settings(
        ds, "tokens", "group", "lr", "kappa", "dim", "outputs", "noise", "batch"
    )
    return theory.sgd_floor(leak, d, k, lr, kappa, dim * outputs, noise, batch)


def predicted_loss(ds: xr.Dataset) -> xr.DataArray:
    """Recursion plus floor, at the steps that SGD reached."""
    at = of(ds, "recursion").sel(step=of(ds, "SGD").step)
    return at.test_loss + floor(at, at.leak)


def sgd_over_predicted(ds: xr.Dataset) -> Estimate:
    """Excess loss of SGD in the last quarter of the training, over recursion plus floor."""
    sgd = of(ds, "SGD").test_loss
    late = sgd.step >= 0.75 * sgd.step[-1]
    return stats.paired_ratio(sgd[..., late], predicted_loss(ds)[..., late])


def draw_excess(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Excess loss of the student")
    population = of(ds, "recursion")
    # One seed on the left: the energies of the teachers differ, and a mean of losses hides kinks.
    plot.curve(left, of(ds, "SGD").test_loss.isel(seed=[0]), "step", hue="task", log="xy")
    for task in ds.task.values:
        one = population.sel(task=task)
        t = one.step.values
        plot.theory_curve(left, t, one.test_loss.isel(seed=0), "population recursion")
        late = t[t > 3000]
        d, k, lr = map(float, settings(one, "tokens", "group", "lr"))
        plot.theory_curve(left, late, theory.excess_law(d, k, lr, late), r"$KD(D-K)/(4\eta t)$")
    ratio = over_excess_law(population.sel(step=slice(5000, None)))
    ratio.attrs = {"long_name": "recursion over", "symbol": r"KD(D-K)/(4\eta t)"}
    plot.curve(right, ratio.transpose("task", "seed", "step"), "step", hue="task", log="x")
    plot.theory_curve(right, ratio.step.values, np.ones(ratio.step.size), "law")
    return fig


# --------------------------------------------------------------------------- Theorem 3.2


def over_ood_bound(ds: xr.Dataset) -> Estimate:
    r"""Largest worst-case excess over $\sqrt{KD^6\mathcal V\xi^2/(\eta t)}$, with $\xi = 2d$ the
    second moment of a token of Exp(1) entries. Below 1: Theorem 3.2 holds with constant 1."""
    at = of(ds, "recursion")
    d, k, lr, dim = settings(at, "tokens", "group", "lr", "dim")
    bound = np.sqrt(theory.ood_time(d, k, lr, at.energy, 2 * dim, 1.0) / at.step)
    return stats.mean((at.ood_worst / bound).max("step"))


def ood_plus(ds: xr.Dataset) -> xr.DataArray:
    """Excess with the worst-case labels as printed, where the cross term has the other sign, over
    that with the minus sign."""
    return (2 * ds.ood_loss - ds.ood_worst) / ds.ood_worst


def draw_ood(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Excess loss on Exp(1) inputs")
    sgd, population = (of(ds, form).isel(seed=[0]) for form in ("SGD", "recursion"))
    t = population.step.values
    late = t[t >= t[-1] / 100]
    for ax, probe, power, above in ((left, "ood_loss", -1.0, 3), (right, "ood_worst", -0.5, 2)):
        plot.curve(ax, sgd[probe], "step", hue="task", log="xy")
        curves = population[probe].isel(seed=0)
        for task in ds.task.values:
            plot.theory_curve(ax, t, curves.sel(task=task), "population recursion")
        top = above * float(curves.sel(step=late[0]).max())
        ax.set_ylim(bottom=0.3 * float(curves.min("task")[-1]))  # STS is below zero for a while
        plot.theory_curve(ax, late, top * (late / late[0]) ** power, rf"$\propto t^{{{power:g}}}$")
    return fig


# --------------------------------------------------------------------- Figures 2(c) and 3


def least_cosine(ds: xr.Dataset) -> Estimate:
    """The smallest cosine of SGD's W_V and V* over the recorded steps from 50 on."""
    cosine = of(ds, "SGD").cosine
    return stats.mean(cosine.where(cosine.step >= 50).min("step"))


def draw_cosine(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="The values point to the teacher's", width=4.2)
    plot.curve(ax, of(ds, "SGD").cosine, "step", hue="task", log="x")
    ax.set_ylim(0.9, 1.005)
    return fig


def score_on_support(ds: xr.Dataset) -> xr.DataArray:
    """p of the recursion at the step at which SGD ended."""
    end = int(ds.stopped_at.sel(form="SGD").max())
    leak = of(ds, "recursion").leak.interp(step=end).drop_vars("step")
    return (1 - leak) / setting(ds, "group")


def sgd_scores(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    at = ds.sel(form="SGD", drop=True)
    return at.scores, at.support > 0.5


def support_deviation(ds: xr.Dataset) -> Estimate:
    """Largest |S - p| on the support, with p of the recursion."""
    scores, on = sgd_scores(ds)
    return stats.mean(abs(scores - score_on_support(ds)).where(on).max(("key", "query")))


def off_support(ds: xr.Dataset) -> Estimate:
    scores, on = sgd_scores(ds)
    return stats.mean(scores.where(~on).max(("key", "query")))


def argmax_inside(ds: xr.Dataset) -> Estimate:
    """Share of the columns of S whose largest entry lies inside the support."""
    scores, on = sgd_scores(ds)
    tokens = int(setting(ds, "tokens"))
    inside = on.isel(key=scores.argmax("key")).isel(query=slice(tokens))
    return stats.mean(inside.astype(float))


def draw_scores(ds: xr.Dataset):
    fig, axes = plot.figure(2, 3, title="Attention scores at the end of training (SGD)")
    for ax, task in zip(axes, ds.task.values, strict=False):
        one = ds.sel(task=task, form="SGD", drop=True).isel(seed=[0])  # seeds choose other tokens
        n = int(setting(ds.sel(task=task), "tokens"))
        s = one.scores.isel(key=slice(n), query=slice(n))
        s = s.assign_coords(key=np.arange(n), query=np.arange(n))
        for name in ("key", "query"):
            s[name].attrs = {"long_name": name}
        plot.heatmap(ax, s, "query", "key", limits=(0, None))
        ax.invert_yaxis()
        ax.set_title(str(task))
    for ax in axes[ds.task.size :]:
        ax.remove()
    return fig


# ----------------------------------------------------------------- recursion against SGD


def deviation(probe: str) -> Callable[[xr.Dataset], Estimate]:
    """Largest relative deviation of SGD from the recursion over recorded steps (from 30 on)."""

    def measure(ds: xr.Dataset) -> Estimate:
        sgd, population = of(ds, "SGD")[probe], of(ds, "recursion")[probe]
        late = sgd.step >= 30
        return stats.agreement(sgd[..., late], population[..., late])

    return measure


def deviation_at_the_end(
    of_form: Callable[[xr.Dataset], xr.DataArray],
) -> Callable[[xr.Dataset], Estimate]:
    """The same of something at the last step alone."""

    def measure(ds: xr.Dataset) -> Estimate:
        sgd, population = (of_form(of(ds, f).isel(step=-1)) for f in ("SGD", "recursion"))
        return stats.agreement(sgd, population)

    return measure


def draw_agreement(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="SGD with large batches against the recursion")
    for ax, probe, log in ((left, "test_loss", "xy"), (right, "leak", "x")):
        plot.curve(ax, of(ds, "SGD")[probe], "step", hue="task", log=log)
        for task in ds.task.values:
            one = of(ds, "recursion").sel(task=task)[probe].mean("seed")
            plot.theory_curve(ax, one.step, one, "population recursion")
    return fig


# ------------------------------------------------------------------------ times and bands


def escape(ds: xr.Dataset) -> xr.DataArray:
    r"""$T^*\eta\mathcal V/(D^2K)$."""
    d, k, lr = settings(ds, "tokens", "group", "lr")
    return ds.stopped_at / theory.escape_time(d, k, lr, ds.energy)


def others(y: xr.DataArray, dim: str) -> list[xr.DataArray]:
    """The curves along `dim`, one for each cell of the other axes."""
    rest = [d for d in y.dims if d not in ("seed", dim)]
    stacked = y.stack(cell=rest).transpose("cell", ...)
    return [c.drop_vars(("cell", *rest)) for c in stacked]


def escape_constants(ds: xr.Dataset) -> list[Estimate]:
    cells = escape(ds).stack(cell=[d for d in ds.stopped_at.dims if d != "seed"])
    return [stats.mean(c) for c in cells.transpose("cell", "seed")]


def escape_exponents(dim: str, **only: Any) -> Callable[[xr.Dataset], list[Estimate]]:
    """Exponents of T* (times the energy, so that its draw does not matter) in one parameter."""

    def measure(ds: xr.Dataset) -> list[Estimate]:
        ds = ds.sel(**only)
        unit = ds.energy / ds.scale**2
        return [stats.power_law(y, dim).slope for y in others(ds.stopped_at * unit, dim)]

    return measure


def worst_of(measure: Callable[[xr.Dataset], list[Estimate]], side: Any) -> Callable[..., Estimate]:
    return lambda ds: stats.worst(measure(ds), side)


def step_size_invariance(ds: xr.Dataset) -> Estimate:
    r"""Largest relative deviation of $\eta T^*$ from that of the smallest step size."""
    time = ds.lr * ds.stopped_at
    return stats.agreement(time, time.isel(lr=0, drop=True) + 0 * ds.lr)


def draw_escape(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="When attention finds the support")
    at = ds.isel(lr=0, scale=0)
    for k in ds.group.values:
        y = (setting(at, "lr") * at.energy * at.stopped_at).sel(group=k)
        plot.law(left, y, "tokens", fit=stats.power_law(y, "tokens"), label=f"$K = {k}$")
    left.set_ylabel(r"$\eta\mathcal{V}T^*$")
    ratio = escape(at)
    ratio.attrs = {"symbol": r"T^*\eta\mathcal{V}/(D^2K)"}
    plot.curve(right, ratio, "tokens", hue="group", line=False)
    right.set_ylim(0, 4)
    return fig


def law_ratio(ds: xr.Dataset) -> Estimate:
    """Largest relative deviation from K D (D - K) / (4 eta T) at the end, over all settings."""
    return stats.agreement(over_excess_law(ds.isel(step=-1)), 1.0)


def excess_exponents(ds: xr.Dataset) -> list[Estimate]:
    """Exponent of eta T (L - L_opt) in D, for each of the other settings."""
    return [
        stats.power_law(y, "tokens").slope for y in others(ds.test_loss.isel(step=-1), "tokens")
    ]


def score_of(ds: xr.Dataset) -> xr.DataArray:
    return (1 - ds.leak) / ds.group


def band_c3(ds: xr.Dataset) -> Estimate:
    """Smallest of (F3/F1) / low and high / (F3/F1) over all steps and settings."""
    low, value, high = theory.ratio_band(score_of(ds), ds.tokens, ds.group, ds.kappa)
    least = np.minimum(value / low, high / value)
    return stats.mean(least.min([d for d in least.dims if d != "seed"]))


def over_attainable(ds: xr.Dataset) -> xr.DataArray:
    return ds.value / theory.attainable_value(score_of(ds), ds.tokens, ds.group, ds.kappa)


def separated(ds: xr.Dataset) -> xr.DataArray:
    r"""Where $T^*$ is long after $t_1$, which is what $D \ge \mathrm{poly}(M, K)$ is for."""
    return theory.escape_time(ds.tokens, ds.group, 1.0, ds.energy) >= 100


def band_c5_low(ds: xr.Dataset) -> Estimate:
    """Smallest C1 / C1* after it first reached 0.95, where the phases are separated."""
    ratio = over_attainable(ds).where(separated(ds))
    ratio = ratio.where((ratio >= 0.95).cumsum("step") > 0)
    return stats.mean(ratio.min([d for d in ratio.dims if d != "seed"]))


def band_c5_high(ds: xr.Dataset) -> Estimate:
    """Largest C1 / C1* over its upper bound, over all steps and settings."""
    at = ds.isel(step=slice(1, None))
    _, high = theory.value_band(score_of(at), at.tokens, at.group, at.kappa)
    ratio = over_attainable(at) / high
    return stats.mean(ratio.max([d for d in ratio.dims if d != "seed"]))


def monotone_scores(ds: xr.Dataset) -> Estimate:
    """Smallest growth of p between recorded steps."""
    growth = score_of(ds).diff("step")
    return stats.mean(growth.min([d for d in growth.dims if d != "seed"]))


def first_phase(ds: xr.Dataset) -> xr.Dataset:
    r"""$\eta t_1$, and $p(t_1)$ over the bound of Lemma C.13, where the phases are separated."""
    first = (over_attainable(ds) >= 0.95).argmax("step")
    over = score_of(ds).isel(step=first) / theory.early_score(ds.tokens)
    time = setting(ds, "lr") * ds.step.isel(step=first)
    return xr.Dataset({"time": time, "over": over}).where(separated(ds))


def early_time(ds: xr.Dataset) -> Estimate:
    time = first_phase(ds).time
    return stats.mean(time.max([d for d in time.dims if d != "seed"]))


def early_score(ds: xr.Dataset) -> Estimate:
    over = first_phase(ds).over
    return stats.mean(over.max([d for d in over.dims if d != "seed"]))


def late_leak(ds: xr.Dataset) -> xr.DataArray:
    """The ratio of Lemma C.18 at the end of the training."""
    at = ds.isel(step=-1)
    d, k, lr = settings(at, "tokens", "group", "lr")
    return theory.late_leak_ratio(at.leak, d, k, at.energy, lr, at.step)


def late_leak_at(ds: xr.Dataset) -> Estimate:
    """The largest such ratio at the largest D."""
    ratio = late_leak(ds).isel(tokens=-1)
    return stats.mean(ratio.max([d for d in ratio.dims if d != "seed"]))


def late_leak_exponents(ds: xr.Dataset) -> list[Estimate]:
    return [stats.power_law(y, "tokens").slope for y in others(late_leak(ds), "tokens")]


def draw_constant(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="The constant of the excess loss (recursion)")
    at = ds.isel(step=-1, scale=-1)
    time = setting(ds, "lr") * float(ds.step[-1])
    y = time * at.test_loss.isel(kappa=0)
    y.attrs = {"long_name": "rescaled excess loss", "symbol": r"\eta T(L - L_{\mathrm{opt}})"}
    for k in ds.group.values:
        plot.curve(left, y.sel(group=k), "tokens", label=f"$K = {k}$", log="xy", line=False)
    d = np.geomspace(float(ds.tokens.min()), float(ds.tokens.max()), 50)
    for k in ds.group.values:
        law = theory.excess_law(d, k, 1, 1)
        plot.theory_curve(left, d, law, "$KD(D-K)/4$")
    plot.theory_curve(left, d, d**4 / d[0] ** 2, r"$\propto D^4$, as printed")
    ratio = late_leak(ds).isel(scale=-1, kappa=0)
    ratio.attrs = {"long_name": "ratio of Lemma C.18"}
    for k in ds.group.values:
        plot.curve(right, ratio.sel(group=k), "tokens", label=f"$K = {k}$", log="xy", line=False)
    plot.theory_curve(right, d, 1 / d, r"$1/(D\sqrt{2c_\sigma})$")
    plot.theory_curve(right, d, 0 * d + 1 / 20, "lower side, as printed")
    return fig


# ------------------------------------------------------------------------------- Figure 1


def over_blocks(ds: xr.Dataset) -> Estimate:
    """RMS of block PP over the largest of the others."""
    end = ds.isel(step=-1)
    return stats.paired_ratio(end.pp, np.maximum(np.maximum(end.xx, end.xp), end.px))


def left_over_right(ds: xr.Dataset) -> Estimate:
    end = ds.isel(step=-1)
    return stats.paired_ratio(end.left, end.right)


def draw_blocks(ds: xr.Dataset):
    fig, (left, middle, right) = plot.figure(1, 3, title="The full student: which blocks grow")
    one = ds.isel(seed=[0])
    n, m = ds.sizes["row"], ds.sizes["output"]
    one = one.assign_coords(row=np.arange(n), column=np.arange(n), output=np.arange(m))
    for name, words in (("row", "row: $X$, then $P$"), ("column", "column: $X$, then $P$")):
        one[name].attrs = {"long_name": words}
    one.output.attrs = {"long_name": "output"}
    plot.heatmap(left, one.w_kq.rename(column="across"), "across", "row", centre=0.0)
    plot.heatmap(middle, one.w_v, "row", "output", centre=0.0)
    for ax in (left, middle):
        ax.invert_yaxis()
    at = ds.isel(step=slice(1, None))
    for probe in ("pp", "left", "right", "xx", "xp", "px"):
        words = {"left": "values, $X$", "right": "values, $P$"}.get(probe, probe.upper())
        plot.curve(right, at[probe], "step", label=words, log="xy")
    right.set_ylabel("RMS of a block")
    return fig
