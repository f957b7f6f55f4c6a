"""Preferences between documents and groups of judgments: by hand, and over every order of tied rows."""

from __future__ import annotations

import re
from itertools import permutations

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.evaluation.result import info_of

NAMES = [
    "NumPrefs",
    "NumPrefsFul",
    "NumPrefsFul(count='retrieved')",
    *(
        f"Prefs(average={average!r}, count={count!r})"
        for average in ("preference", "pair", "group")
        for count in ("all", "retrieved", "implied")
    ),
]

BALANCED = [
    f"PrefsR(count={count!r}, rule={rule!r})" for count in ("all", "retrieved") for rule in ("exact", "trec_eval")
]


def groups(**grades) -> rk.Qrels:
    """Return the judgments of one query: group -> {document: grade}."""
    rows = [(group, docid, grade) for group, known in grades.items() for docid, grade in known.items()]
    aspect, docid, grade = zip(*rows, strict=True)
    return rk.Qrels(qid=["q"] * len(rows), docid=list(docid), relevance=list(grade), aspect=list(aspect))


def scored(qrels, scores, names=NAMES, **options):
    return rk.evaluate(qrels, rk.Run.from_dict({"q": scores}), measures=names, **options).per_query.iloc[0]


def test_two_groups_by_hand():
    """One group prefers a to b and to c, the other b to a; the run has b, a and not c."""
    qrels = groups(ann={"a": 1, "b": 0, "c": 0}, bob={"a": 0, "b": 1})
    value = scored(qrels, {"b": 2.0, "a": 1.0})
    assert value["NumPrefs"] == 3
    assert value["NumPrefsFul"] == 2  # ann's a over c, which is implied, and bob's b over a
    assert value["NumPrefsFul(count='retrieved')"] == 1
    share = {
        (average, count): value[f"Prefs(average={average!r}, count={count!r})"]
        for average in ("preference", "pair", "group")
        for count in ("all", "retrieved")
    }
    assert share == {
        ("preference", "all"): 2 / 3,
        ("preference", "retrieved"): 1 / 2,
        ("pair", "all"): (1 / 2 + 1) / 2,
        ("pair", "retrieved"): 1 / 2,
        ("group", "all"): (1 / 2 + 1) / 2,
        ("group", "retrieved"): 1 / 2,
    }


grades = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), min_size=1)


@given(grades, grades, st.dictionaries(st.sampled_from("abce"), st.integers(0, 1), min_size=1))
@settings(max_examples=examples(30), deadline=None)
def test_expected_is_the_mean_over_orders_with_several_groups_too(ann, bob, scores):
    """Tied documents fulfil half of the preferences between them; averages over groups follow."""
    qrels = groups(ann=ann, bob=bob)
    names = [*NAMES, "AvgJG(of='AP')", "AvgJG(of='P')@2", *BALANCED]
    ours = scored(qrels, {docid: float(score) for docid, score in scores.items()}, names)
    total, orders = 0, list(permutations(scores))
    for order in orders:
        ranked = {docid: float(scores[docid]) for docid in order}
        total = total + scored(qrels, ranked, names, convention=rk.Convention("stable", ties="stable"))
    np.testing.assert_allclose(ours, total / len(orders), atol=1e-12)


@pytest.mark.usefixtures("without_formula")
def test_a_mean_over_groups_says_that_orders_were_drawn():
    """Queries of which a group has too many orders are counted, each once; exact values are not spoken of."""
    many = {f"d{place}": place % 3 for place in range(30)}
    rows = [("long", "ann", many), ("long", "bob", many), ("short", "ann", {"d1": 1, "d2": 0}), ("third", "bob", many)]
    flat = [(qid, who, docid, grade) for qid, who, known in rows for docid, grade in known.items()]
    qid, who, docid, grade = (list(column) for column in zip(*flat, strict=True))
    qrels = rk.Qrels(qid, docid, grade, aspect=who)
    run = rk.Run.from_dict({topic: dict.fromkeys(many, 1.0) for topic in ("long", "short", "third")})
    names = ["AvgJG(of='SquaredAP')", "AvgJG(of='AP')"]
    note = info_of(rk.evaluate(qrels, run, measures=names))["ties"]
    assert re.search(r"too many: AvgJG\(of='SquaredAP'\) in 2 queries \(standard error of the mean 0\.\d+\)", note)
    assert "'AP'" not in note


