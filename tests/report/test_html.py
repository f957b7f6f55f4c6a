"""A report is one file that fetches nothing, runs its own script alone, and says what the numbers are worth."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from dataclasses import fields, replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest
import yaml

import rankeval as rk
from rankeval._checks import count
from rankeval._visible import LimitNote
from rankeval.collection.convention import CHOICES, RULE_WORDS, VALUE_WORDS
from rankeval.comparison import compare
from rankeval.comparison.design import without_adjusted
from rankeval.comparison.headline import key_numbers
from rankeval.comparison.record import with_notes
from rankeval.evaluation import evaluate
from rankeval.report import report_for_evaluation, report_for_experiment, report_for_judging
from rankeval.report.summaries import (
    Candidate,
    ExperimentFacts,
    GuardFacts,
    MovedRows,
    coverage_sentences,
    experiment_text,
    standing_words,
)
from rankeval.tracking import LoggedData

EVIL = "<script>alert(1)</script>"
WEIGHT = {"weak": 0.2, "strong": 3.0}


class _Tags(HTMLParser):
    """Collects what a page holds."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.policy = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href", "action", "data"}]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"]

    def handle_data(self, data):
        if self.cdata_elem == "script":
            kind, text = self.scripts.pop()
            self.scripts.append((kind, text + data))


def ranked(name: str, *, prefix: str = "q", weight: float = 1.0):
    data = rk.datasets.make_ranking(40, 10, rng=3)
    qid = [f"{prefix}{query}" for query in data.qid]
    score = weight * data.X[:, 0] + data.X[:, -1]
    return evaluate(data.y, score, qid=qid, measures=["nDCG@10", "AP", "NumRel"], name=name)


def facts(baseline: str = "weak", other: str = "strong", **changes) -> ExperimentFacts:
    import pandas as pd

    evaluations = {
        name: ranked(name, weight=weight) for name, weight in zip((baseline, other), WEIGHT.values(), strict=True)
    }
    search = pd.DataFrame({"alpha": [1.0], "mean nDCG@10": [0.5]})
    candidates = tuple(
        Candidate(name, "some.Estimator", {"alpha": 1.0}, search, each, each, 1.5, reused=False, digest="d")
        for name, each in evaluations.items()
    )
    comparison = compare(evaluations, baseline=baseline, measures=["nDCG@10"])
    secondary = compare(evaluations, baseline=baseline, measures=["AP"], correction="none")
    settings = {
        "name": "an experiment",
        "primary": "nDCG@10",
        "baseline": baseline,
        "candidates": candidates,
        "comparison": comparison,
        "secondary": secondary,
        "guard": GuardFacts(active=True, ledger="/some/ledger.db", test="held-out", looks=1, standing="confirmatory"),
        "data": (LoggedData("rows", "a" * 64, "dev", 10, 2), LoggedData("rows", "b" * 64, "test", 5, 1, "file")),
        "config": yaml.safe_dump({"name": "an experiment"}),
        "versions": {"python": "3.x"},
    }
    return ExperimentFacts(**{**settings, **changes})


def moved() -> MovedRows:
    import pandas as pd

    return MovedRows(EVIL, 0.75, 0.25, pd.DataFrame({"document": [EVIL], f"rank by {EVIL}": ["3"]}))


PAGES = {
    "experiment": lambda: report_for_experiment(
        facts(baseline=f"{EVIL}1", other=f"{EVIL}2", moved=moved(), guard=GuardFacts(active=True, ledger=EVIL))
    ),
    "evaluation": lambda: report_for_evaluation(ranked(EVIL, prefix=EVIL), role="dev"),
}


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_fetched_and_one_script_runs_whatever_systems_and_queries_are_called(page):
    text = PAGES[page]()
    assert EVIL not in text
    assert "&lt;script&gt;" in text
    found = _Tags(text)
    assert not {"iframe", "object", "embed", "link", "form", "base"} & set(found.tags)
    (script,) = (text for kind, text in found.scripts if kind is None)
    data = [json.loads(text) for kind, text in found.scripts if kind == "application/json"]
    assert len(data) == len(found.scripts) - 1
    assert EVIL in str(data[-1])
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{hashed}';" in found.policy
    assert "default-src 'none'" in found.policy
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|localStorage", script)
    assert not found.handlers
    assert found.addresses
    assert all(address.startswith("data:image/png;base64,") for address in found.addresses)
    assert not re.search(r"url\(|@import", text)


