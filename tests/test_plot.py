"""Figures: labels, legends, seeds, intervals, cells, files, and the layout check itself."""

import itertools
import threading
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import colors
from matplotlib.collections import PatchCollection, PolyCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy.stats import t as student_t

from provingground import api, plot, stats
from provingground.errors import InputError
from provingground.plot.ticks import LogLabels, LogTicks

SNR = np.geomspace(0.16, 15.6, 7)
ATTRS: dict[str, tuple[str, str]] = {
    "samples": ("training samples", "N"),
    "snr": ("signal-to-noise ratio", r"\mathrm{SNR}"),
    "step": ("iteration", "t"),
    "case": ("variant", ""),
}


def measured(seeds: int = 5, name: str = "test_loss", noise: float = 0.1, **axes: Any) -> Any:
    """A loss that falls along its axes, with words and letters like those of a study."""
    rng = np.random.default_rng(0)
    values = np.ones(())
    for v in axes.values():
        v = np.arange(len(v)) + 1.0 if isinstance(v[0], str) else np.asarray(v, float)
        values = np.multiply.outer(values, 1 / (1 + v))
    values = values * np.exp(noise * rng.normal(size=(seeds, *values.shape)))
    da = xr.DataArray(
        values, dims=("seed", *axes), coords={"seed": range(seeds), **axes}, name=name
    )
    da.attrs = dict(long_name=name.replace("_", " "), symbol="L")
    for axis in axes:
        da[axis].attrs = dict(zip(("long_name", "symbol"), ATTRS[axis], strict=True))
    return da


def loss(**kwargs: Any) -> Any:
    return measured(samples=[2, 4, 8, 16], snr=SNR, **kwargs)


def entries(ax: Any) -> set[str]:
    return {t.get_text() for t in ax.get_legend().get_texts()}


def mesh_of(ax: Any) -> Any:
    return next(c for c in ax.collections if isinstance(c, QuadMesh))


class Fit:
    slope = SimpleNamespace(value=-0.483, low=-0.52, high=-0.446)

    def __call__(self, x: Any) -> Any:
        return 0.5 * x**-0.483


# --------------------------------------------------------------------------- words and numbers


def test_label_has_words_and_letter() -> None:
    da = loss()
    assert plot.label(da.samples) == "training samples, $N$"
    assert plot.label(measured(case=["a", "b"]).case) == "variant"
    assert plot.label(xr.DataArray(0.0, name="train_loss")) == "train loss"


def test_edges_are_geometric_on_log_axes() -> None:
    np.testing.assert_allclose(plot.edges([1, 10, 100], log=True), 10 ** np.arange(-0.5, 3))
    np.testing.assert_allclose(plot.edges([0, 1, 3]), [-0.5, 0.5, 2, 4])
    np.testing.assert_allclose(plot.edges([2.0]), [1.5, 2.5])


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=8, unique=True), st.booleans())
def test_edges_enclose_their_centres(centres: list[float], log: bool) -> None:
    centres = sorted(centres)
    e = plot.edges(centres, log)
    assert len(e) == len(centres) + 1
    assert np.all(e[:-1] <= np.array(centres) * (1 + 1e-9))
    assert np.all(np.array(centres) <= e[1:] * (1 + 1e-9))


def test_summary_is_the_t_interval_of_the_finite_seeds() -> None:
    da = measured(seeds=6, step=[1, 2])
    da[2, 1] = np.nan
    da[3, 1] = np.inf
    s = plot.summary(da)
    for k, v in enumerate((da.values[:, 0], da.values[[0, 1, 4, 5], 1])):
        half = student_t.ppf(0.975, len(v) - 1) * v.std(ddof=1) / np.sqrt(len(v))
        got = [float(s[n][k]) for n in ("mean", "low", "high")]
        np.testing.assert_allclose(got, [v.mean(), v.mean() - half, v.mean() + half])
    assert s.diverged.values.tolist() == [False, True]


def test_summary_without_seeds_has_no_interval() -> None:
    for da in (measured(seeds=1, step=[1, 2]), measured(step=[1, 2]).isel(seed=0)):
        s = plot.summary(da)
        assert np.isfinite(s["mean"]).all()
        assert np.isnan(s["low"]).all()
    nothing = plot.summary(measured(step=[1, 2]) * np.nan)
    assert np.isnan(nothing["mean"]).all()
    assert nothing.diverged.all()


