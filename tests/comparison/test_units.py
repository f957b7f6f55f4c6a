"""Comparisons whose rows are users, sessions or impressions."""

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval._checks import plural
from rankeval.comparison.saved import JSON_FORMAT
from rankeval.errors import InvalidInput, QueryIdError, RankevalWarning

IDS = [f"u{place:02d}" for place in range(12)]
CODE = re.compile(r"collection.{1,3}weights=.{1,8}queries")
"""The value of an argument, which keeps its name, as text, HTML, Markdown or LaTeX has it."""


def frame(seed, gain=0.0, ids=IDS):
    rng = np.random.default_rng(7)
    score = rng.random((len(ids), 2)) + gain + np.random.default_rng(seed).normal(0, 0.1, (len(ids), 2))
    return pd.DataFrame(score, index=pd.Index(ids, name="user"), columns=["AP", "seconds of use"])


OLD, NEW, BOLD = frame(1), frame(2, 0.3), frame(3, 0.1)
WEB = {"old": {"web": OLD, "app": OLD.iloc[:3]}, "new": {"web": NEW, "app": NEW.iloc[:3]}}
COUNTRY = {name: "abc"[place % 3 if place < 10 else 2] for place, name in enumerate(IDS)}
CASES = {
    "baseline": ({"old": OLD, "new": NEW, "bold": BOLD}, {"baseline": "old"}),
    "pairs": ({"old": OLD, "new": NEW, "bold": BOLD}, {"correction": "max_t", "n_resamples": 19}),
    "liberal": ({"old": OLD, "new": NEW}, {"test": "bootstrap_bca", "n_resamples": 99}),
    "constant": ({"old": OLD, "same": OLD, "more": OLD + 0.25}, {"baseline": "old"}),
    "harmless": ({"old": OLD, "new": NEW}, {"claim": "not_worse", "margin": 0.2, "baseline": "old"}),
    "nothing": ({"old": OLD, "twin": frame(9)}, {"claim": "equivalent", "margin": 0.01, "baseline": "old"}),
    "few": ({"old": OLD.iloc[:4], "new": NEW.iloc[:4]}, {"test": "randomization"}),
    "lacking": ({"old": OLD, "new": NEW.iloc[2:]}, {"unpaired": "skip"}),
    "weighted": ({"old": OLD.assign(weight=1.0), "new": NEW.assign(weight=1.0)}, {}),
    "collections": (WEB, {"baseline": "old"}),
    "by size": (WEB, {"collection_weights": "queries"}),
    "only": ({name: {"web": parts["web"]} for name, parts in WEB.items()}, {}),
    "slices": ({"old": OLD, "new": NEW}, {"by": COUNTRY}),
}


def compared(case, unit):
    systems, options = CASES[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RankevalWarning)
        found = rk.compare(systems, **{"lower_is_better": {"seconds of use": False}, **options}, unit=unit)
    return found, [str(one.message) for one in caught]


@cache
def sentences(case, unit):
    """Return the texts that no width of a page breaks into lines."""
    found, warned = compared(case, unit)
    return [CODE.sub("@", text) for text in (found.headline, found.caption, *found.notes, *warned)]


def pages(found):
    layouts = [] if found.settings.baseline is None else [found.to_markdown(layout="systems", gain=True)]
    return [str(found), found._repr_html_(), found.to_markdown(), found.to_latex(), *found.findings, *layouts]


def drawn(found):
    kinds = ["forest"] if found.settings.grouped else ["intervals"]
    kinds += ["matrix"] if found.settings.baseline is None else []
    kinds += ["ranks"] if found.settings.correction == "max_t" else []
    figures = [found.plot(kind) for kind in kinds]
    if not found.settings.collection_weights:
        figures.append(found.plot(system=found.table["system"].iloc[-1], baseline="old"))
    return [text.get_text() for figure in figures for text in figure.findobj(lambda one: hasattr(one, "get_text"))]


words = st.lists(st.text("abcdefghijklmnoprtvwxyzäß", min_size=1, max_size=5), min_size=1, max_size=3)
nouns = words.flatmap(lambda parts: st.sampled_from(" -").map(lambda joint: joint.join(parts)))


@settings(max_examples=examples(8), deadline=None)
@given(case=st.sampled_from([*CASES]), noun=nouns)
def test_sentences_differ_in_the_noun_alone(case, noun):
    """Headline, caption, notes and warnings by any noun are those by query with the noun in its place."""
    check_noun(case, noun)


@each_row("case", CASES)
def test_sentences_of_every_kind_speak_of_the_unit(case):
    """Baseline and pairs, claims, few rows, constants, weights, collections, slices."""
    check_noun(case, "page view")


def check_noun(case, noun):
    expected = [text.replace("queries", plural(noun)).replace("query", noun) for text in sentences(case, "query")]
    assert sentences(case, noun) == expected
    assert any(plural(noun) in text for text in expected)


