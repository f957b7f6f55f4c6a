"""Judging: pools, sheets, agreement, consensus, machine judges, reusable judgments."""

from __future__ import annotations

from typing import Any

import pandas as pd
from oracle.calls import Call, recipe
from oracle.drawing import Draw

JUDGES = ("ann", "bo", "cy", "dee")


def labels_of(draw: Draw, n_judges: int, n_queries: int = 3, n_docs: int = 6) -> dict[str, Any]:
    """Return the labels of several judges, who agree more or less."""
    truth = draw.judgments(n_queries, n_docs)
    wrong = draw.number(0, 0.5)
    return {
        judge: {
            query: {
                doc: draw.integer(0, 2) if draw.happens(wrong) else grade
                for doc, grade in grades.items()
                if draw.happens(0.9)
            }
            for query, grades in truth.items()
        }
        for judge in JUDGES[:n_judges]
    }


def as_frame(labels: dict[str, Any]) -> pd.DataFrame:
    """Return labels as a row for each judge and document."""
    rows = [
        {"qid": query, "docid": doc, "relevance": grade, "aspect": judge}
        for judge, judged in labels.items()
        for query, grades in judged.items()
        for doc, grade in grades.items()
    ]
    return pd.DataFrame(rows, columns=["qid", "docid", "relevance", "aspect"])


@recipe("judging", 143)
def agreement(draw: Draw, call: Call) -> None:
    """Measure how far judges agree."""
    labels: Any = labels_of(draw, draw.integer(2, 4))
    options = draw.options(
        0.5, level=("nominal", "ordinal", "interval", "odd"), confidence_level=(0.9, 0.5)
    )
    if draw.happens(0.3):
        first, second = list(labels.values())[:2]
        found = call("rankeval.judging.agreement", first, second, **options)
    else:
        found = call(
            "rankeval.judging.agreement", as_frame(labels) if draw.happens() else labels, **options
        )
    call.plain(found, "Agreement.to_latex", "Agreement.to_markdown")
    parts = (found.table, found.per_query, found.confusion, found.disputed)
    call("rankeval.judging.Agreement", *parts, level="nominal", confidence_level=0.9)


@recipe("judging", 78)
def consensus(draw: Draw, call: Call) -> None:
    """Make one grade of several labels."""
    labels = labels_of(draw, draw.integer(2, 4))
    found = call(
        "rankeval.judging.consensus",
        labels,
        **draw.options(0.6, method=("majority", "dawid_skene", "dawid_skene", "mean")),
    )
    call.plain(found, "Consensus.to_latex", "Consensus.to_markdown")
    call("rankeval.judging.Consensus", found.qrels, found.table, found.judges, found.method)


@recipe("judging", 39)
def disagreement(draw: Draw, call: Call) -> None:
    """Say what the disagreement of judges does to the order of systems."""
    labels = labels_of(draw, draw.integer(2, 3), 5)
    runs = draw.rankings(labels["ann"])
    options = draw.options(
        0.5,
        measure=("AP", "P@5"),
        truth=("bo", "union", "intersection", "zed"),
        test=("sign",),
        rng=(1,),
    )
    found = call(
        "rankeval.judging.disagreement", labels, runs, n_draws=draw.choice((5, 20)), **options
    )
    call.plain(found, "Disagreement.to_latex", "Disagreement.to_markdown")
    parts = {"notes": found.notes, "caption": found.caption, "draws": found.draws}
    call("rankeval.judging.Disagreement", found.table, found.pairs, found.order, **parts)


@recipe("judging", 143)
def pool(draw: Draw, call: Call) -> None:
    """Pool runs; order, sample and cost the pool; add a run; make judgments of it."""
    judgments = draw.judgments(draw.integer(1, 4), 8)
    runs = draw.rankings(judgments)
    options = draw.options(0.7, depth=(1, 3, 10), queries=(["q1"], ["q1", "q9"]))
    found = call("rankeval.judging.pool", runs, **options)
    call.of(found, "Pool.cost", **draw.options(0.5, minutes=(0.5, 2.0), by_query=(True,)))
    call.of(
        found, "Pool.adds", draw.ranking(judgments), **draw.options(0.4, name=("extra", "bm25"))
    )
    call.of(
        found,
        "Pool.order",
        draw.choice(("depth", "move_to_front", "random", "odd")),
        judged=judgments,
        rng=1,
    )
    call.of(found, "Pool.sample", draw.choice((0.2, 0.5, 0.8, 1.0)), draw.choice((0, 3)))
    call.of(found, "Pool.qrels", judgments)
    call.plain(found, "Pool.to_latex", "Pool.to_markdown")
    call(
        "rankeval.judging.Pool", found.table, found.places, found.runs, found.depth, found.left_out
    )


