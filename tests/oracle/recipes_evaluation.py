"""Evaluations: of arrays, frames, judgments and runs; what a result answers; conventions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from fuzz.columns import IDS, NUMBERS
from oracle.calls import Call, recipe
from oracle.drawing import CONVENTIONS, MISSING, NO_RELEVANT, TIES, Draw
from oracle.recipes_measures import ASPECTS, measure_name, some_measures

RULES = {"convention": CONVENTIONS, "ties": TIES, "missing": MISSING, "no_relevant": NO_RELEVANT}


def rules(draw: Draw, share: float = 0.25) -> dict[str, Any]:
    """Return a convention and single rules, or none."""
    judgments = ("given", "rows", "qrels", None, None)
    return draw.options(share, **RULES, judgments=judgments)


def small_evaluation(draw: Draw, call: Call, name: str | None = None, **options: Any) -> Any:
    """Return an evaluation of a few queries, as a later step needs it."""
    n_queries = options.pop("n_queries", None) or draw.integer(3, 8)
    sizes = np.full(n_queries, 6)
    y = draw.numpy.integers(0, 3, sizes.sum())
    score = np.round(draw.numpy.normal(size=len(y)) + y * draw.number(0, 1), draw.choice((1, 6)))
    qid = np.repeat([f"q{place}" for place in range(n_queries)], sizes)
    measures = options.pop("measures", ["nDCG@10", "AP", "RR"])
    return call.make(
        "rankeval.evaluate", y, score, qid=qid, measures=measures, name=name, **options
    )


@recipe("evaluation", 2600)
def arrays(draw: Draw, call: Call) -> None:
    """Evaluate columns of rows."""
    rows = draw.rows()
    options = rules(draw) | draw.options(0.2, name=("ltr", "a b"))
    if draw.happens(0.2):
        options["docid"] = rows["docid"]
    if draw.happens(0.15):
        options["query_weight"] = {
            query: draw.number(0.1, 2, 1) for query in dict.fromkeys(rows["qid"].tolist())
        }
    found = call(
        "rankeval.evaluate",
        rows["y"],
        rows["score"],
        qid=rows["qid"],
        measures=some_measures(draw),
        **options,
    )
    call.plain(found, "Evaluation.aggregate", "Evaluation.mean")


@recipe("evaluation", 700)
def makes(draw: Draw, call: Call) -> None:
    """Evaluate columns of every make: lists, Series, Arrow, polars, types of numbers."""
    rows = draw.rows()
    index = pd.RangeIndex(len(rows["y"]))
    number, scored, query = (draw.choice(sorted(makes)) for makes in (NUMBERS, NUMBERS, IDS))
    columns = {
        "y": NUMBERS[number](np.abs(rows["y"]).astype(int).tolist(), index),
        "score": NUMBERS[scored](np.round(rows["score"]).astype(int).clip(0, 9).tolist(), index),
    }
    y, score = (column[0] for column in columns.values())
    qid = IDS[query](rows["qid"].tolist(), index)
    call("rankeval.evaluate", y, score, qid=qid, measures=["nDCG@5", "AP", "P@3"])


@recipe("evaluation", 300)
def groups(draw: Draw, call: Call) -> None:
    """Evaluate rows whose queries are given by sizes."""
    sizes = draw.numpy.integers(1, 6, draw.integer(1, 6))
    y = draw.labels(int(sizes.sum()))
    call(
        "rankeval.evaluate",
        y,
        draw.scores(len(y), y),
        group=sizes,
        measures=some_measures(draw, 2),
        **rules(draw, 0.1),
    )


@recipe("evaluation", 600)
def frames(draw: Draw, call: Call) -> None:
    """Evaluate a frame by the names of its columns."""
    rows = draw.rows()
    table = draw.table(
        {"q": rows["qid"], "label": rows["y"], "value": rows["score"], "doc": rows["docid"]}
    )
    options = draw.options(0.3, docid=("doc",), name=("frame",)) | rules(draw, 0.1)
    call(
        "rankeval.evaluate",
        table,
        qid="q",
        relevance="label",
        score="value",
        measures=some_measures(draw, 2),
        **options,
    )


@recipe("evaluation", 1500)
def judged(draw: Draw, call: Call) -> None:
    """Evaluate a run by judgments, as dicts, objects or files."""
    judgments = draw.judgments()
    ranking = draw.ranking(judgments)
    form = draw.integer(0, 3)
    truth: Any = judgments
    run: Any = ranking
    if form == 1:
        truth, run = (
            call.make("rankeval.Qrels.from_dict", judgments),
            call.make("rankeval.Run.from_dict", ranking),
        )
    elif form == 2:
        truth, run = draw.write_judgments(judgments), draw.write_ranking(ranking, "system.run")
    found = call(
        "rankeval.evaluate", truth, run, measures=some_measures(draw, 3), **rules(draw, 0.3)
    )
    call.plain(found, "Evaluation.aggregate")


@recipe("evaluation", 250)
def aspects(draw: Draw, call: Call) -> None:
    """Evaluate a run by judgments with aspects."""
    rows = [
        {"qid": query, "docid": doc, "relevance": grade, "aspect": f"a{draw.integer(1, 3)}"}
        for query, grades in draw.judgments(n_docs=8).items()
        for doc, grade in grades.items()
    ]
    judgments = draw.judgments(n_docs=8)
    qrels = call("rankeval.Qrels.from_frame", pd.DataFrame(rows))
    names = [measure_name(draw, (family,)) for family in draw.some(sorted(ASPECTS), 1, 3)]
    call("rankeval.evaluate", qrels, draw.ranking(judgments), measures=names)


@recipe("evaluation", 500)
def answers(draw: Draw, call: Call) -> None:
    """Ask an evaluation for subsets, slices, intervals and its worst queries."""
    found = small_evaluation(draw, call, draw.choice((None, "ltr")))
    queries = [f"q{place}" for place in range(found.n_queries)]
    by: Any = draw.choice(
        (
            {query: draw.choice(("head", "tail")) for query in queries},
            pd.Series([draw.choice("ab") for _ in queries], index=queries, name="kind"),
            "relevant",
            "retrieved",
        )
    )
    call.plain(found, "Evaluation.aggregate", "Evaluation.mean")
    call.of(found, "Evaluation.ci", **draw.options(0.5, level=(0.9, 0.99, 0.5)))
    call.of(
        found,
        "Evaluation.subset",
        draw.some(queries) if draw.happens() else draw.numpy.random(len(queries)) < 0.5,
    )
    call.of(
        found,
        "Evaluation.worst",
        draw.integer(0, 12),
        **draw.options(0.5, measure=("AP", "RR", "nDCG@10")),
    )
    call.of(found, "Evaluation.slices", by, **draw.options(0.4, level=(0.9, 0.95)))


@recipe("evaluation", 200)
def kept(draw: Draw, call: Call) -> None:
    """Save an evaluation and load it again; load a damaged file."""
    found = small_evaluation(
        draw, call, draw.choice((None, "ltr")), measures=some_measures(draw, 3)
    )
    call.of(found, "Evaluation.save", draw.choice(("ev.parquet", "in/ev.parquet", "ev.txt")))
    if draw.happens(0.8):
        call("rankeval.Evaluation.load", "ev.parquet")


@recipe("evaluation", 200)
def conventions(draw: Draw, call: Call) -> None:
    """Make conventions, change their rules, write cards and read them."""
    chosen = draw.options(
        0.3,
        ties=TIES[:5],
        judgments=("given", "rows", "qrels"),
        negative=("zero", "unjudged", "error"),
        missing=MISSING[:4],
        no_relevant=NO_RELEVANT[:3],
        unjudged=("zero", "skip", "lowest", "highest"),
        score_dtype=("float64", "float32"),
        depth=(5, 100),
        bind=({"nDCG": {"gain": "exp"}}, {"ERR": {"max_rel": 4}}),
    )
    made = call("rankeval.Convention", draw.choice(("mine", "other", "rankeval")), **chosen)
    card = call.of(made, "Convention.card")
    if isinstance(card, dict):
        call(
            "rankeval.Convention.from_card",
            {**card, **draw.options(0.2, ties=("best", "odd"), extra=(1,))},
        )
    call.of(made, "Convention.resolved", draw.choice(("rows", "qrels", "given")))
    changed = call.of(
        made,
        "Convention.with_rules",
        **draw.options(0.5, ties=TIES[:6], missing=MISSING[:5], depth=(3,)),
    )
    if changed is not None:
        judgments = draw.judgments()
        call(
            "rankeval.evaluate",
            judgments,
            draw.ranking(judgments),
            convention=changed,
            measures=some_measures(draw, 2),
        )


@recipe("evaluation", 60)
def by_hand(draw: Draw, call: Call) -> None:
    """Make an evaluation from the parts of another."""
    found = small_evaluation(draw, call, "ltr")
    parts = {
        "queries": found.queries,
        "measure_names": found.measure_names,
        "measures": found.measures,
        "scores": found.scores,
        "convention": found.convention,
        "excluded": found.excluded,
        "undefined": found.undefined,
        "facts": found.facts,
    }
    call("rankeval.Evaluation", **parts, **draw.options(0.5, name=("other",)))
    call.keep("equal", found == found)  # noqa: PLR0124 - equality is a part of the result


@recipe("evaluation", 120)
def rows_of_data(draw: Draw, call: Call) -> None:
    """Make ranking data by hand, and take rows of them."""
    rows = draw.rows()
    features = draw.numpy.normal(size=(len(rows["y"]), 2)).round(2)
    made = call(
        "rankeval.RankingData",
        features,
        rows["y"],
        rows["qid"],
        **draw.options(0.5, docid=(rows["docid"],), name=("d",)),
    )
    taken = draw.numpy.integers(0, len(rows["y"]), draw.integer(0, 5))
    call.of(made, "RankingData.take", taken, **draw.options(0.5, name=("part",)))


@recipe("evaluation", 60)
def sampled(draw: Draw, call: Call) -> None:
    """Evaluate lists with sampled items, and correct them."""
    n = draw.integer(2, 6)
    label = np.tile([1, 0, 0, 0], n)
    score = draw.numpy.permutation(4 * n)
    sizes = draw.choice(
        ({"n_items": 9, "n_sampled": 3}, {"n_items": 9, "n_sampled": 4}, {"n_items": 9})
    )
    found = call.make(
        "rankeval.evaluate", label, score, qid=np.repeat(np.arange(n), 4), measures="RR", **sizes
    )
    call("rankeval.analysis.corrected_for_sampling", found, draw.choice(("R@1", "nDCG@3", "AP")))


@recipe("evaluation", 60)
def own_documents(draw: Draw, call: Call) -> None:
    """Leave documents out that are their own query."""
    run = {
        query: {document: draw.number(0, 1) for document in ("a", "b", "c")} for query in ("a", "b")
    }
    qrels = {"a": {"a": 1, "b": draw.integer(0, 2)}, "b": {"c": 1}}
    call("rankeval.evaluate", qrels, run, measures=["RR", "nDCG@3"], exclude_self=draw.happens(0.8))
