"""What is asked for: it works, or it ends in a clear message, and nothing is taken silently.

Only the command line and the public Python interface of version 0.1.0 are used.
"""

import contextlib
import dataclasses
import io
import os
import resource
import subprocess
import sys
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, Int

import provingground as pg
from provingground import cli
from provingground.config import config, par
from provingground.errors import InputError, RunError
from provingground.machine import here
from provingground.studies.toy import STUDY as TOY
from provingground.study import Simulator, Trainings

SMALL: dict[str, Any] = dict(samples=[70, 80], steps=40, seeds=4)
OPTIONS = ["--set", "samples=70,80", "--set", "steps=40", "--seeds", "4"]
OWN = """
import dataclasses
from provingground.studies.toy import STUDY as TOY
STUDY = dataclasses.replace(TOY, name={name!r}, title={title!r})
"""


class Answer(NamedTuple):
    code: int
    out: str
    err: str


def call(*args: object) -> int:
    """The command line, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["proving", *map(str, args)])
        with pytest.raises(SystemExit) as end:
            cli.main()
    return int(end.value.code or 0)


@pytest.fixture
def proving(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PROVING_STUDIES", "")
    monkeypatch.setenv("PROVING_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)

    def answer(*args: object) -> Answer:
        return Answer(call(*args), *capsys.readouterr())

    return answer


@pytest.fixture(scope="module")
def checked(tmp_path_factory) -> Path:
    """A store with a small run of the toy study."""
    path = tmp_path_factory.mktemp("checked") / "store"
    pg.run("toy/risk", store=path, progress=False, **SMALL)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Makes folders of studies and names them all."""
    made: list[Path] = []

    def make(path: str, name: str, title: str = "t", text: str = "") -> Path:
        at = tmp_path / path
        at.mkdir(parents=True)
        (at / "__init__.py").write_text(text or OWN.format(name=name, title=title))
        made.append(at)
        monkeypatch.setenv("PROVING_STUDIES", os.pathsep.join(map(str, made)))
        return at

    yield make
    for name in [m for m in sys.modules if m.partition(".")[0] in {at.name for at in made}]:
        if name.startswith("own_"):
            del sys.modules[name]


def files(under: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in under.rglob("*") if p.is_file() and not p.is_symlink()}


def refused(answer: Answer, *says: str) -> None:
    assert answer.code == 2, answer
    assert "Traceback" not in answer.err
    for text in says:
        assert text in answer.err


# ------------------------------------------------------------------ A8: what one sets runs


def test_a_setting_that_the_experiment_derives_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"frac_confusion.*derives it from frac_relevant"):
        pg.load(
            "vision_transformer/fig2_1a",
            store=tmp_path / "store",
            frac_relevant=0.25,
            frac_confusion=0.1,
        )


def test_values_along_a_bisected_axis_have_to_be_in_order(tmp_path):
    with pytest.raises(InputError, match="in order"):
        pg.load("benign_overfitting/boundary", store=tmp_path / "store", snr=[2.0, 40.0, 5.0])


# -------------------------------------------------------------------- B3: whose study it is


def test_a_study_of_ones_own_does_not_replace_one_of_the_projects(folder):
    at = folder("own_twin", "benign_overfitting", "another")
    with pytest.raises(InputError, match=f"{at}.*project's"):
        pg.studies()


def test_two_study_folders_of_one_basename_are_both_named(folder):
    first, second = folder("a/own_base", "first"), folder("b/own_base", "second")
    with pytest.raises(InputError, match=f"{first} and {second}"):
        pg.studies()


def test_two_study_folders_with_one_name_are_both_named(folder):
    first, second = folder("own_one", "same"), folder("own_two", "same")
    with pytest.raises(InputError, match=f"{second}.*{first}"):
        pg.studies()


def test_a_study_folder_with_the_name_of_a_module_is_refused(folder):
    at = folder("json", "own")
    with pytest.raises(InputError, match=f"{at} has the name of another module"):
        pg.studies()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import sys\nsys.exit(0)\n", "sys.exit(0)"),
        ("def f(:\n", "SyntaxError"),
        ("x = 1\nx.y\n", "line 2"),
    ],
)
def test_a_study_that_cannot_be_imported_names_itself(proving, folder, text, says):
    at = folder("own_broken", "", text=text)
    refused(proving("list"), str(at), says)


def test_a_typo_in_a_study_path_is_told_whatever_the_command(proving):
    refused(proving("--study-path", "nowhere", "show", "toy"), "no study in nowhere")
    refused(proving("--study-path", "nowhere", "new", "own_x"), "no study in nowhere")


