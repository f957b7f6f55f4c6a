"""Laws that hold for every measure there is, whatever is declared: the cases come from the registry."""

from __future__ import annotations

import inspect
import pickle
from itertools import permutations, product

import numpy as np
import pytest
from circles import choose, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.measures import measure, measure_from_key
from rankeval.measures.family import FAMILIES, Family

VARIANTS = {
    "cutoff": (1, 3, 10, 50),
    "column": ("price", "price (€)"),
    "Gain.rel": (1, 2),
    "Gain.discount": ("log2", "log_rank"),
    "rel": (2,),
    "gain": ("exp", {1: 1, 2: 5, 3: 6}),
    "discount": ("log_rank",),
    "base": (3,),
    "beta": (2,),
    "alpha": (0.3,),
    "max_rel": (4, 5),
    "min_rel": (1,),
    "p_break": (0.5,),
    "T": (2,),
    "depth": (4,),
    "normalize": (False,),
    "collection_size": (1000,),
    "p": (0.8,),
    "recall": (0.2, 1),
    "rule": ("trec_eval-10",),
    "levels": ((0.25, 0.5, 0.75),),
    "multiple": (0.4, 2),
    "a": (3,),
    "b": (-2,),
    "c": (-1,),
    "RBP.gain": ("scaled", "linear"),
    "average": ("pair", "group"),
    "count": ("retrieved",),
    "PrefsR.rule": ("trec_eval",),
    "of": ("AP",),
    "AvgJG.multiple": (),
    "ERR.gain": ("linear",),
    "normalizer": ("min", "hits"),
    "pFound.gain": ("linear",),
}


NO_IDEAL = ("INST", "BPM", "NERR8", "NERR9", "NERR10", "NERR11", "PairAccuracy")
"""Measures per rank looked at: the best document first may make a user stop, or tire, before another good one.
And pairs within a cut-off: with nothing but relevant rows there the value is 0/0."""


BY_CUTOFF = ("P", "F", "Unj", "SDCG")
"""Measures that divide by the cut-off, however short the lists are."""


def members(family: Family) -> list[str]:
    """Return measures of a family: with its defaults, and with each parameter changed in turn."""
    needed = required(family)
    found = [family.with_parameters(**needed)]
    for name in family.defaults:
        chosen = VARIANTS.get(f"{family.name}.{name}", VARIANTS.get(name, ()))
        found += [family.with_parameters(**{**needed, name: value}) for value in chosen]
    return list(dict.fromkeys(str(one) for one in found))


def required(family: Family) -> dict:
    """Return values for the parameters that must be given."""
    return {name: VARIANTS[name][0] for name, default in family.defaults.items() if default is inspect.Parameter.empty}


def all_members() -> list[str]:
    """Return the measures of labels alone; those of aspects and of columns have files of laws of their own."""
    return [name for one in list(FAMILIES.values()) if one.needs in ("grades", "groups") for name in members(one)]


def column_members() -> list[str]:
    """Return the measures that read columns."""
    return [name for one in list(FAMILIES.values()) if one.needs == "columns" for name in members(one)]


@st.composite
def rankings(draw, max_rows=8, levels=4):
    """Draw rows of a few queries with labels, scores that often tie, and ids."""
    n_rows = draw(st.integers(1, max_rows))
    column = lambda values: draw(st.lists(values, min_size=n_rows, max_size=n_rows))  # noqa: E731
    y = np.array(column(st.integers(0, levels - 1)))
    score = np.array(column(st.integers(-2, 2)), dtype=float)
    qid = np.array(column(st.integers(0, 2)))
    return y, score, qid


def values(y, score, qid, names, **options):
    return rk.evaluate(y, score, qid=qid, measures=names, **options).per_query


@given(rankings(), st.randoms())
@settings(max_examples=examples(60), deadline=None)
def test_the_order_of_rows_does_not_matter(data, random):
    """Under the default convention rows may stand in any order, queries in several blocks included."""
    y, score, qid = data
    order = list(range(len(y)))
    random.shuffle(order)
    names = all_members()
    before, after = values(y, score, qid, names), values(y[order], score[order], qid[order], names)
    np.testing.assert_allclose(after, before, atol=1e-12)


@given(rankings())
@settings(max_examples=examples(40), deadline=None)
def test_the_names_of_queries_do_not_matter(data):
    """Ids may be integers, strings or floats: the values are those of the same queries."""
    y, score, qid = data
    names = all_members()
    renamed = np.array([f"topic {9 - one}" for one in qid], dtype=object)
    before, after = values(y, score, qid, names), values(y, score, renamed, names)
    np.testing.assert_array_equal(after.loc[[f"topic {9 - one}" for one in before.index]], before)


@given(rankings(), st.floats(0.01, 100), st.floats(-5, 5))
@settings(max_examples=examples(40), deadline=None)
def test_only_the_order_of_scores_matters(data, factor, shift):
    """A rising function of the scores changes nothing."""
    y, score, qid = data
    names = all_members()
    np.testing.assert_array_equal(values(y, score * factor + shift, qid, names), values(y, score, qid, names))


