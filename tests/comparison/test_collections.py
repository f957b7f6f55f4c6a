"""Comparisons over several collections: the rows of each, the rows over all, their families, and laws of both."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.comparison import record
from rankeval.comparison.design import COLUMNS
from rankeval.errors import InvalidInput, UnknownName
from rankeval.evaluation.by_query import LEAST_QUERIES
from rankeval.significance import TESTS, adjust, paired_test
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import max_t, tukey

GAINS = {"bm25": 0.0, "ridge": 0.02, "ltr": 0.1}


def frame(name, n, seed, labels=("nDCG@10", "AP"), decimals=12):
    generator = np.random.default_rng(seed)
    topic = generator.normal(0.4, 0.2, size=(n, 1))
    noise = np.random.default_rng([seed, len(name)]).normal(GAINS[name], 0.1 + 0.05 * seed, (n, len(labels)))
    queries = pd.Index([f"q{i}" for i in range(n)], name="qid")
    return pd.DataFrame(np.round(topic + noise, decimals), index=queries, columns=list(labels))


def systems(sizes, names=("bm25", "ridge", "ltr"), **options):
    """Return systems on collections c1, c2, ... of these sizes."""
    sizes = {f"c{k}": (n, k) for k, n in enumerate(sizes, start=1)}
    return {name: {each: frame(name, n, k, **options) for each, (n, k) in sizes.items()} for name in names}


def rows(compared, part):
    return compared.table[compared.table["collection"] == part].drop(columns="collection").reset_index(drop=True)


def on(given, collection):
    return {name: parts[collection] for name, parts in given.items()}


@each_row("correction", ["holm", "max_t"])
def test_one_collection_is_the_plain_comparison(correction):
    """Its rows and those over all are the plain ones, all figures of them, by the randomisation test."""
    options = {"baseline": "bm25", "test": "randomization", "correction": correction, "n_resamples": 499}
    given = systems([30])
    found, plain = rk.compare(given, **options), rk.compare(on(given, "c1"), **options)
    for part in ("all", "c1"):
        pd.testing.assert_frame_equal(rows(found, part), plain.table, rtol=1e-9)
    assert found.interaction is None


def test_the_rows_of_a_collection_are_its_own_comparison():
    """All but what is corrected: means, counts, interval and p of each collection by itself."""
    given = systems([30, 12, 60])
    found = rk.compare(given, baseline="bm25")
    assert found.table.columns.tolist() == ["collection", *COLUMNS]
    assert found.table["collection"].unique().tolist() == ["all", "c1", "c2", "c3"]
    of_family = ["p_adjusted", "ci_low_adjusted", "ci_high_adjusted", "detectable_difference"]
    for part in ("c1", "c2", "c3"):
        plain = rk.compare(on(given, part), baseline="bm25").table
        pd.testing.assert_frame_equal(rows(found, part).drop(columns=of_family), plain.drop(columns=of_family))


@each_row("family", ["all", "measure"])
def test_rows_over_all_and_rows_of_collections_are_two_families(family):
    found = rk.compare(systems([30, 12]), family=family)
    over_all = (found.table["collection"] == "all").rename("over all")
    keys = [over_all] if family == "all" else [over_all, "measure"]
    for _, part in found.table.groupby(keys):
        np.testing.assert_allclose(part["p_adjusted"], adjust(part["p_value"], "holm"))
    assert found.settings.n_comparisons == (6 if family == "all" else 3)
    words = "6 comparisons; by" if family == "all" else "3 comparisons per measure; by"
    assert f"Holm over {words} collection: paired t test over 30 queries (c1), 12 queries (c2)" in found.caption


def test_bonferroni_intervals_are_those_at_the_level_of_their_family():
    given = systems([30, 12])
    found = rk.compare(given, baseline="bm25", correction="bonferroni")
    for part, size in (("c1", 8), ("c2", 8)):
        narrow = rk.compare(on(given, part), baseline="bm25", alpha=0.05 / size).table
        for end in ("ci_low", "ci_high"):
            np.testing.assert_allclose(rows(found, part)[f"{end}_adjusted"], narrow[end], rtol=1e-9)


def exact_p(parts, shares, delta=0.0):
    """Count all sign patterns of the stratified mean of differences less delta."""
    moved = np.concatenate([share / len(d) * (d - delta) for d, share in zip(parts, shares, strict=True)])
    signs = np.array(list(itertools.product((1, -1), repeat=len(moved))))
    return np.mean(np.abs(signs @ moved) >= abs(moved.sum()) - 1e-12)


@settings(max_examples=examples(15), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.sampled_from([(5, 6), (7, 3), (2, 9), (4, 4, 4)]),
    decimals=st.sampled_from([1, 6]),
)
def test_the_stratified_test_counts_all_patterns(seed, sizes, decimals):
    """Against all 2^n flips, for two kinds of weights; the interval holds delta exactly if its p is above alpha."""
    generator = np.random.default_rng(seed)
    parts = [generator.normal(0.3, 0.5, n).round(decimals) for n in sizes]
    base = [pd.DataFrame({"AP": np.zeros(len(d))}) for d in parts]
    given = {
        "a": dict(enumerate(base)),
        "b": {k: pd.DataFrame({"AP": d}) for k, d in enumerate(parts)},
    }
    for weights, shares in (
        ("collections", np.full(len(sizes), 1 / len(sizes))),
        ("queries", np.array(sizes) / sum(sizes)),
    ):
        row = rk.compare(given, collection_weights=weights).table.iloc[0]
        assert row.difference == pytest.approx(sum(w * d.mean() for w, d in zip(shares, parts, strict=True)), abs=1e-12)
        assert row.p_value == pytest.approx(exact_p(parts, shares), abs=1e-12)
        for delta in generator.normal(row.difference, 0.3, 5):
            assert (row.ci_low <= delta <= row.ci_high) == (exact_p(parts, shares, delta) > 0.05)


def test_weights_by_queries_pool_the_queries():
    """Queries weighted alike: the plain test of all differences. So do equal weights of equal sizes."""
    for sizes, weights in (((20, 10, 30), "queries"), ((20, 20), "queries"), ((20, 20), "collections")):
        given = systems(sizes)
        found = rows(rk.compare(given, test="randomization", correction="max_t", collection_weights=weights), "all")
        pooled = {
            name: pd.concat(
                [part.add_prefix("", axis=0).set_axis([f"{k}{q}" for q in part.index]) for k, part in parts.items()]
            )
            for name, parts in given.items()
        }
        plain = rk.compare(pooled, test="randomization", correction="max_t").table
        for column in ("mean_baseline", "mean_system", "difference", "wins", "ties", "losses"):
            np.testing.assert_allclose(found[column], plain[column], atol=1e-12)
        # Other patterns were drawn, since the rows stand in another order: Monte Carlo error of 9,999.
        np.testing.assert_allclose(found["p_value"], plain["p_value"], atol=0.02)
        np.testing.assert_allclose(found["p_adjusted"], plain["p_adjusted"], atol=0.02)


@each_row("weights", ["collections", "queries", "inverse_variance"])
def test_names_and_order_of_collections_change_nothing(weights):
    given = systems([30, 12, 18])
    options = {"baseline": "bm25", "correction": "max_t", "n_resamples": 199, "collection_weights": weights}
    expected = rk.compare(given, **options)
    other = {name: {f"x{each}": parts[each] for each in ("c3", "c1", "c2")} for name, parts in given.items()}
    found = rk.compare(other, **options)
    for part in ("c1", "c2", "c3"):
        pd.testing.assert_frame_equal(rows(found, f"x{part}"), rows(expected, part), rtol=1e-12)
    pd.testing.assert_frame_equal(rows(found, "all"), rows(expected, "all"), rtol=1e-12)


def test_max_t_over_all_flips_within_collections():
    """By hand: max-T of the weighted differences. The rows of collections: of differences that stand apart."""
    given = systems([9, 6], labels=("AP",))
    found = rk.compare(given, baseline="bm25", correction="max_t")
    parts = {
        k: np.column_stack([given[name][k]["AP"] - given["bm25"][k]["AP"] for name in ("ridge", "ltr")])
        for k in ("c1", "c2")
    }
    weighted = np.concatenate([parts["c1"] / 18, parts["c2"] / 12])
    np.testing.assert_allclose(
        rows(found, "all")["p_adjusted"], np.maximum(max_t(weighted, Settings()), rows(found, "all")["p_value"])
    )
    apart = np.zeros((15, 4))
    apart[:9, :2], apart[9:, 2:] = parts["c1"], parts["c2"]
    expected = np.maximum(
        max_t(apart, Settings()), np.concatenate([rows(found, "c1")["p_value"], rows(found, "c2")["p_value"]])
    )
    np.testing.assert_allclose(
        np.concatenate([rows(found, "c1")["p_adjusted"], rows(found, "c2")["p_adjusted"]]), expected
    )


def test_tukey_over_all_shuffles_weighted_scores():
    given = systems([20, 10], labels=("AP",))
    found = rows(rk.compare(given, correction="tukey", n_resamples=199, collection_weights="queries"), "all")
    block = np.concatenate([np.stack([given[name][k].to_numpy() for name in GAINS], axis=1) for k in ("c1", "c2")])
    expected = tukey(block, [(0, 1), (0, 2), (1, 2)], Settings(n_resamples=9999, rng=0)).p_value[:, 0]
    np.testing.assert_allclose(found["p_adjusted"], np.maximum(expected, found["p_value"]), atol=0.1)


@each_row("correction", ["holm", "max_t", "tukey"])
def test_adjusted_intervals_belong_to_adjusted_p_values(correction):
    """For every row: outside the interval if and only if shown, but for the rows that are marked as parted."""
    found = rk.compare(systems([40, 25]), correction=correction, test="randomization", n_resamples=999)
    outside = (found.table["ci_low_adjusted"] > 0) | (found.table["ci_high_adjusted"] < 0)
    assert (found.shown == outside)[~record.parted(found)].all()
    assert found.shown.sum() >= 4
    assert (found.table["ci_low_adjusted"] <= found.table["ci_low"] + 1e-3).all()


@each_row("correction", ["holm", "max_t"])
def test_claims_hold_for_rows_over_all_and_of_collections(correction):
    """Moving every score of a system by the margin turns "not worse" into "better": all families alike."""
    given = systems([20, 14])
    moved = {
        name: {k: part + (0.05 if name != "bm25" else 0) for k, part in parts.items()} for name, parts in given.items()
    }
    options = {"baseline": "bm25", "correction": correction, "n_resamples": 199}
    not_worse = rk.compare(given, claim="not_worse", margin=0.05, unseen=0, **options)
    better = rk.compare(moved, claim="better", **options)
    for column in ("p_value", "p_adjusted"):
        np.testing.assert_allclose(not_worse.table[column], better.table[column])
    for end in ("ci_low", "ci_low_adjusted"):
        np.testing.assert_allclose(not_worse.table[end] + 0.05, better.table[end])
    equivalent = rk.compare(given, claim="equivalent", margin=0.3, **options)
    assert equivalent.shown.any()
    sides = equivalent.table[["ci_low_adjusted", "ci_high_adjusted"]].abs().max(axis=1) < 0.3
    assert (equivalent.shown == sides)[~record.parted(equivalent)].all()


def test_sparse_measures_and_equal_systems():
    """Ties everywhere: p is 1 and the effect 0 over all, and no collection is tested by itself."""
    one = pd.DataFrame({"P@1": np.tile([0.0, 1.0], 6)})
    given = {"a": {"x": one, "y": one[:8]}, "b": {"x": one, "y": one[:8]}}
    found = rk.compare(given)
    for column, of_all in (("p_value", 1), ("p_adjusted", 1), ("effect_size", 0)):
        np.testing.assert_array_equal(found.table[column], [of_all, np.nan, np.nan])
    assert found.notes[-1] == (
        "listed by collection and not tested, equal on every query: x (12 queries), y (8 queries)"
    )
    assert found.interaction["p_value"].tolist() == [1]
    with pytest.raises(InvalidInput, match="same scores"):
        rk.compare(given, collection_weights="inverse_variance")


def test_small_collections_count_but_are_not_tested_alone():
    found = rk.compare(systems([30, LEAST_QUERIES - 1]), baseline="bm25")
    small = rows(found, "c2")
    assert small[["p_value", "p_adjusted", "ci_low", "effect_size", "detectable_difference"]].isna().all(axis=None)
    assert small[["mean_system", "difference", "wins", "n_queries"]].notna().all(axis=None)
    assert (small[["wins", "ties", "losses"]].sum(axis=1) == 4).all()
    assert len(record.part_sizes(found)) == 1
    assert any("not tested, with fewer than 5 queries: c2 (4 queries)" in note for note in found.notes)
    np.testing.assert_allclose(rows(found, "c1")["p_adjusted"], adjust(rows(found, "c1")["p_value"], "holm"))


def test_what_is_said():
    found = rk.compare(systems([30, 12]), collection_weights="queries", test="wilcoxon", correction="max_t")
    assert found.caption.startswith(
        "Stratified randomisation test (sign flips within collections) over 42 queries, collections weighted by "
        "queries; max-T over 6 comparisons; by collection: Wilcoxon signed-rank test over 30 queries (c1), 12 queries "
        "(c2); max-T over 12 comparisons; 95 % intervals, 9,999 resamples, seed 0"
    )
    said = " | ".join(found.notes)
    assert "rows over all 2 collections speak of these collections only" in said
    assert "shares of the collections in rows over all: c1 0.71 (30 queries), c2 0.29 (12 queries)" in said
    assert "by collection: the Wilcoxon test is one of symmetry" in said
    assert "by collection: adjusted p-values come from the randomisation test" in said
    assert "that a difference depends on the collection is shown for" in said
    many = rk.compare(systems([6] * 7))
    assert "by collection: paired t test over 6 to 6 queries in each of 7" in many.caption


def test_what_is_refused():
    given = systems([30, 12])
    with pytest.raises(InvalidInput, match="one collection at a time"):
        rk.compare(given, by={"q1": 1})
    with pytest.raises(UnknownName, match="weights 'query'"):
        rk.compare(given, collection_weights="query")
    found = rk.compare(given)
    for ask in (
        lambda: found.best,
        lambda: found.effects,
        lambda: found.bayes(rope=0.01),
        lambda: found.plot(system="ltr", baseline="bm25"),
    ):
        with pytest.raises(InvalidInput, match="compare the systems on one of them"):
            ask()


def test_everything_downstream_reads_the_rows_over_all():
    """Headline, ranks, JSON and tables."""
    found = rk.compare(systems([30, 12]), correction="max_t")
    again = rk.Comparison.from_json(found.to_json())
    pd.testing.assert_frame_equal(again.table, found.table)
    pd.testing.assert_frame_equal(again.interaction, found.interaction)
    assert (again.caption, again.notes, again.headline) == (found.caption, found.notes, found.headline)
    assert len(record.overall(found).table) == 6
    assert "collection" not in record.overall(found).table
    assert record.overall(found).settings.grouped == ""
    assert found.ranks["collection"].unique().tolist() == ["all", "c1", "c2"]
    assert "over all 2 collections" in found.headline
    for text in (str(found), found.to_markdown(), found.to_latex(), found._repr_html_()):
        assert "12 queries (c2)" in text


@pytest.mark.world
def test_null_collections_of_unlike_size_and_difficulty():
    """300 pairs of equal systems on 10 easy and 60 hard queries: 3 to 8 % false claims over all, at 5 %."""
    generator = np.random.default_rng(11)
    small = generator.normal(0.7, 0.2, (10, 1)) + generator.normal(0, 0.3, (10, 600))
    large = np.clip(generator.normal(0.2, 0.1, (60, 1)) + generator.normal(0, 0.05, (60, 600)), 0, 1)
    labels = [f"m{k}" for k in range(300)]
    given = {
        name: {
            "easy": pd.DataFrame(small[:, part], columns=labels),
            "hard": pd.DataFrame(large[:, part], columns=labels),
        }
        for name, part in (("a", slice(0, 300)), ("b", slice(300, 600)))
    }
    for weights in ("collections", "inverse_variance"):
        found = rows(rk.compare(given, correction="none", n_resamples=299, collection_weights=weights), "all")
        assert 0.03 <= (found["p_value"] <= 0.05).mean() <= 0.08
        assert 0.92 <= ((found["ci_low"] <= 0) & (found["ci_high"] >= 0)).mean() <= 0.97


@each_row("test", TESTS)
def test_every_test_runs_on_collections(test):
    given = systems([16, 60], names=("bm25", "ltr"), labels=("AP",))
    options = {"n_resamples": 99, "test": test}
    if TESTS[test].liberal:
        with pytest.warns(rk.errors.RankevalWarning, match="here 16"):
            found = rk.compare(given, **options)
    else:
        found = rk.compare(given, **options)
    d = (given["ltr"]["c2"]["AP"] - given["bm25"]["c2"]["AP"]).sort_index()  # as queries are paired
    expected = paired_test(test, d.to_numpy(), n_resamples=99, rng=0)
    assert rows(found, "c2")["p_value"].item() == pytest.approx(expected.p_value, rel=1e-9)


@pytest.mark.shared
def test_runs_of_cranfield_and_cisi(shared):
    """Real runs, made by the same code: over all is the mean of both, and Rocchio's gain in AP depends on which."""
    names = ("bm25_k12_b75", "rocchio_prf")
    given = {
        name: {
            each: rk.evaluate(
                f"{shared}/{each}/qrels.binary.txt.gz",
                f"{shared}/{each}/runs/{name}.run.gz",
                measures=["nDCG@10", "AP"],
            )
            for each in ("cranfield", "cisi")
        }
        for name in names
    }
    found = rk.compare(given, baseline=names[0])
    both = (rows(found, "cranfield")["difference"] + rows(found, "cisi")["difference"]) / 2
    np.testing.assert_allclose(rows(found, "all")["difference"], both)
    assert rows(found, "all")["n_queries"].tolist() == [301, 301]
    assert (found.interaction.set_index("measure")["p_adjusted"] <= 0.05).to_dict() == {"nDCG@10": False, "AP": True}
    assert found.shown.tolist() == [False, True, True, True, False, False]
    figure = found.plot("forest")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] != []


@each_row("weights", ["collections", "queries"])
def test_the_share_of_each_collection_is_said_beside_its_queries(weights):
    """Also with equal weights, where a collection of three queries carries half of the mean."""
    said = " ".join(rk.compare(systems([57, 3]), baseline="bm25", collection_weights=weights).notes)
    share = {"collections": (".50", ".50"), "queries": (".95", ".05")}[weights]
    assert f"rows over all: c1 0{share[0]} (57 queries), c2 0{share[1]} (3 queries)" in said
    assert "c2 has only 3 queries, and carries 0" + share[1] + " of the rows over all" in said
    assert ('weights="queries"' in said) == (weights != "queries")


def test_a_collection_with_enough_queries_is_not_warned_of():
    said = " ".join(rk.compare(systems([57, LEAST_QUERIES]), baseline="bm25").notes)
    assert f"c2 0.50 ({LEAST_QUERIES} queries)" in said
    assert "carries" not in said
