"""Curves: the lectures' figures as fractions, and the same areas as scikit-learn's."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tables import each_row

import rankeval as rk
from rankeval.analysis.curves import precision_recall, roc
from rankeval.errors import GuardRefusal, InvalidInput, QueryIdError

Q1, Q2 = [1, 1, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0]
FALLING = -np.arange(12.0)
BOTH = (Q1 + Q2, FALLING)
QID = [1] * 6 + [2] * 6


def test_areas_and_eleven_points_of_the_lecture():
    """AUC 8/9 and 1/2; interpolated at eleven exact levels 10/11 and 5/11."""
    assert roc(*BOTH, qid=QID).auc.tolist() == [8 / 9, 0.5]
    averages = precision_recall(*BOTH, qid=QID).eleven_point_average
    assert [Fraction(one).limit_denominator(1000) for one in averages] == [Fraction(10, 11), Fraction(5, 11)]


@pytest.mark.shared
@each_row(("query", "relevance"), [("q1", Q1), ("q2", Q2)])
def test_two_queries_roc(shared: Path, query, relevance):
    """Rates at every rank are those of the lecture's table."""
    examples = {one["id"]: one for one in json.loads((shared / "seed_examples.json").read_text())["examples"]}
    points = roc(relevance, FALLING[:6], qid=[0] * 6).points.set_index("rank")
    for row in examples[f"two_queries_roc_{query}"]["expected"]["per_rank"]:
        assert points.at[row["k"], "tpr"] == float(Fraction(row["tpr"]))
        assert points.at[row["k"], "fpr"] == float(Fraction(row["fpr"]))


@pytest.mark.shared
def test_eleven_point(shared: Path):
    """A ranking with the table's interpolated precisions has its average, .4245 (printed .425)."""
    examples = {one["id"]: one for one in json.loads((shared / "seed_examples.json").read_text())["examples"]}
    example = examples["eleven_point"]
    table = example["inputs"]["interpolated_precision"]
    # Ten relevant documents, the n-th of them at rank n / precision: rounded so that two digits print alike.
    ranks = [max(n, round(n / precision)) for n, precision in enumerate(table[1:], start=1)]
    relevance = np.zeros(max(ranks), dtype=int)
    relevance[np.array(ranks) - 1] = 1
    curve = precision_recall(relevance, -np.arange(len(relevance)), qid=np.zeros(len(relevance)))
    exact = [max(n / rank for n, rank in enumerate(ranks, start=1) if n >= level) for level in range(11)]
    assert curve.average.tolist() == pytest.approx(exact, abs=1e-15)
    assert example["expected"]["average"] == pytest.approx(sum(table) / 11, abs=1e-12)
    assert round(sum(table) / 11, 3) == example["expected"]["average_as_printed"]


def test_areas_equal_scikit_learn_with_ties():
    """On tied scores: the area under the ROC curve as roc_auc_score; points only where a group ends."""
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(2)
    y, score = rng.integers(0, 2, 80), rng.integers(0, 12, 80).astype(float)
    curve = roc(y, score, qid=np.zeros(80))
    assert curve.auc.iloc[0] == pytest.approx(roc_auc_score(y, score), abs=1e-14)
    assert len(curve.points) == len(np.unique(score)) + 1


def test_unretrieved_documents_are_one_tied_block():
    """Collection AUC by hand: 2 relevant of 10 documents, 3 retrieved, one relevant never found."""
    qrels, run = {"q": {"a": 1, "z": 1}}, {"q": {"x": 3.0, "a": 2.0, "y": 1.0}}
    # a stands above y and the 6 unretrieved others: 7 of 8 pairs; z is tied with those 6: 3 of 8.
    assert roc(qrels, run, collection_size=10).auc["q"] == (7 + 3) / 16
    with pytest.raises(InvalidInput, match="collection_size is missing"):
        roc(qrels, run)
    with pytest.raises(InvalidInput, match="4 documents that are retrieved or relevant"):
        roc(qrels, run, collection_size=3)


def test_what_has_no_curve_says_why():
    """No relevant document, or nothing else: undefined with the reason, not a number."""
    curve = roc([0, 0, 1, 1], [2, 1, 2, 1], qid=["none", "none", "all", "all"])
    assert curve.undefined == {"none": "no relevant document", "all": "no document that is not relevant"}
    assert curve.auc.empty
    assert precision_recall([0, 0], [2, 1], qid=[1, 1]).undefined == {1: "no relevant document"}