def test_the_report_of_an_experiment_says_what_it_stands_on():
    text = report_for_experiment(facts())
    for said in ("strong beats weak by", "/some/ledger.db", "a" * 64, "b" * 64, "alpha=1.0", "some.Estimator"):
        assert said in text
    assert "Not guarded" not in text
    assert re.search(r"<td>documents with equal scores</td><td>mean over all orders</td>", text)


def test_the_report_shows_the_rows_that_moved_if_they_are_known():
    page = report_for_experiment(facts(moved=moved()))
    said = page.partition("What moved in query")[2].partition("All queries")[0]
    assert "0.7500 by weak, 0.2500 by strong" in said
    assert f'<td>{escape(EVIL)}</td><td class="number">3</td>' in said
    assert "What moved" not in report_for_experiment(facts())


def test_the_report_of_an_evaluation_has_its_lowest_queries_and_its_card():
    evaluation = ranked("one")
    text = report_for_evaluation(evaluation)
    lowest = evaluation.per_query["nDCG@10"].idxmin()
    assert f'<tbody>\n<tr><th scope="row"><span>{lowest}</span></th>' in text
    assert evaluation.judgments_digest in text
    assert "mean over all orders" in text
    assert f"{evaluation.aggregate()['nDCG@10']:.4f}" in text


def test_queries_are_sorted_by_the_first_measure_that_a_ranking_changes():
    """AP counts no grade below 1, so it is 0/0 on every query."""
    ev = rk.evaluate([0.5, 0, 0, 0.9], [1, 2, 2, 1], qid=[1, 1, 2, 2], measures=["AP", "nDCG"])
    assert "worst by nDCG first" in report_for_evaluation(ev)


def test_the_report_of_an_evaluation_has_the_slices_that_are_asked_for():
    """With intervals unless the queries have weights; values are escaped, and an attribute must fit."""
    import pandas as pd

    ev = ranked("bm25")
    market = pd.Series([EVIL, "us"] * 20, index=ev.queries, name="market")
    page, table = report_for_evaluation(ev, slices=market), ev.slices(market, confidence_level=0.95)
    assert "<h2>Slices</h2>" not in report_for_evaluation(ev)
    assert "<h2>Slices</h2>" in page
    assert EVIL not in page
    for value, row in table.iterrows():
        cells = [escape(value), "20", *(f"{row[f'AP{end}']:.4f}" for end in ("", " ci_low", " ci_high"))]
        found = re.findall(r"<td[^>]*>(.*?)</td>", page[page.index(f"<td>{cells[0]}</td>") :])
        assert found[:2] == cells[:2]
        assert [found[4], *found[5].strip("[]").split(", ")] == cells[2:]
    weighted = replace(ev, weights=np.linspace(1, 2, 40))
    assert "AP 95% interval" in report_for_evaluation(weighted, slices=market)
    with pytest.raises(rk.errors.QueryIdError):
        report_for_evaluation(ev, slices={"other": "us"})


def test_what_is_not_confirmatory_stands_out():
    bare = replace(found := facts().comparison, table=without_adjusted(found.table))
    exploratory = with_notes(bare, LimitNote("umformuliert: the result of 7 looks"), "exploratory as the sea")
    guard = GuardFacts(active=True, looks=7, looks_added=1, standing="exploratory")
    changed = facts(comparison=exploratory, guard=guard)
    assert '<p class="note said">umformuliert: the result of 7 looks.</p>' in report_for_experiment(changed)
    assert '<p class="soft said">exploratory as the sea.</p>' in report_for_experiment(changed)
    assert "Not confirmatory: strong against weak" in report_for_experiment(changed)
    assert standing_words(changed).startswith("EXPLORATORY")
    unguarded = facts(guard=GuardFacts(active=False, reason="It was switched off."))
    assert "<strong>Not guarded.</strong> It was switched off." in report_for_experiment(unguarded)
    assert standing_words(unguarded).startswith("NOT GUARDED. It was switched off.")