def test_names_do_not_act_on_the_terminal(proving, folder, tmp_path):
    folder("own_red", "own_red", title="\x1b[31mred\x9b0m")
    code, out, _ = proving("list")
    assert code == 0
    assert "red" in out
    assert "\x1b" not in out
    assert "\x9b" not in out
    for args in (["diff", "\x1b[2Ja.nc", "b.nc"], ["run", "\x1b[2J"], ["\x1b[2J"],
                 ["run", "toy/risk", "--seeds", "\x1b[2J"]):  # fmt: skip
        code, out, err = proving(*args)
        assert code == 2, err
        assert "\x1b" not in out + err


# --------------------------------------------------------------------- C: files asked for

WAYS = {
    "run": ["run", "toy/risk", *OPTIONS, "--out", "ds.nc"],
    "check": ["check", "toy", *OPTIONS, "--save", "verdicts.json"],
    "figure": ["figure", "toy/risk", *OPTIONS, "--out", "risk.png"],
    "report": ["report", "toy", "--out", "report.html"],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(proving, way, tmp_path):
    *command, name = WAYS[way]
    suffix = Path(name).suffix
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / f"loop{suffix}").symlink_to(f"loop{suffix}")
    os.mkfifo(tmp_path / f"pipe{suffix}")
    before = sorted(tmp_path.iterdir())
    for bad in (
        f"folder{suffix}",
        "",
        f"/proc/self/x{suffix}",
        f"{'x' * 300}{suffix}",
        f"loop{suffix}",
        f"pipe{suffix}",
        f"nowhere/x{suffix}",
    ):
        refused(proving(*command, bad), bad[:20])
    assert sorted(tmp_path.iterdir()) == before, "nothing was run"


def test_a_dataset_is_written_to_a_file_that_diff_reads(proving, tmp_path):
    refused(proving(*WAYS["run"][:-1], "ds.txt"), ".nc")
    assert not (tmp_path / "store").exists()


@contextlib.contextmanager
def a_full_disk(size: int = 1500):
    """No file grows beyond some bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("way", ["run", "check", "figure"])
def test_a_good_earlier_file_survives_a_full_disk(proving, way, checked, tmp_path):
    command = [*WAYS[way], "--store", checked]
    target = tmp_path / WAYS[way][-1]
    target.write_bytes(b"an earlier one")
    with a_full_disk():
        code, _, err = proving(*command)
    assert code == 3, err
    assert "Traceback" not in err
    assert target.name in err
    assert files(tmp_path) == {str(target): b"an earlier one"}


def test_a_link_stays_and_what_it_leads_to_is_replaced(proving, checked, tmp_path):
    target, link = tmp_path / "target.nc", tmp_path / "ds.nc"
    target.write_bytes(b"an earlier one")
    link.symlink_to(target)
    with a_full_disk():
        assert proving(*WAYS["run"], "--store", checked).code == 3
    assert target.read_bytes() == b"an earlier one"
    assert proving(*WAYS["run"], "--store", checked).code == 0
    assert link.is_symlink()
    assert target.read_bytes().startswith(b"CDF")


# --------------------------------------------------------- D: tracebacks and silent acceptance


def test_sizes_that_no_program_can_have_are_refused(tmp_path):
    """In a process of its own, since it may be aborted."""
    code = """
import sys
from provingground import cli
for more in (["--set", "dim=100000000000"], ["--lanes", "2147483648"],
             ["--set", "dim=2147483647", "--set", "samples=2147483647"],
             ["--lanes", "2147483647", "--set", "samples=70", "--set", "steps=40"]):
    sys.argv = ["proving", "run", "toy/risk", "--set", "noise=1", "--seeds", "1", *more,
                "--store", sys.argv[-1]]
    try:
        cli.main()
    except SystemExit as end:
        print("ends with", end.code or 0, flush=True)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    ends = [line[-1] for line in done.stdout.splitlines() if line.startswith("ends with")]
    assert (done.returncode, ends) == (0, ["2", "2", "2", "0"]), done.stderr[-2000:]
    assert "Traceback" not in done.stderr


class Gone(Executor):
    """The executor of a scheduler that is killed once it has been asked what it is."""

    def __init__(self) -> None:
        self._client = self

    def submit(self, fn, /, *args, **kwargs):
        future: Future[Any] = Future()
        future.set_result(here())
        return future

    def nthreads(self):
        from distributed.comm.core import CommClosedError

        raise CommClosedError("ConnectionPool closing.")


def test_a_scheduler_that_is_killed_is_told(tmp_path):
    with pytest.raises(RunError, match=r"gone.*ConnectionPool closing.*stored"):
        pg.run("toy/risk", store=tmp_path / "store", executor=Gone(), progress=False, **SMALL)


