"""tau equals SciPy, tau_AP brute force and its authors' values; rank ranges hold every admissible order."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tables import each_row

from rankeval.errors import InvalidInput
from rankeval.significance.declarations import Settings
from rankeval.significance.orders import (
    competition_ranks,
    rank_ranges,
    shares_first,
    swaps_and_ties,
    tau_ap_a,
    tau_ap_b,
    tau_b,
)

# Means in few values, so that many tie.
FEW = st.integers(2, 8).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 5), min_size=n, max_size=n) for _ in range(2)])
)
DISTINCT = st.integers(2, 12).flatmap(lambda n: st.permutations(range(n)))


def yilmaz(truth, order):
    """tau_AP of Yilmaz et al. for orders without ties, rank by rank; exact."""
    total = Fraction(0)
    for i in range(1, len(order)):
        total += Fraction(sum(truth[order[j]] > truth[order[i]] for j in range(i)), i)
    return 2 * total / (len(order) - 1) - 1


def untied(values):
    """Yield every order of the systems, best first, that breaks ties only."""
    groups = [[i for i, v in enumerate(values) if v == value] for value in sorted(set(values), reverse=True)]
    for parts in itertools.product(*[itertools.permutations(group) for group in groups]):
        yield [i for part in parts for i in part]


def accuracy(truth, estimate):
    """Return the mean of tau_AP over all ways to break the ties of either order."""
    found = []
    for best_first in untied(truth):
        score = {system: -rank for rank, system in enumerate(best_first)}
        found += [yilmaz(score, order) for order in untied(estimate)]
    return sum(found) / len(found)


def agreement(one, other):
    """Return tau_AP,b by its definition, system by system; None if it has none."""
    directed = []
    for a, b in ((one, other), (other, one)):
        shares = []
        for i in range(len(a)):
            above = [j for j in range(len(a)) if b[j] > b[i]]
            if above:
                shares.append(Fraction(sum(a[j] > a[i] for j in above), len(above)))
        if not shares:
            return None
        directed.append(2 * sum(shares) / len(shares) - 1)
    return sum(directed) / 2


@given(st.integers(2, 6).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n)] * 2)))
def test_accuracy_is_the_mean_over_tie_breakings(orders):
    if max(np.bincount(orders[0]).max(), np.bincount(orders[1]).max()) < 5:  # else too many ways
        assert tau_ap_a(*orders) == pytest.approx(float(accuracy(*orders)), abs=1e-12)


@given(FEW)
def test_agreement_is_its_definition(orders):
    expected = agreement(*orders)
    if expected is None:
        assert np.isnan(tau_ap_b(*orders))
    else:
        assert tau_ap_b(*orders) == pytest.approx(float(expected), abs=1e-12)


# The tables, and values to four digits, of the tests of ircor, the R package of Urbano and Marrero (tests/testthat).
ONE = (
    (0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992),
    (0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988),
)
TWO = (
    (0.266, 0.573, 0.202, 0.945, 0.629, 0.206, 0.687, 0.77, 0.718, 0.38),
    (0.263, 0.843, 0.728, 0.928, 0.08, 0.114, 0.467, 0.641, 0.973, 0.644),
)
THREE = (
    (0.185, 0.573, 0.944, 0.129, 0.468, 0.553, 0.761, 0.405, 0.976, 0.445),
    (0.845, 0.272, 0.275, 0.924, 0.605, 0.334, 0.162, 0.872, 0.018, 0.25),
)


@each_row(
    ("orders", "untied_a", "tied_a", "untied_b", "tied_b"),
    [
        (ONE, 0.8519, 0.7454, 0.8333, 0.7321),
        (TWO, 0.2504, 0.2692, 0.2880, 0.2970),
        (THREE, -0.6971, -0.5558, -0.6680, -0.7047),
    ],
)
def test_the_published_values(orders, untied_a, tied_a, untied_b, tied_b):
    """Values of tau_AP, tau_AP,a and tau_AP,b, without ties and with values rounded to tenths."""
    truth, estimate = orders
    rounded = np.round(orders, 1)
    assert tau_ap_a(truth, estimate) == pytest.approx(untied_a, abs=5e-5)
    assert tau_ap_a(truth, rounded[1]) == pytest.approx(tied_a, abs=5e-5)
    assert tau_ap_b(truth, estimate) == pytest.approx(untied_b, abs=5e-5)
    assert tau_ap_b(*rounded) == tau_ap_b(*rounded[::-1]) == pytest.approx(tied_b, abs=5e-5)


def test_tau_equals_scipy_on_200_tables():
    """Tables of 2 to 40 systems, rounded to tenths and whole."""
    generator = np.random.default_rng(0)
    for trial in range(200):
        one, other = generator.random((2, generator.integers(2, 41)))
        if trial % 2:
            one, other = one.round(1), other.round(1)
        expected = stats.kendalltau(one, other).statistic
        np.testing.assert_allclose(tau_b(one, other), expected, rtol=0, atol=1e-12)


@pytest.mark.shared
@each_row("collection", ["cranfield", "trec_covid_r5"])
def test_golden_tau(shared, collection):
    """Tau-b of all pairs of measures over real runs, as SciPy gave it, to 1e-12."""
    golden = json.loads((shared / "golden" / "stats" / f"{collection}.json").read_text())
    checked = 0
    for pair, expected in golden["system_rank_correlation"].items():
        one, other = (golden["system_means"][measure] for measure in pair.split("|"))
        assert tau_b(list(one.values()), [other[name] for name in one]) == pytest.approx(
            expected["kendall_tau_b"], abs=1e-12
        )
        checked += 1
    assert checked >= 20


@given(FEW)
def test_bounds_and_symmetry(orders):
    one, other = orders
    for tau in (tau_b, tau_ap_a, tau_ap_b):
        assert np.isnan(tau(one, other)) or -1 - 1e-12 <= tau(one, other) <= 1 + 1e-12
    assert tau_b(one, other) == pytest.approx(tau_b(other, one), abs=1e-12, nan_ok=True)
    assert tau_ap_b(one, other) == pytest.approx(tau_ap_b(other, one), abs=1e-12, nan_ok=True)


@given(FEW, st.randoms(use_true_random=False))
def test_the_order_of_the_systems_is_none(orders, random):
    places = list(range(len(orders[0])))
    random.shuffle(places)
    moved = [[order[place] for place in places] for order in orders]
    for tau in (tau_b, tau_ap_a, tau_ap_b):
        assert tau(*moved) == pytest.approx(tau(*orders), abs=1e-12, nan_ok=True)
    assert [part.sum() for part in swaps_and_ties(*moved)] == [part.sum() for part in swaps_and_ties(*orders)]


@given(FEW, st.floats(0.5, 3), st.floats(-5, 5))
def test_only_the_order_counts(orders, factor, shift):
    one, other = orders
    rescaled = np.exp(np.array(one) * factor) + shift
    for tau in (tau_b, tau_ap_a, tau_ap_b):
        assert tau(rescaled, other) == pytest.approx(tau(one, other), abs=1e-12, nan_ok=True)


@given(DISTINCT)
def test_identity_and_reversal(order):
    values = np.array(order, dtype=float)
    for tau in (tau_b, tau_ap_a, tau_ap_b):
        assert tau(values, 10 * values) == pytest.approx(1)
        assert tau(values, -values) == pytest.approx(-1)


@given(FEW)
def test_equal_orders_with_ties_agree_fully(orders):
    one, _ = orders
    if len(set(one)) > 1:
        assert tau_b(one, one) == pytest.approx(1)
        assert tau_ap_b(one, one) == pytest.approx(1)


def test_a_swap_at_the_top_weighs_more():
    truth = [5, 4, 3, 2, 1]
    top, bottom = [4, 5, 3, 2, 1], [5, 4, 3, 1, 2]
    assert tau_b(truth, top) == pytest.approx(tau_b(truth, bottom))
    assert tau_ap_a(truth, top) < tau_ap_a(truth, bottom)
    assert tau_ap_b(truth, top) < tau_ap_b(truth, bottom)


@given(FEW)
def test_pairs_are_in_the_same_order_swapped_or_tied(orders):
    one, other = orders
    swaps, ties = swaps_and_ties(one, other)
    pairs = list(itertools.combinations(range(len(one)), 2))
    assert swaps.sum() == sum((one[i] - one[j]) * (other[i] - other[j]) < 0 for i, j in pairs)
    assert ties.sum() == sum(one[i] == one[j] or other[i] == other[j] for i, j in pairs)
    for i, j in zip(*np.nonzero(swaps), strict=True):
        assert one[i] > one[j]
        assert other[i] < other[j]


def test_means_that_rounding_parts_are_tied():
    """The mean of the same tenths in another order differs in its last bit, and is no other place in the order."""
    means = [0.1 + 0.2, 0.3, 0.6]
    assert means[0] != means[1]
    assert competition_ranks(means).tolist() == [2, 2, 1]
    assert tau_b(means, [0.5, 0.5, 0.9]) == pytest.approx(1)
    assert swaps_and_ties(means, [0.4, 0.5, 0.9])[0].sum() == 0
    assert competition_ranks([-1e-300, 0.0, 5.0]).tolist() == [3, 2, 1]


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=20))
def test_competition_ranks_are_scipys(values):
    expected = stats.rankdata([-value for value in values], method="min")
    assert competition_ranks(np.array(values) / 10).tolist() == expected.tolist()


@each_row("tau", [tau_b, tau_ap_a, tau_ap_b])
def test_means_that_make_no_order_are_refused(tau):
    with pytest.raises(InvalidInput, match="2 systems or more, found shape"):
        tau([1.0], [1.0])
    with pytest.raises(InvalidInput, match="1 that are NaN"):
        tau([1.0, np.nan], [1.0, 2.0])
    with pytest.raises(InvalidInput, match="found 2 and 3"):
        tau([1.0, 2.0], [1.0, 2.0, 3.0])


@given(st.integers(2, 6), st.data())
def test_rank_ranges_hold_every_order_that_the_shown_pairs_allow(k, data):
    """Against all orders of k systems: with a transitive set of shown pairs, the ends are reached and never passed."""
    truth = data.draw(st.permutations(range(k)))
    pairs = [(i, j) for i in range(k) for j in range(k) if truth[i] < truth[j]]
    known = set(data.draw(st.lists(st.sampled_from(pairs), unique=True)))
    while more := {(a, d) for a, b in known for c, d in known if b == c} - known:
        known |= more
    better = np.zeros((k, k), dtype=bool)
    for i, j in known:
        better[i, j] = True
    allowed = [order for order in itertools.permutations(range(1, k + 1)) if all(order[i] < order[j] for i, j in known)]
    low, high = rank_ranges(better)
    assert low.tolist() == np.min(allowed, axis=0).tolist()
    assert high.tolist() == np.max(allowed, axis=0).tolist()


def test_shares_of_firsts_equal_all_resamples():
    """Three systems on four queries, scores in tenths so that resamples tie: all 256 resamples, within Monte Carlo."""
    scores = np.array([[0.3, 0.2, 0.4], [0.6, 0.8, 0.5], [0.1, 0.1, 0.2], [0.5, 0.4, 0.3]])
    expected = np.zeros(3)
    for drawn in itertools.product(range(4), repeat=4):
        means = [sum(Fraction(str(scores[q, s])) for q in drawn) for s in range(3)]
        leads = [mean == max(means) for mean in means]
        expected += np.array(leads) / sum(leads) / 256
    found = shares_first(scores, Settings(n_resamples=40_000, rng=1))
    np.testing.assert_allclose(found, expected, atol=4 * 0.5 / np.sqrt(40_000))
    assert found.sum() == pytest.approx(1)


def test_equal_systems_share_the_first_place():
    scores = np.random.default_rng(0).random((30, 1)) * np.ones(3)
    assert shares_first(scores, Settings(n_resamples=99, rng=0)) == pytest.approx([1 / 3] * 3)
