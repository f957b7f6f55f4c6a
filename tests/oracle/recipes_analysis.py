"""Analyses: contingency tables, overlap of rankings, explained differences, curves."""

from __future__ import annotations

from oracle.calls import Call, recipe
from oracle.drawing import CONVENTIONS, Draw


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
