"""Comparisons of systems with seeds: what seeds move beside queries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import rankeval as rk
from rankeval.evaluation.merging import averaged
from rankeval.significance.seeds import over_queries_and_seeds

N_QUERIES = 40


def system(seeds: dict[int, float], rng: np.random.Generator, name: str = "ev") -> rk.Evaluation:
    """Return the mean of evaluations that rank the relevant of two documents first more often or less."""
    qid, label = np.repeat(np.arange(N_QUERIES), 6), np.tile([1, 0, 0, 1, 0, 2], N_QUERIES)
    by_seed = {}
    for seed, skill in seeds.items():
        score = skill * label + rng.normal(size=len(label))
        by_seed[seed] = rk.evaluate(label, score, qid=qid, measures=["nDCG@10", "AP"], name=name)
    return averaged(by_seed)


@pytest.fixture
def systems():
    rng = np.random.default_rng(5)
    return {
        "old": system({0: 0.4, 1: 0.9, 2: 0.6}, rng),
        "new": system({4: 0.8, 5: 1.0, 6: 0.9, 7: 1.2}, rng),
    }


def expected(base: rk.Evaluation, own: rk.Evaluation, measure: str) -> dict[str, float]:
    """Return the row by the formulas of textbooks."""
    d = (own.per_query[measure] - base.per_query[measure]).to_numpy()
    columns = [ev.measure_names.index(measure) for ev in (base, own)]
    means = [
        np.array([scores[:, column].mean() for scores in ev.facts.seeds.values()])
        for ev, column in zip((base, own), columns, strict=True)
    ]
    parts = np.array([d.var(ddof=1) / len(d), *(mean.var(ddof=1) / len(mean) for mean in means)])
    df = parts.sum() ** 2 / (parts**2 / [len(d) - 1, len(means[0]) - 1, len(means[1]) - 1]).sum()
    error = np.sqrt(parts.sum())
    of_seeds = stats.ttest_ind(means[1], means[0], equal_var=False).confidence_interval(0.95)
    low, high = stats.t.interval(0.95, df, loc=d.mean(), scale=error)
    return {
        "difference": d.mean(),
        "se_queries": np.sqrt(parts[0]),
        "se_seeds": np.sqrt(parts[1:].sum()),
        "reach_seeds": (of_seeds.high - of_seeds.low) / 2,  # Welch's interval
        "df": df,
        "ci_low": low,
        "ci_high": high,
        "p_value": 2 * stats.t.sf(abs(d.mean()) / error, df),
        "sd_baseline": means[0].std(ddof=1),
        "sd_system": means[1].std(ddof=1),
        "seeds_baseline": 3,
        "seeds_system": 4,
    }


def test_a_row_has_both_variances(systems):
    """As SciPy and NumPy have them, by each measure."""
    compared = rk.compare(systems, baseline="old")
    assert compared.seeds["measure"].tolist() == ["nDCG@10", "AP"]
    for row in compared.seeds.to_dict("records"):
        found = expected(systems["old"], systems["new"], row["measure"])
        for name, value in found.items():
            assert row[name] == pytest.approx(value, rel=1e-9), name


def test_the_table_stays_a_test_over_queries(systems):
    """And a note says so."""
    compared = rk.compare(systems, baseline="old")
    frames = {name: own.per_query for name, own in systems.items()}
    plain = rk.compare(frames, baseline="old")
    np.testing.assert_allclose(compared.table["p_value"], plain.table["p_value"], rtol=1e-12)
    assert plain.seeds is None
    assert not any("seeds" in note for note in plain.notes)
    row = compared.seeds.iloc[0]
    assert row["p_value"] > plain.table["p_value"][0]
    contained, moved, others = (note for note in compared.notes if "seeds" in note)
    assert "over queries alone, and apply to these seeds" in contained
    is_larger = row["difference"] > row["reach_seeds"]
    size = "is larger" if is_larger else "is not larger"
    assert f"{size} than what seeds alone move ({row['reach_seeds']:.3g})" in moved
    assert moved.endswith(f"over queries and seeds p = {row['p_value']:.3g}, not corrected")
    assert others == f"what seeds move is in `seeds` for {len(compared.seeds) - 1} more difference"
    assert "not corrected for the number of comparisons" in compared.seeds.attrs["caption"]


def test_a_system_without_seeds_adds_no_variance_and_is_named(systems):
    """Its one seed is not known to move nothing."""
    rng = np.random.default_rng(1)
    plain = system({0: 0.2, 1: 0.2}, rng)
    alone = rk.evaluate(
        np.tile([1, 0, 0, 1, 0, 2], N_QUERIES),
        rng.normal(size=6 * N_QUERIES),
        qid=np.repeat(np.arange(N_QUERIES), 6),
        measures=["nDCG@10", "AP"],
    )
    row = rk.compare({"alone": alone, "new": systems["new"]}, baseline="alone").seeds.iloc[0]
    assert row["se_seeds"] == pytest.approx(row["sd_system"] / np.sqrt(4))
    assert (row["seeds_baseline"], np.isnan(row["sd_baseline"])) == (1, True)
    compared = rk.compare({"alone": alone, "new": systems["new"], "plain": plain})
    assert "no seeds are known of alone: what its seed moves is in no p" in compared.notes


def test_groups_and_slices(systems):
    """Over groups, means of seeds are over groups too; slices have no rows."""
    groups = {query: query // 4 for query in range(N_QUERIES)}
    compared = rk.compare(systems, baseline="old", groups=groups, measures="AP")
    row = compared.seeds.iloc[0]
    d = systems["new"].per_query["AP"] - systems["old"].per_query["AP"]
    by_group = d.groupby(d.index // 4).mean()
    assert row["se_queries"] == pytest.approx(by_group.sem())
    assert row["difference"] == pytest.approx(compared.table["difference"][0])
    sliced = rk.compare(systems, baseline="old", by={query: query % 2 for query in range(N_QUERIES)})
    assert sliced.seeds.equals(rk.compare(systems, baseline="old").seeds)


def test_common_queries_alone(systems):
    """Means of seeds are over the queries that were compared."""
    some = systems["new"].queries[:25]
    part = {name: own.subset(some) for name, own in systems.items()}
    cut = {"old": part["old"], "new": part["new"]}
    found = rk.compare(cut, baseline="old").seeds
    row = expected(part["old"], part["new"], "AP")
    assert found.iloc[1]["p_value"] == pytest.approx(row["p_value"])


def test_it_is_saved_with_its_evaluations(systems, tmp_path):
    """JSON alone has no scores, and so no seeds."""
    compared = rk.compare(systems, baseline="old")
    rk.save(compared, tmp_path / "folder")
    loaded = rk.load(tmp_path / "folder")
    assert loaded.seeds.equals(compared.seeds)
    assert loaded.notes == compared.notes
    assert rk.Comparison.from_json(compared.to_json()).seeds is None
    for text in (str(compared), compared._repr_html_(), compared.record().text):
        assert "What seeds move beside queries" in text


def test_several_collections_have_the_note_alone(systems):
    """There the variance over seeds is not computed."""
    rng = np.random.default_rng(9)
    half = {name: own.subset(own.queries[:20]) for name, own in systems.items()}
    rest = {name: own.subset(own.queries[20:]) for name, own in systems.items()}
    both = {name: {"a": half[name], "b": rest[name]} for name in systems}
    compared = rk.compare(both, baseline="old", n_resamples=99, rng=rng)
    assert compared.seeds is None
    assert any("apply to these seeds" in note for note in compared.notes)


def test_nothing_varies():
    """Then there is no p, and no warning."""
    same = over_queries_and_seeds(np.full(5, 0.25), [np.full(3, 0.5), np.full(3, 0.75)], 0.05)
    assert (same.se_queries, same.se_seeds, same.reach_seeds) == (0, 0, 0)
    assert np.isnan([same.df, same.p_value]).all()


def test_a_p_is_never_zero():
    """However far the means are apart."""
    d = np.array([1e6, 1e6 + 1e-3] * 500)
    assert over_queries_and_seeds(d, [], 0.05).p_value > 0


def test_algorithms_say_that_folds_are_means_over_seeds():
    """What seeds move is then within the differences of folds."""
    from sklearn.tree import DecisionTreeRegressor as Tree

    data = rk.datasets.make_ranking(20, 6, rng=0)
    rivals = {"one": Tree(max_features=1), "two": Tree(max_features=2)}
    results = rk.cross_validate(rivals, data, measures="AP", cv=2, seeds=2)
    notes = results.compare(question="algorithms").notes
    assert "folds are means over seeds, so what seeds move is part of how folds differ" in notes
    assert results.compare(question="models").seeds is not None
