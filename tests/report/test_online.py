"""Online results in a report: each with its table, its notes and its picture, and no id becomes markup."""

import re
from functools import cache
from html import escape

import numpy as np
import pandas as pd
from report.test_html import EVIL, _Tags

import rankeval as rk
from rankeval.report import report_for_evaluation, report_for_judging


@cache
def online():
    """Return an A/B test, click rates and checks of a log whose arms and queries are markup."""
    rng = np.random.default_rng(2)
    arms = np.where(np.arange(60) % 2, EVIL, "A")
    users = pd.DataFrame({"user": range(60), "arm": arms, "orders": rng.poisson(2, 60)})
    rows = {"impression": range(60), "position": 1, "docid": "d", "clicked": rng.random(60) < 0.4, "qid": EVIL}
    log = rk.online.ClickLog.from_frame(pd.DataFrame(rows))
    return rk.online.ab_test(users, metrics={"orders": "orders"}), log.click_rates(by="qid"), log.checks()


def test_the_report_of_an_evaluation_shows_online_results_in_the_order_given():
    ev = rk.evaluate({"q1": {"a": 1}, "q2": {"a": 1}}, {"q1": {"a": 1}, "q2": {"b": 1}}, measures="RR", name="bm25")
    page, bare = report_for_evaluation(ev, online=online()), report_for_evaluation(ev)
    names = re.findall("<h2>(.*?)</h2>", page)
    assert names[1:4] == ["A/B test", "Click rate", "Checks of the click log"]
    assert [name for name in names if name not in names[1:4]] == re.findall("<h2>(.*?)</h2>", bare)
    tags = _Tags(page)
    assert len(tags.addresses) == 3  # the scores, and the pictures of the results that have one
    assert tags.tags.count("script") == _Tags(bare).tags.count("script")
    notes = [escape(note[:10]) for result in online() for note in result.notes]
    assert all(note in page for note in notes)
    assert len(notes) > 1


def test_the_page_of_a_comparison_shows_it_beside_online_results():
    truth = {f"q{n}": {"a": 1, "b": 0} for n in range(8)}
    runs = {EVIL: {q: {"a": 2, "b": 1} for q in truth}, "v2": {q: {"a": n % 2, "b": 0.5} for n, q in enumerate(truth)}}
    compared = rk.compare({name: rk.evaluate(truth, run, measures="RR") for name, run in runs.items()})
    page = report_for_judging([compared, *online()], title="v2")
    assert re.findall("<h2>(.*?)</h2>", page) == ["Comparison", "A/B test", "Click rate", "Checks of the click log"]
    tags = _Tags(page)
    assert tags.tags.count("script") == 0
    assert EVIL not in page
