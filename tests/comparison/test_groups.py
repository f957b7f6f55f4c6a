"""Comparisons over groups of queries: conversations, paraphrases, questions on one document."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.comparison.groups import Groups, intraclass
from rankeval.errors import InvalidInput, QueryIdError, RankevalWarning
from rankeval.significance.declarations import CLAIMS, CORRECTIONS, TESTS

SIZES = [1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 9, 12]
UNEVEN = np.repeat(np.arange(len(SIZES)), SIZES)
EVEN = np.repeat(np.arange(12), 4)
BY_QUERY = ["wins", "ties", "losses"]

pytestmark = pytest.mark.filterwarnings("ignore::rankeval.errors.NotedWarning")


def ids(of):
    return pd.Index([f"q{place:03d}" for place in range(len(of))], name="qid")


def series(of, name="conversation"):
    return pd.Series([f"c{number}" for number in of], index=ids(of), name=name)


def frames(of=UNEVEN, names="abc", seed=0, labels=("AP", "RR"), gain=0.05):
    """Return systems whose differences go together within groups; the last is better, and some scores tie."""
    rng = np.random.default_rng(seed)
    topic = rng.uniform(0.2, 0.6, (len(of), 1))
    found = {}
    for place, name in enumerate(names):
        luck = rng.normal(0, 0.05, (of.max() + 1, len(labels)))[of]
        scores = topic + luck + rng.normal(0, 0.05, (len(of), len(labels))) + gain * (place == len(names) - 1)
        scores[::7] = topic[::7]
        found[name] = pd.DataFrame(scores, index=ids(of), columns=list(labels))
    return found


def means(systems, of):
    return {name: frame.groupby(of).mean().rename_axis("conversation") for name, frame in systems.items()}


def quietly(systems, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankevalWarning)
        return rk.compare(systems, **options)


def notes(of, **options):
    return " | ".join(quietly(frames(of), groups=series(of), **options).notes)


OPTIONS = [
    *({"test": test, "baseline": "a", "n_resamples": 199} for test in TESTS),
    *({"correction": one, "n_resamples": 199} for one in CORRECTIONS),
    *({"claim": claim, "baseline": "a", "margin": 0.1 * (claim != "difference")} for claim in CLAIMS),
    {"claim": "not_worse", "baseline": "a", "margin": 0.1, "correction": "max_t", "n_resamples": 199},
    {"claim": "better", "baseline": "b", "test": "randomization", "n_resamples": 199, "family": "measure"},
]


@each_row("options", OPTIONS)
def test_tests_corrections_and_intervals_are_those_of_the_means_of_groups(options):
    """To the last bit, by every test, correction and claim; only wins, ties and losses are those of queries."""
    systems = frames()
    found = quietly(systems, groups=series(UNEVEN), **options)
    expected = quietly(means(systems, UNEVEN), unit="conversation", **options)
    pd.testing.assert_frame_equal(found.table.drop(columns=BY_QUERY), expected.table.drop(columns=BY_QUERY))
    by_query = quietly(systems, **options).table
    pd.testing.assert_frame_equal(found.table[BY_QUERY], by_query[BY_QUERY])
    assert (found.table[BY_QUERY].sum(axis=1) == len(UNEVEN)).all()


def test_what_is_asked_for_later_is_over_groups_too():
    """The best system, effects, posteriors, ranks, and the spread behind each mean."""
    systems = frames()
    found, expected = quietly(systems, groups=series(UNEVEN)), quietly(means(systems, UNEVEN), unit="conversation")
    assert found.best == expected.best
    pd.testing.assert_frame_equal(found.effects, expected.effects)
    pd.testing.assert_frame_equal(found.bayes(rope=0.01), expected.bayes(rope=0.01))
    pd.testing.assert_frame_equal(found.ranks, expected.ranks)
    one, other = (each.to_markdown(layout="systems", spread="se").splitlines()[2:7] for each in (found, expected))
    assert one == other
    drawn = found.plot(system="c", baseline="a")  # query by query
    assert any("queries" in text.get_text() for text in drawn.findobj(lambda one: hasattr(one, "get_text")))
    ranked = rk.rank_intervals(systems, measure="AP", groups=series(UNEVEN))
    pd.testing.assert_frame_equal(ranked, rk.rank_intervals(means(systems, UNEVEN), measure="AP"))


def test_the_two_best_systems_are_compared_over_groups():
    """The row behind "the first two by their means", whose p is that of the groups."""
    systems = frames(names="abcd", gain=0.3)
    found = quietly(systems, groups=series(UNEVEN), baseline="a")
    plain = quietly(means(systems, UNEVEN), baseline="a", unit="conversation").headline
    assert "first two by their means" in plain
    assert found.headline.replace(" of 52 queries", "") == plain


def test_the_estimate_is_the_mean_of_what_is_tested():
    """Means are over groups, lie in their intervals, and are those over queries if groups are of one size."""
    for of, is_even in ((EVEN, True), (UNEVEN, False)):
        systems = frames(of)
        row = quietly(systems, groups=series(of), baseline="a", measures="AP").table.iloc[1]
        over_groups = systems["c"]["AP"].groupby(of).mean().mean()
        assert row["mean_system"] == pytest.approx(over_groups, rel=1e-12)
        assert row["difference"] == pytest.approx(row["mean_system"] - row["mean_baseline"], rel=1e-9)
        assert row["ci_low"] < row["difference"] < row["ci_high"]
        assert (row["mean_system"] == pytest.approx(systems["c"]["AP"].mean(), rel=1e-12)) == is_even


def test_a_flip_turns_a_whole_group():
    """With five groups the randomisation test counts the 32 patterns of their signs."""
    of = np.repeat(np.arange(5), [1, 2, 3, 4, 5])
    systems = frames(of, "ab", labels=("AP",))
    d = (systems["b"] - systems["a"])["AP"].groupby(of).mean().to_numpy()
    flips = np.array(list(itertools.product((1, -1), repeat=5)))
    p = (np.abs(flips @ d) >= abs(d.sum()) - 1e-12).mean()
    found = quietly(systems, groups=series(of), test="randomization")
    assert found.table["p_value"].item() == pytest.approx(p)


@settings(max_examples=examples(8), deadline=None)
@given(data=st.data())
def test_names_and_orders_change_nothing(data):
    """Groups under other names, and queries in another order, give the same table."""
    options = {"baseline": "a", "correction": "max_t", "test": "bootstrap", "n_resamples": 99}
    systems, groups = frames(), series(UNEVEN)
    expected = quietly(systems, groups=groups, **options)
    order = data.draw(st.permutations(range(len(UNEVEN))))
    names = data.draw(st.permutations([f"g{number}" for number in range(len(SIZES))]))
    renamed = groups.map(dict(zip(groups.unique(), names, strict=True)))
    moved = {name: frame.iloc[order] for name, frame in systems.items()}
    pd.testing.assert_frame_equal(quietly(systems, groups=renamed, **options).table, expected.table)
    pd.testing.assert_frame_equal(quietly(moved, groups=groups.iloc[order], **options).table, expected.table)


@each_row(
    "groups",
    [
        series(UNEVEN).to_dict(),
        series(UNEVEN).sample(frac=1, random_state=0),
        series(UNEVEN).to_frame().reset_index(),
        series(UNEVEN).to_frame(),
        pd.concat([series(UNEVEN), pd.Series({"another": "c0"}, name="conversation")]),
        series(UNEVEN).astype("category"),
        pd.DataFrame({"user": UNEVEN // 2, "turn": UNEVEN % 2}, index=ids(UNEVEN)),
    ],
)
def test_forms_of_the_groups(groups):
    """Those of slices: by query id, in any order and form, with more queries too, and of several columns."""
    found = quietly(frames(), groups=groups)
    pd.testing.assert_frame_equal(found.table, quietly(frames(), groups=series(UNEVEN)).table)


def evaluations():
    rng = np.random.default_rng(1)
    qid, labels = np.repeat(np.arange(40), 8), rng.integers(0, 2, 320)
    return qid, {
        name: rk.evaluate(labels, rng.random(320) + gain * labels, qid=qid, measures="AP")
        for name, gain in (("a", 0), ("b", 0.3))
    }


def test_arrays_go_by_the_order_of_evaluations():
    """A value for each query, or for each evaluated row."""
    qid, systems = evaluations()
    expected = quietly(systems, groups=pd.Series(np.arange(40) // 4, name="g")).table
    pd.testing.assert_frame_equal(quietly(systems, groups=np.arange(40) // 4).table, expected)
    pd.testing.assert_frame_equal(quietly(systems, groups=qid // 4).table, expected)


def test_groups_of_one_query_each_are_refused():
    """The habit of scikit-learn, whose groups are query ids: by query, by row, and of collections."""
    qid, systems = evaluations()
    both = {name: {"x": one, "y": one.iloc[:9]} for name, one in frames().items()}
    own = pd.Series(ids(UNEVEN), index=ids(UNEVEN))
    for given_to, groups in ((systems, qid), (systems, np.arange(40)), (frames(), own), (both, own)):
        with pytest.raises(InvalidInput, match="has a group of its own") as caught:
            rk.compare(given_to, groups=groups)
        assert caught.value.argument == "groups"
        assert "pass them as qid= to rk.evaluate or rk.cross_validate" in caught.value.remedy


@each_row(
    ("groups", "error", "says"),
    [
        (series(UNEVEN).iloc[3:], QueryIdError, "3 of 52 queries have no group: 'q000', 'q001', 'q002'"),
        (series(UNEVEN).replace("c11", None), QueryIdError, "12 of 52 queries have no group"),
        (
            pd.DataFrame({"user": 1, "turn": UNEVEN}, index=ids(UNEVEN)).replace({"turn": {0: np.nan}}),
            QueryIdError,
            "1 of 52 queries have no group: 'q000'",
        ),
        (pd.Series({"x": 1, "y": 1}), QueryIdError, "no id in common"),
        (series(UNEVEN * 0), InvalidInput, "all 52 queries are of one group"),
        ("conversation", InvalidInput, "expected a Series or mapping by query id"),
        (UNEVEN.tolist(), InvalidInput, "values without query ids"),
        (pd.concat([series(UNEVEN), series(UNEVEN[:1] + 1)]), QueryIdError, "has several values"),
    ],
)
def test_groups_that_do_not_fit_are_refused(groups, error, says):
    with pytest.raises(error, match=says) as caught:
        rk.compare(frames(), groups=groups)
    assert caught.value.argument == "groups"


@each_row(
    ("name", "noun"),
    [
        ("conversation", "conversation"),
        ("conversation_id", "conversation"),
        ("search_session", "search session"),
        ("query", "group"),
        ("slice", "group"),
        ("conversations", "group"),
        ("group", "group"),
        ("doc2", "group"),
        (None, "group"),
        (7, "group"),
    ],
)
def test_a_name_that_is_a_noun_stands_in_the_sentences(name, noun):
    found = quietly(frames(), groups=series(UNEVEN, name))
    assert f"over 12 {noun}s of 52 queries" in found.caption
    assert f"on 12 {noun}s of 52 queries" in found.headline


def test_the_unit_of_a_row_and_that_of_a_group():
    """Users in households: ids are those of users, and tests are over households."""
    users = {name: frame.rename_axis("user").reset_index() for name, frame in frames().items()}
    found = quietly(users, groups=series(UNEVEN, "household"), unit="user")
    assert "12 households of 52 users" in found.caption
    assert "wins, ties and losses count users" in " ".join(found.notes)
    assert "quer" not in " ".join([found.caption, found.headline, *found.notes])


def test_the_note_on_sizes():
    """Of one size, or how far the means over queries are from those over groups."""
    even, uneven = notes(EVEN), notes(UNEVEN)
    assert "over 12 conversations of 4 queries each; wins, ties and losses count queries" in even
    assert "counts once" not in even
    systems = frames()
    apart = max(abs(one["AP"].mean() - one["AP"].groupby(UNEVEN).mean().mean()) for one in systems.values())
    assert "over 12 conversations of 1 to 12 queries, and each conversation counts once" in uneven
    assert f"those over queries differ from them by up to {apart:.2g} AP; wins" in uneven
    assert "queries each" not in uneven


def test_the_note_on_the_intraclass_correlation():
    """One pair or several, and none where nothing varies."""
    of = np.repeat(np.arange(200), 4)
    rng = np.random.default_rng(3)
    old = pd.DataFrame({"AP": rng.random(800)}, index=ids(of))
    new = old.add(np.sqrt(0.4) * rng.normal(0, 0.1, 200)[of] + np.sqrt(0.6) * rng.normal(0, 0.1, 800), axis=0)
    said = " ".join(quietly({"old": old, "new": new}, groups=series(of)).notes)
    share = float(intraclass((new - old).to_numpy(), of)[0])
    assert share == pytest.approx(0.4, abs=0.08)
    assert f"intraclass correlation of differences in AP within conversations is {share:.2f}: 800 queries" in said
    assert f"are worth {800 / (1 + 3 * share):.0f} independent ones" in said
    assert "is up to" in notes(UNEVEN)
    assert ", where 52 queries are worth" in notes(UNEVEN)
    assert "intraclass" not in " ".join(quietly({"old": old, "new": old + 0.25}, groups=series(of)).notes)


def test_the_note_on_few_groups():
    """Below the fewest queries with which rates were measured."""
    assert "no error rates were measured with fewer than 10 conversations (here 9)" in notes(np.repeat(np.arange(9), 6))
    assert "no error rates" not in notes(np.repeat(np.arange(10), 6))


def test_slices_are_of_queries_and_tested_over_groups():
    """The rows of a slice are those of its queries alone; a slice that cuts groups has no interaction."""
    systems, groups = frames(EVEN), series(EVEN)
    for length, is_cut in (
        (pd.Series(np.where(EVEN < 6, "short", "long"), index=ids(EVEN), name="length"), False),
        (pd.Series(np.resize(["short", "long", "long"], len(EVEN)), index=ids(EVEN), name="length"), True),
    ):
        found = quietly(systems, baseline="a", groups=groups, by=length)
        of_family = ["p_adjusted", "ci_low_adjusted", "ci_high_adjusted", "detectable_difference"]
        for part in ("short", "long"):
            own = {name: frame[length == part] for name, frame in systems.items()}
            expected = quietly(own, baseline="a", groups=groups).table.drop(columns=of_family)
            rows = found.table[found.table["length"] == part].drop(columns=["length", *of_family])
            pd.testing.assert_frame_equal(rows.reset_index(drop=True), expected)
        said = " | ".join(found.notes)
        cut = "depends on the length is not tested: 12 of 12 conversations have queries in several slices"
        assert (cut in said) == is_cut
        assert (found.interaction is None) == is_cut
        assert ("is shown for" in said) != is_cut
        assert "by length: paired t test over" in found.caption
        assert "This is over all conversations; the table has the slices by length." in found.headline


def test_a_slice_with_few_groups_is_listed():
    kind = pd.Series(np.where(EVEN < 4, "few", "many"), index=ids(EVEN), name="kind")
    found = quietly(frames(EVEN), groups=series(EVEN), by=kind)
    assert "not tested, with fewer than 5 conversations: few (4 conversations)" in " ".join(found.notes)
    rows = found.table[found.table["kind"] == "few"]
    assert rows["p_value"].isna().all()
    assert (rows[BY_QUERY].sum(axis=1) == 16).all()


def test_groups_of_several_collections_are_apart():
    """A group of one collection is another than that of the same name in the other one."""
    parts = {"x": EVEN, "y": np.repeat(np.arange(8), 3)}
    systems = {name: {part: frames(of, seed=1 + len(of))[name] for part, of in parts.items()} for name in "ab"}
    found = quietly(systems, baseline="a", groups=series(EVEN))
    over = {part: pd.Series(EVEN[: len(of)], index=ids(of)) for part, of in parts.items()}
    of_means = {
        name: {part: frame.groupby(over[part]).mean() for part, frame in each.items()} for name, each in systems.items()
    }
    expected = quietly(of_means, baseline="a", unit="conversation")
    pd.testing.assert_frame_equal(found.table.drop(columns=BY_QUERY), expected.table.drop(columns=BY_QUERY))
    pd.testing.assert_frame_equal(found.interaction, expected.interaction)
    assert "over 18 conversations of 72 queries" in found.caption
    small = {name: {"x": each["x"], "y": each["y"].iloc[:3]} for name, each in systems.items()}
    with pytest.raises(InvalidInput, match="all queries of collection 'y' are of one group"):
        rk.compare(small, baseline="a", groups=series(EVEN))


def test_a_saved_comparison_keeps_what_was_tested():
    """Caption, headline and best; scores are not saved, and those loaded again have no groups."""
    found = quietly(frames(), groups=series(UNEVEN), baseline="a", by=series(UNEVEN % 2, "kind"))
    again = rk.Comparison.from_json(found.to_json())
    assert (again.caption, again.headline, again.notes) == (found.caption, found.headline, found.notes)
    assert (again.settings.member, again.settings.n_members, again.settings.unit) == ("query", 52, "conversation")
    assert again.best == found.best
    assert again.to_json() == found.to_json()
    with pytest.raises(InvalidInput, match="the scores of every conversation are needed"):
        _ = replace(again, evaluations=frames()).effects
    plain = rk.Comparison.from_json(quietly(frames()).to_json()).settings
    assert (plain.member, plain.n_members, plain.unit) == ("", 0, "query")


def test_every_page_says_how_many_groups():
    """Text, HTML, Markdown and LaTeX; none does without groups."""
    for options, says in (({"groups": series(UNEVEN)}, True), ({}, False)):
        found = quietly(frames(), baseline="a", **options)
        pages = (str(found), found._repr_html_(), found.to_markdown(), found.to_latex(), found.to_html())
        for page in (*pages, found.headline, found.caption):
            assert ("12 conversations of 52 queries" in page) == says
            assert ("conversation" in page) == says
        assert any("intraclass" in note for note in found.notes) == says


def test_bounds_of_unjudged_documents_are_over_groups():
    """The difference there is that of the table."""
    rng = np.random.default_rng(0)
    qrels = {f"q{q:02d}": {f"d{i}": int(rng.random() < 0.5) for i in range(6)} for q in range(30)}
    runs = [{q: {f"d{i}": float(rng.random()) for i in range(k, 9)} for q in qrels} for k in (0, 3)]
    systems = {f"s{k}": rk.evaluate(qrels, run, measures="P@5") for k, run in enumerate(runs)}
    groups = dict(zip(qrels, np.repeat(range(10), [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]).tolist(), strict=True))
    found = quietly(systems, groups=groups, unjudged="skip")
    assert found.bounds["difference"].item() == pytest.approx(found.table["difference"].item())
    assert found.bounds["lower"].item() <= found.table["difference"].item() <= found.bounds["upper"].item()
    assert found.condensed["n_queries"].item() == 10


def test_pooled_folds_are_noted_with_groups_too():
    """The note and the headline speak of the queries that are pooled."""
    data = rk.datasets.make_ranking(40, rng=0)
    from sklearn.linear_model import LinearRegression, Ridge

    models = {"one": LinearRegression(), "two": Ridge(1e4)}
    both = rk.cross_validate(models, data.X, data.y, qid=data.qid, measures="nDCG@5", cv=4)
    found = both.compare(question="models", groups={query: (query - 1) // 4 for query in np.unique(data.qid).tolist()})
    assert "(approximate: queries of several folds)" in found.headline
    assert "10 groups of 40 queries" in found.headline


def test_the_intraclass_correlation():
    """Of alike and of independent queries, of unequal groups, and by hand."""
    of, rng = np.repeat(np.arange(400), np.resize([1, 2, 3, 6], 400)), np.random.default_rng(0)
    u, e = rng.normal(size=(400, 1))[of], rng.normal(size=(len(of), 1))
    d = np.hstack([u, np.sqrt(0.3) * u + np.sqrt(0.7) * e, e, 0 * e])
    found = intraclass(d, of)
    assert found[0] == pytest.approx(1)
    assert found[1] == pytest.approx(0.3, abs=0.06)
    assert found[2] == pytest.approx(0, abs=0.06)
    assert np.isnan(found[3])
    assert intraclass(np.array([[1.0], [0.0], [1.0], [0.0]]), np.array([0, 0, 1, 1])).tolist() == [0.0]


def test_means_of_groups_stand_in_the_order_of_their_first_queries():
    groups = Groups("group", "query", np.array([5, 2, 5, 9]))
    assert groups.means(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [2.0, 2.0, 4.0]
    assert groups.sizes.tolist() == [2, 1, 1]
    assert groups.numbers.tolist() == [0, 1, 0, 2]
