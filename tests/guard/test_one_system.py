"""A plan of one system: its mean with an interval, for a model card, and a look."""

from __future__ import annotations

import numpy as np
import pytest

import rankeval as rk
from rankeval.comparison.concluding import comparison_of_one, means_of
from rankeval.comparison.design import COLUMNS
from rankeval.datasets import make_ranking
from rankeval.errors import InvalidInput

DATA = make_ranking(60, 12, rng=0)


@pytest.fixture
def guard(tmp_path):
    return rk.Guard("one", ledger=tmp_path / "ledger")


@pytest.fixture
def opened(guard):
    """Open a plan of one system with two secondary measures."""
    test = guard.register("test", DATA)
    return guard.open(guard.freeze(test, systems={"final": DATA.X[:, 0]}, secondary=["AP", "gm_AP"]))


def test_its_mean_and_interval_are_those_of_the_evaluation(opened):
    """To the last bit, for means; a geometric mean has no interval."""
    assert list(opened.means.columns) == ["measure", "system", "n_queries", "mean", "ci_low", "ci_high"]
    ci = opened.evaluations["final"].ci(0.95)
    by_measure = opened.means.set_index("measure")
    for label in ("nDCG@10", "AP"):
        assert by_measure.loc[label, ["mean", "ci_low", "ci_high"]].tolist() == ci.loc[label].tolist()
    assert by_measure.loc["gm_AP", "mean"] == opened.evaluations["final"].aggregate()["gm_AP"]
    assert by_measure.loc["gm_AP", ["ci_low", "ci_high"]].isna().all()
    assert (opened.means["n_queries"] == 60).all()


def test_its_table_is_empty_and_has_all_columns(opened):
    assert len(opened.table) == 0
    assert tuple(opened.table.columns) == COLUMNS
    assert opened.settings.n_comparisons == 0


def test_it_is_a_look(guard, opened):
    looks = guard.looks("test")
    assert looks["system"].tolist() == ["final"]
    assert looks["value"][0] == opened.means["mean"][0]


def test_its_headline_says_mean_interval_and_number_of_queries(opened):
    row = opened.means.iloc[0]
    ends = f"{row['ci_low']:.4f} to {row['ci_high']:.4f}"
    assert opened.headline == f"final: nDCG@10 {row['mean']:.4f} [95% interval {ends}], on 60 queries."
    assert opened.findings == (opened.headline,)


def test_a_measure_of_which_less_is_better_says_so():
    one = rk.evaluate([1, 0, 0, 1], [1, 2, 2, 1], qid=[1, 1, 2, 2], measures="ARP")
    assert "ARP" in (said := comparison_of_one("final", one).headline)
    assert "(less is better)" in said


def test_a_headline_without_an_interval_says_so():
    """One query, or a geometric mean."""
    one = rk.evaluate([1, 0], [2, 1], qid=[1, 1], measures="AP")
    assert comparison_of_one("final", one).headline == "final: AP 1.0000 [no 95% interval], on 1 query."


def test_every_view_shows_the_mean(opened):
    mean = f"{opened.means['mean'][0]:.4f}"
    for text in (str(opened), opened._repr_html_(), opened.to_markdown(digits=4), opened.to_latex(digits=4)):
        assert mean in text
        assert "nan" not in text
    assert opened.to_html(layout="systems") == opened.to_html()
    figure = opened.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["nDCG@10", "AP", "gm_AP"]
    assert len(opened.plot(measure="AP").axes) == 1


def test_json_keeps_everything_but_the_evaluations(opened):
    back = rk.Comparison.from_json(opened.to_json())
    assert back.means.equals(opened.means)
    assert back.table.equals(opened.table)
    assert back.table.dtypes.equals(opened.table.dtypes)
    assert back.headline == opened.headline
    assert str(back) == str(opened)
    assert back.to_json() == opened.to_json()


