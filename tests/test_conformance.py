"""What every study has to fulfil, whoever wrote it: tested by being in the list."""

import dataclasses
import functools
import importlib
import json
import math
import re
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import provingground as pg
from provingground import api, grid, identity, planning, plot, programs, registry, sources, upkeep
from provingground.chunk import Chunk
from provingground.config import pars
from provingground.errors import DataMissing
from provingground.grid import Point
from provingground.keys import recorded_streams, seed_key
from provingground.study import SCALES, Cases, Experiment, Prediction, Trainings, cases

STUDIES = {**pg.studies(), "toy": registry.study("toy")}
SIMULATORS = [(s, name) for s in STUDIES for name in STUDIES[s].simulators]
EXPERIMENTS = [(s, e.name) for s in STUDIES for e in STUDIES[s].experiments]
QUICK = [(s, e) for s, e in EXPERIMENTS if not STUDIES[s].experiment(e).trainings.paper_only]
LISTED = [(s, e) for s, e in QUICK if s != "toy"]


DRAWS_NOTHING = {("graph_transformer", "figb1")}  # of all nodes of a graph: seeds are alike


def first_uses(studies):
    """The first quick experiment in which a simulator occurs, and draws something."""
    found: dict[tuple[str, str], str] = {}
    for s, e in (at for at in studies if at not in DRAWS_NOTHING):
        for group in grid.plan(STUDIES[s], STUDIES[s].experiment(e), "quick").groups():
            found.setdefault((s, group.program.simulator), e)
    return found


FIRST_USES = first_uses(LISTED)


@functools.cache
def data_name(study, simulator):
    """The data set that the trainings of a simulator take."""
    owner = STUDIES[study]
    for e in owner.experiments:
        axes = grid.declared(owner, e, "paper")[0].values()
        first = owner.simulator(e.trainings.simulator)[0]
        named = [[s.get("simulator") for s in grid._settings_on(axis)] for axis in axes]
        chosen = [s or first for on_axis in named if any(on_axis) for s in on_axis]
        if simulator in (chosen or [first]):
            return e.trainings.data
    return ""


def data_of(owner, name):
    """A data set of a study; without it the test is skipped."""
    try:
        return owner.data[name]() if name else None
    except DataMissing as missing:
        pytest.skip(str(missing))


CLAIMS = pytest.mark.claims
RECORDS = sorted((Path(__file__).parents[1] / "docs" / "results").glob("*.json"))


def headline(study, experiment):
    return experiment == STUDIES[study].experiments[0].name


NAME = re.compile(r"[a-z0-9_]+")


def each(what, values):
    return pytest.mark.parametrize(what, values, ids=map("-".join, values))


each_study = pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
each_simulator = each(("study", "simulator"), SIMULATORS)
each_experiment = each(("study", "experiment"), EXPERIMENTS)


def small(config):
    """Settings that make a training short: no size is over 16, unless it has to be."""
    return {
        name: max(int(p.low or 1), min(p.default, 6 if p.traced else 16))
        for name, p in pars(config).items()
        if p.type is int
    }


def traced(study, name, cfg):
    """Shapes of the probes of a training."""
    simulator = STUDIES[study].simulators[name]
    data = data_of(STUDIES[study], data_name(study, name))
    with identity.precision_of(simulator.precision):
        args = identity.typed((cfg, seed_key(study, 0)), simulator.precision)
        rest = () if data is None else (data,)
        if simulator.host:
            return simulator.simulate(cfg, seed_key(study, 0), *rest)
        return jax.eval_shape(lambda *args: simulator.simulate(*args), *args, *rest)


def small_job(study, name, store):
    """Two settings times two seeds of a short training."""
    owner = STUDIES[study]
    config = owner.simulators[name].config
    values = {n: 0.9 * p.default for n, p in pars(config).items() if p.type is float}
    experiment = Experiment(
        "small",
        "s",
        Trainings(
            {**small(config), "values": cases({"default": {}, "lower": values})},
            2,
            simulator=name,
            data=data_name(study, name),
        ),
        (),
        lambda ds: None,
    )
    owner = dataclasses.replace(owner, experiments=(experiment,))
    return planning.job(owner, "small", store=store)


