"""A judged query that the run lacks is an empty ranking, for every measure that is declared, to the bit.

Empty rankings are made in two ways that know nothing of missing queries: a run whose only document of the query is
unjudged and taken out by ``unjudged="skip"``, and a `Judged` made by hand that has no rows.
"""

from __future__ import annotations

import numpy as np
import pytest
from circles import choose, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.test_aspect_laws import all_members as aspect_members
from laws.test_measure_laws import all_members

import rankeval as rk
from rankeval.join.judged import NO_GROUPS, Judged
from rankeval.measures import measure

LOST, KEPT = "lost", "kept"

RULES = {
    "expected": rk.Convention("c", unjudged="skip"),
    "docid": rk.Convention("c", unjudged="skip", ties="docid", negative="unjudged"),
    "barren is 1": rk.Convention("c", unjudged="skip", no_relevant="one"),
    "rows": rk.Convention("c", unjudged="skip", judgments="rows", no_relevant="one"),
    "cut": rk.Convention("c", unjudged="skip", ties="docid", depth=3),
    "binds": rk.Convention("c", unjudged="skip", bind={"IPrec": {"rule": "trec_eval-10"}, "RBP": {"gain": "scaled"}}),
}

KNOWN = {
    "YAAP": -np.log(5),
    "RBPResid(p=0.8)": 1.0,
    "Utility(c=-1)": -4.0,
    "IdealDCG": 1 + 1 / np.log2(3) + 0.5 + 1 / np.log2(5),
    "Accuracy(collection_size=1000)": 0.996,
    "gm_AP": np.log(1e-5),
    "NumRel": 4.0,
    "AP": 0.0,
    "nDCG@10": 0.0,
}


@st.composite
def judgments(draw, lowest=-1):
    """Draw the labels of a query that will be lost, and of one that is kept with some of its documents."""
    docs = st.dictionaries(st.sampled_from(["a", "b", "c", "d", "e"]), st.integers(lowest, 3), min_size=1)
    return {LOST: draw(docs), KEPT: draw(docs)}


def by_aspect(grades):
    """Return qrels in which a document has one grade for aspect x and the opposite one for aspect y."""
    known = [(query, doc, grade) for query, docs in grades.items() for doc, grade in docs.items()]
    rows = [row for query, doc, grade in known for row in ((query, doc, "x", grade), (query, doc, "y", 3 - grade))]
    qid, docid, aspect, relevance = (list(column) for column in zip(*rows, strict=True))
    return rk.Qrels(qid, docid, relevance, aspect)


def kept_run(grades):
    return {KEPT: {doc: float(place % 2) for place, doc in enumerate(["b", *grades[KEPT], "z"])}}


def agree(qrels, grades, names, rules):
    """Compare the lost query with the emptied one: alone and beside another, with weights and without."""
    weights = {LOST: 3.0, KEPT: 0.5}
    unjudged = {"not judged": 1.0}
    for weighted in (None, weights):
        lost = rk.evaluate(qrels, kept_run(grades), measures=names, convention=rules, query_weight=weighted)
        emptied = rk.evaluate(
            qrels, kept_run(grades) | {LOST: unjudged}, measures=names, convention=rules, query_weight=weighted
        )
        np.testing.assert_array_equal(lost.queries, emptied.queries)
        np.testing.assert_array_equal(lost.scores, emptied.scores)
        np.testing.assert_array_equal(lost.aggregate(), emptied.aggregate())
        assert lost.undefined == emptied.undefined
        assert lost.facts.totals()["no_relevant"] == emptied.facts.totals()["no_relevant"]
    rows = [place for place, query in enumerate(qrels.qid.to_pylist()) if query == LOST]
    aspect = None if qrels.aspect is None else qrels.aspect.take(rows)
    only = rk.Qrels(qrels.qid.take(rows), qrels.docid.take(rows), qrels.relevance[rows], aspect)
    alone = rk.evaluate(only, {LOST: unjudged}, measures=names, convention=rules)
    np.testing.assert_array_equal(lost.scores[lost.queries == LOST], alone.scores)


@pytest.mark.parametrize("rules", choose(default=["expected", "binds"], full=[*RULES]))
@given(judgments())
@settings(max_examples=examples(10), deadline=None)
def test_a_missing_query_is_worth_an_empty_ranking(rules, grades):
    """For all measures of grades and of preferences, under all rules."""
    agree(rk.Qrels.from_dict(grades), grades, all_members(), RULES[rules])


@pytest.mark.parametrize("rules", ["expected", "docid", "cut"])
@given(judgments(lowest=0))
@settings(max_examples=examples(10), deadline=None)
def test_so_it_is_with_judgments_by_aspect_and_by_group(rules, grades):
    """For measures of aspects, and for those of preferences when several judges judged."""
    groups = [name for name in all_members() if measure(name).family.needs == "groups"]
    if rules == "expected":  # which several judges do not have there
        groups = [name for name in groups if measure(name).family.name != "PrefsR"]
    assert len(groups) > 10
    agree(by_aspect(grades), grades, [*aspect_members(), *groups], RULES[rules])


@given(judgments(lowest=0))
@settings(max_examples=examples(20), deadline=None)
def test_the_value_is_the_kernels_own_of_no_rows(grades):
    """A chunk made by hand without a row gives the same value; 0/0 is 0."""
    labels = list(grades[LOST].values())
    judged = Judged(
        offsets=np.array([0, 0]),
        levels=np.arange(4),
        flat=np.empty(0, dtype=np.int64),
        counts=np.bincount(labels, minlength=4)[None, :],
        groups=NO_GROUPS,
    )
    ev = rk.evaluate(rk.Qrels.from_dict(grades), kept_run(grades), measures=all_members())
    for label, value in zip(ev.measure_names, ev.scores[ev.queries == LOST][0], strict=True):
        assert value == np.nan_to_num(measure(label).values(judged)[0]), label


def test_values_by_hand():
    """Silence is not better than failure: four relevant documents, none of them found."""
    qrels = {"a": {"d1": 1}, "m": {"d1": 1, "d2": 1, "d3": 1, "d4": 1}}
    table = rk.evaluate(qrels, {"a": {"d1": 1.0}}, measures=list(KNOWN)).per_query
    np.testing.assert_allclose(table.loc["m"], list(KNOWN.values()), rtol=1e-12)


def test_as_zero_counts_in_every_mean_what_trec_eval_9_adds():
    """missing="zero": 0 in means whatever the empty list is worth, the floor in geometric means, counts as they are."""
    qrels = {"a": {"d1": 1}, "m": {"d1": 1, "d2": 1, "d3": 1, "d4": 1}, "n": {"d1": 0}}
    table = rk.evaluate(qrels, {"a": {"d1": 1.0}}, measures=list(KNOWN), missing="zero", no_relevant="one").per_query
    zeros = [0.0 if name not in ("gm_AP", "NumRel") else KNOWN[name] for name in KNOWN]
    assert table.loc["m"].tolist() == zeros
    assert table.loc["n"].tolist() == [0.0 if name != "gm_AP" else KNOWN[name] for name in KNOWN]
