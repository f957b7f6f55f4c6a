"""Train the candidates of an experiment, or take results and fitted rankers from the cache.

A candidate is tuned on dev, its winner is scored out of fold, and predicts the test part. Results
are kept from one run of an experiment to the next, without pickle. The digest of everything that a
result depends on names its folder, so a changed setting is never answered with an old result::

    rankeval-out/<experiment>/kept/<digest>/tables/            scores of the test part, the search
                                            parts/validation/  the out-of-fold `CrossValidation`
                                            record.json        chosen parameters, seconds
                                            model-<host>       the fitted ranker, packed by its host

Only the host reads a packed ranker: it gets it back with the next run. The folder is that of a
record (`rankeval.shelf.folder`), so a killed run leaves no half-filled one.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval._checks import said
from rankeval._source import DISTRIBUTION
from rankeval.collection.data import RankingData, empty_cells, shares_of_empty, take_rows
from rankeval.errors import FileFormatError, InvalidInput, RankevalError
from rankeval.evaluation import Evaluation
from rankeval.evaluation.responses import by_query
from rankeval.experiment.loading import DataParts
from rankeval.experiment.schema import ExperimentConfig, RankerConfig, SearchConfig
from rankeval.model_selection.results import CrossValidation
from rankeval.shelf import folder as folders
from rankeval.shelf.record import Record
from rankeval.tracking import host

if TYPE_CHECKING:
    from rankeval.model_selection.ranker import QueryRanker


FORMAT = 6
"""Part of every digest; to be increased when the cached content or its computation changes.

The fields of an `Evaluation` are parts of it as they are: a version that stores others trains anew.
"""

FEW_QUERIES = 20
"""Queries on which a check fits each ranker."""

MOST_ROWS = 1000
"""Rows of dev from which a host takes the columns of a model, and on which it checks its copy."""

_INNER = "estimator__"  # the search is over a QueryRanker, which holds the estimator of the file


@dataclass(frozen=True, eq=False)
class Trained:
    """A candidate with its result, and what a tracker needs beside it."""

    params: Mapping[str, Any]  # The winning point of the search
    search: pd.DataFrame  # A row a point: parameters, mean and deviation over the folds
    validation: CrossValidation  # Of the winner on dev
    scores: NDArray[np.float64]  # Of the test rows, by the winner fitted on all of dev
    seconds: float  # Time of the search, the validation and the prediction
    n_iterations: int | None = None  # Of the winner, if it stopped early
    # The winner, fitted on all of dev, or its bytes from the host, maybe of an earlier run.
    model: QueryRanker | bytes | None = None
    reused: bool = False  # True if the result came from the cache
    digest: str = ""  # SHA-256 of everything that determines it
    started: float = 0.0  # When this run began with it, in seconds since the epoch
    took: float = 0.0  # Seconds in this run
    rows: Any = None  # The first rows of dev, at most `MOST_ROWS`


def train(name: str, ranker: QueryRanker, config: ExperimentConfig, parts: DataParts) -> Trained:
    """Tune a candidate, or read its result from the cache."""
    from rankeval.model_selection.ranker import stops_early

    started, clock = time.time(), time.perf_counter()
    parts = parts.by_column.get(config.rankers[name].column, parts)
    digests = {data.role: data.digest for data in parts.logged}
    if not stops_early(ranker):
        digests.pop("validation", None)
    if parts.times is not None:
        digests["times"] = hashlib.sha256(parts.times.to_numpy().tobytes()).hexdigest()
    digest = candidate_digest(name, config, **digests)
    folder = config.directory / "kept" / digest[:20]
    rows = take_rows(parts.dev.X, np.arange(min(MOST_ROWS, len(parts.dev))))
    if by_query(ranker.estimator) and hasattr(rows, "set_axis"):
        rows = rows.set_axis(pd.Index(parts.dev.qid[: len(rows)], name="qid"))
    logged_to = config.tracking.host if config.tracking else ""
    done = read_cached(folder, name=name, host=logged_to)
    reused = done is not None
    if done is None:
        with _naming(name, config, parts.dev):
            done = tune(ranker, name, parts, config=config)
        # A ranker that the host does not pack goes to the tracker as it is, which says why it
        # cannot be saved.
        if logged_to and (pack := host(logged_to).pack):
            with suppress(Exception):  # the code of another package may raise anything
                done = replace(done, model=pack(done.model, rows))
        write_cached(folder, done, host=logged_to)
    took = time.perf_counter() - clock
    return replace(done, reused=reused, digest=digest, started=started, took=took, rows=rows)


@contextmanager
def _naming(name: str, config: ExperimentConfig, data: RankingData) -> Iterator[None]:
    """Name the ranker in errors of the estimator's library, which does not know its name."""
    try:
        yield
    except RankevalError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {said(error)}"
        facts = "; ".join([*shares_of_empty(data), reason])  # a library may say much
        problem = f"{config.rankers[name].title} cannot be trained: {facts}"
        raise InvalidInput(problem, argument=f"rankers.{name}") from error