# ------------------------------------------------------------------------- declarations


@each_study
def test_names_are_plain(study):
    names = [study.name, *study.simulators, *study.data]
    for simulator in study.simulators.values():
        names += [*pars(simulator.config), *simulator.probes.__dataclass_fields__]
    for experiment in study.experiments:
        names += [experiment.name, *experiment.trainings.grid, *(c.name for c in experiment.claims)]
    assert [n for n in names if not NAME.fullmatch(n)] == []
    assert len({e.name for e in study.experiments}) == len(study.experiments)


@each_study
def test_a_study_says_what_it_is(study):
    assert study.title
    assert re.search(r"\b(19|20)\d\d\b", study.cite)
    assert study.bibtex or study.name == registry.SKELETON
    assert study.experiments
    assert study.experiments[0].claims  # the headline


def test_the_index_says_what_the_studies_are():
    assert registry.INDEX.read_text(encoding="utf-8") == registry.index_text(), "run `make docs`"


@each_study
def test_a_study_has_a_page(study):
    module = importlib.import_module(f"provingground.studies.{study.name}")
    page = Path(module.__file__ or "").with_name("README.md").read_text()
    assert f"`{study.name}`" in page


@each_simulator
def test_parameters_are_described_and_their_defaults_allowed(study, simulator):
    config = STUDIES[study].simulators[simulator].config
    for p in pars(config).values():
        assert p.symbol
        assert p.says
        assert p.check(p.default) == p.default
        assert p.type is not int or p.low is not None
        assert p.pad is None or p.value
    assert config() == config()


@each_simulator
def test_probes_have_named_dims_and_are_described(study, simulator):
    probes = STUDIES[study].simulators[simulator].probes
    dims = programs.probe_dims(probes)
    assert list(dims) == list(probes.__dataclass_fields__)
    assert all(NAME.fullmatch(d) and not d.isdigit() for named in dims.values() for d in named)
    assert all(f.metadata.get("says") for f in probes.__dataclass_fields__.values())
    outer = {*pars(STUDIES[study].simulators[simulator].config), "seed", "diverged"}
    assert not outer & {*dims, *(d for named in dims.values() for d in named)}


@each_experiment
def test_claims_have_a_source_and_bounds(study, experiment):
    found = STUDIES[study].experiment(experiment)
    assert found.says
    assert len({c.name for c in found.claims}) == len(found.claims)
    for c in found.claims:
        low, high = c.within
        assert low < high  # and neither is NaN
        assert math.isfinite(low) or math.isfinite(high)
        assert c.source
        assert c.says
        assert c.expected == "holds" or c.note or c.because


@each_experiment
@pytest.mark.parametrize("scale", SCALES)
def test_grids_can_be_planned(study, experiment, scale):
    owner, found = STUDIES[study], STUDIES[study].experiment(experiment)
    if scale == "quick" and found.trainings.paper_only:
        return
    sweep = grid.plan(owner, found, scale)
    assert sum(1 for _ in sweep.points()) * len(sweep.seeds) == sweep.cells
    assert len(sweep.seeds) >= 3
    known = {*sweep.table, *grid.RESERVED}
    for axis in (a for a in found.trainings.settings(scale).values() if isinstance(a, Cases)):
        for setting in axis.settings.values():
            assert set(setting) <= known
    known_now = {name: p.default for name, p in sweep.table.items()} | first_settings(sweep)
    assert all(set(sets(known_now)) <= known for sets in sweep.sets)


def first_settings(sweep):
    """The settings of the first point, before those that others derive."""
    settings = dict(sweep.fixed)
    for axis in sweep.axes:
        settings |= axis.settings[0]
    return settings


# -------------------------------------------------------------------------- trainings