def test_summary_of_rates_is_wilson() -> None:
    s = plot.summary(xr.DataArray([[0, 1], [0, 1], [0, 0], [0, 1]], dims=("seed", "step")))
    np.testing.assert_allclose(s["low"], [0, 0.3006], atol=1e-3)
    np.testing.assert_allclose(s["high"], [0.4899, 0.9544], atol=1e-3)


@given(st.floats(-6, 6), st.floats(0.05, 12))
def test_log_ticks_are_few_and_in_sight(start: float, decades: float) -> None:
    low, high = 10**start, 10 ** (start + decades)
    ticks = LogTicks().tick_values(low, high)
    inside = [t for t in ticks if low * 0.999 <= t <= high * 1.001]
    assert 2 <= len(inside) <= 9
    assert len(set(LogLabels().format_ticks(ticks))) == len(ticks)


def test_log_labels_are_plain_where_short() -> None:
    labels = LogLabels().format_ticks
    assert labels([0.3, 1, 30]) == ["0.3", "1", "30"]
    assert labels([1, 3e5]) == ["$10^{0}$", r"$3\times 10^{5}$"]


# --------------------------------------------------------------------------- lines and points


def test_curve_draws_mean_band_labels_and_note() -> None:
    fig, (ax,) = plot.figure()
    da = loss().isel(samples=0)
    plot.curve(ax, da, "snr", log="x")
    np.testing.assert_allclose(np.asarray(ax.lines[0].get_ydata()), da.mean("seed"))
    assert len(ax.collections) == 1
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == r"signal-to-noise ratio, $\mathrm{SNR}$"
    assert ax.get_ylabel() == "test loss, $L$"
    assert ax.get_legend() is None
    assert fig.get_supxlabel() == "5 seeds; band: 95% interval"
    assert plot.check_layout(fig) == []


def test_hue_gives_one_line_and_entry_each() -> None:
    fig, (ax,) = plot.figure()
    plot.curve(ax, loss(), "snr", hue="samples", log="xy")
    plot.theory_curve(ax, SNR, lambda x: 0.3 / (1 + x), "Theorem 4.1")
    assert entries(ax) == {"$N = 2$", "$N = 4$", "$N = 8$", "$N = 16$", "Theorem 4.1"}
    looks = {(line.get_color(), line.get_marker()) for line in ax.lines[:4]}
    assert len(looks) == 4
    assert ax.lines[-1].get_color() == "black"
    assert plot.check_layout(fig) == []


def test_second_curve_takes_the_next_colour() -> None:
    fig, (ax,) = plot.figure()
    plot.curve(ax, loss(name="train_loss").isel(samples=0), "snr")
    plot.curve(ax, loss(seeds=3).isel(samples=1), "snr")
    assert ax.lines[0].get_color() != ax.lines[1].get_color()
    assert entries(ax) == {"train loss", "test loss"}
    assert fig.get_supxlabel() == "3 to 5 seeds; band: 95% interval"


def test_more_values_than_colours_become_a_sequence() -> None:
    fig, (ax,) = plot.figure()
    plot.curve(ax, measured(snr=SNR, step=range(1, 10)), "snr", hue="step")
    assert len({str(line.get_color()) for line in ax.lines}) == 9
    assert plot.check_layout(fig) == []


@pytest.mark.parametrize("line", [True, False])
def test_diverged_points_are_marked_at_the_top(line: bool) -> None:
    fig, (ax,) = plot.figure()
    da = loss().isel(samples=0).copy()
    da[{"snr": 3, "seed": 1}] = np.nan
    da[{"snr": 5}] = np.nan
    plot.curve(ax, da, "snr", log="x", line=line)
    (cross,) = [a for a in ax.lines if a.get_marker() == "x" and len(np.asarray(a.get_xdata()))]
    np.testing.assert_allclose(np.asarray(cross.get_xdata(), float), SNR[[3, 5]])
    assert np.all(np.asarray(cross.get_ydata()) == 1)
    assert entries(ax) == {"test loss", "diverged"}
    assert plot.check_layout(fig) == []


def test_one_seed_has_no_band_and_says_so() -> None:
    fig, (ax,) = plot.figure()
    plot.curve(ax, loss().isel(samples=0, seed=0), "snr")
    assert fig.get_supxlabel() == "1 seed"
    assert plot.check_layout(fig) == []


