"""Comparisons by an attribute of the queries: rows of slices, their family, and the interaction."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tables import each_row

import rankeval as rk
from rankeval.comparison import record
from rankeval.comparison.design import COLUMNS, CROSSED
from rankeval.errors import InvalidInput, QueryIdError, UnknownName
from rankeval.evaluation.by_query import LEAST_QUERIES
from rankeval.significance import adjust
from rankeval.significance.declarations import Settings
from rankeval.significance.strata import interaction

N = 60
QUERIES = pd.Index([f"q{i:02d}" for i in range(N)], name="qid")
LENGTH = pd.Series(np.resize(["short", "long", "long"], N), index=QUERIES, name="length")


def frames(effect=0.0, labels=("nDCG@10", "AP")):
    """Return three systems, of which "ltr" gains on long queries only."""
    generator = np.random.default_rng(0)
    topic = generator.normal(0.4, 0.2, size=(N, 1))
    scores = {name: topic + generator.normal(0, 0.1, (N, len(labels))) for name in ("bm25", "ridge", "ltr")}
    scores["ltr"] += effect * (LENGTH == "long").to_numpy()[:, None]
    return {name: pd.DataFrame(values, index=QUERIES, columns=list(labels)) for name, values in scores.items()}


def rows(compared, part):
    table, grouped = compared.table, compared.settings.grouped
    return table[table[grouped] == part].drop(columns=grouped).reset_index(drop=True)


def test_the_rows_over_all_are_the_plain_comparison_and_each_slice_its_own():
    found = rk.compare(frames(), baseline="bm25", by=LENGTH)
    assert found.settings.grouped == "length"
    assert found.table.columns.tolist() == ["length", *COLUMNS]
    assert found.table["length"].unique().tolist() == ["all", "long", "short"]
    pd.testing.assert_frame_equal(rows(found, "all"), rk.compare(frames(), baseline="bm25").table)
    of_family = ["p_adjusted", "ci_low_adjusted", "ci_high_adjusted", "detectable_difference"]
    for part in ("long", "short"):
        own = {name: frame[LENGTH.eq(part)] for name, frame in frames().items()}
        plain = rk.compare(own, baseline="bm25").table
        pd.testing.assert_frame_equal(rows(found, part).drop(columns=of_family), plain.drop(columns=of_family))
    in_slices = found.table[found.table["length"] != "all"]
    np.testing.assert_allclose(in_slices["p_adjusted"], adjust(in_slices["p_value"], "holm"))
    assert (
        "by length: paired t test over 40 queries (long), 20 queries (short); Holm over 8 comparisons" in found.caption
    )


def test_the_interaction_is_the_permutation_test_and_holm_over_its_comparisons():
    found = rk.compare(frames(effect=0.2), by=LENGTH)
    assert found.interaction.columns.tolist() == list(CROSSED)
    systems, places = frames(effect=0.2), [np.flatnonzero(LENGTH.eq(part)) for part in ("short", "long")]
    d = np.column_stack(
        [
            systems[row.system][row.measure] - systems[row.baseline][row.measure]
            for row in found.interaction.itertuples()
        ]
    )
    expected = interaction(d, places, Settings(rng=0))
    np.testing.assert_allclose(found.interaction["statistic"], expected.statistic)
    np.testing.assert_allclose(found.interaction["p_value"], expected.p_value)
    np.testing.assert_allclose(found.interaction["p_adjusted"], adjust(expected.p_value, "holm"))
    by_measure = rk.compare(frames(effect=0.2), by=LENGTH, family="measure").interaction
    for _, part in by_measure.groupby("measure"):
        np.testing.assert_allclose(part["p_adjusted"], adjust(part["p_value"], "holm"))


def test_what_is_said_of_the_interaction():
    """Where it is shown, and that slices may differ by chance elsewhere."""
    said = " | ".join(rk.compare(frames(effect=0.2), baseline="bm25", by=LENGTH).notes)
    assert "that a difference depends on the length is shown for 2 of 4 comparisons (Welch's" in said
    assert "elsewhere, rows that differ by length may differ by chance" in said
    none = " | ".join(rk.compare(frames(), baseline="bm25", by=LENGTH).notes)
    assert "is shown for 0 of 4 comparisons" in none


@each_row(
    "by",
    [
        LENGTH.to_dict(),
        LENGTH.sample(frac=1, random_state=0),
        LENGTH.to_frame().reset_index(),
        pd.concat([LENGTH, pd.Series({"another": "long"}, name="length")]),
    ],
)
def test_forms_of_the_attribute(by):
    """By query id, in any order and form, with more queries too."""
    expected = rk.compare(frames(), by=LENGTH)
    found = rk.compare(frames(), by=by)
    pd.testing.assert_frame_equal(
        found.table.rename(columns={found.settings.grouped: "length"}),
        expected.table.rename(columns={"length": "length"}),
    )


def evaluations():
    generator = np.random.default_rng(1)
    qid, labels = np.repeat(np.arange(30), 8), generator.integers(0, 2, 240)
    noise = generator.random(240)
    return {
        name: rk.evaluate(labels, noise + gain * labels, qid=qid, measures="AP")
        for name, gain in (("a", 0), ("b", 0.3))
    }


def test_arrays_and_counts_need_evaluations():
    """A position is an order of queries, and a name a count: both are the evaluations'."""
    systems = evaluations()
    n_relevant = systems["a"].facts.query_counts["relevant"]
    cut = np.where(n_relevant > 4, "many", "few")
    found = rk.compare(systems, by=cut)
    expected = rk.compare(systems, by=pd.Series(cut, index=range(30), name="slice").sample(frac=1))
    pd.testing.assert_frame_equal(found.table, expected.table)
    by_count = rk.compare(systems, by="relevant")
    assert by_count.settings.grouped == "relevant"
    assert by_count.table["relevant"].iloc[1] == str(n_relevant.min())
    with pytest.raises(InvalidInput, match="no common order of queries"):
        rk.compare(frames(), by=LENGTH.tolist())
    with pytest.raises(InvalidInput, match="systems are frames"):
        rk.compare(frames(), by="relevant")
    with pytest.raises(UnknownName, match="relevant"):
        rk.compare(systems, by="relevnt")
    with pytest.raises(QueryIdError, match="each of 30 queries"):
        rk.compare(systems, by=cut[:-1])


