"""Model selection: splitters, scorers, rankers, cross-validation, searches, hold-outs, trials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from oracle.calls import Call, recipe
from oracle.drawing import CONVENTIONS, Draw

MEASURES = ("nDCG@10", "AP", "RR", ["nDCG@5", "AP"])
SPLITTERS = {
    "rankeval.QueryKFold": {"n_splits": (2, 3, 30), "shuffle": (True,), "random_state": (0, 1)},
    "rankeval.QueryShuffleSplit": {
        "n_splits": (1, 3),
        "test_size": (0.2, 0.5, 2.0),
        "random_state": (0,),
    },
    "rankeval.QueryTimeSplit": {
        "n_splits": (2, 3),
        "gap": (1,),
        "max_train_size": (2,),
        "test_size": (1,),
    },
    "rankeval.RepeatedQueryKFold": {"n_splits": (2, 3), "n_repeats": (2,), "random_state": (0,)},
    "rankeval.StratifiedQueryKFold": {"n_splits": (2, 3), "shuffle": (True,), "random_state": (0,)},
}
"""Splitters and what they take."""
METHODS = {
    "rankeval.QueryKFold": ("QueryKFold.split", "QueryKFold.get_n_splits"),
    "rankeval.QueryShuffleSplit": ("QueryShuffleSplit.split", "QueryShuffleSplit.get_n_splits"),
    "rankeval.QueryTimeSplit": ("QueryTimeSplit.split", "QueryTimeSplit.get_n_splits"),
    "rankeval.RepeatedQueryKFold": ("RepeatedQueryKFold.split", "RepeatedQueryKFold.get_n_splits"),
    "rankeval.StratifiedQueryKFold": (
        "StratifiedQueryKFold.split",
        "StratifiedQueryKFold.get_n_splits",
    ),
}
ROUTING = {
    "rankeval.QueryKFold": ("QueryKFold.get_metadata_routing", "QueryKFold.set_split_request"),
    "rankeval.QueryShuffleSplit": (
        "QueryShuffleSplit.get_metadata_routing",
        "QueryShuffleSplit.set_split_request",
    ),
    "rankeval.QueryTimeSplit": (
        "QueryTimeSplit.get_metadata_routing",
        "QueryTimeSplit.set_split_request",
    ),
    "rankeval.RepeatedQueryKFold": (
        "RepeatedQueryKFold.get_metadata_routing",
        "RepeatedQueryKFold.set_split_request",
    ),
    "rankeval.StratifiedQueryKFold": (
        "StratifiedQueryKFold.get_metadata_routing",
        "StratifiedQueryKFold.set_split_request",
    ),
}


def table(draw: Draw, n_queries: int = 9, n_docs: int = 5, n_features: int = 3) -> dict[str, Any]:
    """Return features, labels and ids of rows, the queries together or not."""
    qid = np.repeat(np.array(draw.ids(n_queries)), n_docs)
    X = draw.numpy.normal(size=(len(qid), n_features)).round(3)
    y = np.clip(np.round(X[:, 0] + draw.numpy.normal(0, 0.7, len(qid)) + 1), 0, 3).astype(int)
    rows = {"X": X, "y": y, "qid": qid}
    if draw.happens(0.2):
        order = draw.numpy.permutation(len(qid))
        rows = {name: column[order] for name, column in rows.items()}
    return rows


def ridge() -> Any:
    """Return a cheap estimator."""
    from sklearn.linear_model import Ridge

    return Ridge(alpha=1.0)


def booster(draw: Draw) -> Any:
    """Return a booster with few trees and one thread."""
    form = draw.integer(0, 4)
    if form == 0:
        from xgboost import XGBRanker

        return XGBRanker(n_estimators=4, max_depth=2, n_jobs=1, random_state=0)
    if form == 1:
        from catboost import CatBoostRanker

        fixed = {
            "thread_count": 1,
            "random_seed": 0,
            "verbose": False,
            "allow_writing_files": False,
        }
        return CatBoostRanker(iterations=4, depth=2, **fixed)
    from lightgbm import LGBMRanker

    fixed = {
        "n_jobs": 1,
        "random_state": 0,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
    return LGBMRanker(n_estimators=4, num_leaves=4, min_child_samples=2, **fixed)


@recipe("model_selection", 380)
def splitters(draw: Draw, call: Call) -> None:
    """Split rows by each splitter."""
    name = draw.choice(sorted(SPLITTERS))
    options = draw.options(0.5, **SPLITTERS[name])
    rows = table(draw, draw.integer(3, 15), 3)
    if name.endswith("TimeSplit") and draw.happens(0.7):
        options["times"] = {
            query: f"2024-05-{draw.integer(1, 28):02d}"
            for query in dict.fromkeys(rows["qid"].tolist())
        }
    if name.endswith("StratifiedQueryKFold") and draw.happens(0.5):
        options["key"] = {query: draw.choice("ab") for query in dict.fromkeys(rows["qid"].tolist())}
    splitter = call(name, **options)
    split, n_splits = METHODS[name]
    ids = {"groups": rows["qid"]} if draw.happens(0.2) else {"qid": rows["qid"]}
    call.of(splitter, split, rows["X"], rows["y"], **ids)
    call.of(splitter, n_splits, rows["X"], rows["y"], **ids)
    for method in ROUTING[name]:
        routed = call.of(splitter, method, **({"qid": True} if "set_" in method else {}))
        call.keep("routing", str(routed))


@recipe("model_selection", 90)
def any_splitter(draw: Draw, call: Call) -> None:
    """Split whole queries by a splitter of scikit-learn."""
    from sklearn.model_selection import (
        KFold,
        LeaveOneOut,
        ShuffleSplit,
        StratifiedKFold,
        TimeSeriesSplit,
    )

    kinds = (
        KFold(3),
        ShuffleSplit(2, random_state=0),
        StratifiedKFold(2),
        TimeSeriesSplit(2),
        LeaveOneOut(),
        "five",
    )
    options = draw.options(0.3, order=("appearance", "id", "odd"))
    rows = table(draw, draw.integer(3, 8), 3)
    splitter = call("rankeval.QuerySplit", draw.choice(kinds), **options)
    call.of(splitter, "QuerySplit.split", rows["X"], rows["y"], qid=rows["qid"])
    call.of(splitter, "QuerySplit.get_n_splits", rows["X"], rows["y"], qid=rows["qid"])
    call.keep("routing", str(call.of(splitter, "QuerySplit.get_metadata_routing")))
    call.of(splitter, "QuerySplit.set_split_request", qid=True)


@recipe("model_selection", 80)
def known_folds(draw: Draw, call: Call) -> None:
    """Split by folds that are known, or that a folder of LETOR holds."""
    rows = table(draw, 6, 3)
    ids = list(dict.fromkeys(rows["qid"].tolist()))
    if draw.happens(0.3):
        apart = draw.happens(0.8)
        parts = [draw.letor(2, first=1 + 2 * at * apart) for at in range(3)]
        for fold in (1, 2):
            for at, part in enumerate(("train", "vali", "test")):
                draw.write(f"Fold{fold}/{part}.txt", parts[(at + fold) % 3])
        splitter = call(
            "rankeval.PredefinedFolds.read", ".", **draw.options(0.3, train=(("train",),))
        )
    else:
        cut = draw.integer(1, 5)
        splitter = call(
            "rankeval.PredefinedFolds", [(ids[:cut], ids[cut:]), (ids[cut:], ids[:cut])]
        )
    call.of(splitter, "PredefinedFolds.split", rows["X"], rows["y"], qid=rows["qid"])
    call.of(splitter, "PredefinedFolds.get_n_splits")
    call.keep("routing", str(call.of(splitter, "PredefinedFolds.get_metadata_routing")))
    call.of(splitter, "PredefinedFolds.set_split_request", qid=True)


@recipe("model_selection", 320)
def scorer(draw: Draw, call: Call) -> None:
    """Make a scorer, and score an estimator with it."""
    rows = table(draw, 5)
    options = draw.options(
        0.2, convention=CONVENTIONS, ties=("worst", "stable"), name=("mine",), no_relevant=("skip",)
    )
    if draw.happens(0.2):
        options |= {"qid": rows["qid"], "y": rows["y"]}
    made = call("rankeval.make_scorer", draw.choice(MEASURES), **options)
    model = ridge().fit(rows["X"], rows["y"])
    call.keep(
        "score",
        made(model, rows["X"], rows["y"], **({} if "qid" in options else {"qid": rows["qid"]})),
    )


@recipe("model_selection", 130, timed=True)
def rankers(draw: Draw, call: Call) -> None:
    """Fit a ranker, with weights, groups or validation; predict and score."""
    rows = table(draw, 8)
    estimator = ridge() if draw.happens(0.5) else booster(draw)
    options: dict[str, Any] = {}
    if draw.happens(0.25):
        options = {
            "early_stopping_rounds": 2,
            **draw.options(0.5, eval_measure=("AP", "nDCG@5"), validation_fraction=(0.3,)),
        }
    made = call("rankeval.QueryRanker", estimator, **options)
    fit = draw.options(
        0.2,
        query_weight=(draw.numpy.uniform(0.5, 2, 8).round(1),),
        sample_weight=(np.ones(len(rows["y"])),),
    )
    if options and "validation_fraction" not in options:
        other = table(draw, 3)
        fit |= {"eval_set": [(other["X"], other["y"])], "eval_qid": [other["qid"]]}
    call.of(made, "QueryRanker.fit", rows["X"], rows["y"], qid=rows["qid"], **fit)
    call.of(made, "QueryRanker.predict", rows["X"][:6])
    call.of(made, "QueryRanker.score", rows["X"], rows["y"], qid=rows["qid"])


@recipe("model_selection", 70)
def frames(draw: Draw, call: Call) -> None:
    """Fit a ranker on a frame whose index or column has the query ids."""
    rows = table(draw, 6)
    frame = pd.DataFrame(rows["X"], columns=["a", "b", "c"])
    form = draw.integer(0, 2)
    y: Any = rows["y"]
    if form == 0:
        frame["qid"] = rows["qid"]
    elif form == 1:
        frame.index = pd.Index(rows["qid"], name="qid")
        y = pd.Series(y, index=frame.index)
    made = call("rankeval.QueryRanker", ridge(), **draw.options(0.2, single_query=(True,)))
    call.of(made, "QueryRanker.fit", frame, y)
    call.of(made, "QueryRanker.predict", frame)


@recipe("model_selection", 60)
def score_columns(draw: Draw, call: Call) -> None:
    """Rank by a column of a frame, and by a fusion of two."""
    rows = table(draw, 6)
    frame = pd.DataFrame(rows["X"], columns=["a", "b", "c"])
    if draw.happens(0.2):
        frame["b"] = frame["b"].mask(frame["b"] > 1)
    column = draw.choice(("a", "b", "d", 0))
    made = call("rankeval.ColumnRanker", column, **draw.options(0.3, ascending=(True,)))
    call.of(made, "ColumnRanker.fit", frame)
    call.of(made, "ColumnRanker.predict", frame)
    options = draw.options(
        0.4,
        norm=("max", "z-score", "none", "odd"),
        k=(5, -1),
        weights=([0.3, 0.7], {"a": 1, "b": 2}, [1]),
    )
    method = draw.choice(("rrf", "combmnz", "weighted", "bordafuse", "odd"))
    fusion = call("rankeval.Fusion", method, columns=["a", "b"], **options)
    call.of(fusion, "Fusion.fit", frame)
    call.of(fusion, "Fusion.predict", frame, **({} if draw.happens(0.1) else {"qid": rows["qid"]}))


def keep_validation(call: Call, name: str, result: Any) -> None:
    """Record a cross-validation without the seconds of its folds."""
    columns = [column for column in result.folds if "seconds" not in str(column)]
    estimators = len(result.estimators or ())
    call.keep(name, [result.evaluation, result.folds[columns], result.predictions, estimators])


@recipe("model_selection", 90, timed=True)
def cross_validation(draw: Draw, call: Call) -> None:
    """Cross-validate one ranker or several, and compare them."""
    rows = table(draw, draw.integer(6, 10))
    from sklearn.tree import DecisionTreeRegressor

    estimators: Any = ridge()
    if draw.happens(0.4):
        estimators = {"ridge": ridge(), "tree": DecisionTreeRegressor(max_depth=2, random_state=0)}
    options = draw.options(
        0.3,
        measures=MEASURES,
        cv=(2, 3, 4, 50),
        convention=CONVENTIONS,
        return_estimators=(True,),
        seeds=(1, 2),
    )
    options |= draw.options(
        0.15,
        query_weight=(np.ones(len(rows["y"])),),
        unit=([f"u{str(query)[-1]}" for query in rows["qid"].tolist()],),
    )
    found = call.make(
        "rankeval.cross_validate",
        estimators,
        rows["X"],
        rows["y"],
        qid=rows["qid"],
        **{"cv": 3, **options},
    )
    results = dict(found.items()) if hasattr(found, "items") else {"one": found}
    for name, result in results.items():
        keep_validation(call, name, result)
    question = draw.choice(("algorithms", "models", None))
    if len(results) > 1:
        call.of(
            found,
            "CrossValidations.compare",
            question=question,
            **draw.options(0.4, baseline=("tree",)),
        )
        call.tried("rankeval.CrossValidations", {}) if draw.happens(0.2) else None
    else:
        call.of(found, "CrossValidation.compare", found, question=question)
        asked = draw.options(0.3, serving=(rows["X"],), difference=(0.01,), alpha=(0.05, 2.0))
        diagnosis = call.of(found, "CrossValidation.diagnose", **asked)
        if diagnosis is not None:
            call.plain(diagnosis, "Diagnosis.to_latex", "Diagnosis.to_markdown")
            fields = (diagnosis.table, diagnosis.measure, 0.05, diagnosis.n_queries)
            call("rankeval.model_selection.Diagnosis", *fields)


@recipe("model_selection", 25, timed=True)
def results_by_hand(draw: Draw, call: Call) -> None:
    """Make results of cross-validation by hand."""
    rows = table(draw, 6)
    found = call.make(
        "rankeval.cross_validate", ridge(), rows["X"], rows["y"], qid=rows["qid"], cv=2
    )
    folds = found.folds.assign(fit_seconds=0.5)
    made = call("rankeval.CrossValidation", found.evaluation, folds, found.predictions)
    call("rankeval.CrossValidations", {"a": made, "b": made})


@recipe("model_selection", 25, timed=True)
def search(draw: Draw, call: Call) -> None:
    """Search a grid by our scorer and splitter."""
    from sklearn.model_selection import GridSearchCV

    rows = table(draw, 8)
    X = pd.DataFrame(rows["X"], index=pd.Index(rows["qid"], name="qid"))
    y = pd.Series(rows["y"], index=X.index)
    scoring = call.make("rankeval.make_scorer", draw.choice(MEASURES))
    refit: Any = "AP" if isinstance(scoring, dict) or "AP" in str(scoring) else True
    model = call.make("rankeval.QueryRanker", ridge())
    grid = GridSearchCV(
        model,
        {"estimator__alpha": [0.1, 10.0]},
        scoring=scoring,
        cv=call.make("rankeval.QueryKFold", 2),
        refit=refit,
    )
    grid.fit(X, y)
    kept = {
        name: value
        for name, value in grid.cv_results_.items()
        if "time" not in name and name != "params"
    }
    call.keep("search", [grid.best_index_, kept])


@recipe("model_selection", 160)
def hold_out(draw: Draw, call: Call) -> None:
    """Split off a test part, by hash or by time."""
    rows = table(draw, draw.integer(2, 12), 3)
    options = draw.options(0.5, test_size=(0.1, 0.5, 1.5), salt=("s", ""))
    if draw.happens(0.25):
        days = {
            query: f"2024-05-{draw.integer(1, 28):02d}"
            for query in dict.fromkeys(rows["qid"].tolist())
        }
        options = {"times": days, "test_from": draw.choice(("2024-05-15", "2025-01-01"))}
    call("rankeval.dev_test_split", rows["X"], rows["y"], qid=rows["qid"], **options)


@recipe("model_selection", 40)
def users(draw: Draw, call: Call) -> None:
    """Split the rows of users by time."""
    rows = table(draw, draw.integer(2, 12), 3)
    options = draw.choice(({"last": 1}, {"last": 9}, {"test_from": 15}, {"test_from": 99}, {}))
    times = [draw.integer(1, 28) for _ in rows["qid"]]
    call("rankeval.user_test_split", rows["X"], rows["y"], qid=rows["qid"], times=times, **options)


@recipe("model_selection", 30, timed=True)
def learning(draw: Draw, call: Call) -> None:
    """Draw a learning curve."""
    rows = table(draw, 9)
    options = draw.options(0.4, rng=(1,), measures=MEASURES) | {
        "sizes": draw.choice(([0.5, 1.0], [2, 4], [0.0]))
    }
    found = call(
        "rankeval.learning_curve", ridge(), rows["X"], rows["y"], qid=rows["qid"], cv=3, **options
    )
    call.of(found, "LearningCurve.mean")
    call.of(found, "LearningCurve.plot", **draw.options(0.4, measure=("AP", "odd")))
    call("rankeval.LearningCurve", found.table, found.labels, 1)


@recipe("model_selection", 25, timed=True)
def trials(draw: Draw, call: Call) -> None:
    """Run a study of Optuna on fixed trials."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rows = table(draw, 8)
    space: Any = {
        "alpha": draw.choice(([0.1, 10.0], optuna.distributions.FloatDistribution(0.1, 10), (1, 2)))
    }
    options = draw.options(0.4, measure=("AP", "RR", "ARP", ["AP", "ARP"]))
    made = call(
        "rankeval.optuna_objective",
        ridge(),
        space,
        rows["X"],
        rows["y"],
        qid=rows["qid"],
        cv=2,
        **options,
    )
    study = optuna.create_study(
        directions=made.directions, sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(made, n_trials=2)
    trials = [[*trial.user_attrs.items(), trial.params, str(trial.state)] for trial in study.trials]
    call.keep("trials", trials)
    call.of(made, "OptunaObjective.ranker", study.best_trials[0])
    kept = call.make("rankeval.model_selection.Study.of", study)
    call.keep("best", [kept.best, kept.keys, [[each.scores, each.steps] for each in kept.trials]])
    call(
        "rankeval.OptunaObjective", made.estimator, made.space, made.task, made.folds, made.scoring
    )


@recipe("model_selection", 40)
def boosters(draw: Draw, call: Call) -> None:
    """Watch a measure while LightGBM and XGBoost train by their own functions."""
    rows = table(draw, 6)
    order = np.argsort(rows["qid"], kind="stable")
    X, y, qid = (rows[name][order] for name in ("X", "y", "qid"))
    sizes = np.unique(qid, return_counts=True)[1]
    measures = draw.choice(MEASURES)
    options = draw.options(0.3, convention=CONVENTIONS)
    if draw.happens():
        import lightgbm

        made = call("rankeval.lightgbm_feval", measures, **options)
        data = lightgbm.Dataset(X, y, group=sizes, params={"verbose": -1})
        seen: dict[str, Any] = {}
        fixed = {
            "objective": "lambdarank",
            "num_leaves": 4,
            "min_data_in_leaf": 2,
            "num_threads": 1,
            "verbose": -1,
        }
        fixed |= {"deterministic": True, "force_row_wise": True, "metric": "None", "seed": 0}
        record = lightgbm.record_evaluation(seen)
        lightgbm.train(fixed, data, 3, valid_sets=[data], feval=made, callbacks=[record])
        call.keep("seen", seen)
    else:
        import xgboost

        made = call(
            "rankeval.xgboost_metric", measures if isinstance(measures, str) else "AP", **options
        )
        data = xgboost.DMatrix(X, y)
        data.set_group(sizes)
        seen = {}
        fixed = {
            "objective": "rank:ndcg",
            "max_depth": 2,
            "nthread": 1,
            "seed": 0,
            "disable_default_eval_metric": 1,
        }
        xgboost.train(
            fixed,
            data,
            3,
            evals=[(data, "train")],
            custom_metric=made,
            evals_result=seen,
            verbose_eval=False,
        )
        call.keep("seen", seen)