def fit_few(name: str, ranker: QueryRanker, config: ExperimentConfig, parts: DataParts) -> None:
    """Fit a ranker on a few queries of dev, with an empty cell of each column that has any."""
    from sklearn.base import clone
    from sklearn.model_selection import ParameterSampler

    from rankeval.model_selection.ranker import stops_early
    from rankeval.model_selection.rows import as_arguments

    space = _space(config.rankers[name])
    (setting,) = ParameterSampler(space, n_iter=1, random_state=config.seed)
    parts = parts.by_column.get(config.rankers[name].column, parts)
    watched = parts.validation if stops_early(ranker) else None
    few = parts.dev.take(_few_rows(parts.dev))
    arguments = as_arguments(watched and watched.take(_few_rows(watched)))
    with _naming(name, config, parts.dev), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that a few rows are few
        clone(ranker).set_params(**setting).fit(few.X, few.y, qid=few.qid, **arguments)


def _few_rows(data: RankingData) -> NDArray[np.bool_]:
    queries, cells = pd.unique(data.qid), empty_cells(data)
    spread = np.linspace(0, len(queries) - 1, min(FEW_QUERIES, len(queries))).astype(int)
    first_empty = [data.qid[np.argmax(empty)] for _, empty in cells.items()]
    return np.isin(data.qid, [*queries[spread], *first_empty])


def tune(ranker: QueryRanker, name: str, parts: DataParts, *, config: ExperimentConfig) -> Trained:
    """Search on dev, score the winner out of fold, and predict the test part with it."""
    import sklearn
    from sklearn.base import clone

    from rankeval.model_selection.checks import check_measures, signs
    from rankeval.model_selection.edges import edge_gains
    from rankeval.model_selection.ranker import refuse_unusable, stops_early
    from rankeval.model_selection.rows import as_arguments
    from rankeval.model_selection.validation import cross_validate

    started, dev = time.perf_counter(), parts.dev
    folds = parts.folds(config.cv)
    primary = config.all_measures[0]
    sign = signs(check_measures(config.all_measures, config.convention))[primary]
    watched = as_arguments(parts.validation if stops_early(ranker) else None)
    search = _search(ranker, name, config, folds)
    key = f"rankers.{name}"
    for part, role in ((dev, None), (parts.validation if watched else None, "validation")):
        try:
            if part is not None:
                refuse_unusable(search, part.X, part.y, part.qid, role)
        except InvalidInput as error:
            raise error.having(where=f"{key}: {role}" if role else key) from None
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(dev.X, dev.y, qid=dev.qid, **watched)
    best = search.best_estimator_
    validation = cross_validate(
        clone(best),
        dev,
        cv=folds,
        name=name,
        measures=config.all_measures,
        convention=config.convention,
        n_jobs=config.n_jobs,
        **watched,
    )
    assert validation.inputs is not None  # it was made above
    searched = replace(validation.inputs, searches=(edge_gains(search),))
    validation = replace(validation, inputs=searched)
    params = {param.removeprefix(_INNER): value for param, value in search.best_params_.items()}
    frame = _search_frame(search.cv_results_, primary, sign)
    scores = np.asarray(best.predict(parts.test.X, qid=parts.test.qid), dtype=np.float64)
    seconds = time.perf_counter() - started
    return Trained(params, frame, validation, scores, seconds, best.n_iterations_, best)


def _search(ranker: QueryRanker, name: str, config: ExperimentConfig, folds: Any) -> Any:
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
    space = _space(own)
    if own.search is None:
        return GridSearchCV(ranker, space, **options)
    n_iter = own.search.n_iter
    return RandomizedSearchCV(ranker, space, n_iter=n_iter, random_state=config.seed, **options)


def _space(config: RankerConfig) -> dict[str, Any]:
    searched = config.grid if config.search is None else distributions(config.search)
    return {f"{_INNER}{param}": values for param, values in searched.items()}