def test_counts_of_rankings_differ_and_are_no_attribute():
    qid, labels = np.repeat(np.arange(10), 4), np.tile([1, 0, 0, 1], 10)
    ties = np.random.default_rng(2).integers(0, 2, 40)
    systems = {
        "a": rk.evaluate(labels, ties, qid=qid, measures="AP"),
        "b": rk.evaluate(labels, np.arange(40), qid=qid, measures="AP"),
    }
    with pytest.raises(InvalidInput, match="by='tied' differs between 'a' and 'b'"):
        rk.compare(systems, by="tied")


def test_small_slices_are_listed_and_not_tested():
    """They count in the rows over all, and in no family but that."""
    attribute = LENGTH.copy()
    attribute.iloc[:4], attribute.iloc[4] = "tiny", None
    found = rk.compare(frames(), baseline="bm25", by=attribute)
    for part in ("tiny", "nan"):
        small = rows(found, part)
        assert small[["p_value", "p_adjusted", "ci_low_adjusted", "effect_size"]].isna().all(axis=None)
        assert small[["mean_system", "difference", "losses"]].notna().all(axis=None)
    assert rows(found, "nan")["n_queries"].unique().tolist() == [1]
    assert (rows(found, "nan")[["wins", "ties", "losses"]].sum(axis=1) == 1).all()
    assert "not tested, with fewer than 5 queries: tiny (4 queries), nan (1 query)" in " ".join(found.notes)
    assert len(record.part_sizes(found)) == 2
    tested = found.table[~found.table["length"].isin(["all", "tiny", "nan"])]
    np.testing.assert_allclose(tested["p_adjusted"], adjust(tested["p_value"], "holm"))
    again = rk.Comparison.from_json(found.to_json())
    pd.testing.assert_frame_equal(again.table, found.table)
    one = rk.compare(frames(), by=dict.fromkeys(QUERIES, "x") | dict.fromkeys(QUERIES[:2], "y"))
    assert one.interaction is None


def test_several_attributes_make_a_slice_of_each_combination():
    both = pd.DataFrame({"length": LENGTH, "fresh": np.resize([True, False], N)}, index=QUERIES)
    found = rk.compare(frames(), baseline="bm25", by=both)
    assert found.settings.grouped == "length x fresh"
    assert found.table[found.settings.grouped].unique().tolist() == [
        "all", "long, False", "long, True", "short, False", "short, True",
    ]  # fmt: skip


def test_names_that_would_be_taken_twice_are_refused():
    with pytest.raises(InvalidInput, match="the table has a column 'system'"):
        rk.compare(frames(), by=LENGTH.rename("system"))
    with pytest.raises(InvalidInput, match="'all' means all queries"):
        rk.compare(frames(), by=LENGTH.replace("long", "all"))
    with pytest.raises(InvalidInput, match="different names"):
        rk.compare(frames(), by=pd.Series(np.resize([1.0, 1.0 + 1e-9], N), index=QUERIES))


