"""Laws for every measure that reads judgments by aspect; the cases come from the registry."""

from __future__ import annotations

import pickle
from itertools import permutations

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.measures import measure, measure_from_key
from rankeval.measures.family import FAMILIES

VARIANTS = {"cutoff": (1, 3, 10), "rel": (2,), "alpha": (0.0, 0.2, 1.0), "beta": (0.8,)}


def all_members() -> list[str]:
    found = []
    for family in list(FAMILIES.values()):
        if family.needs == "aspects":
            needed = {"cutoff": 3} if "cutoff" in family.defaults else {}
            found.append(family.with_parameters(**needed))
            for name in family.defaults:
                found += [family.with_parameters(**{**needed, name: value}) for value in VARIANTS[name]]
    return list(dict.fromkeys(str(one) for one in found))


@st.composite
def collections(draw, documents=5):
    """Draw grades of documents of two queries for three aspects, and scores that often tie; some are not retrieved."""
    grade = st.lists(st.integers(0, 2), min_size=3, max_size=3)
    grades = {q: draw(st.lists(grade, min_size=documents, max_size=documents)) for q in ("q1", "q2")}
    score = {q: draw(st.lists(st.integers(0, 2), min_size=documents - 1, max_size=documents - 1)) for q in grades}
    return grades, score


def qrels_of(grades):
    rows = [(q, f"d{d}", a, g) for q, docs in grades.items() for d, row in enumerate(docs) for a, g in enumerate(row)]
    qid, docid, aspect, relevance = zip(*rows, strict=True)
    return rk.Qrels(list(qid), list(docid), list(relevance), list(aspect))


def run_of(scores):
    return {q: {f"d{d}": float(s) for d, s in enumerate(row)} for q, row in scores.items()}


@given(collections(), st.randoms())
@settings(max_examples=examples(40), deadline=None)
def test_the_order_of_judgments_and_of_rows_does_not_matter(data, random):
    """Judgments and rows may stand in any order."""
    grades, scores = data
    qrels, run = qrels_of(grades), run_of(scores)
    order = list(range(len(qrels)))
    random.shuffle(order)
    shuffled = rk.Qrels(
        qrels.qid.take(order), qrels.docid.take(order), qrels.relevance[order], qrels.aspect.take(order)
    )
    turned = {q: dict(reversed(list(row.items()))) for q, row in reversed(list(run.items()))}
    names = all_members()
    before = rk.evaluate(qrels, run, measures=names).per_query
    after = rk.evaluate(shuffled, turned, measures=names).per_query
    np.testing.assert_allclose(after.loc[before.index], before, atol=1e-12)


@given(collections())
@settings(max_examples=examples(40), deadline=None)
def test_values_stay_within_the_declared_bounds(data):
    """No value leaves its family's bounds."""
    table = rk.evaluate(qrels_of(data[0]), run_of(data[1]), measures=all_members()).per_query
    for name in table:
        low, high = measure(name).family.bounds
        assert table[name].between(low - 1e-12, high + 1e-12).all(), name


@given(collections())
@settings(max_examples=examples(25), deadline=None)
def test_expected_is_the_mean_over_all_orders_of_tied_rows(data):
    """ties='expected' equals the mean of ties='stable' over every order of the rows."""
    grades, scores = {"q1": data[0]["q1"]}, {"q1": data[1]["q1"]}
    names = all_members()
    expected = rk.evaluate(qrels_of(grades), run_of(scores), measures=names).per_query.iloc[0]
    orders = list(permutations(range(len(scores["q1"]))))
    copies = {f"q{n:03}": grades["q1"] for n in range(len(orders))}
    run = {f"q{n:03}": {f"d{d}": float(scores["q1"][d]) for d in order} for n, order in enumerate(orders)}
    every = rk.evaluate(qrels_of(copies), run, measures=names, ties="stable").per_query
    np.testing.assert_allclose(expected, every.mean(), atol=1e-10)


@given(collections())
@settings(max_examples=examples(25), deadline=None)
def test_one_aspect_is_no_aspect(data):
    """With one aspect, intent-aware precision and AP are precision and AP, and novelty without intolerance is DCG."""
    grades = {q: [[row[0]] for row in docs] for q, docs in data[0].items()}
    names = ["P_IA@3", "AP_IA", "StRecall@2", "alpha_nDCG(alpha=0)@3", "P@3", "AP", "Success@2"]
    names += ["nDCG(gain={1: 1, 2: 1})@3"]
    table = rk.evaluate(qrels_of(grades), run_of(data[1]), measures=names).per_query
    np.testing.assert_allclose(table.iloc[:, :4], table.iloc[:, 4:], atol=1e-12)


@given(collections())
@settings(max_examples=examples(20), deadline=None)
def test_measures_of_grades_see_the_greatest_grade_of_a_document(data):
    """Other measures take a document's grade to be the greatest over its aspects."""
    grades = {q: [[max(row)] for row in docs] for q, docs in data[0].items()}
    names = ["nDCG@3", "AP", "ERR(max_rel=2)", "NumRel"]
    by_aspect = rk.evaluate(qrels_of(data[0]), run_of(data[1]), measures=names).per_query
    greatest = {q: {f"d{d}": row[0] for d, row in enumerate(docs)} for q, docs in grades.items()}
    np.testing.assert_array_equal(rk.evaluate(greatest, run_of(data[1]), measures=names).per_query, by_aspect)


@each_row("name", all_members())
def test_names_keys_and_pickles_give_the_measure_back(name):
    """parse(print(m)) = m, from_key(key(m)) = m, unpickle(pickle(m)) = m."""
    one = measure(name)
    assert str(one) == name
    assert measure_from_key(one.key) == one
    assert pickle.loads(pickle.dumps(one)) == one


def test_without_aspects_the_error_says_what_to_do():
    """A measure of aspects over judgments without them names the way to read them; judging twice is refused."""
    with pytest.raises(InvalidInput, match=r"alpha_nDCG@10 needs judgments by aspect.*format='ndeval'"):
        rk.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, measures="alpha_nDCG@10")
    twice = rk.Qrels(["q", "q"], ["d", "d"], [1, 0], ["1", "1"])
    with pytest.raises(InvalidInput, match="occurs twice for aspect '1' of query 'q'"):
        rk.evaluate(twice, {"q": {"d": 1.0}}, measures="P_IA@5")


def test_judgments_by_subtopic_are_written_and_read_back(tmp_path):
    """What write gives, read(format='ndeval') takes, subtopics included; read as plain qrels it has documents twice."""
    qrels = qrels_of({"q1": [[0, 1, 2], [1, 0, 0]]})
    qrels.write(tmp_path / "qrels.ndeval")
    again = rk.Qrels.read(tmp_path / "qrels.ndeval", format="ndeval")
    assert again.to_frame().astype(str).equals(qrels.to_frame().astype(str))
    plain = rk.Qrels.read(tmp_path / "qrels.ndeval")
    with pytest.raises(InvalidInput, match="occurs twice"):
        rk.evaluate(plain, {"q1": {"d0": 1.0}}, measures="AP")
