"""The law of the house: what claims, figures and the folders of studies have to fulfil."""

import ast
import importlib
import math
import re
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import xarray as xr

import provingground as pg
from madeup import madeup
from provingground import domain, grid, registry
from provingground.config import pars
from provingground.errors import DataMissing
from provingground.stats import Estimate, Everywhere
from provingground.study import SCALES
from provingground.verdict import decide

STUDIES = {**pg.studies(), "toy": registry.study("toy")}
SRC = Path(registry.__file__).parent / "studies"
TESTS = Path(__file__).parent

each_study = pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
each_name = pytest.mark.parametrize("name", list(STUDIES))


def places():
    """Every experiment at every scale; those at paper scale that are no headline are for `make
    check`."""
    for name, owner in STUDIES.items():
        for e in owner.experiments:
            for scale in SCALES:
                if scale == "quick" and e.trainings.paper_only:
                    continue
                later = scale == "paper" and e is not owner.experiments[0]
                marks = pytest.mark.claims if later else ()
                yield pytest.param(name, e.name, scale, id=f"{name}-{e.name}-{scale}", marks=marks)


# ---------------------------------------------------------------------- made-up Datasets


@pytest.mark.parametrize(("name", "experiment", "scale"), list(places()))
def test_every_claim_is_measured_and_every_figure_drawn_on_a_made_up_dataset(
    name, experiment, scale
):
    """A typo in a measure, a wrong dim or axis, at either scale, without a training."""
    owner, found = STUDIES[name], STUDIES[name].experiment(experiment)
    ds = madeup(owner, found, scale)
    for claim in found.claims_at(scale):
        measured = claim(ds)
        assert isinstance(measured, (Estimate, Everywhere)), claim.name
        assert not isinstance(measured, Everywhere) or measured.each, claim.name
    assert found.figure(ds) is not None
    plt.close("all")


@pytest.mark.parametrize("broken", ["ds.test_los", "ds.test_loss.sel(sample=30)", "mean()"])
def test_a_misspelt_measure_is_seen_in_the_made_up_dataset(broken):
    """The negative control of the test above."""
    owner = STUDIES["toy"]
    ds = madeup(owner, owner.experiments[0], "quick")
    with pytest.raises((AttributeError, KeyError, NameError)):
        eval(broken, {"ds": ds})


def test_made_up_datasets_have_real_labels_and_settings(tmp_path):
    owner = STUDIES["toy"]
    made = madeup(owner, owner.experiments[0], "quick")
    real = pg.run(owner, "risk", seeds=3, store=tmp_path, progress=False)
    assert set(made.variables) == set(real.variables)
    for name in ("step", "samples", "noise", "dim", "lr", "steps"):
        xr.testing.assert_equal(made[name].drop_vars("seed", errors="ignore"), real[name])
    assert {n: made[n].dtype for n in made} == {n: real[n].dtype for n in real}


# ------------------------------------------------------------------------------- claims


@each_study
def test_a_claim_is_explained_by_claims_of_its_study_that_are_expected_to_hold(study):
    known = {id(c) for e in study.experiments for c in e.claims}
    for claim in (c for e in study.experiments for c in e.claims):
        for reason in claim.because:
            assert id(reason) in known, f"{claim.name}: {reason.name} belongs to no experiment"
            assert reason.expected == "holds", f"{claim.name}: {reason.name}"


@each_name
def test_what_fails_is_explained_by_claims(name):
    for e in STUDIES[name].experiments:
        for claim in e.claims:
            assert claim.expected == "holds" or claim.because, claim.name


def with_controls():
    """Experiments whose claims have rivals or a curve of their own; those that are not headlines
    are for `make check`, which has run them."""
    for name, owner in STUDIES.items():
        for e in owner.experiments:
            if e.trainings.paper_only or not any(c.rivals or c.law for c in e.claims_at("quick")):
                continue
            marks = () if e is STUDIES[name].experiments[0] else pytest.mark.claims
            yield pytest.param(name, e.name, id=f"{name}-{e.name}", marks=marks)


@pytest.mark.parametrize(("name", "experiment"), list(with_controls()))
def test_laws_reject_their_rivals_and_hold_on_their_own_curve(name, experiment, shared_store):
    """On the quick Dataset. A law is a claim with a value of the theory and a curve of its own."""
    try:
        ds = pg.run(STUDIES[name], experiment, store=shared_store, progress=False)
    except DataMissing as missing:
        pytest.skip(str(missing))
    for claim in STUDIES[name].experiment(experiment).claims_at("quick"):
        if claim.law is not None and claim.expected == "holds":
            on_its_own = decide(claim(claim.law(ds)), claim.within)
            assert on_its_own == "holds", f"{claim.name} on its own curve"
        for rival, altered in claim.rivals.items():
            assert decide(claim(altered(ds)), claim.within) != "holds", f"{claim.name}: {rival}"


@each_name
def test_headlines_have_rivals(name):
    headline = STUDIES[name].experiments[0]
    assert all(c.rivals for c in headline.claims_at("quick") if c.theory is not None)
    assert any(c.rivals for c in headline.claims)


