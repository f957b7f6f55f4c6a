"""A cross-validation as a record, and back.

::

    parts      dev                  the pooled evaluation, by the role of the data
    metrics    nDCG_at_10_sd        the standard deviation of the folds (n - 1); 0 says that folds agree
    series     nDCG_at_10_fold      the value of each fold, by its number
               fold_queries, fold_fit_seconds, fold_score_seconds
    tables     folds, predictions, and best_params, those that a search chose
    facts      the splits, and which parameters differ from their defaults
    children   fold 0, fold 1 ...   if asked for
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.render.tables import Table
from rankeval.shelf.record import Record

if TYPE_CHECKING:
    import pandas as pd

FOLD_END, FOLD_START = "_fold", "fold_"
"""The end of the names of a measure's series over folds, and the start of those of other facts of folds."""

_FACTS = {
    name: f"{FOLD_START}{name.removeprefix('n_')}"
    for name in ("n_queries", "fit_seconds", "score_seconds")
}
"""Columns of the table of folds that are no measures, and the names of their series."""


@dataclass(frozen=True)
class Split:
    """The queries that one fold trains on and holds out."""

    n_train: int  # Numbers of queries
    n_test: int
    digest: str  # Digest of their ids; equal if two folds are the same

    @classmethod
    def of(cls, train: NDArray[Any], test: NDArray[Any]) -> Split:
        """Return the split of these query ids, given by row."""
        parts = [
            sorted({str(query) for query in np.unique(side).tolist()}) for side in (train, test)
        ]
        spelled = "\0\0".join("\0".join(part) for part in parts)
        return cls(len(parts[0]), len(parts[1]), hashlib.sha256(spelled.encode()).hexdigest()[:32])


def validation_record(
    cv: Any,
    settings: Mapping[str, tuple[str, bool]],
    *,
    role: str,
    data: Any,
    name: str | None,
    folds: bool,
    predictions: bool,
) -> Record:
    """Return the record of a cross-validation; `CrossValidation.record` documents the options."""
    evaluation = cv.evaluation.record(role=role, data=data)
    keys = dict(
        zip(cv.evaluation.measure_names, (one.key for one in cv.evaluation.measures), strict=True)
    )
    names = {label: f"{key}{FOLD_END}" for label, key in keys.items()} | _FACTS
    chosen = {} if cv.best_params is None else {"best_params": cv.best_params}
    kept = {"predictions": _frame(cv.predictions)} if predictions else {}
    children = (
        {f"fold {place}": _fold(cv, place, keys) for place in range(len(cv.folds))} if folds else {}
    )
    texts = {name: text for name, (text, _) in settings.items()}
    changed = [name for name, (_, is_changed) in settings.items() if is_changed]
    spread = {f"{key}_sd": float(cv.folds[label].std(ddof=1)) for label, key in keys.items()}
    series = {
        name: dict(enumerate(cv.folds[column].astype(float))) for column, name in names.items()
    }
    return Record(
        kind="cross-validation",
        name=name or cv.evaluation.name or "cross-validation",
        headline=evaluation.headline,
        params={**texts, "n_folds": str(len(cv.folds))},
        metrics=spread,
        series=series,
        tables={"folds": cv.folds, **chosen, **kept},
        text=Table(table_of_folds(cv).reset_index(), caption=_CAPTION).to_markdown(),
        facts={"splits": [asdict(split) for split in cv.splits], "changed": changed},
        parts={role: evaluation},
        children=children,
        seconds=_seconds(cv.folds),
    )


_CAPTION = "Folds; metrics are over all queries. Their training parts overlap, so they are no sample to test on."


def record_of_several(children: Mapping[str, Record], folds: pd.DataFrame, name: str) -> Record:
    """Return the record of several cross-validations on the same folds."""
    means = folds.groupby("system", sort=False).mean(numeric_only=True)
    caption = "Means of folds. The runs below have the means over all queries."
    first = next(iter(children.values()))
    return Record(
        kind="cross-validations",
        name=name,
        headline=f"{len(children)} rankers on the same folds",
        params={"n_systems": str(len(children)), "n_folds": first.params["n_folds"]},
        tables={"folds": folds},
        text=Table(means.reset_index(), caption=caption).to_markdown(),
        data=next(iter(first.parts.values())).data,  # all rankers have the same rows
        children=children,
        seconds=_seconds(folds),
    )


def fields_of(record: Record) -> dict[str, Any]:
    """Return the fields of the cross-validation of a record, but for its evaluation."""
    tables, changed = record.tables, set(record.facts["changed"])
    settings = {
        name: (str(text), name in changed)
        for name, text in record.params.items()
        if name != "n_folds"
    }
    predictions: Any = tables["predictions"]["score"] if "predictions" in tables else []
    return {
        "folds": tables["folds"],
        "predictions": np.asarray(predictions, dtype=np.float64),
        "splits": tuple(Split(**split) for split in record.facts["splits"]),
        "best_params": tables.get("best_params"),
        "settings": settings,
    }


def table_of_folds(cv: Any) -> pd.DataFrame:
    """Return the folds, with the parameters that a search chose in each."""
    folds: pd.DataFrame = cv.folds if cv.best_params is None else cv.folds.join(cv.best_params)
    return folds


def _fold(cv: Any, place: int, keys: Mapping[str, str]) -> Record:
    """Return one fold; its queries are in the evaluation above, so it has no file."""
    row = cv.folds.iloc[place]
    params: dict[str, Any] = {"fold": place}
    if place < len(cv.splits):
        params |= {
            "train_queries": cv.splits[place].n_train,
            "test_queries": cv.splits[place].n_test,
        }
    if cv.best_params is not None:
        params |= {str(name): str(value) for name, value in cv.best_params.iloc[place].items()}
    return Record(
        kind="fold",
        name=f"fold {place}",
        params=params,
        metrics={
            name: float(row[column])
            for column, name in {**keys, **{name: name for name in _FACTS}}.items()
        },
        seconds=_seconds(cv.folds.iloc[[place]]),
    )


def _seconds(folds: pd.DataFrame) -> float:
    return float(folds[["fit_seconds", "score_seconds"]].to_numpy(dtype=float).sum())


def _frame(predictions: NDArray[np.float64]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({"score": predictions})
