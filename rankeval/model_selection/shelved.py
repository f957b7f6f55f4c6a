"""A cross-validation as a record, and back.

::

    parts      dev                  the pooled evaluation, by the role of the data
    metrics    nDCG_at_10_sd        the standard deviation of the folds (n - 1); 0 says that folds agree
    series     nDCG_at_10_fold      the value of each fold, by its number
               fold_queries, fold_fit_seconds, fold_score_seconds
    tables     folds, predictions, and best_params, those that a search chose; diagnosis
    facts      the splits, which parameters differ from their defaults, the rest of the diagnosis
    notes      the findings of the diagnosis
    children   fold 0, fold 1 ...   if asked for
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import GuardRefusal, GuardRefusalError
from rankeval.model_selection.diagnosis import Diagnosis
from rankeval.model_selection.parameters import SHOWN
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
"""Columns of the table of folds that are not measures, and the names of their series."""

_OF_DIAGNOSIS = ("measure", "alpha", "n_queries", "notes")
"""Fields of a diagnosis beside its table."""


@dataclass(frozen=True)
class Split:
    """The queries that one fold trains on and holds out."""

    n_train: int  # Numbers of queries
    n_test: int
    digest: str  # Digest of their ids; equal if two folds are the same

    @classmethod
    def of(cls, train: NDArray[Any], test: NDArray[Any]) -> Split:
        """Return the split of these query ids, given by row."""
        parts = [sorted(set(map(str, np.unique(side).tolist()))) for side in (train, test)]
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
    import pandas as pd

    diagnosis, notes = diagnosed(cv)
    said = " ".join(f"{note}." for note in notes)
    evaluation = cv.evaluation.record(role=role, data=data, note=said)
    measures = zip(cv.evaluation.measure_names, cv.evaluation.measures, strict=True)
    keys = {label: measure.key for label, measure in measures}
    names = {label: f"{key}{FOLD_END}" for label, key in keys.items()} | _FACTS
    tables = {"folds": cv.folds}
    if cv.best_params is not None:
        tables["best_params"] = cv.best_params
    if predictions:
        columns = [f"seed {seed}" for seed in cv.evaluation.facts.seeds] or ["score"]
        tables["predictions"] = pd.DataFrame(cv.predictions, columns=columns)
    numbers = range(len(cv.folds)) if folds else ()
    children = {f"fold {number}": _fold(cv, number, keys) for number in numbers}
    params = {setting: text for setting, (text, _) in settings.items()}
    params["n_folds"] = str(len(cv.folds))
    changed = [setting for setting, (_, is_changed) in settings.items() if is_changed]
    facts: dict[str, Any] = {"splits": [asdict(split) for split in cv.splits], "changed": changed}
    if diagnosis is not None:
        tables["diagnosis"] = diagnosis.table
        facts["diagnosis"] = {name: vars(diagnosis)[name] for name in _OF_DIAGNOSIS}
    table = Table(table_of_folds(cv).reset_index(), caption=_CAPTION, notes=notes)
    spread = {f"{key}_sd": float(cv.folds[label].std(ddof=1)) for label, key in keys.items()}
    series = {key: dict(enumerate(cv.folds[column].astype(float))) for column, key in names.items()}
    return Record(
        kind="cross-validation",
        name=name or cv.evaluation.name or "cross-validation",
        headline=evaluation.headline,
        params=params,
        metrics=spread,
        series=series,
        tables=tables,
        notes=notes,
        text=table.to_markdown(),
        facts=facts,
        parts={role: evaluation},
        children=children,
        seconds=_seconds(cv.folds),
    )


def diagnosed(cv: Any) -> tuple[Diagnosis | None, tuple[str, ...]]:
    """Return the diagnosis of a cross-validation and its findings, or none and the reason, if it has rows."""
    if cv.inputs is None and cv.diagnosis is None:
        return None, ()
    try:
        diagnosis = cv.diagnose()
    except (GuardRefusal, GuardRefusalError):  # what was made before stays on record
        return None, ("the fit was not diagnosed: its rows are registered test content now",)
    return diagnosis, diagnosis.findings


_CAPTION = "Folds; metrics are over all queries. Training parts overlap, so folds are not a sample for a test."


def record_of_several(children: Mapping[str, Record], folds: pd.DataFrame, name: str) -> Record:
    """Return the record of several cross-validations on the same folds."""
    means = folds.groupby("system", sort=False).mean(numeric_only=True)
    caption = "Means of folds. The runs below have the means over all queries."
    table = Table(means.reset_index(), caption=caption)
    first = next(iter(children.values()))
    (evaluation,) = first.parts.values()
    params = {"n_systems": str(len(children)), "n_folds": first.params["n_folds"]}
    return Record(
        kind="cross-validations",
        name=name,
        headline=f"{len(children)} rankers on the same folds",
        params=params,
        tables={"folds": folds},
        text=table.to_markdown(),
        data=evaluation.data,  # all rankers have the same rows
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
    diagnosis = None
    if "diagnosis" in tables:
        diagnosis = Diagnosis(tables["diagnosis"], **record.facts["diagnosis"])
    scores: Any = tables["predictions"].to_numpy() if "predictions" in tables else []
    return {
        "folds": tables["folds"],
        "predictions": np.squeeze(np.asarray(scores, dtype=np.float64)),
        "splits": tuple(Split(**split) for split in record.facts["splits"]),
        "best_params": tables.get("best_params"),
        "settings": settings,
        "diagnosis": diagnosis,
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
        split = cv.splits[place]
        params |= {"train_queries": split.n_train, "test_queries": split.n_test}
    if cv.best_params is not None:
        chosen = cv.best_params.iloc[place]
        names = cv.best_params.attrs.get(SHOWN, {})
        params |= {names.get(name, str(name)): str(value) for name, value in chosen.items()}
    metrics = {key: float(row[label]) for label, key in keys.items()}
    metrics |= {name: float(row[name]) for name in _FACTS}
    seconds = _seconds(cv.folds.iloc[[place]])
    return Record(
        kind="fold", name=f"fold {place}", params=params, metrics=metrics, seconds=seconds
    )


def _seconds(folds: pd.DataFrame) -> float:
    return float(folds[["fit_seconds", "score_seconds"]].to_numpy(dtype=float).sum())
