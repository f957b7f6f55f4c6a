"""Rank rows by columns of scores, in a model of MLflow: by one column, or by a fusion of several.

This file is copied into such models, with `fusion_methods` of rankeval beside it, and runs there
without rankeval. A model names it as its loader, and has the settings of the ranker as its data.

The trap: a fusion scores the rows of a query together. So a request names the query of each row, and
must have all rows of a query; no request shows that rows are missing.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np


class ServedColumns:
    """Ranks rows by a fusion of columns; of one column, it is that column times its weight."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def predict(self, rows: Any, params: Any = None) -> Any:  # noqa: ARG002 - MLflow's signature
        """Return one score a row; higher ranks first."""
        import pandas as pd

        methods = importlib.import_module("fusion_methods")
        columns = [rows[name].astype(np.float64).to_numpy() for name in self.settings["columns"]]
        scores = np.stack(columns)
        _refuse(np.isinf(scores).any(axis=0), "has an infinite score")
        _refuse(np.isnan(scores).all(axis=0), "has no score in any column")
        if self.settings["reads_queries"]:
            query = pd.factorize(rows["qid"])[0]
            _refuse(query < 0, "has no qid")
        else:
            query = np.arange(len(rows))
        return methods.fused(scores, query, **self.settings["fusion"])


def _refuse(wrong: Any, problem: str) -> None:
    if wrong.any():
        raise ValueError(f"row {int(np.argmax(wrong))} {problem}")


def _load_pyfunc(path: str) -> ServedColumns:
    """Return the model whose settings are at this path; MLflow calls this."""
    return ServedColumns(json.loads(Path(path).read_text()))
