"""XGBoost and CatBoost, which '.[test]' does not install, so that tables of cases can name their estimators anyway.

If a library is absent, its classes only remember how they are made, and `each` marks the rows that need it.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import pytest
from circles import missing

SIGNS = {"xgboost": "xgb", "catboost": "catboost"}
"""Package -> text that its name and the names of its classes have, in lower case."""


class Absent:
    """An estimator of a library that is not installed."""

    def __init__(self, **params: Any) -> None:
        self.params = params

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _class(package: str, name: str) -> Any:
    return type(name, (Absent,), {}) if missing("needs", (package,)) else getattr(import_module(package), name)


XGBRanker, XGBRegressor = (_class("xgboost", name) for name in ("XGBRanker", "XGBRegressor"))
CatBoostRanker, CatBoostRegressor = (_class("catboost", name) for name in ("CatBoostRanker", "CatBoostRegressor"))


def packages_of(row: object) -> list[str]:
    """Return which of the two libraries a row of a table names, by what it prints."""
    return [package for package, sign in SIGNS.items() if sign in repr(row).lower()]


def each(rows: Iterable[Any]) -> list[Any]:
    """Return the rows of a table of cases, each with the packages that it needs; a tuple is several arguments."""
    return [
        pytest.param(
            *(row if isinstance(row, tuple) else (row,)),
            marks=[pytest.mark.needs(package) for package in packages_of(row)],
        )
        for row in rows
    ]


def installed(rows: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of a table whose libraries are installed."""
    return {name: row for name, row in rows.items() if not missing("needs", tuple(packages_of((name, row))))}
