"""Pack cross-validations: every fold as a step of a metric, the spread over folds, and a nested run of each fold.

The layout, beside that of the pooled evaluation of the role::

    metrics    nDCG_at_10          the mean over queries, each scored by the model that did not see it
               nDCG_at_10_fold     the value of each fold, the fold as step: a line in MLflow's charts
               nDCG_at_10_sd       their standard deviation (n - 1); 0 says that folds agree, not that models do
               fold_queries, fold_fit_seconds, fold_score_seconds      by step as well
    params     n_folds
    artifacts  rankeval/dev/folds.csv
    children   one run a fold: nDCG_at_10, n_queries, its seconds, the parameters that a search chose in it
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rankeval.render.tables import Table
from rankeval.tracking import LoggedData
from rankeval_mlflow.delivery.payload import Node
from rankeval_mlflow.layout import FOLD_END, FOLD_START, KIND
from rankeval_mlflow.names import param_text, safe_names
from rankeval_mlflow.packing.evaluation import evaluation_node, keys_of

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.model_selection.results import CrossValidation

_FACTS = {
    "n_queries": f"{FOLD_START}queries",
    "fit_seconds": f"{FOLD_START}fit_seconds",
    "score_seconds": f"{FOLD_START}score_seconds",
}
"""Columns of the table of folds that are no measures, and the names of their metrics."""


def fold_steps(cv: CrossValidation) -> tuple[tuple[str, float, int], ...]:
    """Return the metrics of each fold, the fold as step; values that are not finite are left out.

    Parameters
    ----------
    cv : CrossValidation
        The result.
    """
    names = {label: f"{key}{FOLD_END}" for label, key in keys_of(cv.evaluation).items()} | _FACTS
    return tuple(
        (names[label], float(value), step)
        for label in names
        for step, value in enumerate(cv.folds[label].to_numpy(dtype=float))
        if math.isfinite(value)
    )


def fold_spread(cv: CrossValidation) -> dict[str, float]:
    """Return the standard deviation of each measure over the folds, by metric name; none for one fold.

    Parameters
    ----------
    cv : CrossValidation
        The result.
    """
    spread = {f"{key}_sd": float(cv.folds[label].std(ddof=1)) for label, key in keys_of(cv.evaluation).items()}
    return {name: value for name, value in spread.items() if math.isfinite(value)}


def cross_validation_node(
    cv: CrossValidation, role: str, data: LoggedData | None, *, ended_ms: int, name: str | None = None, children: bool
) -> Node:
    """Pack a cross-validation: its pooled evaluation, and its folds.

    Parameters
    ----------
    cv : CrossValidation
        The result.
    role : str
        The role of its data.
    data : LoggedData, optional
        The data set.
    ended_ms : int
        When it ended, in milliseconds since 1970. It began as many seconds before as its folds took one by one.
    name : str, optional
        Name of the run.
    children : bool
        Whether each fold is a nested run too.
    """
    node = evaluation_node(cv.evaluation, role, data)
    folder = f"rankeval/{role}"
    return replace(
        node,
        name=name or cv.evaluation.name or "cross-validation",
        params={**node.params, "n_folds": str(len(cv.folds))},
        metrics={**node.metrics, **fold_spread(cv)},
        tags={**node.tags, KIND: "cross-validation"},
        steps=(*node.steps, *fold_steps(cv)),
        files={**node.files, f"{folder}/folds.csv": _table(cv).to_csv().encode()},
        sections={**node.sections, f"{role} folds": _section(cv)},
        started_ms=ended_ms - _milliseconds(cv.folds),
        ended_ms=ended_ms,
        children=tuple(_child(cv, place, ended_ms) for place in range(len(cv.folds))) if children else (),
    )


def several_node(nodes: dict[str, Node], tables: pd.DataFrame, *, ended_ms: int, name: str) -> Node:
    """Pack the cross-validations of several rankers as children of one run.

    Parameters
    ----------
    nodes : dict of str to Node
        The run of each ranker, by name.
    tables : DataFrame
        The folds of all, by system and fold.
    ended_ms : int
        When they ended.
    name : str
        Name of the run.
    """
    means = tables.groupby("system", sort=False).mean(numeric_only=True)
    caption = "Means over folds. The runs below have the means over queries."
    return Node(
        name=name,
        label="cross-validation",
        params={"n_systems": str(len(nodes)), "n_folds": next(iter(nodes.values())).params["n_folds"]},
        tags={KIND: "cross-validation"},
        files={"rankeval/cross-validation/folds.csv": tables.to_csv().encode()},
        sections={"cross-validation": Table(means.reset_index(), caption=caption).to_markdown()},
        started_ms=ended_ms - _milliseconds(tables),
        ended_ms=ended_ms,
        datasets=next(iter(nodes.values())).datasets,  # all rankers have the same rows
        children=tuple(nodes.values()),
    )


def _child(cv: CrossValidation, place: int, ended_ms: int) -> Node:
    """Pack one fold. Its queries are in the parent's evaluation, so it has no file of its own."""
    row = cv.folds.iloc[[place]]
    keys = keys_of(cv.evaluation)
    values = {key: float(row[label].iloc[0]) for label, key in keys.items()} | {"n_queries": _number(row, "n_queries")}
    values |= {name: _number(row, name) for name in ("fit_seconds", "score_seconds")}
    params: dict[str, Any] = {"fold": place}
    if place < len(cv.splits):
        params |= {"train_queries": cv.splits[place].n_train, "test_queries": cv.splits[place].n_test}
    if cv.best_params is not None:
        params |= {str(key): value for key, value in cv.best_params.iloc[place].items()}
    names = safe_names(params)
    return Node(
        name=f"fold {place}",
        label="fold",
        params={names[key]: param_text(value) for key, value in params.items()},
        metrics={key: value for key, value in values.items() if math.isfinite(value)},
        tags={KIND: "fold"},
        started_ms=ended_ms - _milliseconds(row),
        ended_ms=ended_ms,
    )


def _number(row: pd.DataFrame, name: str) -> float:
    return float(row[name].iloc[0])


def _milliseconds(folds: pd.DataFrame) -> int:
    """Return how long the folds took, one after the other."""
    return round(1000 * float(folds[["fit_seconds", "score_seconds"]].to_numpy(dtype=float).sum()))


def _table(cv: CrossValidation) -> pd.DataFrame:
    """Return the folds, with the parameters that a search chose in each."""
    return cv.folds if cv.best_params is None else cv.folds.join(cv.best_params)


def _section(cv: CrossValidation) -> str:
    """Describe the folds in Markdown."""
    frame = _table(cv).reset_index()
    caption = "Folds. Their training parts overlap, so they are no sample to test on."
    return Table(frame, caption=caption, notes=cv.notes).to_markdown()
