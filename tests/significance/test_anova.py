"""Analysis of variance: equal to statsmodels and SciPy, plain sums, invariances, and what it says of itself."""

from __future__ import annotations

import gzip
import json
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from shown import whole
from statsmodels.formula.api import ols
from tables import each_row

import rankeval as rk
from rankeval.errors import ConventionMismatch, InvalidInput, QueryIdError, UnknownName
from rankeval.significance.anova import AXES, p_of_f, sphericity, two_way

CELLS = "C(query) + C(system)"
MODELS = {
    "single": f"y ~ {CELLS}",
    "nested": f"y ~ {CELLS} + C(query):C(system)",
    "crossed": f"y ~ ({CELLS} + C(replicate)) ** 2",
}


def long(block):
    query, system, replicate = (axis.ravel() for axis in np.indices(block.shape))
    return pd.DataFrame({"y": block.ravel(), "query": query, "system": system, "replicate": replicate})


def by_statsmodels(block, replicates):
    """Return the table of statsmodels, which tests everything against error."""
    model = MODELS[replicates if block.shape[2] > 1 else "single"]
    table = sm.stats.anova_lm(ols(model, long(block)).fit(), typ=2)
    names = table.index.str.replace(r"C\((\w+)\)", r"\1", regex=True).str.replace(":", " x ")
    return table.set_axis(names.str.replace("Residual", "error"))


def agrees(block, replicates):
    expected = by_statsmodels(block, replicates)
    found = {row.source: row for row in two_way(block, queries="fixed", replicates=replicates).sources}
    assert list(found) == list(expected.index)
    for source, row in expected.iterrows():
        one = found[source]
        numbers = (one.df, one.sum_sq, one.F, one.p_value)
        np.testing.assert_allclose(numbers, row[["df", "sum_sq", "F", "PR(>F)"]], rtol=1e-12, atol=1e-12)
        assert one.mean_sq == pytest.approx(one.sum_sq / one.df, rel=1e-15)


@pytest.mark.parametrize("replicates", ["crossed", "nested"])
@pytest.mark.parametrize("part", range(3))
def test_equals_statsmodels_on_random_tables(part, replicates):
    """75 tables for each model: 2 to 12 queries, 2 to 5 systems, 1 to 4 replicates, scores of any kind in [0, 1]."""
    generator = np.random.default_rng([1, part])
    for _ in range(25):
        n, a, r = generator.integers([2, 2, 1], [13, 6, 5])
        if (n - 1) * (a - 1) < 2:
            n += 2
        block = np.clip(
            generator.random((n, 1, 1))
            + generator.normal(0, 0.1, (1, a, 1))
            + generator.normal(0, 0.1, (n, 1, r))
            + generator.normal(0, 0.2, (n, a, r)),
            0,
            1,
        )
        agrees(block, replicates)


@pytest.mark.parametrize("replicates", ["crossed", "nested"])
def test_random_queries_are_tested_against_their_interaction(replicates):
    """By the mean squares of statsmodels, and by SciPy for two systems: the paired t of the means of replicates."""
    rivals = {"query": "query x system", "system": "query x system"}
    if replicates == "crossed":
        rivals = {"system": "query x system", "replicate": "query x replicate"}
    generator = np.random.default_rng(2)
    for _ in range(20):
        block = generator.random((9, 2, 3))
        table = by_statsmodels(block, replicates)
        mean_sq = (table["sum_sq"] / table["df"]).to_dict()
        found = {row.source: row for row in two_way(block, replicates=replicates).sources}
        for name, row in found.items():
            if name == "error" or (name == "query" and replicates == "crossed"):
                assert row.against == ""
                assert np.isnan([row.F, row.p_value, row.eta_squared, row.omega_squared]).all()
                continue
            rival = rivals.get(name, "error")
            assert row.against == rival
            assert pytest.approx(mean_sq[name] / mean_sq[rival], rel=1e-11) == row.F
            assert row.p_value == pytest.approx(stats.f.sf(row.F, row.df, table["df"][rival]), rel=1e-11)
        t = stats.ttest_rel(*block.mean(axis=2).T)
        assert pytest.approx(t.statistic**2, rel=1e-11) == found["system"].F
        assert found["system"].p_value == pytest.approx(t.pvalue, rel=1e-11)


