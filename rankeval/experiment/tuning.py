"""Tune one candidate: search on dev, score the winner out of fold, predict the test part."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.errors import ConfigError
from rankeval.evaluation import Evaluation
from rankeval.experiment.config import ExperimentConfig
from rankeval.experiment.loading import Parts
from rankeval.experiment.sections import SearchConfig

if TYPE_CHECKING:
    from rankeval.model_selection.ranker import QueryRanker
    from rankeval.model_selection.results import CrossValidation

_INNER = "estimator__"  # the search is over a QueryRanker, whose parameter holds the estimator of the file


@dataclass(frozen=True, eq=False)
class TunedCandidate:
    """The result of tuning one candidate.

    Attributes
    ----------
    params : mapping
        The winning point of the search.
    search : DataFrame
        One row per point: its parameters, mean and standard deviation of the primary measure over the folds.
    validation : CrossValidation
        The cross-validation of the winner on dev.
    scores : ndarray of shape (n_test_rows,)
        Scores of the test rows by the winner, fitted on all of dev.
    seconds : float
        Time of the search, the validation and the prediction.
    n_iterations : int, optional
        The iterations of the winner, if it stopped early.
    model : QueryRanker, optional
        The winner, fitted on all of dev; a result of an earlier run has none.
    """

    params: Mapping[str, Any]
    search: pd.DataFrame
    validation: CrossValidation
    scores: NDArray[np.float64]
    seconds: float
    n_iterations: int | None = None
    model: QueryRanker | None = None

    @property
    def dev(self) -> Evaluation:
        """Out-of-fold scores of the winner."""
        return self.validation.evaluation


def tune(ranker: QueryRanker, name: str, parts: Parts, *, config: ExperimentConfig) -> TunedCandidate:
    """Search on dev, score the winner out of fold, and predict the test part with it.

    Parameters
    ----------
    ranker : QueryRanker
        The ranker with its fixed parameters.
    name : str
        Its name in the experiment, whose grid or random search is done.
    parts : Parts
        The data. Of the test part only the features are used. The validation part is watched by a ranker that stops
        early, in every fit.
    config : ExperimentConfig
        Measures, folds, convention, seed and number of jobs.

    Raises
    ------
    ConfigError
        If there are fewer queries than folds.
    """
    import sklearn
    from sklearn.base import clone

    from rankeval.model_selection.checks import check_measures, signs
    from rankeval.model_selection.ranker import stops_early
    from rankeval.model_selection.rows import as_arguments
    from rankeval.model_selection.splitters import QueryKFold
    from rankeval.model_selection.validation import cross_validate

    started = time.perf_counter()
    dev = parts.dev
    if config.cv.n_splits > dev.n_queries:
        raise ConfigError(
            f"cv.n_splits: found {config.cv.n_splits} folds for {count(dev.n_queries, 'query')} of the dev part"
        )
    folds = QueryKFold(config.cv.n_splits, shuffle=True, random_state=config.cv.seed)
    primary = config.all_measures[0]
    sign = signs(check_measures(config.all_measures, config.convention))[primary]
    part = parts.validation if stops_early(ranker) else None
    watched = {} if part is None else as_arguments(part.X, part.y, part.qid)
    with sklearn.config_context(enable_metadata_routing=True):
        search = _search(ranker, name, config, folds)
        search.fit(dev.X, dev.y, qid=dev.qid, **watched)
    validation = cross_validate(
        clone(search.best_estimator_),
        dev.X,
        dev.y,
        qid=dev.qid,
        measures=config.all_measures,
        convention=config.convention,
        cv=folds,
        n_jobs=config.n_jobs,
        name=name,
        **watched,
    )
    scores = np.asarray(search.best_estimator_.predict(parts.test.X), dtype=np.float64)
    return TunedCandidate(
        params={param.removeprefix(_INNER): value for param, value in search.best_params_.items()},
        search=_search_frame(search.cv_results_, primary, sign),
        validation=validation,
        scores=scores,
        seconds=time.perf_counter() - started,
        n_iterations=search.best_estimator_.n_iterations_,
        model=search.best_estimator_,
    )


def _search(ranker: QueryRanker, name: str, config: ExperimentConfig, folds: Any) -> Any:
    """Return the search of a ranker: its random search, or its grid, which may be empty."""
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

    from rankeval.model_selection.scorers import make_scorer

    own = config.rankers[name]
    options = {
        "scoring": make_scorer(config.all_measures, convention=config.convention),
        "refit": config.all_measures[0],
        "cv": folds,
        "n_jobs": config.n_jobs,
        "error_score": "raise",
    }
    if own.search is None:
        return GridSearchCV(ranker, {f"{_INNER}{param}": values for param, values in own.grid.items()}, **options)
    drawn = {f"{_INNER}{param}": one for param, one in distributions(own.search).items()}
    return RandomizedSearchCV(ranker, drawn, n_iter=own.search.n_iter, random_state=config.seed, **options)


def distributions(search: SearchConfig) -> dict[str, Any]:
    """Return lists, and SciPy's distributions for ranges.

    Parameters
    ----------
    search : SearchConfig
        The random search.

    Examples
    --------
    >>> search = SearchConfig(distributions={"depth": {"int": [2, 4]}})
    >>> sorted(set(distributions(search)["depth"].rvs(100, random_state=0).tolist()))
    [2, 3, 4]
    """
    from scipy import stats

    made: dict[str, Callable[[float, float], Any]] = {
        "int": lambda low, high: stats.randint(low, high + 1),
        "float": lambda low, high: stats.uniform(low, high - low),
        "log_float": stats.loguniform,
    }
    return {
        param: one if isinstance(one, list) else next(made[kind](*bounds) for kind, bounds in one.items())
        for param, one in search.distributions.items()
    }


def _search_frame(results: Mapping[str, Any], primary: str, sign: int) -> pd.DataFrame:
    """Return one row per point of the search, with means in the sign of the measure: scorers negate costs."""
    points = pd.DataFrame(
        [{name.removeprefix(_INNER): value for name, value in point.items()} for point in results["params"]]
    )
    points[f"mean {primary}"] = sign * results[f"mean_test_{primary}"]
    points["sd over folds"] = results[f"std_test_{primary}"]
    points["fit seconds"] = results["mean_fit_time"]
    return points