def test_one_group_is_judgments_without_groups():
    """Judgments without a group are those of one."""
    known, ranked = {"a": 2, "b": 1, "c": 0, "d": 0}, {"b": 3.0, "c": 2.0, "a": 1.0, "x": 0.5}
    names = [*NAMES, "PrefsR", "PrefsR(count='retrieved')", "AvgJG(of='AP')"]
    plain = scored(rk.Qrels.from_dict({"q": known}), ranked, names)
    np.testing.assert_allclose(plain, scored(groups(ann=known), ranked, names), atol=1e-12)
    assert plain["AvgJG(of='AP')"] == scored(rk.Qrels.from_dict({"q": known}), ranked, ["AP"])["AP"]


def test_only_as_many_others_count_as_are_relevant():
    """With one relevant document, the first other one is held against it, not the many below."""
    known = {"a": 1, **{f"n{place}": 0 for place in range(9)}}
    ranked = {"n0": 3.0, "a": 2.0, "n1": 1.0}
    value = scored(rk.Qrels.from_dict({"q": known}), ranked, ["PrefsR", "Prefs"])
    assert value.tolist() == [0, 8 / 9]
    above = scored(rk.Qrels.from_dict({"q": {"a": 2, "b": 1, "n": 0}}), {"n": 2.0, "a": 1.0}, ["PrefsR"])
    assert above.tolist() == [2 / 5]  # a over b is implied; one more document, below all, adds a over it and b over it


def test_a_group_without_preferences_is_nothing_as_in_trec_eval():
    """Of bob's documents none was retrieved: 0/0, which counts 0 in the mean, and in trec_eval makes the topic 0.

    trec_eval 9.0.4: -q -m prefs_avgjg_Rnonrel -m prefs_avgjg_Rnonrel_ret -R prefs, on these judgments and this run.
    """
    qrels = groups(ann={"a": 1, "b": 0}, bob={"lost": 1, "gone": 0})
    names = ["prefs_avgjg_Rnonrel", "prefs_avgjg_Rnonrel_ret"]
    assert scored(qrels, {"a": 2.0, "b": 1.0}, names).tolist() == [0.5, 0]
    assert scored(qrels, {"a": 2.0, "b": 1.0}, ["PrefsR(count='retrieved')"]).tolist() == [0.5]


def subgroups(*rows) -> rk.Qrels:
    """Return the judgments of one query: rows of group, sub-group, document, grade."""
    group, subgroup, docid, grade = zip(*rows, strict=True)
    return rk.Qrels(["q"] * len(rows), list(docid), list(grade), aspect=list(group), subgroup=list(subgroup))


def test_sub_groups_with_ties_have_no_mean_where_it_would_be_guessed():
    """PrefsR over sub-groups is refused where tied rows decide which documents are cut off, and only there."""
    qrels = subgroups(("ann", "1", "a", 1), ("ann", "1", "b", 0), ("ann", "2", "a", 1), ("ann", "2", "c", 0))
    with pytest.raises(InvalidInput, match="ties='docid'"):
        scored(qrels, {"a": 2.0, "b": 1.0, "c": 1.0}, ["PrefsR"])
    assert scored(qrels, {"a": 1.0, "b": 1.0, "c": 0.0}, ["PrefsR"]).tolist() == [0.5]


CHAIN = [("ann", "1", "a", 2), ("ann", "1", "b", 1), ("ann", "2", "b", 2), ("ann", "2", "c", 1)]


