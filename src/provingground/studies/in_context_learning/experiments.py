"""One Experiment per figure: the grid, what it should show, and how it is drawn.

Those on pruning, training lengths, steps and tasks are in `sweeps.py`.
"""

from math import inf

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, cases

from . import figures, measures
from .mechanism import IN, OUT
from .sweeps import FIG6_5_SMALL, FIG6_5A, FIG6_5B, FIGE_1A, FIGE_1B, FIGE_2, SCALING

# All figures of one trained model share its trainings.
TRAINED = Trainings(
    grid={"test_samples": 4000},
    seeds=8,
    quick={"steps": 800, "test_samples": 1000, "seeds": 5},
    simulator="mechanism",
)

FIG6_3B = Experiment(
    "fig6_3b",
    says="Error on unseen tasks by fraction of decisive patterns and length, in and out of domain.",
    trainings=TRAINED,
    claims=(
        Claim(
            "unseen_error",
            "on unseen tasks the error is below 1% (alpha' = 0.8, 20 examples)",
            measure=measures.usual("test_error", IN),
            within=(-inf, 0.01),
            source="Theorem 6.3.3, Figure 6.3(b)",
        ),
        Claim(
            "unseen_loss",
            "on unseen tasks the hinge loss is small (below 0.05)",
            measure=measures.usual("test_loss", IN),
            within=(-inf, 0.05),
            source="Theorem 6.3.3",
        ),
        Claim(
            "outside_error",
            "out of domain the error is below 1%",
            measure=measures.usual("test_error", OUT),
            within=(-inf, 0.01),
            source="Theorem 6.3.4, Figure 6.3(a)",
        ),
        Claim(
            "outside_loss",
            "out of domain the hinge loss is small too (below 0.05)",
            measure=measures.usual("test_loss", OUT),
            within=(-inf, 0.05),
            source="Theorem 6.3.4",
            expected="fails",
            note="Attention off the query's pattern shrinks the margin: the irrelevant part is ten "
            "times larger than in training. The sign is right all the same.",
        ),
        Claim(
            "smaller_needs_longer",
            "with 5 or 10 examples the error falls with alpha' (least step, both domains)",
            measure=measures.ordered_by_alpha((5, 10)),
            within=(0, inf),
            source="(6.9), Figure 6.3(b)",
        ),
        *(
            Claim(
                f"length_exponent_{name}",
                f"the length for an error of 2% is proportional to 1 / alpha', {words} (exponent)",
                measure=measures.length_exponent(domain),
                within=(-1.3, -0.7),
                source="(6.9), Figure 6.3(b)",
                scale="paper" if domain == OUT else None,
            )
            for domain, name, words in ((IN, "in", "in domain"), (OUT, "out", "out of domain"))
        ),
        Claim(
            "floor_low",
            "from 10 examples on the error is nowhere below the coverage floor (least difference)",
            measure=measures.least_above_floor,
            within=(-0.005, inf),
            source="theory.coverage_floor",
        ),
        Claim(
            "floor_high",
            "and at most 0.08 above it",
            measure=measures.most_above_floor,
            within=(-inf, 0.08),
            source="theory.coverage_floor",
        ),
    ),
    figure=figures.draw_lengths,
)

FIG6_3A = Experiment(
    "fig6_3a",
    says="Error out of domain against the coefficient sum of a pattern, one-layer transformer.",
    trainings=TRAINED,
    claims=(
        Claim(
            "sum_above_one",
            "the error is below 1% wherever the coefficients sum to 1 or more",
            measure=measures.largest_error(1.0, 2.0),
            within=(-inf, 0.01),
            source="Theorem 6.3.4, Figure 6.3(a)",
        ),
        Claim(
            "sum_falls",
            "the error falls with the coefficient sum (rank correlation)",
            measure=lambda ds: stats.rank_correlation(measures.by_sum(ds), "coef_sum"),
            within=(-inf, -0.8),
            source="Figure 6.3(a)",
        ),
        Claim(
            "sum_below",
            "for sums up to 0.25 the error is over 2%",
            measure=measures.error_below(0.25),
            within=(0.02, inf),
            source="Figure 6.3(a)",
        ),
        Claim(
            "no_break_at_one",
            "there is no break at 1: from 0.9 on the error is below 1% too",
            measure=measures.largest_error(0.9, 0.9),
            within=(-inf, 0.01),
            source="found here",
        ),
    ),
    figure=figures.draw_sums,
)

