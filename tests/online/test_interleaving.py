"""Interleaved lists: exact shares of the credit, records that can be trusted, and input that is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

from rankeval.errors import InvalidInput, UnknownName
from rankeval.online.interleaving import SCHEMES, Interleaved, Interleaver, interleaving_bias

HALF = Fraction(1, 2)
ABC, BCA = ["a", "b", "c"], ["b", "c", "a"]


def pairs(n, lengths, *, seed):
    """Draw pairs of rankings of eight documents."""
    rng = np.random.default_rng(seed)
    return [tuple(rng.permutation([*"abcdefgh"])[: rng.choice(lengths)].tolist() for _ in "AB") for _ in range(n)]


@each_row(
    ("scheme", "share", "share_of_c"),
    [
        ("balanced", Fraction(1, 3), 0),
        ("team_draft", HALF, HALF),  # the blind spot: B has c higher, and team draft does not see it
        ("probabilistic", HALF, Fraction(1025051, 2530080)),
        ("optimized", HALF, 0),
    ],
)
def test_the_shares_of_one_random_click(scheme, share, share_of_c):
    """Of a random click, and of clicks on c alone, which B ranks higher: the exact share of A."""
    assert interleaving_bias(scheme, ABC, BCA) == {"A": share, "B": 1 - share}
    assert interleaving_bias(scheme, ABC, BCA, relevant=["c"]) == {"A": share_of_c, "B": 1 - share_of_c}


def test_the_share_of_a_probabilistic_click_by_hand():
    """Of two rankings a b and b a, with weights 1 and 1/8: a comes first from A with 8/9, from B with 1/9."""
    first = Fraction(8, 9)
    # c is a's click: a is first in half of the lists, drawn by A with 8/9; else it is the only one left to both.
    expected = (first + HALF) / 2
    assert interleaving_bias("probabilistic", ["a", "b"], ["b", "a"], relevant=["a"])["A"] == expected


@pytest.mark.parametrize("scheme", ["team_draft", "probabilistic", "optimized"])
def test_schemes_without_bias_on_rankings_of_equal_length(scheme):
    """Of 40 pairs of length 4, each ranking gets half of one random click, at a depth of 4 and of all documents."""
    for a, b in pairs(40, [4], seed=1):
        for depth in (4, 10):
            assert abs(interleaving_bias(scheme, a, b, depth=depth)["A"] - HALF) < 1e-12


def test_balanced_interleaving_is_biased_for_some_pairs():
    shares = {interleaving_bias("balanced", a, b, depth=4)["A"] for a, b in pairs(40, [4], seed=1)}
    assert len(shares - {HALF}) >= 2


@each_row("scheme", ["team_draft", "probabilistic", "optimized"])
def test_length_is_not_paid_for(scheme):
    """Of 40 pairs of unequal length, each ranking gets half; of the first two exactly."""
    for place, (a, b) in enumerate(pairs(40, range(1, 7), seed=2)):
        off = interleaving_bias(scheme, a, b, depth=(10, 5, 3)[place % 3])["A"] - HALF
        assert abs(off) < 1e-12 if scheme == "optimized" else off == 0


def test_a_single_document_is_compared_with_the_first_of_a_longer_ranking():
    """The first round is filled in both orders, so it is credited; the documents that follow are not."""
    shown = Interleaver("team_draft").show({"A": ["a"], "B": ["b", "c", "d"]}, impression=1)
    assert {*shown.ids[:2]} == {"a", "b"}
    assert [sum(row) for row in zip(*shown.credits.values(), strict=True)] == [1, 1, 0, 0]


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_each_ranking_of_a_multileaved_list_is_credited_alike(data):
    """Of three rankings of any lengths, none is credited for more documents than another, but in a last round cut."""
    lists = {
        name: data.draw(st.lists(st.sampled_from(range(9)), min_size=1, max_size=7, unique=True)) for name in "ABC"
    }
    depth = data.draw(st.sampled_from([3, 6, 12]))
    shown = Interleaver("team_draft", depth=depth).show(lists, impression=data.draw(st.integers(0, 99)))
    assert len(shown.ids) == len({*shown.ids}) == min(depth, len(set().union(*lists.values())))
    sums = [sum(row) for row in shown.credits.values()]
    assert max(sums) - min(sums) <= (len(shown.ids) == depth)


def test_the_last_round_of_a_multileaved_list_is_cut_by_a_fair_draw():
    """Of lists of 4 documents by three rankings, each ranking has 4/3 of the documents on average."""
    lists = {"A": [1, 2, 3, 4, 5], "B": [6, 1, 7, 8, 9], "C": [2, 6, 9, 5, 3]}
    shown = [Interleaver("team_draft", depth=4).show(lists, impression=n) for n in range(2000)]
    means = np.array([[float(sum(row)) for row in one.credits.values()] for one in shown]).mean(axis=0)
    assert np.abs(means - 4 / 3).max() < 0.04


def test_what_is_drawn_has_the_probabilities_that_are_enumerated():
    """Over 1,500 impressions, each scheme's mean credit of a click on c is that of the enumeration."""
    for scheme in SCHEMES:
        il = Interleaver(scheme, salt="s")
        gained = dict.fromkeys("AB", Fraction(0))
        for impression in range(1500):
            for name, credit in (
                il.show({"A": ABC, "B": ["b", "a", "c"]}, impression=impression).credited(["a"]).items()
            ):
                gained[name] += credit
        share = interleaving_bias(scheme, ABC, ["b", "a", "c"], relevant=["a"])["A"]
        assert abs(gained["A"] / sum(gained.values()) - share) < 0.03