def test_the_footer_names_only_what_is_drawn() -> None:
    fig, (ax, beside) = plot.figure(1, 2)
    plot.curve(ax, loss().isel(samples=0, seed=0).drop_vars("seed"), "snr", log="xy")
    plot.curve(ax, [(1.0, np.nan, np.nan)] * 4, loss().samples, line=False)
    plot.heatmap(beside, loss().isel(seed=0).drop_vars("seed"), "samples", "snr")
    assert fig.get_supxlabel() == ""
    plot.curve(ax, [(1.0, 0.5, np.inf)] * 4, loss().samples, line=False)
    assert fig.get_supxlabel() == "bars: 95% interval"
    fig, (ax,) = plot.figure(seeds=5)
    plot.heatmap(ax, loss().mean("seed", keep_attrs=True), "samples", "snr")
    assert fig.get_supxlabel() == "5 seeds; map: mean"


def test_log_steps_from_zero() -> None:
    fig, (ax,) = plot.figure()
    plot.curve(ax, measured(step=[0, 1, 10, 100, 1000, 10000]), "step", log="x")
    assert ax.get_xscale() == "symlog"
    assert plot.check_layout(fig) == []
    assert ax.get_xticklabels()[0].get_text() == "$0$"


def test_wide_intervals_do_not_stretch_a_log_axis() -> None:
    fig, (ax,) = plot.figure()
    plot.curve(ax, loss(seeds=2, noise=1.0).isel(samples=0), "snr", log="y")
    fig.draw_without_rendering()
    assert ax.get_ylim()[0] > 1e-3


def test_cases_stand_side_by_side() -> None:
    fig, (ax,) = plot.figure()
    da = measured(case=["full", "no positions", "core"], samples=[2, 4])
    plot.curve(ax, da, "case", hue="samples", line=False)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["full", "no positions", "core"]
    a, b = (np.asarray(line.get_xdata(), float) for line in ax.lines)
    assert np.all(a < b)
    assert plot.check_layout(fig) == []


def test_law_shows_exponent_and_interval() -> None:
    fig, (ax,) = plot.figure()
    plot.law(ax, loss().isel(snr=0), "samples", fit=Fit(), predicted=-0.5)
    fit = r"fit $\propto {N}^{-0.48}$ $[{-0.52}, {-0.45}]$"
    assert entries(ax) == {"test loss", fit, r"theory $\propto {N}^{-0.5}$"}
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert plot.check_layout(fig) == []


def test_law_of_estimates_and_a_predicted_curve() -> None:
    fig, (ax,) = plot.figure(seeds=8)
    x = loss().samples
    plot.law(ax, [(1 / n, 0.8 / n, 1.3 / n) for n in x.values], x, predicted=lambda n: 1 / n)
    assert entries(ax) == {"measured", "theory"}
    ax.set_ylabel("threshold")
    assert fig.get_supxlabel() == "8 seeds; bars: 95% interval"
    assert plot.check_layout(fig) == []


def test_law_takes_the_fits_and_boundaries_of_stats() -> None:
    da = loss()
    fig, (a, b) = plot.figure(1, 2)
    fit = stats.power_law(da.isel(snr=-1), "samples", window=(4, np.inf))
    plot.law(a, da.isel(snr=-1), "samples", fit=fit, predicted=1 / (1 + da.samples))
    line = next(x for x in a.lines if str(x.get_label()).startswith("fit"))
    assert np.asarray(line.get_xdata())[0] == pytest.approx(4)
    found = stats.phase_boundary(da, along="snr", of="samples", level=0.1)
    plot.phase_diagram(b, da, "samples", "snr", cut=0.1, log="xy", boundary=found.points)
    assert "measured boundary" in entries(b)
    assert plot.check_layout(fig) == []


def test_wrong_axes_are_refused() -> None:
    _, (ax,) = plot.figure()
    with pytest.raises(InputError, match="did you mean 'samples'"):
        plot.curve(ax, loss(), "sample")
    with pytest.raises(InputError, match="also varies along samples"):
        plot.curve(ax, loss(), "snr")
    with pytest.raises(InputError, match="coordinate"):
        plot.curve(ax, [(1, 0, 2)], "snr")


# --------------------------------------------------------------------------- maps