def test_what_follows_from_two_sub_groups_is_a_preference_too():
    """A above b in one sub-group and b above c in another: a above c, which nobody was asked."""
    value = scored(subgroups(*CHAIN), {"c": 3.0, "a": 2.0, "b": 1.0})
    assert (value["NumPrefs"], value["NumPrefsFul"]) == (3, 1)
    apart = scored(subgroups(*CHAIN[:2], ("ann", "2", "c", 5), ("ann", "2", "d", 1)), {"c": 3.0, "a": 2.0, "b": 1.0})
    assert apart["NumPrefs"] == 2  # a and c were never compared, whatever their grades


@given(grades, grades)
@settings(max_examples=examples(30), deadline=None)
def test_one_sub_group_is_a_group(ann, bob):
    """A group with a single sub-group is one without any."""
    rows = [(name, "1", docid, grade) for name, known in (("ann", ann), ("bob", bob)) for docid, grade in known.items()]
    ranked, names = {"b": 3.0, "c": 2.0, "a": 1.0, "x": 0.5}, [*NAMES, "PrefsR", "PrefsR(rule='trec_eval')"]
    untied = rk.Convention("stable", ties="stable")
    np.testing.assert_allclose(
        scored(subgroups(*rows), ranked, names, convention=untied),
        scored(groups(ann=ann, bob=bob), ranked, names, convention=untied),
    )


def test_sub_groups_that_contradict_each_other_are_refused():
    """So are measures that know nothing of sub-groups, and sub-groups of nothing."""
    turned = [*CHAIN, ("ann", "3", "c", 1), ("ann", "3", "a", 0)]
    with pytest.raises(InvalidInput, match="contradict each other: a, b, c"):
        scored(subgroups(*turned), {"a": 1.0})
    for name in ("AvgJG(of='AP')", "P_IA@5"):
        with pytest.raises(InvalidInput, match="read judgments by sub-group"):
            scored(subgroups(*CHAIN), {"a": 1.0}, [name])
    with pytest.raises(InvalidInput, match="without aspect="):
        rk.Qrels(["q"], ["a"], [1], subgroup=["1"])


@pytest.mark.parametrize("rules", [{}, {"ties": "docid"}, {"unjudged": "skip"}, {"unjudged": "skip", "ties": "docid"}])
@given(
    st.fixed_dictionaries({"ann": grades, "bob": grades}),
    st.dictionaries(st.sampled_from("abcde"), st.integers(0, 2).map(float), min_size=3),
)
@settings(max_examples=examples(40), deadline=None)
def test_the_mean_over_groups_is_that_over_evaluations_by_each_group_alone(rules, judgments, scores):
    """Under every rule: where unjudged documents are taken out, each group takes out those that it has not judged."""
    names, rules = ["AP", "P@2", "RprecMult(multiple=1)"], rk.Convention(**rules)
    ours = ["AvgJG(of='AP')", "AvgJG(of='P')@2", "AvgJG(multiple=1, of='RprecMult')"]
    alone = [scored(rk.Qrels.from_dict({"q": known}), scores, names, convention=rules) for known in judgments.values()]
    together = scored(groups(**judgments), scores, ours, convention=rules)
    np.testing.assert_allclose(together, np.mean(alone, axis=0), atol=1e-12)


def test_what_counts_as_relevant_where_few_others_are_retrieved():
    """Of three relevant documents two are retrieved, above the only other one: the third is counted by trec_eval."""
    qrels = groups(ann={"a": 1, "b": 1, "c": 1, "d": 0})
    names = [f"PrefsR(count='retrieved', rule={rule!r})" for rule in ("exact", "trec_eval")]
    value = scored(qrels, {"a": 3.0, "b": 2.0, "d": 1.0}, names)
    assert value.tolist() == [1.0, 4 / 5]


@each_row("name", ["NumPrefs", "NumPrefsFul", "Prefs", "PrefsR"])
def test_sub_groups_none_of_whose_documents_has_a_row(name):
    """By the rows given, the query has no judged document, so no preference."""
    qrels = rk.Qrels(["a", "a"], ["x", "y"], [1, 0], ["j", "j"], ["s", "s"])
    ev = rk.evaluate(qrels, {"a": {"z": 1.0}}, measures=name, convention="lightgbm")
    assert ev.per_query.iloc[0, 0] == (0.0 if name.startswith("Num") else 1.0)
