"""compare pairs by query id, says what it did, refuses what must not be compared, and keeps what it found."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tables import each_row

import rankeval as rk
from rankeval.comparison import Comparison, compare, record
from rankeval.comparison.comparing import compare_algorithms
from rankeval.comparison.design import COLUMNS, without_adjusted
from rankeval.errors import ConventionMismatch, InvalidInput, QueryIdError, RankevalWarning, UnknownName
from rankeval.significance import TESTS, adjust
from rankeval.significance.power import detectable_difference

GAINS = {"bm25": 0.0, "ridge": 0.02, "ltr": 0.15}


def frames(n=60, labels=("nDCG@10", "AP"), seed=0):
    generator = np.random.default_rng(seed)
    topic = generator.normal(0.4, 0.2, size=(n, 1))
    queries = pd.Index([f"q{i}" for i in range(n)], name="qid")
    scores = {x: np.clip(topic + gain + generator.normal(0, 0.15, (n, len(labels))), 0, 1) for x, gain in GAINS.items()}
    return {name: pd.DataFrame(values, index=queries, columns=list(labels)) for name, values in scores.items()}


def arrays(seed=0, n=40):
    generator = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n), 12)
    y = generator.integers(0, 3, len(qid))
    return y, qid, generator.random(len(qid))


def evaluations(measures=("nDCG@10", "AP"), **options):
    y, qid, noise = arrays()
    return {
        "weak": rk.evaluate(y, noise, qid=qid, measures=list(measures), **options),
        "strong": rk.evaluate(y, noise + 0.3 * y, qid=qid, measures=list(measures), **options),
    }


def test_evaluations_without_some_queries_are_compared_on_the_common_ones():
    """Each left out what its search did not answer; the judgments of the others are the same."""
    qrels = {f"q{number}": {"a": 1, "b": 0, "c": number % 2} for number in range(12)}
    good = {query: {"a": 3.0, "b": 2.0, "c": 1.0} for query in qrels}
    poor = {query: {"a": 1.0, "b": 2.0, "c": 3.0} for query in qrels}
    made = {"good": good, "poor": poor}
    for name, query in (("good", "q3"), ("poor", "q5")):
        del made[name][query]
    evaluations = {name: rk.evaluate(qrels, run, measures="nDCG", missing="skip") for name, run in made.items()}
    with pytest.raises(ConventionMismatch):
        rk.compare(evaluations, baseline="poor")
    compared = rk.compare(evaluations, baseline="poor", unpaired="skip")
    per_query = {name: ev.per_query["nDCG"].drop(["q3", "q5"], errors="ignore") for name, ev in evaluations.items()}
    p = stats.ttest_rel(per_query["good"], per_query["poor"]).pvalue
    assert compared.table["p_value"].item() == pytest.approx(p)
    assert compared.table["n_queries"].item() == 10
    assert "queries that a system lacked were left out for all systems: good 1, poor 1" in compared.notes
    other = rk.evaluate(qrels | {"q7": {"a": 0, "b": 1}}, good, measures="nDCG", missing="skip")
    with pytest.raises(ConventionMismatch, match="judgments differ"):
        rk.compare({"good": other, "poor": evaluations["poor"]}, unpaired="skip")


def test_table_has_the_columns_promised_and_scipys_numbers():
    """Difference, interval and p of each row are ttest_rel's; Holm runs over all six comparisons."""
    systems = frames()
    found = compare(systems, baseline="bm25", alpha=0.1)
    assert tuple(found.table.columns) == COLUMNS
    assert found.settings.n_comparisons == len(found.table) == 4
    for row in found.table.itertuples():
        system, baseline = systems[row.system][row.measure], systems["bm25"][row.measure]
        expected = stats.ttest_rel(system, baseline)
        assert row.baseline == "bm25"
        assert (row.n_queries, row.wins + row.ties + row.losses) == (60, 60)
        assert row.mean_system - row.mean_baseline == pytest.approx(row.difference)
        assert row.p_value == pytest.approx(expected.pvalue, abs=1e-12)
        assert (row.ci_low, row.ci_high) == pytest.approx(tuple(expected.confidence_interval(0.9)), abs=1e-12)
        deviation = (system - baseline).std()
        assert row.effect_size == pytest.approx(row.difference / deviation)
        assert row.detectable_difference == pytest.approx(detectable_difference(60, deviation, 0.1 / 4))
    np.testing.assert_allclose(found.table["p_adjusted"], adjust(found.table["p_value"], "holm"))


