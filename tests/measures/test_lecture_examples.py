"""The worked examples of the lectures, through the public API, fractions exact."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput

TWO_QUERIES = {
    "q1": ([1, 1, 0, 1, 0, 0], 3),
    "q2": ([0, 1, 0, 0, 1, 0], 2),
}
LECTURE_GAINS = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0]


def ranked(relevance, *measures, **options):
    """Score one query whose rows stand in rank order."""
    falling = -np.arange(len(relevance))
    ev = rk.evaluate(relevance, falling, qid=np.zeros(len(relevance), dtype=int), measures=list(measures), **options)
    values = ev.per_query.iloc[0].tolist()
    return values[0] if len(values) == 1 else values


def exact(value):
    """Return the simple fraction that a float is the nearest number of."""
    fraction = Fraction(value).limit_denominator(10_000)
    assert float(fraction) == value
    return fraction


@each_row(
    ("query", "precisions", "recalls"),
    [
        ("q1", "1/1 2/2 2/3 3/4 3/5 3/6", "1/3 2/3 2/3 3/3 3/3 3/3"),
        ("q2", "0/1 1/2 1/3 1/4 2/5 2/6", "0/2 1/2 1/2 1/2 2/2 2/2"),
    ],
)
def test_two_queries_pr(query, precisions, recalls):
    """Precision and recall at each rank of the two rankings."""
    relevance, _ = TWO_QUERIES[query]
    for k, (precision, recall) in enumerate(zip(precisions.split(), recalls.split(), strict=True), start=1):
        assert exact(ranked(relevance, f"P@{k}")) == Fraction(precision)
        assert exact(ranked(relevance, f"R@{k}")) == Fraction(recall)


def test_two_queries_rprec_and_ap():
    """R-precision 2/3 and 1/2, AP 11/12 and 9/20, MAP 41/60."""
    rows = [(query, label) for query, (relevance, _) in TWO_QUERIES.items() for label in relevance]
    qid, y = zip(*rows, strict=True)
    ev = rk.evaluate(y, -np.arange(len(y)), qid=qid, measures=["Rprec", "AP"])
    assert [exact(value) for value in ev.per_query["Rprec"]] == [Fraction(2, 3), Fraction(1, 2)]
    assert [exact(value) for value in ev.per_query["AP"]] == [Fraction(11, 12), Fraction(9, 20)]
    assert exact(ev.aggregate()["AP"]) == Fraction(41, 60)


def test_harmonic_all_docs():
    """Returning all of 10,000 documents with one relevant: the arithmetic mean flatters, F does not."""
    relevance = [1, *[0] * 9_999]
    precision, recall, f = ranked(relevance, "P", "R", "F")
    assert (precision, recall) == (0.0001, 1.0)
    assert (precision + recall) / 2 == pytest.approx(0.50005, abs=1e-15)
    assert f == pytest.approx(0.00019998000199980003, rel=1e-14)


def test_p20_bound():
    """With 8 relevant documents P@20 is 0.4 at the most."""
    assert ranked([1] * 8 + [0] * 12, "P@20") == 0.4


def test_f_limits_and_beta_alpha():
    """F is precision at alpha 1, recall at alpha 0, the harmonic mean at 1/2, which is beta 1."""
    relevance = [1, 0, 1, 0, 0]
    qrels = {"q": {f"d{place}": label for place, label in enumerate([*relevance, 1, 1])}}
    run = {"q": {f"d{place}": -float(place) for place in range(5)}}
    names = ["P", "R", "F(alpha=1)", "F(alpha=0)", "F(alpha=0.5)", "F", "F(beta=2)", "F(alpha=0.2)"]
    value = rk.evaluate(qrels, run, measures=names).per_query.iloc[0]
    assert value["F(alpha=1)"] == value["P"] == 0.4
    assert value["F(alpha=0)"] == value["R"] == 0.5
    assert value["F(alpha=0.5)"] == value["F"] == pytest.approx(2 * 0.4 * 0.5 / 0.9, rel=1e-15)
    # beta^2 = (1 - alpha) / alpha
    assert value["F(beta=2)"] == pytest.approx(value["F(alpha=0.2)"], rel=1e-15)
    with pytest.raises(InvalidInput, match="beta or alpha, not both"):
        rk.evaluate(qrels, run, measures="F(beta=2, alpha=0.3)")


def test_f_example():
    """18 relevant of 20 retrieved, 82 missed: P .9, R .18, F .3."""
    qrels = {"q": {f"d{place}": 1 for place in range(100)}}
    run = {"q": {f"d{place}": 1 / (1 + place) for place in [*range(18), 1000, 1001]}}
    value = rk.evaluate(qrels, run, measures=["P", "R", "F"]).per_query.iloc[0]
    assert [exact(one) for one in value] == [Fraction(9, 10), Fraction(9, 50), Fraction(3, 10)]


def test_model_ab_p5():
    """Two rankings with two relevant documents in the top five have the same P@5."""
    assert ranked([1, 0, 1, 0, 0, 0], "P@5") == ranked([0, 0, 0, 1, 1, 1], "P@5") == 0.4


def test_map_unrounded():
    """APs .6222 and .4429."""
    assert ranked([1, 0, 1, 0, 0, 1, 0, 0, 1, 1], "AP") == pytest.approx(0.6222222222222222, abs=1e-15)
    assert ranked([0, 1, 0, 0, 1, 0, 1, 0, 0, 0], "AP") == pytest.approx(0.44285714285714284, abs=1e-15)


def test_rprec_20():
    """20 relevant, 5 of them in the top 20."""
    assert ranked([1] * 5 + [0] * 15 + [1] * 15, "Rprec") == 0.25


def test_rr():
    """The first relevant document at rank k gives 1/k."""
    for k in range(1, 12):
        assert exact(ranked([0] * (k - 1) + [1, 0, 1], "RR")) == Fraction(1, k)


def test_dcg_10():
    """The lecture's DCG, rel_1 + sum rel_i / log2(i), at each rank."""
    upto = [3, 5, 6.892789260714372, 6.892789260714372, 6.892789260714372]
    upto += [7.279642067948914, 7.992056442164959, 8.658723108831625, 9.605117739188811, 9.605117739188811]
    for k, value in enumerate(upto, start=1):
        assert ranked(LECTURE_GAINS, f"DCG(discount='log_rank')@{k}") == pytest.approx(value, abs=1e-14)
    assert ranked(LECTURE_GAINS, "DCG(discount='log_rank', base=10)") == 16.0


