"""What goes wrong inside a search of scikit-learn: unusable ids and weights, cut queries, scores on the rows watched.

scikit-learn turns every `Exception` inside a search into nan or a failed fit, so a `Refusal` stops
it. It does not tell a scorer or an estimator that a search calls it, so the frames of the callers
are read.

scikit-learn passes a scorer the rows of one fold, and nothing of those that the estimator was
fitted on. So a fitted QueryRanker keeps two things, and no features::

    fitted     label and id of each row           other labels under one of these ids: the fold cuts the query (warned)
    watched    a hash of id, and one of rows and  the same query again: training stopped on it, so a score on it is no
               labels, of each query of eval_set  estimate (refused)

Both are for the folds of a search. Elsewhere, new rows of a fitted query may be a later day of it,
and a score on the validation part is what its owner asks for. A pickle of the ranker has neither.
What was fitted is hashed when a fold asks: `cross_validate` groups rows once, and not in every fit
(tests/test_walks.py).

The trap is "once": estimators and scorers are cloned, pickled and used again, so none of them
stands for one search. Its outermost frame does: a note there ends with the search. A worker of
joblib does not have this frame, so it warns once in its life.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import walk_stack
from types import FrameType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count, few
from rankeval.contamination.fingerprint import Fingerprint, fingerprint
from rankeval.contamination.hashing import join
from rankeval.contamination.refusal import hangs_on_refusals
from rankeval.contamination.signature import Signature
from rankeval.errors import (
    ConflictingQueryIdsRefusal,
    InvalidInput,
    MissingQueryIdsRefusal,
    QueryCutWarning,
    QueryIdError,
    Refusal,
    SharedQueriesError,
    SharedQueriesRefusal,
    UnusableQueryIdsError,
)
from rankeval.join.matching import Hashes
from rankeval.model_selection.nesting import last_of

SEARCHES = "sklearn.model_selection"
"""The package of scikit-learn's searches and validations."""

FOLDS = f"{SEARCHES}._validation"
"""The module that fits and scores their folds; the score of a search that was fitted does not pass it."""


def callers() -> Iterator[FrameType]:
    """Return the frames of the calling functions, the innermost first."""
    # inspect.stack reads the source of every frame.
    return (frame for frame, _ in walk_stack(sys._getframe(1)))  # noqa: SLF001


def is_of(frame: FrameType, *packages: str) -> bool:
    """Say whether a frame's module is in one of these packages."""
    return str(frame.f_globals.get("__name__", "")).startswith(packages)


def in_search(package: str = SEARCHES) -> bool:
    """Say whether scikit-learn's model selection is calling, or a part of it, in this process or as a worker of it."""
    return any(is_of(frame, package) for frame in callers())


def searched() -> dict[str, list[Any]]:
    """Return the values that a search sets for the fit around this call, by parameter."""
    found = [frame.f_locals.get("parameters") or {} for frame in callers() if is_of(frame, FOLDS)]
    return {name: [value] for params in found for name, value in params.items()}


def stop(error: InvalidInput, refusal: type[Refusal] | None = None) -> NoReturn:
    """Stop the search around this call, if there is one."""
    if hangs_on_refusals():
        raise error
    conflict = isinstance(error, QueryIdError) and not isinstance(error, UnusableQueryIdsError)
    raise (refusal or (ConflictingQueryIdsRefusal if conflict else MissingQueryIdsRefusal))(
        **error.fields
    ) from error


@contextmanager
def stopping(refusal: type[Refusal] | None = None) -> Iterator[None]:
    """Let an InvalidInput inside stop the search around this call; without a search it is raised as it is."""
    try:
        yield
    except InvalidInput as error:
        if in_search():
            stop(error, refusal)
        raise


NOTE = "rankeval warned of a cut query"
"""The note in the outermost frame of a search; no variable can have this name."""

_OF_WORKER: dict[str, Any] = {}
"""The note of a worker of joblib."""


@dataclass(frozen=True, eq=False)
class Watched:
    """The queries of a validation part as hashes, without the rows."""

    names: NDArray[Any]  # (n_queries,): Their ids
    ids: Hashes  # (n_queries,): A hash of each id, and of the rows and labels of each query
    content: Hashes

    @classmethod
    def of(cls, X: Any, y: NDArray[Any], ids: NDArray[Any]) -> Watched:
        """Return the queries of these rows."""
        data = fingerprint(X, y, ids)
        return cls(data.names, data.ids, data.content)

    def refuse_in(self, data: Fingerprint, where: str, *, by_id: bool = True) -> None:
        """Refuse them if other data has one of them too, under its id or with the same rows and labels."""
        same_id, same = np.isin(self.ids, data.ids) & by_id, np.isin(self.content, data.content)
        if same.any():  # equal rows are no evidence where many queries have such rows
            known = Signature.of(data)
            same &= np.isin(self.content, known.content[known.identifiable])
        shared, renamed = (
            tuple(self.names[found].tolist()) for found in (same_id | same, same & ~same_id)
        )
        if shared:
            other = ""
            if renamed:
                other = f", {len(renamed):,} of them under other ids with the same rows and labels"
            stops = in_search() and not hangs_on_refusals()
            kind = SharedQueriesRefusal if stops else SharedQueriesError
            raise kind(
                f"eval_set and {where} have {count(len(shared), 'query')} in common: {few(shared)}{other}. Early "
                "stopping must watch other queries than those that are trained on or scored: leave them out of "
                "eval_set (the error has them as .queries), or leave eval_set out, and a share of the training queries "
                "is held out. If other queries have these ids by accident, give them other ids",
                queries=shared,
                renamed=renamed,
            )


def check_fold(estimator: Any, X: Any, y: NDArray[Any], ids: NDArray[Any]) -> None:
    """Refuse a fold of a search on whose queries training stopped, and warn if it cuts queries that were fitted."""
    while (inner := last_of(getattr(estimator, "best_estimator_", estimator))) is not estimator:
        estimator = inner
    rows, watched = getattr(estimator, "_known", (None, None))
    if rows is None or not in_search(FOLDS):
        return
    if watched is not None:
        watched.refuse_in(fingerprint(X, y, ids), "the rows that are scored")
    here, fitted = fingerprint(None, y, ids), fingerprint(None, *rows)
    whole = np.isin(join(here.ids, here.content), join(fitted.ids, fitted.content))
    if (np.isin(here.ids, fitted.ids) & ~whole).any():
        _warn_once(
            "a fold scores some rows of queries, and other rows of them were fitted, so its values are not those of "
            "whole queries: use cv=rankeval.QueryKFold(...), or rankeval.QuerySplit(splitter) for any other splitter"
        )


def _warn_once(message: str) -> None:
    """Warn at the line that called the search around this call, once per search."""
    frames = list(callers())
    place = max(
        place for place, frame in enumerate(frames) if is_of(frame, "sklearn.", "rankeval.")
    )
    caller = min(place + 1, len(frames) - 1)
    notes = _OF_WORKER if is_of(frames[caller], "joblib.") else frames[place].f_locals
    if NOTE not in notes:
        notes[NOTE] = True
        warnings.warn(message, QueryCutWarning, stacklevel=caller + 1)