def test_optimized_lists_follow_the_rankings_and_are_fair_at_each_position():
    """Each document is the best that is left of a ranking, and the credits at each position have the mean 0."""
    a, b = [*"abcdef"], [*"bdafce"]
    lists = [Interleaver("optimized").show({"A": a, "B": b}, impression=n) for n in range(2000)]
    for shown in lists[:200]:
        for place, document in enumerate(shown.ids):
            left = [next(one for one in ranking if one not in shown.ids[:place]) for ranking in (a, b)]
            assert document in left
    gains = np.array([[x - y for x, y in zip(*one.credits.values(), strict=True)] for one in lists], dtype=float)
    assert np.abs(gains.mean(axis=0)).max() < 0.03
    assert np.abs(gains).max() > 0.3


def test_optimized_lists_that_cannot_be_fair_to_their_end_are_credited_as_far_as_they_can():
    """No distribution over these lists is fair at the fourth position: clicks from there on credit nothing."""
    a, b = [*range(10)], [4, 3, 2, 1, 10, 7, 9, 6, 11, 5]
    lists = [Interleaver("optimized").show({"A": a, "B": b}, impression=n) for n in range(2000)]
    gains = np.array([[x - y for x, y in zip(*one.credits.values(), strict=True)] for one in lists], dtype=float)
    assert np.abs(gains.mean(axis=0)).max() < 0.03
    assert (np.abs(gains).max(axis=0) > 0).tolist() == [True] * 3 + [False] * 7
    assert abs(interleaving_bias("optimized", a, b)["A"] - HALF) < 1e-12


@pytest.mark.shared
def test_the_interleaved_list_of_the_lectures(shared):
    """Strict alternation that B begins, duplicates removed: its list; three clicks give the printed count of 3 to 1."""
    examples = {one["id"]: one for one in json.loads((shared / "seed_examples.json").read_text())["examples"]}
    example = examples["interleave_start_b"]
    rankings = {"A": example["inputs"]["ranking_a"], "B": example["inputs"]["ranking_b"]}
    lists = [Interleaver("balanced").show(rankings, impression=n) for n in range(20)]
    by_b = next(one for one in lists if one.ids[1] == rankings["B"][1])
    printed = example["expected"]["after_duplicate_removal"]
    assert [*by_b.ids[: len(printed)]] == printed
    # The marks of the clicks are lost; these three, the first, third and last of the printed list, give its count.
    assert by_b.credited([printed[0], printed[2], printed[6]]) == example["expected"]["clicks_as_printed"]


