"""Claims with a margin: better, not worse, equivalent. Every test knows them, and p and interval say the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired
from tables import each_row

from rankeval.errors import InvalidInput, UnknownName
from rankeval.significance import CLAIMS, CORRECTIONS, TESTS, paired_test
from rankeval.significance.declarations import Settings, unseen_share
from rankeval.significance.pairs import Pairs, as_pairs
from rankeval.significance.power import detectable_difference, topics_needed
from rankeval.significance.running import adjust_by_family, family_detectable, run, with_family_level, with_unseen

# The interval of these is made of the statistics that the p-value is made of.
EXACT = ("t", "randomization", "bootstrap")
ONE_SIDED = [name for name, claim in CLAIMS.items() if claim.hypotheses]


def columns(n, seed=0, n_columns=40):
    return np.random.default_rng(seed).normal(0.05, 0.3, (n, n_columns))


def test_tost_equals_statsmodels():
    for seed, n in enumerate((5, 12, 50, 200)):
        rng = np.random.default_rng(seed)
        one, two = rng.random((2, n))
        margin = float(rng.choice([0.02, 0.05, 0.1]))
        expected = ttost_paired(one, two, -margin, margin)[0]
        found = paired_test("t", one - two, claim="equivalent", margin=margin).p_value
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@each_row("name", EXACT)
@each_row("claim", ONE_SIDED)
@each_row("n", [6, 30])
def test_p_is_at_most_alpha_exactly_if_the_interval_lies_within_the_margin(name, claim, n):
    """By 200 columns at once; of equivalence the interval is that of 1 - 2 alpha."""
    margin = {"better": 0.02, "not_worse": 0.05, "equivalent": 0.6 / np.sqrt(n)}[claim]
    d, settings = columns(n, n_columns=200), Settings("two-sided", 0.1, 499, 3, claim, margin)
    found = run(TESTS[name], d, settings)
    shown = CLAIMS[claim].is_within(found.ci_low, found.ci_high, margin)
    assert (shown == (found.p_value <= settings.alpha)).all()
    assert 0 < shown.sum() < 200


def test_the_interval_of_equivalence_leaves_out_alpha_on_either_side():
    d = columns(30)[:, 0]
    both = paired_test("t", d, claim="equivalent", margin=0.1)
    plain = paired_test("t", d, alpha=0.1)
    assert (both.ci_low, both.ci_high) == pytest.approx((plain.ci_low, plain.ci_high), rel=1e-12)
    for claim, margin in (("better", 0.0), ("better", 0.02), ("not_worse", 0.02)):
        found = paired_test("t", d, claim=claim, margin=margin)
        assert found.ci_low == pytest.approx(plain.ci_low, rel=1e-12)
        assert found.ci_high == np.inf
        bound = margin if claim == "better" else -margin
        assert found.p_value == pytest.approx(stats.ttest_1samp(d, bound, alternative="greater").pvalue, rel=1e-12)


@each_row("name", TESTS)
def test_every_test_knows_every_claim(name):
    """Better without a margin is the one-sided test; wider margins are easier to show."""
    d = columns(20, n_columns=3)
    one_sided = paired_test(name, d, alternative="greater", n_resamples=199, rng=1)
    assert paired_test(name, d, claim="better", n_resamples=199, rng=1).p_value.tolist() == one_sided.p_value.tolist()
    for claim in ("not_worse", "equivalent"):
        wide, narrow = (
            paired_test(name, d, claim=claim, margin=margin, n_resamples=199, rng=1).p_value for margin in (1.0, 0.01)
        )
        assert (wide <= narrow + 1 / 200).all(), "but for the resolution of the resamples"
        assert (wide < 0.05).all()
        assert (narrow > 0.05).any()


def test_a_gain_that_is_the_margin_but_for_rounding_is_no_gain_beyond_it():
    """0.3 - 0.2 is less than 0.1 in floating point: to the sign test it is a tie with the margin of .1."""
    d = np.full(12, 0.3) - 0.2
    assert paired_test("sign", d, claim="better", margin=0.1).p_value == 1


@each_row("correction", [name for name, one in CORRECTIONS.items() if not one.all_pairs_only])
@each_row("claim", ONE_SIDED)
def test_every_correction_takes_every_claim(correction, claim):
    d, settings = columns(40, n_columns=5), Settings("two-sided", 0.1, 499, 3, claim, 0.06)
    pairs = [(0, j) for j in range(1, 6)]
    tested = run(TESTS["t"], d, with_family_level(settings, CORRECTIONS[correction], len(pairs)))
    adjusted = adjust_by_family(CORRECTIONS[correction], tested, d, np.zeros((40, 6, 1)), pairs, len(pairs), settings)
    assert (adjusted.p_value >= tested.p_value).all()
    if correction in ("bh", "by"):
        assert np.isnan([adjusted.ci_low, adjusted.ci_high]).all()
        return
    assert (adjusted.ci_low < d.mean(axis=0)).all()
    shown = CLAIMS[claim].is_within(adjusted.ci_low, adjusted.ci_high, 0.06)
    if correction in ("bonferroni", "none"):
        assert (shown == (adjusted.p_value <= settings.alpha)).all()
    elif correction == "holm":  # step-down shows what Bonferroni's interval shows, and more
        assert (adjusted.p_value[shown] <= settings.alpha).all()


def test_max_t_takes_both_sides_of_all_pairs_for_one_family():
    """Equivalence of several: the hypotheses below and above stand beside each other; the larger p is the pair's."""
    d, margin = columns(40, n_columns=3), 0.1
    settings = Settings("two-sided", 0.05, 999, 3, "equivalent", margin)
    function = CORRECTIONS["max_t"].function
    stacked = function(np.hstack([d + margin, margin - d]), Settings("greater", 0.05, 999, 3))
    tested = run(TESTS["randomization"], d, settings)
    pairs = [(0, 1), (0, 2), (1, 2)]
    found = adjust_by_family(CORRECTIONS["max_t"], tested, d, np.zeros((40, 3, 1)), pairs, 3, settings)
    np.testing.assert_allclose(found.p_value, np.maximum(stacked[:3], stacked[3:]), rtol=1e-12)
    alone = adjust_by_family(
        CORRECTIONS["max_t"], run(TESTS["randomization"], d[:, :1], settings), d[:, :1],
        np.zeros((40, 2, 1)), [(0, 1)], 1, settings,
    )  # fmt: skip
    assert alone.p_value[0] == pytest.approx(tested.p_value[0]), "one pair is no family"