@each_name
def test_domains_can_be_drawn_from_and_hold_the_paper_s_settings(name):
    for e in STUDIES[name].experiments:
        if not e.trainings.domain:
            continue
        settings, table = grid.declared(STUDIES[name], e, "paper")
        whole = {n: p.default for n, p in table.items()} | settings
        assert domain.covers(e.trainings.domain, whole) == [], e.name
        drawn = domain.design(STUDIES[name], e, "paper", 20, 0, whole=True)
        for point in drawn.settings:
            assert domain.covers(e.trainings.domain, point) == []
            assert all(math.isfinite(v) for v in point.values() if isinstance(v, float))


@each_study
def test_no_parameter_has_a_name_of_xarray_s(study):
    """`ds.name` would be the method, not the parameter."""
    names = {n for s in study.simulators.values() for n in pars(s.config)}
    names |= {a for e in study.experiments for a in e.trainings.grid}
    assert {n for n in names if hasattr(xr.Dataset, n)} == set()


# ------------------------------------------------------------------------------ folders


def sources(name: str) -> dict[str, Path]:
    return {str(p.relative_to(SRC / name)): p for p in (SRC / name).rglob("*.py")}


@each_name
def test_every_figure_has_a_room_and_every_simulator_a_module(name):
    owner, package = STUDIES[name], f"provingground.studies.{name}"
    rooms = {p.stem: importlib.import_module(f"{package}.figures.{p.stem}")
             for p in (SRC / name / "figures").glob("*.py")
             if p.stem not in ("__init__", "shared")}  # fmt: skip
    listed = [e for room in rooms.values() for e in room.EXPERIMENTS]
    assert {id(e) for e in listed} == {id(e) for e in owner.experiments}
    for room, module in rooms.items():
        for e in module.EXPERIMENTS:
            assert e.name.startswith(room), f"{e.name} in figures/{room}.py"
    for simulator, made in owner.simulators.items():
        found = [
            module
            for module in (simulator, "model")
            if f"{module}.py" in sources(name)
            and (m := importlib.import_module(f"{package}.{module}")).simulate is made.simulate
            and (m.Config, m.Probes) == (made.config, made.probes)
        ]
        assert found, f"{simulator} has no module of its own with Config, Probes and simulate"


@each_name
def test_claims_and_figures_see_only_datasets(name):
    """No default of a Config, no attribute of a Dataset, no name of an experiment; and every claim
    is its measure."""
    for path in (SRC / name / "figures").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\bConfig\(|\.attrs\[[\"'](experiment|settings|grid|scale)", text), (
            path
        )
        called = [n.func for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
        assert "Claim" not in [f.id for f in called if isinstance(f, ast.Name)], path


@each_name
def test_every_claim_of_a_room_belongs_to_an_experiment(name):
    from provingground.claims import Claim

    known = {id(c) for e in STUDIES[name].experiments for c in e.claims}
    for path in (SRC / name / "figures").glob("*.py"):
        module = importlib.import_module(f"provingground.studies.{name}.figures.{path.stem}")
        for thing, value in vars(module).items():
            assert not isinstance(value, Claim) or id(value) in known, f"{path.stem}.{thing}"


@each_name
def test_coverage_names_every_claim_and_nothing_that_is_not_there(name):
    """`coverage.md` maps every item of the paper to claims, tests, functions, or says why not."""
    page = SRC / name / "coverage.md"
    if name == "toy":
        return
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z0-9_.]+)`", text))
    claims = {c.name for e in STUDIES[name].experiments for c in e.claims}
    assert claims - named == set()
    tests = list((TESTS / "studies").glob(f"test_{name}*.py"))
    functions = {
        function
        for path in [*tests, *sources(name).values()]
        for function in re.findall(r"def (\w+)", path.read_text(encoding="utf-8"))
    }
    known = claims | functions | {e.name for e in STUDIES[name].experiments}
    known |= set(STUDIES[name].simulators)
    assert {n for n in named if n.rpartition(".")[2] not in known} == set()
    for row in (line for line in text.splitlines() if line.startswith("|")):
        assert row.count("|") >= 3, row


# -------------------------------------------------------------------------------- shapes


UNCHECKED = {"provingground.config"}  # one shape, beside functions that tests give wrong input


def test_every_module_that_says_shapes_is_checked_in_tests():
    with (TESTS.parent / "pyproject.toml").open("rb") as file:
        options = tomllib.load(file)["tool"]["pytest"]["ini_options"]["addopts"]
    (told,) = (o for o in options if o.startswith("--jaxtyping-packages="))
    checked = tuple(told.partition("=")[2].split(",")[:-1])
    for path in SRC.parent.rglob("*.py"):
        module = ".".join(("provingground", *path.relative_to(SRC.parent).with_suffix("").parts))
        if re.search(r"(: |-> )(Float|Int|Bool|Key|Shaped)\[", path.read_text("utf-8")):
            assert module.startswith(checked) or module in UNCHECKED, module
