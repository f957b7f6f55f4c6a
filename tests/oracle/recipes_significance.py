"""Significance and analysis: tests, corrections, plans; tables, overlaps, explanations, curves."""

from __future__ import annotations

from oracle.calls import Call, recipe
from oracle.drawing import CONVENTIONS, Draw
from oracle.recipes_comparison import CLAIMS, CORRECTIONS, TESTS


@recipe("significance", 1100)
def paired(draw: Draw, call: Call) -> None:
    """Test differences by each test, also of few queries, equal values and zeros."""
    n = draw.choice((1, 2, 3, 6, 10, 25, 60))
    d = draw.numpy.normal(draw.choice((0, 0.05, 0.3)), draw.choice((0.01, 0.2, 1)), n)
    form = draw.integer(0, 6)
    d = d.round(1) if form == 0 else d * 0 if form == 1 else d.reshape(-1, 1) if form == 2 else d
    options = draw.options(0.35, alpha=(0.01, 0.1), unseen=(0, 1, 2), greatest_loss=(1.0, 0.5))
    if draw.happens(0.4):
        options |= {"claim": draw.choice(CLAIMS), "margin": draw.choice((0.01, 0.02, 0.2))}
        options["margin"] *= options["claim"] != "difference"
    elif draw.happens(0.5):
        options["alternative"] = draw.choice(("two-sided", "greater", "less"))
    resamples, seed = draw.choice((9, 99, 199)), draw.choice((0, 1, 2))
    call(
        "rankeval.significance.paired_test",
        draw.choice(TESTS),
        d,
        n_resamples=resamples,
        rng=seed,
        **options,
    )


@recipe("significance", 700)
def adjusted(draw: Draw, call: Call) -> None:
    """Adjust p-values by each correction."""
    p = draw.numpy.random(draw.integer(1, 8)) ** 3
    if draw.happens(0.3):
        p = p.round(1)
    call(
        "rankeval.significance.adjust",
        p,
        draw.choice((*CORRECTIONS, "holm", "bh", "by", "bonferroni", "odd")),
    )


@recipe("significance", 500)
def planned(draw: Draw, call: Call) -> None:
    """Plan the number of topics for a difference."""
    options = draw.options(
        0.4,
        alpha=(0.01, 0.1),
        power=(0.5, 0.9),
        alternative=("two-sided", "greater"),
        unseen=(0, 1, 5),
    )
    if draw.happens(0.4):
        options |= {"claim": draw.choice(CLAIMS), "margin": draw.choice((0.01, 0.1))}
        options["margin"] *= options["claim"] != "difference"
        options.pop("alternative", None)
    call("rankeval.topics_needed", draw.number(0.005, 0.3), draw.number(0.05, 0.5), **options)


@recipe("significance", 50)
def settings(draw: Draw, call: Call) -> None:
    """Make settings of a test by hand, and the result of one."""
    options = draw.options(
        0.4, alternative=("two-sided", "greater"), alpha=(0.1, 2.0), n_resamples=(99,), unseen=(1,)
    )
    if draw.happens():
        options |= {"claim": draw.choice(CLAIMS[1:]), "margin": draw.choice((0.1, 0.0))}
    made = call("rankeval.significance.declarations.Settings", rng=draw.integer(0, 9), **options)
    call.of(made, "Settings.evidence", draw.numpy.normal(size=4).round(2))
    call.of(made, "Settings.of_side", draw.choice(("greater", "less", "two-sided")))
    call.of(made, "Settings.p_of_tails", draw.numpy.random(2), draw.numpy.random(2))
    ends = draw.numpy.normal(size=2)
    result = call(
        "rankeval.significance.PairedResult", draw.number(), draw.number(-1, 0), draw.number(0, 1)
    )
    call.of(
        result, "PairedResult.with_ends", draw.numpy.random(2), lambda _: (ends - 1, ends + 1), made
    )


