"""A one-layer position-only transformer learns bilinear teachers."""

import numpy as np

from provingground.study import Study, simulator

from . import degrees, digits, full, model, recursion, theory
from .convolution import mnist
from .data import Teacher, given_teacher, mixed_support
from .figures import EXPERIMENTS

BIBTEX = """
@misc{teacher_student,
  author = {Anonymous},
  title = {Transformers as students of teacher models},
  note = {Submitted to ICLR 2026},
}
"""


def mixed() -> Teacher:
    """12 tokens; groups of 1 and of 5 tokens in turn."""
    values = 2 * np.random.default_rng(0).standard_normal((5, 5))
    return given_teacher(mixed_support(12, 1, 5), values, unequal=True)


STUDY = Study(
    name="teacher_student",
    title="A position-only transformer learns bilinear teachers",
    cite="Anonymous, Transformers as students of teacher models, submitted to ICLR 2026",
    statement="A one-layer transformer whose attention sees positions alone learns any teacher "
    r"$\sigma(V^*XS^*)$ by gradient descent from zero: convolutions with pooling, graph "
    r"convolutions, sparse selection of tokens. Its excess loss after $T$ steps is $\Theta(1/T)$ "
    r"(Theorem 3.1), and on other data with bounded second moments $O(1/\sqrt T)$ (Theorem 3.2).",
    simulators={
        "sgd": simulator(model, says="online SGD, the paper's training"),
        "recursion": simulator(
            recursion, precision="float64", says="population, exactly", cpu=True
        ),
        "full": simulator(full, says="attention over [X; P]"),
        "degrees": simulator(
            degrees, precision="float64", says="population, two group sizes", cpu=True
        ),
        "digits": simulator(digits, says="real images, a layer of a network that reads them"),
    },
    theory=theory.theory,
    experiments=EXPERIMENTS,
    data={"mixed": mixed, "mnist": mnist},
    bibtex=BIBTEX,
)
