"""Scores by collection in every form, told apart from plain scores; what must not be compared is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables import each_row

import rankeval as rk
from rankeval.comparison.inputs import collections_of, shared_scores
from rankeval.errors import ConventionMismatch, InvalidInput, QueryIdError, UnknownName

NAMES = ("news", "web")


def frame(collection, system, n=8):
    generator = np.random.default_rng([NAMES.index(collection), system])
    return pd.DataFrame({"AP": generator.random(n), "RR": generator.random(n)}, index=[f"q{i}" for i in range(n)])


def nested(n=8):
    return {name: {each: frame(each, system, n) for each in NAMES} for system, name in enumerate(("a", "b"))}


def two_levels(parts):
    return pd.concat(parts, names=["collection", "qid"])


FORMS = {
    "frames": dict,
    "mappings": lambda parts: {name: part.to_dict("index") for name, part in parts.items()},
    "an index of two levels": two_levels,
    "an index the other way round": lambda parts: two_levels(parts).swaplevel().sort_index(),
    "unnamed levels": pd.concat,
    "columns": lambda parts: two_levels(parts).reset_index(),
    "polars": lambda parts: pl.from_pandas(two_levels(parts).reset_index()),
    "Arrow": lambda parts: pa.Table.from_pandas(two_levels(parts).reset_index()),
}


def pooled(systems, measures=None, baseline=None, unpaired="error"):
    return shared_scores(systems, measures, baseline=baseline, unpaired=unpaired)


@each_row("form", FORMS)
def test_every_form_holds_the_same_scores(form):
    expected = pooled(nested())
    found = pooled({name: FORMS[form](parts) for name, parts in nested().items()})
    assert (found.systems, found.measures) == (["a", "b"], ["AP", "RR"])
    assert set(found.places) == set(NAMES)
    np.testing.assert_array_equal(found.scores, expected.scores)
    for name in NAMES:
        np.testing.assert_array_equal(found.scores[found.places[name]][:, 1], frame(name, 1).to_numpy())


@each_row(
    "scores",
    [
        frame("news", 0),
        frame("news", 0).to_dict("index"),
        frame("news", 0).rename_axis("qid").reset_index(),
        {"q1": {}, "q2": {}},
        {},
        7,
    ],
)
def test_plain_scores_are_told_apart(scores):
    """Scores of queries are no collections: also {qid: {measure: score}}, and a frame with its ids in a column."""
    assert collections_of(scores) is None


def test_evaluations_and_nested_mappings_are_collections():
    one = rk.evaluate([1, 0], [0.3, 0.1], qid=["q", "q"], measures="AP")
    assert collections_of(one) is None
    assert list(collections_of({"news": one})) == ["news"]
    assert list(collections_of({"news": {"q1": {"AP": 0.5}}, "web": one})) == ["news", "web"]
    with pytest.raises(InvalidInput, match="both kinds of values"):
        collections_of({"news": one, "q1": {"AP": 0.5}})


def test_the_wrong_way_round_is_refused_with_the_way_to_turn_it():
    turned = {each: {name: nested()[name][each] for name in ("a", "b")} for each in NAMES}
    with pytest.raises(InvalidInput, match="baseline 'a' is inside each of 'news', 'web'; the outer keys are systems"):
        pooled(turned, baseline="a")
    right = {system: {each: turned[each][system] for each in turned} for system in next(iter(turned.values()))}
    np.testing.assert_array_equal(pooled(right, baseline="a").scores, pooled(nested()).scores)


def test_names_of_collections():
    """One is no name: 'all' is that of the rows over all; 1 and "1" are one text."""
    with pytest.raises(InvalidInput, match="'all', the table's name for all collections together"):
        collections_of({"all": frame("news", 0)})
    with pytest.raises(InvalidInput, match="same name as text"):
        collections_of({1: frame("news", 0), "1": frame("web", 0)})
    with pytest.raises(InvalidInput, match="system 'a' has scores by collection, and system 'b' has not"):
        pooled({"a": nested()["a"], "b": frame("news", 1)})


def test_missing_collections_and_queries():
    systems = nested()
    del systems["b"]["web"]
    with pytest.raises(InvalidInput, match=r"system 'b' lacks 1 of 2 collections: 'web'; evaluate it there, or pass"):
        pooled(systems)
    skipped = pooled(systems, unpaired="skip")
    assert list(skipped.places) == ["news"]
    assert skipped.notes == ["collections that a system lacked were left out for all systems: web"]
    with pytest.raises(InvalidInput, match="no collection in common"):
        pooled({"a": {"web": frame("web", 0)}, "b": {"news": frame("news", 0)}}, unpaired="skip")
    with pytest.raises(UnknownName, match="skip"):
        pooled(systems, unpaired="skp")
    systems = nested()
    systems["b"]["web"] = systems["b"]["web"].drop("q3")
    with pytest.raises(QueryIdError, match="'b on web' lacks 1 of 8 queries, such as 'q3'"):
        pooled(systems)
    assert pooled(systems, unpaired="skip").notes == [
        "queries that a system lacked were left out for all systems: b on web 1"
    ]
    with pytest.raises(InvalidInput, match="collection 'news' has 1 query"):
        pooled(nested(n=1))


def test_measures_are_those_shared_on_all_collections():
    systems = nested()
    systems["b"]["web"] = systems["b"]["web"][["AP"]]
    found = pooled(systems)
    assert found.measures == ["AP"]
    assert found.notes == ["not compared, since only some systems have it: RR"]


def judged(seed, system, **options):
    generator = np.random.default_rng(seed)
    labels, noise = generator.integers(0, 2, 40), generator.random(40)
    return rk.evaluate(labels, noise + 0.2 * system * labels, qid=np.repeat(range(8), 5), measures="AP", **options)


def test_judgments_are_alike_within_a_collection_and_differ_across():
    systems = {name: {"news": judged(1, k), "web": judged(2, k)} for k, name in enumerate(("a", "b"))}
    assert len(pooled(systems).scores) == 16
    other = {**systems, "b": {"news": judged(3, 1), "web": judged(2, 1)}}
    with pytest.raises(ConventionMismatch, match="'a on news' and 'b on news' must not be compared: the judgments"):
        pooled(other)
    same = {name: {"news": parts["news"], "again": parts["news"]} for name, parts in systems.items()}
    with pytest.raises(InvalidInput, match="'news' and 'again' have the same queries and judgments"):
        pooled(same)


def test_conventions_are_alike_across_collections():
    tied = {"qid": np.repeat(range(8), 5), "measures": "AP"}
    labels = np.random.default_rng(0).integers(0, 2, 40)

    def evaluated(ties, shift):
        return rk.evaluate(np.roll(labels, shift), np.zeros(40), ties=ties, **tied)

    systems = {name: {"news": evaluated("best", 0), "web": evaluated("worst", 1)} for name in ("a", "b")}
    with pytest.raises(
        ConventionMismatch, match="'a on news' and 'a on web' must not be compared: ties is 'best' in one"
    ):
        pooled(systems)


def test_subsets_are_said_to_be_chosen_parts():
    systems = {name: judged(1, k).subset([1, 2, 5]) for k, name in enumerate(("a", "b"))}
    notes = rk.compare(systems).notes
    assert any("a chosen part of the queries (3 of 8 queries)" in note for note in notes)
    with pytest.raises(InvalidInput, match="query weights"):
        pooled({name: {"news": judged(1, 0, query_weight=dict.fromkeys(range(8), 2.0))} for name in ("a", "b")})