FIG6_2A = Experiment(
    "fig6_2a",
    says="Norms of queries and keys during training, and their projections on patterns.",
    trainings=TRAINED,
    claims=(
        Claim(
            "query_grows",
            "the norm of the query grows more than threefold (in domain)",
            measure=measures.growth("query_norm"),
            within=(3, inf),
            source="Proposition 6.4.1 (6.17), Figure 6.2(a)",
        ),
        Claim(
            "key_grows",
            "the norm of the keys grows more than threefold (in domain)",
            measure=measures.growth("key_norm"),
            within=(3, inf),
            source="Proposition 6.4.1 (6.17), Figure 6.2(a)",
        ),
        Claim(
            "own_in",
            "in domain the projection on the own pattern is over 0.8 of the norm",
            measure=measures.own_share(IN),
            within=(0.8, inf),
            source="Figure 6.2(a)",
        ),
        Claim(
            "own_out",
            "out of domain the projection on the own pattern is over 0.8 of the norm",
            measure=measures.own_share(OUT),
            within=(0.8, inf),
            source="Figure 6.2(a)",
            expected="fails",
            note="On irrelevant patterns W_Q and W_K stay what they were, delta times the "
            "identity, and out of domain these are up to K' = 5 times a pattern.",
        ),
        Claim(
            "irrelevant_small",
            "along irrelevant patterns the query is below (1/M_1 + 1/M_2) of its own pattern",
            measure=measures.over_own("query_irrelevant"),
            within=(-inf, 1 / 6 + 1 / 24),
            source="Proposition 6.4.1 (6.19)",
        ),
        Claim(
            "relevant_small",
            "along other relevant patterns the query is below (1/M_1 + 1/M_2) of its own pattern",
            measure=measures.over_own("query_partner"),
            within=(-inf, 1 / 6 + 1 / 24),
            source="Proposition 6.4.1 (6.18)",
            expected="fails",
            note="Patterns that share a training task repel each other: the partner's part is "
            "negative and about half of the own one, and does not decay.",
        ),
    ),
    figure=figures.draw_projections,
)

FIG6_2B = Experiment(
    "fig6_2b",
    says="Attention on context examples that share the query's relevant pattern.",
    trainings=TRAINED,
    claims=(
        Claim(
            "attention_in",
            "in domain the attention on the query's pattern passes 0.97",
            measure=measures.final_attention(IN),
            within=(0.97, inf),
            source="Corollary 6.4.3, Figure 6.2(b)",
        ),
        Claim(
            "attention_out",
            "out of domain the attention on the query's pattern passes 0.8",
            measure=measures.final_attention(OUT),
            within=(0.8, inf),
            source="Corollary 6.4.3, Figure 6.2(b)",
        ),
        Claim(
            "attention_out_full",
            "out of domain it comes as close to 1 as in domain (over 0.95)",
            measure=measures.final_attention(OUT),
            within=(0.95, inf),
            source="Corollary 6.4.3, Figure 6.2(b)",
            expected="fails",
            note="Contexts that share a large irrelevant part with the query draw attention.",
        ),
        Claim(
            "attention_start",
            "it starts at about alpha' / 2, uniform attention (difference)",
            measure=lambda ds: stats.mean(measures.first(ds.attention) - 0.4),
            within=(0, 0.05),
            source="(E.55)",
        ),
    ),
    figure=figures.draw_attention,
)

