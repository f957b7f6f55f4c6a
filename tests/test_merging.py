"""An evaluation is a sum over disjoint queries: parts, however cut, give the evaluation of all rows bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.evaluation import to_bytes
from rankeval.evaluation.merging import merged
from rankeval.evaluation.result import aggregates

MEASURES = ["nDCG@10", "AP", "RR", "P@5", "gm_AP", "nDCG(gain={1: 3})@5", "NumRel", "ERR(max_rel=3)"]


def rows(seed: int, ids=int):
    """Return labels (some below 0, some queries without a relevant one), scores with ties, and ids."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 30, 40)
    qid = np.repeat(rng.permutation(100)[:40], lengths)
    y = rng.integers(-1, 3, len(qid)) * (qid % 4 != 0)
    return y, np.round(rng.normal(size=len(qid)), 1), np.array([ids(one) for one in qid])


def cut(y, score, qid, part, **how):
    return [rk.evaluate(y[part == one], score[part == one], qid=qid[part == one], **how) for one in np.unique(part)]


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 10**6), parts=st.integers(1, 6), ids=st.sampled_from([int, str, float]))
@pytest.mark.parametrize("no_relevant", ["zero", "skip", "one"])
def test_parts_give_the_whole_bit_for_bit(no_relevant, seed, parts, ids):
    y, score, qid = rows(seed, ids)
    how = {"measures": MEASURES, "no_relevant": no_relevant, "name": "s"}
    whole = rk.evaluate(y, score, qid=qid, **how)
    numbers = np.unique(qid, return_inverse=True)[1]
    part = np.random.default_rng(seed).integers(0, parts, numbers.max() + 1)[numbers]
    again = merged(cut(y, score, qid, part, **how))
    assert to_bytes(again) == to_bytes(whole)
    assert aggregates(again) == aggregates(whole)
    assert (again.facts.totals(), again.excluded, again.undefined, again.notes) == (
        whole.facts.totals(),
        whole.excluded,
        whole.undefined,
        whole.notes,
    )


@pytest.mark.usefixtures("without_formula")
def test_errors_of_drawn_orders_and_weights_are_kept():
    y, score, qid = np.tile(np.repeat([1, 0], [8, 12]), 10), np.zeros(200), np.repeat(np.arange(10), 20)
    score[qid == 1] = np.arange(20)  # this query is exact, alone in its part or not
    how = {"measures": ["SquaredAP", "P@1"], "query_weight": {one: 1.0 + one % 3 for one in range(100)}}
    whole = rk.evaluate(y, score, qid=qid, **how)
    assert (whole.facts.errors[:, 0] > 0).sum() == 9
    assert to_bytes(merged(cut(y, score, qid, qid == 1, **how))) == to_bytes(whole)
    assert to_bytes(merged(cut(y, score, qid, qid % 5, **how))) == to_bytes(whole)


def test_parts_that_do_not_belong_together_are_refused():
    one = rk.evaluate([1, 0], [2, 1], qid=[1, 1], measures="RR")
    for other, said in (
        (rk.evaluate([1, 0], [2, 1], qid=[1, 1], measures="RR"), r"1 queries are twice \(1\)"),
        (rk.evaluate([1, 0], [2, 1], qid=[2, 2], measures="AP"), "part 1 and part 0 differ in measures"),
        (rk.evaluate([1, 0], [2, 1], qid=[2, 2], measures="RR", ties="worst"), "in the convention"),
        (rk.evaluate([1, 0], [2, 1], qid=[2, 2], measures="RR", query_weight={2: 1.0}), "have weights"),
        (rk.evaluate([1, 0], [2, 1], qid=["2", "2"], measures="RR"), "texts in some parts"),
        (rk.evaluate([1, 0], [2, 1], qid=[2, 3], measures="RR").subset([2]), "is a subset"),
    ):
        with pytest.raises(InvalidInput, match=said):
            merged([one, other])
    with pytest.raises(InvalidInput, match="found none"):
        merged([])