def test_heatmap_cells_bar_and_theory() -> None:
    fig, (ax,) = plot.figure()
    da = loss()
    theory = {"Theorem 1": lambda n: np.sqrt(20 / n), "bound": ([2, 16], [1, 2])}
    plot.heatmap(ax, da, "samples", "snr", log="xy", theory=theory)
    mesh = mesh_of(ax)
    np.testing.assert_allclose(np.ma.getdata(mesh.get_array()), da.mean("seed").T)
    borders = np.asarray(mesh.get_coordinates())
    np.testing.assert_allclose(borders[0, :, 0], plot.edges(da.samples, log=True))
    np.testing.assert_allclose(borders[:, 0, 1], plot.edges(da.snr, log=True))
    assert ax.child_axes[0].get_ylabel() == "test loss, $L$"
    assert entries(ax) == {"Theorem 1", "bound"}
    assert fig.get_supxlabel() == "5 seeds; map: mean"
    assert plot.check_layout(fig) == []


def test_map_sorts_its_axes() -> None:
    _, (a, b) = plot.figure(1, 2)
    plot.heatmap(a, loss(), "samples", "snr")
    plot.heatmap(b, loss().isel(snr=slice(None, None, -1), samples=[2, 0, 3, 1]), "samples", "snr")
    one, two = (np.ma.getdata(mesh_of(ax).get_array()) for ax in (a, b))
    np.testing.assert_allclose(one, two)


def test_diverged_cells_are_hatched() -> None:
    fig, (ax,) = plot.figure()
    da = loss().copy()
    da[{"samples": 1, "snr": 2, "seed": 0}] = np.nan
    da[{"samples": 3, "snr": 6}] = np.nan
    plot.heatmap(ax, da, "samples", "snr", log="yz")
    hatched = [c for c in ax.collections if isinstance(c, PatchCollection)]
    assert [len(c.get_paths()) for c in hatched] == [2, 2]
    mesh = mesh_of(ax)
    assert int(np.ma.getmaskarray(mesh.get_array()).sum()) == 1
    assert entries(ax) == {"diverged"}
    assert plot.check_layout(fig) == []


@pytest.mark.parametrize("log", ["", "z"])
def test_everything_diverged_still_draws(log: str) -> None:
    fig, (ax,) = plot.figure()
    plot.heatmap(ax, loss() * np.nan, "samples", "snr", log=log)
    fig.draw_without_rendering()


def test_signed_maps_diverge_from_their_centre() -> None:
    fig, (ax,) = plot.figure()
    plot.heatmap(ax, loss() - 0.1, "samples", "snr", log="y", centre=0)
    mesh = mesh_of(ax)
    assert mesh.get_cmap().name == plot.DIVERGING
    assert mesh.norm(0) == 0.5
    ax.child_axes[0].set_ylabel("difference")
    assert plot.check_layout(fig) == []


def test_phase_diagram_has_sides_boundary_and_theory() -> None:
    fig, (ax,) = plot.figure()
    da = loss()
    place = [(2.0, 1.5, 3.0), (1.5, 1.0, np.inf), (np.nan, np.nan, np.nan), (1e6, 1e5, 1e7)]
    plot.phase_diagram(
        ax,
        da,
        "samples",
        "snr",
        cut=0.1,
        log="xy",
        theory={"$N = 4$": lambda n: 4 / n},
        boundary=(da.samples, place),
    )
    mesh = mesh_of(ax)
    fig.draw_without_rendering()
    colours = {colors.to_hex(c).upper() for c in mesh.get_facecolor()}
    assert colours == {plot.BELOW, plot.ABOVE}
    assert {"$L < 0.1$", r"$L \geq 0.1$", "measured boundary", "$N = 4$"} == entries(ax)
    assert ax.get_ylim()[1] == pytest.approx(plot.edges(SNR, log=True)[-1])
    assert plot.check_layout(fig) == []


