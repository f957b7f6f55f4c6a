"""What ir_measures calls a measure, parameters included, is read as what it computes."""

from __future__ import annotations

import random
import re

import ir_measures
import pytest
from golden.peers import ir_measures_values
from ir_measures import AP, RR, Accuracy, IPrec, NumRet, P, R, SetF, SetP, SetR, nDCG
from tables import each_row

import rankeval as rk
from rankeval.errors import AmbiguousName, InvalidInput, UnknownName
from rankeval.measures import list_measures, measure


@each_row(
    ("name", "ours"),
    [
        ("SetP(rel=2)", "P(rel=2)"),
        ("SetRelP(rel=2)", "RelP(rel=2)"),
        ("SetR(rel=2)", "R(rel=2)"),
        ("SetF(rel=2)", "F(rel=2)"),
        ("IPrec(rel=2)@0.5", "IPrec(recall=0.5, rel=2)"),
        ("NumRet", "NumRet"),
        ("NumRet(rel=1)", "NumRelRet"),
        ("NumRet(rel=2)", "NumRelRet(rel=2)"),
        ("MRR(rel=2)@10", "RR(rel=2)@10"),
        ("MAP(rel=2)", "AP(rel=2)"),
        ("MAP()", "AP"),
        ("Precision(rel=2)@5", "P(rel=2)@5"),
        ("\N{GREEK SMALL LETTER ALPHA}_nDCG(alpha=0.9)@10", "alpha_nDCG(alpha=0.9)@10"),
    ],
)
def test_its_names_with_our_parameters_are_read(name, ours):
    """Each form is one of our measures, and prints as it."""
    assert str(measure(name)) == ours
    assert measure(ours) == measure(name)


@each_row(
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


@each_row(
    ("name", "error", "says"),
    [
        ("nDCG(dcg='exp-log2')@10", InvalidInput, "dcg of ir_measures is .* gain='linear' or gain='exp'"),
        ("NDCG(dcg='log2')", InvalidInput, "dcg of ir_measures is .* gain='linear' or gain='exp'"),
        ("SDCG(dcg='log2',max_rel=3)@10", InvalidInput, "dcg of ir_measures is"),
        ("nDCG(gains={0:0,1:3})@10", InvalidInput, r"gains of ir_measures is .* gain=\{1: 1, 2: 3\}"),
        ("SetP(relative=True)", InvalidInput, "relative of ir_measures is .* RelP"),
        ("SetF(rel=2, beta=4)", InvalidInput, r"beta of ir_measures is the square of our beta: write F\(beta="),
        ("SetP(rel=2)@5", InvalidInput, "SetP is 'P' here"),
        ("SetP(rell=2)", UnknownName, "did you mean 'rel'"),
        ("SetF(beta=4)", AmbiguousName, "F\\(beta=2\\) \\(ir_measures\\); F\\(beta=4\\)"),
        ("IPrec(rel=2)@5", InvalidInput, "from 0 to 1"),
    ],
)
def test_other_parameters_of_it_are_refused_with_our_way_to_write_them(name, error, says):
    """In one line, with what could be meant."""
    with pytest.raises(error, match=says):
        rk.evaluate([1], [1.0], qid=[1], measures=name)


ASKED = [
    *(P @ 5, P(rel=2) @ 5, R @ 10, RR, RR(rel=2) @ 10, AP, AP(rel=2) @ 20, NumRet, NumRet(rel=1), NumRet(rel=2)),
    *(nDCG @ 10, SetP, SetP(rel=2), SetR(rel=2), SetF(rel=2), IPrec @ 0.5, IPrec(rel=2) @ 0.5),
]


def test_what_its_measures_print_is_read_and_has_its_values():
    """The name of a measure of ir_measures is read as it is; every value agrees."""
    rng = random.Random(3)  # noqa: S311  a draw of test data
    qrels = {f"q{i}": {f"d{j}": rng.choice((0, 0, 1, 2, 3)) for j in range(30)} for i in range(9)}
    run = {query: dict(zip(rng.sample(list(docs), 25), range(25), strict=True)) for query, docs in qrels.items()}
    run = {query: {doc: float(score) for doc, score in rows.items()} for query, rows in run.items()}
    # Names that several measures share are given in our own words; ir_measures calls beta squared beta.
    ours = {
        **{one: str(one) for one in ASKED},
        nDCG(gains={0: 0, 1: 3}) @ 10: "nDCG(gain={0: 0, 1: 3})@10",
        nDCG(gains={1: 3, 2: 7, 3: 20}): "nDCG(gain={1: 3, 2: 7, 3: 20})",
        SetP(relative=True): "RelP",
        SetF(beta=4.0): "F(beta=2)",
        SetF(beta=0.25, rel=2): "F(beta=0.5, rel=2)",
        Accuracy @ 10: "PairAccuracy@10",
        Accuracy(rel=2): "PairAccuracy(rel=2)",
    }
    table = rk.evaluate(qrels, run, measures=list(ours.values()), convention="trec_eval-9.0.8").per_query
    assert list(table) == list(ours.values())
    compared = 0
    for query, one, value in ir_measures_values(list(ours), qrels, run):
        assert table.loc[query, ours[one]] == pytest.approx(value, abs=1e-9), (query, one)
        compared += 1
    assert compared == 9 * len(ours)


def test_every_name_of_ir_measures_is_in_the_catalogue():
    """The catalogue has the names that it shares with ir_measures, too."""
    listed = set(re.findall(r"[^\W\d][\w-]*", " ".join(list_measures().spellings)))
    missing = [name for name in ir_measures.measures.base.registry if name not in listed]
    assert missing == ["ERR"]  # which has no default for the greatest grade here
