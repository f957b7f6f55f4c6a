"""No control character of a name, an id, a path or an answer reaches a terminal from what we write for people."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow
from rankeval import errors
from rankeval._display import Displayed
from rankeval._visible import visible
from rankeval.online import ab_test
from rankeval.report import report_for_evaluation, report_for_judging, report_for_queries

HOSTILE = "n\x1b[31m\x1b]0;t\x07\x08\x9b1m\x85\u202e\u2066\u2028\ufeff\U000e0041"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
EXEMPT = {"Displayed", "Page"}  # the one escapes for all results; the other is HTML whose texts are escaped


def is_clean(*texts: str) -> bool:
    """Return whether texts have no control character; the name must be in one of them, so that this tells something."""
    assert "\\x1b[31m" in "".join(texts)
    return not STEERING.search("".join(texts))


def test_each_result_passes_its_reprs_and_sentences_through_one_function():
    unmarked = []
    for root in (rk, rankeval_mlflow):
        for found in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            module = importlib.import_module(found.name) if not found.name.endswith("__main__") else root
            classes = [one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == found.name]
            for one in classes:
                own = vars(one)
                fields = own.get("__dataclass_fields__", ())
                is_result = {"_repr_html_", "_view"} & own.keys() or {"notes", "table"} <= {*fields}
                texts = [own[name] for name in ("__repr__", "__str__", "_repr_html_") if name in own and is_result]
                is_displayed = issubclass(one, Displayed) and not texts
                is_escaped = texts and all(text.__code__.co_name == "escaped" for text in texts)
                if is_result and one.__name__ not in EXEMPT and not (is_displayed or is_escaped):
                    unmarked.append(f"{found.name}.{one.__name__}")
    assert not unmarked


def test_a_text_is_visible_once():
    assert visible(visible(HOSTILE)) == visible(HOSTILE)
    assert visible("Grüße, 検索, naïve, a\tb", keep="\t") == "Grüße, 検索, naïve, a\tb"


def test_messages_and_warnings_have_no_control_characters_and_fields_keep_them():
    error = errors.InvalidInput("a problem", argument=HOSTILE, where=f"{HOSTILE}.tsv", remedy=f"rename {HOSTILE}")
    assert is_clean(str(error), str(error.having(found=HOSTILE)), repr(error))
    assert error.where == f"{HOSTILE}.tsv"
    with pytest.warns(errors.RankevalWarning) as caught:
        errors.warn(HOSTILE)
    assert is_clean(str(caught[0].message))
    for act in (
        lambda: rk.Run.read(f"{HOSTILE}.run"),
        lambda: rk.evaluate_dataset(HOSTILE, qid="q", relevance="y", score="s", measures="RR"),
        lambda: rk.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, measures=HOSTILE),
        lambda: rk.evaluate({"q": {"d": HOSTILE}}, {"q": {"d": 1.0}}),
    ):
        with pytest.raises(errors.RankevalError) as raised:
            act()
        assert is_clean(str(raised.value))


def test_a_comparison_of_hostile_names_says_none_of_them_raw():
    rng = np.random.default_rng(0)
    scores = {
        name: pd.DataFrame({"AP": rng.random(20)}, [f"{HOSTILE}{i}" for i in range(20)]) for name in ("a", HOSTILE, "c")
    }
    for how in ({"baseline": "a"}, {"baseline": HOSTILE}, {}, {"lower_is_better": [HOSTILE]}):
        compared = rk.compare(
            scores
            if "lower_is_better" not in how
            else {n: f.rename(columns={"AP": HOSTILE}) for n, f in scores.items()},
            **how,
        )
        texts = (
            repr(compared),
            str(compared),
            compared._repr_html_(),
            compared.headline,
            *compared.findings,
            *compared.notes,
        )
        made = (
            compared.caption,
            str(compared.best),
            repr(compared.best),
            compared.best._repr_html_(),
            compared.to_markdown(),
        )
        assert is_clean(*texts, *made, compared.to_latex(), compared.to_html(), compared.to_json())
        assert HOSTILE in {*compared.table["system"], *compared.table["baseline"], *compared.table["measure"]}
        assert rk.Comparison.from_json(compared.to_json()).table.equals(compared.table)
    assert "\n" not in compared.headline


def test_evaluations_and_reports_of_hostile_ids_say_none_of_them_raw(monkeypatch):
    monkeypatch.setattr("rankeval.report.html._image", lambda _: "data:,")
    qrels = {f"{HOSTILE}{i}": {f"{HOSTILE}d{j}": int(j == i % 3) for j in range(3)} for i in range(6)}
    run = {q: {d: float(len(ds) - j) for j, d in enumerate(ds)} for q, ds in qrels.items()}
    scored = rk.evaluate(
        qrels, {q: {f"x{d}": s for d, s in ds.items()} for q, ds in run.items()}, measures="RR", name=HOSTILE
    )
    assert is_clean(repr(scored), scored._repr_html_(), *scored.notes)
    scored = rk.evaluate(qrels, run, measures="RR", name=HOSTILE)
    pages = [
        report_for_evaluation(scored, role="test", said=HOSTILE),
        report_for_queries(scored, run, qrels, needs=dict.fromkeys(qrels, HOSTILE)),
    ]
    pages.append(report_for_judging([rk.compare({HOSTILE: scored, "b": scored})], title=HOSTILE))
    for page in pages:
        assert is_clean(page)
    arms = pd.DataFrame({"u": range(40), "arm": ["a", HOSTILE] * 20, "v": np.random.default_rng(0).random(40)})
    tested = ab_test(arms, unit="u", arm="arm", metrics={HOSTILE: "v"})
    assert is_clean(repr(tested), str(tested), tested._repr_html_(), tested.headline, *tested.notes)


def test_a_cross_validation_and_a_guard_of_hostile_names_say_none_of_them_raw(tmp_path):
    data = rk.datasets.make_ranking(30, 6, 3, rng=0)
    found = rk.cross_validate({HOSTILE: Ridge(), "b": Ridge(2.0)}, data, cv=2, measures="AP")
    assert is_clean(repr(found), found._repr_html_())
    guard = rk.Guard(HOSTILE, ledger=tmp_path / "ledger")
    test = guard.register(HOSTILE, data)
    plan = guard.freeze(test, systems={HOSTILE: data.X[:, 0], "b": data.X[:, 1]}, baseline="b")
    opened = guard.open(plan)
    texts = (
        repr(guard),
        repr(test),
        test._repr_html_(),
        repr(plan),
        plan._repr_html_(),
        *plan.notes,
        *map(str, test.findings),
    )
    assert is_clean(*texts, opened.headline, *opened.notes, repr(opened), opened._repr_html_())
    status = guard.status(data)
    assert is_clean(str(status), repr(status), status._repr_html_(), status.words)