@given(rankings())
@settings(max_examples=examples(60), deadline=None)
def test_values_stay_within_the_declared_bounds(data):
    """No value leaves its family's bounds."""
    names = all_members()
    table = values(*data, names)
    for name in names:
        low, high = measure(name).family.bounds
        assert table[name].between(low - 1e-12, high + 1e-12).all(), name


@given(rankings(max_rows=6))
@settings(max_examples=examples(40), deadline=None)
def test_expected_is_the_mean_over_all_orders_of_tied_rows(data):
    """ties='expected' equals the mean of ties='stable' over every order of up to six rows."""
    y, score, _ = data
    names = all_members()
    expected = values(y, score, np.zeros(len(y), dtype=int), names).iloc[0]
    orders = np.array(list(permutations(range(len(y)))))  # each a query of its own
    qid = np.repeat(np.arange(len(orders)), len(y))
    stable = rk.Convention("stable", ties="stable")
    all_orders = values(y[orders].ravel(), score[orders].ravel(), qid, names, convention=stable)
    np.testing.assert_allclose(expected, all_orders.mean(), atol=1e-10)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
@settings(max_examples=examples(40), deadline=None)
def test_no_order_beats_the_ideal_one(labels):
    """Rows in descending order of label reach the greatest value that any order reaches; nDCG there is exactly 1."""
    y = np.array(labels)
    names = [name for name in all_members() if measure(name).family.name not in NO_IDEAL]
    orders = np.array([sorted(labels, reverse=True), *sorted(set(permutations(labels)))])
    falling = np.tile(-np.arange(len(y), dtype=float), len(orders))
    table = values(orders.ravel(), falling, np.repeat(np.arange(len(orders)), len(y)), names)
    better = [1 if measure(name).family.greater_is_better else -1 for name in names]
    best = table.iloc[0]
    assert (table * better <= best * better + 1e-12).all().all()
    if y.max() > 0:
        assert best[[name for name in names if name.startswith("nDCG")]].eq(1.0).all()


@given(rankings())
@settings(max_examples=examples(30), deadline=None)
def test_a_cutoff_beyond_every_list_is_like_one_still_deeper(data):
    """What is normalised by the judgments does not change once the cut-off is beyond the longest list."""
    for family in FAMILIES.values():
        if family.needs == "grades" and "cutoff" in family.defaults and family.name not in (*BY_CUTOFF, *NO_IDEAL):
            names = [str(family.with_parameters(**{**required(family), "cutoff": k})) for k in (20, 1000)]
            table = values(*data, names)
            np.testing.assert_allclose(table[names[0]], table[names[1]], atol=1e-12)


@each_row("name", [*all_members(), *column_members()])
def test_names_keys_and_pickles_give_the_measure_back(name):
    """parse(print(m)) = m, from_key(key(m)) = m, unpickle(pickle(m)) = m; keys hold nothing that MLflow refuses."""
    one = measure(name)
    assert str(one) == name
    assert measure_from_key(one.key) == one
    assert pickle.loads(pickle.dumps(one)) == one
    assert set(one.key) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. :")


def test_keys_do_not_collide():
    """Different measures have different keys."""
    names = [*all_members(), *column_members()]
    assert len({measure(name).key for name in names}) == len(set(names))


@given(rankings())
@settings(max_examples=examples(30), deadline=None)
def test_the_aggregate_is_the_declared_one(data):
    """Means are means, sums are sums, geometric means are exp of the mean of logarithms."""
    names = all_members()
    y, score, qid = data
    ev = rk.evaluate(y, score, qid=qid, measures=names)
    table = ev.per_query
    by_hand = {"mean": lambda v: v.mean(), "sum": lambda v: v.sum(), "gmean": lambda v: np.exp(v.mean())}
    for name, value in ev.aggregate().items():
        assert value == pytest.approx(by_hand[measure(name).family.aggregate](table[name]), abs=1e-12)


@pytest.mark.random
def test_lists_of_any_length_and_chunking_agree_with_one_query_at_a_time(monkeypatch):
    """Chunks of any size give the same values to the last bit, long lists among short ones too."""
    rng = np.random.default_rng(3)
    lengths = [1, *choose(default=(120,), full=(500,)), 3, 2, 40, 1, 7, *choose(default=(80,), full=(300,)), 5]
    qid = np.repeat(np.arange(len(lengths)), lengths)
    y, score = rng.integers(0, 5, len(qid)), rng.integers(0, 60, len(qid)).astype(float)
    names = all_members()
    whole = values(y, score, qid, names)
    for rows, _ in product((1, 10, 400), (0,)):
        monkeypatch.setattr("rankeval.join.joined.CHUNK", rows)
        np.testing.assert_array_equal(values(y, score, qid, names), whole)
