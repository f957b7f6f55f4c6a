"""Tune one candidate: search on dev, score the winner out of fold, predict the test part."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval.collection.data import RankingData
from rankeval.evaluation import Evaluation
from rankeval.experiment.config import ExperimentConfig


@dataclass(frozen=True, eq=False)
class TunedCandidate:
    """The result of tuning one candidate.

    Attributes
    ----------
    params : mapping
        The winning point of the grid.
    search : DataFrame
        One row per point: its parameters, mean and standard deviation of the primary measure over the folds.
    dev : Evaluation
        Out-of-fold scores of the winner.
    scores : ndarray of shape (n_test_rows,)
        Scores of the test rows by the winner, fitted on all of dev.
    seconds : float
        Time of the search, the validation and the prediction.
    """

    params: Mapping[str, Any]
    search: pd.DataFrame
    dev: Evaluation
    scores: NDArray[np.float64]
    seconds: float


def tune(
    estimator: Any, grid: Mapping[str, list[Any]], dev: RankingData, test: RankingData, *, config: ExperimentConfig
) -> TunedCandidate:
    """Search the grid on dev, score the winner out of fold, and predict the test part with it.

    Parameters
    ----------
    estimator : estimator
        The ranker with its fixed parameters.
    grid : mapping of str to list
        Values to try by parameter; may be empty.
    dev, test : RankingData
        The two parts; only the features of the test part are used.
    config : ExperimentConfig
        Measures, folds, convention and number of jobs.
    """
    import sklearn
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    from rankeval.model_selection.checks import check_measures, signs
    from rankeval.model_selection.ranker import QueryRanker
    from rankeval.model_selection.scorers import make_scorer
    from rankeval.model_selection.splitters import QueryKFold
    from rankeval.model_selection.validation import cross_validate

    started = time.perf_counter()
    folds = QueryKFold(config.cv.n_splits, shuffle=True, random_state=config.cv.seed)
    primary = config.all_measures[0]
    sign = signs(check_measures(config.all_measures, config.convention))[primary]
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            QueryRanker(estimator),
            {f"estimator__{name}": values for name, values in grid.items()},
            scoring=make_scorer(config.all_measures, convention=config.convention),
            refit=primary,
            cv=folds,
            n_jobs=config.n_jobs,
            error_score="raise",
        )
        search.fit(dev.X, dev.y, qid=dev.qid)
    validation = cross_validate(
        clone(search.best_estimator_),
        dev.X,
        dev.y,
        qid=dev.qid,
        measures=config.all_measures,
        convention=config.convention,
        cv=folds,
        n_jobs=config.n_jobs,
    )
    scores = np.asarray(search.best_estimator_.predict(test.X), dtype=np.float64)
    return TunedCandidate(
        params={name.removeprefix("estimator__"): value for name, value in search.best_params_.items()},
        search=_search_frame(search.cv_results_, primary, sign),
        dev=validation.evaluation,
        scores=scores,
        seconds=time.perf_counter() - started,
    )


def _search_frame(results: Mapping[str, Any], primary: str, sign: int) -> pd.DataFrame:
    """Return one row per point of the grid, with means in the sign of the measure: scorers negate costs."""
    points = pd.DataFrame(
        [{name.removeprefix("estimator__"): value for name, value in point.items()} for point in results["params"]]
    )
    points[f"mean {primary}"] = sign * results[f"mean_test_{primary}"]
    points["sd over folds"] = results[f"std_test_{primary}"]
    points["fit seconds"] = results["mean_fit_time"]
    return points
