"""The best of several systems: chosen by the largest gain, valued by queries that did not choose it, and kept."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
from tables import each_row

import rankeval as rk
from rankeval.comparison import Comparison, compare, record
from rankeval.errors import InvalidInput, UnknownName
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import value_of_choice


def frames(n=60, systems=6, measures=("AP", "ARP"), seed=0):
    generator = np.random.default_rng(seed)
    index = [f"q{place}" for place in range(n)]
    hard = generator.normal(size=n)
    scores = {
        f"s{place}": pd.DataFrame({m: 0.4 + 0.1 * hard + generator.normal(0, 0.1, n) for m in measures}, index=index)
        for place in range(systems)
    }
    return {"base" if name == "s0" else name: frame for name, frame in scores.items()}


def parts(choice):
    return choice.estimate, choice.ci_low, choice.ci_high


def test_the_best_has_the_largest_gain_and_the_value_of_its_choice():
    systems = frames()
    compared = compare(systems, baseline="base", measures=["AP"], rng=3)
    best = compared.best
    assert best.system == compared.table.set_index("system")["difference"].idxmax()
    assert (best.measure, best.baseline, best.n_candidates, best.confidence_level) == ("AP", "base", 5, 0.95)
    gains = np.column_stack([systems[f"s{place}"]["AP"] - systems["base"]["AP"] for place in range(1, 6)])
    value = value_of_choice(gains[np.argsort(systems["base"].index)], Settings(rng=3))
    assert parts(best) == pytest.approx((value.estimate, value.ci_low, value.ci_high), rel=1e-9)
    assert best.estimate < compared.table["difference"].max()
    with pytest.raises(FrozenInstanceError):
        best.estimate = 1.0


def test_the_measure_is_the_primary_or_the_first():
    compared = compare(frames(measures=("AP", "RR")), baseline="base")
    assert compared.best.measure == "AP"
    decided = record.with_settings(compared, primary="RR").best
    assert decided.measure == "RR"
    assert decided == compare(frames(measures=("AP", "RR")), baseline="base", measures=["RR"]).best
    with pytest.raises(UnknownName, match="measure of the comparison"):
        _ = record.with_settings(compared, primary="P@5").best


def test_where_less_is_better_the_lowest_mean_is_chosen():
    """ARP is AP turned about: the same system, the same figures with the other sign."""
    systems = {name: frame.assign(ARP=-frame["AP"]) for name, frame in frames().items()}
    compared = compare(systems, baseline="base")
    more, less = compared.best, record.with_settings(compared, primary="ARP").best
    assert less.system == more.system
    assert parts(less) == pytest.approx((-more.estimate, -more.ci_high, -more.ci_low), rel=1e-9)
    assert f"smallest mean of 5 candidates, here {less.system}, changes ARP (less is better) by about " in less.words


def test_without_a_baseline_the_value_is_the_mean():
    systems = frames()
    compared = compare(systems, measures=["AP"])
    best = compared.best
    means = {name: frame["AP"].mean() for name, frame in systems.items()}
    assert best.system == max(means, key=means.get)
    assert (best.baseline, best.n_candidates) == (None, 6)
    assert best.ci_low < best.estimate <= means[best.system] < best.ci_high
    assert best.words.startswith(f"Choosing the largest mean of 6 candidates, here {best.system}, leads to ")


def test_one_candidate_has_its_difference_and_students_interval():
    systems = frames(systems=2)
    compared = compare(systems, baseline="base", measures=["AP"])
    row = compared.table.iloc[0]
    assert parts(compared.best) == pytest.approx((row.difference, row.ci_low, row.ci_high), rel=1e-9)
    assert "chosen" not in compared.best.words


def test_copies_of_a_system_change_nothing_but_their_number():
    systems = frames()
    twice = {**systems, "s1 again": systems["s1"], "s2 again": systems["s2"]}
    one, two = (compare(each, baseline="base", measures=["AP"]).best for each in (systems, twice))
    assert parts(two) == pytest.approx(parts(one), rel=1e-9)
    assert (one.n_candidates, two.n_candidates) == (5, 7)


def test_the_seed_of_the_comparison_determines_it():
    first, again, other = (compare(frames(), baseline="base", measures=["AP"], rng=rng).best for rng in (1, 1, 2))
    assert first == again
    assert first != other


@each_row("n", [2, 3, 4])
def test_few_queries_have_a_value(n):
    best = compare(frames(n=n), baseline="base", measures=["AP"]).best
    assert np.isfinite(parts(best)).all()
    assert best.ci_low <= best.estimate <= best.ci_high


def test_it_is_computed_when_it_is_asked_for(monkeypatch):
    calls = []

    def counted(*args):
        calls.append(args)
        return value_of_choice(*args)

    monkeypatch.setattr("rankeval.comparison.derived.value_of_choice", counted)
    compared = compare(frames(), baseline="base", measures=["AP"])
    assert not calls
    assert compared.best is compared.best
    assert len(calls) == 1


def test_json_keeps_it_to_the_last_bit():
    compared = compare(frames(), baseline="base")
    again = Comparison.from_json(compared.to_json())
    assert again.best == compared.best
    assert record.with_notes(again, "a note").best == compared.best
    assert Comparison.from_json(again.to_json()).best == compared.best
    with pytest.raises(InvalidInput, match="scores of every query are needed"):
        _ = record.with_settings(again, primary="ARP").best


def test_without_scores_it_is_refused_and_everything_else_works():
    stripped = replace(compare(frames(), baseline="base"), evaluations={})
    with pytest.raises(InvalidInput, match="scores of every query are needed"):
        _ = stripped.best
    again = Comparison.from_json(stripped.to_json())
    assert again.table.equals(stripped.table)
    with pytest.raises(InvalidInput, match="scores of every query are needed"):
        _ = again.best


def test_folds_are_refused():
    from sklearn.linear_model import Ridge

    data = rk.datasets.make_ranking(30, 8, rng=1)
    one, two = (
        rk.cross_validate(Ridge(alpha=alpha), data.X, data.y, qid=data.qid, measures=["nDCG@10"], cv=3)
        for alpha in (1.0, 1e4)
    )
    compared = one.compare(two, question="algorithms")
    with pytest.raises(InvalidInput, match="one of folds"):
        _ = compared.best
    assert json.loads(compared.to_json())["choice"] is None


@pytest.mark.filterwarnings("ignore::rankeval.errors.RankevalWarning")
def test_an_infinite_end_is_kept_in_json():
    """Equal gains leave the value of the choice without a finite end; a system may be named like one."""
    base = frames()["base"]
    for systems in ({"base": base, "inf": base}, {"base": base, "inf": base, "s1": base + 0.1}):
        compared = compare(systems, baseline="base", claim="better")
        assert compared.best.ci_low == -np.inf or compared.best.ci_high == np.inf
        assert Comparison.from_json(compared.to_json()).best == compared.best


def test_names_are_escaped_in_a_notebook():
    systems = frames()
    compared = compare({**systems, "<b>": systems["s1"] + 1}, baseline="base", measures=["AP"])
    assert compared.best.system == "<b>"
    assert compared.best._repr_html_().startswith(
        "<p>Choosing the largest mean of 6 candidates, here &lt;b&gt;, gains about"
    )
