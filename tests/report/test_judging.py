"""The page of results of judging: each has its table, its notes and its picture, and no name becomes markup."""

import re
from functools import cache

import numpy as np
import pandas as pd
from report.test_html import EVIL, _Tags

import rankeval as rk
from rankeval.report import report_for_judging


@cache
def results():
    """Return one result of each kind, of judges and systems whose names are markup."""
    rng = np.random.default_rng(3)
    true = rng.integers(0, 2, size=(30, 8))
    judges = {
        name: {f"q{q}": {f"d{d}": int(grade) for d, grade in enumerate(row)} for q, row in enumerate(labels)}
        for name, labels in ((EVIL, true), ("llm", np.where(rng.random(true.shape) < 0.8, true, 1 - true)))
    }
    runs = {
        name: {f"q{q}": {f"d{d}": float(score) for d, score in enumerate(row)} for q, row in enumerate(scores)}
        for name, scores in ((f"a{EVIL}", true + rng.normal(size=true.shape)), ("b", rng.normal(size=true.shape)))
    }
    by_people, by_llm = (
        {name: rk.evaluate(judges[judge], run, measures="AP") for name, run in runs.items()} for judge in judges
    )
    asked = rk.judging.draw(by_llm["b"].queries, 12, rng=0)
    return [
        rk.judging.agreement(judges),
        rk.judging.disagreement(judges, runs, measure="AP"),
        rk.judging.reusability(judges[EVIL], runs, depth=3, measure="AP"),
        rk.judging.calibrate({name: ev.subset(asked) for name, ev in by_people.items()}, by_llm, baseline="b"),
    ]


def test_each_result_has_its_table_its_notes_and_its_picture():
    found = results()
    page = report_for_judging(found, title=f"Judged {EVIL}")
    assert re.findall("<h2>(.*?)</h2>", page) == ["Agreement", "Disagreement", "Reusability", "Calibration"]
    tags = _Tags(page)
    assert tags.tags.count("table") == 4
    assert all(address.startswith("data:image/png;base64,") for address in tags.addresses)
    assert len(tags.addresses) == 4
    words = pd.Series([note for result in found for note in result.notes]).str[:20]
    assert words.map(page.__contains__).all()
    assert len(words) > 2


def test_names_of_judges_and_systems_are_text():
    tags = _Tags(report_for_judging(results(), title=EVIL))
    assert tags.scripts == []
    assert tags.handlers == []
    assert "script-src" in tags.policy