def test_two_shards_by_hand():
    """Cells .1 .3 / .3 .5 and .5 .5 / .9 .9: each contrast is a sum of eight signed scores, SS its square by 8."""
    block = np.array([[[0.1, 0.3], [0.3, 0.5]], [[0.5, 0.5], [0.9, 0.9]]])
    found = two_way(block)
    expected = {
        "query": 1.6**2 / 8,
        "system": 1.2**2 / 8,
        "replicate": 0.4**2 / 8,
        "query x system": 0.4**2 / 8,
        "query x replicate": 0.4**2 / 8,
        "system x replicate": 0,
        "error": 0,
    }
    assert {row.source: row.sum_sq for row in found.sources} == pytest.approx(expected, abs=1e-15)
    assert {row.df for row in found.sources} == {1}
    assert pytest.approx(9) == found.sources[1].F
    assert pytest.approx(1) == found.sources[2].F
    assert found.components["query"] == pytest.approx((0.32 - 0.02 - 0.02 + 0) / 4)
    assert found.components["query x replicate"] == pytest.approx(0.02 / 2)


def test_what_shards_share_is_no_error():
    """Queries differ by shard for all systems alike: nested replicates hide query x system, crossed ones show it."""
    generator = np.random.default_rng(7)
    cells = generator.normal(0, 0.2, (60, 1, 1)) + generator.normal(0, 0.05, (60, 4, 1))
    block = cells + generator.normal(0, 0.3, (60, 1, 3)) + generator.normal(0, 0.05, (60, 4, 3))
    systems = {
        name: {shard: frame(block[:, i, k]) for k, shard in enumerate("xyz")}
        for i, name in enumerate(["a", "b", "c", "d"])
    }
    crossed, nested = (rk.analysis.anova(systems, replicates=one) for one in ("crossed", "nested"))
    by_source = [one.table.set_index("source") for one in (crossed, nested)]
    assert by_source[0]["F"]["query x system"] > 3
    assert by_source[1]["F"]["query x system"] < 0.5
    assert by_source[0]["F"]["system"] == pytest.approx(by_source[1]["F"]["system"], rel=1e-12)
    assert crossed.p_corrected == pytest.approx(nested.p_corrected, rel=1e-12)
    assert any("not interchangeable" in note for note in nested.notes)
    assert not any("not interchangeable" in note for note in crossed.notes)
    assert (crossed.replicates, nested.replicates) == ("crossed", "nested")


def test_interchangeable_replicates_get_no_note():
    block = np.random.default_rng(9).normal(size=(30, 2, 3)) * 0.1
    systems = {name: {seed: frame(block[:, i, seed]) for seed in range(3)} for i, name in enumerate("ab")}
    assert not any("not interchangeable" in note for note in rk.analysis.anova(systems, replicates="nested").notes)
    with pytest.raises(UnknownName, match="crossed, nested"):
        rk.analysis.anova(systems, replicates="shared")


@pytest.mark.parametrize("replicates", ["crossed", "nested"])
def test_f_keeps_its_rate_on_equal_systems(replicates):
    """Random queries, with both interactions of queries present: p of system is at most .05 in 5 % of worlds."""
    generator = np.random.default_rng(11)
    found = 0
    for _ in range(1000):
        block = (
            generator.normal(0, 0.2, (20, 1, 1))
            + generator.normal(0, 0.1, (20, 4, 1))
            + generator.normal(0, 0.2, (20, 1, 3))
            + generator.normal(0, 0.1, (20, 4, 3))
        )
        found += two_way(block, replicates=replicates).sources[1].p_value <= 0.05
    assert 30 <= found <= 70


