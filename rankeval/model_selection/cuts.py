"""Warn once if scikit-learn's splitters or its halving searches score some rows of a query without the others.

A scorer is called with the rows of one fold, and they do not show if a query has other rows. The search around the call
knows all rows. scikit-learn passes them to no scorer, so they are read where they are: every function of it that fits
and scores a fold holds ``X, y, train, test``, as in ::

    script            cross_val_score(ranker, X, y, cv=3, scoring=scorer)    the warning points to this line
    sklearn           cross_val_score, ..., _fit_and_score(X, y, train, test)    X, y: all rows; test: this fold's
    rankeval          scorer(estimator, X[test], y[test])                    the call that is checked

If a release of scikit-learn names them otherwise, nothing is checked, and the tests say so.

The trap is "once": estimators and scorers are cloned, pickled and used again, so none of them stands for one search.
Its outermost frame does: a note there ends with the search. A worker of joblib does not have this frame, so it warns
once in its life for each kind of search.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import InvalidInput, QueryCutWarning
from rankeval.model_selection.callers import callers, is_of
from rankeval.model_selection.query_ids import Bound, encode, find, n_rows, partly_in, same_queries

FOLD = {"X", "y", "train", "test"}
"""The variables of a function of scikit-learn that fits and scores a fold."""

NOTE = "rankeval warned of a cut query"
"""The note in the outermost frame of a search; no variable can have this name."""

LEFT_OUT = (
    "HalvingGridSearchCV and HalvingRandomSearchCV leave rows out unless they have another resource, such as "
    "resource='estimator__n_estimators'; give a splitter that leaves rows out as rankeval.QuerySplit(splitter)"
)
"""The remedy if rows of a query are neither trained on nor scored."""

_warned: set[tuple[str, str, int]] = set()
"""The searches that this worker has warned of: scorer, estimator and number of rows."""


def warn_of_cuts(scorer: object, estimator: Any, ids: NDArray[Any], bound: Bound | None) -> None:
    """Warn if the search around this call scores only some rows of a query, once per search.

    Parameters
    ----------
    scorer : object
        The calling scorer; its text tells one kind of search from another.
    estimator : object
        The estimator that it scores.
    ids : ndarray of shape (n_rows,)
        The query of each row that it scores.
    bound : Bound, optional
        The ids that it carries.
    """
    stack = list(callers())
    fold = next((frame for frame in stack if is_of(frame, "sklearn.") and set(frame.f_code.co_varnames) >= FOLD), None)
    if fold is None:
        return
    outermost = next(frame for frame in reversed(stack) if is_of(frame, "sklearn.", "rankeval."))
    in_worker = outermost.f_back is not None and is_of(outermost.f_back, "joblib.")
    kind = (repr(scorer), type(estimator).__name__, n_rows(fold.f_locals["X"]))
    if kind in _warned if in_worker else NOTE in outermost.f_locals:
        return
    said = _cut(fold.f_locals, ids, bound)
    if said is None:
        return
    if in_worker:
        _warned.add(kind)
    else:
        outermost.f_locals[NOTE] = True
    _warn(said, outermost.f_back or outermost)


def _cut(fold: Mapping[str, Any], ids: NDArray[Any], bound: Bound | None) -> str | None:
    """Return the warning for a fold, or None if its queries are whole or its rows are not those that are scored."""
    whole = _all_ids(fold, ids, bound)
    if whole is None:
        return None
    codes, queries = encode(whole)
    cut = partly_in(codes, fold["test"])
    if not cut.any():
        return None
    said = (
        f"a fold scores only some rows of {int(cut.sum())} of {len(queries)} queries, such as "
        f"{queries.tolist()[int(np.argmax(cut))]!r}, so its values are not those of whole queries: "
    )
    remedies = []
    if cut[codes[fold["train"]]].any():
        remedies.append("use cv=rankeval.QueryKFold(...), or rankeval.QuerySplit(splitter) for any other splitter")
    used = np.zeros(len(codes), dtype=bool)
    used[fold["train"]] = used[fold["test"]] = True
    if cut[codes[~used]].any():
        remedies.append(LEFT_OUT)
    return said + "; ".join(remedies)


def _all_ids(fold: Mapping[str, Any], ids: NDArray[Any], bound: Bound | None) -> NDArray[Any] | None:
    """Return the query of each row of a search, if the scored rows are its fold's test rows.

    They are not when a search scores its training rows too.
    """
    X, y, test = fold["X"], fold["y"], fold["test"]
    for column in _columns(fold, n_rows(X)):
        try:
            whole = find(X, y, qid=column, bound=bound)
        except InvalidInput:  # another kind of metadata, or ids that only some rows have
            continue
        if whole is not None and len(part := whole[test]) == len(ids) and same_queries(part, ids):
            return whole
    return None


def _columns(fold: Mapping[str, Any], rows: int) -> Iterator[Any]:
    """Yield what may hold the ids: None for those that come with X, y or the scorer, then each routed column."""
    yield None
    routed = getattr(getattr(fold.get("routed_params"), "scorer", None), "score", None)
    for metadata in (fold.get("score_params"), routed):
        for column in (metadata or {}).values():
            if hasattr(column, "__len__") and len(column) == rows:
                yield column


def _warn(message: str, frame: FrameType) -> None:
    """Warn at the line of this frame."""
    warnings.warn_explicit(
        message,
        QueryCutWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__", "<string>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