@pytest.mark.further
@each_row("case", CASES)
def test_no_page_and_no_figure_of_a_comparison_by_users_names_queries(case):
    """Tables, HTML, LaTeX and all texts of the figures."""
    found, _ = compared(case, "user")
    texts = [CODE.sub("", text) for text in (*pages(found), *drawn(found))]
    assert not [text for text in texts if "quer" in text.lower()]
    assert any("users" in text for text in texts)


def test_the_unit_is_kept_in_the_settings_and_in_json():
    """A comparison that is read from JSON speaks of users too."""
    found, _ = compared("baseline", "user")
    again = rk.Comparison.from_json(found.to_json())
    assert again.settings.unit == "user"
    assert (again.headline, again.caption) == (found.headline, found.caption)
    assert f'"format": "{JSON_FORMAT}"' in found.to_json()
    assert rk.Comparison.from_json(compared("baseline", "query")[0].to_json()).settings.unit == "query"


def test_best_effects_and_ranks_of_users_are_those_of_queries():
    """The noun changes no number."""
    users, queries = (compared("pairs", unit)[0] for unit in ("user", "query"))
    pd.testing.assert_frame_equal(users.table, queries.table)
    pd.testing.assert_frame_equal(users.ranks, queries.ranks)
    pd.testing.assert_frame_equal(users.effects, queries.effects)
    assert users.best == queries.best


@each_row("name", ["user", "user_id", None])
def test_ids_are_the_index_or_a_column_of_the_units_name(name):
    """A column of ids is no measure, and the rows are paired by it."""
    given = [each if name is None else each.rename_axis(name).reset_index() for each in (OLD, NEW.iloc[::-1])]
    found = rk.compare(dict(zip(("old", "new"), given, strict=True)), unit="user")
    pd.testing.assert_frame_equal(found.table, rk.compare({"old": OLD, "new": NEW}, unit="user").table)


@each_row("unit", ["users", "queries", "", " user", "user\n", "user!", "u2", "a  b", "u" * 31, None])
def test_a_unit_is_a_short_noun_in_the_singular(unit):
    """Letters, blanks and hyphens; a plural is refused, since its plural would be printed."""
    with pytest.raises(InvalidInput) as caught:
        rk.compare({"old": OLD, "new": NEW}, unit=unit)
    assert caught.value.argument == "unit"


@each_row(
    ("noun", "many"),
    [
        ("query", "queries"),
        ("day", "days"),
        ("session", "sessions"),
        ("search", "searches"),
        ("page view", "page views"),
    ],
)
def test_plurals(noun, many):
    """Of nouns that end in y after a consonant, in y after a vowel, and in a hiss."""
    assert plural(noun) == many


@each_row(
    ("systems", "options", "error", "says"),
    [
        ({"old": OLD.iloc[:1], "new": NEW.iloc[:1]}, {}, InvalidInput, "at least 2 users, found 1 user"),
        ({"old": OLD, "new": NEW.iloc[2:]}, {}, QueryIdError, "lacks 2 of 12 users, such as 'u00', 'u01'"),
        ({"old": OLD, "new": NEW.rename(index=str.upper)}, {}, QueryIdError, "no user in common"),
        ({"old": OLD, "new": NEW.iloc[[0, 0, 1]]}, {}, QueryIdError, "the user 'u00' more than once"),
        ({"old": OLD, "new": NEW.iloc[[0, 0]].set_axis([7, 7])}, {}, QueryIdError, "the user 7 more than once"),
        ({"old": OLD, "new": NEW.replace(NEW.iloc[3, 0], np.nan)}, {}, InvalidInput, "on user 'u03'"),
        ({"old": OLD, "new": 3}, {}, InvalidInput, "per-user scores"),
        ({"old": OLD, "new": NEW}, {"by": ["a"] * 12}, InvalidInput, "values without user ids"),
        ({"old": OLD, "new": NEW}, {"by": {name: name for name in IDS}}, InvalidInput, "no slice has 5 users or more"),
        ({"old": {"web": OLD.iloc[:1]}, "new": {"web": NEW.iloc[:1]}}, {}, InvalidInput, "has 1 user"),
    ],
)
def test_errors_speak_of_the_unit(systems, options, error, says):
    """Refusals and their remedies speak of users."""
    with pytest.raises(error, match=re.escape(says)) as caught:
        rk.compare(systems, **options, unit="user")
    assert "quer" not in str(caught.value).lower()


def test_the_note_of_tied_scores_speaks_of_the_unit():
    """Constant scores of an evaluation whose groups are users are told by users."""
    groups = np.repeat(IDS, 3)
    tied = rk.evaluate(np.arange(36) % 3, np.ones(36), qid=groups, measures="AP(rel=2)")
    other = rk.evaluate(np.arange(36) % 3, np.arange(36) % 2, qid=groups, measures="AP(rel=2)")
    notes = rk.compare({"tied": tied, "other": other}, unit="user").notes
    assert "tied: constant scores: all rows are tied in 12 of 12 users" in notes
