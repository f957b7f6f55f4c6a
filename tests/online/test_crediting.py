"""Clicks on interleaved lists, credited and compared: nothing is lost, users are the unit, and gains are seen."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.online import ClickLog, Interleaver, compare_interleaved

RANKINGS = {"A": ["a", "b", "c"], "B": ["d", "e", "a"]}


def lists(n=12, *, scheme="team_draft", rankings=RANKINGS, users=4):
    il = Interleaver(scheme, salt="s")
    return [il.show(rankings, impression=f"i{one}", user=f"u{one % users}", qid=f"q{one % 3}") for one in range(n)]


def by_hand(shown, clicks):
    """Return the mean credit of each user, as the formula says."""
    found = {}
    for one in shown:
        clicked = set(clicks.get(one.impression, ()))
        gained = [
            sum(float(row[one.ids.index(d)]) for d in clicked) / max(1, len(clicked)) for row in one.credits.values()
        ]
        found.setdefault(one.user, []).append(gained)
    return {user: np.mean(rows, axis=0) for user, rows in found.items()}


def test_the_credit_of_a_user_is_the_mean_over_all_impressions():
    """Also those without a click; several clicks of an impression share it."""
    shown = lists()
    clicks = {"i0": ["a"], "i1": ["a", "b"], "i5": ["e", "d", "a"], "i6": []}
    compared = compare_interleaved(shown, clicks)
    users = np.array([*by_hand(shown, clicks).values()])
    row = compared.table.iloc[0]
    assert (row["baseline"], row["system"], row["n_queries"], row["measure"]) == ("A", "B", 4, "credit")
    assert [row["mean_baseline"], row["mean_system"]] == pytest.approx([*users.mean(axis=0)], abs=1e-15)
    assert "users" in compared.headline
    assert "12 impressions of 4 users, 9 of them without a click" in compared.notes


def test_records_and_clicks_are_taken_in_all_forms(tmp_path):
    """Results, JSON, objects, a file, a frame; clicks as a mapping or a frame, also of Arrow: the same comparison."""
    shown = lists()
    written = [one.to_json() for one in shown]
    path = tmp_path / "credits.jsonl"
    path.write_text("\n".join(written))
    clicks = {"i0": ["a"], "i1": ["a", "b"], "i5": ["d"]}
    frame = pd.DataFrame(
        [(one, document) for one, ids in clicks.items() for document in ids], columns=["impression", "docid"]
    )
    expected = compare_interleaved(shown, clicks, salt="s").table
    forms = [written, map(json.loads, written), path, str(path), pd.DataFrame({"record": written})]
    for form in forms:
        pd.testing.assert_frame_equal(compare_interleaved(form, frame, salt="s").table, expected)
    import pyarrow as pa

    with_user = frame.assign(user=[{one.impression: one.user for one in shown}[i] for i in frame["impression"]])
    table = pa.table({name: [*with_user[name]] for name in with_user})
    rows = [
        (one.impression, one.user, k, d, d in clicks.get(one.impression, ()))
        for one in shown
        for k, d in enumerate(one.ids, 1)
    ]
    log = ClickLog.from_frame(pd.DataFrame(rows, columns=["impression", "user", "position", "docid", "clicked"]))
    for form in (table, log):
        pd.testing.assert_frame_equal(compare_interleaved(shown, form).table, expected)


def test_clicks_that_no_record_explains_are_refused_or_counted():
    """Of another impression, on another document, by another user: each has a note with its number."""
    shown = lists()
    frame = pd.DataFrame(
        {
            "impression": ["i0", "i1", "i77", "i78", "i2", "i2"],
            "docid": ["a", "z", "a", "a", "a", "a"],
            "user": ["u0", "u1", "u1", "u1", "u0", "u2"],
        }
    )
    with pytest.raises(InvalidInput, match=r"1 click on documents that were not shown: .'i1', 'z'"):
        compare_interleaved(shown, frame)
    compared = compare_interleaved(shown, frame, unshown="skip")
    pd.testing.assert_frame_equal(compared.table, compare_interleaved(shown, {"i0": ["a"], "i2": ["a"]}).table)
    assert "left out: 1 click on documents that were not shown" in compared.notes
    assert "left out: 2 clicks of impressions without a record" in compared.notes
    assert "left out: 1 click by another user than the record has" in compared.notes


def test_what_stands_there_twice_is_dropped_and_counted():
    """A click on the same document, and a record; but two different records of one impression are refused."""
    shown, clicks = lists(), {"i0": ["a"], "i1": ["a", "b"]}
    compared = compare_interleaved([*shown, *shown[:3]], {"i0": ["a", "a", "a"], "i1": ["a", "b"]})
    pd.testing.assert_frame_equal(compared.table, compare_interleaved(shown, clicks).table)
    assert "3 repeated records dropped" in compared.notes
    assert "2 repeated clicks on a document of the same impression dropped" in compared.notes
    other = Interleaver("team_draft").show({"A": ["x"], "B": ["y"]}, impression="i0", user="u0")
    with pytest.raises(InvalidInput, match="two records of an impression differ: 'i0'"):
        compare_interleaved([*shown, other], clicks)


def test_records_of_other_experiments_are_refused():
    """Of another scheme, of other rankings, or changed after they were sealed."""
    shown = lists()
    others = [
        Interleaver("balanced").show(RANKINGS, impression="x", user="u"),
        Interleaver("team_draft").show({"A": ["a"], "C": ["b"]}, impression="x", user="u"),
    ]
    for other in others:
        with pytest.raises(InvalidInput, match="several schemes or rankings"):
            compare_interleaved([*shown, other], {})
    changed = json.loads(shown[0].to_json()) | {"user": "u9"}
    with pytest.raises(InvalidInput, match="was changed"):
        compare_interleaved([changed, *shown[1:]], {}, salt="s")


def test_input_that_cannot_be_compared_is_refused():
    shown = lists()
    nobody = [Interleaver("team_draft").show(RANKINGS, impression=one) for one in range(9)]
    with pytest.raises(InvalidInput, match="no user in 9 records"):
        compare_interleaved(nobody, {})
    clicks = pd.DataFrame({"impression": [0], "docid": ["a"], "user": ["u1"]})
    assert len(compare_interleaved(nobody, clicks, unit="impression").table) == 1
    with pytest.raises(InvalidInput, match="there is no record"):
        compare_interleaved([], {})
    with pytest.raises(InvalidInput, match="a list of document ids"):
        compare_interleaved(shown, {"i0": "a"})
    with pytest.raises(InvalidInput, match="mapping of impressions"):
        compare_interleaved(shown, ["i0"])
    with pytest.raises(UnknownName, match="users"):
        compare_interleaved(shown, {}, unit="users")


def test_several_rankings_are_compared_in_all_pairs():
    """Of a multileaved list; the ranking that has the clicked document wins."""
    rankings = {"A": ["a", "b", "c"], "B": ["d", "e", "f"], "C": ["g", "h", "i"]}
    shown = lists(60, rankings=rankings, users=20)
    compared = compare_interleaved(shown, {one.impression: ["g"] for one in shown}, test="t")
    assert [*zip(compared.table["baseline"], compared.table["system"], strict=True)] == [
        ("A", "B"),
        ("A", "C"),
        ("B", "C"),
    ]
    assert compared.best.system == "C"


def test_a_ranking_may_have_the_name_of_the_unit():
    rankings = {"user": ["a", "b"], "query": ["c", "d"]}
    shown = lists(rankings=rankings)
    row = compare_interleaved(shown, {one.impression: ["a"] for one in shown}, baseline="query").table.iloc[0]
    assert (row["system"], row["mean_system"], row["mean_baseline"], row["n_queries"]) == ("user", 1, 0, 4)


def test_the_notes_name_the_scheme_and_the_unit_that_mislead():
    shown = lists(scheme="balanced")
    compared = compare_interleaved(shown, {"i0": ["a"]}, unit="impression")
    assert any(note.startswith("balanced interleaving is biased") for note in compared.notes)
    assert any(".31" in note for note in compared.notes)
    assert int(compared.table["n_queries"].iloc[0]) == 12
    assert not any(".31" in note for note in compare_interleaved(lists(), {"i0": ["a"]}).notes)


def test_random_clicks_favour_no_optimized_ranking():
    """Credits are not turned into wins: over all lists and single clicks on them, the means of both are equal."""
    rankings = {"A": [*"abcdef"], "B": [*"bdafce"]}
    shown = lists(600, scheme="optimized", rankings=rankings, users=600)
    rng = np.random.default_rng(0)
    clicks = {one.impression: [one.ids[rng.integers(6)]] for one in shown}
    row = compare_interleaved(shown, clicks).table.iloc[0]
    assert abs(row["difference"]) < 0.02
    assert row["mean_system"] > 0.1


def taste_rates(n_runs, *, n_users=60, per_user=10, seed=0):
    """Return how often two rankings that are equally good are said to differ, by users and by impressions.

    Half of the users, drawn anew each time, prefer one document and half the other: impressions of a user have an
    intraclass correlation of .3.
    """
    shown = lists(n_users * per_user, rankings={"A": ["a", "b"], "B": ["b", "a"]}, users=n_users)
    rng, found = np.random.default_rng(seed), []
    for _ in range(n_runs):
        tastes = 0.5 + np.sqrt(0.3) / 2 * rng.choice([-1, 1], n_users)
        chosen = np.where(rng.random(len(shown)) < tastes[np.arange(len(shown)) % n_users], "a", "b")
        clicks = {one.impression: [str(document)] for one, document in zip(shown, chosen, strict=True)}
        found.append(
            [compare_interleaved(shown, clicks, unit=u).table["p_value"].iloc[0] < 0.05 for u in ("user", "impression")]
        )
    return np.mean(found, axis=0)


@pytest.mark.world
def test_users_with_strong_tastes_make_no_difference_of_equal_rankings():
    """A/A: by users at most .10 of 30 tests find a difference; by impressions about .31, here at least .20."""
    by_user, by_impression = taste_rates(30, n_users=40)
    assert by_user <= 0.10
    assert by_impression >= 0.20


PATTERNS = (np.arange(1024)[:, None] >> np.arange(10)) & 1
"""All patterns of clicks on ten documents."""


def pattern_probabilities(ids):
    """Users of a position-based model: they examine rank k with 1/k, and click d5 with .5 and others with .1."""
    clicked = np.where(np.array(ids) == "d5", 0.5, 0.1) / np.arange(1, 11)
    return np.where(PATTERNS == 1, clicked, 1 - clicked).prod(axis=1)


def impressions_needed(mean, variance):
    """Return the impressions for a power of .8 of a two-sided test at .05."""
    return (1.959964 + 0.841621) ** 2 * variance / mean**2


def needed_by_interleaving(a, b, scheme="team_draft", n=600):
    first = second = 0.0
    for one in (Interleaver(scheme).show({"A": a, "B": b}, impression=place) for place in range(n)):
        gains = [float(y - x) for x, y in zip(one.credits["A"], one.credits["B"], strict=True)]
        differences = PATTERNS @ np.array(gains) / np.maximum(1, PATTERNS.sum(axis=1))
        chances = pattern_probabilities(one.ids)
        first, second = first + chances @ differences / n, second + chances @ differences**2 / n
    return impressions_needed(first, second - first**2)


def needed_by_ab(a, b):
    """Return the impressions of both arms, by the best of clicks, any click, and reciprocal rank of the first one."""
    clicked = PATTERNS.any(axis=1)
    metrics = [PATTERNS.sum(axis=1), clicked, np.where(clicked, 1 / (1 + PATTERNS.argmax(axis=1)), 0)]
    found = []
    for values in metrics:
        means, squares = zip(*((p @ values, p @ values**2) for p in map(pattern_probabilities, (a, b))), strict=True)
        variance = sum(square - mean**2 for mean, square in zip(means, squares, strict=True))
        found.append(2 * impressions_needed(means[1] - means[0], variance))
    return min(found)


@each_row(("rank", "of_ab"), [(2, 602), (4, 27_871)])
def test_team_draft_needs_at_most_half_of_the_impressions(rank, of_ab):
    """A document moves from rank 5 to 2 or 4: 121 and 1,112 impressions, where the best A/B metric needs these."""
    a = [f"d{place}" for place in range(1, 11)]
    b = [one for one in a if one != "d5"]
    b.insert(rank - 1, "d5")
    assert needed_by_ab(a, b) == pytest.approx(of_ab, rel=0.001)
    assert needed_by_interleaving(a, b) < of_ab / 2


def test_the_public_names_stand_in_the_room():
    assert rk.online.compare_interleaved is compare_interleaved


def served(n=12):
    """Return lists of integers, and clicks on their first documents as rows of text, as a CSV file has them."""
    il = Interleaver("team_draft")
    shown = [il.show({"A": [1, 2], "B": [2, 3]}, impression=one, user=one % 4, qid=one % 3) for one in range(n)]
    rows = [(one.impression, one.ids[0], one.user) for one in shown[:8]]
    return shown, pd.DataFrame(rows, columns=["search_id", "item_id", "visitor_id"]).astype(str)


def test_ids_of_a_text_file_are_those_of_records_of_integers():
    """Text of a whole number is the integer that a record has, but no other text is; and columns have usual names."""
    shown, clicks = served()
    expected = compare_interleaved(shown, {one.impression: [one.ids[0]] for one in shown[:8]}).table
    pd.testing.assert_frame_equal(compare_interleaved(shown, clicks).table, expected)
    lists_of = clicks.groupby("search_id")["item_id"].apply(list)
    pd.testing.assert_frame_equal(compare_interleaved(shown, lists_of).table, expected)
    with pytest.raises(InvalidInput, match=r"8 clicks of impressions without a record: .'00'"):
        compare_interleaved(shown, clicks.assign(search_id="0" + clicks["search_id"]))


def test_integers_are_not_the_text_of_records():
    """Whoever read 07 as 7 lost the zero: so the types are told, also where clicks may be skipped."""
    shown = [Interleaver("team_draft").show({"A": ["1"], "B": ["2"]}, impression="7", user="u")]
    for clicks in ({7: ["1"]}, {"7": [1]}):
        with pytest.raises(InvalidInput, match="are integers, those of the records are text"):
            compare_interleaved(shown, clicks, unshown="skip")


def test_no_click_that_counts_is_no_result():
    """Neither without clicks nor if all are left out."""
    for clicks in ({}, {"i0": []}):
        with pytest.raises(InvalidInput, match="no impression has a click"):
            compare_interleaved(lists(), clicks)
    with pytest.raises(InvalidInput, match="no impression has a click; 2 clicks of impressions without"):
        compare_interleaved(lists(), {"x": ["a", "b"]}, unshown="skip")


def test_columns_of_clicks_are_told_apart():
    """Two columns that may be the impression are refused, and rows of documents that were not clicked."""
    shown, clicks = served()
    with pytest.raises(InvalidInput, match=r"\['search_id', 'event_id'\]"):
        compare_interleaved(shown, clicks.assign(event_id="e"))
    with pytest.raises(InvalidInput, match="rows that are not clicks") as refused:
        compare_interleaved(shown, clicks.assign(click=[1, 0] * 4))
    assert "ClickLog.from_frame" in str(refused.value)
    assert len(compare_interleaved(shown, clicks.assign(click=1)).table) == 1


def test_the_notes_say_that_impressions_of_a_user_depend():
    """By queries as by impressions; and that records without a click may be missing."""
    shown = lists(36)
    for unit, begin in {"query": "36 impressions of 3 queries,", "impression": "36 impressions, 35 of"}.items():
        notes = compare_interleaved(shown, {"i0": ["a"]}, unit=unit).notes
        assert any(f"unit is the {unit}" in note and "in a simulation" in note for note in notes)
        assert notes[0].startswith(begin)
    clicked = {one.impression: [one.ids[0]] for one in shown}
    only = "each record has a click: records without a click may be missing, and they count too"
    assert only in compare_interleaved(shown, clicked).notes
    clicked.pop("i3")
    assert only not in compare_interleaved(shown, clicked).notes


def test_a_click_on_another_document_is_named_once():
    """The list and the document are told."""
    with pytest.raises(InvalidInput, match=r"clicked is \['nope'\].* ids of list 'i0'"):
        lists()[0].credited(["nope"])


@each_row("scheme", ["team_draft", "probabilistic", "optimized"])
def test_the_share_says_which_ranking_wins_more_impressions_and_the_sum_which_gets_more_clicks(scheme):
    """A has two relevant documents for every second query and none else, B has one each; users click all of them."""
    il, relevant = Interleaver(scheme, depth=6), ({"r1", "r2", "b"}, {"b"})
    rankings = (
        {"A": ["r1", "r2", "x1", "x2", "x3", "x4"], "B": ["b", "y1", "y2", "y3", "y4", "y5"]},
        {"A": ["x1", "x2", "x3", "x4", "x5", "x6"], "B": ["b", "y1", "y2", "y3", "y4", "y5"]},
    )
    shown = [il.show(rankings[one % 2], impression=one, user=one % 60) for one in range(1200)]
    clicks = {one.impression: [d for d in one.ids if d in relevant[one.impression % 2]] for one in shown}
    share, total = (compare_interleaved(shown, clicks, credit=how) for how in ("share", "sum"))
    assert share.table.equals(compare_interleaved(shown, clicks).table)
    assert share.table["difference"][0] > 0.2
    assert abs(total.table["difference"][0]) < 0.1
    assert [any("each click counts" in note for note in one.notes) for one in (share, total)] == [False, True]


def test_the_sum_is_the_sum_of_credits():
    """By hand: of the user's impressions the mean of the sums of credits."""
    shown, clicks = lists(), {"i0": ["a"], "i1": ["a", "b"], "i5": ["e", "d", "a", "a"]}
    found = compare_interleaved(shown, clicks, credit="sum").table.iloc[0]
    users = {}
    for one in shown:
        sums = [
            sum(float(row[one.ids.index(d)]) for d in set(clicks.get(one.impression, ())))
            for row in one.credits.values()
        ]
        users.setdefault(one.user, []).append(sums)
    expected = np.mean([np.mean(rows, axis=0) for rows in users.values()], axis=0)
    assert [found["mean_baseline"], found["mean_system"]] == pytest.approx([*expected], abs=1e-15)
    with pytest.raises(UnknownName, match="share"):
        compare_interleaved(shown, clicks, credit="mean")


def test_what_was_left_out_or_dropped_is_said_only_then():
    """Clean records and clicks have the note on their number alone."""
    notes = compare_interleaved(lists(), {"i0": ["a"]}).notes
    assert [one for one in notes if "dropped" in one or "left out" in one] == []
    assert notes[0] == "12 impressions of 4 users, 11 of them without a click"