@pytest.mark.parametrize(
    "request_",
    [
        ["run", "toy/risk", "--store", "~no_such_user/x"],
        ["run", "toy/risk", "--store", "x" * 300],
        ["run", "x" * 300],
        ["run", "toy/" + "x" * 300],
        ["conditions", "toy", "--set", "noise=1e200"],
        ["new", "own_x", "--folder", "/proc/self"],
        ["new", "own_x", "--folder", "~no_such_user/x"],
        ["new", "x" * 300],
        ["diff", "deep.json", "deep.json"],
        ["diff", "x" * 300 + ".nc", "b.nc"],
        ["run", "toy/risk", "--set", "samples=1_000"],
        ["run", "toy/risk", "--set", "samples=30,,50"],
        ["run", "toy/risk", "--set", "samples= "],
        ["run", "toy/risk", "--set", "samples=0x10"],
        ["run", "toy/risk", "--set", "samples=\uff11\uff10"],
        ["run", "toy/risk", "--set", "noise=1_0"],
        ["run", "toy/risk", "--set", "noise=1e39"],
        ["run", "toy/risk", "--set", "noise=1,1e39"],
        ["run", "toy/risk", "--set", "samples=10", "--set", "samples=20"],
        ["run", "toy/risk", "--seeds", "9" * 400],
        ["run", "toy/risk", "--set", "noise=0:1:" + "9" * 400],
        ["run", "toy/risk", "--set", "samples=" + "9" * 5000],
        ["run", "toy/risk", "--dashboard"],
        ["check", "toy", "--dashboard"],
        ["check", "toy", "vision_transformer/fig2_1a", "--set", "dim=20", "--set", "noise=1"],
    ],
    ids=lambda request_: " ".join(request_)[:50],
)
def test_nonsense_is_refused_before_any_work(proving, monkeypatch, tmp_path, request_):
    def work(*args, **options):
        raise AssertionError("it was accepted")

    monkeypatch.setattr("provingground.engine.Job.forecast", work)
    monkeypatch.setattr("provingground.dispatch.run", work)
    (tmp_path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    before = files(tmp_path)
    refused(proving(*request_))
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    "options",
    [
        dict(noise=float("nan")),
        dict(noise=float("inf")),
        dict(noise={1.0, 2.0}),
        dict(noise=b"3"),
        dict(noise=True),
        dict(noise=1e39),
        dict(noise=[1.0, 1e39]),
        dict(samples=b"3"),
        dict(samples=10**12),
        dict(lanes=1.5),
        dict(lanes=True),
        dict(lanes="2"),
        dict(scale=None),
        dict(scale=2),
        dict(seeds=1.5),
        dict(seeds=True),
        dict(seeds=b"3"),
        dict(seeds="3"),
        dict(seeds={0, 1}),
        dict(seeds=float("nan")),
        dict(seeds=float("inf")),
        dict(seeds=[True, False]),
        dict(seeds=[0.0, 1.0]),
        dict(seeds=2**70),
        dict(store=3),
        dict(store="a\0b"),
    ],
    ids=str,
)
def test_nonsense_from_python_is_an_input_error(monkeypatch, tmp_path, options):
    monkeypatch.setattr("provingground.dispatch.run", lambda *args: pytest.fail("it was accepted"))
    with pytest.raises(InputError):
        pg.run(
            "toy/risk", **{"store": tmp_path / "store", "steps": 40, "progress": False} | options
        )
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("target", [None, 3, TOY.experiments, ["toy/risk"]])
def test_a_target_is_a_name_or_a_study(tmp_path, target):
    for use in (pg.run, pg.load, pg.check, pg.figure):
        with pytest.raises(InputError, match="target"):
            use(target, store=tmp_path / "store")


@pytest.mark.parametrize(
    "options",
    [
        dict(seeds=np.array([0, 1, 2, 3])),
        dict(seeds=np.int64(4)),
        dict(seeds=[np.int32(i) for i in range(4)]),
        dict(steps=np.int64(40), samples=np.array([70, 80])),
        dict(samples=(np.int32(70), 80), lanes=np.int64(8)),
        dict(noise=np.array([0.5, 1.0, 2.0]), samples=jnp.array([70, 80])),
    ],
    ids=str,
)
def test_numbers_of_numpy_are_numbers(checked, options):
    ds = pg.run("toy/risk", store=checked, progress=False, **{**SMALL, **options})
    assert ds.identical(pg.load("toy/risk", store=checked, **SMALL))


@config
class Named:
    """A Config with names that are ours."""

    scale: float = par(1.0, "s", "scale", low=0)
    seeds: int = par(2, "n", "seeds", low=1)
    store: float = par(1.0, "r", "store", low=0)


def named(cfg, key):
    found = TOY.simulators["descent"].simulate(TOY.simulators["descent"].config(steps=20), key)
    return dataclasses.replace(found, test_loss=cfg.scale * cfg.store + 0 * found.test_loss)


