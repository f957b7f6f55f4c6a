"""Truth and ranking joined, against the plainest reading of the rules: dictionaries, lists and loops."""

from __future__ import annotations

import re
from math import log2

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.join.collections import join_collection
from rankeval.join.flat import rows_of

GAIN = {0: 1, 1: 2, 2: 5}
DOCUMENTS = st.sampled_from([f"d{number}" for number in range(9)])
JUDGMENTS = st.dictionaries(
    st.sampled_from("abc"), st.dictionaries(DOCUMENTS, st.integers(-1, 2), min_size=1), min_size=1
)
RUNS = st.dictionaries(st.sampled_from("abcz"), st.dictionaries(DOCUMENTS, st.integers(-2, 2), min_size=1), min_size=1)


def ranked(scores, judged, ties):
    """Return the documents of a query, best first."""
    tie_rank = {
        "docid": lambda d: [-byte for byte in d.encode()],
        "stable": list(scores).index,
        "best": lambda d: -judged.get(d, -2),
        "worst": lambda d: judged.get(d, -2),
    }[ties]
    return sorted(scores, key=lambda d: (-scores[d], tie_rank(d)))


def plainly(judged, scores, *, ties, unjudged="zero", negative="zero", judgments="qrels", depth=None):
    """Return measure -> value of one query; the documents of no judgment have the label None."""
    if negative == "unjudged":
        judged = {d: label for d, label in judged.items() if label >= 0}
    order = ranked(scores, judged, ties)
    if unjudged == "skip" and depth is None:
        order = [d for d in order if d in judged]
    order = order[:depth]
    if unjudged == "skip":
        order = [d for d in order if d in judged]
    labels = [judged.get(d) for d in order]
    pool = [judged[d] for d in (scores if judgments == "rows" else judged) if d in judged]
    values = {}
    for rel in (0, 1, 2):
        hit = [label is not None and label >= rel for label in labels]
        total = sum(label >= rel for label in pool)
        precision = [sum(hit[: rank + 1]) / (rank + 1) for rank in range(len(hit))]
        values[f"P(rel={rel})@3"] = sum(hit[:3]) / 3
        values[f"R(rel={rel})"] = sum(hit) / total if total else 0.0
        values[f"R(rel={rel})@2"] = sum(hit[:2]) / total if total else 0.0
        values[f"AP(rel={rel})"] = sum(p for p, h in zip(precision, hit, strict=True) if h) / total if total else 0.0
        values[f"RR(rel={rel})"] = next((1 / (rank + 1) for rank, h in enumerate(hit) if h), 0.0)
    for cutoff in (2, None):
        gains = [GAIN.get(label, 0) for label in labels][:cutoff]
        best = sorted((GAIN.get(label, 0) for label in pool), reverse=True)[:cutoff]
        dcg, ideal = (sum(g / log2(rank + 2) for rank, g in enumerate(part)) for part in (gains, best))
        values["nDCG(gain={0:1,1:2,2:5})" + (f"@{cutoff}" if cutoff else "")] = dcg / ideal if ideal else 0.0
    return values