@each_row("correction", ["max_t", "tukey", "bonferroni", "bh"])
def test_every_correction_runs_over_slices(correction):
    found = rk.compare(frames(effect=0.3), by=LENGTH, correction=correction, n_resamples=199, claim="difference")
    assert found.table["p_adjusted"].between(0, 1, inclusive="right").all()
    assert (found.table["p_adjusted"] >= found.table["p_value"]).all()
    assert found.shown.any()
    if correction == "bonferroni":
        np.testing.assert_allclose(
            rows(found, "long")["p_adjusted"], np.minimum(rows(found, "long")["p_value"] * 12, 1)
        )


def test_headline_best_and_effects_speak_of_all_queries():
    found, plain = (rk.compare(frames(effect=0.3), baseline="bm25", **options) for options in ({"by": LENGTH}, {}))
    assert found.headline.startswith(plain.headline.removesuffix(" nDCG@10 is the first of 2 measures."))
    assert found.best == plain.best
    pd.testing.assert_frame_equal(found.effects, plain.effects)
    pd.testing.assert_frame_equal(found.bayes(rope=0.01), plain.bayes(rope=0.01))


def test_a_slice_of_the_least_size_is_tested_and_its_limits_are_said():
    """Five queries have 32 patterns of signs, so 2 in 32 is the smallest p: the note is about the smallest slice."""
    part = pd.Series(np.where(np.arange(N) < LEAST_QUERIES, "few", "many"), index=QUERIES, name="size")
    options = {"baseline": "bm25", "measures": "AP", "test": "randomization", "correction": "none", "n_resamples": 999}
    found = rk.compare(frames(), by=part, **options)
    assert rows(found, "few")["p_value"].notna().all()
    said = [note for note in found.notes if "nothing can be significant" in note]
    assert len(said) == 1
    assert said[0].startswith("by size: ")
    assert "more queries are needed" in said[0]
    less = rk.compare(frames(), by=part.mask(part.index == QUERIES[0], "many"), **options)
    assert rows(less, "few")["p_value"].isna().all()


def test_slices_of_which_none_can_be_tested_are_refused():
    """A number of its own for each query is no attribute that slices queries."""
    own = pd.Series(np.arange(N), index=QUERIES, name="place")
    with pytest.raises(InvalidInput, match=f"no slice has {LEAST_QUERIES} queries or more.*found {N} slices.*qcut"):
        rk.compare(frames(), by=own)
    assert len(record.part_sizes(rk.compare(frames(), by=own.clip(upper=N - LEAST_QUERIES)))) == 1


@each_row(
    "correction",
    ["holm", "bonferroni", "max_t", "none"],
)
def test_slices_in_which_no_score_differs_are_in_no_family(correction):
    """The rows of the slices that changed are those of a comparison of their queries alone."""
    systems = frames()
    changed = LENGTH == "long"
    systems = {name: frame.where(changed, systems["bm25"]) for name, frame in systems.items()}
    options = {"baseline": "bm25", "correction": correction, "n_resamples": 999}
    found = rk.compare(systems, by=LENGTH, **options)
    alone = rk.compare({name: frame[changed] for name, frame in systems.items()}, **options).table
    pd.testing.assert_frame_equal(rows(found, "long"), alone)
    same = rows(found, "short")
    assert same.filter(regex="^ci_|^p_").isna().all(axis=None)
    assert (same["ties"] == 20).all()
    assert "listed by length and not tested, equal on every query: short (20 queries)" in found.notes
    assert [note for note in found.notes if note.endswith("scores changed in long alone")]
    assert not [note for note in found.notes if "may differ by chance" in note]
    harmless = rk.compare(systems, by=LENGTH, claim="not_worse", margin=0.1, baseline="bm25")
    assert rows(harmless, "short")["p_value"].notna().all(), "an unseen query counts in equal slices too"


def test_other_systems_that_are_equal_to_the_baseline_are_said_to_be():
    systems = frames(effect=0.2, labels=("AP",))
    found = rk.compare({**systems, "copy": systems["bm25"]}, baseline="bm25")
    assert "copy is equal to bm25 on every query." in found.headline
    equal = found.table[found.table["system"] == "copy"]
    assert equal.filter(like="ci_").isna().all(axis=None)
    assert equal["p_value"].item() == 1