def test_all_pairs_without_a_baseline():
    """Every pair once per measure, the earlier system as baseline; families by measure are half as large."""
    found = compare(frames(), family="measure")
    pairs = list(found.table[["measure", "baseline", "system"]].itertuples(index=False, name=None))
    assert pairs[:3] == [("nDCG@10", "bm25", "ridge"), ("nDCG@10", "bm25", "ltr"), ("nDCG@10", "ridge", "ltr")]
    assert len(pairs) == 6
    assert found.settings.n_comparisons == 3
    for _, part in found.table.groupby("measure"):
        np.testing.assert_allclose(part["p_adjusted"], adjust(part["p_value"], "holm"))
    assert "Holm over 3 comparisons per measure" in str(found)


@each_row("test", TESTS)
@each_row("correction", ["holm", "max_t", "tukey"])
def test_rows_pair_by_query_id_and_never_by_position(test, correction):
    """Any order of rows, systems' own too, gives the same table to the last bit."""
    systems = frames(n=50)
    shuffled = {name: frame.sample(frac=1, random_state=k) for k, (name, frame) in enumerate(systems.items())}
    options = {"test": test, "correction": correction, "n_resamples": 99}
    pd.testing.assert_frame_equal(
        compare(systems, **options).table, compare(shuffled, **options).table, check_exact=True
    )


def test_a_further_system_leaves_raw_p_values_alone():
    systems = frames()
    two = {name: systems[name] for name in ("bm25", "ltr")}
    for test in (name for name, one in TESTS.items() if one.resamples):
        few = compare(two, baseline="bm25", test=test, n_resamples=199).table
        many = compare(systems, baseline="bm25", test=test, n_resamples=199).table
        many = many[many["system"] == "ltr"]
        np.testing.assert_allclose(few["p_value"].to_numpy(), many["p_value"].to_numpy(), rtol=1e-9)


@settings(max_examples=examples(25), deadline=None)
@given(
    seed=st.integers(0, 99),
    n=st.integers(2, 30),
    correction=st.sampled_from(["holm", "bonferroni", "bh", "by", "none", "max_t", "tukey"]),
    family=st.sampled_from(["all", "measure"]),
    test=st.sampled_from(["t", "randomization", "bootstrap", "sign"]),
)
def test_adjusted_p_values_are_probabilities_above_the_raw_ones(seed, n, correction, family, test):
    """Never nan, never 0, never below the raw p, by whatever route."""
    systems = {name: frame.round(1) for name, frame in frames(n=n, seed=seed).items()}
    table = compare(systems, test=test, correction=correction, family=family, n_resamples=49).table
    assert table["p_value"].between(0, 1, inclusive="right").all()
    assert table["p_adjusted"].between(0, 1, inclusive="right").all()
    assert (table["p_adjusted"] >= table["p_value"]).all()
    changed = table[table["wins"] + table["losses"] > 0]  # equal systems have no interval
    bare = changed[["ci_low_adjusted", "ci_high_adjusted"]].isna().to_numpy()
    assert bare.all() if correction in ("bh", "by") else not bare.any()
    assert table["detectable_difference"].isna().all() == (test == "sign")
    unknown = ["effect_size", "ci_low_adjusted", "ci_high_adjusted", "detectable_difference"]
    assert not changed.drop(columns=unknown).isna().any().any()