def own_study(simulate=named, **options: Any):
    simulator = dataclasses.replace(TOY.simulators["descent"], config=Named, simulate=simulate)
    trainings = Trainings(grid={"scale": [1.0, 2.0]}, seeds=3)
    experiment = dataclasses.replace(TOY.experiments[0], trainings=trainings)
    return dataclasses.replace(
        TOY, simulators={"descent": simulator}, experiments=(experiment,), **options
    )


def test_a_parameter_with_a_name_of_ours_can_be_set(tmp_path):
    options: dict[str, Any] = dict(store=tmp_path / "store", settings={"scale": 3.0, "store": 2.0})
    ds = pg.run(own_study(), "risk", progress=False, **options)
    assert ds.scale.values.tolist() == [3.0]
    assert (ds.test_loss == 6.0).all()
    assert pg.load(own_study(), "risk", **options).identical(ds)
    for use in (pg.run, pg.load, pg.figure):
        with pytest.raises(InputError, match="unknown parameter 'noise'"):
            use(own_study(), "risk", noise=3, **options)
    with pytest.raises(InputError, match="noise is set twice"):
        pg.run("toy/risk", noise=2.0, settings={"noise": 1.0}, store=tmp_path / "store")


class Declared(eqx.Module):
    """Probes whose shapes nothing checks."""

    loss: Float[Array, "step"]
    end: Float[Array, ""]
    step: Int[Array, "step"]


Curve: Any = Declared


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda x, t: Curve(x, x, t), r"'end'.*\(5,\).*\(\)"),
        (lambda x, t: Curve(x[0], x[0], t), r"'loss'.*\(\).*\(step\)"),
        (lambda x, t: Curve(x[1:], x[0], t), r"'step'.*\(5,\).*5.*4 in 'loss'"),
        (lambda x, t: x, r"not its Declared.*'loss'"),
        (lambda x, t: (x, x[0], t), r"returns tuple, not its Declared"),
        (lambda x, t: Curve(x, t[0], t), r"'end' as an array of int32; .* Float of dims \(\)"),
        (lambda x, t: Curve(x, x[0] > 0, t), r"'end' as an array of bool; .* Float of dims \(\)"),
        (lambda x, t: Curve(x, x[0], x), r"'step' as an array of float32; .* Int of dims"),
        (lambda x, t: Curve(x, None, t), r"'end' as a NoneType, not an array; .* Float"),
        (lambda x, t: Curve([*x], x[0], t), r"'loss' as a list, not an array; .* \(step\)"),
        (lambda x, t: Curve("falls", x[0], t), r"'loss' as a str, not an array"),
    ],
)
@pytest.mark.parametrize("host", [False, True], ids=["traced", "on the host"])
def test_a_probe_of_the_wrong_shape_is_named(tmp_path, made, says, host):
    def simulate(cfg, key):
        return made(cfg.noise * jnp.ones(5), jnp.arange(5))

    simulator = Simulator(TOY.simulators["descent"].config, simulate, Curve, host=host)
    study = dataclasses.replace(TOY, simulators={"descent": simulator})
    with pytest.raises(InputError, match=says):
        pg.run(study, "risk", store=tmp_path / "store", progress=False, **SMALL)


class Pair(eqx.Module):
    pair: Float[Array, "2"]


def test_a_size_that_is_declared_is_checked(tmp_path):
    simulator = Simulator(
        TOY.simulators["descent"].config, lambda cfg, key: Pair(cfg.noise * jnp.ones(3)), Pair
    )
    study = dataclasses.replace(TOY, simulators={"descent": simulator})
    with pytest.raises(InputError, match=r"'pair' with the shape \(3,\).* 2 in its declaration"):
        pg.run(study, "risk", store=tmp_path / "store", progress=False, **SMALL)


# ------------------------------------------------------------------------- where it is printed


def test_an_ascii_terminal_gets_its_verdicts(proving, checked, monkeypatch):
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, "ascii", write_through=True))
    assert call("check", "toy", *OPTIONS, "--store", checked) in (0, 1)
    assert b"holds" in printed.getvalue()


def test_a_closed_stderr_does_not_matter(proving, checked, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stderr", None)
    assert call(*WAYS["run"], "--store", checked) == 0
    assert (tmp_path / "ds.nc").exists()


def test_closed_and_full_streams(tmp_path):
    """As a shell closes them: no file that is opened later gets what a library prints."""
    command = f"{sys.executable} -m provingground.cli list"
    script = (
        f"{command} >/dev/full; echo $?; {command} 2>/dev/full | grep -c toy; "
        f"{command} >&- 2>&-; echo $?"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["3", "0", "0"], done.stderr
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
