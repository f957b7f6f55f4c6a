"""In the first week the guard speaks the words of its first page: register, freeze, open."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.errors import GuardRefusal, InvalidInput, LedgerError

PROJECT = "first week"
GUIDES = Path(__file__).parents[2] / "examples" / "guides"
INNER = ("identifiable", "exposed", "exposure", "unaccounted", "standing", "contamination", "bits", "at hand")


def terms(name):
    """Return the words that a guide introduces, in italics or bold."""
    text = (GUIDES / name).read_text(encoding="utf-8")
    return {word.lower() for word in re.findall(r"\*{1,2}(\w+)\*{1,2}", text)}


def said_in_the_first_week(guard, data):
    """Yield what a user is shown who registers, freezes and opens, and does what everybody does wrong once."""
    split = rk.dev_test_split(data, test_size=0.3, guard=guard, test_name="test")
    test, registered = split.test, split.registered
    yield from map(str, (guard, split, registered, *registered.findings))
    mixed = np.isin(data.qid, [*split.dev.qid, *np.unique(test.qid)[:2]])
    with pytest.warns(rk.errors.RankevalWarning, match="too little to refuse") as warned:
        rk.QueryRanker(Ridge()).fit(data.X[mixed], data.y[mixed], qid=data.qid[mixed])
    yield from (str(one.message) for one in warned)
    yield from (str(guard.status(one)) for one in (data, split.dev, data.take(mixed)))
    ridge = Ridge().fit(split.dev.X, split.dev.y)
    plan = guard.freeze(registered, systems={"a": test.X[:, 0], "ridge": ridge}, baseline="a", n_resamples=99)
    elsewhere = rk.Guard(PROJECT, ledger=guard.ledger)
    mistakes = (
        lambda: rk.QueryRanker(Ridge()).fit(test.X, test.y, qid=test.qid),
        lambda: rk.evaluate(test.y, test.X[:, 1], qid=test.qid),
        lambda: rk.cross_validate(Ridge(), data),
        lambda: guard.register("test", split.dev),
        lambda: guard.freeze("test", systems={"a": test.X[:, 0]}),
        lambda: guard.freeze(registered, systems={"unfitted": Ridge()}),
        lambda: guard.freeze(registered, systems={"short": [1.0, 2.0]}),
        lambda: elsewhere.open(plan),
        lambda: guard.open("no plan"),
    )
    for mistake in mistakes:
        with pytest.raises((GuardRefusal, InvalidInput, LedgerError)) as caught:
            mistake()
        yield str(caught.value)
    yield from (str(plan), *plan.notes)
    for _ in range(2):
        result = guard.open(plan)
        yield from (result.headline, *result.notes)
    late = guard.freeze(registered, systems={"a": test.X[:, 0], "b": test.X[:, 1]}, baseline="a", n_resamples=99)
    result = guard.open(late)
    yield from (str(late), *late.notes, result.headline, *result.notes)
    yield guard.looks("test").to_string()


def test_the_first_page_explains_what_the_guard_says_in_the_first_week(guard, data):
    """Words of the second page stand only in calls, which say in the same sentence what they do."""
    later = terms("guard_months.md") - terms("guard.md")
    assert {"revision", "exempt"} <= later
    texts = list(said_in_the_first_week(guard, data))
    assert len(texts) > 25
    for text in texts:
        plain = re.sub(r"guard\.\w+\(.*?\)|\w+=\S+", "", text.replace(guard.ledger, "")).lower()
        found = [word for word in (*later, *INNER) if re.search(rf"\b{word}", plain)]
        assert found == [], text


def test_a_split_registers_documents_so_that_queries_under_new_ids_are_known(guard):
    rng = np.random.default_rng(0)
    qid, day = np.repeat([f"s{i:04}" for i in range(400)], 16), np.repeat(np.arange(400), 16)
    docid = np.concatenate([rng.choice(5000, 16, replace=False) for _ in range(400)]).astype(str)
    y, X = rng.choice(4, 6400, p=[0.7, 0.15, 0.1, 0.05]), rng.normal(size=(6400, 4))
    rk.dev_test_split(X, y, qid=qid, docid=docid, times=day, test_from=300, guard=guard, test_name="newest")
    some = (day >= 300) & (day < 330)
    renamed = np.char.add("x", qid[some])
    with pytest.raises(GuardRefusal):
        rk.evaluate(y[some], X[some, 0], qid=renamed, docid=docid[some])
