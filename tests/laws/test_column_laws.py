"""Laws of the measures that read columns of the rows: whatever is declared, and a measure of one's own."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.test_measure_laws import column_members, rankings
from laws.test_tie_laws import all_orders

import rankeval as rk
from rankeval.measures import Column, family
from rankeval.measures.family import FAMILIES

NAMES = [name for name in column_members() if "€" not in name]
PRICES = st.floats(-1e6, 1e6, allow_subnormal=False)


PRICED_HIT = family(
    "PricedHit",
    title="price of the best hit, squared",
    formula="an example that is not linear",
    source="this test",
    bounds=(0.0, np.inf),
    expected="orders",
)


def priced_hit(judged, *, price: Column, rel=1, cutoff: int = 2):
    """Square of the sum of the prices of the relevant rows within the cut-off."""
    counts = np.where(judged.code >= judged.threshold(rel), price.values, 0.0)
    return judged.discounted_rows(counts, np.ones(cutoff), cutoff) ** 2


PRICED_HIT(priced_hit)
del FAMILIES["PricedHit"]  # other tests walk over all measures


@st.composite
def priced(draw, **options):
    """Draw rows with labels, scores that often tie, ids, and prices, some of them equal, some below 0."""
    y, score, qid = draw(rankings(**options))
    some = st.one_of(st.integers(-2, 3).map(float), PRICES)
    return y, score, qid, np.array(draw(st.lists(some, min_size=len(y), max_size=len(y))))


def values(y, score, qid, price, names=NAMES, **options):
    return rk.evaluate(y, score, qid=qid, columns={"price": price}, measures=names, **options).per_query


def by_hand(rows, *, cutoff=None, rel=None, discount="none", base=2):
    """Compute Gain for rows that stand in rank order, as Python would."""
    total = 0.0
    for rank, (label, price) in enumerate(rows[:cutoff], start=1):
        factor = {"none": 1.0, "log2": np.log(base) / np.log(rank + 1)}.get(discount)
        if factor is None:
            factor = 1.0 if rank < base else np.log(base) / np.log(rank)
        total += factor * price if rel is None or label >= rel else 0.0
    return total


@given(priced(max_rows=6))
@settings(max_examples=examples(60), deadline=None)
def test_expected_is_the_mean_over_all_orders_by_hand(data):
    """ties='expected' is the mean over every order of the tied rows, gone through one by one."""
    y, score, _, price = data
    orders = all_orders(score)
    scale = 1 + np.abs(price).sum()
    found = values(y, score, np.zeros(len(y)), price).iloc[0]
    for name, value in found.items():
        given_parameters = {key: of for key, of in rk.measure(name).parameters if key != "column"}
        wanted = np.mean([by_hand(list(zip(y[one], price[one], strict=True)), **given_parameters) for one in orders])
        assert value == pytest.approx(wanted, abs=1e-12 * scale), name


@given(priced(max_rows=5))
@settings(max_examples=examples(30), deadline=None)
def test_orders_are_enumerated_for_a_measure_that_is_not_linear(data):
    """expected='orders' sees the columns too: rows of one label and two prices are rows of two kinds."""
    y, score, _, price = data
    FAMILIES["PricedHit"] = PRICED_HIT
    try:
        names = ["PricedHit(price='price')@1", "PricedHit(price='price')@2", "PricedHit(price='price', rel=2)@3"]
        found = values(y, score, np.zeros(len(y)), price, names).iloc[0]
        orders = np.array(list(permutations(range(len(y)))))
        qid = np.repeat(np.arange(len(orders)), len(y))
        each = values(
            *(column[orders].ravel() for column in (y, score)), qid, price[orders].ravel(), names, ties="stable"
        )
    finally:
        del FAMILIES["PricedHit"]
    np.testing.assert_allclose(found, each.mean(), rtol=1e-9, atol=1e-9)


@given(priced(), st.randoms())
@settings(max_examples=examples(60), deadline=None)
def test_the_order_of_rows_does_not_matter_to_the_last_bit(data, random):
    """Rows may stand in any order, also among tied rows: Spark and files have none to keep."""
    y, score, qid, price = data
    order = list(range(len(y)))
    random.shuffle(order)
    before, after = values(y, score, qid, price), values(*(column[order] for column in data))
    np.testing.assert_array_equal(after, before)


@given(priced())
@settings(max_examples=examples(40), deadline=None)
def test_stable_and_docid_break_ties_by_row_and_by_document(data):
    """ties='stable' keeps the order of rows, ties='docid' ranks tied rows by descending ids."""
    y, score, qid, price = data
    names = ["Gain(column='price')@2", "Gain(column='price', rel=1)@2"]
    docid = np.array([f"d{row * 7 % 10}" for row in range(len(y))])
    if len(y) > 10 or len(set(docid)) < len(docid):
        docid = np.array([f"d{row:03}" for row in range(len(y))])
    stable = values(y, score, qid, price, names, ties="stable")
    cut = rk.Convention("cut", ties="stable", depth=2)
    np.testing.assert_array_equal(values(y, score, qid, price, names, convention=cut), stable)
    by_docid = values(y, score, qid, price, names, ties="docid", docid=docid)
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        kept = sorted(rows, key=lambda row: -score[row])
        named = sorted(sorted(rows, key=lambda row: docid[row], reverse=True), key=lambda row: -score[row])
        for table, ranked in ((stable, kept), (by_docid, named)):
            pairs = [(y[row], price[row]) for row in ranked]
            wanted = by_hand(pairs, cutoff=2), by_hand(pairs, cutoff=2, rel=1)
            assert table.loc[query].tolist() == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("ties", ["expected", "stable"])
def test_chunks_of_any_size_and_lists_of_any_length_give_the_same_bits(monkeypatch, ties):
    """Long lists among short ones, tables and flat lists, few labels and many: the values do not change."""
    rng = np.random.default_rng(3)
    lengths = [1, 500, 3, 2, 40, 1, 7, 300, 5] * 40
    qid = np.repeat(np.arange(len(lengths)), lengths)
    for levels, scores in ((5, 60), (5, 10**6), (300, 60)):
        y, score = rng.integers(0, levels, len(qid)), rng.integers(0, scores, len(qid)).astype(float)
        price = rng.normal(size=len(qid))
        names = ["Gain(column='price')@5", "Gain(column='price', rel=2)@100", "Gain(column='price')", "nDCG@10"]
        whole = values(y, score, qid, price, names, ties=ties)
        alone = rk.evaluate(y, score, qid=qid, measures="nDCG@10", ties=ties).per_query["nDCG@10"]
        np.testing.assert_array_equal(whole["nDCG@10"], alone)
        each = [values(y, score, qid, price, [name], ties=ties)[name] for name in names]
        np.testing.assert_array_equal(np.column_stack(each), whole)
        order = np.argsort(-score, kind="stable")
        for query in range(20):
            rows = order[qid[order] == query]
            value = price[rows] if ties == "stable" else [price[rows][score[rows] == one].mean() for one in score[rows]]
            assert whole.iloc[query, 0] == pytest.approx(sum(value[:5]), abs=1e-12)
        with monkeypatch.context() as patch:
            patch.setattr("rankeval.join.joined.CHUNK", 400)
            np.testing.assert_array_equal(values(y, score, qid, price, names, ties=ties), whole)


def test_a_depth_cuts_lists_without_ties():
    """A convention's depth looks at rows below the cut-off of the measure."""
    score, price = np.arange(6.0), np.arange(6.0) ** 2
    cut = rk.Convention("cut", ties="stable", depth=4)
    names = ["Gain(column='price')@2", "Gain(column='price')"]
    found = values(np.zeros(6), score, np.zeros(6), price, names, convention=cut)
    assert found.iloc[0].tolist() == [25 + 16, 25 + 16 + 9 + 4]
    assert values(np.zeros(6), score, np.zeros(6), price, names[:1], convention=cut).iloc[0].tolist() == [41]