def test_page_and_terminal_say_the_headline_and_the_value_of_the_choice():
    given = facts()
    several = compare({**given.comparison.evaluations, "third": ranked("third", weight=0.5)}, baseline="weak")
    said = facts(comparison=several)
    page, text = report_for_experiment(said), experiment_text(said)
    headline, choice = several.findings
    assert headline.startswith("strong beats weak by +")
    assert "Choosing the largest mean of 2 candidates, here " in choice
    for finding in several.findings:
        assert escape(finding) in page
        assert finding in " ".join(text.split())


def test_coverage_says_what_was_left_out_undefined_and_tied():
    evaluation = evaluate(
        [1, 0, 0, 0], [1.0, 1.0, 3.0, 2.0], qid=["a", "a", "b", "b"], measures=["AP"], no_relevant="skip"
    )
    said = " ".join(coverage_sentences(evaluation))
    assert "1 query counted" in said
    assert "2 ranked rows (100.0%) share their score with another row" in said
    assert "left out" in said
    assert ": 'b'." in said


def test_coverage_shortens_long_ids():
    ev = evaluate([1, 0, 0], [1.0, 2.0, 3.0], qid=["a", "a", "x" * 10_000], measures=["AP"], no_relevant="skip")
    (said,) = [sentence for sentence in coverage_sentences(ev) if "left out" in sentence]
    assert said.endswith(f": '{'x' * 76}....")


@pytest.mark.usefixtures("without_formula")
def test_coverage_and_page_say_what_was_drawn():
    evaluation = evaluate([1, 0] * 20, [1.0] * 40, qid=["a"] * 40, measures=["SquaredAP"])
    said = coverage_sentences(evaluation)[-1]
    assert said.startswith("Mean over 400 drawn orders of tied rows")
    assert re.search(r"SquaredAP in 1 query \(standard error of the mean 0\.\d+\)\.$", said)
    assert said in report_for_evaluation(evaluation)


@pytest.mark.parametrize(
    ("n", "thing", "said"), [(1, "query", "1 query"), (0, "query", "0 queries"), (1200, "look", "1,200 looks")]
)
def test_counts_read_as_english(n, thing, said):
    assert count(n, thing) == said


def test_pages_have_words_for_every_value_of_a_rule():
    for rule, values in CHOICES.items():
        assert set(values) == set(VALUE_WORDS[rule]), rule
    assert set(RULE_WORDS) == {part.name for part in fields(rk.Convention)}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_numbers_first_then_the_headline_then_its_contents_and_digests_last(name):
    page = PAGES[name]()
    body = page[page.index("<body>") :]
    first = body[: body.index("<section")]
    assert first.index('<dl class="tiles">') < first.index('<nav class="parts"')
    assert not re.search("[0-9a-f]{20}", first)
    titles = re.findall("<h2>(.*?)</h2>", body)
    assert re.findall(r'<label for="part-\d+">(.*?)</label>', first) == titles
    ids = re.findall(r'id="part-(\d+)"', body)
    assert ids == [str(place) for place in range(1, len(titles) + 1)]


def test_the_numbers_of_an_experiment_are_those_of_its_comparison():
    found = facts()
    row = found.comparison.table.iloc[0]
    page = report_for_experiment(found)
    tiles = re.findall(r"<dt>(.*?)</dt><dd><strong>(.*?)</strong> <span>(.*?)</span>", page[: page.index("<section")])
    change = 100 * (row["mean_system"] / row["mean_baseline"] - 1)
    assert [value for _, value, _ in tiles] == [
        f"{row['difference']:+.4f}",
        f"{change:+.1f}%",
        f"{row['wins']} / {row['ties']} / {row['losses']}",
        "confirmatory",
    ]
    assert tiles[0][2] == f"95% interval {row['ci_low_adjusted']:+.4f} to {row['ci_high_adjusted']:+.4f}"
    assert tiles[1][2] == f"from {row['mean_baseline']:.4f} to {row['mean_system']:.4f}"