@recipe("significance", 60)
def lists(draw: Draw, call: Call) -> None:
    """List tests, corrections and claims, and what they declare."""
    call(
        "rankeval.list_tests",
        draw.choice((None, "t", "bootstrap", "holm", "nothing like it", "equivalent")),
    )
    test = call.names.find("rankeval.significance.TESTS")[draw.choice(TESTS)]
    call.keep("test", [test.words, test.liberal])
    made = call.make("rankeval.significance.declarations.Settings", n_resamples=99)
    correction = call.names.find("rankeval.significance.CORRECTIONS")[draw.choice(CORRECTIONS)]
    n = draw.integer(1, 40)
    call.of(test, "SignificanceTest.floor", n, made)
    call.of(test, "SignificanceTest.is_random", n)
    call.of(correction, "Correction.floor", n, made)
    call.of(correction, "Correction.is_random", n)
    claim = call.names.find("rankeval.significance.CLAIMS")[draw.choice(CLAIMS)]
    low = draw.numpy.normal(size=3)
    call.of(claim, "Claim.is_within", low, low + draw.number(0, 2), draw.choice((0.0, 0.1, 0.5)))


@recipe("analysis", 350)
def contingency(draw: Draw, call: Call) -> None:
    """Count relevant and retrieved documents, and average over queries."""
    options = draw.options(
        0.4, rel=(1, 2), cutoff=(1, 5, 100), collection_size=(40, 1000), convention=CONVENTIONS
    )
    if draw.happens():
        rows = draw.rows()
        found = call(
            "rankeval.contingency_table", rows["y"], rows["score"], qid=rows["qid"], **options
        )
    else:
        judgments = draw.judgments()
        found = call("rankeval.contingency_table", judgments, draw.ranking(judgments), **options)
    call.of(found, "ContingencyTable.macro", **draw.options(0.5, beta=(0.5, 2)))
    call.of(found, "ContingencyTable.micro", **draw.options(0.5, beta=(0.5, 2)))
    call("rankeval.ContingencyTable", found.per_query)


@recipe("analysis", 120)
def fusion(draw: Draw, call: Call) -> None:
    """Fuse two rankings."""
    judgments = draw.judgments()
    runs = {"a": draw.ranking(judgments), "b": draw.ranking(judgments)}
    options = draw.options(
        0.3, norm=("sum", "borda", "none"), k=(1,), weights=({"a": 0.4, "b": 0.6},), name=("both",)
    )
    method = draw.choice(("rrf", "isr", "combsum", "combmed", "bordafuse", "weighted"))
    call("rankeval.fuse", runs, method, **options)


@recipe("analysis", 400)
def overlap(draw: Draw, call: Call) -> None:
    """Measure how much two rankings overlap."""
    judgments = draw.judgments()
    first, second = draw.ranking(judgments), draw.ranking(judgments)
    call("rankeval.rank_biased_overlap", first, second, **draw.options(0.6, p=(0.5, 0.98, 0.99)))


@recipe("analysis", 120)
def explained(draw: Draw, call: Call) -> None:
    """Explain why two tools give two values."""
    judgments = draw.judgments(draw.integer(2, 4), 6)
    values = draw.number(0.1, 0.9), draw.number(0.1, 0.9)
    options = draw.options(0.3, tolerance=(0.01, 0.2), convention=CONVENTIONS)
    measure = draw.choice(("nDCG@10", "AP", "RR", "P@5"))
    found = call(
        "rankeval.explain_difference",
        judgments,
        draw.ranking(judgments),
        measure=measure,
        values=values,
        **options,
    )
    call(
        "rankeval.Explanation",
        found.measure,
        found.values,
        found.table,
        found.differences,
        found.sentence,
    )


@recipe("analysis", 300)
def precision_and_recall(draw: Draw, call: Call) -> None:
    """Draw precision by recall."""
    rows = draw.rows()
    options = draw.options(0.4, rel=(1, 2), convention=CONVENTIONS)
    found = call(
        "rankeval.analysis.curves.precision_recall",
        rows["y"],
        rows["score"],
        qid=rows["qid"],
        **options,
    )
    made = call(
        "rankeval.analysis.curves.PrecisionRecall",
        found.points,
        found.eleven_points,
        found.area,
        found.undefined,
    )
    call.keep("averages", [made.average, made.eleven_point_average])


@recipe("analysis", 250)
def roc(draw: Draw, call: Call) -> None:
    """Draw the rate of hits by the rate of false alarms."""
    judgments = draw.judgments()
    options = draw.options(0.4, rel=(1, 2), convention=CONVENTIONS)
    if draw.happens(0.85):
        options["collection_size"] = draw.choice((50, 60, 100, 3))
    found = call("rankeval.analysis.curves.roc", judgments, draw.ranking(judgments), **options)
    call("rankeval.analysis.curves.ROC", found.points, found.auc, found.undefined)
