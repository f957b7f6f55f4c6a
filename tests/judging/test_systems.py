"""The effect of judgments on systems, counted again by loops over the pairs of systems."""

from collections import Counter
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, rankdata, ttest_rel
from shown import whole
from statsmodels.stats.multitest import multipletests
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.judging import disagreement, reusability

FATES = ["kept", "lost", "new", "reversed"]
ANN = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d1": 1, "d2": 0}, "q3": {"d1": 1}}
BO = {"q1": {"d1": 1, "d2": 1}, "q2": {"d1": 0, "d2": 2}, "q4": {"d9": 1}}
TWO = {
    "one": {"q1": ["d1", "d2", "d3"], "q2": ["d1", "d2"]},
    "two": {"q1": ["d2", "d3", "d1"], "q2": ["d2", "d1"]},
}


def scored(qrels, runs, measure):
    return pd.DataFrame(
        {name: rk.evaluate(qrels, run, measures=measure).per_query.iloc[:, 0] for name, run in runs.items()}
    )


def counted(old, new, alpha=0.05):
    """Count what becomes of the significant pairs of the first scores under the second ones."""

    def tests(scores):
        pairs = list(combinations(scores.columns, 2))
        p = [ttest_rel(scores[a], scores[b]).pvalue for a, b in pairs]
        better = [np.sign((scores[a] - scores[b]).mean()) for a, b in pairs]
        return multipletests(p, alpha, method="holm")[0] * np.array(better)

    found = Counter()
    for was, now in zip(tests(old), tests(new), strict=True):
        if was and now:
            found["kept" if was == now else "reversed"] += 1
        elif was or now:
            found["lost" if was else "new"] += 1
    return [found[fate] for fate in FATES]


@cache
def covid(shared, n):
    folder = shared / "trec_covid_r5"
    paths = sorted((folder / "runs").glob("*.gz"))[:n]
    return rk.Qrels.read(folder / "qrels.complete.txt.gz").to_frame(), {path.stem: rk.Run.read(path) for path in paths}


@cache
def redrawn(shared):
    """Draw new labels of TREC-COVID: P(grade of the machine | grade of people) as on the pairs of RAG 2025.

    COVID has the grades 0, 1 and 2, and RAG 2025 those from 0 to 4: 2, 3 and 4 are taken as 2 on both sides.
    """
    people, machine = (
        rk.Qrels.read(shared / "agreement_rag25" / f"qrels.{name}.txt.gz").to_frame() for name in ("nist", "umbrela")
    )
    pairs = people.merge(machine, on=["qid", "docid"])
    confusion = pd.crosstab(pairs["relevance_x"].clip(upper=2), pairs["relevance_y"].clip(upper=2), normalize="index")
    judged, _ = covid(shared, 10)
    below = confusion.to_numpy().cumsum(axis=1)[judged["relevance"].clip(0, 2)]
    drawn = (np.random.default_rng(28).random((len(judged), 1)) > below).sum(axis=1)
    return judged.assign(relevance=drawn)


@pytest.mark.shared
def test_pairs_and_orders_are_those_of_an_independent_count(shared):
    """Ten systems of TREC-COVID by labels redrawn with the confusion of people and machine of RAG 2025."""
    people, runs = covid(shared, 10)
    machine = redrawn(shared)
    both = people.merge(machine, on=["qid", "docid"], suffixes=("", "_machine"))
    grades = both[["relevance", "relevance_machine"]]
    union, intersection = (
        both[["qid", "docid"]].assign(relevance=part) for part in (grades.max(axis=1), grades.min(axis=1))
    )
    found = disagreement({"people": people, "machine": machine}, runs)
    truth = scored(people, runs, "nDCG@10")
    assert found.table["judgments"].tolist() == ["machine", "union", "intersection"]
    for row, judged in zip(found.table.itertuples(), (machine, union, intersection), strict=True):
        scores = scored(judged, runs, "nDCG@10")
        assert [row.kept, row.lost, row.new, row.reversed] == counted(truth, scores)
        assert row.tau_b == pytest.approx(kendalltau(truth.mean(), scores.mean()).statistic, abs=1e-12)
        assert row.mean == pytest.approx(scores.to_numpy().mean(), abs=1e-12)
        marks = people.merge(judged, on=["qid", "docid"])
        one, other = marks["relevance_x"] >= 1, marks["relevance_y"] >= 1
        by_query = [
            (one & other)[rows].sum() / (one | other)[rows].sum() for rows in marks.groupby("qid").groups.values()
        ]
        assert row.overlap == pytest.approx(np.mean(by_query), abs=1e-12)
    # Tau alone would hide that the machine loses 9 of 29 significant pairs.
    assert found.table.loc[0, [*FATES, "swaps"]].tolist() == [20, 9, 0, 0, 1]
    assert found.table.loc[0, ["tau_b", "overlap"]].tolist() == pytest.approx([0.956, 0.45], abs=0.005)


