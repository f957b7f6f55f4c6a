"""Code categories and missing numbers, and make scores of classes, in a model of MLflow.

This file is copied into such models, with `category_columns` of rankeval beside it, and runs there
without rankeval. A model names it as its loader. The rule for classes is that of
`rankeval.evaluation.responses`: the probability of the second class, or the expected grade if there
are several classes.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

SETTINGS = "served_ranker.json"
"""The file of a model: its flavour, whether its scores are of classes, and its columns of categories and numbers."""


def as_floats(column: Any) -> Any:
    """Return a column of numbers or truth values as floats; None and pandas' NA become NaN."""
    return column.astype(object).where(column.notna(), np.nan).astype(np.float64)


def with_columns(rows: Any, columns: dict[Any, Any]) -> Any:
    """Return a frame with other columns in place of some; their names may be numbers."""
    frame = rows.copy(deep=False)
    for name, column in columns.items():
        frame[name] = column
    return frame


class ServedRanker:
    """Ranks rows by a fitted estimator."""

    def __init__(self, model: Any, settings: dict[str, Any]) -> None:
        import pandas as pd

        self.model: Any = model
        self.gives_classes: bool = settings["gives_classes"]
        self.keep_unknown: bool = settings["keep_unknown"]
        self.known: dict[str, Any] = {
            name: pd.CategoricalDtype(
                pd.Index(kind["categories"], dtype=kind["dtype"]), kind["ordered"]
            )
            for name, kind in settings["categories"].items()
        }
        self.numbers: list[Any] = settings["numbers"]

    def predict(self, rows: Any, params: Any = None) -> Any:  # noqa: ARG002 - MLflow's signature
        """Return one score a row; higher ranks first."""
        if self.known:
            columns = importlib.import_module("category_columns")
            rows = columns.coded(rows, self.known, keep_unknown=self.keep_unknown)
        gaps = [name for name in self.numbers if rows[name].dtype == object]
        rows = with_columns(rows, {name: as_floats(rows[name]) for name in gaps}) if gaps else rows
        inner = self.model
        if not self.gives_classes:
            return inner.predict(rows)
        if not hasattr(inner, "predict_proba"):
            ranks = hasattr(inner, "decision_function") and len(inner.classes_) <= 2
            return np.asarray((inner.decision_function if ranks else inner.predict)(rows)).astype(
                np.float64
            )
        values = np.asarray(inner.predict_proba(rows))
        if values.shape[1] > 2:
            return values @ np.asarray(inner.classes_, dtype=np.float64)
        return values[:, -1].astype(np.float64)


def _load_pyfunc(path: str) -> ServedRanker:
    """Return the model whose file, or folder, is at this path; MLflow calls this."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    settings = json.loads((folder / SETTINGS).read_text())
    flavour = importlib.import_module(f"mlflow.{settings['flavor']}")
    return ServedRanker(flavour.load_model(str(folder)), settings)