def test_without_replicates_two_systems_are_the_paired_t():
    scores = np.random.default_rng(0).random((20, 2))
    t = stats.ttest_rel(scores[:, 1], scores[:, 0])
    for queries in ("random", "fixed"):
        _, system, _ = two_way(scores, queries=queries).sources
        assert (system.F, system.p_value) == pytest.approx((t.statistic**2, t.pvalue), rel=1e-12)


@pytest.mark.shared
@each_row("collection", ["trec_covid_r5", "cranfield"])
def test_equals_the_golden_table_of_real_runs(shared, collection):
    """Sums of squares, F and p of statsmodels in golden/stats, of all runs."""
    golden = json.loads((shared / "golden" / "stats" / f"{collection}.json").read_text())["all_pairs"]
    folder = shared / "golden" / "perquery_full_precision" / collection
    runs = [json.loads(gzip.decompress((folder / f"{run}.json.gz").read_bytes())) for run in golden["systems"]]
    topics = [run.get("topics", run) for run in runs]
    scores = np.array([[run[query][golden["measure"]] for run in topics] for query in sorted(topics[0])])
    query, system, error = two_way(scores).sources
    expected = golden["anova_two_way"]
    found = (query.sum_sq, system.sum_sq, error.sum_sq, system.F, system.p_value)
    keys = ("ss_topic", "ss_system", "ss_error", "F_system", "p_system")
    np.testing.assert_allclose(found, [expected[key] for key in keys], rtol=1e-12)


blocks = st.tuples(st.integers(2, 6), st.integers(2, 4), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(0, 8).map(lambda value: value / 8))
)


@given(blocks)
@settings(max_examples=examples(60))
def test_sums_of_squares_add_up_and_effects_stay_in_range(block):
    for queries, replicates in product(("random", "fixed"), ("crossed", "nested")):
        found = two_way(block, queries=queries, replicates=replicates)
        total = ((block - block.mean()) ** 2).sum()
        assert sum(row.sum_sq for row in found.sources) == pytest.approx(total, rel=1e-12, abs=1e-14)
        assert sum(row.df for row in found.sources) == block.size - 1
        for row in found.sources[:-1]:
            for value in (row.eta_squared, row.omega_squared):
                assert np.isnan(value) or 0 <= value <= 1
            assert np.isnan(row.F) == (not row.against or against(found, row).mean_sq == 0)
            assert np.isnan(row.p_value) or 0 < row.p_value <= 1


def against(found, row):
    return next(one for one in found.sources if one.source == row.against)


@given(blocks, st.randoms())
@settings(max_examples=examples(40))
def test_the_order_of_queries_systems_and_replicates_does_not_matter(block, random):
    shuffled = block.copy()
    for axis in range(3):
        order = list(range(block.shape[axis]))
        random.shuffle(order)
        shuffled = shuffled.take(order, axis=axis)
    for one, other in zip(two_way(block).sources, two_way(shuffled).sources, strict=True):
        for name in ("sum_sq", "F", "p_value", "eta_squared", "omega_squared"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=1e-14, nan_ok=True)


@given(blocks)
@settings(max_examples=examples(40))
def test_replicates_that_are_copies_change_no_test_of_systems(block):
    """A mean of copies is the score itself: F of system against the interaction is that without replicates."""
    cells = block[:, :, 0]
    once, thrice = two_way(cells).sources, two_way(np.repeat(cells[:, :, None], 3, axis=2)).sources
    assert pytest.approx(thrice[1].F, rel=1e-9, nan_ok=True) == once[1].F
    assert thrice[-1].sum_sq == 0