FIG6_2C = Experiment(
    "fig6_2c",
    says="The feature parts of neurons: their norm, and their angle to the mean pattern.",
    trainings=TRAINED,
    claims=(
        Claim(
            "large_share",
            "over half of the neurons are large (norm of r_i at least 1)",
            measure=measures.large_share,
            within=(0.5, inf),
            source="Theorem 6.3.7 (6.14)",
        ),
        Claim(
            "feature_aligned",
            "the feature part of every large neuron lies along the mean pattern (least cosine)",
            measure=measures.on_large(lambda ds: measures.last(ds.cos_mu_bar)),
            within=(0.98, inf),
            source="Proposition 6.4.5 (6.21), Figure 6.2(c)",
        ),
        Claim(
            "small_norm",
            "other neurons have a norm below 1 / sqrt(M_2)",
            measure=measures.largest_small,
            within=(-inf, 24**-0.5),
            source="Theorem 6.3.7 (6.14), constant 1",
            expected="fails",
            note="The largest of them has a norm of about 0.8, their mean is about 0.3. Few "
            "neurons lie between 0.8 and 1.2 all the same.",
        ),
    ),
    figure=figures.draw_neurons("feature"),
)

FIG6_2D = Experiment(
    "fig6_2d",
    says="The label parts of neurons: their norm, and their angle to q.",
    trainings=TRAINED,
    claims=(
        Claim(
            "label_sign",
            "the label part of every large neuron has the sign of its read-out (share)",
            measure=measures.same_sign,
            within=(0.999, inf),
            source="Proposition 6.4.5 (6.22), Figure 6.2(d)",
        ),
        Claim(
            "label_aligned",
            "and the direction of q or -q (least cosine)",
            measure=measures.on_large(measures.signed_cos_q),
            within=(0.99, inf),
            source="Proposition 6.4.5 (6.22), Figure 6.2(d)",
        ),
        Claim(
            "lucky_share",
            "an eighth of the neurons is lucky for a prompt",
            measure=lambda ds: stats.mean(ds.lucky),
            within=(0.11, 0.14),
            source="Definition E.4.8, Lemma E.4.9",
        ),
        Claim(
            "lucky_grow",
            "lucky neurons end larger than those that are never lucky (ratio of norms)",
            measure=lambda ds: stats.paired_ratio(ds.lucky_size, ds.never_size),
            within=(1, inf),
            source="(E.27), (E.29)",
        ),
        Claim(
            "lucky_stay",
            "lucky neurons stay active for their prompts (share)",
            measure=lambda ds: stats.mean(ds.lucky_active),
            within=(0.99, inf),
            source="Lemma E.4.10",
            expected="fails",
            note="A fifth of them end silent, with a feature part opposite to the mean pattern.",
        ),
    ),
    figure=figures.draw_neurons("label"),
)

READINGS = Experiment(
    "readings",
    says="Read-outs of size 1/m (main text) or 1/sqrt(m) (appendix), and the initial scale.",
    trainings=Trainings(
        grid={
            "test_samples": 4000,
            "reading": cases(
                {
                    "$1/m$": {},
                    r"$1/\sqrt{m}$": {"readout_power": 0.5, "lr": 0.2},
                    r"$1/m$, $\delta = 0.2$": {"delta": 0.2},
                }
            ),
        },
        seeds=8,
        simulator="mechanism",
        paper_only=True,
    ),
    claims=(
        Claim(
            "lazy_attention",
            "with 1/sqrt(m) attention in domain ends lower (difference)",
            measure=lambda ds: measures.less_attention(ds, IN),
            within=(0.02, inf),
            source="found here: the MLP fits before attention has moved",
        ),
        Claim(
            "lazy_error",
            "and the error out of domain is higher (difference)",
            measure=measures.lazy_error,
            within=(0, inf),
            source="found here",
        ),
    ),
    figure=figures.draw_readings,
)