@pytest.mark.parametrize("how", ["log", "linear", "list"])
@pytest.mark.parametrize("log", ["", "y", "xy"])
def test_regions_of_a_phase_diagram_meet_at_the_measured_boundary(log: str, how: str) -> None:
    """Column by column, the colour changes where the threshold of that column lies, whatever the
    axis; a coarse grid, whose lowest cell on a linear axis reaches below 0."""
    fig, (ax,) = plot.figure()
    da = measured(samples=[2, 4, 8, 16], snr=[1, 4, 16], noise=0.0)
    found = stats.phase_boundary(da, "snr", "samples", 0.09, log=how != "linear").points
    as_list = (found.samples, np.stack([found.value, found.low, found.high], axis=1).tolist())
    boundary: Any = as_list if how == "list" else found
    plot.phase_diagram(ax, da, "samples", "snr", cut=0.09, log=log, boundary=boundary)
    fig.draw_without_rendering()
    mesh = mesh_of(ax)
    values = np.ma.getdata(mesh.get_array())
    borders = np.asarray(mesh.get_coordinates())[:, 0, 1]
    assert np.isfinite(found.value).sum() == 2
    for column, place in zip(values.T, found.value.values, strict=True):
        above = column >= 0.09
        changes = np.flatnonzero(above[1:] != above[:-1]) + 1
        assert len(changes) == np.isfinite(place)
        if not len(changes):
            continue
        change = changes[0]
        height = borders[change + 1] - borders[change - 1]
        assert abs(borders[change] - place) <= height


@pytest.mark.parametrize("snr", [[0.0, 1.0, 4.0], ["low", "middle", "high"]])
def test_a_phase_diagram_without_logarithms_is_linear(snr: list[Any]) -> None:
    _, (ax,) = plot.figure()
    plot.phase_diagram(ax, measured(samples=[2, 4], snr=snr), "samples", "snr", cut=0.1)
    assert np.isfinite(np.ma.getdata(mesh_of(ax).get_array())).all()


def test_a_phase_diagram_with_cells_that_were_not_run_keeps_its_cells() -> None:
    _, (ax,) = plot.figure()
    da = loss().copy()
    da[{"samples": 1, "snr": 2}] = np.nan
    plot.phase_diagram(ax, da, "samples", "snr", cut=0.1, log="xy")
    assert np.shape(mesh_of(ax).get_array()) == (SNR.size, 4)


def test_small_attention_maps_show_numbers() -> None:
    names = ["$\\mu$", "$\\xi_2$", "$\\xi_3$"]
    p = xr.DataArray(
        np.tile(np.eye(3), (4, 1, 1)), dims=("seed", "query", "key"), name="attention weight"
    )
    fig, (ax,) = plot.figure()
    plot.attention_map(ax, p, rows=names, cols=names)
    assert [t.get_text() for t in ax.texts][:2] == ["1.00", "0.00"]
    assert [t.get_text() for t in ax.get_xticklabels()] == names
    assert plot.check_layout(fig) == []


def test_large_attention_maps_do_not() -> None:
    p = xr.DataArray(np.eye(12), dims=("query", "key"), name="attention")
    fig, (ax,) = plot.figure(seeds=1)
    names = [f"token {k}" for k in range(12)]
    plot.attention_map(ax, p, rows=names, cols=names)
    assert len(ax.texts) == 0
    assert plot.check_layout(fig) == []


# --------------------------------------------------------------------------- figures and files


def test_long_labels_fold_and_many_panels_fit() -> None:
    fig, axes = plot.figure(1, 3, title="Everything at once")
    da = loss()
    da.attrs["long_name"] = "attention on the class-relevant nodes of the graph"
    for k, ax in enumerate(axes):
        plot.curve(ax, da, "snr", hue="samples", log="x")
        ax.set_title(f"case {k}")
    assert plot.check_layout(fig) == []
    assert "\n" in axes[0].get_ylabel()
    assert axes[0].get_title("left") == "case 0"


def test_finish_twice_changes_nothing() -> None:
    fig, (a, b) = plot.figure(1, 2)
    plot.curve(a, loss(), "snr", hue="samples")
    plot.heatmap(b, loss(), "samples", "snr", log="y", theory={"line": lambda n: n})

    def state() -> list[Any]:
        panels: list[Any] = [a, b]
        boxes = [ax.get_legend().get_window_extent().bounds for ax in panels]
        return [*boxes, fig.get_figheight(), a.bbox.bounds, b.bbox.bounds]

    plot.finish(fig)
    before = state()
    plot.finish(fig)
    for one, two in zip(before, state(), strict=True):
        np.testing.assert_allclose(one, two, atol=0.5)


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_files_are_written_alike_twice(tmp_path: Any, kind: str) -> None:
    def draw(name: str) -> bytes:
        fig, (ax,) = plot.figure(title="Twice")
        da = loss().copy()
        da[{"snr": 0, "seed": 0}] = np.nan
        plot.heatmap(ax, da, "samples", "snr", log="y", theory={"line": lambda n: n})
        return plot.save(fig, tmp_path / f"{name}.{kind}").read_bytes()

    one, two = draw("one"), draw("two")
    assert one == two
    assert one.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind])