def distributions(search: SearchConfig) -> dict[str, Any]:
    """Return lists, and SciPy's distributions for ranges.

    Examples
    --------
    >>> search = SearchConfig(distributions={"depth": {"int": [2, 4]}})
    >>> sorted(set(distributions(search)["depth"].rvs(100, random_state=0).tolist()))
    [2, 3, 4]
    """
    from scipy import stats

    makers: dict[str, Callable[[float, float], Any]] = {
        "int": lambda low, high: stats.randint(low, high + 1),
        "float": lambda low, high: stats.uniform(low, high - low),
        "log_float": stats.loguniform,
    }
    drawn = {}
    for param, values in search.distributions.items():
        if not isinstance(values, list):
            ((kind, bounds),) = values.items()
            values = makers[kind](*bounds)  # noqa: PLW2901
        drawn[param] = values
    return drawn


def _search_frame(results: Mapping[str, Any], primary: str, sign: int) -> pd.DataFrame:
    # Scorers negate costs; the table has means in the sign of the measure.
    points = pd.DataFrame(results["params"]).rename(columns=lambda name: name.removeprefix(_INNER))
    points[f"mean {primary}"] = sign * results[f"mean_test_{primary}"]
    points["sd over folds"] = results[f"std_test_{primary}"]
    points["fit seconds"] = results["mean_fit_time"]
    return points


_distributions = cache(metadata.packages_distributions)
"""Cached, since the file lists of all installed packages are read."""


def versions(estimators: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python and of the libraries that the results depend on."""
    packages = {DISTRIBUTION, "numpy", "scipy", "scikit-learn"}
    known = _distributions()
    for path in estimators:
        packages.update(known.get(path.replace(":", ".").partition(".")[0], []))
    libraries = {name: metadata.version(name) for name in sorted(packages)}
    return {"python": platform.python_version(), **libraries}


def candidate_digest(name: str, config: ExperimentConfig, **digests: str) -> str:
    """Return the digest of everything that the result of a candidate depends on."""
    ranker = config.rankers[name]
    stored = [field.name for field in fields(Evaluation)]
    dependencies = {
        "format": FORMAT,
        "evaluation": stored,
        "ranker": ranker.model_dump(mode="json"),
        "measures": config.all_measures,
        "convention": config.convention,
        "cv": config.cv.model_dump(),
        "seed": config.seed,
        "validation": None,
        **digests,
        "versions": versions(ranker.paths),
    }
    return hashlib.sha256(json.dumps(dependencies, sort_keys=True).encode()).hexdigest()


def read_cached(folder: Path, *, name: str, host: str) -> Trained | None:
    """Read a cached result; None if there is none."""
    if not folder.is_dir():
        return None
    # A damaged file raises anything: values of another kind, numbers without end, lists in lists.
    try:
        record = folders.read(folder)
        facts, tables = record.facts, record.tables
        validation = CrossValidation.from_record(record.parts["validation"])
        validation = replace(validation, evaluation=replace(validation.evaluation, name=name))
        return Trained(
            params=json.loads(facts["params"]),
            search=tables["search"],
            validation=validation,
            scores=tables["scores"]["score"].to_numpy(),
            seconds=float(facts["seconds"]),
            n_iterations=facts["n_iterations"],
            model=_model_in(record, host),
        )
    except Exception as error:
        problem = f"the cached result in {folder} is damaged"
        reason = f"{type(error).__name__}: {said(error)}"
        remedy = "remove the folder to tune the candidate again"
        raise InvalidInput(f"{problem} ({reason})", remedy=remedy) from error


def _model_in(record: Record, host: str) -> bytes | None:
    try:
        return record.files.get(_packed(host))
    except FileFormatError:
        return b""  # its host says that it is damaged, and the result is as it was


def _packed(host: str) -> str:
    return f"model-{quote(host, safe='')}"


def write_cached(folder: Path, done: Trained, *, host: str) -> None:
    """Write the result of a candidate to the cache."""
    # Scikit-learn hands out scalars of NumPy, which JSON does not know.
    params = json.dumps(done.params, default=lambda scalar: scalar.item())
    facts = {"params": params, "seconds": done.seconds, "n_iterations": done.n_iterations}
    scores = pd.DataFrame({"score": done.scores})
    record = Record(
        "candidate",
        facts=facts,
        tables={"search": done.search, "scores": scores},
        files={_packed(host): done.model} if isinstance(done.model, bytes) else {},
        parts={"validation": done.validation.record()},
    )
    try:
        folders.write(record, folder)
    except InvalidInput:  # another run has just written the same result
        if not folder.is_dir():
            raise