@each_simulator
def test_the_default_training_has_the_declared_probes(study, simulator):
    declared = STUDIES[study].simulators[simulator]
    with recorded_streams() as names:
        found = traced(study, simulator, declared.config())
    assert isinstance(found, declared.probes)
    sizes = {}
    for name, dims in programs.probe_dims(declared.probes).items():
        shape = getattr(found, name).shape
        assert len(shape) == len(dims)
        for dim, size in zip(dims, shape, strict=True):
            assert sizes.setdefault(dim, size) == size
    assert names
    assert len(names) == len(set(names))  # each stream is asked for once, so that none coincide


@each_simulator
def test_the_smallest_sizes_can_be_trained(study, simulator):
    config = STUDIES[study].simulators[simulator].config
    lowest = {n: int(p.low or 1) for n, p in pars(config).items() if p.type is int}
    traced(study, simulator, config(**lowest))


def check_repetition(job, number):
    """Two points of one seed, the same again, and one of them alone: the numbers are the same."""
    block = next(b for b in job.blocks if b.group == number)
    some = block._replace(rows=block.rows[:2], seeds=np.array([0], np.int32))
    one = some._replace(rows=some.rows[-1:])
    other = one._replace(seeds=np.array([1], np.int32))
    together, again, alone, elsewhere = (job.compute(b)[0] for b in (some, some, one, other))
    simulator = job.study.simulators[job.groups[number].program.simulator]
    exact = simulator.precision == "float64"
    for name, values in together.items():
        np.testing.assert_array_equal(values, again[name])
        np.testing.assert_allclose(
            alone[name][0],
            values[-1],
            rtol=1e-9 if exact else 1e-3,
            atol=1e-12 if exact else 1e-4,
            err_msg=name,
        )
    assert any((alone[name] != elsewhere[name]).any() for name in alone)  # by seed


@each(("study", "simulator"), [u for u in SIMULATORS if u not in FIRST_USES])
def test_a_training_is_the_same_program_each_time(study, simulator, store):
    """Trainings of quick experiments are repeated where their claims are judged."""
    job = small_job(study, simulator, store)
    data_of(STUDIES[study], job.sweep.trainings.data)
    point = Point(job.groups[0].program, job.groups[0].config)
    first, second = (identity.program_hash(job.study, point, job.data) for _ in range(2))
    assert first == second


@each_study
def test_the_settings_of_stored_cells_are_found_again(study):
    for experiment in study.experiments:
        for group in grid.plan(study, experiment, "paper", yes=True).groups():
            names = pars(group.config).values()
            values = dict(zip((p.name for p in names if p.traced), group.values.T, strict=True))
            probes = {f"config_{name}": column for name, column in values.items()}
            chunk = Chunk(Path("file.nc"), np.array([b""]), probes, {})
            point = upkeep._point(study, group.program, chunk, 0)
            assert point == Point(group.program, group.config), experiment.name


# ------------------------------------------------------------------------------- theory


@each_study
def test_theory_needs_no_training(study, monkeypatch):
    monkeypatch.setattr(jax, "jit", None)
    for experiment in study.experiments:
        scale = "paper" if experiment.trainings.paper_only else "quick"
        for point in grid.plan(study, experiment, scale).points():
            with recorded_streams() as names:
                found = study.theory(point.config)
            assert names == []
            check_prediction(found)
    for simulator in study.simulators.values():
        check_prediction(study.theory(simulator.config()))


@each_study
def test_theory_answers_at_the_lowest_values(study):
    config = study.simulator()[1].config
    for name, p in pars(config).items():
        if p.low is not None:
            check_prediction(study.theory(config(**{name: p.type(p.low)})))


def check_prediction(found):
    assert isinstance(found, Prediction)
    assert found.conditions
    assert found.values
    for c in found.conditions:
        assert c.name
        assert c.says
        assert not any(map(math.isnan, (c.left, c.right, c.margin)))
    assert all(NAME.fullmatch(n) and not math.isnan(v) for n, v in found.values.items())
    assert [n for n in found.values if not found.says.get(n)] == []


# ----------------------------------------------------------------- claims and figures