def test_large_png_stays_small(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    fig, axes = plot.figure(1, 2, seeds=1)
    for ax in axes:
        p = xr.DataArray(rng.random((200, 200)), dims=("query", "key"), name="attention")
        plot.attention_map(ax, p)
    assert plot.save(fig, tmp_path / "noise.png").stat().st_size < 300_000


def test_unknown_format_is_refused(tmp_path: Any) -> None:
    fig, _ = plot.figure()
    with pytest.raises(InputError, match="image format"):
        plot.save(fig, tmp_path / "figure.bmp")


def test_settings_are_left_alone_and_threads_agree() -> None:
    before = dict(matplotlib.rcParams)
    sizes: list[Any] = []

    def draw() -> None:
        fig, (ax,) = plot.figure()
        plot.curve(ax, loss(), "snr", hue="samples")
        plot.finish(fig)
        sizes.append(ax.xaxis.label.get_fontsize())

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [plot.STYLE["axes.labelsize"]] * 3
    assert dict(matplotlib.rcParams) == before


# --------------------------------------------------------------------------- styles


def test_paper_style_has_column_width_small_type_and_no_title() -> None:
    with plot.style("paper"):
        one, (ax,) = plot.figure(title="Not shown", width=4.2, height=4.2)
        plot.curve(ax, loss(), "snr", hue="samples", log="xy")
        plot.theory_curve(ax, SNR, 1 / SNR)
        many, (left, right) = plot.figure(1, 2)
        plot.heatmap(left, loss(), "samples", "snr", log="y")
        plot.law(right, loss().isel(snr=0), "samples", predicted=-1)
    usual, (other,) = plot.figure(title="Shown")
    plot.curve(other, loss(), "snr", hue="samples", log="xy")
    assert one.get_size_inches().tolist() == pytest.approx([3.3, 3.3])
    assert many.get_size_inches()[0] == pytest.approx(6.8)
    assert (one.get_suptitle(), usual.get_suptitle()) == ("", "Shown")
    for fig in (one, many):
        assert plot.check_layout(fig) == []  # also finished outside the context
        sizes = {t.get_fontsize() for t in fig.findobj(Text) if t.get_text().strip()}
        assert sizes <= {7, 7.5}
    assert ax.lines[0].get_linewidth() < other.lines[0].get_linewidth()
    assert {t.get_fontsize() for t in other.get_xticklabels()} == {8}


def test_the_figure_of_an_experiment_in_paper_style(tmp_path: Any) -> None:
    setting: dict[str, Any] = dict(samples=[40, 80], noise=[1.0], seeds=3, store=tmp_path)
    api.run("toy/risk", **setting)
    fig, usual = (api.figure("toy/risk", **style, **setting) for style in ({"style": "paper"}, {}))
    assert fig.get_size_inches()[0] in (pytest.approx(3.3), pytest.approx(6.8))
    assert usual.get_size_inches()[0] not in (pytest.approx(3.3), pytest.approx(6.8))
    assert plot.check_layout(fig) == []
    with pytest.raises(InputError, match="style"):
        api.figure("toy/risk", style="poster", **setting)


def test_unknown_style_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'paper'"), plot.style("papper"):
        pass


# --------------------------------------------------------------------------- ticks


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (1e-4, 1e4, ["$10^{-4}$", "$10^{-1}$", "$10^{2}$"]),
        (0.16, 0.55, ["0.2", "0.3", "0.5"]),
        (2.5e-4, 4e-2, ["0.001", "0.01"]),  # not 0.0003, 0.003, 0.03
        (3, 90, ["3", "10", "30"]),
        (1.01, 1.09, ["1.025", "1.05", "1.075"]),
    ],
)
@pytest.mark.parametrize("own", [True, False])
def test_log_axes_have_a_few_round_ticks(low: float, high: float, ticks: list, own: bool) -> None:
    """Also those that were made logarithmic by hand."""
    fig, (ax,) = plot.figure(seeds=3, height=2)
    ax.plot([0, 1], [low, high])
    ax.set(xlabel="x", ylabel="y")
    if own:
        plot.curve(ax, [(low, low, low), (high, high, high)], xr.DataArray([0.0, 1], dims="x"),
                   log="y")  # fmt: skip
    else:
        ax.set_yscale("log")
    ax.set_ylim(low, high)
    plot.finish(fig)
    bottom, top = ax.get_ylim()
    shown = [t for t in ax.get_yticklabels() if bottom <= t.get_position()[1] <= top]
    assert [t.get_text() for t in shown] == ticks
    assert not any(t.get_text() for t in ax.get_yticklabels(minor=True))