@each_row(
    ("options", "says"),
    [
        ({"claim": "difference", "margin": 0.1}, "expected no margin"),
        ({"claim": "not_worse"}, "above 0"),
        ({"claim": "equivalent", "margin": -0.1}, "above 0"),
        ({"claim": "better", "margin": -0.1}, "0 or more"),
        ({"claim": "better", "margin": np.nan}, "margin"),
        ({"claim": "better", "alternative": "less"}, "leave alternative out"),
    ],
)
def test_margins_and_sides_that_do_not_go_with_a_claim_are_refused(options, says):
    with pytest.raises(InvalidInput, match=says):
        Settings(**options)


def test_an_unknown_claim_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="not_worse"):
        Settings(claim="not_worst", margin=0.1)


@each_row("n", [5, 30])
@each_row("claim", ONE_SIDED)
def test_the_detectable_difference_of_a_claim_is_shown_with_the_power_asked_for(claim, n):
    """By simulation: of "better" a gain, of the others the margin at which equal systems pass."""
    margin = 0.1
    for unseen in (0, 1, 2):
        found = float(detectable_difference(n, 1.0, claim=claim, margin=margin, unseen=unseen, greatest_loss=2.5))
        gain, tested = (found, margin) if claim == "better" else (0.0, found)
        d = np.random.default_rng(4).normal(gain, 1.0, (n, 20_000))
        p_value = paired_test("t", d, claim=claim, margin=tested, unseen=unseen, greatest_loss=2.5).p_value
        assert (p_value <= 0.05).mean() == pytest.approx(0.8, abs=0.012)


@each_row("name", TESTS)
@each_row("claim", ["not_worse", "equivalent"])
def test_an_unseen_query_is_one_more_that_lost_all(name, claim):
    """Each hypothesis has its own, on the side that speaks against it; so do the two ends of the interval."""
    d = np.random.default_rng(8).normal(0.02, 0.1, (30, 3))
    options = {"n_resamples": 499, "rng": 3}
    found = paired_test(name, d, claim=claim, margin=0.2, unseen=2, greatest_loss=[0.5, 1.0, 2.0], **options)
    loss = np.tile([0.5, 1.0, 2.0], (2, 1))
    low = paired_test(name, np.concatenate([d, -loss]) + 0.2, alternative="greater", **options)
    high = paired_test(name, np.concatenate([d, loss]) - 0.2, alternative="less", **options)
    p = low.p_value if claim == "not_worse" else np.maximum(low.p_value, high.p_value)
    reach = loss[0] * (1 - 0.05 ** (1 / 30))
    np.testing.assert_allclose(found.p_value, np.maximum(p, (1 - 0.2 / loss[0]) ** 30), rtol=1e-9)
    np.testing.assert_allclose(found.ci_low, np.minimum(low.ci_low - 0.2, -reach), rtol=1e-9)
    if claim == "equivalent":
        np.testing.assert_allclose(found.ci_high, np.maximum(high.ci_high + 0.2, reach), rtol=1e-9)


