"""A result of every kind that a folder can hold, and of every form that a kind has, by a title."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import optuna
import pandas as pd
from report.test_judging import results as results_of_judging
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import rankeval as rk

EVIL = "<script>alert(1)</script>"
QUERIES, ROWS = 20, 8
LABELS = np.random.default_rng(7).integers(0, 3, QUERIES * ROWS)


def evaluation(name: str | None = "ridge", *, seed: int = 0, start: int = 0, **options: Any) -> rk.Evaluation:
    """Return the evaluation of 20 queries of 8 rows, with the same judgments for every seed."""
    scores = LABELS + np.random.default_rng(seed).normal(size=LABELS.size).round(1)
    ids = np.repeat([f"q{place}" for place in range(start, start + QUERIES)], ROWS)
    given = {"measures": ["nDCG@10", "AP", "P(rel=2)@5"], "qid": ids, **options}
    return rk.evaluate(LABELS, scores, name=name, **given)


Results = dict[str, tuple[Any, dict[str, Any]]]


@cache
def results() -> Results:
    """Return the results with the options of their records."""
    with warnings.catch_warnings(action="ignore"):  # some are as small as nobody should have them
        return {**_evaluations(), **_comparisons(), **_folds(), **_studies(), **_judged(), **_online()}


def _evaluations() -> Results:
    lengths = {f"q{place}": ("short", "long")[place % 2] for place in range(QUERIES)}
    return {
        "evaluation": (evaluation(), {}),
        "evaluation by name and slices": (
            evaluation(EVIL),
            {"role": "test", "data": "letor", "note": f"See {EVIL}.", "slices": lengths},
        ),
        "evaluation at a step": (evaluation(None), {"step": 3}),
        "weighted evaluation": (evaluation(query_weight=np.repeat(np.arange(1.0, QUERIES + 1), ROWS)), {}),
        "evaluation of ids that are ints": (evaluation(qid=np.repeat(np.arange(QUERIES), ROWS)), {}),
        "evaluation without relevant documents": (
            rk.evaluate([0, 0], [2, 1], qid=["a", "a"], measures=["AP", "gm_AP"], no_relevant="skip"),
            {},
        ),
    }


def _comparisons() -> Results:
    three = {name: evaluation(name, seed=seed) for seed, name in enumerate(("bm25", "ltr/2", EVIL))}
    two = {name: three[name] for name in ("bm25", EVIL)}
    frames = {name: one.per_query for name, one in three.items()}
    webs = {
        name: {"news": evaluation(name, seed=seed), "web": evaluation(name, seed=seed + 5, start=100)}
        for seed, name in enumerate(("bm25", "ltr"))
    }
    parts = pd.Series(["a", "b"] * (QUERIES // 2), index=three["bm25"].queries, name="part")
    few = {"n_resamples": 99}
    users = [f"u{place % 9}" for place in range(QUERIES)]
    with TemporaryDirectory() as folder:
        guard, data = rk.Guard("one", ledger=Path(folder)), rk.datasets.make_ranking(30, 6, rng=0)
        test = guard.register("test", data)
        opened = guard.open(guard.freeze(test, systems={"final": data.X[:, 0]}, secondary=["AP", "gm_AP"]))
    il = rk.online.Interleaver("team_draft", salt="s")
    lists = [il.show({"A": ["a", "b"], "B": ["c", "d"]}, impression=n, user=n % 40) for n in range(120)]
    return {
        "comparison": (rk.compare(three, baseline="bm25"), {"role": "test", "data": "letor"}),
        "comparison of all pairs": (rk.compare(three), {}),
        "comparison of frames": (rk.compare(frames, baseline="bm25", measures="AP"), {}),
        "comparison on slices": (rk.compare(two, baseline="bm25", by=parts), {}),
        "comparison on collections": (rk.compare(webs, baseline="bm25", **few), {}),
        "comparison of groups": (rk.compare(two, baseline="bm25", groups=users), {}),
        "comparison with a margin": (rk.compare(two, baseline="bm25", claim="not_worse", margin=0.1), {}),
        "comparison by another test": (rk.compare(two, test="randomization", correction="max_t", **few), {}),
        "comparison of one system, opened": (opened, {}),
        "comparison of interleaved rankings": (
            rk.online.compare_interleaved(lists, {one.impression: ["a"] for one in lists[::2]}),
            {},
        ),
        "order_agreement": (rk.analysis.order_agreement(three), {}),
        "order_agreement on collections": (rk.analysis.order_agreement(webs), {}),
    }


def _folds() -> Results:
    data = rk.datasets.make_ranking(24, 6, rng=3)
    scorer, grid = rk.make_scorer("AP"), {"estimator__alpha": [1.0, 1e4]}
    search = GridSearchCV(rk.QueryRanker(Ridge()), grid, cv=2, scoring=scorer)
    options: dict[str, Any] = {"measures": ["nDCG@10", "AP"]}
    plain = rk.cross_validate(Ridge(2.0), data, cv=3, name=EVIL, **options)
    repeated = rk.RepeatedQueryKFold(2, n_repeats=2, random_state=0)
    several = rk.cross_validate({"ridge": Ridge(), EVIL: search}, data, cv=2, **options)
    return {
        "cross-validation": (plain, {"folds": True, "data": "letor"}),
        "cross-validation without scores": (plain, {"predictions": False, "name": "ridge/1", "role": "train"}),
        "cross-validation of a search": (rk.cross_validate(search, data, cv=2, **options), {"folds": True}),
        "cross-validation with repeats": (rk.cross_validate(Ridge(), data, cv=repeated, **options), {"folds": True}),
        "cross-validations": (several, {"folds": True}),
        "comparison of algorithms": (several.compare(question="algorithms", baseline="ridge"), {}),
    }


def _studies() -> Results:
    data = rk.datasets.make_ranking(24, 6, rng=3)
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    sampler = optuna.samplers.RandomSampler(seed=0)
    found = {}
    for title, measure in {"study": "AP", "study of two measures": ["AP", "ARP"]}.items():
        space = {"alpha": optuna.distributions.FloatDistribution(0.1, 99), "solver": ["auto", "svd"]}
        asked = rk.optuna_objective(Ridge(), space, data, cv=2, measure=measure)
        study = optuna.create_study(directions=asked.directions, study_name=EVIL, sampler=sampler)
        study.optimize(asked, n_trials=3)
        study.set_user_attr("team", EVIL)
        found[title] = (rk.model_selection.Study.of(study), {})
    other = optuna.create_study(sampler=sampler)
    other.optimize(lambda trial: 1 / trial.suggest_int("x", 0, 1), n_trials=4, catch=(ArithmeticError,))
    optuna.logging.set_verbosity(verbosity)
    return {**found, "study of another objective": (rk.model_selection.Study.of(other), {})}


def _judged() -> Results:
    named = {type(one).__name__.lower(): (one, {}) for one in results_of_judging()}
    graded = {"a": {"q1": {"d1": 0, "d2": 2}, "q2": {"d1": 1}}, "b": {"q1": {"d1": 1, "d2": 2}, "q2": {"d1": 1}}}
    return {**named, "agreement of grades": (rk.judging.agreement(graded, level="ordinal"), {})}


def _online() -> Results:
    rng = np.random.default_rng(7)
    swapped = rng.random(300) < 0.5
    clicked = rng.random((300, 2)) < np.where(swapped[:, None], [0.3, 0.25], [0.5, 0.1])
    shown = {"docid": np.where(swapped[:, None], ["b", "a"], ["a", "b"]).ravel(), "clicked": clicked.ravel()}
    rows = {"impression": np.repeat(np.arange(300), 2), "position": [1, 2] * 300, "qid": EVIL, **shown}
    log = rk.online.ClickLog.from_frame(pd.DataFrame({**rows, "user": np.repeat(np.arange(300) % 60, 2)}))
    users = {"user": range(300), "arm": list("ABC") * 100, "clicks": rng.poisson(4, 300), "views": 10}
    frame, ratio = pd.DataFrame(users), {"ctr": ("clicks", "views"), EVIL: "clicks"}
    queries = {f"q{place}": place for place in range(10)}
    value = rk.online.policy_value([1, 0, 1, 0] * 20, [0.5] * 80, [0.5] * 80, how="snips")
    by_how = rk.online.propensities
    return {
        "ab_test": (rk.online.ab_test(frame[frame["arm"] != "C"], metrics=ratio), {}),
        "ab_test of three arms": (rk.online.ab_test(frame, metrics=ratio, control="A"), {}),
        "click_rate": (log.click_rates(), {}),
        "click_rate by query": (log.click_rates(by="qid"), {}),
        "abandonment": (log.abandonment(), {}),
        "log_checks": (log.checks(), {}),
        "perplexity": (rk.online.ClickModel("pbm").fit(log).perplexity(log), {}),
        "policy_value": (value, {}),
        "propensities": (by_how(log, how="randomized", n_resamples=10), {}),
        "propensities of a model": (by_how(log, how="em", n_resamples=10), {}),
        "profile": (rk.profile(range, queries, repeats=1, name=EVIL, cost=dict.fromkeys(queries, 0.5)), {}),
        "profile without a name": (rk.profile(range, queries, repeats=2), {}),
    }
