"""Rank rows by a column of theirs, in a model of MLflow.

This file is copied into such models and runs there without rankeval. A model names it as its
loader, and has the settings of the ranker as its data.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np


class ServedColumns:
    """Ranks rows by a column."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def predict(self, rows: Any, params: Any = None) -> Any:  # noqa: ARG002 - MLflow's signature
        """Return one score a row; higher ranks first."""
        column = self.settings["column"]
        values = rows[column] if hasattr(rows, "iloc") else rows[:, self.settings["place"]]
        values = values.toarray().ravel() if hasattr(values, "toarray") else values
        scores = np.asarray(values, dtype=np.float64)
        finite = np.isfinite(scores)
        if not finite.all():
            row = int(np.argmin(finite))
            raise ValueError(f"column {column}: row {row} is {scores[row]}; expected a score")
        return -scores if self.settings["ascending"] else scores


def _load_pyfunc(path: str) -> ServedColumns:
    """Return the model whose settings are at this path; MLflow calls this."""
    return ServedColumns(json.loads(Path(path).read_text()))
