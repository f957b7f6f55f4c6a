"""Splitters, cross-validation, scorers and rankers; and the guard: what it records, refuses, warns of and says.

A call of the guard runs in a process of its own, with a ledger in the call's own folder, so that nothing a guard
remembers in a process reaches the next call. Dates, heads and hashes of entries are taken out of what is recorded.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import json
import os
import pickle
import pkgutil
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
    cross_validate,
)  # fmt: skip
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankeval as rk
from tests.oracle.recording import today

Call = tuple[str, Callable[[], object]]
M3 = ["nDCG@5", "AP", "RR"]
PRESETS = ("trec_eval-9.0.8", "trec_eval-10", "sklearn", "gdeval", "ranx", "lightgbm", "xgboost")
OLD = {
    "alpha": lambda x: {"confidence_level": 1 - x}, "unpaired": lambda x: {"missing": x},
    "collection_weights": lambda x: {"weights": x}, "fresh": lambda x: {"queries": "fresh"} if x else {},
    "query_weight": lambda x: {"sample_weight": x},
}  # fmt: skip
"""New name of an argument -> the argument under the name it had before."""


def problems(guard: rk.Guard, head: str | None = None, **options: Any) -> list[str]:
    """Return the faults of a ledger, from the error that lists them, or from the method that once did."""
    if hasattr(guard, "problems"):
        return list(guard.problems(head, **options))
    try:
        guard.verify(head, strict=True, **options)
    except rk.errors.LedgerError as error:
        if error.where is None:
            raise
        return error.problem.split("; ")
    return []


def renamed(function: Callable[..., Any], *given: Any, like: Any = None, **arguments: Any) -> Any:
    """Call a function with the new names of its arguments, or with the old ones if it (or `like`) has those."""
    known = inspect.signature(like or function).parameters
    for name in [one for one in arguments if one in OLD and one not in known]:
        arguments |= OLD[name](arguments.pop(name))
    return function(*given, **arguments)


# --- what is told of results ----------------------------------------------------------------------------------------
def of_evaluation(ev: Any) -> Any:
    return {"queries": ev.per_query.index, "scores": ev.per_query, "means": ev.aggregate(), "left out": ev.excluded}


def of_cv(cv: Any) -> Any:
    if not hasattr(cv, "evaluation"):
        return {name: of_cv(one) for name, one in cv.items()} | {"folds": without_seconds(cv.folds)}
    facts = {"folds": without_seconds(cv.folds), "predictions": cv.predictions, "splits": cv.splits, "said": repr(cv)}
    facts |= {"best": cv.best_params, "fitted": None if cv.estimators is None else len(cv.estimators)}
    return of_evaluation(cv.evaluation) | facts | {"name": cv.evaluation.name, "notes": getattr(cv, "notes", ())}


def of_comparison(cmp: Any) -> Any:
    facts = {"table": cmp.table, "means": cmp.means, "notes": cmp.notes, "headline": cmp.headline}
    facts["standing"] = cmp.standing
    return facts | {name: of_evaluation(one) for name, one in cmp.evaluations.items()}


def of_plan(plan: Any) -> Any:
    names = "id systems baseline measure secondary alpha n_resamples rng folds n_folds claim margin unseen notes"
    return {name: getattr(plan, name) for name in names.split()} | {"said": repr(plan)}


def of_status(status: Any) -> Any:
    names = "refused collection project why rows queries n_matched n_to_refuse n_unaccounted words"
    return {name: getattr(status, name) for name in names.split()} | {"said": str(status)}


def of_test(test: Any) -> Any:
    names = "name project digest n_queries n_rows n_identifiable"
    findings = [(one.code, one.severity, one.message) for one in test.findings]
    return {name: getattr(test, name) for name in names.split()} | {"f": findings, "revises": test.revises is not None}


def of_data(data: Any) -> Any:
    facts = {name: getattr(data, name) for name in ("y", "qid", "docid", "feature_names", "name", "n_queries")}
    return facts | {"X": np.asarray(data.X), "said": repr(data), "rows": len(data)}


def without_seconds(folds: pd.DataFrame) -> pd.DataFrame:
    return folds.drop(columns=["fit_seconds", "score_seconds"]).reset_index()


# --- worlds ---------------------------------------------------------------------------------------------------------
@cache
def world(seed: int) -> dict[str, Any]:
    """Return rows of 6 to 12 queries: ids of four types, ties, negative grades, rows in blocks or mixed."""
    rng = np.random.default_rng([seed, 7])
    n = int(rng.integers(6, 13))
    codes = np.repeat(np.arange(n), rng.integers(3, 12, n))
    names = [np.arange(n) + 1, np.array([f"q{i * 5 % n}" for i in range(n)]), np.arange(n) + 0.5, np.arange(n) - 3]
    X = rng.normal(size=(len(codes), 4)).round([9, 0, 1][seed % 3])
    y = np.clip(np.rint(X[:, 0] + rng.normal(size=len(codes))), -1 if seed % 5 == 4 else 0, 3).astype(int)
    order = rng.permutation(len(codes)) if seed % 2 else np.arange(len(codes))
    codes, X = codes[order], X[order]
    docid = np.array([f"d{i}" for i in rng.permutation(len(codes))])
    return {"X": X, "y": y[order], "qid": names[seed % 4][codes], "docid": docid, "codes": codes, "n": n}


def ways(w: dict[str, Any]) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the ways to give queries: X, and the other arguments."""
    frame = pd.DataFrame(w["X"], columns=list("abcd"))
    first = np.argsort(w["codes"], kind="stable")
    blocks, sizes = w["X"][first], np.bincount(w["codes"])
    at = pd.MultiIndex.from_arrays([w["qid"], np.arange(len(frame))], names=["qid", "row"])
    return {
        "qid": (w["X"], {"qid": w["qid"]}), "list": (w["X"].tolist(), {"qid": w["qid"].tolist()}),
        "group": (blocks, {"group": sizes}), "short group": (blocks, {"group": sizes[:-1]}),
        "column": (frame.assign(qid=w["qid"]), {}), "index": (frame.set_index(at), {}), "none": (w["X"], {}),
        "groups": (w["X"], {"groups": w["codes"] // 2, "qid": w["qid"]}), "only groups": (w["X"], {"groups": w["qid"]}),
        "cut groups": (w["X"], {"groups": np.arange(len(frame)) % 3, "qid": w["qid"]}),
        "two that differ": (frame.assign(qid=w["qid"]), {"qid": w["qid"][::-1]}),
    }  # fmt: skip


# --- splitters ------------------------------------------------------------------------------------------------------
def splitters(w: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Return makers of splitters by name, right ones and wrong ones."""
    ids = sorted(set(w["qid"].tolist()))
    days = {q: f"2024-05-{1 + 7 * i % 27:02d}" for i, q in enumerate(ids)}
    rows = np.array([days[q] for q in w["qid"].tolist()])
    thirds = [(ids[:i] + ids[i + 2 :], ids[i : i + 2]) for i in range(0, len(ids) - 1, 2)]
    table: dict[str, tuple[Any, list[dict[str, Any]]]] = {
        "QueryKFold": (rk.QueryKFold, [
            {}, *({"n_splits": n, "shuffle": n > 2, "random_state": r} for n, r in product((2, 3, 6, 20), (None, 0, 9))
                  if (n > 2) == (r is not None)),
            {"n_splits": 1}, {"n_splits": 2.5}, {"n_splits": "3"}, {"n_splits": True}]),
        "RepeatedQueryKFold": (rk.RepeatedQueryKFold, [
            *({"n_splits": n, "n_repeats": r, "random_state": s} for n, r, s in product((2, 3), (1, 2, 3), (0, 5))),
            {"n_repeats": 0}, {"n_splits": 1}]),
        "StratifiedQueryKFold": (rk.StratifiedQueryKFold, [
            {"n_splits": 2}, {"n_splits": 3, "shuffle": True, "random_state": 1}, {"n_splits": 2, "stratum": len},
            {"n_splits": 3, "stratum": np.max}, {"n_splits": 2, "key": {q: i % 2 for i, q in enumerate(ids)}},
            {"n_splits": 2, "key": w["codes"] % 3}, {"n_splits": 2, "key": pd.Series(w["codes"] % 2)},
            {"n_splits": 2, "key": np.arange(len(rows))}, {"key": "x"}, {"stratum": 3}, {"stratum": len, "key": days},
            {"n_splits": 2, "key": {ids[0]: 1}}, {"random_state": 3}]),
        "QueryShuffleSplit": (rk.QueryShuffleSplit, [
            {"n_splits": n, "test_size": t, "train_size": a, "random_state": s}
            for n, (t, a), s in product((1, 3), ((None, None), (0.3, None), (2, 3), (None, 0.5), (99, None), ("x",
                None)),
                                        (0, 4))]),
        "QueryTimeSplit": (rk.QueryTimeSplit, [
            {"n_splits": n, "times": t} for n, t in product((2, 3, 9), (None, days, rows, pd.to_datetime(rows)))] + [
            {"n_splits": 2, "times": days, "gap": 1}, {"n_splits": 2, "times": days, "max_train_size": 2},
            {"n_splits": 2, "times": days, "test_size": 1}, {"n_splits": 2, "gap": 2}, {"n_splits": 2, "times": "a"},
            {"n_splits": 2, "times": w["codes"]}, {"times": {ids[0]: 1}, "n_splits": 2}, {"n_splits": 1}]),
        "PredefinedFolds": (rk.PredefinedFolds, [
            {"folds": thirds}, {"folds": [(ids[:3], ids[3:])]}, {"folds": [(map(str, ids[2:]), map(str, ids[:2]))]},
            {"folds": []}, {"folds": [(ids, [])]}, {"folds": [(ids[:3], ids[2:])]}, {"folds": [(ids[:2], ["no"])]}]),
        "QuerySplit": (rk.QuerySplit, [
            {"splitter": s, "order": o} for s, o in product(
                (LeaveOneOut(), GroupKFold(2), TimeSeriesSplit(2), KFold(3, shuffle=True, random_state=2),
                 StratifiedShuffleSplit(2, test_size=0.5, random_state=0), PredefinedSplit([0, 1, 0, 1, 0, 1])),
                ("id", "row"))] + [
            {"splitter": 3}, {"splitter": KFold(2), "order": "x"}, {"splitter": KFold(2), "stratum": len}]),
    }  # fmt: skip
    return {
        f"{name} {place}": partial(make, **options)
        for name, (make, found) in table.items()
        for place, options in enumerate(found)
    }


def split(make: Callable[[], Any], X: Any, y: Any, given: dict[str, Any]) -> Any:
    cv = make()
    parts = [(train, test) for train, test in cv.split(X, y, **given)]
    return {"parts": parts, "number": cv.get_n_splits(X, y, **given), "said": re.sub(r"0x\w+", "", repr(cv))}


def of_split(parts: Any) -> Any:
    facts = {"dev": of_data(parts.dev), "test": of_data(parts.test), "salt": parts.salt, "size": parts.test_size}
    return facts | {"from": str(parts.test_from), "test": parts.registered and of_test(parts.registered)}


def folds_read(w: dict[str, Any], **options: Any) -> Any:
    data = [f"{y + 1} qid:{c} " + " ".join(f"{i + 1}:{v:g}" for i, v in enumerate(x)) + "\n"
            for y, c, x in zip(w["y"], w["codes"], w["X"], strict=True)]  # fmt: skip
    for fold, (place, part) in product((1, 2), enumerate(("train", "vali", "test"))):
        Path(f"Fold{fold}").mkdir(exist_ok=True)
        own = [line for line, c in zip(data, w["codes"], strict=True) if (c + fold) % 3 == place]
        Path(f"Fold{fold}/{part}.txt").write_text("".join(own))
    cv = rk.PredefinedFolds.read(".", **options)
    return split(lambda: cv, w["X"], w["y"], {"qid": w["codes"]})


def splits() -> Iterator[Call]:
    for seed in range(5):
        w = world(seed)
        for name, make in splitters(w).items():
            yield f"split/{name}/world {seed}", partial(split, make, w["X"], w["y"], {"qid": w["qid"]})
        for how, (X, given) in ways(w).items():
            for name in ("QueryKFold 1", "StratifiedQueryKFold 0", "QueryTimeSplit 0", "QueryShuffleSplit 2"):
                make = splitters(w)[name]
                yield f"split/{name} by {how}/world {seed}", partial(split, make, X, w["y"], given)
            more = {key: value for key, value in given.items() if key != "groups"}
            cut = partial(rk.dev_test_split, X, w["y"], test_size=0.4, **more)
            yield f"dev_test_split/by {how}/world {seed}", lambda cut=cut: of_split(cut())
        days = {q: f"2024-05-{1 + i:02d}" for i, q in enumerate(np.unique(w["qid"]).tolist())}
        for options in (
            {}, {"test_size": 0.2}, {"test_size": 0.5}, {"test_size": 0.5, "salt": "a"}, {"test_size": 0.5,
            "salt": "b"},
            {"test_size": 0}, {"test_size": 1.5}, {"docid": w["docid"], "test_size": 0.5}, {"test_size": 0.5,
            "test_name": "t"},
            {"times": days, "test_from": "2024-05-04"}, {"times": w["codes"], "test_from": 3}, {"times": days},
            {"times": days, "test_from": 3}, {"times": days, "test_from": "2025-01-01"}, {"test_from": 3, "salt": "x"},
        ):  # fmt: skip
            call = partial(rk.dev_test_split, w["X"], w["y"], qid=w["qid"], **options)
            words = ", ".join(f"{k}={v!r:.20}" for k, v in options.items() if k != "docid") + " d" * (
                "docid" in options
            )
            yield f"dev_test_split/{words}/world {seed}", lambda call=call: of_split(call())
        for options in ({}, {"train": ["train"]}, {"train": ["vali"], "test": ["test", "train"]}, {"train": ["x"]}):
            yield f"PredefinedFolds.read/{options}/world {seed}", partial(folds_read, w, **options)
        n = len(w["y"])
        for name, parts in {
            "plain": {}, "docid": {"docid": w["docid"]}, "names": {"feature_names": tuple("abcd"), "name": "n"},
            "frame": {"X": pd.DataFrame(w["X"])}, "short y": {"y": w["y"][:-1]}, "list": {"X": w["X"].tolist()},
            "nan": {"y": np.where(np.arange(n) == 1, np.nan, 1.0)}, "no id": {"qid": [None] * n},
            "inf": {"y": [np.inf] * n},
        }.items():  # fmt: skip
            make = partial(rk.RankingData, **{"X": w["X"], "y": w["y"], "qid": w["qid"]} | parts)
            yield f"RankingData/{name}/world {seed}", lambda make=make: of_data(make())
            for rows in (slice(3), np.arange(n) % 2 == 0, [n - 1, 0], [n]):
                taken = np.arange(n)[rows] if isinstance(rows, slice) else rows
                key = f"RankingData/{name}, take {str(rows)[:9]}/world {seed}"
                yield key, lambda make=make, taken=taken: of_data(make().take(taken, name="part"))


# --- cross-validation, scorers, rankers -----------------------------------------------------------------------------
def booster(kind: str, n: int = 4, **options: Any) -> Any:
    if kind == "LightGBM":
        from lightgbm import LGBMRanker

        return LGBMRanker(n_estimators=n, num_leaves=4, min_child_samples=2, n_jobs=1, verbose=-1, **options)
    from xgboost import XGBRanker

    return XGBRanker(n_estimators=n, max_depth=2, n_jobs=1, **options)


def search(measure: Any = "AP", refit: Any = True) -> Any:
    ranker, grid = rk.QueryRanker(Ridge()), {"estimator__alpha": [0.01, 100.0]}
    return GridSearchCV(ranker, grid, cv=rk.QueryKFold(2), scoring=rk.make_scorer(measure), refit=refit)


def cv_options(w: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of a cross-validation by name."""
    by_query = 1.0 + w["codes"] % 3
    other = world(50)
    table: dict[str, dict[str, Any]] = {f"measures={m}": {"measures": m} for m in (
        "AP", "nDCG@10", "ARP", ("P@3", "RR"), "nDCG(gain='exp')@3", "bpref", "ERR(max_rel=3)@5", "ERR@5", "nope", [],
    )}  # fmt: skip
    cvs = (2, rk.QueryKFold(3, shuffle=True, random_state=1), rk.RepeatedQueryKFold(2, n_repeats=2, random_state=0),
           rk.QueryShuffleSplit(2, test_size=0.3, random_state=0), KFold(2), rk.StratifiedQueryKFold(2), 1, 40, "x",
           rk.QueryTimeSplit(2, times=w["codes"]))  # fmt: skip
    table |= {f"cv={place}": {"cv": cv} for place, cv in enumerate(cvs)}
    table |= {f"convention={name}": {"convention": name} for name in (*PRESETS, "no")}
    table |= {f"{k}={v}": {k: v} for k, v in (
        ("ties", "worst"), ("ties", "best"), ("ties", "docid"), ("ties", "stable"), ("ties", "no"), ("missing", "zero"),
        ("no_relevant", "one"), ("no_relevant", "skip"), ("judgments", "qrels"), ("n_jobs", 1), ("name",
        "n"))}  # fmt: skip
    return table | {
        "docid": {"ties": "docid", "docid": w["docid"]}, "groups": {"groups": w["codes"] // 2, "cv": 2},
        "weights": {"sample_weight": by_query}, "weights by row": {"sample_weight": 1.0 + np.arange(len(w["y"])) % 2},
        "negative weights": {"sample_weight": -by_query}, "estimators": {"return_estimators": True},
        "eval_set": {"eval_set": (other["X"], other["y"]), "eval_qid": [f"v{c}" for c in other["codes"]]},
        "eval_set shared": {"eval_set": (w["X"][:9], w["y"][:9]), "eval_qid": w["qid"][:9]},
        "defaults": {"measures": M3, "cv": 3},
    }  # fmt: skip


def validated(
    w: dict[str, Any], estimator: Any, *, run: Any = rk.cross_validate, told: Any = of_cv, **options: Any
) -> Any:
    given = {"X": w["X"], "y": w["y"], "qid": w["qid"], "measures": ["AP", "nDCG@5"], "cv": 3} | options
    return told(today(run, estimator, given.pop("X"), given.pop("y"), **given))


def of_curve(curve: Any) -> Any:
    return {"table": without_seconds(curve.table), "mean": curve.mean().iloc[:, :-2], "said": repr(curve)}


def versus(w: dict[str, Any], cv: Any, question: Any, **options: Any) -> Any:
    rivals = {"flat": Ridge(1e6), "plain": Ridge(1.0), "line": LinearRegression()}
    made = rk.cross_validate(rivals, w["X"], w["y"], qid=w["qid"], measures=["AP", "RR"], cv=cv)
    two = renamed(made["flat"].compare, made["plain"], like=rk.compare, question=question, **options)
    all_ = renamed(made.compare, like=rk.compare, question=question, baseline="flat", **options)
    return [{"table": one.table, "notes": one.notes, "headline": one.headline} for one in (two, all_)]


def scored(w: dict[str, Any], how: str, measures: Any, **options: Any) -> Any:
    """Use a scorer in one of scikit-learn's ways."""
    scorer = rk.make_scorer(measures, **options)
    cv, ranker = rk.QueryKFold(3), rk.QueryRanker(Ridge())
    X, y, qid = w["X"], w["y"], w["qid"]
    if how == "direct":
        fitted = Ridge().fit(X, y)
        return scorer(fitted, X, y, qid=qid), of_evaluation(scorer.evaluate(fitted, X, y, qid=qid))
    if how == "no ids":
        return scorer(Ridge().fit(X, y), X, y)
    if how == "weights":
        return today(scorer, Ridge().fit(X, y), X, y, qid=qid, sample_weight=1.0 + w["codes"] % 2)
    if how == "column":
        frame = pd.DataFrame(X, columns=list("abcd")).assign(qid=qid)
        found = cross_validate(ranker, frame, y, cv=cv, scoring=scorer)
        return {key: value for key, value in found.items() if "time" not in key}
    with config_context(enable_metadata_routing=True):
        if how == "search":
            grid = {"estimator__alpha": [0.01, 1e4]}
            refit = True if isinstance(measures, str) else measures[0]
            found = GridSearchCV(ranker, grid, cv=cv, scoring=scorer, refit=refit).fit(X, y, qid=qid)
            return (
                {k: v for k, v in found.cv_results_.items() if "time" not in k},
                found.best_params_,
                found.best_score_,
            )
        if how == "cut":
            return cross_val_score(ranker, X, y, cv=3, scoring=scorer, params={"qid": qid})
        return cross_val_score(ranker, X, y, cv=cv, scoring=scorer, params={"qid": qid})


def ranked(
    w: dict[str, Any], estimator: Any, how: str = "qid", fit: dict[str, Any] | None = None, **options: Any
) -> Any:
    X, given = ways(w)[how]
    y = w["y"][np.argsort(w["codes"], kind="stable")] if "group" in given else w["y"]
    ranker = today(rk.QueryRanker(estimator, **options).fit, X, y, **given, **(fit or {}))
    facts = {"scores": ranker.predict(X), "said": repr(ranker), "n": ranker.n_features_in_}
    facts |= {"rounds": ranker.n_iterations_, "best": ranker.validation_score_}
    score = {key: value for key, value in given.items() if key in {"qid", "group"}}
    return facts | {"score": ranker.score(X, y, **score)}


def tuned(w: dict[str, Any], measure: str, space: Any, **options: Any) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    objective = today(rk.optuna_objective, Ridge(), space, w["X"], w["y"], qid=w["qid"], measure=measure, **options)
    study = optuna.create_study(direction=objective.direction, sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=3)
    trials = [(one.params, one.value, one.intermediate_values, one.user_attrs) for one in study.trials]
    return {
        "trials": trials,
        "said": repr(objective),
        "best": objective.ranker(study.best_trial).estimator.get_params(),
    }


def trained(w: dict[str, Any], kind: str, measures: Any, convention: str, weighted: bool) -> Any:
    order = np.argsort(w["codes"], kind="stable")
    X, y, sizes = w["X"][order], np.maximum(w["y"][order], 0), np.bincount(w["codes"])
    weights = 1.0 + np.arange(w["n"]) % 2 if weighted else None
    if kind == "LightGBM":
        import lightgbm

        seen: dict[str, Any] = {}
        feval = rk.lightgbm_feval(measures, convention=convention)
        data = lightgbm.Dataset(X, y, group=sizes, weight=None if weights is None else np.repeat(weights, sizes))
        settings = {"objective": "lambdarank", "metric": "None", "num_threads": 1, "verbose": -1, "min_data_in_leaf": 2}
        told = [lightgbm.record_evaluation(seen)]
        lightgbm.train(settings, data, 3, valid_sets=[data], valid_names=["s"], feval=feval, callbacks=told)
        return {"seen": {k: dict(v) for k, v in seen.items()}, "said": repr(feval), "more": feval.maximize}
    import xgboost

    matrix = xgboost.DMatrix(X, y, group=sizes, weight=weights)
    metric, seen = rk.xgboost_metric(measures, convention=convention), {}
    settings = {"objective": "rank:ndcg", "nthread": 1, "disable_default_eval_metric": 1, "max_depth": 2}
    xgboost.train(
        settings, matrix, 3, evals=[(matrix, "s")], custom_metric=metric, evals_result=seen, verbose_eval=False
    )
    return {"seen": {k: dict(v) for k, v in seen.items()}, "said": repr(metric), "more": metric.maximize}


def models() -> Iterator[Call]:
    for seed in range(1, 5):
        w = world(seed)
        for name, options in cv_options(w).items():
            yield f"cross_validate/{name}/world {seed}", partial(validated, w, Ridge(), **options)
        for how, (X, given) in ways(w).items():
            call = partial(validated, w, Ridge(), X=X, **{"qid": None} | given)
            yield f"cross_validate/by {how}/world {seed}", call
        for name, one in {
            "mapping": {"a": Ridge(), "b": LinearRegression()}, "empty": {}, "search": search(),
            "ranker": rk.QueryRanker(Ridge()),
            "search of two": search(["AP", "RR"], "RR"), "pipeline": make_pipeline(StandardScaler(), Ridge()),
            "classifier": LogisticRegression(), "no estimator": 3,
        }.items():  # fmt: skip
            yield f"cross_validate/{name}/world {seed}", partial(validated, w, one)
        for sizes, measures, rng in product(((0.5, 1.0), (2, 3), (99,)), ("AP", ["RR", "nDCG@3"]), (0, 1)):
            call = partial(
                validated, w, Ridge(), run=rk.learning_curve, told=of_curve, sizes=sizes, rng=rng, measures=measures
            )
            yield f"learning_curve/{sizes} {measures} rng={rng}/world {seed}", call
        for name in ("groups", "weights", "convention=sklearn", "ties=worst", "cv=1", "cv=3", "eval_set"):
            call = partial(validated, w, Ridge(), run=rk.learning_curve, told=of_curve, sizes=(0.5, 1.0))
            yield f"learning_curve/{name}/world {seed}", partial(call, **cv_options(w)[name])
        for question, options in product(("algorithms", "models", "other", None), (
            {}, {"alpha": 0.1}, {"correction": "none"}, {"family": "measure"}, {"measures": "AP"},
            {"claim": "not_worse", "margin": 0.05}, {"claim": "better"}, {"claim": "equivalent", "margin": 0.2},
        )):  # fmt: skip
            if (question in {"algorithms", "models"} or not options) and seed < 3:
                cv = rk.RepeatedQueryKFold(2, n_repeats=2, random_state=0)
                yield (
                    f"CrossValidations.compare/{question} {options}/world {seed}",
                    partial(versus, w, cv, question, **options),
                )
        for how, measures in product(
            ("direct", "no ids", "weights", "column", "search", "cut", "cross_val_score"),
            ("nDCG@5", "ARP", ["AP", "RR"], ["AP"]),
        ):
            if how not in {"cut", "cross_val_score"} or isinstance(measures, str):
                yield f"make_scorer/{how} {measures}/world {seed}", partial(scored, w, how, measures)
        for options in ({"ties": "worst"}, {"convention": "sklearn"}, {"convention": "no"}, {"no_relevant": "skip"},
                        {"response_method": "predict"}, {"response_method": "no"}, {"name": "n"}, {"missing": "zero"},
                        {"qid": w["qid"]}, {"qid": w["qid"], "y": w["y"]}, {"y": w["y"]},
                        {"judgments": "x"}):  # fmt: skip
            words = ", ".join(f"{k}={v}" if isinstance(v, str) else k for k, v in options.items())
            yield f"make_scorer/{words}/world {seed}", partial(scored, w, "direct", "AP", **options)
        for how in ways(w):
            yield f"QueryRanker/by {how}/world {seed}", partial(ranked, w, Ridge(), how)
        part = world(50)
        beside = {"eval_set": (part["X"], np.maximum(part["y"], 0)), "eval_qid": [f"v{c}" for c in part["codes"]]}
        positive = w | {"y": np.maximum(w["y"], 0)}
        for kind in ("LightGBM", "XGBoost"):
            for name, options in {
                "plain": {}, "early": {"early_stopping_rounds": 2, "validation_fraction": 0.4},
                "beside": {"fit": beside},
                "early, AP": {"early_stopping_rounds": 2, "eval_measure": "AP", "fit": beside},
                "early, ARP": {"early_stopping_rounds": 1, "eval_measure": "ARP", "validation_fraction": 0.4},
                "weights": {"fit": {"sample_weight": 1.0 + w["codes"] % 2}}, "presets": {"early_stopping_rounds": 1,
                "eval_convention": "sklearn", "validation_fraction": 0.5}, "bad fraction": {"validation_fraction": 2},
            }.items():  # fmt: skip
                yield f"QueryRanker/{kind} {name}/world {seed}", partial(ranked, positive, booster(kind), **options)
            yield f"cross_validate/{kind}/world {seed}", partial(validated, positive, booster(kind))
            for measures, convention, weighted in product(
                ("AP", ["nDCG@3", "RR"], "ARP", "x"), ("rankeval", "sklearn"), (0, 1)
            ):
                call = partial(trained, w, kind, measures, convention, bool(weighted))
                yield f"feval/{kind} {measures} {convention} weights {weighted}/world {seed}", call
        for name, one, options in (
            ("classifier", LogisticRegression(), {}), ("pipeline", make_pipeline(StandardScaler(), Ridge()), {}),
            ("weights", Ridge(), {"fit": {"sample_weight": np.arange(len(w["y"])) % 3 + 1.0}}), ("none", None, {}),
            ("rounds", Ridge(), {"early_stopping_rounds": 2}), ("short", Ridge(), {"fit": {"sample_weight": [1.0]}}),
            ("single", Ridge(), {"single_query": True, "how": "none"}),
        ):  # fmt: skip
            yield f"QueryRanker/{name}/world {seed}", partial(ranked, w, one, **options)
        for measure, space in product(
            ("AP", "ARP", "no"), ({"alpha": [0.1, 1e3]}, {"beta": [1]}, {"alpha": (1, 2)}, 3)
        ):
            yield f"optuna_objective/{measure} {space}/world {seed}", partial(tuned, w, measure, space, cv=3)
        for name in ("groups", "weights", "ties=worst", "convention=sklearn", "cv=3"):
            options = {"cv": 2} | cv_options(w)[name]
            yield f"optuna_objective/{name}/world {seed}", partial(tuned, w, "RR", {"alpha": [0.1, 9.0]}, **options)


# --- the guard, each call in a process of its own -------------------------------------------------------------------
def apart(works: Mapping[str, Callable[[], Any]], *, ledger: str = "ledger") -> Iterator[Call]:
    """Yield calls whose work is done together, one after the other, in a forked process with a ledger of its own."""

    @cache
    def done() -> dict[str, Any]:
        here, there = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of forks beside threads
            child = os.fork()
        if child == 0:
            gc.disable()  # it would touch, and so copy, all pages of the parent
            try:
                os.environ |= {"RANKEVAL_LEDGER": ledger, "RANKEVAL_WHO": "ann"}
                os.environ.pop("CI", None)
                with os.fdopen(there, "wb") as pipe:
                    pipe.write(pickle.dumps({key: _done(work) for key, work in works.items()}))
            finally:
                os._exit(0)
        os.close(there)
        with os.fdopen(here, "rb") as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        return pickle.loads(text)

    def call(key: str) -> Any:
        value, error, told = done()[key]
        for category, words in told:
            warnings.warn(words, category, stacklevel=1)
        if error is not None:
            raise error
        return value

    return ((key, partial(call, key)) for key in works)


def _done(work: Callable[[], Any]) -> tuple[Any, BaseException | None, list[tuple[type, str]]]:
    value, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = plain(work())
        except (Exception, rk.errors.Refusal) as found:
            error = type(found)(plain(str(found)))
    return value, error, [(one.category, piece) for one in caught for piece in pieces(str(one.message))]


def pieces(text: str) -> list[str]:
    return textwrap.wrap(plain(text), 180, break_on_hyphens=False)


def plain(value: Any) -> Any:
    """Take dates, heads and the folder of the call out of all texts."""
    if isinstance(value, str):
        text = value.replace(str(Path.cwd()), "<here>")
        text = re.sub(r"\b20\d\d-\d\d-\d\d(T[\d:+]+)?", "<date>", text)
        return re.sub(r"\b(at|was|than|head|entry) [0-9a-f]{12}([0-9a-f]{52})?(\+[0-9a-f]+)*\b", r"\1 <head>", text)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, pd.DataFrame):
        return value.map(plain)
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def refusal(work: Callable[[], Any]) -> Any:
    """Return what a guarded step gives, or the fields of its refusal, whose words are told as warnings."""
    try:
        return work()
    except rk.errors.GuardRefusal as refused:
        for piece in pieces(str(refused)):
            warnings.warn(piece, stacklevel=1)
        facts = {name: getattr(refused, name) for name in ("collection", "project", "ledger")}
        found = str(refused).startswith(refused.found)
        return {"refused": type(refused).__name__, "queries": list(refused.queries), "found first": found} | facts
    except Exception as error:
        for piece in pieces(str(error)):
            warnings.warn(piece, stacklevel=1)
        return {"refused": type(error).__name__}


@cache
def collection(kind: str, seed: int = 0) -> Any:
    """Return a collection of a kind with as many queries and rows as its name says, and more queries like its own."""
    name, n_queries, n = kind.split()
    n_queries, n = int(n_queries), int(n)
    rng = np.random.default_rng([seed, n_queries, n])
    rows = 3 * n_queries * n
    X = {
        "floats": lambda: rng.normal(size=(rows, 5)), "decimals": lambda: rng.normal(size=(rows, 5)).round(2),
        "counts": lambda: np.column_stack([rng.poisson(3, (rows, 8)), rng.random((rows, 3)) < 0.2]).astype(float),
        "flags": lambda: (rng.random((rows, 8)) < 0.3).astype(float),
    }[name]()  # fmt: skip
    y = np.digitize(X[:, 0] - X[:, 0].mean() + rng.normal(size=rows), [0.4, 1.2, 2.0])
    qid, docid = np.arange(rows) // n + 1, np.array([f"doc{i}" for i in rng.permutation(rows)])
    return rk.RankingData(X, y, qid, docid)


def parts(kind: str) -> tuple[Any, Any]:
    """Return the test collection of a kind, and the other queries."""
    data = collection(kind)
    is_test = data.qid <= int(kind.split()[1])
    return data.take(is_test), data.take(~is_test)


def entries(folder: str | Path) -> list[str]:
    """Return the entries of a ledger in their order, without times; the hash of one is told as its number."""
    found = {file.stem: json.loads(file.read_text()) for file in Path(folder).glob("*.json")}
    order: list[str] = []
    while len(order) < len(found):
        ready = [n for n, e in found.items() if n not in order and all(p in order for p in e["parents"])]
        order += sorted(
            ready, key=lambda n: json.dumps({k: v for k, v in found[n].items() if k not in {"time", "parents"}})
        )
    texts = []
    for name in order:
        text = json.dumps({key: one for key, one in found[name].items() if key != "time"})
        for place, other in enumerate(order):
            text = text.replace(other, f"entry {place}")
        text = re.sub(r'("everywhere": )"[^"]+"', r'\1"<file>"', text)  # a file that holds hashes of entries
        texts.append(plain(json.dumps(json.loads(text), sort_keys=True)))
    return texts


def files(folder: str) -> list[str]:
    """Return the names of the other files, which are hashes of their content."""
    left_out = {json.loads(file.read_text())["body"].get("everywhere") for file in Path(folder).glob("*.json")}
    return sorted({str(one.relative_to(folder)) for one in Path(folder).rglob("*.bin")} - left_out)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "same": lambda d: (d.X, d.y, d.qid), "ids renamed": lambda d: (d.X, d.y, np.array([f"t{q}" for q in d.qid])),
    "shuffled": lambda d: tuple(p[np.random.default_rng(0).permutation(len(d))] for p in (d.X, d.y, d.qid)),
    "ids permuted": lambda d: (d.X, d.y, d.qid.max() + 1 - d.qid), "two decimals": lambda d: (d.X.round(2), d.y, d.qid),
    "whole numbers": lambda d: (d.X.round(), d.y, d.qid + 900), "float32": lambda d: (d.X.astype(np.float32), d.y,
    d.qid + 900),
    "scaled": lambda d: (7 * d.X - 3, d.y, d.qid + 900), "monotone": lambda d: (np.exp(d.X / 4), d.y, d.qid + 900),
    "columns reversed": lambda d: (d.X[:, ::-1], d.y, d.qid + 900), "column less": lambda d: (d.X[:, 1:], d.y,
    d.qid + 900),
    "column more": lambda d: (np.column_stack([d.X, d.X[:, 0] ** 2]), d.y, d.qid + 900),
    "labels alone": lambda d: (np.random.default_rng(5).normal(size=d.X.shape), d.y, d.qid + 900),
    "ids and labels": lambda d: (np.random.default_rng(5).normal(size=d.X.shape), d.y, d.qid),
    "ids alone": lambda d: (np.random.default_rng(5).normal(size=d.X.shape), np.random.default_rng(6).permutation(d.y),
    d.qid),
    "other labels": lambda d: (d.X, np.random.default_rng(6).permutation(d.y), d.qid + 900),
    "binary labels": lambda d: (d.X, (d.y > 1).astype(int), d.qid + 900),
    "labels mapped, scaled": lambda d: (d.X * 3, 10 - 2 * d.y, d.qid + 900),
    "row less each": lambda d: tuple(p[np.append(True, d.qid[1:] == d.qid[:-1])] for p in (d.X, d.y, d.qid)),
    "one query": lambda d: some(d, 1), "two queries": lambda d: some(d, 2), "three queries": lambda d: some(d, 3),
    "five queries": lambda d: some(d, 5), "half": lambda d: some(d, d.n_queries // 2),
    "half, scaled": lambda d: tuple(p * k + c for p, k, c in zip(some(d, d.n_queries // 2), (2, 1, 1), (0, 0, 900),
    strict=True)),
    "none": lambda d: some(d, 0),
}  # fmt: skip
ACTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "evaluate": lambda X, y, q: rk.evaluate(y, X[:, 0], qid=q, measures=M3).aggregate(),
    "evaluate frame": lambda X, y, q: rk.evaluate(
        pd.DataFrame({"s": X[:, 1], "y": y, "q": q}), qid="q", relevance="y", score="s", measures="AP").aggregate(),
    "cross_validate": lambda X, y, q: rk.cross_validate(Ridge(), X, y, qid=q, cv=2,
    measures="AP").evaluation.aggregate(),
    "fit": lambda X, y, q: rk.QueryRanker(Ridge()).fit(X, y, qid=q).predict(X[:3]),
    "scorer": lambda X, y, q: rk.make_scorer("AP")(Ridge().fit(X, y), X, y, qid=q),
    "search": lambda X, y, q: cross_val_score(
        Ridge(), pd.DataFrame(X, [f"r{i}" for i in range(len(q))]), y, cv=KFold(2),
        scoring=rk.make_scorer("AP", qid=pd.Series(q, [f"r{i}" for i in range(len(q))]))),
    "learning_curve": lambda X, y, q: rk.learning_curve(Ridge(), X, y, qid=q, cv=2, sizes=[1.0],
    measures="AP").mean()["AP"],
    "optuna_objective": lambda X, y, q: repr(rk.optuna_objective(Ridge(), {"alpha": [1]}, X, y, qid=q, cv=2,
    measure="AP")),
    "status": lambda X, y, q: of_status(rk.Guard("other").status(X, y, qid=q)),
    "status of labels": lambda _, y, q: of_status(rk.Guard("other").status(y=y, qid=q)),
}  # fmt: skip


def some(data: Any, n: int) -> tuple[Any, Any, Any]:
    rows = data.qid <= n
    return data.X[rows], data.y[rows], data.qid[rows]


@cache
def kept(kind: str) -> dict[str, bytes]:
    """Return the files of a ledger in which the test collection of a kind is registered."""

    def work() -> dict[str, bytes]:
        rk.Guard("ours").register("test", parts(kind)[0])
        return {str(one.relative_to("ledger")): one.read_bytes() for one in Path("ledger").rglob("*") if one.is_file()}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return next(apart({"": work}))[1]()


def registered(kind: str) -> None:
    """Lay the ledger of a kind into the folder of the call."""
    for name, content in kept(kind).items():
        Path("ledger", name).parent.mkdir(parents=True, exist_ok=True)
        Path("ledger", name).write_bytes(content)


def ledger() -> Any:
    """Tell the entries of the ledger of the call, and the names of its other files."""
    return {"entries": entries("ledger"), "files": files("ledger")}


def met(kind: str, change: str, action: str, *, beside: bool) -> Any:
    """Meet the registered collection in another form, alone or after the rows of other queries."""
    registered(kind)
    test, other = parts(kind)
    X, y, q = CHANGES[change](test)
    if beside and X.shape[1] == other.X.shape[1]:
        q = (
            np.append([f"o{one}" for one in other.qid], q.astype(str))
            if q.dtype.kind == "U"
            else np.append(other.qid + 9000, q)
        )
        X, y = np.vstack([other.X, X]), np.append(other.y, y)
    return refusal(lambda: ACTIONS[action](X, y, q))


def met_first(kind: str, k: int, *, renamed_ids: bool, beside: bool, action: str) -> Any:
    """Meet the first k rows of each registered query."""
    registered(kind)
    test, other = parts(kind)
    rows = np.arange(len(test)) % int(kind.split()[2]) < k
    X, y, q = test.X[rows], test.y[rows], test.qid[rows] + 10**6 * renamed_ids
    if beside:
        X, y, q = np.vstack([X, other.X]), np.append(y, other.y), np.append(q, other.qid + 9000)
    return refusal(lambda: ACTIONS[action](X, y, q))


def systems(data: Any, *weights: float) -> dict[str, Any]:
    return {f"s{w:g}": data.X[:, 0] + w * data.X[:, 1] for w in weights}


def freezing(data: Any) -> dict[str, dict[str, Any]]:
    """Return the options of a plan by name."""
    two, n = {"baseline": "s0"}, len(data)
    claims = product(("difference", "better", "not_worse", "equivalent", "no"), (0.0, 0.05, -0.1))
    folds = np.unique(data.qid, return_inverse=True)[1] % 3
    table = {f"claim={c} margin={m}": two | {"claim": c, "margin": m} for c, m in claims}
    table |= {
        f"measure={m}": two | {"measure": m} for m in ("AP", "RR", "P@3", "ARP", "ERR(max_rel=3)@5", "bpref", "no")
    }
    table |= {f"secondary={m}": two | {"secondary": m} for m in ("AP", ("AP", "RR"), "no", ())}
    table |= {f"convention={c}": two | {"convention": c} for c in (*PRESETS, "no")}
    table |= {f"{k}={v}": two | {k: v} for k, v in (
        ("alpha", 0.01), ("alpha", 0.2), ("alpha", 0), ("alpha", 0.7), ("n_resamples", 19), ("n_resamples", 9999),
        ("rng", 3),
        ("n_resamples", 0), ("baseline", "no"), ("fresh", True), ("queries", "old"))}  # fmt: skip
    table |= {f"folds={k}": two | {"systems": {"s0": Ridge(1e5), "s1": Ridge()}, "folds": v} for k, v in {
        "3": 3, "QueryKFold": rk.QueryKFold(2), "rows": folds, "cut": np.arange(n) % 3, "1": 1, "KFold": KFold(4),
        "pairs": [(np.flatnonzero(folds != i), np.flatnonzero(folds == i)) for i in range(3)]}.items()}  # fmt: skip
    flat = Ridge().fit(data.X[: n // 2], data.y[: n // 2])
    return table | {
        "one system": {"systems": systems(data, 1)}, "all pairs": {"systems": systems(data, 0, 1, 2)},
        "four": two | {"systems": systems(data, 0, 1, 2, 3)}, "same twice": two | {"systems": systems(data,
        0) | {"b": data.X[:, 0]}},
        "model": two | {"systems": systems(data, 0) | {"m": flat}}, "constant": two | {"systems": systems(data,
        0) | {"c": 0 * data.y}},
        "short": two | {"systems": systems(data, 0) | {"x": data.y[:-1]}}, "nan": two | {"systems": systems(data,
        0) | {"x": data.y * np.nan}},
        "none": {"systems": {}}, "one with baseline": two | {"systems": systems(data, 0)},
        "ideal": two | {"systems": systems(data, 0) | {"i": data.y}},
        "claim, four": two | {"systems": systems(data, 0, 1, 2, 3), "claim": "better"}, "plain": two,
    }  # fmt: skip


def frozen(guard: Any, test: Any, data: Any, options: dict[str, Any]) -> Any:
    return renamed(guard.freeze, test, **{"systems": systems(data, 0, 1), "n_resamples": 99} | options)


def opened(kind: str, name: str, seed: int) -> Any:
    """Freeze and open a plan, open it again, and tell the plan, the comparison and the looks."""
    data = parts(kind)[0]
    guard = rk.Guard("ours")
    test = guard.register("test", data)
    plan = frozen(guard, test, data, {"rng": seed} | freezing(data)[name])
    result = guard.open(plan)
    again = guard.open(plan.id)
    facts = {"test": of_test(test), "plan": of_plan(plan), "result": of_comparison(result), "notes": again.notes}
    facts["same"] = again.table.equals(result.table)
    return facts | {"looks": of_looks(guard, test), "whole": (guard.verify(), problems(guard))}


def of_looks(guard: Any, test: Any = None, **options: Any) -> Any:
    table = guard.looks(test, **options)
    return table.drop(columns="time"), table.attrs["elsewhere"], table.attrs["decisions"]


def registering(kind: str, name: str) -> Any:
    """Register a collection of some form, and after it a second one that is related to it."""
    data, other = parts(kind)
    first = {"X": data.X, "y": data.y, "qid": data.qid}
    texts = {int(q): f"what is {q} of {q * 7}" for q in np.unique(data.qid)}
    qrels = {
        f"q{q}": {f"d{q * 3 + r}": int(y) for r, y in enumerate(data.y[data.qid == q])} for q in np.unique(data.qid)
    }
    steps = {
        "plain": [{}], "again": [{}, {}], "docid": [{"docid": data.docid}], "texts": [{"queries": texts}],
        "no features": [{"X": None}], "no features but docid": [{"X": None, "docid": data.docid}], "data": [{"X": data,
        "y": None, "qid": None}],
        "effect": [{"effect": 0.05}], "effect, sd": [{"effect": 0.2, "sd": 0.1}], "no y": [{"y": None}],
        "no qid": [{"qid": None}],
        "group": [{"qid": None, "group": np.bincount(data.qid)[1:]}], "one label": [{"y": 0 * data.y}],
        "name": [{"name": " "}],
        "binary, scaled": [{}, {"X": 2 * data.X, "y": data.y > 1}], "few labels changed": [{},
        {"y": np.append(1 - data.y[:1] % 2, data.y[1:])}],
        "other features": [{}, {"X": data.X**3 + 5}], "other content": [{}, {"X": other.X, "y": other.y,
        "qid": other.qid}],
        "supersedes": [{}, {"X": other.X, "y": other.y, "qid": other.qid, "supersedes": "test"}],
        "supersedes none": [{"supersedes": "no"}],
        "other name": [{}, {"name": "two"}], "other project": [{}, {"project": "theirs"}], "half": [{},
        {"name": "half"} | dict(zip(first, some(data, data.n_queries // 2), strict=True))],
        "qrels": [dict.fromkeys(first) | {"qrels": qrels}], "qrels, texts": [dict.fromkeys(first) | {"qrels": qrels,
        "queries": {f"q{k}": v for k, v in texts.items()}}],
        "qrels beside": [{"qrels": qrels}], "repeated": [{"X": np.vstack([data.X, data.X[:30]]), "y": np.append(data.y,
        data.y[:30]), "qid": np.append(data.qid, data.qid[:30] + 500)}],
        "five": [dict(zip(first, some(data, 5), strict=True))], "one": [dict(zip(first, some(data, 1), strict=True))],
        "moved rows": [{}, {"name": "two", "qid": np.random.default_rng(0).permutation(data.qid)}], "renamed": [{},
        {"qid": data.qid + 100}],
    }[name]  # fmt: skip
    told = []
    for step in steps:
        given = {"name": "test"} | first | step
        guard = rk.Guard(given.pop("project", "ours"))
        told.append(refusal(lambda guard=guard, given=given: of_test(guard.register(**given))))
    return told


FORMS = (
    "plain", "again", "docid", "texts", "no features", "no features but docid", "data", "effect", "effect, sd", "no y",
    "no qid", "group", "one label", "name", "binary, scaled", "few labels changed", "other features", "other content",
    "supersedes", "supersedes none", "other name", "other project", "half", "qrels", "qrels, texts", "qrels beside",
    "repeated", "five", "one", "moved rows", "renamed",
)  # fmt: skip


def judged(kind: str, change: str) -> Any:
    """Meet a registered collection of judgments."""
    data, other = parts(kind)
    name = {int(q): f"q{q}" for q in np.unique(collection(kind).qid)}

    def qrels(rows: Any, to: Callable[[int], str], near: str = "") -> dict[str, dict[str, int]]:
        table: dict[str, dict[str, int]] = {}
        for q, d, y in zip(rows.qid.tolist(), rows.docid.tolist(), rows.y.tolist(), strict=True):
            table.setdefault(to(q), {})[near + d] = int(y)
        return table

    guard, whole = rk.Guard("ours"), qrels(data, name.get)
    test = guard.register("judged", qrels=whole)
    asked = {
        "same": whole, "renamed": qrels(data, lambda q: f"x{q}"), "documents renamed": qrels(data, name.get, "n"),
        "other": qrels(other, name.get),
        "one query": qrels(data.take(data.qid == 1), name.get), "half": qrels(data.take(data.qid < data.n_queries / 2),
        name.get),
        "binary": {q: {d: int(y > 1) for d, y in one.items()} for q, one in whole.items()},
        "all documents": whole | qrels(other, name.get),
        "some documents": {q: dict(list(one.items())[:2]) for q, one in whole.items()},
    }[change]  # fmt: skip
    run = {q: {d: float(len(d) * 7 % 5 + i) for i, d in enumerate(one)} for q, one in asked.items()}
    told = [
        refusal(lambda: rk.evaluate(asked, run, measures=M3).aggregate()),
        refusal(lambda: of_status(guard.status(qrels=asked))),
    ]
    runs = {
        f"r{s}": {q: {d: float((i * s) % 5) for i, d in enumerate(one)} for q, one in whole.items()} for s in (1, 2, 3)
    }
    plan = guard.freeze(test, systems={k: rk.Run.from_dict(v) for k, v in runs.items()}, baseline="r1", n_resamples=99)
    told += [
        of_plan(plan),
        of_comparison(guard.open(plan)),
        refusal(lambda: rk.evaluate(whole, runs["r2"], measures="AP").aggregate()),
    ]
    return [*told, of_looks(guard, test)]


STEPS = (
    "freeze",
    "open",
    "freeze",
    "open",
    "look",
    "status",
    "evaluate",
    "exempt",
    "register",
    "gate",
    "retire",
    "fit",
    "fresh",
)


def step_of(desk: dict[str, Any], step: str, project: str, draws: list[int]) -> Any:
    """Take one step of a history, and tell what it gave."""
    guard, test, data = desk[project], desk["tests"].get(project), desk["data"]
    rows = data.take(data.qid % (2 + draws[4] % 3) == 0)
    if step == "register" or (test is None and step not in {"status", "evaluate", "fit", "exempt", "look"}):
        form = (data, data, rows, desk["other"])[draws[5] % 4]
        before = test if draws[2] % 3 == 0 else None
        desk["tests"][project] = guard.register(("test", "more")[draws[3] % 2], form, supersedes=before)
        return of_test(desk["tests"][project])
    X = test.content.X if test is not None else data.X
    first, second = 1 + draws[2] % 5, 1 + draws[3] % 5
    scores = {f"s{w}": X[:, 0] + w * X[:, 1] for w in (0, first, second)}
    if step in {"freeze", "fresh"}:
        options = {"baseline": (None, "s0")[draws[5] % 2]}
        options["claim"] = "better" if draws[4] % 3 == 0 and options["baseline"] else "difference"
        plan = renamed(guard.freeze, test, systems=scores, n_resamples=99, fresh=step == "fresh", **options)
        desk["plans"].append((guard, plan))
        return of_plan(plan)
    if step == "open":
        mine = [plan for maker, plan in desk["plans"] if maker is guard]
        return of_comparison(guard.open(mine[draws[5] % len(mine)])) if mine else None
    if step == "gate":
        gate = guard.gate(test, baseline=X[:, 0], budget=3)
        return str(gate.decide("new", scores[f"s{first}"])), gate.remaining
    if step == "look":
        return of_looks(guard, None if draws[5] % 2 else "test", projects=("own", "all")[draws[4] % 2])
    if step == "exempt":
        return guard.exempt("ours/test", np.unique(rows.qid)[: 1 + draws[5] % 9].tolist(), "overlap")
    if step == "retire":
        return guard.retire(test, "done") if draws[5] % 3 == 0 else of_looks(guard, test)
    return ACTIONS[step](rows.X, rows.y, rows.qid)


def history(seed: int) -> Any:
    """Take steps at random, as two projects on one ledger, and tell what each gave."""
    rng = np.random.default_rng([seed, 99])
    data, other = parts(("floats 40 6", "counts 30 8", "decimals 60 5", "floats 8 5")[seed % 4])
    desk = {name: rk.Guard(name, who=who) for name, who in (("ours", "ann"), ("theirs", "bob"))}
    desk |= {"data": data, "other": other, "plans": [], "tests": {"ours": desk["ours"].register("test", data)}}
    told = []
    for _ in range(10):
        draws = rng.integers(0, 1 << 30, 6).tolist()
        step, project = STEPS[draws[0] % len(STEPS)], ("ours", "ours", "theirs")[draws[1] % 3]
        told.append((step, project, refusal(partial(step_of, desk, step, project, draws))))
    last = [refusal(partial(of_looks, desk[name], projects="all")) for name in ("ours", "theirs")]
    return told, last, desk["ours"].verify(), problems(desk["ours"])


def gated(kind: str, options: dict[str, Any], baseline: Any) -> Any:
    data = parts(kind)[0]
    guard = rk.Guard("ours")
    test = guard.register("test", data)
    base = {"x": data.X[:, 1], "-y": -data.y.astype(float), "none": None}[baseline]
    gate = guard.gate(test, baseline=base, **options)
    noise = np.random.default_rng(0).normal(size=(4, len(data)))
    tried = {"noise": noise[0], "same": base, "good": data.y + 0.5 * noise[1], "again": data.y + 0.5 * noise[1],
        "ideal": data.y,
             "short": data.y[:-1], "": data.y, "noise 2": noise[2], "noise 3": noise[3]}  # fmt: skip
    told = []
    for name, scores in tried.items():
        told.append(refusal(lambda n=name, s=scores: gate.decide(n, s)))
    facts = {"decisions": gate.decisions().drop(columns="time"), "left": gate.remaining, "baseline": gate.baseline}
    again = refusal(lambda: repr(guard.gate(test, **options)))
    other = refusal(lambda: repr(guard.gate(test, **options | {"budget": 7})))
    return told, facts, repr(gate), gate.detectable, again, other, of_looks(guard, test)


def released(kind: str, what: str, n: int) -> Any:
    """Exempt or retire, and meet the content again."""
    data = parts(kind)[0]
    guard, other = rk.Guard("ours"), rk.Guard("theirs")
    test, part = guard.register("test", data), data.take(data.qid <= n)
    give = {
        "exempt": lambda: guard.exempt(test, part.qid.tolist(), "overlap"),
        "exempt status": lambda: other.exempt("ours/test", guard.status(part), "w"),
        "exempt texts": lambda: other.exempt("test", [str(q) for q in part.qid], "w"),
        "exempt unknown": lambda: guard.exempt(test, ["no"], "w"),
        "exempt none": lambda: guard.exempt(test, [], "w"), "no reason": lambda: guard.exempt(test, [1], " "),
        "elsewhere": lambda: guard.exempt("no", [1], "w"),
        "retire": lambda: guard.retire("test", "old"), "retire no reason": lambda: guard.retire(test, ""),
        "retire others": lambda: other.retire("test", "x"),
        "retire twice": lambda: [guard.retire(test, "a"), guard.retire(test, "b")],
        "exempt retired": lambda: [guard.retire(test, "a"), guard.exempt(test, [1], "b")],
    }[what]  # fmt: skip
    told = [refusal(give)]
    for rows, action in product((part, data), ("status", "evaluate", "fit")):
        told.append(refusal(lambda rows=rows, action=action: ACTIONS[action](rows.X, rows.y, rows.qid)))
    told.append(refusal(lambda: of_comparison(guard.open(frozen(guard, test, data, {"baseline": "s0"})))))
    told.append(refusal(lambda: of_test(other.register("again", data))))
    return told, guard.verify()


def altered(kind: str, how: str) -> Any:
    """Alter, shorten, merge or export a ledger, and ask what is wrong with it."""
    data, more = parts(kind)
    guard = rk.Guard("ours")
    test = guard.register("test", data)
    head, plan = guard.head, frozen(guard, test, data, {"baseline": "s0"})
    if how != "unopened":
        guard.open(plan)
    named = sorted(
        Path("ledger").glob("*.json"), key=lambda one: json.loads(one.read_text())["kind"]
    )  # freeze, open, register
    copy = rk.Guard("theirs", ledger="copy.db" if "database" in how else "copy")
    steps = {
        "nothing": lambda: None, "unopened": lambda: None,
        "edit": lambda: named[0].write_text(named[0].read_text().replace("s1", "s2")),
        "delete first": named[-1].unlink, "delete open": named[1].unlink, "garbage": lambda: named[0].write_text("{"),
        "file gone": lambda: [one.unlink() for one in Path("ledger/signatures").glob("*")],
        "rankings gone": lambda: [one.unlink() for one in Path("ledger/rankings").glob("*")],
        "file altered": lambda: [one.write_bytes(b"x") for one in Path("ledger/signatures").glob("*")],
        "export": lambda: guard.export("copy"),
        "export to database": lambda: guard.export("copy.db"), "merge": lambda: (copy.register("mine", more),
        guard.merge("copy"))[1],
        "merge database": lambda: (copy.register("mine", more), guard.merge("copy.db"))[1],
        "merge twice": lambda: (guard.export("copy"), guard.merge("copy"), guard.export("copy")),
        "merge nothing": lambda: guard.merge("no"),
        "reindent": lambda: named[0].write_text(json.dumps(json.loads(named[0].read_text()), indent=3)),
    }[how]  # fmt: skip
    told = [
        refusal(steps),
        refusal(guard.verify),
        refusal(lambda: problems(guard)),
        refusal(lambda: guard.verify(head)),
        refusal(lambda: guard.verify("0" * 12)),
    ]
    told += [
        refusal(lambda: problems(guard, other="copy.db" if "database" in how else "copy")),
        refusal(lambda: of_looks(guard, test)),
    ]
    told += [refusal(lambda: guard.open(plan).notes), refusal(lambda: of_plan(guard.plan(plan.id[:6])))]
    told += [
        refusal(lambda: ACTIONS["evaluate"](data.X, data.y, data.qid)),
        refusal(lambda: of_looks(copy, projects="all")),
    ]
    texts = json.dumps(told, default=lambda one: one.to_json() if hasattr(one, "to_json") else repr(one))
    return re.sub(r"\b[0-9a-f]{12}([0-9a-f]{52})?\b", "<hash>", plain(texts))


def reopened(kind: str, rounding: float, seed: int) -> Any:
    """Evaluate rankings after an opening: those opened are free, others are refused."""
    data = parts(kind)[0]
    guard = rk.Guard("ours")
    guard.open(frozen(guard, guard.register("test", data), data, {"baseline": "s0"}))
    scores = systems(data, seed)[f"s{seed}"]
    rng = np.random.default_rng(0)
    order = rng.permutation(len(data))
    tried = {
        "same": scores,
        "monotone": np.exp(scores / 3),
        "rounded": scores.round(1),
        "noise": scores + rounding * rng.normal(size=len(data)),
    }
    told = {
        k: refusal(lambda s=s: rk.evaluate(data.y, s, qid=data.qid, measures=M3).aggregate()) for k, s in tried.items()
    }
    told["shuffled"] = refusal(
        lambda: rk.evaluate(data.y[order], scores[order], qid=data.qid[order], measures="P@3").aggregate()
    )
    half = data.qid % 2 == 0
    told["half"] = refusal(
        lambda: rk.evaluate(data.y[half], scores[half], qid=data.qid[half], measures="AP").aggregate()
    )
    return told


def elsewhere(kind: str, setting: str) -> Any:
    """Use a ledger that is named in one way or another, or switched off."""
    data = parts(kind)[0]
    ledger = {
        "own": "mine",
        "database": "sqlite:///mine.db",
        "file": "mine.sqlite",
        "memory": ":memory:",
        "mlflow": "mlflow",
    }.get(setting)
    guard = refusal(lambda: rk.Guard("ours", ledger=ledger))
    if isinstance(guard, dict):
        return guard, refusal(lambda: ACTIONS["evaluate"](data.X, data.y, data.qid))
    test = guard.register("test", data)
    told = [refusal(lambda a=a: ACTIONS[a](data.X, data.y, data.qid)) for a in ("evaluate", "fit", "status")]
    told.append(of_comparison(guard.open(frozen(guard, test, data, {"baseline": "s0"}))))
    guard.export("exported")
    return told, repr(guard), guard.ledger, entries("exported"), files("exported")


def guards() -> Iterator[Call]:
    for found in pkgutil.walk_packages(rk.__path__, "rankeval."):  # imported once, not in each process
        with contextlib.suppress(ImportError):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    before = os.environ.get("RANKEVAL_LEDGER")
    os.environ["RANKEVAL_LEDGER"] = "off"
    rk.cross_validate(Ridge(), world(0)["X"], world(0)["y"], qid=world(0)["qid"], cv=2)  # so is what a first call loads
    os.environ.pop("RANKEVAL_LEDGER") if before is None else os.environ.update(RANKEVAL_LEDGER=before)
    gc.freeze()
    kinds = ("floats 40 6", "counts 30 8", "decimals 12 10", "flags 20 6")
    for place, kind in enumerate(kinds):
        for change, beside in product(list(CHANGES)[:: 1 + place // 2], (False, True)[: 2 if place < 2 else 1]):
            actions = ACTIONS if place == 0 and not beside else ("status", "status of labels", "evaluate", "fit")
            at = f"{change}{' beside others' * beside}/{kind}"
            yield from apart({f"guard/{a}/{at}": partial(met, kind, change, a, beside=beside) for a in actions})
        for k, new, beside in product((1, 2, 3, 4, 5), (0, 1), (0, 1)):
            call = partial(met_first, kind, k, renamed_ids=bool(new), beside=bool(beside))
            at = f"first {k} rows, new ids {new}, beside {beside}/{kind}"
            if place % 2 == 0:
                yield from apart({f"guard/{a}/{at}": partial(call, action=a) for a in ("status", "evaluate", "fit")})
    for kind in ("floats 40 6", "counts 9 8", "decimals 5 6"):
        for name in list(freezing(parts(kind)[0]))[:: 1 if kind == kinds[0] else 2]:
            yield from apart(
                {
                    f"guard/plan {name}/{kind}": partial(opened, kind, name, 0),
                    f"guard/ledger of plan {name}/{kind}": ledger,
                }
            )
    for kind, name in [*product(("floats 60 6", "counts 20 8"), FORMS), *product(("flags 12 5",), FORMS[::2])]:
        yield from apart(
            {
                f"guard/register {name}/{kind}": partial(registering, kind, name),
                f"guard/ledger of register {name}/{kind}": ledger,
            }
        )
    for kind, change in product(("floats 30 6", "counts 8 5"), (
        "same", "renamed", "documents renamed", "other", "one query", "half", "binary", "all documents",
        "some documents")):  # fmt: skip
        yield from apart({f"guard/judgments {change}/{kind}": partial(judged, kind, change)})
    for seed in range(48):
        yield from apart({f"guard/history/{seed}": partial(history, seed), f"guard/ledger of history/{seed}": ledger})
    for place, (options, baseline) in enumerate(product((
        {"budget": 3}, {"budget": 1, "alpha": 0.1}, {"claim": "not_worse", "margin": 0.1}, {"claim": "not_worse"},
        {"measure": "AP", "budget": 5},
        {"measure": "ARP"}, {"claim": "equivalent"}, {"budget": 0}, {"sd": 0.1, "rng": 3}, {"convention": "sklearn",
        "budget": 2}, {"margin": 0.05},
        {"name": "own", "budget": 4}, {"budget": 500}, {"alpha": 2}, {"sd": -1}), ("x", "-y", "none"))):  # fmt: skip
        kind = ("floats 40 6", "counts 30 8")[place % 2]
        at = f"gate {options} baseline {baseline}/{kind}"
        yield from apart({f"guard/{at}": partial(gated, kind, options, baseline), f"guard/ledger of {at}": ledger})
    floats = "floats 40 6"
    for what, n in product(("exempt", "exempt status", "exempt texts", "exempt unknown", "exempt none", "no reason",
        "elsewhere", "retire",
                            "retire no reason", "retire others", "retire twice", "exempt retired"), (2,
                            12)):  # fmt: skip
        yield from apart(
            {f"guard/{what} {n}/{floats}": partial(released, floats, what, n), f"guard/ledger of {what} {n}": ledger}
        )
    for how in ("nothing", "unopened", "edit", "delete first", "delete open", "garbage", "file gone", "rankings gone",
        "file altered", "export",
                "export to database", "merge", "merge database", "merge twice", "merge nothing",
                "reindent"):  # fmt: skip
        yield from apart({f"guard/ledger {how}/{floats}": partial(altered, floats, how)})
    for kind, rounding, seed in product(("floats 40 6", "counts 30 8"), (1e-9, 0.5), (0, 1, 2)):
        yield from apart(
            {f"guard/evaluated again, s{seed}, noise {rounding}/{kind}": partial(reopened, kind, rounding, seed)}
        )
    for setting, off in product(("own", "database", "file", "memory", "mlflow", "default"), (False, True)):
        key = f"guard/ledger named {setting}{', switched off' * off}"
        yield from apart({key: partial(elsewhere, floats, setting)}, ledger="off" if off else "ledger")


def calls() -> Iterator[Call]:
    """Yield the calls of the guard first, since processes fork more safely before boosters start threads."""
    yield from guards()
    yield from splits()
    yield from models()