@recipe("judging", 58)
def sheets(draw: Draw, call: Call) -> None:
    """Write sheets for judges, fill them in, and read them."""
    judgments = draw.judgments(draw.integer(1, 3), 6)
    pooled = call.make("rankeval.judging.pool", draw.rankings(judgments, 2), depth=4)
    options = draw.options(
        0.5,
        overlap=(0.0, 0.5, 1.0),
        scale=((0, 1, 2), (0, 1), (1, 1)),
        rng=(3,),
        format=("csv", "jsonl"),
    )
    options |= draw.options(
        0.4,
        texts=(
            {f"{letter}{at}": draw.sentence() for letter in "dn" for at in range(20)},
            draw.documents(8),
        ),
        queries=(draw.queries(3),),
    )
    judges = list(JUDGES[: draw.integer(1, 3)])
    call("rankeval.judging.write_sheets", pooled, "sheets", judges=judges, **options)
    fill(draw)
    call("rankeval.judging.read_sheets", "sheets")


def fill(draw: Draw) -> None:
    """Write labels into the sheets of CSV, most of them good."""
    from pathlib import Path

    for path in sorted(Path("sheets").glob("*.csv")):
        sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
        label = next(
            (name for name in ("label", "relevance", "grade") if name in sheet), sheet.columns[-1]
        )
        sheet[label] = [
            draw.choice(("0", "1", "1", "0", "")) if draw.happens(0.99) else "x"
            for _ in range(len(sheet))
        ]
        sheet.to_csv(path, index=False)


@recipe("judging", 52)
def calibrate(draw: Draw, call: Call) -> None:
    """Calibrate a machine's scores by people's, and plan the people's work."""
    machine = draw.effects(draw.integer(1, 3), draw.integer(20, 60), ("P@5", "AP"))
    n = draw.integer(6, 18)
    human = {
        name: (frame.iloc[:n] + draw.number(-0.1, 0.1)).clip(0, 1).round(2)
        for name, frame in machine.items()
    }
    options = draw.options(
        0.4,
        baseline=("base", "base", "base", "none"),
        measures=("AP", "P@5", ["AP", "P@5"], "RR"),
        correction=("none", "bh", "by", "bonferroni", "max_t"),
        alpha=(0.1,),
    )
    found = call("rankeval.judging.calibrate", human, machine, **options)
    call.plain(found, "Calibration.to_latex", "Calibration.to_markdown")
    plan = call(
        "rankeval.judging.plan",
        found,
        width=draw.choice((0.05, 0.1, 0.2, 0.4, -1)),
        **draw.options(0.4, n_machine=(500,), level=(0.9,)),
    )
    call.plain(plan, "Plan.to_latex", "Plan.to_markdown")
    call("rankeval.judging.Calibration", found.table, found.means, found.correction, found.alpha)
    call("rankeval.judging.Plan", plan.table, plan.width, 0.95)


@recipe("judging", 39)
def reusability(draw: Draw, call: Call) -> None:
    """Say how judgments treat a system that did not build the pool."""
    judgments = draw.judgments(draw.integer(3, 5), 8)
    runs = draw.rankings(judgments, draw.integer(2, 4))
    options = draw.options(
        0.4,
        groups=({"bm25": "a", "ltr": "a", "bert": "b", "fused": "b"},),
        measure=("AP", "P@5"),
        test=("sign",),
    )
    found = call(
        "rankeval.judging.reusability", judgments, runs, depth=draw.choice((2, 5)), **options
    )
    call.plain(found, "Reusability.to_latex", "Reusability.to_markdown")
    call(
        "rankeval.judging.Reusability", found.table, found.pairs, found.order, notes=(), caption="c"
    )


@recipe("judging", 13)
def plots(draw: Draw, call: Call) -> None:
    """Plot results of judging."""
    labels = labels_of(draw, 3, 5)
    runs = draw.rankings(labels["ann"])
    found = call.make("rankeval.judging.agreement", labels)
    call.of(
        found,
        "Agreement.plot",
        **draw.options(0.4, coefficient=("krippendorff_alpha", "cohen_kappa", "odd")),
    )
    call.plain(
        call.make("rankeval.judging.disagreement", labels, runs, n_draws=5), "Disagreement.plot"
    )
    call.plain(
        call.make("rankeval.judging.reusability", labels["ann"], runs, depth=3), "Reusability.plot"
    )
    machine = draw.effects(2, 30, ("AP",))
    human = {name: frame.iloc[:12] for name, frame in machine.items()}
    call.plain(call.make("rankeval.judging.calibrate", human, machine), "Calibration.plot")


@recipe("judging", 52)
def drawn(draw: Draw, call: Call) -> None:
    """Draw queries to judge."""
    queries = draw.ids(draw.integer(1, 20))
    call("rankeval.judging.draw", queries, draw.integer(0, 12), **draw.options(0.5, rng=(1, 2)))