@settings(max_examples=examples(120), deadline=None)
@given(
    qrels=JUDGMENTS,
    run=RUNS,
    ties=st.sampled_from(["docid", "stable", "best", "worst"]),
    rules=st.fixed_dictionaries(
        {},
        optional={
            "unjudged": st.sampled_from(["zero", "skip", "lowest"]),
            "negative": st.sampled_from(["zero", "unjudged"]),
            "judgments": st.sampled_from(["qrels", "rows"]),
            "depth": st.integers(1, 4),
        },
    ),
    chunk=st.sampled_from([1, 3, 2**18]),
)
def test_collections_are_joined_as_the_rules_say(qrels, run, ties, rules, chunk):
    """A judged 0 may be worth something, an unjudged document never is; however many queries are in a chunk."""
    if not set(qrels) & set(run):
        return
    convention = rk.Convention("mine", ties=ties, **rules)
    expected = {q: plainly(judged, run.get(q, {}), ties=ties, **rules) for q, judged in qrels.items()}
    if ties in ("best", "worst") or rules.get("unjudged") == "lowest":  # bounds, of measures that have such
        expected = {q: {m: v for m, v in each.items() if m.startswith(("P", "RR"))} for q, each in expected.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankeval.join.joined.CHUNK", chunk)
        found = rk.evaluate(qrels, run, measures=list(expected[next(iter(qrels))]), convention=convention).per_query
    assert sorted(found.index) == sorted(qrels)
    for q, values in expected.items():
        np.testing.assert_allclose(found.loc[q].to_numpy(dtype=float), list(values.values()), atol=1e-12, err_msg=q)


@each_row("n_labels", [5, 63, 64, 65, 127, 128, 129, 200])
@each_row("step", [1, 0.01])
def test_the_best_and_worst_order_of_tied_rows_however_many_labels_there_are(n_labels, step):
    """Labels beyond what fits beside a score in the key of the sort, whole and broken, in order or not."""
    grade = np.random.default_rng(n_labels).permutation(n_labels) * step
    discount = 1 / np.log2(np.arange(2, 2 + n_labels))
    for score in (np.zeros(n_labels), np.append(np.zeros(n_labels - 1), 1.0)):
        top, tied = grade[score == 1], np.sort(grade[score == 0])
        for ties, order in (("worst", tied), ("best", tied[::-1])):
            found = rk.evaluate(grade, score, qid=np.zeros(n_labels), measures=["DCG", "DCG@3"], ties=ties).scores[0]
            gains = np.append(top, order)
            assert found == pytest.approx([gains @ discount, gains[:3] @ discount[:3]])


def test_scores_are_compared_in_the_precision_that_the_convention_says():
    """Two scores that differ in float64 alone are a tie in float32, and the mean over both orders."""
    score = [1.0, 1.0 + 2.0**-40]
    for given_score, expected in ((score, [0.5, 1.0]), (score[::-1], [1.0, 0.5])):
        options = {"qid": [0, 0], "measures": "RR"}
        for precision, values in (("float64", expected), ("float32", [0.75, 0.75])):
            rules = rk.Convention(score_dtype=precision)
            for y, value in zip(([1, 0], [0, 1]), values, strict=True):
                assert rk.evaluate(y, given_score, convention=rules, **options).scores[0, 0] == value


@each_row(("label", "code"), [(-1, -1), (-3.0, -3), (-2.5, None), (-1e300, None)])
def test_the_lowest_label_below_zero_is_named_with_their_number(label, code):
    """Labels of any size and type, among others that are above it."""
    y = [label, -0.5 if code is None else -1, 1, 0]
    with pytest.raises(rk.errors.InvalidInput, match=re.escape(f"found 2 labels below zero (down to {label:g}")):
        rk.evaluate(y, [4, 3, 2, 1], qid=[0] * 4, convention=rk.Convention(negative="error"))
    qrels = {"q": {f"d{row}": one for row, one in enumerate(y)}}
    for run in ({"q": {"d0": 1.0, "d1": 0.5}}, {"q": {"d2": 1.0}}, {"q": {"d0": 1.0, "d3": 0.5}}):
        with pytest.raises(rk.errors.InvalidInput, match=re.escape(f"found 2 labels below zero (down to {label:g}")):
            rk.evaluate(qrels, run, convention=rk.Convention(negative="error"))


LABELS = {
    "few whole": [0, 1, 2],
    "whole, as floats": [0.0, 1.0, 2.0],
    "64 levels": [0, 30, 63],
    "65 levels": [0, 30, 64],
    "far apart": [0, 1000, 10**12],
    "broken": [0.0, 0.5, 2.25],
    "below zero": [-1, 0, 2],
    "far below zero": [-70, 0, 2],
    "broken and below zero": [-0.5, 0.0, 1.5],
    "bool": [False, True, True],
}


@each_row("labels", LABELS.values(), ids=LABELS)
@each_row("in_run", [0, 1, 2])
def test_labels_of_any_kind_gain_what_they_are(labels, in_run):
    """Whether they stand in the ranking or among what was not retrieved: DCG and its ideal are plain sums."""
    documents = [f"d{number}" for number in range(3)]
    order = [documents[in_run], "unjudged", documents[(in_run + 1) % 3]]
    run = {"q": {document: 3.0 - rank for rank, document in enumerate(order)}}
    judged = dict(zip(documents, labels, strict=True))
    gain = {document: max(float(label), 0.0) for document, label in judged.items()}
    dcg = sum(gain.get(document, 0.0) / log2(rank + 2) for rank, document in enumerate(order))
    ideal = sum(one / log2(rank + 2) for rank, one in enumerate(sorted(gain.values(), reverse=True)))
    found = rk.evaluate({"q": judged}, run, measures=["DCG", "nDCG", "R(rel=0.1)"]).scores[0]
    relevant = {document for document, label in judged.items() if label >= 0.1}
    assert found == pytest.approx([dcg, dcg / ideal, len(relevant & set(order)) / len(relevant)])
    rows = rk.evaluate(labels, [3, 2, 1], qid=[0, 0, 0], measures=["DCG", "R(rel=0.1)"]).scores[0]
    assert rows == pytest.approx([sum(max(float(one), 0) / log2(r + 2) for r, one in enumerate(labels)), 1.0])


@each_row("top", [1, 127, 128, 2**40, 0.5])
@each_row("low", [0, -1, -128, -129])
def test_labels_of_any_size_reach_their_rows(low, top):
    """Labels that fit a byte are held in one."""
    judgments = {"p": {"a": top, "b": low, "c": top}, "q": {"a": low, "b": top}}
    qrels, run = rk.Qrels.from_dict(judgments), rk.Run.from_dict({"q": {"b": 2.0, "x": 1.0}, "p": {"b": 3.0, "a": 2.0}})
    joined = join_collection(qrels, run, convention=rk.Convention(unjudged="highest"))
    assert joined.relevance.tolist() == [top, top, low, top]
    assert joined.unretrieved.tolist() == [top, low]


@each_row("together", [True, False], ids=["in stretches", "in any order"])
def test_rows_of_a_query_keep_their_order_wherever_they_stand(together):
    """Of a query that nobody judged, none is kept; queries ascend."""
    rng = np.random.default_rng(3)
    ids = np.repeat(["t", "q10", "q9", "unjudged", "t"], [40, 20, 30, 25, 50]).astype(object)
    ids = ids if together else rng.permutation(ids)
    run = rk.Run(ids, [f"d{row}" for row in range(len(ids))], rng.normal(size=len(ids)))
    qrels = rk.Qrels(["t", "q9", "q10", "q8"], ["d0", "d1", "d2", "d3"], [1, 1, 1, 1])
    joined = join_collection(qrels, run, convention=rk.Convention(missing="empty"))
    rows = [np.flatnonzero(ids == query) for query in ("q10", "q8", "q9", "t")]
    assert joined.queries.tolist() == ["q10", "q8", "q9", "t"]
    assert joined.order.tolist() == np.concatenate(rows).tolist()
    assert np.diff(joined.offsets).tolist() == [len(one) for one in rows]
    assert joined.excluded == {"no judgments": ("unjudged",)}


def test_rows_of_long_runs_are_counted_on_from_block_to_block():
    start, size = np.array([7, 500_000, 3, 90_000, 0]), np.array([0, 40_000, 1, 70_000, 0])
    expected = np.concatenate([np.arange(one, one + many) for one, many in zip(start, size, strict=True)])
    np.testing.assert_array_equal(rows_of(start, size), expected)
    assert len(rows_of(start[:0], size[:0])) == 0