def check_claims_and_figure(study, experiment, store):
    owner, found = STUDIES[study], STUDIES[study].experiment(experiment)
    data_of(owner, found.trainings.data)
    ds = pg.run(owner, experiment, store=store)
    verdicts = api.verdicts(owner, found, ds)
    assert [f"{v.claim}: {v.estimate}" for v in verdicts if v.trouble] == []
    assert plot.check_layout(found.figure(ds)) == []


def test_the_skeleton_s_claims_hold_and_its_figure_is_clean(shared_store):
    check_claims_and_figure("toy", "risk", shared_store)


@pytest.mark.parametrize(
    ("study", "experiment"),
    [pytest.param(*at, id="-".join(at), marks=() if headline(*at) else CLAIMS) for at in LISTED],
)
def test_claims_hold_as_expected_and_figures_are_clean(study, experiment, shared_store):
    check_claims_and_figure(study, experiment, shared_store)
    job = planning.job(STUDIES[study], experiment, store=shared_store)
    tested = set()
    for number, group in enumerate(job.groups):
        simulator = group.program.simulator
        if FIRST_USES[study, simulator] == experiment and simulator not in tested:
            tested.add(simulator)
            check_repetition(job, number)


# ------------------------------------------------------------------------------- records

each_record = pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)


def sources_not_recorded(path, record, experiments):
    made = f"{path.name} made by {record['version']}, sources not recorded"
    pytest.skip(f"{made} ({len(experiments)} of {len(record['provenance'])} experiments)")


@each_record
def test_a_record_is_of_today_s_sources(path):
    """If this fails: docs/results/README.md, "When a record is stale"."""
    record = json.loads(path.read_text(encoding="utf-8"))
    found = sources.staleness(record)
    assert found.stale == {}
    if found.unknown:
        sources_not_recorded(path, record, found.unknown)
    study = STUDIES[path.stem]
    # the README names those that are newer than the record
    assert set(record["provenance"]) <= {f"{study.name}/{e.name}" for e in study.experiments}


@pytest.mark.records
@each_record
def test_a_record_names_today_s_programs(path):
    """All of them are lowered: of the programs of one simulator, some change and others do not."""
    record = json.loads(path.read_text(encoding="utf-8"))
    known = {at: about for at, about in record["provenance"].items() if about.get("source")}
    for at in known:
        data_of(STUDIES[path.stem], planning.resolve(at)[1].trainings.data)
    if not known:
        sources_not_recorded(path, record, record["provenance"])
    same = {at: sources.same_programs(at, about["scale"], about) for at, about in known.items()}
    assert [at for at, whether in same.items() if whether is False] == []
    if not any(same.values()):
        made = {f"jax {about['jax']}, NumPy {about['numpy']}" for about in known.values()}
        pytest.skip(f"{path.name} made with {' and '.join(sorted(made))}: cannot be told here")


TRACED = [(s, name) for s, name in SIMULATORS if not STUDIES[s].simulators[name].host]


@pytest.mark.records
@each(("study", "simulator"), TRACED)
def test_the_source_of_a_simulator_is_all_that_runs(study, simulator):
    """Every function of the project that is called while it is traced is among those read."""
    declared = STUDIES[study].simulators[simulator]
    walk = sources._Walk({"provingground"})
    data = STUDIES[study].data.values()
    for root in (seed_key, declared.simulate, declared.config, declared.probes, *data):
        walk.start(sources._Place(root.__module__, root.__qualname__))
    walk.hash()
    called = set()

    def listen(frame, event, _):
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        if event == "call" and module.startswith("provingground.") and ".py" in code.co_filename:
            called.add((module, code.co_qualname.partition(".")[0]))

    cfg = declared.config()
    data_of(STUDIES[study], data_name(study, simulator))  # a real one is read once, before
    with identity.running("", declared.precision):  # or what was traced before is not called
        sys.setprofile(listen)
        try:
            traced(study, simulator, cfg)
        finally:
            sys.setprofile(None)
    of_engine = ("provingground.identity", *sources.ASIDE)
    missed = {(module, name) for module, name in called - set(walk.numbers) if name[0] != "<"}
    assert ("provingground.keys", "stream") in called
    assert [place for place in missed if place[0] not in of_engine] == []