def test_nothing_retrieved_is_a_curve_of_zeros():
    """A query that the run lacks has precision 0 at every level, and by collection size an AUC of one half."""
    qrels, run = {"q": {"a": 1}, "p": {"b": 1}}, {"q": {"a": 1.0}}
    curve = precision_recall(qrels, run)
    assert curve.eleven_points.loc["p"].tolist() == [0.0] * 11
    assert curve.area.to_dict() == {"p": 0.0, "q": 1.0}
    assert roc(qrels, run, collection_size=5).auc.to_dict() == {"p": 0.5, "q": 1.0}


def test_the_area_lies_above_average_precision():
    """Interpolation only raises: area >= AP, and both are 1 for a perfect ranking."""
    rng = np.random.default_rng(4)
    y, score, qid = rng.integers(0, 2, 200), rng.permutation(200).astype(float), np.repeat(np.arange(10), 20)
    ap = rk.evaluate(y, score, qid=qid, measures="AP").per_query["AP"]
    assert (precision_recall(y, score, qid=qid).area >= ap - 1e-12).all()
    assert precision_recall(y, y.astype(float), qid=qid).area.eq(1.0).all()


class _Refusing:
    """A guard that knows everything."""

    def refuse(self, *_, action, **__):
        raise GuardRefusal(f"registered: {action}")

    refuse_collection = refuse


@each_row(
    "call",
    [
        precision_recall,
        roc,
        rk.analysis.contingency_table,
        partial(rk.explain_difference, measure="AP", values=(0.1, 0.2)),
    ],
)
def test_registered_content_is_refused_before_anything_is_computed(call, monkeypatch):
    """Curves, tables and explanations look at test content as evaluate does: through the guard, arrays and files."""
    monkeypatch.setattr("rankeval.ledger.discovery.active_urls", lambda: ["a ledger"])  # without one, nothing is asked
    monkeypatch.setattr("rankeval.contamination.refusal.ContaminationCheck.current", _Refusing)
    with pytest.raises(GuardRefusal, match="registered"):
        call([1, 0], [2.0, 1.0], qid=[1, 1])
    with pytest.raises(GuardRefusal, match="registered"):
        call({"q": {"d": 1}}, {"q": {"d": 1.0}})
    with pytest.raises(QueryIdError, match="qid= is missing"):
        call([1, 0], [2.0, 1.0])


@each_row("size", ["10", 2.5, True, 0, -1])
def test_the_size_of_a_collection_is_a_count(size):
    """Anything else is told in one line, before anything is computed."""
    for call in (roc, rk.analysis.contingency_table):
        with pytest.raises(InvalidInput, match=f"^collection_size is {size!r}; expected a whole number"):
            call({"q": {"a": 1}}, {"q": {"b": 1.0}}, collection_size=size)
    with pytest.raises(InvalidInput, match=r"^cutoff is 2\.5; expected a whole number"):
        rk.analysis.contingency_table([1], [1], qid=[1], cutoff=2.5)


def test_nothing_has_no_curve_and_no_table():
    """Empty arrays are refused, as by evaluate."""
    for call in (roc, precision_recall, rk.analysis.contingency_table):
        with pytest.raises(InvalidInput, match="are empty"):
            call([], [], qid=[])


@each_row("rel", ["1", None, float("nan"), True])
def test_the_lowest_relevant_label_is_a_number(rel):
    """A text would be compared as one."""
    for call in (roc, precision_recall, rk.analysis.contingency_table):
        with pytest.raises(InvalidInput, match=f"^rel is {rel!r}; expected a number$"):
            call([1, 0], [2, 1], qid=[1, 1], rel=rel)
    with pytest.raises(InvalidInput, match=r"^beta is '1'; expected a number, 0 or greater$"):
        rk.analysis.contingency_table([1, 0], [2, 1], qid=[1, 1]).micro(beta="1")
    with pytest.raises(InvalidInput, match=r"^convention is 5; expected the name of a preset"):
        roc([1, 0], [2, 1], qid=[1, 1], convention=5)
