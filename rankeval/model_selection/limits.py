"""Labels, queries and columns that LightGBM, XGBoost and CatBoost refuse, each with the way out.

The libraries refuse them too, but in the words of C++, when the fold that has them is fitted, and
in a search of scikit-learn as nan. So all rows are looked at before anything is fitted. The tables
say what the libraries do: tests/model_selection/test_limits.py fits them, and only rows that they
refuse are refused here.

The trap: which labels are taken depends on parameters, and a search may set these. `DECIDES` has
their names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from rankeval._checks import shown
from rankeval.errors import InvalidInput
from rankeval.model_selection.query_ids import encode


class LabelLimits(NamedTuple):
    """The labels and the sizes of queries that a booster takes, and what to do with others.

    ``slack`` is how far labels may lie above whole numbers.
    """

    words: str
    least: float = 0
    greatest: float = np.inf
    slack: float = np.inf
    remedy: str = "grade the labels, or choose another objective"
    must_differ: bool = False
    most_rows: float = np.inf


_SHARES, _COUNTS = LabelLimits("labels from 0 to 1", 0, 1), LabelLimits("no label below 0")
_ABOVE = LabelLimits("labels above 0", float(np.finfo(np.float32).smallest_subnormal))
_BY_OBJECTIVE: Mapping[str, Mapping[str, LabelLimits]] = {
    "lightgbm": {
        **dict.fromkeys(("poisson", "tweedie"), _COUNTS),
        **dict.fromkeys(
            ("cross_entropy", "xentropy", "cross_entropy_lambda", "xentlambda"), _SHARES
        ),
        "gamma": _ABOVE,
    },
    "xgboost": {
        "rank:map": LabelLimits(
            "the labels 0 and 1", 0, 1, slack=0, remedy="give y > 0, or objective='rank:ndcg'"
        ),
        **dict.fromkeys(("binary:logistic", "binary:logitraw", "reg:logistic"), _SHARES),
        **dict.fromkeys(("count:poisson", "reg:tweedie"), _COUNTS),
    },
    "catboost": {"QuerySoftMax": _COUNTS},
}

_RANKING = {"lambdarank", "rank_xendcg", "xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart", "ndcg"}
"""Objectives and metrics of LightGBM that take a label as a place in ``label_gain``."""

_OBJECTIVE = {
    "lightgbm": ("objective_type", "app", "application", "loss", "objective"),
    "xgboost": ("objective",),
    "catboost": ("loss_function", "objective"),
}
_METRIC = ("metrics", "metric_types", "metric")
"""Names of parameters, as in LightGBM: another name that is given wins over that of its classes."""

DECIDES = frozenset(
    name
    for names in (
        *_OBJECTIVE.values(),
        _METRIC,
        ("label_gain", "ndcg_exp_gain", "allow_const_label", "estimator"),
    )
    for name in names
)
"""Parameters by which a booster takes other labels, or becomes another estimator."""


def decides(params: Mapping[str, Any]) -> bool:
    """Return whether parameters to try may change which rows a booster takes, or put another estimator in its place."""
    choices = (getattr(values, "choices", values) for values in params.values())
    estimators = (
        hasattr(one, "fit")
        for values in choices
        if isinstance(values, (list, tuple))
        for one in values
    )
    return any(name.rpartition("__")[2] in DECIDES for name in params) or any(estimators)


MOST_ROWS = 10_000
"""The rows of a query that LightGBM takes where it ranks."""

_NOT_IN_NAMES = {
    "lightgbm": ('[]{}",:\n\r', '[ ] { } " , : or ends of lines'),
    "xgboost": ("[]<", "[ ] <"),
}
"""Characters that names of columns must not have, and these in words."""


def refuse_labels(
    library: str, estimator: Any, y: NDArray[Any], qid: NDArray[Any], where: str | None = None
) -> None:
    """Raise if a booster refuses a label, or a query of so many rows."""
    kind = type(estimator).__name__
    with np.errstate(over="ignore", invalid="ignore"):
        held = y.astype(np.float32)  # as all three hold them
        beyond = held - np.floor(held)
    taken = _labels_of(library, estimator, held, is_watched=where is not None)
    if taken is None:
        return
    is_odd = (held < taken.least) | (held > taken.greatest) | (beyond > taken.slack)
    if is_odd.any():
        row = int(is_odd.argmax())
        found = f"{shown(y[row].item())} in row {row} (query {qid[[row]].tolist()[0]!r})"
        expected = f"{taken.words} for {kind}"
        raise InvalidInput(
            argument="y", found=found, expected=expected, where=where, remedy=taken.remedy
        )
    if taken.must_differ and (held == held[0]).all():
        found, expected = f"{shown(y[0].item())} in every row", f"several labels for {kind}"
        remedy = "give allow_const_label=True, or rows with other labels"
        raise InvalidInput(argument="y", found=found, expected=expected, where=where, remedy=remedy)
    if len(y) > taken.most_rows:
        codes, queries = encode(qid)
        sizes = np.bincount(codes)
        if sizes.max() > taken.most_rows:
            found = f"{queries[[sizes.argmax()]].tolist()[0]!r} in {sizes.max():,} rows"
            expected = f"at most {taken.most_rows:,} rows a query for {kind}"
            remedy = "leave rows out, cut the query, or take XGBRanker or CatBoostRanker"
            raise InvalidInput(
                argument="qid", found=found, expected=expected, where=where, remedy=remedy
            )


def _labels_of(
    library: str, estimator: Any, held: NDArray[np.float32], *, is_watched: bool
) -> LabelLimits | None:
    """Return which rows a booster takes by its parameters; None if it takes all."""
    params = estimator.get_params()
    objective = next(
        (params[name] for name in _OBJECTIVE[library] if params.get(name) is not None), None
    )
    if is_classifier(
        estimator
    ):  # its labels are names of classes, and it chooses the objective by their number
        return None
    if library == "lightgbm" and _ranks(estimator, params, objective, is_watched=is_watched):
        return _of_gains(params, held)
    if is_watched:  # only LightGBM reads the labels of rows to stop on: for its own metric
        return None
    if objective == "rank:ndcg" and str(params.get("ndcg_exp_gain")).lower() not in ("false", "0"):
        remedy = "give ndcg_exp_gain=False, by which XGBoost takes all labels, or grade them"
        return LabelLimits("whole labels from 0 to 31", 0, 31, slack=1e-6, remedy=remedy)
    taken = _BY_OBJECTIVE[library].get(
        str(objective).partition(":")[0] if library == "catboost" else str(objective)
    )
    if library == "catboost" and not params.get("allow_const_label"):
        return (taken or LabelLimits("all labels", -np.inf))._replace(must_differ=True)
    return taken


def _ranks(estimator: Any, params: Mapping[str, Any], objective: Any, *, is_watched: bool) -> bool:
    """Return whether LightGBM takes labels as places in ``label_gain``, for its objective or a metric."""
    is_ranker = "group" in signature(estimator.fit).parameters
    objective = "lambdarank" if objective is None and is_ranker else objective
    default = "ndcg" if is_ranker and (callable(objective) or str(objective) in _RANKING) else ""
    metric = next((params[name] for name in _METRIC if name in params), default)
    metrics = metric.split(",") if isinstance(metric, str) else metric
    asked = [
        *(metrics if isinstance(metrics, Collection) else ()),
        *(() if is_watched else (objective,)),
    ]
    return any(isinstance(one, str) and one.strip() in _RANKING for one in asked)


def _of_gains(params: Mapping[str, Any], held: NDArray[np.float32]) -> LabelLimits:
    """Return the labels that have a gain."""
    gains = params.get("label_gain")
    gains = gains.split(",") if isinstance(gains, str) else gains
    n_gains = 31 if gains is None or not len(gains) else len(gains)
    top, remedy = held.max(), "grade the labels"
    if (held == np.floor(held)).all() and held.min() >= 0 and top < 1000:
        remedy = f"give label_gain=, a gain for each grade, such as list(range({top + 1:.0f})), or grade the labels"
    words = f"whole labels from 0 to {n_gains - 1}"
    return LabelLimits(words, 0, n_gains - 1, slack=0, remedy=remedy, most_rows=MOST_ROWS)


def refuse_columns(library: str, estimator: Any, X: Any, where: str | None = None) -> None:
    """Raise if a booster refuses the name or the type of a column."""
    if not hasattr(X, "iloc"):
        return
    kind, known = type(estimator).__name__, dict[str, Any]()
    refused, words = _NOT_IN_NAMES.get(library, ("", ""))
    for name in X.columns:
        text = str(name).replace(" ", "_") if library == "lightgbm" else str(name)
        found = f"a frame with a column {name!r}"
        if set(text) & set(refused) or (library == "lightgbm" and not text):
            expected = f"a name with none of {words} for {kind}"
            raise InvalidInput(
                argument="X", found=found, expected=expected, where=where, remedy=_RENAME
            )
        if text in known:
            found += f" beside {known[text]!r}, one name for {kind}"
            raise InvalidInput(argument="X", found=found, where=where, remedy=_RENAME)
        known[text] = name
    for name, values, remedy in _unfit(library, estimator, X):
        found, expected = (
            f"a frame with {values} in column {name!r}",
            f"numbers or categories for {kind}",
        )
        raise InvalidInput(
            argument="X", found=found, expected=expected, where=where, remedy=remedy.format(name)
        )


_RENAME = "rename it by X.rename(columns=...)"
_NUMBERS = "make numbers of it, in pandas X.astype({{{0!r}: 'float64'}})"


def _unfit(library: str, estimator: Any, X: Any) -> Iterator[tuple[Any, str, str]]:
    """Yield each column of values that a booster refuses: its name, the values, and what to do."""
    params = estimator.get_params() if library == "catboost" else {}
    categories, *others = (
        _columns(X, params.get(f"{kind}_features")) for kind in ("cat", "text", "embedding")
    )
    for name, kind in X.dtypes.items():
        held = getattr(
            getattr(kind, "categories", None), "dtype", kind if name in categories else None
        )
        if held is not None:
            if library == "catboost" and X[name].isna().any():
                yield (
                    name,
                    "missing categories",
                    "give X[{0!r}].astype(object).fillna('none').astype('category')",
                )
            elif library != "lightgbm" and getattr(held, "kind", "") == "f":
                yield (
                    name,
                    f"categories of type {held}",
                    "give X[{0!r}].map(str).astype('category')",
                )
        elif getattr(kind, "kind", "O") not in "biuf" and not any(
            name in taken for taken in others
        ):
            remedy = _remedy(X[name], library)
            if remedy:
                yield name, f"values of type {kind}", remedy


def _columns(X: Any, given: Any) -> set[Any]:
    """Return the names of columns that CatBoost knows by name or by place."""
    return {one if one in X.columns else X.columns[one] for one in given or ()}


def _remedy(column: Any, library: str) -> str:
    """Return what makes numbers or categories of a column; empty if the library takes it."""
    from pandas.api.types import is_object_dtype, is_string_dtype

    if not (is_object_dtype(column.dtype) or is_string_dtype(column.dtype)):
        return "make a number of each, such as days since a day, or leave the column out"
    try:
        column.astype("float64")
    except (TypeError, ValueError):
        return "make categories of it, in pandas X.astype({{{0!r}: 'category'}}), or encode it in a Pipeline"
    return "" if library == "catboost" else _NUMBERS
