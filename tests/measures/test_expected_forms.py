"""Means over the orders of tied rows, against what is written out plainly: 30 rows by formulas, 8 or 12 by enumeration.

The group stands alone, behind other rows, tied and not, or before others. The oracles go through places one by
one and keep a dictionary of all that has come about, with exact fractions; or through both halves of the orders.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations, product
from math import comb, factorial, fsum, log, log2, prod

import numpy as np
import pytest
from tables import each_row

import rankeval as rk

AROUND = {
    "alone": ([], []),
    "behind others": ([[1], [0, 1, 1], [0]], []),
    "before others": ([], [[1, 0], [1], [0, 0, 1]]),
    "between others": ([[0], [1, 0]], [[0, 0, 1, 1], [1]]),
}
"""Rows above and below the group, in groups of tied ones, by their labels."""


def value_of(groups, name) -> float:
    """Return what rankeval gives for groups of tied rows, best first."""
    y = [label for group in groups for label in group]
    score = [-float(place) for place, group in enumerate(groups) for _ in group]
    ev = rk.evaluate(y, score, qid=["q"] * len(y), measures=name)
    assert ev.facts.errors is None
    return float(ev.scores[0, 0])


def assert_drawn(groups, name, wanted) -> None:
    """Assert that the mean of all orders is near the value, by the standard error of the orders that were drawn."""
    y = [label for group in groups for label in group]
    score = [-float(place) for place, group in enumerate(groups) for _ in group]
    ev = rk.evaluate(y, score, qid=["q"] * len(y), measures=name)
    error = 0.0 if ev.facts.errors is None else ev.facts.errors[0, 0]
    assert ev.scores[0, 0] == pytest.approx(wanted, abs=4 * error + 1e-12)


def walk(groups, start, step) -> dict:
    """Return the chances of states behind the last row, from ``step(state, rank, label)`` at every place.

    Orders are counted, in whole numbers: in a group each label comes as often as rows with it are left.
    """
    orders = {start: 1}
    rank = 0
    for group in groups:
        labels = sorted(set(group))
        inside = {(state, tuple(group.count(label) for label in labels)): count for state, count in orders.items()}
        for _ in group:
            rank += 1
            after = defaultdict(int)
            for (state, left), count in inside.items():
                for at, label in enumerate(labels):
                    if left[at]:
                        less = (*left[:at], left[at] - 1, *left[at + 1 :])
                        after[step(state, rank, label), less] += count * left[at]
            inside = after
        orders = defaultdict(int)
        for (state, _), count in inside.items():
            orders[state] += count
    n_orders = prod(factorial(len(group)) for group in groups)
    return {state: Fraction(count, n_orders) for state, count in orders.items()}


def binary(n_relevant, around, size=30):
    """Return groups with one of 30 tied rows, so many of them relevant."""
    before, behind = AROUND[around]
    return [*before, [1] * n_relevant + [0] * (size - n_relevant), *behind]


def interpolated(groups, level: Fraction) -> Fraction:
    """Return the mean of the greatest precision at a relevant row from the needed one on."""
    needed = max(1, -(-sum(map(sum, groups)) * level.numerator // level.denominator))

    def step(state, rank, label):
        hits, best = state
        hits += label
        return hits, max(best, Fraction(hits, rank)) if label and hits >= needed else best

    return sum(best * chance for (_, best), chance in walk(groups, (0, Fraction(0)), step).items())


@each_row("around", AROUND)
@each_row("n_relevant", [1, 4, 12, 27])
def test_interpolated_precision(n_relevant, around):
    """By all numbers of hits and greatest precisions so far, at recall levels met inside, above and below the group."""
    groups = binary(n_relevant, around)
    for level in ("0.1", "0.5", "0.9"):
        assert_drawn(groups, f"IPrec(recall={level})", float(interpolated(groups, Fraction(level))))


@each_row("around", ["alone", "between others"])
def test_eleven_points(around):
    """The mean over levels."""
    groups = binary(7, around)
    wanted = sum(interpolated(groups, Fraction(level, 10)) for level in range(11)) / 11
    assert_drawn(groups, "IAP11", float(wanted))


def test_levels_of_two_large_groups():
    """Chances of groups multiply: two groups of 12, both with a say."""
    groups = [[1] * 5 + [0] * 7, [1] * 10 + [0] * 2]
    for level in ("0", "0.3", "0.4", "1"):
        wanted = float(interpolated(groups, Fraction(level)))
        assert_drawn(groups, f"IPrec(recall={level})", wanted)


def halves(size, n_relevant, hits_above, rank_above):
    """Yield pairs of lists of sums of precisions in both halves of a group: each pair of sums is an order."""
    half = size // 2

    def sums(places, hits, above):
        lists = np.array(list(combinations(range(1, places + 1), hits)), dtype=float).reshape(comb(places, hits), hits)
        return ((hits_above + above[1] + np.arange(1, hits + 1)) / (rank_above + above[0] + lists)).sum(axis=1)

    for first in range(max(0, n_relevant - (size - half)), min(half, n_relevant) + 1):
        yield sums(half, first, (0, 0)), sums(size - half, n_relevant - first, (half, first))


@each_row("n_relevant", [1, 4, 8, 11])
def test_logarithms_of_ap(n_relevant):
    """By every order, put together from both halves; a relevant row and another stand above the group."""
    n_found = n_relevant + 1
    by_order = [np.add.outer(first, 1 + second) for first, second in halves(12, n_relevant, 1, 2)]
    n_orders = comb(12, n_relevant)
    groups = [[1], [0], [1] * n_relevant + [0] * (12 - n_relevant)]
    gm = fsum(np.log(one / n_found).sum() for one in by_order) / n_orders
    odds = fsum(np.log((1 + one) / (1 + n_found - one)).sum() for one in by_order) / n_orders
    assert value_of(groups, "gm_AP") == pytest.approx(gm, abs=1e-12)
    assert value_of(groups, "YAAP") == pytest.approx(odds, abs=1e-12)


def test_large_groups_are_drawn():
    """Half of 6,000 tied rows: no table of all places and hits is made."""
    names = ["gm_AP", "YAAP", "gm_Bpref", "G", "IPrec(recall=0.5)", "BPM(max_rel=1, T=4000)@5000", "NERR10(max_rel=1)"]
    options = {"qid": ["q"] * 6000, "measures": names}
    assert (rk.evaluate([1, 0] * 3000, np.zeros(6000), **options).facts.errors > 0).all()


@each_row("cutoff", [1, 5, 11, 12, 13])
def test_logarithm_of_ap_at_a_cutoff(cutoff):
    """Orders in which nothing relevant stands within the cut-off count as log 0.00001: by all places of four."""
    places = np.array(list(combinations(range(1, 13), 4)))
    total = (np.arange(1, 5) / places * (places <= cutoff)).sum(axis=1)
    wanted = np.log(np.maximum(total / 4, 1e-5)).mean()
    assert value_of(binary(4, "alone", size=12), f"gm_AP@{cutoff}") == pytest.approx(wanted, abs=1e-12)


@each_row("around", AROUND)
@each_row("n_relevant", [1, 4, 6, 11])
def test_logarithm_of_bpref(n_relevant, around):
    """By all sums of the rows above relevant ones that are not, capped at R."""
    groups = binary(n_relevant, around, size=12)
    rows = [label for group in groups for label in group]
    n_relevant, others = sum(rows), len(rows) - sum(rows)

    def step(state, _, label):
        above, total = state
        return (above, total + min(above, n_relevant)) if label else (above + 1, total)

    sums = walk(groups, (0, 0), step)
    wanted = fsum(
        float(chance) * log(max((1 - total / n_relevant / min(others, n_relevant)), 1e-5))
        for (_, total), chance in sums.items()
    )
    assert value_of(groups, "gm_Bpref") == pytest.approx(wanted, abs=1e-12)


def graded(around, counts=(14, 8, 5, 3)):
    """Return groups with one of tied rows of grades 0 to 3, 30 unless told otherwise."""
    before, behind = AROUND[around]
    return [*before, [label for label, count in enumerate(counts) for _ in range(count)], *behind]


@each_row("around", AROUND)
@each_row("gain", ["'linear'", "'exp'", "{1: 0.3, 2: 0.45, 3: 1.77}"])
def test_normalised_gain(around, gain):
    """By all numbers of rows of each grade above a place."""
    gains = {"'linear'": [0, 1, 2, 3], "'exp'": [0, 1, 3, 7]}.get(gain, [0, 0.3, 0.45, 1.77])
    groups = graded(around, (4, 2, 1, 1))
    best = sorted((gains[label] for group in groups for label in group), reverse=True)
    could = np.cumsum(np.maximum(best, 1))
    parts, rank, has = [], 0, 0.0
    for group in groups:
        counts = [group.count(label) for label in range(4)]
        for label in (1, 2, 3):
            others = [count - (one == label) for one, count in enumerate(counts)]
            for above in product(*(range(count + 1) for count in others)) if counts[label] else ():
                place = sum(above)
                chance = np.prod([comb(n, k) for n, k in zip(others, above, strict=True)]) / comb(len(group) - 1, place)
                gained = has + sum(gains[one] * k for one, k in enumerate(above)) + gains[label]
                share = counts[label] / len(group) * float(chance)
                parts.append(share * gains[label] / log2(2 + could[rank + place] - gained))
        rank += len(group)
        has += sum(gains[label] for label in group)
    assert value_of(groups, f"G(gain={gain})") == pytest.approx(fsum(parts) / sum(best), abs=1e-12)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("max_rel", "goal"), [(3, 1), (4, 2), (4, 9)])
def test_bejeweled_players(around, max_rel, goal):
    """By all gains so far, until the stop."""
    groups = graded(around)
    for cutoff in (3, 33):

        def step(state, rank, label, cutoff=cutoff):
            gained, stopped = state
            if stopped:
                return state
            gained += label  # in parts of max_rel
            return (gained, rank) if gained >= goal * max_rel or rank == cutoff else (gained, 0)

        ends = walk(groups, (0, 0), step)
        wanted = sum(chance * Fraction(gained, max_rel * (rank or cutoff)) for (gained, rank), chance in ends.items())
        assert_drawn(groups, f"BPM(max_rel={max_rel}, T={goal})@{cutoff}", float(wanted))


@each_row("around", AROUND)
@each_row("name", ["NERR8@8", "NERR9@40", "NERR10", "NERR11"])
def test_users_who_stop_at_what_satisfies_them(around, name):
    """With one grade of gain 1: by the rank of the first relevant row."""
    groups = binary(14, around)
    attention = np.cumprod([1.0, *(goes_on(name, rank) for rank in range(1, 40))])
    first = walk(groups, 0, lambda state, rank, label: state or label * rank)
    depth = 8 if name == "NERR8@8" else 40
    wanted = fsum(
        float(chance) * attention[rank - 1] / attention[:rank].sum()
        for rank, chance in first.items()
        if 0 < rank <= depth
    )
    assert_drawn(groups, nerr(name, 1), wanted)


def goes_on(name, rank) -> float:
    """Return the chance to go on behind a rank with no gain."""
    chances = {"NERR8@8": 1.0, "NERR9@40": rank / (rank + 1), "NERR10": 0.9, "NERR11": ((rank + 1) / (rank + 2)) ** 2}
    return chances[name]


def nerr(name, max_rel) -> str:
    """Return the measure to rank 40, or to its cut-off."""
    family, _, cutoff = name.partition("@")
    return f"{family}(max_rel={max_rel})@{cutoff}" if cutoff else f"{family}(max_rel={max_rel}, depth=40)"


@pytest.mark.parametrize("name", ["NERR8@8", "NERR9@40", "NERR10", "NERR11"])
def test_users_who_may_stop(name):
    """With gains of 1/4 and 1/2: by every place of three relevant rows of one grade and one of another, of 30."""
    places = np.array(list(combinations(range(30), 4)))
    lists = np.zeros((4 * len(places), 40))
    for odd in range(4):
        rows = np.arange(len(places)) + odd * len(places)
        lists[rows[:, None], 2 + places] = 0.25
        lists[rows, 2 + places[:, odd]] = 0.5
    lists[:, 0] = 0.25
    attention = np.cumprod([1.0, *(goes_on(name, rank) for rank in range(1, 40))])
    weight = attention * np.cumprod(np.column_stack((np.ones(len(lists)), 1 - lists[:, :-1])), axis=1)
    if name == "NERR8@8":
        weight[:, 8:] = 0
    wanted = ((weight * lists).sum(axis=1) / weight.sum(axis=1)).mean()
    groups = [[1], [0], [2] + [1] * 3 + [0] * 26]
    assert_drawn(groups, nerr(name, 4), wanted)


@each_row(("name", "wanted"), [("AP", 17 / 24), ("AP@2", 3 / 8), ("AP@1", 1 / 4)])
def test_average_precision_of_one_long_list(name, wanted):
    """A relevant row among two tied ones adds 3/4 in the mean, one below at rank 3 adds 2/3; long lists have a path."""
    assert value_of([[1, 0], [1], *([0] for _ in range(1100))], name) == pytest.approx(wanted, abs=1e-15)


@each_row("around", AROUND)
@each_row("p", [0.5, 0.95])
def test_compatibility(around, p):
    """Depth by depth: of each grade there are as many in the overlap as in the shorter of both heads of lists."""
    groups = graded(around)
    rows = [label for group in groups for label in group]
    parts, best = [], []
    for depth in range(1, len(rows) + 1):
        weight = p ** (depth - 1) / depth
        for label in (1, 2, 3):
            slots = min(max(depth - sum(row > label for row in rows), 0), rows.count(label))
            best.append(weight * slots)
            begin = 0
            above = 0
            for group in groups:
                if begin < depth <= begin + len(group):
                    drawn, n = depth - begin, group.count(label)
                    parts += [
                        weight * min(above + k, slots) * comb(n, k) * comb(len(group) - n, drawn - k)
                        / comb(len(group), drawn)
                        for k in range(max(0, drawn - len(group) + n), min(n, drawn) + 1)
                    ]  # fmt: skip
                begin += len(group)
                above += group.count(label)
    assert_drawn(groups, f"Compat(p={p}, depth=None)", fsum(parts) / fsum(best))
