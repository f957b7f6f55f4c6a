"""Measures beside those of trec_eval: worked examples, other tools' own values, and what they refuse."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput


def ranked(relevance, *measures, **options):
    """Score one query whose rows stand in rank order."""
    falling = -np.arange(len(relevance), dtype=float)
    ev = rk.evaluate(relevance, falling, qid=np.zeros(len(relevance), dtype=int), measures=list(measures), **options)
    values = ev.per_query.iloc[0].tolist()
    return values[0] if len(values) == 1 else values


def test_the_normalizers_of_average_precision():
    """Hits at ranks 1 and 3, k = 5 and R = 10: .1667 by R, .3333 by min(R, k) and by k, .8333 by the hits seen."""
    relevance = [1, 0, 1, 0, 0, *[1] * 8]
    names = [f"AP(normalizer={one!r})@5" for one in ("R", "min", "k", "hits")]
    assert ranked(relevance, *names) == pytest.approx([1 / 6, 1 / 3, 1 / 3, 5 / 6], abs=1e-15)
    assert ranked(relevance, "AP@5") == ranked(relevance, "AP(normalizer='R')@5")
    with pytest.raises(InvalidInput, match=r"write AP\(normalizer='k'\)@10"):
        ranked(relevance, "AP(normalizer='k')")


@pytest.mark.shared
def test_ap_vector(shared: Path):
    """The lecture's running average: 67/126 at rank 7."""
    examples = {one["id"]: one for one in json.loads((shared / "seed_examples.json").read_text())["examples"]}
    example = examples["ap_vector"]
    relevance = example["inputs"]["relevance"]
    value = ranked(relevance, "AP(normalizer='hits')@7")
    assert Fraction(value).limit_denominator(1000) == Fraction(example["expected"]["average_precision_exact"])
    for row in example["expected"]["per_rank"]:
        value = ranked(relevance, f"AP(normalizer='hits')@{row['k']}")
        assert value == pytest.approx(row["running_average"], abs=1e-15)
        assert ranked(relevance, f"P@{row['k']}") == float(Fraction(row["precision"]))


def test_a_list_without_a_hit_is_worth_0_and_is_no_0_by_0():
    """There was something to find: 0 is the value, and nothing is counted as undefined."""
    ev = rk.evaluate({"q": {"d": 1}}, {"q": {"x": 1.0}}, measures=["F", "F(alpha=0.3)@5", "P", "R", "AP", "RR", "nDCG"])
    assert not ev.per_query.to_numpy().any()
    assert not any(ev.undefined.values())


def test_accuracy_trap():
    """Nothing retrieved, one of 10,000 relevant: accuracy 0.9999, recall 0; without the collection's size an error."""
    qrels = {"q": {"d1": 1}, "p": {"d2": 1}}
    run = {"p": {"d2": 1.0}}
    ev = rk.evaluate(qrels, run, measures=["Accuracy(collection_size=10000)", "R", "P"])
    assert ev.per_query.loc["q"].tolist() == [0.9999, 0.0, 0.0]
    assert ev.undefined["P"] == 1
    assert ev.per_query.loc["p"].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(InvalidInput, match="Accuracy needs collection_size"):
        rk.evaluate(qrels, run, measures="Accuracy")
    with pytest.raises(InvalidInput, match="give the number of documents in the whole collection"):
        rk.evaluate({"q": {"a": 1, "b": 1, "c": 1}}, {"q": {"a": 1.0}}, measures="Accuracy(collection_size=2)")


def test_accuracy_of_the_table():
    """18 true and 2 false positives, 82 missed, 10^9 true negatives: accuracy 0.9999999160000086."""
    qrels = {"q": {f"d{place}": 1 for place in range(100)}}
    run = {"q": {f"d{place}": 1 / (1 + place) for place in [*range(18), 1000, 1001]}}
    size = 18 + 2 + 82 + 1_000_000_000
    values = rk.evaluate(
        qrels, run, measures=[f"Accuracy(collection_size={size})", f"FallOut(collection_size={size})"]
    ).per_query.iloc[0]
    assert values.tolist() == pytest.approx([0.9999999160000086, 2 / 1_000_000_002], rel=1e-15)


def test_expected_reciprocal_rank_asks_for_the_greatest_grade():
    """The grade's maximum is never taken from the data; gdeval's convention gives 4."""
    with pytest.raises(InvalidInput, match="ERR@10 needs max_rel, which is not guessed"):
        ranked([1, 0], "ERR@10")
    with pytest.raises(InvalidInput, match="max_rel=2, and a document of grade 3"):
        ranked([3, 0], "ERR(max_rel=2)")
    # 7/16 at once; else 1/16 at rank 3 with what is left.
    assert ranked([3, 0, 1], "ERR(max_rel=4)") == pytest.approx(7 / 16 + (9 / 16) * (1 / 16) / 3, abs=1e-15)


def test_p_found_by_hand():
    """With stopping chances .5 and .25 and one in five leaving: .5 + .8 * .5 * .25."""
    value = ranked([0.5, 0.25], "pFound(max_rel=1, gain='linear', p_break=0.2)")
    assert value == pytest.approx(0.5 + 0.8 * 0.5 * 0.25, abs=1e-15)