def test_effects_follow_from_f():
    """By hand: F is 9 on 1 and 2 degrees of freedom and 6 scores; below 1 omega squared is 0."""
    _, system, _ = two_way([[0.1, 0.3], [0.2, 0.4], [0.3, 0.8]]).sources
    assert system.omega_squared == pytest.approx(8 / (8 + 6))
    assert system.eta_squared == pytest.approx(9 / (9 + 2))
    assert two_way([[0.1, 0.3], [0.4, 0.2], [0.3, 0.31]]).sources[1].omega_squared == 0


@each_row("replicates", ["crossed", "nested"])
def test_components_are_those_of_the_world(replicates):
    """Variances as drawn; systems apart by a variance of their means of .0064, crossed replicates by one of .0025."""
    generator = np.random.default_rng(8)
    n, r, means = 400, 4, np.array([-0.08, 0.0, 0.08])
    expected = {"query": 0.04, "system": means.var(ddof=1), "query x system": 0.01, "error": 0.0025}
    shifts, shared = np.zeros(r), 0.0
    if replicates == "crossed":
        shifts, shared = np.array([-0.05, 0.05, -0.05, 0.05]), 0.15
        expected |= {"replicate": shifts.var(ddof=1), "query x replicate": shared**2}
    found = []
    for _ in range(20):
        block = (
            generator.normal(0, 0.2, (n, 1, 1))
            + means[None, :, None]
            + shifts[None, None, :]
            + generator.normal(0, 0.1, (n, 3, 1))
            + generator.normal(0, shared, (n, 1, r))
            + generator.normal(0, 0.05, (n, 3, r))
        )
        found.append(two_way(block, replicates=replicates).components)
    mean = pd.DataFrame(found).mean()
    for source, value in expected.items():
        assert mean[source] == pytest.approx(value, rel=0.05), source