def test_ndcg_four_docs():
    """The lecture's models A and B: nDCG 1 exactly, and .9203."""
    assert ranked([2, 2, 1, 0], "DCG(discount='log_rank')") == pytest.approx(4.630929753571458, abs=1e-14)
    assert ranked([2, 1, 2, 0], "DCG(discount='log_rank')") == pytest.approx(4.2618595071429155, abs=1e-14)
    assert ranked([2, 2, 1, 0], "nDCG(discount='log_rank')") == 1.0
    assert ranked([2, 1, 2, 0], "nDCG(discount='log_rank')") == pytest.approx(0.9203032077642922, abs=1e-14)


def test_dcg_exponential_form():
    """Sum of (2^rel - 1)/log2(1 + rank) over the lecture's list, its ideal, and nDCG <= 1 with a base that cancels."""
    value, share = ranked(LECTURE_GAINS, "DCG(gain='exp')", "nDCG(gain='exp')")
    assert value == pytest.approx(16.8026010478, abs=1e-9)
    assert value / share == pytest.approx(18.7710512656, abs=1e-9)
    assert share == pytest.approx(ranked(LECTURE_GAINS, "nDCG(gain='exp', base=10)"), rel=1e-14)
    assert ranked(LECTURE_GAINS, "DCG") == pytest.approx(8.3188, abs=5e-5)


def test_qrels_sample(tmp_path):
    """14 lines of qrels: 7 relevant at level 1, one at level 2."""
    labels = [1, 1, 1, 0, 2, 0, 0, 1, 1, 0, 1, 0, 0, 0]
    path = tmp_path / "sample.qrels"
    path.write_text("".join(f"1 0 {1065003 + place} {label}\n" for place, label in enumerate(labels)))
    qrels = rk.Qrels.read(path)
    run = {"1": {str(1065003 + place): float(place) for place in range(14)}}
    ev = rk.evaluate(qrels, run, measures=["NumQ", "NumRel", "NumRel(rel=2)", "NumRet", "NumRelRet(rel=2)"])
    assert len(qrels) == 14
    assert ev.aggregate().tolist() == [1, 7, 1, 14, 1]