def test_the_best_is_the_only_one(opened):
    row = opened.means.iloc[0]
    best = opened.best
    assert (best.system, best.baseline, best.n_candidates) == ("final", None, 1)
    assert (best.estimate, best.ci_low, best.ci_high) == (row["mean"], row["ci_low"], row["ci_high"])


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: one.effects,
        lambda one: one.ranks,
        lambda one: one.bayes(rope=0.01),
        lambda one: one.plot("matrix"),
        lambda one: one.plot(system="final"),
        lambda one: one.to_latex(gain=True),
        lambda one: one.to_markdown(layout="systems", spread="se"),
    ],
)
def test_what_needs_a_difference_says_so(opened, ask):
    with pytest.raises(InvalidInput, match=r"one system|two systems|ranks need"):
        ask(opened)


def test_its_only_system_is_no_free_baseline(guard):
    test = guard.register("test", DATA)
    with pytest.raises(InvalidInput, match="has one system, which has no baseline"):
        guard.freeze(test, systems={"final": DATA.X[:, 0]}, baseline="final")
    with pytest.raises(InvalidInput, match="at least one"):
        guard.freeze(test, systems={})


def test_it_takes_no_share_of_the_level_of_other_plans(guard):
    """It tests nothing: p-values of a plan frozen beside it are those that it has alone."""
    test = guard.register("test", DATA)
    single = guard.freeze(test, systems={"final": DATA.X[:, 3]})
    pair = guard.freeze(test, systems={"a": DATA.X[:, 0], "b": DATA.X[:, 1]}, baseline="a")
    guard.open(single)
    opened = guard.open(pair)
    alone = rk.compare(opened.evaluations, baseline="a", test="randomization", correction="max_t", measures=["nDCG@10"])
    assert opened.table["p_adjusted"].tolist() == alone.table["p_adjusted"].tolist()


def test_every_opened_plan_has_means(guard):
    test = guard.register("test", DATA)
    systems = {"a": DATA.X[:, 0], "b": DATA.X[:, 1]}
    opened = guard.open(guard.freeze(test, systems=systems, baseline="a", secondary="AP", alpha=0.1))
    assert opened.means[["measure", "system"]].values.tolist() == [
        ["nDCG@10", "a"], ["nDCG@10", "b"], ["AP", "a"], ["AP", "b"],
    ]  # fmt: skip
    assert opened.means.equals(means_of(opened.evaluations, 0.9))
    low = opened.evaluations["b"].ci(0.9)["ci_low"]
    assert np.array_equal(opened.means.query("system == 'b'")["ci_low"], low)
    assert rk.Comparison.from_json(opened.to_json()).means.equals(opened.means)


def test_the_command_line_prints_it(opened, capsys):
    """As a table, as JSON that reads back, and as csv with every digit."""
    from rankeval.cli.output import Format, print_result

    print_result(opened, Format.table)
    assert opened.headline in capsys.readouterr().out
    print_result(opened, Format.json)
    assert rk.Comparison.from_json(capsys.readouterr().out).means.equals(opened.means)
    print_result(opened, Format.csv)
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert header == "measure,system,n_queries,mean,ci_low,ci_high"
    assert float(first.split(",")[3]) == opened.means["mean"][0]


def test_it_is_logged_to_mlflow(opened):
    """Means and intervals as metrics, the sentence as a tag, table and figure on the page."""
    from rankeval_mlflow.packing.nodes import node_of
    from rankeval_mlflow.views import render

    node = node_of(opened.record())
    assert node.metrics["mean/nDCG_at_10"] == opened.means["mean"][0]
    assert node.metrics["mean/AP_ci_low"] == opened.means["ci_low"][1]
    assert "mean/gm_AP_ci_low" not in node.metrics
    assert node.tags["rankeval.headline"] == opened.headline
    (drawing,) = node.renderings
    page = render(drawing.kind, node.files[drawing.source], drawing.options)["report.html"].decode()
    assert f"{opened.means['mean'][0]:.4f}" in page
    assert opened.headline.partition(" [")[0] in page
    assert opened.headline.partition(" [")[0] in node.sections["comparison"].replace("\\", "")