def test_balanced_clicks_are_counted_within_the_better_rank_of_the_lowest_one():
    """Joachims' rule: of clicks on b and c with ranks (2, 1) and (3, 2), k is 2, and A has b only."""
    shown = Interleaver("balanced").show({"A": ABC, "B": BCA}, impression=1)
    assert shown.credited(["b", "c"]) == {"A": 1, "B": 2}
    assert shown.credited(["a"]) == {"A": 1, "B": 0}
    assert shown.credited([]) == {"A": 0, "B": 0}


def test_the_same_impression_has_the_same_list_anywhere():
    """Each thread and each order of names gives the same list; another impression, salt or scheme gives another one."""
    rankings = {"A": [*"abcdefghij"], "B": [*"jihgfedcba"]}
    il = Interleaver("team_draft", salt="s")
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda n: il.show(rankings, impression=n % 10), range(200))]
    assert found == found[:10] * 20
    assert il.show(dict(reversed(rankings.items())), impression=0) == found[0]
    assert len({one.ids for one in found}) > 5
    others = [Interleaver("team_draft", salt="t").show(rankings, impression=n).ids for n in range(10)]
    assert others != [one.ids for one in found[:10]]
    assert (
        il.show(rankings, impression="0").ids != found[0].ids or il.show(rankings, impression="1").ids != found[1].ids
    )


@each_row("scheme", SCHEMES)
def test_a_record_survives_json_and_shows_when_it_was_changed(scheme):
    """All numbers are exact. A changed credit, user or list does not fit the seal, nor does a foreign salt."""
    il = Interleaver(scheme, salt="secret")
    shown = il.show({"A": ABC, "B": ["c", "d"]}, impression="i1", user=7, qid="q")
    assert Interleaved.from_json(shown.to_json(), salt="secret") == shown
    assert Interleaved.from_json(json.loads(shown.to_json())) == shown
    changes = {"user": 8, "ids": [*reversed(shown.ids)], "impression": "i2", "qid": None}
    for name, value in changes.items():
        changed = json.loads(shown.to_json()) | {name: value}
        with pytest.raises(InvalidInput, match="was changed"):
            Interleaved.from_json(changed, salt="secret")
    with pytest.raises(InvalidInput, match="another salt"):
        Interleaved.from_json(shown.to_json(), salt="public")


@each_row(
    "change",
    [
        {"format": "other/1"}, {"ids": ["a"]}, {"ids": None}, {"ids": ["a", "b", 1.5]}, {"credits": {}},
        {"credits": {"A": ["x"], "B": [0]}}, {"credits": {"A": [-1, 0, 0], "B": [0, 0, 0]}}, {"more": 1},
        {"scheme": "none"}, {"impression": ["i"]}, {"impression": None}, {"user": ""}, {"qid": 1.5},
        {"ids": "abc"}, {"ids": [], "credits": {"A": [], "B": []}}, {"credits": {"A": [1, 0, 0]}},
        {"credits": {"A": [2, 0, 0], "B": [0, 0, 0]}}, {"credits": {"A": ["1e9999999", 0, 0], "B": [0, 0, 0]}},
        {"credits": {"A": [0.5, 0, 0], "B": [0, 0, 0]}}, {"credits": {"A": ["2/4", 0, 0], "B": [0, 0, 0]}},
        {"credits": {"A": ["1/0", 0, 0], "B": [0, 0, 0]}}, {"credits": {"A": "100", "B": [0, 0, 0]}},
        {"seal": '"'}, {"seal": 7},
    ],
)  # fmt: skip
def test_anything_else_is_no_credit_record(change):
    """Also not a number of ten million digits, which a record that nobody sealed could hold."""
    record = json.loads(Interleaver("team_draft").show({"A": ABC, "B": BCA}, impression=1).to_json())
    for form in (record | change, json.dumps(record | change)):
        with pytest.raises(InvalidInput):
            Interleaved.from_json(form)