FIG6_4 = Experiment(
    "fig6_4",
    says="Error in context against classifiers fitted on the same contexts, out of domain.",
    trainings=Trainings(
        grid={"width": 400, "steps": 2000, "test_samples": 150},
        seeds=5,
        quick={"width": 100, "steps": 500, "test_samples": 20},
        simulator="learners",
    ),
    claims=(
        Claim(
            "icl_best",
            "at alpha' = 0.6, from 20 examples on, every fitted classifier errs more (least lead)",
            measure=measures.least_lead(0.6),
            within=(0, inf),
            source="Figure 6.4(b)",
        ),
        Claim(
            "icl_close",
            "at alpha' = 0.8 the best fitted classifier is close (behind by less than 0.08)",
            measure=measures.least_lead(0.8),
            within=(-inf, 0.08),
            source="Figure 6.4(a)",
            scale="paper",
        ),
    ),
    figure=figures.draw_learners,
)

DECODER = Trainings(
    grid={"test_samples": 1000},
    seeds=8,
    simulator="decoder",
    paper_only=True,
)

FIG6_3A_DECODER = Experiment(
    "fig6_3a_decoder",
    says="Error out of domain against the coefficient sum, three-layer decoder.",
    trainings=DECODER,
    claims=(
        Claim(
            "decoder_sum_above_one",
            "with K' = 5 the error is below 1% wherever the coefficients sum to 1 or more",
            measure=measures.decoder_error(5.0, 1.0, 2.0),
            within=(-inf, 0.01),
            source="Figure 6.3(a)",
            expected="fails",
            note="Layer norm makes the size of the irrelevant part matter: K' = 5 swamps the rest.",
        ),
        Claim(
            "decoder_sum_above_one_small",
            "with K' = 0.5, as in training, it is",
            measure=measures.decoder_error(0.5, 1.0, 2.0),
            within=(-inf, 0.01),
            source="Figure 6.3(a), another K'",
        ),
        Claim(
            "decoder_sum_below",
            "with K' = 0.5 the error is over 2% where the coefficients sum to 0.25 or less",
            measure=measures.decoder_error(0.5, -1.0, 0.25),
            within=(0.02, inf),
            source="Figure 6.3(a)",
            expected="fails",
            note="The trained decoder needs no condition on the sum.",
        ),
        Claim(
            "decoder_kappa",
            "the error grows with K' from 1 on, at every sum from 1 on (least step)",
            measure=measures.decoder_by_kappa,
            within=(0, inf),
            source="found here",
        ),
    ),
    figure=figures.draw_sums,
)

FIG6_3B_DECODER = Experiment(
    "fig6_3b_decoder",
    says="Error on unseen tasks by fraction of decisive patterns and length, three-layer decoder.",
    trainings=DECODER,
    claims=(
        Claim(
            "decoder_unseen_error",
            "on unseen tasks the error is below 1% (alpha' = 0.8, 20 examples)",
            measure=measures.usual("test_error", IN),
            within=(-inf, 0.01),
            source="Figure 6.3(b)",
        ),
        Claim(
            "decoder_smaller_needs_longer",
            "with 5 or 10 examples the error in domain falls with alpha' (least step)",
            measure=measures.ordered_by_alpha((5, 10), (IN,)),
            within=(0, inf),
            source="Figure 6.3(b)",
        ),
    ),
    figure=figures.draw_decoder_lengths,
)

EXPERIMENTS = (
    FIG6_3B,
    FIG6_3A,
    FIG6_2A,
    FIG6_2B,
    FIG6_2C,
    FIG6_2D,
    FIG6_4,
    FIG6_5A,
    FIG6_5B,
    FIG6_5_SMALL,
    FIGE_1A,
    FIGE_1B,
    FIGE_2,
    SCALING,
    READINGS,
    FIG6_3A_DECODER,
    FIG6_3B_DECODER,
)