@pytest.mark.parametrize("measure", ["nDCG@10", "ARP"])
def test_a_random_judge_is_drawn_for_each_query(measure):
    """Judgments put together from those of the drawn judges, and evaluated, have the same mean and tau."""
    world, runs = simulated(n_systems=6, n_queries=12, keeps=0.7)
    found = disagreement(world, runs, measure=measure, n_draws=3, rng=5)
    truth = scored(world["first"], runs, measure).mean()
    drawn = np.random.default_rng(5).integers(2, size=(3, 12))
    for row, judges in zip(found.draws.itertuples(), drawn, strict=True):
        mixed = {
            query: world[("first", "second")[judge]][query] for query, judge in zip(world["first"], judges, strict=True)
        }
        means = scored(mixed, runs, measure).mean()
        assert row.mean == pytest.approx(means.mean(), abs=1e-12)
        assert row.tau_b == pytest.approx(kendalltau(truth, means).statistic, abs=1e-12)
    assert f"{found.draws['tau_b'].min():.3f} at the least" in found.notes[-1]


def simulated(n_systems, n_queries, keeps, seed=0):
    """Make systems of very different quality, and two judges, one of whom keeps a share of what the other finds."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((n_queries, 120)) < 0.15
    second = np.where(relevant, rng.random(relevant.shape) < keeps, rng.random(relevant.shape) < 0.17 * (1 - keeps))
    world = {
        name: {f"q{q:02}": {f"d{d}": int(label) for d, label in enumerate(row)} for q, row in enumerate(labels)}
        for name, labels in (("first", relevant), ("second", second))
    }
    runs = {}
    for system, skill in enumerate(np.linspace(0, 3, n_systems)):
        scores = skill * relevant + rng.normal(size=relevant.shape)
        runs[f"s{system:02}"] = {
            f"q{q:02}": {f"d{d}": score for d, score in enumerate(row)} for q, row in enumerate(scores)
        }
    return world, runs


@pytest.mark.world
def test_tau_stays_high_where_systems_differ_widely():
    """Judges who share less than half of their relevant documents order systems of very different quality alike."""
    world, runs = simulated(n_systems=20, n_queries=50, keeps=0.64)
    found = disagreement(world, runs, measure="AP")
    other = found.table.set_index("judgments").loc["second"]
    assert 0.4 < other["overlap"] < 0.52
    assert other["tau_b"] > 0.93
    assert found.draws["tau_b"].mean() > other["tau_b"]


def test_equal_judges_change_nothing():
    world, runs = simulated(n_systems=5, n_queries=20, keeps=0.5)
    found = disagreement({"a": world["first"], "b": world["first"]}, runs)
    assert found.table[["overlap", "tau_b", "tau_ap"]].to_numpy() == pytest.approx(np.ones((3, 3)), abs=1e-12)
    assert (found.table[["swaps", "lost", "new", "reversed"]] == 0).all(axis=None)
    assert found.table["kept"].min() > 0
    assert set(found.pairs["fate"]) <= {"kept", "open"}


def test_a_judge_of_the_opposite_mind_reverses_pairs():
    """A pair that both judgments call significant, for different systems, is reversed; the truth may be either."""
    queries = [f"q{number}" for number in range(9)]
    ann = {query: {"d1": 1, "d2": 0} for query in queries} | {"q0": {"d1": 0, "d2": 1}}
    bo = {query: {document: 1 - grade for document, grade in labels.items()} for query, labels in ann.items()}
    runs = {"one": {query: ["d1", "d2"] for query in queries}, "two": {query: ["d2", "d1"] for query in queries}}
    found = disagreement({"ann": ann, "bo": bo}, runs, measure="P@1", n_draws=1)
    assert found.table.loc[0, FATES].tolist() == [0, 0, 0, 1]
    assert found.table.loc[0, ["tau_b", "overlap"]].tolist() == [-1, 0]
    row = found.pairs.iloc[0]
    assert (row["difference"], row["difference_by_truth"]) == pytest.approx((7 / 9, -7 / 9))
    strict = disagreement({"ann": ann, "bo": bo}, runs, measure="P@1", n_draws=1, alpha=0.001)
    assert strict.table.loc[0, FATES].tolist() == [0, 0, 0, 0]
    turned = disagreement({"ann": ann, "bo": bo}, runs, measure="P@1", n_draws=1, truth="bo")
    assert turned.table["judgments"].tolist() == ["ann", "union", "intersection"]


def test_only_queries_that_all_judged_count():
    """The union has each document that some judge judged; the intersection has those that one left out as -1."""
    found = disagreement({"ann": ANN, "bo": BO}, TWO, measure="nDCG@3", n_draws=2)
    union = {"q1": {"d1": 2, "d2": 1, "d3": 1}, "q2": {"d1": 1, "d2": 2}}
    intersection = {"q1": {"d1": 1, "d2": 0, "d3": -1}, "q2": {"d1": 0, "d2": 0}}
    for name, judged in {
        "ann": {q: ANN[q] for q in ("q1", "q2")},
        "union": union,
        "intersection": intersection,
    }.items():
        assert found.means[name].tolist() == pytest.approx(scored(judged, TWO, "nDCG@3").mean().tolist(), abs=1e-12)
    assert found.notes[0] == "2 queries left out: not all judges judged them"
    assert found.notes[1].startswith("1 of 5 documents are judged by some judges only")


def test_judges_may_be_aspects():
    rows = [
        (q, d, judge, grade)
        for judge, labels in (("ann", ANN), ("bo", BO))
        for q in labels
        for d, grade in labels[q].items()
    ]
    frame = pd.DataFrame(rows, columns=["qid", "docid", "aspect", "relevance"])
    one, other = disagreement(frame, TWO, n_draws=2), disagreement({"ann": ANN, "bo": BO}, TWO, n_draws=2)
    pd.testing.assert_frame_equal(one.table, other.table)


@each_row(
    ("judgments", "options", "error"),
    [
        ({"ann": ANN}, {}, InvalidInput),
        ({"ann": ANN, "union": BO}, {}, InvalidInput),
        ({"ann": {"q8": {"d": 1}}, "bo": {"q9": {"d": 1}}}, {}, InvalidInput),  # no query in common
        ({"ann": ANN, "bo": BO}, {"truth": "zoe"}, InvalidInput),
        ({"ann": ANN, "bo": BO}, {"correction": "hope"}, UnknownName),
        ({"ann": ANN, "bo": BO}, {"n_draws": 0}, InvalidInput),
    ],
)
def test_refused(judgments, options, error):
    with pytest.raises(error):
        disagreement(judgments, TWO, **options)


@pytest.mark.shared
def test_reusability_is_that_of_a_recount(shared):
    """Runs of TREC-COVID, two of one group: documents, means, ranks and pairs by loops."""
    judged, runs = covid(shared, 5)
    names, groups = list(runs), dict(zip(runs, "aabcd", strict=True))
    found = reusability(judged, runs, depth=10, groups=groups, measure="AP")
    grade = dict(zip(zip(judged["qid"], judged["docid"], strict=True), judged["relevance"], strict=True))
    finders = {}
    for name, run in runs.items():
        lists = {}
        for query, document, score in zip(run.qid.to_pylist(), run.docid.to_pylist(), run.score, strict=True):
            lists.setdefault(query, []).append((score, document))
        for query, documents in lists.items():
            for _, document in sorted(documents, reverse=True)[:10]:
                finders.setdefault((query, document), set()).add(groups[name])
    full = scored(judged, runs, "AP")
    for row in found.table.itertuples():
        unique = {pair for pair, who in finders.items() if who == {row.group} and pair in grade}
        assert (row.unique, row.unique_relevant) == (len(unique), sum(grade[pair] > 0 for pair in unique))
        stays = [pair not in unique for pair in grade]
        reduced = scored(judged[stays], runs, "AP")
        place = names.index(row.system)
        assert (row.mean, row.mean_without) == pytest.approx(
            (full.mean().iloc[place], reduced.mean().iloc[place]), abs=1e-12
        )
        assert (row.rank, row.rank_without) == tuple(
            rankdata(-scores.mean(), "min")[place] for scores in (full, reduced)
        )
        assert [row.kept, row.lost, row.new, row.reversed] == counted(full, reduced)
    assert found.table["group"].tolist() == list("aabcd")


def test_runs_that_are_alike_hide_what_judgments_lack():
    """Nothing is unique to one of two equal runs, so nothing changes: the note says that this shows nothing."""
    found = reusability(ANN, {"one": TWO["one"], "same": TWO["one"]}, depth=2, measure="RR")
    assert found.table["unique"].tolist() == [0, 0]
    assert found.table["mean"].tolist() == found.table["mean_without"].tolist()
    assert "runs that are alike" in found.notes[-1]


def test_a_query_whose_judgments_are_all_unique_counts():
    """Without its judgments it has no relevant document, which is the harm that is looked for."""
    alike = {"q1": ["d1"], "q2": ["d2"]}
    runs = {"one": alike | {"q3": ["d3"]}, "two": alike | {"q3": ["d4"]}}
    found = reusability({"q1": {"d1": 1}, "q2": {"d5": 1}, "q3": {"d3": 1}}, runs, depth=1, measure="P@1")
    assert "over 3 queries" in found.caption
    assert found.table["mean"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert found.table["mean_without"].tolist() == pytest.approx([1 / 3, 1 / 3])


def test_a_run_without_a_group_is_refused():
    with pytest.raises(UnknownName, match="two"):
        reusability(ANN, TWO, depth=2, groups={"one": "a"})


@pytest.mark.further
def test_tables_and_pictures_name_the_systems():
    world, runs = simulated(n_systems=4, n_queries=10, keeps=0.5)
    runs = {f"<{name}>$": run for name, run in runs.items()}
    for found in (disagreement(world, runs), reusability(world["first"], runs, depth=5)):
        assert found.caption in whole(found)
        assert "&lt;s00&gt;" in found._repr_html_() or "second" in found._repr_html_()
        assert "kept" in found.to_markdown()
        axes = found.plot().axes[0]
        assert sorted(label.get_text()[:5] for label in axes.get_yticklabels()) == sorted(name[:5] for name in runs)
    assert [label.get_text() for label in disagreement(world, runs).plot().axes[0].get_xticklabels()][:2] == [
        "first",
        "second",
    ]


@pytest.mark.filterwarnings("ignore")
def test_a_query_whose_judgments_all_go_with_a_group_still_counts():
    """The mean by all judgments is that of `evaluate`, also if a query loses all its judgments with a group."""
    runs = {"one": {"q1": ["d1"], "q2": ["d3"], "q3": ["d1"]}, "two": {"q1": ["d1"], "q2": ["d4"], "q3": ["d1"]}}
    qrels = {"q1": {"d1": 1}, "q2": {"d4": 1}, "q3": {"d1": 1}}
    row = rk.judging.reusability(qrels, runs, depth=1, measure="P@1").table.set_index("system").loc["two"]
    assert row["mean"] == rk.evaluate(qrels, runs["two"], measures=["P@1"]).mean()["P@1"] == 1
    assert row["mean_without"] == pytest.approx(2 / 3)


@pytest.mark.filterwarnings("ignore")
@each_row("groups", [None, {1: 7, 2: 8}], ids=["runs", "groups"])
def test_numbers_may_name_runs_and_groups(groups):
    """Runs and groups that are named by numbers give a table, as in `pool` and `disagreement`."""
    runs = {1: {"q1": ["d1"], "q2": ["d3"]}, 2: {"q1": ["d2"], "q2": ["d4"]}}
    qrels = {"q1": {"d1": 1, "d9": 1}, "q2": {"d4": 1, "d9": 1}}
    assert len(rk.judging.reusability(qrels, runs, depth=1, measure="P@1", groups=groups).table) == 2


RUNS = {"x": {"q1": ["d1"], "q2": ["d1"]}, "y": {"q1": ["d2"], "q2": ["d1"]}}
JUDGES = {"ann": {"q1": {"d1": 1}, "q2": {"d1": 1}}, "bo": {"q1": {"d1": 1}, "q2": {"d1": 0}}}


@pytest.mark.filterwarnings("ignore")
@each_row("n_draws", [0, -1, 1.5])
def test_a_number_of_draws_that_is_none_is_named(n_draws):
    """A number of draws that is no whole number from 1 on is refused by its name."""
    with pytest.raises(InvalidInput, match="n_draws"):
        rk.judging.disagreement(JUDGES, RUNS, measure="P@1", n_draws=n_draws)


def test_judges_without_a_common_query_are_named():
    """Judges with no query in common are refused as such, and not as empty qrels."""
    judges = {"ann": {"q1": {"d1": 1}}, "bo": {"q2": {"d1": 1}}}
    with pytest.raises(InvalidInput, match=r"quer(y|ies) .*all|all .*quer(y|ies)|common"):
        rk.judging.disagreement(judges, RUNS, measure="P@1")