@each_row("name", sorted(TESTS))
@each_row("alpha", [0.05, 0.025, 0.0025])
@each_row("n", [10, 50, 200])
def test_whole_queries_show_no_more_than_their_number_allows(name, alpha, n):
    """By any test and at any level: a breakage that all n queries miss with a chance above alpha is not ruled out."""
    edge = unseen_share(n, alpha)
    d = np.zeros(n)
    d[: n // 2] = 1e-9  # noise that is nothing
    options = {"claim": "not_worse", "alpha": alpha, "unseen": 1, "n_resamples": 1999, "rng": 0}
    found = paired_test(name, d, margin=0.999 * edge, **options)
    assert found.p_value > alpha
    assert not found.ci_low > -0.999 * edge
    if name == "t":
        assert paired_test(name, d, margin=min(3 * edge, 0.99), **options).p_value <= alpha or edge > 0.3


@each_row("correction", ["max_t", "holm"])
def test_systems_and_their_differences_count_the_same_unseen_queries(correction):
    """All pairs are made of the systems' scores; the differences themselves give the same numbers."""
    scores = np.random.default_rng(6).uniform(size=(25, 4, 1))
    pairs = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])
    settings = Settings(claim="equivalent", margin=0.4, unseen=1, n_resamples=299, rng=5)
    lazy, losses = Pairs.of_systems(scores, pairs), np.linspace(0.6, 1.1, 6)
    found = []
    for d in (lazy, as_pairs(lazy[:])):
        gains = with_unseen(d, losses, settings)
        wide = with_family_level(settings, CORRECTIONS[correction], 6)
        tested = run(TESTS["randomization"], gains, wide)
        adjusted = adjust_by_family(CORRECTIONS[correction], tested, gains, scores, pairs, 6, settings)
        parts = (tested.p_value, tested.ci_low, tested.ci_high, adjusted.p_value, adjusted.ci_low, adjusted.ci_high)
        found.append(np.array(parts))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@each_row("name", [name for name in TESTS if name not in ("sign", "wilcoxon", "wilcoxon_pratt")])
def test_equal_scores_on_few_queries_show_no_absence_of_harm(name):
    """Five queries without any difference: 45 % of all queries may be broken."""
    for claim in ("not_worse", "equivalent"):
        found = paired_test(name, np.zeros(5), claim=claim, margin=0.001, unseen=1, n_resamples=999, rng=0)
        assert found.p_value > 0.05
        assert found.ci_low < -0.1
    assert unseen_share(5, 0.05) == pytest.approx(1 - 0.05**0.2)
    assert (1 - unseen_share(5, 0.05)) ** 5 == pytest.approx(0.05)


def test_the_queries_that_a_claim_needs():
    """The least number at which the power is reached, by the detectable difference; impossible claims are refused."""
    for claim in ("not_worse", "equivalent"):
        n = topics_needed(0.0, 0.15, claim=claim, margin=0.05)
        reached = [float(detectable_difference(k, 0.15, claim=claim, margin=0.05)) for k in (n - 1, n)]
        assert reached[1] <= 0.05 < reached[0]
    assert topics_needed(0.08, 0.15, claim="better", margin=0.03) == topics_needed(0.05, 0.15, alternative="greater")
    for difference in (-0.05, -0.06):
        with pytest.raises(InvalidInput, match="is not true of such a gain"):
            topics_needed(difference, 0.15, claim="not_worse", margin=0.05)


def test_the_detectable_difference_is_that_of_the_test():
    """Not known for tests of ranks; infinite if no data can lead to a rejection."""
    sd, none = np.array([0.2]), CORRECTIONS["none"]
    assert np.isnan(family_detectable(TESTS["wilcoxon"], none, 1, 50, sd, Settings()))
    assert family_detectable(TESTS["randomization"], none, 1, 5, sd, Settings()) == np.inf
    for name in EXACT:
        assert family_detectable(TESTS[name], none, 1, 50, sd, Settings()) == detectable_difference(50, 0.2)
