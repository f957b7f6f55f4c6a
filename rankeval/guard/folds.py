"""Out-of-fold predictions of a registered benchmark, made when a plan over folds is frozen.

Every query is tested once, by a model that was fitted on other queries::

    queries   a b c d e f           fold 1 tests a b, and fits on c d e f
    fold      1 1 2 2 3 3           fold 2 tests c d, and fits on a b e f
    score     . . . . . .           fold 3 tests e f, and fits on a b c d

So each row gets one score, and the plan holds ordinary rankings. No score of a held-out part is
computed here: the first one is seen when the plan is opened. A search inside an estimator tunes
within the training part of its fold.

Nobody may fit on registered content, but for these fits: they are allowed while the plan is being
frozen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count, shown
from rankeval.collection.data import RankingData
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.refusal import ContaminationCheck, allowed
from rankeval.errors import InvalidInput, warn
from rankeval.guard.collection import LoadedCollection

if TYPE_CHECKING:
    from rankeval.model_selection.splitters import Folds

NOTE = (
    "over {folds}: each query is scored by a model that was not fitted on it. The test concerns the procedure on this "
    "collection, and not one model; folds share training data"
)
"""What a reader must know of a plan over folds."""


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """The predictions of a plan over folds."""

    # (n_rows,): System -> the score of each row, by the model of the fold that held the row out.
    systems: Mapping[str, NDArray[np.float64]]
    folds: str  # The folds in words, with a hash over their queries
    n_folds: int  # Their number


def out_of_fold(loaded: LoadedCollection, systems: Mapping[str, Any], folds: Any) -> OutOfFold:
    """Fit each estimator on each training part, and predict the parts held out."""
    from rankeval.model_selection.fitting import Task, run_folds
    from rankeval.model_selection.holdout import as_ranking_data
    from rankeval.model_selection.ranker import as_ranker

    if loaded.qrels is not None or loaded.X is None:
        raise InvalidInput(
            "folds= fits models, and the collection was registered without X: freeze rankings instead"
        )
    for name, system in systems.items():
        if isinstance(system, type) or not hasattr(system, "fit"):
            raise InvalidInput(
                f"{name!r} is {shown(system)}: folds= fits each system, so give an estimator, fitted or not; scores of "
                "your own are frozen without folds="
            )
    rankers = [as_ranker(system) for system in systems.values()]
    data = as_ranking_data(loaded.X, loaded.y, who="freeze", qid=loaded.qid, docid=loaded.docid)
    parts = _parts(folds, data)
    _refuse_other_than_once(parts, data)
    _warn_of_copies(parts, loaded.prints)
    jobs = [(ranker, train, test) for ranker in rankers for train, test in parts]
    matches = ContaminationCheck.current().matches(loaded.prints)
    # Only these fits, and only of what would be refused: workers ask for it by the ids of the
    # registrations.
    with allowed(found.registered.id for _, found in matches if found.refused):
        done = run_folds(Task(data), jobs, n_jobs=None, progress=None)
    scores = {}
    for place, name in enumerate(systems):
        scores[str(name)] = np.full(len(data), np.nan)
        for number, (_, test) in enumerate(parts):
            scores[str(name)][test] = done[place * len(parts) + number].score
    words = f"{count(len(parts), 'fold')} (queries {_digest(parts, loaded.prints)[:12]})"
    return OutOfFold(scores, words, len(parts))


def _parts(folds: Any, data: RankingData) -> Folds:
    from rankeval.model_selection.splitters import query_folds

    by_row = _by_row(folds, len(data))
    if by_row is not None:
        numbers = list(dict.fromkeys(by_row.tolist()))
        return query_folds(
            [(by_row != number, by_row == number) for number in numbers], data, None, name="folds"
        )
    parts = query_folds(folds, data, None, name="folds")
    for number, (train, test) in enumerate(parts):
        if len(np.intersect1d(train, test)):
            raise InvalidInput(
                f"fold {number} trains on rows that are held out: give it two parts without shared rows"
            )
    return parts


def _by_row(folds: Any, n_rows: int) -> NDArray[Any] | None:
    if hasattr(folds, "split") or not hasattr(folds, "__len__") or isinstance(folds, (str, bytes)):
        return None
    values = (
        np.asarray(folds)
        if hasattr(folds, "dtype") or all(map(np.isscalar, folds))
        else np.empty((0, 2))
    )
    if values.ndim != 1:
        return None
    if len(values) != n_rows:
        raise InvalidInput(
            f"folds has {count(len(values), 'value')} for {count(n_rows, 'row')}: give the fold of each"
        )
    return values


def _refuse_other_than_once(parts: Folds, data: RankingData) -> None:
    times = np.zeros(len(data), dtype=np.int64)
    for _, test in parts:
        np.add.at(times, test, 1)
    if (times == 1).all():
        return
    row = int(np.argmax(times != 1))
    often = "never" if not times[row] else f"{times[row]} times"
    n_queries = len({*data.qid[times != 1].tolist()})
    query = data.qid.tolist()[row]
    raise InvalidInput(
        f"query {query!r} is held out {often} ({count(n_queries, 'query')} in all): a benchmark has one "
        "score of each query, so give folds in which each is held out exactly once, such as QueryKFold"
    )


def _warn_of_copies(parts: Folds, data: Fingerprint) -> None:
    """Say so if a query was held out from a model that was fitted on a copy of it."""
    n_copies = 0
    for train, test in parts:
        fitted, held_out = (data.content[np.unique(data.codes[rows])] for rows in (train, test))
        n_copies += int(np.isin(held_out, fitted).sum())
    if n_copies:
        warn(
            f"{count(n_copies, 'query')} held out by folds= have the content of a query that their model is fitted on: "
            "they are scored better than new ones would be. Keep copies in one fold, by a splitter with groups"
        )


def _digest(parts: Folds, data: Fingerprint) -> str:
    """Hash the queries of all parts by their content: the order of folds, rows and queries makes no difference."""
    sides = [
        b"|".join(
            np.sort(data.content[np.unique(data.codes[rows])]).astype("<u8").tobytes()
            for rows in part
        )
        for part in parts
    ]
    return hashlib.sha256(b"||".join(sorted(sides))).hexdigest()
