"""A one-layer position-only transformer learns bilinear teachers."""

from provingground.study import Simulator, Study

from . import experiments, theory
from .full import FullProbes, simulate_full
from .model import Config, PopulationConfig, Probes, simulate_recursion, simulate_sgd

BIBTEX = """
@misc{teacher_student,
  author = {Anonymous},
  title = {Transformers as students of teacher models},
  note = {Submitted to ICLR 2026},
}
"""

STUDY = Study(
    name="teacher_student",
    title="A position-only transformer learns bilinear teachers",
    cite="Anonymous, Transformers as students of teacher models, submitted to ICLR 2026",
    simulators={
        "sgd": Simulator(Config, simulate_sgd, Probes, says="online SGD, the paper's training"),
        "recursion": Simulator(
            PopulationConfig, simulate_recursion, Probes, "float64", says="population, exactly"
        ),
        "full": Simulator(Config, simulate_full, FullProbes, says="attention over [X; P]"),
    },
    theory=theory.theory,
    experiments=experiments.EXPERIMENTS,
    bibtex=BIBTEX,
)