@pytest.mark.shared
def test_the_numbers_above_are_those_of_the_collection(shared: Path):
    """Every example tested here stands in the shared file with the same figures."""
    examples = {one["id"]: one for one in json.loads((shared / "seed_examples.json").read_text())["examples"]}
    for query, (relevance, total) in TWO_QUERIES.items():
        example = examples[f"two_queries_pr_{query}"]
        assert (example["inputs"]["relevance"], example["inputs"]["total_relevant"]) == (relevance, total)
        for row in example["expected"]["per_rank"]:
            assert exact(ranked(relevance, f"P@{row['k']}")) == Fraction(row["precision"])
            assert exact(ranked(relevance, f"R@{row['k']}")) == Fraction(row["recall"])
        assert exact(ranked(relevance, "Rprec")) == Fraction(
            examples[f"two_queries_rprec_{query}"]["expected"]["r_precision"]
        )
        assert exact(ranked(relevance, "AP")) == Fraction(
            examples[f"two_queries_ap_{query}"]["expected"]["average_precision"]
        )
    for place, value in enumerate(examples["dcg_10"]["expected"]["dcg"], start=1):
        assert ranked(LECTURE_GAINS, f"DCG(discount='log_rank')@{place}") == pytest.approx(value, abs=1e-14)
    assert Fraction(examples["two_queries_map"]["expected"]["map"]) == Fraction(41, 60)
    lines = examples["qrels_sample"]["inputs"]["lines"]
    assert [int(line.split()[3]) for line in lines] == [1, 1, 1, 0, 2, 0, 0, 1, 1, 0, 1, 0, 0, 0]


def test_harmonic_figure():
    """At P = R = .7 all means are .7; elsewhere minimum <= harmonic <= geometric <= arithmetic <= maximum."""
    qrels = {"q": {f"d{place}": 1 for place in range(10)}}
    for hits in range(11):
        run = {"q": {f"d{place if place < hits else place + 100}": -float(place) for place in range(10)}}
        precision, recall, f = rk.evaluate(qrels, run, measures=["P", "R", "F"]).scores[0]
        if hits == 7:
            assert [exact(one) for one in (precision, recall, f)] == [Fraction(7, 10)] * 3
    for retrieved in (8, 20, 35):
        run = {"q": {f"d{place if place < 7 else place + 100}": -float(place) for place in range(retrieved)}}
        precision, recall, f = rk.evaluate(qrels, run, measures=["P", "R", "F"]).scores[0]
        assert recall == 0.7
        low, high = sorted([precision, recall])
        assert low <= f <= np.sqrt(precision * recall) <= (precision + recall) / 2 <= high


def test_map_rounded():
    """APs that print as .62 and .44, MAP as .53."""
    qrels = {
        "q1": {f"d{rank}": 1 for rank in (1, 3, 6, 9, 10)},
        "q2": {f"d{rank}": 1 for rank in (2, 5, 7)},
    }
    run = {query: {f"d{rank}": -float(rank) for rank in range(1, 11)} for query in qrels}
    ev = rk.evaluate(qrels, run, measures="AP@10")
    assert [f"{value:.2f}" for value in ev.scores[:, 0]] == ["0.62", "0.44"]
    assert f"{ev.mean().iloc[0]:.2f}" == "0.53"


@pytest.mark.shared
def test_trec_eval_listing(shared: Path):
    """The names of trec_eval 8 are those of today under its convention."""
    examples = {one["id"]: one for one in json.loads((shared / "seed_examples.json").read_text())["examples"]}
    names = examples["trec_eval_listing"]["expected"]["current_names"]
    assert {line["name"] for line in examples["trec_eval_listing"]["inputs"]["lines"]} == set(names)
    for old, new in names.items():
        assert rk.measure(old, "trec_eval-9.0.8") == rk.measure(new, "trec_eval-9.0.8")
    assert len(names) == 28


def test_trec_eval_listing_consistency():
    """30 topics of 1,000 documents with 1,555 of 3,875 relevant ones: micro recall .4013, micro precision .0518."""
    found = [1555 // 30 + (topic < 1555 % 30) for topic in range(30)]
    known = [3875 // 30 + (topic < 3875 % 30) for topic in range(30)]
    qrels = {str(topic): {f"d{place}": 1 for place in range(known[topic])} for topic in range(30)}
    run = {
        str(topic): {f"d{place if place < found[topic] else place + 1000}": -float(place) for place in range(1000)}
        for topic in range(30)
    }
    counts = rk.evaluate(qrels, run, measures=["num_q", "num_ret", "num_rel", "num_rel_ret"]).aggregate()
    assert counts.tolist() == [30, 30_000, 3875, 1555]
    micro = rk.analysis.contingency_table(qrels, run).micro()
    assert micro["recall"] == pytest.approx(0.4012903225806452, abs=1e-15)
    assert micro["precision"] == pytest.approx(0.051833333333333335, abs=1e-15)


@pytest.mark.shared
def test_collection_facts(shared: Path):
    """Cranfield has 225 queries."""
    qrels = rk.Qrels.read(shared / "cranfield" / "qrels.graded.txt.gz")
    run = rk.Run.read(shared / "cranfield" / "runs" / next((shared / "cranfield" / "runs").glob("bm25_k12*")).name)
    assert rk.evaluate(qrels, run, measures="NumQ").aggregate().iloc[0] == 225
