"""A report is one file that fetches nothing, runs its own script alone, and says what the numbers are worth."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest
import yaml

import rankeval as rk
from rankeval._checks import count
from rankeval._visible import LimitNote
from rankeval.comparison import compare
from rankeval.comparison.design import without_adjusted
from rankeval.comparison.record import with_notes
from rankeval.evaluation import evaluate
from rankeval.report import report_for_evaluation, report_for_experiment
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
    assert "relevant documents come from" in text


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
    assert "expected" in text
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
        assert found[5:8] == cells[2:]
    weighted = replace(ev, weights=np.linspace(1, 2, 40))
    assert "AP ci_low" in report_for_evaluation(weighted, slices=market)
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
