"""What is better is said of columns of known direction, in the words of the column; of others only a difference."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from shown import whole
from tables import each_row

import rankeval as rk
from rankeval.comparison.tables import printed
from rankeval.errors import InvalidInput, UnknownName
from rankeval.measures import direction
from rankeval.testing import assert_no_regression, assert_not_worse

JUDGING = re.compile(r"\b(beats|better|worse|winner|won|lost|gains?|loss(es)?)\b")
KNOWN = {
    "Latency": ("faster", "slower"),
    "cost per 1000": ("cheaper", "more expensive"),
    "index_bytes": ("smaller", "larger"),
}


def frames(column, *shifts, n=60):
    """Return systems a, b, ... whose scores by the column lie so much above those of the first."""
    rng = np.random.default_rng(0)
    first, index = rng.random(n) + 1, [f"q{i}" for i in range(n)]
    return {
        name: pd.DataFrame({column: first + shift + rng.normal(0, 0.05, n)}, index=index)
        for name, shift in zip("abcdef", (0.0, *shifts), strict=False)
    }


def texts(compared):
    """Yield all that a comparison says in words."""
    yield from (*compared.findings, whole(compared), compared._repr_html_())
    yield from (compared.caption, *compared.notes)
    for layout in ("comparisons", "systems"):
        yield compared.to_markdown(layout=layout)
        yield compared.to_latex(layout=layout)
        yield compared.to_html(layout=layout)


def drawn(compared, **options):
    """Return the texts of a figure."""
    figure = compared.plot(**options)
    return " ".join(text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text")))


def said(compared):
    return " ".join(texts(compared))


@pytest.mark.further
@settings(max_examples=examples(10), deadline=None)
@given(
    name=st.text(min_size=1, max_size=12).map(str.strip).filter(bool).filter(lambda name: not direction(name).sign),
    baseline=st.sampled_from(["a", "b", None]),
    shifts=st.lists(st.sampled_from([-0.5, 0.0, 0.5]), min_size=1, max_size=2),
)
def test_of_a_column_whose_direction_is_unknown_only_a_difference_is_said(name, baseline, shifts):
    """Whatever its name is: no sentence, legend or table of any kind says which system is better."""
    compared = rk.compare(frames(name, *shifts), measures=[name], baseline=baseline)
    assert not JUDGING.search(said(compared).replace("won/tied/lost", ""))  # a header, above a dash
    assert compared.headline.endswith(" is wanted is not known: lower_is_better= says so.")


def test_a_difference_by_an_unknown_column_is_shown_without_a_side():
    compared = rk.compare(frames("fresh", 0.8), baseline="a")
    assert compared.headline.startswith("b differs from a by +0.7")
    assert "stars: the system differs from a, adjusted p" in compared.to_markdown(layout="systems")
    assert "**" not in compared.to_markdown(layout="systems").replace(r"\*", "")  # no mean is in bold
    pairs = rk.compare(frames("fresh", 0.8, -0.3))
    assert "letters: the system differs from those with these letters" in pairs.to_markdown(layout="systems")
    assert pairs.headline.startswith("c differs from b by -1.")
    assert "3 of 3 pairs were shown to differ" in pairs.headline
    two = rk.compare(frames("fresh", 0.8, -0.3), baseline="a")
    assert "c is shown to differ from a." in two.headline
    assert two.findings == (two.headline,)


@each_row("options", [{"kind": "intervals"}, {"kind": "matrix"}, {"system": "b", "baseline": "a"}])
def test_figures_of_an_unknown_column_have_no_better_side_and_no_colour_of_one(options):
    from rankeval.render.plots import BETTER, WORSE

    compared = rk.compare(frames("fresh", 0.8))
    assert not JUDGING.search(drawn(compared, **options))
    axes = compared.plot(**options).axes[0]
    colors = {str(line.get_color()) for line in axes.lines} | {str(bar.get_facecolor()) for bar in axes.patches}
    assert not colors & {BETTER, WORSE}


def test_the_differences_by_query_of_a_lower_column_go_from_gain_to_loss():
    """Of ARP and latency a negative difference is won, and stands first."""
    compared = rk.compare(frames("latency", -0.8), baseline="a")
    figure = compared.plot(system="b")
    assert "60 won, 0 tied, 0 lost" in figure.axes[0].get_title(loc="left")
    assert "largest gains" in drawn(compared, system="b")


@pytest.mark.parametrize("column", KNOWN)
@pytest.mark.parametrize("shift", [-0.8, 0.8])
def test_of_latency_cost_and_size_their_own_words_are_said(column, shift):
    better, worse = KNOWN[column]
    word = better if shift < 0 else worse
    compared = rk.compare(frames(column, shift), baseline="a")
    assert compared.headline.startswith(f"b is {word} than a: {'-' if shift < 0 else '+'}0.")
    pairs = rk.compare(frames(column, shift, 2 * shift))
    assert f"is {better} than" in pairs.headline
    assert f"the system is {better} than those with these letters" in pairs.to_markdown(layout="systems")
    for one in (compared, pairs, rk.compare(frames(column, shift, shift / 2), baseline="a")):
        assert not re.search(r"\b(beats|better|worse|winner)\b", said(one))
    assert not re.search(r"\b(better|worse)\b", drawn(pairs, kind="matrix") + drawn(pairs, kind="ranks"))


def test_claims_of_latency_have_its_words():
    shown = rk.compare(frames("Latency", -0.8), baseline="a", claim="better").headline
    assert shown.startswith("b is faster than a: ")
    shown = rk.compare(frames("Latency", 0.1, 0.1), baseline="a", claim="not_worse", margin=0.5).headline
    assert "is not slower than a (margin 0.5)" in shown
    assert "is shown not slower than a" in shown


@each_row(
    "ask",
    [
        lambda systems: rk.compare(systems, baseline="a", claim="better"),
        lambda systems: rk.compare(systems, baseline="a", claim="not_worse", margin=0.1),
        lambda systems: rk.compare(systems).ranks,
        lambda systems: rk.compare(systems).best,
        lambda systems: rk.compare(systems).bayes(rope=0.1),
        lambda systems: rk.rank_intervals(systems, n_resamples=999),
        lambda systems: assert_not_worse(systems["b"], systems["a"], margin=0.1),
        lambda systems: assert_no_regression(systems["b"], systems["a"]),
    ],
)
def test_what_has_a_direction_is_refused_of_an_unknown_column(ask):
    with pytest.raises(InvalidInput, match="not known whether more or less of 'fresh' is better") as caught:
        ask(frames("fresh", 0.5))
    assert "lower_is_better=" in caught.value.remedy


def test_equivalence_needs_no_direction():
    """Neither a rise nor a fall by the margin: the same as if more or less were better."""
    columns = ["p_value", "p_adjusted", "ci_low", "ci_high"]
    plain, more, less = (
        rk.compare(frames("fresh", 0.1), claim="equivalent", margin=0.5, lower_is_better=lower)
        for lower in (None, {"fresh": False}, "fresh")
    )
    assert plain.table[columns].equals(more.table[columns])
    np.testing.assert_allclose(plain.table[columns], less.table[columns], rtol=1e-9)
    assert plain.headline.startswith("b is equivalent to a (margin 0.5): +0.")
    assert not re.search(r"\b(beats|better|worse)\b", said(plain))


@each_row("lower", ["fresh", ["fresh"], ("fresh",), {"fresh": True}])
def test_a_declared_column_is_compared_like_a_measure(lower):
    """By less is better the same systems win that win by ARP, with the same words."""
    declared = rk.compare(frames("fresh", -0.8, -0.2), lower_is_better=lower)
    measure = rk.compare(frames("ARP", -0.8, -0.2))
    assert [text.replace("fresh", "ARP") for text in declared.findings] == list(measure.findings)
    assert declared.ranks.drop(columns="measure").equals(measure.ranks.drop(columns="measure"))
    for layout in ("comparisons", "systems"):
        assert declared.to_markdown(layout=layout).replace("fresh", "ARP") == measure.to_markdown(layout=layout)


def test_more_of_a_declared_column_may_be_better():
    declared = rk.compare(frames("fresh", 0.8, 0.2), lower_is_better={"fresh": False})
    assert [text.replace("fresh", "AP") for text in declared.findings] == list(
        rk.compare(frames("AP", 0.8, 0.2)).findings
    )
    budget = rk.compare(frames("latency", 0.8), baseline="a", lower_is_better={"latency": False})
    assert budget.headline.startswith("b beats a by +0.")


@each_row("travel", [lambda one: pickle.loads(pickle.dumps(one)), lambda one: rk.Comparison.from_json(one.to_json())])
def test_the_direction_travels_with_the_comparison(travel):
    compared = rk.compare(frames("fresh", -0.8, -0.2), baseline="a", lower_is_better="fresh")
    again = travel(compared)
    assert again.findings == compared.findings
    assert again.settings.lower_is_better == {"fresh": True}
    assert again.to_markdown(layout="systems") == compared.to_markdown(layout="systems")


@each_row(
    ("given", "kind"),
    [
        ("other", UnknownName),
        ({"AP": True}, InvalidInput),
        ({"ARP": False}, InvalidInput),
        ({"other": False}, UnknownName),
        ([3], UnknownName),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(given, kind):
    systems = {name: frame.assign(ARP=frame["AP"]) for name, frame in frames("AP", 0.5).items()}
    with pytest.raises(kind):
        rk.compare(systems, lower_is_better=given)


def test_assertions_take_declared_columns():
    systems = frames("fresh", 0.5)
    assert assert_not_worse(systems["a"], systems["b"], margin=0.3, lower_is_better="fresh").passed
    with pytest.raises(AssertionError, match=r"by fresh \(less is better\) the candidate is worse on"):
        assert_no_regression(systems["b"], systems["a"], lower_is_better="fresh")
    slower = frames("Latency", 0.5)
    with pytest.raises(AssertionError, match="by Latency the candidate is slower on") as caught:
        assert_no_regression(slower["b"], slower["a"])
    assert "better" not in str(caught.value)


@each_row("value", [np.False_, 0])
def test_a_number_that_is_false_is_refused_as_no_bool(value):
    """Such a value comes out of NumPy or pandas; the column is no measure, and the message does not say so."""
    with pytest.raises(InvalidInput) as refused:
        rk.compare(frames("fresh", 0.5), baseline="a", lower_is_better={"fresh": value})
    assert (refused.value.argument, refused.value.expected) == ("lower_is_better['fresh']", "True or False")


@each_row("value", ["no", "false", None])
def test_a_direction_that_is_no_bool_is_refused_by_its_value(value):
    """The word "no" is not read as yes, and an unknown column is not called a measure."""
    with pytest.raises(InvalidInput, match="lower_is_better") as refused:
        rk.compare(frames("fresh", 0.5), lower_is_better={"fresh": value})
    assert repr(value) in str(refused.value)
    assert "is a measure" not in str(refused.value)


@each_row("name", ["latency < 100 ms", "Latency<=1s", "1 - cost", "1-latency", "cost^-1", "latency*-1"])
def test_a_bound_or_an_inverse_has_no_known_direction(name):
    """The share of queries below 100 ms, or one minus the cost: more is better, and "slower" would be false."""
    assert direction(name).sign == 0


def test_the_share_answered_in_time_has_no_known_direction():
    """Of "in_time" more is wanted, though "time" stands in it."""
    assert direction("in_time").sign == 0


def test_a_difference_that_is_the_same_on_every_query_has_no_interval_and_no_p():
    """It has no variance: an infinite interval and a p of so many queries say nothing of a price."""
    ids = [f"q{i}" for i in range(20)]
    old, new = (pd.DataFrame({"cost": price}, index=ids) for price in (0.001, 0.002))
    headline = rk.compare({"old": old, "new": new}, baseline="old").headline
    assert headline == (
        "new is more expensive than old: +0.0010 cost [the same difference on every query], on 20 queries."
    )
    few = rk.compare({"old": old[:3], "new": new[:3]}, baseline="old").headline
    assert "[the same difference on every query], on 3 queries, p = 0.2500" in few


@each_row(
    ("column", "scale", "mean", "difference"),
    [
        ("cost", 1.2e-4, "0.0001800", "+0.0000600"),
        ("index_bytes", 123_456_789, "185185184", "+61728394"),
        ("AP", 0.2, "0.3000", "+0.1000"),
        ("latency_ms", 20.0, "30.0000", "+10.0000"),
    ],
)
def test_numbers_are_printed_with_digits_of_their_size(column, scale, mean, difference):
    ids = [f"q{i}" for i in range(20)]
    old = pd.DataFrame({column: scale * np.tile([0.9, 1.1], 10)}, index=ids)
    compared = rk.compare({"old": old, "new": 1.5 * old}, baseline="old")
    row = printed(compared).to_text().splitlines()[4].split()
    assert row[:3] == ["new", mean, difference]
    assert f"{difference} {column}" in compared.headline


@each_row(
    ("column", "note"),
    [
        ("latency_ms", "latency_ms: less is wanted; load of the machine is in it, so time systems in turn: rk.profile"),
        ("cost", "cost: less is wanted"),
        ("fresh", "fresh: whether more or less is wanted is not known (lower_is_better= says so)"),
        ("AP", None),
        ("ARP", None),
    ],
)
def test_what_is_printed_says_what_is_wanted_of_a_column(column, note):
    compared = rk.compare(frames(column, 0.1))
    said = [line for line in printed(compared).to_text().splitlines() if line.startswith(f"* {column}: ")]
    assert bool(said) == (note is not None)
    assert all(line.startswith(f"* {note}") for line in said)


def test_a_profile_in_place_of_its_frame_is_refused_with_the_remedy():
    found = rk.profile({"a": str, "b": str}, {"q1": "a", "q2": "b"}, repeats=1)
    with pytest.raises(InvalidInput, match=r"found Profile.*take its \.per_query"):
        rk.compare(found)