def test_equal_systems_and_constant_differences_are_said_clearly():
    """P is 1 for equal systems; a constant difference gets the sign flips' p and a note, not a p of 0."""
    one = pd.DataFrame({"AP": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    row = compare({"a": one, "b": one}, baseline="a").table.iloc[0]
    assert (row.p_value, row.p_adjusted, row.ties, row.effect_size) == (1, 1, 6, 0)
    assert row.filter(like="ci_").isna().all()
    assert np.isnan(row.detectable_difference)
    few = compare({"a": one[:3], "b": one[:3] + 0.25}, baseline="a").table.iloc[0]
    assert (few.p_value, few.ci_low, few.ci_high) == (0.25, -np.inf, np.inf), "three flips can show nothing"
    found = compare({"a": one, "b": one + 0.25}, baseline="a")
    assert found.table["p_value"].item() == 2 / 2**6
    assert (found.table["ci_low"].item(), found.table["ci_high"].item()) == (-np.inf, np.inf)
    assert any("the same number on every query" in note for note in found.notes)
    assert "inf" not in str(found)


def test_missing_queries_are_refused_or_left_out():
    """The default is to refuse, naming the queries; that they were left out is told in a note."""
    systems = frames()
    systems["ltr"] = systems["ltr"].drop(["q3", "q7"])
    with pytest.raises(QueryIdError, match=r"'ltr' lacks 2 of 60 queries, such as 'q3', 'q7'"):
        compare(systems, baseline="bm25")
    skip = compare(systems, baseline="bm25", unpaired="skip")
    assert set(skip.table["n_queries"]) == {58}
    assert any("left out for all systems: ltr 2" in note for note in skip.notes)
    with pytest.raises(UnknownName, match="skip"):
        compare(systems, unpaired="skp")
    for rule in ("zero", "empty"):  # a frame does not say what an empty ranking is worth
        with pytest.raises(UnknownName, match=rf"unpaired {rule!r}"):
            compare(systems, unpaired=rule)


def test_ids_that_never_meet_are_shown():
    """Integers here and strings there: the message shows one of each."""
    systems = frames()
    systems["ltr"] = systems["ltr"].set_axis(range(60))
    with pytest.raises(QueryIdError, match=r"no query in common: 'bm25' has ids such as 'q0'"):
        compare(systems, unpaired="skip")


@each_row("unpaired", ["error", "skip"])
def test_two_months_of_one_system_are_no_paired_comparison(unpaired):
    """Not as other queries, not as the same queries with other clicks, and not as frames: the error says how."""
    rng = np.random.default_rng(0)
    may, june, again = (
        rk.evaluate(rng.integers(0, 2, 200), rng.random(200), qid=np.arange(first, first + 200) // 10, measures="AP")
        for first in (0, 200, 0)
    )
    for other in (june, again):
        with pytest.raises(ConventionMismatch, match="the judgments differ") as caught:
            compare({"may": may, "june": other}, unpaired=unpaired)
        assert "scipy.stats.ttest_ind(one, other, equal_var=False)" in caught.value.remedy
    with pytest.raises(ConventionMismatch, match="ttest_ind"):
        rk.testing.assert_no_regression(june, may, unpaired=unpaired)
    with pytest.raises(QueryIdError, match=r"no query in common.*unpaired test.*ttest_ind"):
        compare({"may": may.per_query, "june": june.per_query}, unpaired=unpaired)
    tied = [rk.evaluate([0, 1], [1, 1], qid=[1, 1], ties=ties) for ties in ("best", "worst")]
    with pytest.raises(ConventionMismatch, match="ties is 'best'") as caught:
        compare(dict(zip("ab", tied, strict=True)), unpaired=unpaired)
    assert caught.value.remedy is None


def test_bad_scores_and_ids_are_refused():
    systems = frames()
    twice = systems | {"ltr": pd.concat([systems["ltr"], systems["ltr"].iloc[:1]])}
    with pytest.raises(QueryIdError, match="'q0' more than once"):
        compare(twice)
    broken = systems | {"ltr": systems["ltr"].assign(AP=np.nan)}
    with pytest.raises(InvalidInput, match=r"system 'ltr' on query 'q0' in 'AP' is not finite"):
        compare(broken)
    absent = systems["ltr"].astype("Float64").assign(AP=pd.NA).astype("Float64")
    with pytest.raises(InvalidInput, match=r"in 'AP' is not finite"):
        compare(systems | {"ltr": absent})
    with pytest.raises(InvalidInput, match="two columns named 'AP'"):
        compare(systems | {"ltr": pd.concat([systems["ltr"], systems["ltr"][["AP"]]], axis=1)})
    with pytest.raises(InvalidInput, match="not numbers"):
        compare(systems | {"ltr": systems["ltr"].astype(str)})
    with pytest.raises(InvalidInput, match="at least 2 queries"):
        compare({name: frame.iloc[:1] for name, frame in systems.items()})
    with pytest.raises(InvalidInput, match="found list"):
        compare({"a": [1, 2], "b": [2, 3]})
    with pytest.raises(InvalidInput, match="at least 2 names"):
        compare({"ltr": systems["ltr"]})


@each_row(
    ("options", "match"),
    [
        ({"baseline": "bm52"}, "'bm25'"),
        ({"test": "ttest"}, "unknown test"),
        ({"correction": "holms"}, "'holm'"),
        ({"family": "measures"}, "'measure'"),
        ({"measures": "nDGC@10"}, "nDCG@10"),
    ],
)
def test_unknown_names_are_refused_with_near_misses(options, match):
    with pytest.raises(UnknownName, match=match):
        compare(frames(), **options)


def test_an_alternative_is_answered_by_the_claim():
    for call in (partial(compare, frames()), partial(compare_algorithms, {}, {}, sizes=())):
        with pytest.raises(InvalidInput) as refused:
            call(alternative="greater")
        assert refused.value.argument == "alternative"
        assert 'claim="better"' in refused.value.remedy


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(InvalidInput, match="all pairs"):
        compare(frames(), baseline="bm25", correction="tukey")
    with pytest.raises(InvalidInput, match="alpha is 95"):
        compare(frames(), alpha=95)


def test_families_that_can_show_nothing_are_noted():
    """Holm over 1,225 pairs with 9,999 resamples can never reject; the remedy is in the note, and it is enough."""
    generator = np.random.default_rng(0)
    systems = {f"s{k}": pd.DataFrame({"AP": generator.random(20)}) for k in range(50)}
    found = compare(systems, test="randomization", n_resamples=9999)
    assert found.settings.n_comparisons == 1225
    note = next(note for note in found.notes if "nothing can be significant" in note)
    needed = int(note.split("ask for ")[1].split()[0].replace(",", ""))
    assert needed * 0.05 / 1225 >= 0.99
    enough = compare({f"s{k}": systems[f"s{k}"] for k in range(5)}, test="randomization", n_resamples=9999)
    assert not any("nothing can" in note for note in enough.notes)
    tiny = compare({name: frame.iloc[:4] for name, frame in frames().items()}, test="sign")
    assert any("more queries are needed" in note for note in tiny.notes)


def test_corrections_say_what_they_do_not_promise():
    assert any("share of false claims" in note for note in compare(frames(), correction="bh").notes)
    assert any("not corrected for the 6" in note for note in compare(frames(), correction="none").notes)
    assert any("17 %" in note for note in compare(frames(), correction="tukey", n_resamples=99).notes)
    assert any("joint over the family" in note for note in compare(frames(), correction="max_t", n_resamples=99).notes)


def test_liberal_bootstraps_warn_on_few_queries():
    with pytest.warns(RankevalWarning, match="liberal on fewer than 50 queries"):
        compare({name: frame.iloc[:20] for name, frame in frames().items()}, test="bootstrap_bca", n_resamples=99)


def test_one_sided_tests_have_one_sided_intervals():
    table = compare(frames(), baseline="bm25", claim="better").table
    assert np.isposinf(table["ci_high"]).all()
    assert np.isfinite(table["ci_low"]).all()


def test_the_seed_is_recorded_and_gives_the_same_again():
    """Also when a Generator or nothing was given."""
    systems = frames()
    for rng in (7, np.int64(7), np.random.default_rng(3), None):
        first = compare(systems, test="randomization", n_resamples=199, rng=rng)
        again = compare(systems, test="randomization", n_resamples=199, rng=first.settings.rng)
        pd.testing.assert_frame_equal(first.table, again.table, check_exact=True)


def test_evaluations_compare_by_their_means():
    """Measures that are sums stay out unless asked for; other spellings of a label are understood."""
    systems = evaluations(["nDCG@10", "AP", "NumRel"])
    found = compare(systems, baseline="weak")
    assert list(found.table["measure"]) == ["nDCG@10", "AP"]
    expected = [systems["strong"].mean()[label] for label in ("nDCG@10", "AP")]
    np.testing.assert_allclose(found.table["mean_system"], expected)
    assert list(compare(systems, measures="NumRel").table["measure"]) == ["NumRel"]
    assert list(compare(systems, measures=["ndcg_cut_10"]).table["measure"]) == ["nDCG@10"]
    assert dict(found.evaluations) == systems


def test_geometric_means_are_compared_on_their_log_scale():
    """The note says so, and the difference is that of the logarithms."""
    systems = evaluations(["gm_AP"])
    found = compare(systems, baseline="weak")
    assert found.table["difference"].item() > 0
    assert any("log scale" in note for note in found.notes)
    by_hand = systems["strong"].per_query["gm_AP"].mean() - systems["weak"].per_query["gm_AP"].mean()
    assert found.table["difference"].item() == pytest.approx(by_hand)


def test_evaluations_under_other_conventions_are_refused():
    """The difference is named."""
    y, qid, noise = arrays()
    score = np.round(noise, 1)
    a = rk.evaluate(y, score, qid=qid, measures=["AP"])
    b = rk.evaluate(y, score, qid=qid, measures=["AP"], ties="stable")
    with pytest.raises(ConventionMismatch, match=r"'a' and 'b' must not be compared: ties is 'expected'"):
        compare({"a": a, "b": b})
    c = rk.evaluate(1 - (y > 0), score, qid=qid, measures=["AP"])
    with pytest.raises(ConventionMismatch):
        compare({"a": a, "c": c})


def test_measures_that_only_some_have_are_named():
    systems = frames()
    systems["ltr"] = systems["ltr"].drop(columns="AP")
    found = compare(systems)
    assert set(found.table["measure"]) == {"nDCG@10"}
    assert any("only some systems have it: AP" in note for note in found.notes)
    with pytest.raises(InvalidInput, match="share no measure"):
        compare({"a": frames()["bm25"][["AP"]], "b": frames()["ltr"][["nDCG@10"]]})


def test_comparisons_survive_pickle_and_json():
    """All settings and numbers to the last bit; JSON leaves the evaluations out."""
    for systems in (frames(), evaluations()):
        baseline = next(iter(systems))
        found = compare(systems, baseline=baseline, claim="better", test="bootstrap", n_resamples=np.int64(99))
        for again in (pickle.loads(pickle.dumps(found)), Comparison.from_json(found.to_json())):
            pd.testing.assert_frame_equal(again.table, found.table, check_exact=True)
            assert str(again) == str(found)
            assert again.settings.rng == found.settings.rng
    assert Comparison.from_json(found.to_json()).evaluations == {}
    with pytest.raises(InvalidInput, match="this comparison is of another version"):
        Comparison.from_json('{"format": "other"}')
    with pytest.raises(InvalidInput, match=r"comparison/1', .*another version wrote it: compare the systems again"):
        Comparison.from_json('{"format": "rankeval.comparison/1"}')


def test_notes_and_withdrawn_adjustments():
    """A note is kept once; exploratory results show no adjusted p and no star, in every form."""
    found = compare(frames(), baseline="bm25")
    assert "*" in found.to_latex(layout="systems").split("toprule")[1]
    bare = replace(found, table=without_adjusted(found.table))
    explored = record.with_notes(bare, *["exploratory: look 3 at this test set"] * 2)
    assert explored.notes.count("exploratory: look 3 at this test set") == 1
    assert explored.table[["p_adjusted", "ci_low_adjusted", "ci_high_adjusted"]].isna().all(axis=None)
    assert "*" not in explored.to_latex(layout="systems").split("toprule")[1]
    for form in (str(explored), explored.to_markdown(), explored.to_latex(), explored._repr_html_()):
        assert "look 3 at this test set" in form
        assert "nan" not in form


def test_every_form_prints_names_safely():
    """Markup in a system's name stays text in HTML, LaTeX and Markdown; settings stand in the caption."""
    systems = frames()
    systems["<b>&_|"] = systems.pop("ltr")
    found = compare(systems, baseline="bm25", test="randomization", n_resamples=199, rng=5)
    assert "&lt;b&gt;&amp;_|" in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    assert r"\textless{}b\textgreater{}\&\_\textbar{}" in found.to_latex()
    assert r"\<b\>&\_\|" in found.to_markdown()
    for form in (str(found), found.to_markdown(), found.to_latex(), found._repr_html_()):
        assert "Randomisation test" in form
        assert "199 resamples, seed 5" in form


@pytest.mark.shared
def test_all_pairs_of_real_runs_equal_the_golden_corrections(shared):
    """120 pairs of TREC-COVID runs: raw and Holm-adjusted p equal statsmodels' to 1e-12."""
    import gzip
    import json

    golden = json.loads((shared / "golden" / "stats" / "trec_covid_r5.json").read_text())["all_pairs"]
    folder = shared / "golden" / "perquery_full_precision" / "trec_covid_r5"
    systems = {}
    for run in golden["systems"]:
        topics = json.loads(gzip.decompress((folder / f"{run}.json.gz").read_bytes()))
        systems[run] = pd.DataFrame({golden["measure"]: {q: each[golden["measure"]] for q, each in topics.items()}})
    table = compare(systems).table
    assert [list(pair) for pair in zip(table["baseline"], table["system"], strict=True)] == golden["pairs"]
    np.testing.assert_allclose(table["p_value"], golden["ttest_rel_pvalues"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(table["p_adjusted"], golden["corrections"]["holm"]["adjusted"], rtol=0, atol=1e-12)


@each_row("to_frame", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_ids_in_a_column_pair_the_rows(to_frame):
    """A column qid holds the ids: it is no measure, and the order of rows says nothing."""
    bm25 = pd.DataFrame({"qid": [1, 2, 3], "AP": [0.2, 0.4, 0.6]})
    ltr = pd.DataFrame({"qid": [3, 2, 1], "AP": [0.9, 0.5, 0.4]})
    by_column = compare({"bm25": to_frame(bm25), "ltr": to_frame(ltr)}, baseline="bm25").table
    by_index = compare({"bm25": bm25.set_index("qid"), "ltr": ltr.set_index("qid")}, baseline="bm25").table
    pd.testing.assert_frame_equal(by_column, by_index)


def test_numbers_of_documents_beside_the_scores_are_no_measures():
    """As in `hardest` and the scores of Spark: tested too, they would take a share of the correction."""
    systems = evaluations()
    beside = {name: one.per_query.assign(**one.facts.query_counts, weight=1.0) for name, one in systems.items()}
    found, expected = compare(beside), compare(systems)
    pd.testing.assert_frame_equal(found.table, expected.table)
    columns = "relevant, retrieved, tied, judged, weight"
    notes = (
        *expected.notes,
        f"not compared, because these columns are not scores: {columns}; name them in measures= to compare them",
        "the tests count every query once, and do not use the column 'weight'",
    )
    assert found.notes == notes
    assert compare({"weak": systems["weak"], "strong": beside["strong"]}).notes == notes
    assert set(compare(beside, measures=["AP", "tied"]).table["measure"]) == {"AP", "tied"}
    with pytest.raises(InvalidInput, match="share no measure that is a mean over queries: 'weak' has relevant, tied"):
        compare({name: one[["relevant", "tied"]] for name, one in beside.items()})


def test_scores_of_other_tools_are_compared():
    """Dicts of pytrec_eval, and frames whose ids are in a column of ir_measures' name."""
    systems = frames()
    wanted = compare(systems).table
    as_dicts = {name: frame.to_dict("index") for name, frame in systems.items()}
    as_columns = {name: frame.rename_axis("query_id").reset_index() for name, frame in systems.items()}
    pd.testing.assert_frame_equal(compare(as_dicts).table, wanted)
    pd.testing.assert_frame_equal(compare(as_columns).table, wanted)
    with pytest.raises(
        InvalidInput, match=r"DataFrames of per-query scores or \{qid: \{measure: score\}\}, found dict"
    ):
        compare({"a": {"q1": 0.5}, "b": {"q1": 0.25}})


def test_a_family_on_fewer_queries_than_were_measured_is_warned_of():
    """From 10 queries on, below 50, a note has the rates; a single pair promises nothing about a family."""
    systems = {name: pd.DataFrame({"AP": np.random.default_rng(place).random(50)}) for place, name in enumerate("abc")}
    with pytest.warns(RankevalWarning, match="here 9, and none were measured below 10") as caught:
        found = compare({name: frame[:9] for name, frame in systems.items()}, correction="max_t")
    assert {Path(each.filename).name for each in caught} == {Path(__file__).name}
    assert str(caught[0].message) in found.notes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n, n_systems, noted in ((9, 2, False), (10, 3, True), (49, 3, True), (50, 3, False)):
            found = compare({name: systems[name][:n] for name in "abc"[:n_systems]})
            assert any("strong skew" in note for note in found.notes) == noted
        compare({name: frame[:9] for name, frame in systems.items()}, correction="none")  # promises nothing of families


def test_alpha_may_be_any_real_number():
    as_fraction, plain = (compare(frames(), alpha=alpha).table for alpha in (Fraction(1, 16), 1 / 16))
    pd.testing.assert_frame_equal(as_fraction, plain, check_exact=True)