def test_text_that_is_no_object_is_no_credit_record():
    for text in ("", "[]", "7", "null", "[" * 100_000, '{"format": 1, "format": 1}'):
        with pytest.raises(InvalidInput, match="not a credit record"):
            Interleaved.from_json(text)


def test_a_record_without_the_user_and_the_query_is_read():
    """Some pipelines leave out what is null; the seal holds all the same."""
    shown = Interleaver("optimized", salt="s").show({"A": ABC, "B": BCA}, impression=1)
    kept = {name: value for name, value in json.loads(shown.to_json()).items() if value is not None}
    assert Interleaved.from_json(kept, salt="s") == shown


@each_row(
    ("rankings", "problem"),
    [
        ({"A": ["a"]}, "two rankings"),
        ({"A": ["a"], "B": ["b"], "C": ["c"]}, "team_draft takes more"),
        ({"A": ["a"], "B": []}, "is empty"),
        ({"A": ["a"], "B": ["b", "b"]}, "a document twice"),
        ({"A": ["a"], "B": ["b", None]}, "an id: text or an integer"),
        ({"A": ["a"], "B": [1.5]}, "an id: text or an integer"),
        ({"A": ["a"], "B": [True]}, "an id: text or an integer"),
        ({"A": ["a"], "B": [""]}, "an id: text or an integer"),
        ({"A": ["a"], "B": [1]}, "one type"),
        ({"A": ["a"], "B": "bc"}, "a list of document ids"),
        ({"A": ["a"], "B": {"b"}}, "a list of document ids"),
        ({"A": ["a"], "": ["b"]}, "name"),
        ({"A": ["a"], 1: ["b"]}, "name"),
        ([["a"], ["b"]], "a mapping of names"),
    ],
)
def test_rankings_that_cannot_be_interleaved_are_refused(rankings, problem):
    with pytest.raises(InvalidInput, match=problem):
        Interleaver("balanced").show(rankings, impression=1)


def test_settings_and_ids_that_do_not_fit_are_refused():
    rankings = {"A": ABC, "B": BCA}
    with pytest.raises(UnknownName, match="team_draft"):
        Interleaver("teamdraft")
    with pytest.raises(InvalidInput, match="at most 10"):
        Interleaver("optimized", depth=11)
    with pytest.raises(InvalidInput, match="salt"):
        Interleaver("balanced", salt=7)
    for depth in (0, 2.5):
        with pytest.raises(InvalidInput, match="depth"):
            Interleaver("balanced", depth=depth)
    for ids in ({"impression": None}, {"impression": ""}, {"impression": 1.0}, {"impression": 1, "user": True}):
        with pytest.raises(InvalidInput, match="an id"):
            Interleaver("balanced").show(rankings, **ids)
    for relevant in (["z"], []):
        with pytest.raises(InvalidInput, match="relevant"):
            interleaving_bias("balanced", ABC, BCA, relevant=relevant)


def test_integers_of_numpy_are_ids_like_others():
    """Lists and arrays of them too; the record holds plain integers."""
    shown = Interleaver("probabilistic").show({"A": np.array([3, 1]), "B": [np.int64(1), 2]}, impression=np.int64(5))
    assert Interleaved.from_json(shown.to_json()) == shown
    assert {type(one) for one in shown.ids} == {int}


def test_serving_loads_the_standard_library_only():
    """Neither NumPy nor pandas: a search server starts quickly, and stays small."""
    code = (
        "import sys, rankeval as rk\n"
        "for scheme in ('balanced', 'team_draft', 'probabilistic'):\n"
        "    il = rk.online.Interleaver(scheme, salt='s')\n"
        "    il.show({'A': ['a', 'b'], 'B': ['b', 'c']}, impression=1).to_json()\n"
        "print([name for name in ('numpy', 'pandas', 'scipy', 'pyarrow') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
