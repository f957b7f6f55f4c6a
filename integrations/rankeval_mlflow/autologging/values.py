"""What all runs of automatic logging are made of: settings, values of folds, and the run of a call that failed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.render.markup import markdown
from rankeval_mlflow.delivery.payload import Node
from rankeval_mlflow.layout import FOLD_END, KIND
from rankeval_mlflow.names import param_text, safe_names


@dataclass(frozen=True)
class Settings:
    """The arguments of `autolog`."""

    log_models: bool = True
    log_folds: bool = True
    max_tuning_runs: int | None = None
    registered_model_name: str | None = None
    silent: bool = False


def means(folds: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Return the mean over folds of each measure, and the standard deviation (n - 1) as ``<key>_sd``.

    Parameters
    ----------
    folds : mapping of str to ndarray of shape (n_folds,)
        The values by metric.
    """
    values = {}
    for key, each in folds.items():
        values[key] = float(np.mean(each))
        values[f"{key}_sd"] = float(np.std(each, ddof=1)) if len(each) > 1 else math.nan
    return finite(values)


def steps(folds: Mapping[str, NDArray[np.float64]]) -> tuple[tuple[str, float, int], ...]:
    """Return the value of each fold as a step of ``<key>_fold``.

    Parameters
    ----------
    folds : mapping of str to ndarray of shape (n_folds,)
        The values by metric.
    """
    return tuple(
        (f"{key}{FOLD_END}", float(value), step)
        for key, each in folds.items()
        for step, value in enumerate(each)
        if math.isfinite(value)
    )


def finite(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values that MLflow keeps as they are.

    Parameters
    ----------
    values : mapping of str to float
        The values by metric.
    """
    return {key: value for key, value in values.items() if math.isfinite(value)}


def described(estimator: Any) -> str:
    """Return the class of an estimator; of a QueryRanker, that of its estimator.

    Parameters
    ----------
    estimator : object
        Any estimator.
    """
    inner = getattr(estimator, "estimator", None)
    if type(estimator).__name__ == "QueryRanker" and inner is not None:
        return described(inner)
    return type(estimator).__name__


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters under names and with values that MLflow accepts.

    Parameters
    ----------
    values : mapping
        The values by name.
    """
    names = safe_names({str(name): None for name in values})
    return {names[str(name)]: param_text(value) for name, value in values.items()}


def failed_node(name: str, reason: str, *, started_ms: int, ended_ms: int, label: str) -> Node:
    """Pack a call that failed: a FAILED run that says why.

    Parameters
    ----------
    name : str
        Name of the run.
    reason : str
        The error.
    started_ms, ended_ms : int
        When the call began and ended.
    label : str
        Name of this content in the run.
    """
    return Node(
        name=name,
        label=label,
        tags={KIND: "search" if label.startswith("search") else "cross-validation"},
        sections={label: f"**Failed.** {markdown(param_text(reason))}"},
        files={f"rankeval/{label}/error.txt": reason.encode()},
        status="FAILED",
        started_ms=started_ms,
        ended_ms=ended_ms,
    )