@pytest.mark.needs("catboost")
def test_p_found_equals_catboost():
    """As CatBoost's own metric, on rows without ties."""
    from catboost.utils import eval_metric

    rng = np.random.default_rng(5)
    y, score, qid = (
        rng.choice([0, 0.25, 0.5, 1.0], 300),
        rng.permutation(300).astype(float),
        np.repeat(np.arange(20), 15),
    )
    theirs = eval_metric(list(y), list(score), "PFound", group_id=list(qid))[0]
    ours = rk.evaluate(y, score, qid=qid, measures="pFound(max_rel=1, gain='linear')").mean().iloc[0]
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_users_with_fixed_weights():
    """SDCG, INSQ and NCG over a list of two, by hand."""
    assert ranked([2, 0, 1], "SDCG(max_rel=2)@2") == pytest.approx(1 / (1 + 1 / np.log2(3)), abs=1e-15)
    weights = 1 / (np.arange(1, 1001) + 1.0) ** 2
    assert ranked([2, 0, 1], "INSQ(max_rel=2)") == pytest.approx(
        (weights[0] + weights[2] / 2) / weights.sum(), abs=1e-15
    )
    assert ranked([2, 0, 1], "gRBP(max_rel=2, p=0.5)") == 0.5 * (1 + 0.5 * 0.25)
    assert ranked([1, 0, 1], "gRBP(max_rel=1, p=0.5)@2") == ranked([1, 0, 1], "RBP(p=0.5)@2") == 0.5
    assert ranked([2, 0, 1], "NCG@1", "NCG@2", "NCG@3") == pytest.approx([1, 2 / 3, 1], abs=1e-15)


def cwl(gains, continuation, depth):
    """Return sum W g / sum W, straight from the definition."""
    gains = np.concatenate([gains, np.zeros(depth)])[:depth]
    weight, total, mass = 1.0, 0.0, 0.0
    for rank in range(1, depth + 1):
        total += weight * gains[rank - 1]
        mass += weight
        weight *= continuation(rank, gains[rank - 1], gains[:rank].sum())
    return total / mass


@each_row(
    ("name", "continuation", "depth"),
    [
        ("INST(T=2, max_rel=2)", lambda i, _, seen: ((i + 4 - seen - 1) / (i + 4 - seen)) ** 2, 1000),
        ("INSQ(T=2, max_rel=2)", lambda i, _, __: ((i + 3) / (i + 4)) ** 2, 1000),
        ("BPM(max_rel=2)@4", lambda i, _, seen: float(seen < 1 and i < 4), 4),
        ("BPM(T=2, max_rel=2)@10", lambda i, _, seen: float(seen < 2 and i < 10), 10),
        ("NERR8(max_rel=2)@5", lambda _, g, __: 1 - g, 5),
        ("NERR9(max_rel=2)@5", lambda i, g, _: i / (i + 1) * (1 - g), 5),
        ("NERR10(max_rel=2)", lambda _, g, __: 0.9 * (1 - g), 1000),
        ("NERR11(max_rel=2)", lambda i, g, _: ((i + 1) / (i + 2)) ** 2 * (1 - g), 1000),
        ("SDCG(max_rel=2)@6", lambda i, _, __: np.log2(i + 1) / np.log2(i + 2), 6),
    ],
)
def test_users_by_their_chance_to_go_on(name, continuation, depth):
    """Values are the gain per rank looked at, W from the products of C, on random graded lists."""
    rng = np.random.default_rng(1)
    for length in (1, 2, 5, 30):
        y = rng.integers(0, 3, length)
        assert ranked(y, name) == pytest.approx(cwl(y / 2, continuation, depth), abs=1e-12)


def test_compatibility_and_pair_accuracy_equal_ir_measures():
    """As ir_measures' own providers, topic by topic, unretrieved documents included."""
    import ir_measures

    rng = np.random.default_rng(7)
    qrels = {f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in range(12)} for q in range(15)}
    run = {q: {f"d{d}": float(s) for d, s in zip(range(3, 20), rng.permutation(17) + 1)} for q in qrels}  # noqa: B905
    theirs = {
        "Compat(p=0.9, depth=None)": ir_measures.Compat(p=0.9),
        "Compat(p=0.9, normalize=False, depth=None)": ir_measures.Compat(p=0.9, normalize=False),
        "PairAccuracy": ir_measures.Accuracy,
        "PairAccuracy(rel=2)@10": ir_measures.Accuracy(rel=2) @ 10,
        "Judged@10": ir_measures.Judged @ 10,
        "Judged": ir_measures.Judged,
    }
    ours = rk.evaluate(qrels, run, measures=list(theirs)).per_query
    for name, one in theirs.items():
        values = {row.query_id: row.value for row in one.iter_calc(qrels, run)}
        assert len(values) > 10
        for topic, value in values.items():
            assert ours.at[topic, name] == pytest.approx(value, abs=1e-12), (name, topic)


def test_pairs_and_positions_by_hand():
    """Grades 2 0 1: two of three unlike pairs in order; mean place (1*2 + 3*1)/3; tied pairs count half."""
    assert ranked([2, 0, 1], "OPA", "ARP") == pytest.approx([2 / 3, 5 / 3], abs=1e-15)
    tied = rk.evaluate([2, 0, 1], [1, 1, 1], qid=[0, 0, 0], measures=["OPA", "PairAccuracy", "ARP"]).per_query.iloc[0]
    assert tied.tolist() == pytest.approx([0.5, 0.5, 2.0], abs=1e-15)


def test_large_groups_of_tied_rows_are_averaged_over_the_same_orders_every_time():
    """More orders than can be gone through are drawn from a fixed seed: equal values, close to the true mean."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 40)
    first, again = (
        rk.evaluate(y[rows], np.zeros(40), qid=np.zeros(40), measures="INST(max_rel=2)").mean().iloc[0]
        for rows in (np.arange(40), rng.permutation(40))
    )
    assert first == again
    draws = [ranked(rng.permutation(y), "INST(max_rel=2)") for _ in range(300)]
    assert abs(first - np.mean(draws)) < 4 * np.std(draws, ddof=1) * np.sqrt(1 / 300 + 1 / 400)