def test_a_pair_that_is_turned_to_show_a_gain_is_turned_in_its_numbers():
    """All pairs are compared, and the second of two systems is worse."""
    found = compare({"strong": ranked("strong", weight=3.0), "weak": ranked("weak", weight=0.2)}, measures=["nDCG@10"])
    (row,) = found.table.to_dict("records")
    assert row["difference"] < 0
    numbers = key_numbers(found)
    assert numbers[0].value == f"{-row['difference']:+.4f}"
    assert numbers[1].detail == f"from {row['mean_system']:.4f} to {row['mean_baseline']:.4f}"
    assert numbers[2].value == f"{row['losses']} / {row['ties']} / {row['wins']}"
    assert numbers[2].detail == "strong against weak"


def test_equal_systems_are_called_equal_and_nothing_else():
    same = ranked("a")
    page = report_for_judging([compare({"a": same, "b": replace(same, name="b")}, baseline="a")])
    assert "b and a are equal on every query." in page
    assert '<dl class="tiles">' not in page
    assert "<img" not in page
    assert "\u221e" not in page


def test_a_weighted_evaluation_says_so_beside_its_mean():
    ev = ranked("weighted")
    weights = np.r_[np.zeros(10), np.linspace(1, 2, 30)]
    page = report_for_evaluation(replace(ev, weights=weights))
    first = page[: page.index("<section")]
    effective = weights.sum() ** 2 / (weights**2).sum()
    said = f"eighted: 30 of 40 queries weigh more than 0, effective number {effective:.0f}"
    assert f"<p>W{said}.</p>" in first
    assert f"<span>w{said}</span>" in first
    assert "10 queries of weight 0" in page


def test_minus_and_percent_have_one_spelling_on_a_page():
    worse = compare({name: ranked(name, weight=WEIGHT[name]) for name in WEIGHT}, baseline="strong")
    for page in (report_for_judging([worse]), report_for_judging([worse, worse])):
        text = re.sub("<[^>]*>", " ", re.sub(r"(?s)<(style|script)[^>]*>.*?</\1>", "", page))
        assert "\u2212" in text
        assert not re.search(r"(?<![\w.])-\d", text)
        assert "95%" in text
        assert not re.search(r"\d\s%", text)


def test_a_long_note_is_one_line_and_its_details_are_folded():
    note = "the first clause of the note says it; " + "the second one explains it at length, " * 5
    noted = with_notes(facts().comparison, note)
    page = report_for_experiment(facts(comparison=noted))
    assert (
        f'<details class="soft said"><summary>the first clause of the note says it ...</summary>{note}.</details>'
        in page
    )


def test_texts_of_queries_are_beside_their_ids_and_stay_text():
    ev = ranked("bm25")
    needs = {query: f"{EVIL} {query}" for query in ev.queries[:20]} | {"unknown": "nowhere"}
    worse = compare({"a": ev, "b": ranked("b", weight=0.2)}, baseline="a")
    for page in (report_for_evaluation(ev, needs=needs), report_for_judging([worse], needs=needs)):
        assert EVIL not in page
        assert "nowhere" not in page
        texts = next(json.loads(text) for kind, text in _Tags(page).scripts if EVIL.replace("<", "\\u003c")[:9] in text)
        assert texts == {query: needs[query] for query in ev.queries[:20]}
        assert '<span class="need" dir="auto">&lt;script&gt;alert(1)&lt;/script&gt; q' in page
    assert "queries-needs" not in report_for_evaluation(ev)


def test_a_picture_has_a_narrow_drawing_for_a_phone():
    page = report_for_evaluation(ranked("bm25"))
    wide, narrow = (
        re.search(pattern, page)[1]
        for pattern in (r'<img src="data:image/png;base64,(.*?)"', r'srcset="data:image/png;base64,(.*?)"')
    )
    sizes = [struct.unpack(">II", base64.b64decode(image)[16:24]) for image in (wide, narrow)]
    assert sizes[0][0] > 1400
    assert 800 < sizes[1][0] < 1000
