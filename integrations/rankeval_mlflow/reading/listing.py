"""List the runs that hold evaluations, and the ledgers that runs name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankeval_mlflow.delivery.completeness import roles_of
from rankeval_mlflow.layout import COMPLETE, FOLD_END, FOLD_START, ROLE
from rankeval_mlflow.reading.asking import asking, experiment_ids, pages
from rankeval_mlflow.reading.where import resolve, text_of

_HEAD = ".guard.head"
"""The end of the tags that hold the head of a ledger."""

PAGE = 10_000
"""Runs to a page, as `mlflow.search_runs` asks for: a store makes the whole search again for each page."""


@dataclass(frozen=True)
class LoggedRun:
    """A run with evaluations: their roles, and the metrics with bare names, which are of one role ("" if of none)."""

    run_id: str
    name: str
    roles: tuple[str, ...]
    metrics: Mapping[str, float]
    metrics_role: str


def logged_runs(experiment: str | None = None, uri: str | None = None) -> list[LoggedRun]:
    """Return the runs with whole evaluations, newest first.

    Parameters
    ----------
    experiment : str, optional
        Name of an experiment; by default all.
    uri : str, optional
        The tracking store; by default MLflow's own setting.

    Raises
    ------
    UnknownName
        If the experiment does not exist.
    TrackingError
        If the store cannot be reached.
    """
    with asking(uri, "its runs" if experiment is None else f"the runs of experiment {experiment!r}") as client:
        ids = experiment_ids(client, experiment)
        runs = list(pages(client.search_runs, ids, f"tags.`{COMPLETE}` LIKE '%'", max_results=PAGE))
    return [found for found in map(_logged_run, runs) if found.roles]


def noted_heads(name: Any, uri: str | None = None) -> list[tuple[str, str]]:
    """Return the ledgers that a run names, each with the head that it had then.

    Parameters
    ----------
    name : str or object
        A run or a model, as in `load_evaluation`.
    uri : str, optional
        The tracking store; by default MLflow's own setting.

    Raises
    ------
    InvalidInput
        If there is no such run.
    TrackingError
        If the store cannot be reached.
    """
    with asking(uri, text_of(name)) as client:
        tags = resolve(client, name).run.data.tags
    keys = [key for key, value in tags.items() if key.endswith(_HEAD) and key.startswith("rankeval.") and value]
    return [(tags.get(f"{key.removesuffix(_HEAD)}.guard.ledger", ""), tags[key]) for key in sorted(keys)]


def _logged_run(run: Any) -> LoggedRun:
    """Describe a run; the role with bare metric names comes first. Values of single folds are none of the run."""
    tags = run.data.tags
    metrics = {key: value for key, value in run.data.metrics.items() if "/" not in key and not _is_of_fold(key)}
    return LoggedRun(run.info.run_id, run.info.run_name or "", roles_of(tags), metrics, tags.get(ROLE, ""))


def _is_of_fold(metric: str) -> bool:
    return metric.startswith(FOLD_START) or metric.endswith(FOLD_END)
