"""Experiments on other forms of the training: nodes, noise, encodings, whole graphs."""

from math import inf

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, cases

from . import drawing, measures

REDUCTION = Experiment(
    "reduction",
    says="Training on counts, on nodes, with noise, and with fresh samples at every step.",
    trainings=Trainings(
        grid={
            "lr": 0.1,
            "record": 61,
            "confusion_ratio": 0.1,
            "samples": 64,
            "steps": 400,
            "form": cases(
                {
                    "counts": {},
                    "nodes": dict(simulator="nodes"),
                    "noisy nodes": dict(simulator="nodes", noise=0.01),
                    "fresh samples": dict(bank=401),
                }
            ),
        },
        seeds=20,
        paper_only=True,
    ),
    claims=(
        Claim(
            "counts_are_exact",
            "on nodes the test loss is that on counts (largest difference)",
            measure=lambda ds: measures.apart(ds, "nodes"),
            within=(-inf, 1e-2),
            source="derived here",
        ),
        Claim(
            "noise_is_small",
            "the feature noise of the paper changes the steps needed by less than 5%",
            measure=lambda ds: measures.later(ds, "noisy nodes"),
            within=(0.95, 1.05),
            source="section 3.5.1",
        ),
        Claim(
            "banks_are_enough",
            "fresh samples at every step change the steps needed by less than 5%",
            measure=lambda ds: measures.later(ds, "fresh samples"),
            within=(0.95, 1.05),
            source="derived here",
        ),
    ),
    figure=drawing.draw_reduction,
)


ENCODINGS = Experiment(
    "encodings",
    says="Other encodings in place of the distance: eigenvectors, random walks, degree.",
    trainings=Trainings(
        grid={
            "lr": 0.1,
            "record": 31,
            "nodes": 400,
            "degree": 48,
            "key_width": 24,
            "value_width": 24,
            "confusion_ratio": 0.1,
            "noise": 0.01,
            "samples": 100,
            "steps": 600,
            "encoded": cases(
                {
                    "distance": {},
                    "none": dict(encoding=0.0),
                    "laplacian": dict(encoding=0.0, absolute="laplacian"),
                    "walk": dict(encoding=0.0, absolute="walk"),
                    "degree": dict(encoding=0.0, absolute="degree"),
                }
            ),
        },
        seeds=20,
        simulator="nodes",
        paper_only=True,
    ),
    claims=(
        *(
            Claim(
                f"{name}_learns",
                f"with {words} the test error is zero",
                measure=lambda ds, name=name: stats.mean(
                    measures.end(ds.test_error).sel(encoded=name)
                ),
                within=(-inf, 0.01),
                source=source,
            )
            for name, words, source in (
                ("distance", "the distance bias", "Theorem 3.4.4"),
                ("laplacian", "Laplacian eigenvectors", "found here; appendix B.5.2"),
            )
        ),
        *(
            Claim(
                f"{name}_does_not",
                f"with {words} the test error stays above 0.2",
                measure=lambda ds, name=name: stats.mean(
                    measures.end(ds.test_error).sel(encoded=name)
                ),
                within=(0.2, inf),
                source="found here",
            )
            for name, words in (
                ("none", "no encoding"),
                ("walk", "return probabilities of random walks"),
                ("degree", "the degree"),
            )
        ),
    ),
    figure=drawing.draw_encodings,
)


GRAPH_LEVEL = Experiment(
    "graph_level",
    says="Whole graphs classified by the mean output of their nodes.",
    trainings=Trainings(
        grid={
            "lr": 0.5,
            "record": 41,
            "nodes": 60,
            "degree": 8,
            "confusion_ratio": 0.1,
            "steps": 400,
            "test_graphs": 100,
            "samples": [8, 32, 128],
        },
        seeds=20,
        simulator="graphs",
        paper_only=True,
    ),
    claims=(
        Claim(
            "graphs_learned",
            "with 32 labelled graphs the test error is zero",
            measure=lambda ds: stats.mean(measures.end(ds.test_error).sel(samples=32)),
            within=(-inf, 0.01),
            source="found here; appendix B.5",
        ),
        Claim(
            "graphs_find_core",
            "the bias of the core ring becomes the largest (gap)",
            measure=lambda ds: stats.mean(measures.bias_gap(ds)),
            within=(0, inf),
            source="Lemma 3.4.7",
        ),
    ),
    figure=drawing.draw_graph_level,
)
