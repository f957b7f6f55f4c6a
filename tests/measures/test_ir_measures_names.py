"""What ir_measures calls a measure, parameters included, is read as what it computes."""

from __future__ import annotations

import random
import re

import ir_measures
import pytest
from ir_measures import AP, RBP, RR, Accuracy, IPrec, NumRet, P, R, SetF, SetP, SetR, nDCG

import rankeval as rk
from rankeval.errors import AmbiguousName, InvalidInput, UnknownName
from rankeval.measures import list_measures, measure, measures


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("nDCG(dcg='exp-log2')@10", "nDCG(gain='exp')@10"),
        ("NDCG(dcg='exp-log2')", "nDCG(gain='exp')"),
        ("nDCG(dcg='log2')", "nDCG(gain='linear')"),
        ("nDCG(gains={0:0,1:3})@10", "nDCG(gain={0: 0, 1: 3})@10"),
        ("nDCG(dcg='log2',gains={1:3})", "nDCG(gain={1: 3})"),
        ("SDCG(dcg='log2',max_rel=3)@10", "SDCG(max_rel=3)@10"),
        ("SetP(rel=2)", "P(rel=2)"),
        ("SetP(relative=True)", "RelP"),
        ("SetP(relative=False)", "P"),
        ("SetP(rel=2,relative=True)", "RelP(rel=2)"),
        ("SetRelP(rel=2)", "RelP(rel=2)"),
        ("SetR(rel=2)", "R(rel=2)"),
        ("SetF(rel=2)", "F(rel=2)"),
        ("IPrec(rel=2)@0.5", "IPrec(recall=0.5, rel=2)"),
        ("NumRet", "NumRet"),
        ("NumRet(rel=1)", "NumRelRet"),
        ("NumRet(rel=2)", "NumRelRet(rel=2)"),
        ("MRR(rel=2)@10", "RR(rel=2)@10"),
        ("MAP(rel=2)", "AP(rel=2)"),
        ("Precision(rel=2)@5", "P(rel=2)@5"),
        ("P(judged_only=False)@5", "P@5"),
        ("\N{GREEK SMALL LETTER ALPHA}_nDCG(alpha=0.9)@10", "alpha_nDCG(alpha=0.9)@10"),
    ],
)
def test_its_parameters_are_read(name, ours):
    """Each form is one of our measures, and prints as it."""
    assert str(measure(name)) == ours
    assert measure(ours) == measure(name)


@pytest.mark.parametrize(
    "name",
    [
        *("P(judged_only=True)@5", "R(judged_only=True)@5", "RR(judged_only=True)", "AP(judged_only=True)"),
        *("nDCG(judged_only=True)@10", "Rprec(judged_only=True)", "alpha_nDCG(judged_only=True)@10"),
        *("SetF(judged_only=True)", "IPrec(judged_only=True)@0.1"),
    ],
)
def test_judged_only_is_a_rule_of_the_convention(name):
    """Which rows count is no matter of one measure: the message says where it goes."""
    with pytest.raises(InvalidInput, match=r"convention=Convention\(unjudged='skip'\) \(--judged-only"):
        measure(name)


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("nDCG(dcg='log3')", UnknownName, "dcg of nDCG 'log3'"),
        ("nDCG(dcg=['log2'])", UnknownName, "dcg of nDCG"),
        ("SDCG(dcg='exp-log2',max_rel=3)@10", UnknownName, "did you mean 'log2'"),
        ("nDCG(dcg='exp-log2',gains={1:3})", UnknownName, "did you mean 'log2'"),
        ("nDCG(gains={1:-3})", InvalidInput, "0 or more"),
        ("SetP(rel=2)@5", InvalidInput, "no cut-off"),
        ("SetP(rell=2)", UnknownName, "did you mean 'rel'"),
        ("SetF(beta=4)", AmbiguousName, "F\\(beta=2\\) \\(ir_measures\\); F\\(beta=4\\)"),
        ("IPrec(rel=2)@5", InvalidInput, "in \\[0, 1\\]"),
    ],
)
def test_what_cannot_be_meant_is_refused(name, error, says):
    """In one line, with what could."""
    with pytest.raises(error, match=says):
        rk.evaluate([1], [1.0], qid=[1], measures=name)


ASKED = [
    *(P @ 5, P(rel=2) @ 5, R @ 10, RR, RR(rel=2) @ 10, AP, AP(rel=2) @ 20, NumRet, NumRet(rel=1), NumRet(rel=2)),
    *(nDCG @ 10, nDCG(dcg="log2"), nDCG(gains={0: 0, 1: 3}) @ 10, nDCG(gains={1: 3, 2: 7, 3: 20})),
    *(SetP, SetP(rel=2), SetP(relative=True), SetR(rel=2), SetF(rel=2), SetF(beta=2.0), SetF(beta=0.5, rel=2)),
    *(IPrec @ 0.5, IPrec(rel=2) @ 0.5, Accuracy @ 10, Accuracy(rel=2)),
]


def test_its_objects_are_measures_and_have_its_values():
    """An object is read by what it prints, as ir_measures means it; every value agrees."""
    rng = random.Random(3)  # noqa: S311  a draw of test data
    qrels = {f"q{i}": {f"d{j}": rng.choice((0, 0, 1, 2, 3)) for j in range(30)} for i in range(9)}
    run = {query: dict(zip(rng.sample(list(docs), 25), range(25), strict=True)) for query, docs in qrels.items()}
    run = {query: {doc: float(score) for doc, score in rows.items()} for query, rows in run.items()}
    table = rk.evaluate(qrels, run, measures=ASKED, convention="trec_eval-9.0.8").per_query
    assert list(table) == [str(one) for one in ASKED]
    compared = 0
    for metric in ir_measures.iter_calc(ASKED, qrels, run):
        assert table.loc[metric.query_id, str(metric.measure)] == pytest.approx(metric.value, abs=1e-9), metric
        compared += 1
    assert compared == 9 * len(ASKED)


def test_an_object_says_whose_name_it_is():
    """Names that are ambiguous as text are not as objects; one alone is taken too."""
    assert str(measure(SetF(beta=4))) == "F(beta=2)"
    assert str(measure(RBP @ 10)) == "RBP(p=0.8)@10"
    assert str(measure(RBP(rel=2) @ 10)) == "RBP(p=0.8, rel=2)@10"
    assert str(measure(Accuracy)) == "PairAccuracy"
    assert measures(nDCG @ 10) == [("nDCG@10", measure("nDCG@10"))]


def test_every_name_of_ir_measures_is_in_the_catalogue():
    """The catalogue has the names that it shares with ir_measures, too."""
    listed = set(re.findall(r"[^\W\d][\w-]*", " ".join(list_measures().spellings)))
    missing = [name for name in ir_measures.measures.base.registry if name not in listed]
    assert missing == ["ERR"]  # which has no default for the greatest grade here
