"""A saved comparison whose values are of another kind is refused when it is read, not when it is shown."""

from __future__ import annotations

import copy
import json
import random

import numpy as np
import pandas as pd
import pytest
from circles import choose
from tables import each_row

import rankeval as rk
from rankeval.comparison.comparing import compare_algorithms
from rankeval.comparison.saved import JSON_FORMAT
from rankeval.errors import InvalidInput

INSTEAD = [None, True, 10**400, -1, 1e308, float("nan"), "text", "", "\ud800", [], {}, [1], {"a": 1}]
EXAMPLES = ["pairs", "baseline", "claim", "collections", "slices", "skip", "folds", "groups", "weights"]


def compared(which: str) -> rk.Comparison:
    rng = np.random.default_rng(0)
    queries = [f"q{i}" for i in range(12)]
    scores = {name: pd.DataFrame(rng.random((12, 2)), queries, ["AP", "RR"]) for name in "abc"}
    two = {name: scores[name] for name in "ab"}
    if which == "pairs":
        return rk.compare(scores)
    if which == "collections":
        return rk.compare({name: {"x": one, "y": 1 - one[:9]} for name, one in two.items()}, baseline="a")
    if which == "skip":
        qrels = {query: {f"d{i}": int(rng.random() < 0.4) for i in range(10)} for query in queries}
        runs = [{query: {f"d{i}": float(rng.random()) for i in range(k, 14)} for query in queries} for k in (0, 4)]
        found = {f"s{k}": rk.evaluate(qrels, run, measures=["AP", "nDCG@5"]) for k, run in enumerate(runs)}
        return rk.compare(found, unjudged="skip")
    if which == "weights":
        y, qid = rng.integers(0, 2, 60), np.repeat(queries, 5)
        weights = dict(zip(queries, rng.random(12), strict=True))
        made = {name: rk.evaluate(y, rng.random(60), qid=qid, measures="AP", query_weight=weights) for name in "ab"}
        return rk.compare(made, baseline="a")
    if which == "folds":
        means = {name: pd.DataFrame({"AP": rng.random(5)}) for name in "ab"}
        y, qid = rng.integers(0, 2, 40), np.repeat(range(10), 4)
        found = {name: rk.evaluate(y, rng.random(40), qid=qid, measures="AP") for name in means}
        return compare_algorithms(means, found, sizes=[(8, 2)] * 5, baseline="a")
    claim = {"claim": "not_worse", "margin": 0.1} if which == "claim" else {}
    parts = {"by": {query: "uv"[i % 2] for i, query in enumerate(queries)}} if which == "slices" else {}
    groups = {"groups": pd.Series(np.arange(12) // 2, queries, name="need")} if which == "groups" else {}
    return rk.compare(two, baseline="a", **claim, **parts, **groups)


def places(value: object, here: tuple = ()) -> list[tuple]:
    """Return the place of each value within one of JSON, one of each list."""
    parts = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    return [here, *(place for key, part in parts for place in places(part, (*here, key)))]


def with_value(saved: dict, place: tuple, value: object) -> str:
    changed = copy.deepcopy(saved)
    part = changed
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    return json.dumps(changed)


def show(found: rk.Comparison) -> None:
    for layout in ("comparisons", "systems"):
        for write in (found.to_markdown, found.to_html, found.to_latex):
            write(layout=layout)
    _ = (repr(found), str(found), found._repr_html_(), found.findings, found.caption, found.to_json(), found.notes)


@pytest.mark.further
@pytest.mark.random
@pytest.mark.filterwarnings("ignore:on fewer than 50 queries")
@each_row("which", EXAMPLES)
def test_a_value_of_another_kind_is_refused_or_shown(which):
    saved = json.loads(compared(which).to_json())
    tried = [(place, value) for place in places(saved) if place for value in INSTEAD]
    n_tried = choose(default=12, full=len(tried))
    refused = 0
    for place, value in random.Random(which).sample(tried, min(n_tried, len(tried))):  # noqa: S311 - a sample of cases
        try:
            found = rk.Comparison.from_json(with_value(saved, place, value))
        except InvalidInput:
            refused += 1
        else:
            show(found)
    assert refused > 0.5 * min(n_tried, len(tried))


@each_row(
    ("place", "value"),
    [
        (("table", "n_queries", 0), []),
        (("table", "p_value", 0), True),
        (("table", "difference", 0), 10**400),
        (("table", "wins", 0), "many"),
        (("table", "measure", 0), None),
        (("table",), {}),
        (("means",), []),
        (("notes", 0), 7),
        (("notes",), "text"),
        (("confidence_level",), "0.95"),
        (("baseline",), "nobody"),
        (("primary",), "P@5"),
        (("weights",), "heavy"),
        (("choice", "n_candidates"), None),
        (("lower_is_better",), {"AP": 1}),
        (("opening",), [1]),
        (("unit",), {}),
        (("member",), 1),
        (("n_members",), "many"),
        (("test",), ""),
    ],
)
def test_the_error_names_the_key(place, value):
    saved = json.loads(compared("baseline").to_json()) | {"notes": ["one"]}
    with pytest.raises(InvalidInput) as raised:
        rk.Comparison.from_json(with_value(saved, place, value))
    assert raised.value.argument == place[0]
    assert "this is not a whole comparison" in raised.value.where


def test_the_error_says_what_was_found():
    saved = json.loads(compared("baseline").to_json())
    with pytest.raises(InvalidInput, match="not a whole comparison: unit is 7; expected a value such as"):
        rk.Comparison.from_json(with_value(saved, ("unit",), 7))
    with pytest.raises(InvalidInput, match="not a whole comparison"):
        rk.Comparison.from_json(with_value(saved, ("table", "ties"), [0]))
    del saved["unit"]
    with pytest.raises(InvalidInput, match="keys are missing or unknown: 'unit'"):
        rk.Comparison.from_json(json.dumps({**saved, "format": JSON_FORMAT}))


@pytest.mark.filterwarnings("ignore:on fewer than 50 queries")
@each_row("which", EXAMPLES)
def test_each_kind_of_comparison_comes_back(which):
    whole = compared(which)
    again = rk.Comparison.from_json(whole.to_json())
    assert again.to_json() == whole.to_json()
    assert again.headline == whole.headline
