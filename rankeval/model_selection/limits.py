"""Labels, queries and columns that LightGBM, XGBoost and CatBoost refuse, each with the way out.

The libraries refuse them too, but in the words of C++, when the fold that has them is fitted, and
in a search of scikit-learn as nan. So all rows are looked at before anything is fitted. The tables
say what the libraries do: tests/model_selection/test_limits.py fits them, and only rows that they
refuse are refused here.

The trap: which labels are taken depends on parameters, and a search may set these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from rankeval._checks import shown
from rankeval.errors import InvalidInput
from rankeval.model_selection.libraries import BOOSTERS, Booster, Labels
from rankeval.model_selection.query_ids import encode


def decides(params: Mapping[str, Any]) -> bool:
    """Return whether parameters to try may change which rows a booster takes, or put another estimator in its place."""
    deciding = {"estimator"}
    for booster in BOOSTERS.values():
        deciding.update(booster.objective, booster.decides)
    for name, values in params.items():
        choices = getattr(values, "choices", values)
        listed = choices if isinstance(choices, (list, tuple)) else ()
        if name.rpartition("__")[2] in deciding or any(hasattr(value, "fit") for value in listed):
            return True
    return False


def refuse_labels(
    booster: Booster, estimator: Any, y: NDArray[Any], qid: NDArray[Any], where: str | None = None
) -> None:
    """Raise if a booster refuses a label, or a query of so many rows."""
    kind = type(estimator).__name__
    with np.errstate(over="ignore", invalid="ignore"):
        held = y.astype(np.float32)  # as all three hold them
        beyond = held - np.floor(held)
    taken = _labels_of(booster, estimator, held, is_watched=where is not None)
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
    booster: Booster, estimator: Any, held: NDArray[np.float32], *, is_watched: bool
) -> Labels | None:
    """Return which rows a booster takes by its parameters; None if it takes all."""
    if is_classifier(estimator):
        # Its labels are names of classes, and it chooses the objective by their number.
        return None
    params = estimator.get_params()
    values = (params[name] for name in booster.objective if params.get(name) is not None)
    return booster.labels(estimator, next(values, None), held, is_watched)


def refuse_columns(booster: Booster, estimator: Any, X: Any, where: str | None = None) -> None:
    """Raise if a booster refuses the name or the type of a column."""
    if not hasattr(X, "iloc"):
        return
    kind, known = type(estimator).__name__, dict[str, Any]()
    refusal = partial(InvalidInput, argument="X", where=where)
    for name in X.columns:
        text = booster.column_name(str(name))
        found = f"a frame with a column {name!r}"
        if re.search(booster.unfit_name, text):
            expected = f"a name with none of {booster.unfit_words} for {kind}"
            raise refusal(found=found, expected=expected, remedy=_RENAME)
        if text in known:
            found += f" beside {known[text]!r}, one name for {kind}"
            raise refusal(found=found, remedy=_RENAME)
        known[text] = name
    for name, values, remedy in _unfit(booster, estimator, X):
        found = f"a frame with {values} in column {name!r}"
        expected = f"numbers or categories for {kind}"
        raise refusal(found=found, expected=expected, remedy=remedy.format(name))


_RENAME = "rename it by X.rename(columns=...)"
_NUMBERS = "make numbers of it, in pandas X.astype({{{0!r}: 'float64'}})"


def _unfit(booster: Booster, estimator: Any, X: Any) -> Iterator[tuple[Any, str, str]]:
    """Yield each column of values that a booster refuses: its name, the values, and what to do."""
    params = estimator.get_params()
    categories, *others = (
        _columns(X, params.get(f"{kind}_features")) for kind in ("cat", "text", "embedding")
    )
    for name, kind in X.dtypes.items():
        held = getattr(
            getattr(kind, "categories", None), "dtype", kind if name in categories else None
        )
        if held is not None:
            if not booster.takes_missing_categories and X[name].isna().any():
                yield (
                    name,
                    "missing categories",
                    "give X[{0!r}].astype(object).fillna('none').astype('category')",
                )
            elif not booster.takes_float_categories and getattr(held, "kind", "") == "f":
                yield (
                    name,
                    f"categories of type {held}",
                    "give X[{0!r}].map(str).astype('category')",
                )
        elif getattr(kind, "kind", "O") not in "biuf" and not any(
            name in taken for taken in others
        ):
            remedy = _remedy(X[name], booster)
            if remedy:
                yield name, f"values of type {kind}", remedy


def _columns(X: Any, columns: Any) -> set[Any]:
    """Return the names of columns that a parameter names, or has the places of."""
    return {column if column in X.columns else X.columns[column] for column in columns or ()}


def _remedy(column: Any, booster: Booster) -> str:
    """Return what makes numbers or categories of a column; empty if the library takes it."""
    from pandas.api.types import is_object_dtype, is_string_dtype

    if not (is_object_dtype(column.dtype) or is_string_dtype(column.dtype)):
        return "make a number of each, such as days since a day, or leave the column out"
    try:
        column.astype("float64")
    except (TypeError, ValueError):
        return "make categories of it, in pandas X.astype({{{0!r}: 'category'}}), or encode it in a Pipeline"
    return "" if booster.takes_objects else _NUMBERS