def by_restricted_maximum_likelihood(block, systems, terms):
    """Return the components of statsmodels' MixedLM: queries random, and the terms within a query."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = sm.MixedLM.from_formula(
            f"y ~ {systems}", long(block), groups="query", re_formula="1", vc_formula=terms
        ).fit(reml=True, method=["lbfgs", "powell"])
    named = dict(zip(fitted.model.exog_vc.names, fitted.vcomp, strict=True))
    return {"query": float(fitted.cov_re.iloc[0, 0]), **named, "error": float(fitted.scale)}


def test_components_equal_restricted_maximum_likelihood():
    """In balanced data with no negative estimate, both are the same, nested and crossed."""
    generator = np.random.default_rng(5)
    block = (
        generator.normal(0, 0.3, (14, 1, 1))
        + generator.normal(0, 0.2, (14, 3, 1))
        + generator.normal(0, 0.1, (14, 3, 4))
    )
    terms = {"query x system": "0 + C(system)"}
    fitted = by_restricted_maximum_likelihood(block, "C(system)", terms)
    components = two_way(block, replicates="nested").components
    for source, value in fitted.items():
        assert components[source] == pytest.approx(value, rel=1e-2), source
    block += generator.normal(0, 0.2, (14, 1, 4))
    fitted = by_restricted_maximum_likelihood(
        block, "C(system) * C(replicate)", {**terms, "query x replicate": "0 + C(replicate)"}
    )
    components = two_way(block).components
    for source, value in fitted.items():
        assert components[source] == pytest.approx(value, rel=1e-2), source


def test_sphericity_is_that_of_the_covariance():
    """Two systems have one difference; all alike gives 1; one system unlike two copies of each other gives 1 / 2."""
    generator = np.random.default_rng(1)
    assert sphericity(generator.random((9, 2))) == 1
    assert sphericity(np.eye(3) + generator.random((3, 1))) == pytest.approx(1)
    one, other = generator.random((2, 9, 1))
    assert sphericity(np.hstack([one, one, other])) == pytest.approx(1 / 2)
    assert np.isnan(sphericity([[0.1, 0.2], [0.3, 0.4]]))
    block = generator.random((20, 4)) * [1, 2, 3, 4]
    covariance = np.cov(block.T)
    centring = np.eye(4) - 1 / 4
    roots = np.linalg.eigvalsh(centring @ covariance @ centring)
    assert sphericity(block) == pytest.approx(roots.sum() ** 2 / (3 * (roots**2).sum()), rel=1e-12)


def test_near_identical_systems_need_the_corrected_p():
    """Nine variants beside one unlike system, all equal: F claims a difference in a sixth of the cases."""
    generator = np.random.default_rng(4)
    raw = corrected = 0
    for _ in range(1000):
        variants = generator.normal(0, 0.15, (25, 1)) + generator.normal(0, 0.01, (25, 9))
        scores = generator.normal(0, 0.2, (25, 1)) + np.hstack([variants, generator.normal(0, 0.15, (25, 1))])
        _, system, error = two_way(scores).sources
        epsilon = sphericity(scores)
        raw += system.p_value <= 0.05
        corrected += p_of_f(system.F, system.df * epsilon, error.df * epsilon) <= 0.05
    assert 130 < raw < 230
    assert 30 <= corrected <= 70


def test_the_corrected_p_belongs_to_the_scores():
    """With two systems it is p itself, since there is one difference only."""
    scores = np.random.default_rng(0).uniform([0, 0.2, 0.4], [1, 1.2, 1.4], (15, 3))
    _, system, error = two_way(scores).sources
    found = rk.analysis.anova({name: frame(scores[:, place]) for place, name in enumerate("abc")})
    expected = stats.f.sf(system.F, 2 * found.epsilon, error.df * found.epsilon)
    assert found.p_corrected == pytest.approx(expected, rel=1e-9)
    assert system.p_value < expected < 0.05
    pair = rk.analysis.anova({name: frame(scores[:, place]) for place, name in enumerate("ab")})
    assert pair.p_corrected == pytest.approx(pair.table["p_value"][1], rel=1e-12)


def test_without_error_there_is_no_f():
    """One system better by .1 on every query: float noise makes no F of 1e30."""
    query, system, error = two_way([[0.1, 0.2], [0.3, 0.4], [0.7, 0.8]]).sources
    assert error.sum_sq == 0
    assert np.isnan([query.F, system.F, system.p_value, system.omega_squared]).all()
    assert system.eta_squared == 1
    found = rk.analysis.anova({"a": frame([0.1, 0.3, 0.7]), "b": frame([0.2, 0.4, 0.8])})
    assert "no F is given against a mean square of 0, that of error" in found.notes
    huge = two_way(np.random.default_rng(0).normal([0.0, 0.5, 1.0], 1e-9, (4000, 3))).sources[1]
    assert 0 < huge.p_value < 1e-300


def test_scores_of_another_shape_are_refused():
    for scores in ([0.1, 0.2], [[0.1, 0.2]], [[0.1], [0.2]], np.zeros((2, 2, 0)), np.zeros((2, 2, 2, 2))):
        with pytest.raises(InvalidInput, match="at least two queries and two systems"):
            two_way(scores)
    with pytest.raises(InvalidInput, match="1 that are not finite"):
        two_way([[0.1, np.nan], [0.2, 0.3]])
    with pytest.raises(UnknownName, match="random"):
        two_way([[0.1, 0.2], [0.2, 0.3]], queries="sampled")


def frame(values, name="AP"):
    return pd.DataFrame({name: values}, index=[f"q{place}" for place in range(len(values))])


@pytest.fixture
def replicated():
    generator = np.random.default_rng(6)
    base = generator.random(12)
    return {
        system: {seed: frame(base + generator.normal(gain, 0.1, 12)) for seed in ("one", "two", "three")}
        for system, gain in (("bm25", 0.0), ("ltr", 0.1), ("bert", 0.15))
    }


def test_scores_are_paired_by_query_system_and_replicate(replicated):
    """Rows and replicates in any order give the numbers of the block."""
    block = np.stack([np.stack([f["AP"] for f in each.values()], axis=1) for each in replicated.values()], axis=1)
    expected = two_way(block)
    shuffled = {
        system: {
            seed: each[seed].sample(frac=1, random_state=2) for seed in (reversed(each) if system == "ltr" else each)
        }
        for system, each in replicated.items()
    }
    found = rk.analysis.anova(shuffled)
    assert found.table["source"].tolist() == list(AXES)
    for row, one in zip(found.table.itertuples(), expected.sources, strict=True):
        assert (row.df, row.sum_sq) == (one.df, pytest.approx(one.sum_sq))
    assert (found.n_queries, found.n_replicates, found.systems) == (12, 3, ("bm25", "ltr", "bert"))
    assert found.components["share"].sum() == pytest.approx(1)
    mappings = {
        system: {seed: {q: {"AP": value} for q, value in f["AP"].items()} for seed, f in each.items()}
        for system, each in replicated.items()
    }
    pd.testing.assert_frame_equal(rk.analysis.anova(mappings).table, rk.analysis.anova(replicated).table)
    plain = {system: each["one"] for system, each in mappings.items()}
    assert rk.analysis.anova(plain).n_replicates == 1


def test_negative_components_are_set_to_0_and_said():
    """Systems and queries that differ less than chance makes them."""
    block = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    found = rk.analysis.anova({"a": frame(block[:, 0]), "b": frame(block[:, 1])})
    assert two_way(block).components["query"] < 0
    assert found.components["variance"].tolist() == [0, 0, pytest.approx(2 / 3)]
    assert sum("is negative" in note for note in found.notes) == 2


def test_what_is_tested_against_what_is_said(replicated):
    assert "queries like these" in " ".join(rk.analysis.anova(replicated).notes)
    assert "Greenhouse-Geisser epsilon" in " ".join(rk.analysis.anova(replicated).notes)
    fixed = rk.analysis.anova(replicated, queries="fixed")
    assert "these 12 queries only" in " ".join(fixed.notes)
    assert "Greenhouse" not in " ".join(fixed.notes)
    assert np.isnan(fixed.p_corrected)
    single = rk.analysis.anova({name: each["one"] for name, each in replicated.items()})
    assert "part of the error" in single.notes[0]


def test_the_table_is_drawn_everywhere(replicated):
    found = rk.analysis.anova(replicated)
    caption = "Analysis of variance of AP: 12 queries, 3 systems, 3 crossed replicates; queries random"
    for text in (whole(found), found.to_markdown(), found._repr_html_(), found.to_latex(label="tab:anova")):
        assert caption in text
        assert "query x replicate" in text
    assert r"\label{tab:anova}" in found.to_latex(label="tab:anova")


def test_designs_that_are_not_balanced_are_refused(replicated):
    """With the remedy in the message."""
    lacking = {**replicated, "ltr": {"one": replicated["ltr"]["one"]}}
    with pytest.raises(InvalidInput, match=r"not balanced.*keep those that all systems have"):
        rk.analysis.anova(lacking)
    with pytest.raises(InvalidInput, match="'bert' has none"):
        rk.analysis.anova({**replicated, "bert": replicated["bert"]["one"]})
    fewer = {**replicated, "ltr": {**replicated["ltr"], "two": replicated["ltr"]["two"].iloc[2:]}}
    with pytest.raises(QueryIdError, match="'ltr, replicate two' lacks 2 of 12 queries"):
        rk.analysis.anova(fewer)
    found = rk.analysis.anova(fewer, unpaired="skip")
    assert found.n_queries == 10
    assert "queries that some scores lack were left out: 2" in found.notes


def test_each_query_left_out_is_counted():
    """Nine of 20, though no scores lack more than four."""
    scores = frame(np.random.default_rng(0).random(20))
    shards = {"s1": scores[2:], "s2": scores[:17], "s3": scores.drop(scores.index[10:14])}
    found = rk.analysis.anova({"a": shards, "b": shards}, unpaired="skip")
    assert found.n_queries == 11
    assert "queries that some scores lack were left out: 9" in found.notes


def test_what_cannot_be_analysed_is_refused():
    with pytest.raises(InvalidInput, match="at least 2 names"):
        rk.analysis.anova({"bm25": frame([0.1, 0.2])})
    with pytest.raises(InvalidInput, match="at least 2 names"):
        rk.analysis.anova([frame([0.1, 0.2])])
    two = {name: frame([0.1, 0.2]).assign(RR=1.0) for name in ("a", "b")}
    with pytest.raises(InvalidInput, match="AP, RR; name one"):
        rk.analysis.anova(two)
    assert rk.analysis.anova(two, measure="map").measure == "AP"
    with pytest.raises(UnknownName, match="P@10"):
        rk.analysis.anova(two, measure="P@10")
    with pytest.raises(InvalidInput, match="share no measure"):
        rk.analysis.anova({"a": frame([0.1, 0.2]), "b": frame([0.1, 0.2], "RR")})


def test_evaluations_by_other_rules_or_with_weights_are_refused():
    y, qid = [1, 0, 1, 0, 1, 1], [1, 1, 2, 2, 3, 3]
    tied = [0.5] * 6
    one, other = (rk.evaluate(y, tied, qid=qid, measures="RR", ties=ties) for ties in ("best", "worst"))
    with pytest.raises(ConventionMismatch, match="ties is 'best' in one"):
        rk.analysis.anova({"a": {"s": one}, "b": {"s": other}})
    weighted = rk.evaluate(y, tied, qid=qid, measures="RR", ties="best", query_weight=[1, 1, 2, 2, 3, 3])
    with pytest.raises(InvalidInput, match="system 'b' was evaluated with query weights"):
        rk.analysis.anova({"a": one, "b": weighted})


def test_shards_have_judgments_of_their_own():
    """Within a shard the judgments are the same for all systems; between shards, only the rules are."""
    generator = np.random.default_rng(3)
    qid = np.repeat(np.arange(8), 6)
    labels = {shard: generator.integers(0, 2, 48) for shard in ("north", "south")}

    def evaluated(labels, **rules):
        return rk.evaluate(labels, np.round(generator.random(48), 1), qid=qid, measures="AP", **rules)

    systems = {name: {shard: evaluated(y) for shard, y in labels.items()} for name in ("bm25", "ltr")}
    assert rk.analysis.anova(systems).n_replicates == 2
    with pytest.raises(ConventionMismatch, match="judgments differ"):
        rk.analysis.anova({**systems, "ltr": {"north": systems["ltr"]["south"], "south": systems["ltr"]["north"]}})
    other = {
        name: {"north": each["north"], "south": evaluated(labels["south"], ties="worst")}
        for name, each in systems.items()
    }
    with pytest.raises(ConventionMismatch, match="ties is 'expected' in one and 'worst' in the other"):
        rk.analysis.anova(other)


def test_pooled_folds_are_said_to_be_approximate():
    """Each fold has models of its own, so the queries are no plain sample: as in `rankeval.compare`."""
    y, qid = [1, 0, 1, 0, 1, 1], [1, 1, 2, 2, 3, 3]
    evs = {
        name: rk.evaluate(y, score, qid=qid, measures="AP")
        for name, score in {"a": [2, 1, 1, 2, 0, 0], "b": [1, 2, 1, 2, 0, 1]}.items()
    }
    assert not any(note.startswith("approximate") for note in rk.analysis.anova(evs).notes)
    of_folds = {name: replace(ev, facts=replace(ev.facts, n_folds=3)) for name, ev in evs.items()}
    pooled = {name: {"seed 0": of_folds[name], "seed 1": ev} for name, ev in evs.items()}
    assert (
        sum(note.startswith("approximate: the queries of several folds") for note in rk.analysis.anova(pooled).notes)
        == 1
    )