def test_crowded_ticks_are_thinned_before_they_are_turned() -> None:
    fig, axes = plot.figure(1, 3, seeds=3)
    for ax in axes:
        ax.plot([0.321, 0.539], [0, 1])
        ax.set(xlabel="x", ylabel="y")
    assert plot.check_layout(fig) == []
    for ax in axes:
        boxes = [t.get_window_extent() for t in ax.get_xticklabels() if t.get_text()]
        assert all(b.x0 - a.x1 >= 6 for a, b in itertools.pairwise(boxes))
        assert {t.get_rotation() for t in ax.get_xticklabels()} == {0}


# --------------------------------------------------------------------------- the check itself


def drawn() -> tuple[plot.Sheet, Any]:
    fig, (ax,) = plot.figure()
    plot.curve(ax, loss(), "snr", hue="samples", log="x")
    return fig, ax


def flagged(fig: Figure, words: str) -> bool:
    return any(words in problem for problem in plot.check_layout(fig))


def test_check_finds_missing_label_and_seeds() -> None:
    fig, ax = drawn()
    ax.set_xlabel("")
    assert flagged(fig, "x axis has no label")
    fig, (ax,) = plot.figure()
    plot.theory_curve(ax, [1, 2], [1, 2])
    ax.set(xlabel="x", ylabel="y")
    assert plot.check_layout(fig) == ["the figure does not say its number of seeds"]


def test_check_finds_clipped_text() -> None:
    fig, ax = drawn()
    ax.text(0.9, 0.5, "a remark that runs out of the page", transform=ax.transAxes).set_in_layout(
        False
    )
    assert flagged(fig, "cut off")
    fig, ax = drawn()
    fig.set_layout_engine("none")
    ax.set_position((0, 0, 1, 1))
    assert flagged(fig, "cut off")


def test_check_finds_overlapping_text() -> None:
    fig, ax = drawn()
    for place in (0.5, 0.52):
        ax.text(place, 0.5, "remark", transform=ax.transAxes)
    assert flagged(fig, "'remark' overlaps 'remark'")
    fig, ax = drawn()
    ax.set_yticks([0.1, 0.101, 0.2])
    assert flagged(fig, "overlaps")


def test_check_finds_missing_legend_and_empty_panels() -> None:
    fig, (a, b) = plot.figure(1, 2, seeds=3)
    a.plot([1, 2], [1, 2])
    a.plot([1, 2], [2, 1], "--")
    a.set(xlabel="x", ylabel="y")
    b.set(xlabel="x", ylabel="y")
    assert flagged(fig, "no legend")
    assert flagged(fig, "panel 2 is empty")
    b.set_visible(False)
    a.legend(["up", "down"])
    assert plot.check_layout(fig) == []


def test_check_has_no_false_alarms() -> None:
    fig, (a, b, c, d) = plot.figure(2, 2, seeds=3)
    for k in range(5):  # equal looks need no legend
        a.plot([1, 2], [k, k + 1], color="grey")
    a.errorbar([1, 2], [1, 2], [0.1, 0.1], color="grey", capsize=3)
    b.bar(["one", "two"], [1, 2])
    c.axis("off")
    image = d.imshow(np.eye(30))
    fig.colorbar(image, ax=d, label="value")
    for ax in (a, b, d):
        ax.set(xlabel="x", ylabel="y")
    b.sharey(a)
    b.tick_params(labelleft=False)
    b.set_ylabel("")
    assert plot.check_layout(fig) == []


def test_bands_are_polygons_in_the_colour_of_their_line() -> None:
    _, ax = drawn()
    bands: list[Any] = [c for c in ax.collections if isinstance(c, PolyCollection)]
    for line, band in zip(ax.lines, bands, strict=True):
        assert colors.same_color(band.get_facecolor()[0][:3], line.get_color())
