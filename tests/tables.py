"""A law that holds for every row of a table is one case: a case for each row costs more than most rows do."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from rankeval._display import view_of


def each_row(
    names: str | Iterable[str], rows: Iterable[Any], *, ids: Iterable[str] | Callable[[Any], Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Try a law on all rows in one case, and name the rows that fail; read as ``pytest.mark.parametrize`` is.

    Each row has a folder of its own, in which it starts, and its own `monkeypatch`; other fixtures are shared. Rows
    with marks, and rows that may be skipped, need `parametrize`.
    """
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [ParameterSet.extract_from(row, force_tuple=len(parameters) == 1) for row in rows]
    if not table or any(row.marks or len(row.values) != len(parameters) for row in table):
        raise ValueError(f"expected rows of {parameters} without marks, found {table}")
    given = None if ids is None or callable(ids) else list(ids)

    def named(number: int) -> str:
        row = table[number]
        shown = row.id or (given[number] if given else ", ".join(map(repr, row.values)))
        return f"row {number}: {shown[:300]}"

    def decorate(law: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(law)
        def law_of_the_table(**fixtures: Any) -> None:
            here, failures = Path.cwd(), []
            for number, row in enumerate(table):
                folder = here / str(number)
                folder.mkdir()
                os.chdir(folder)
                with pytest.MonkeyPatch.context() as monkeypatch:
                    own = {"tmp_path": folder, "monkeypatch": monkeypatch}
                    mine = {name: own.get(name, value) for name, value in fixtures.items()}
                    try:
                        law(**mine, **dict(zip(parameters, row.values, strict=True)))
                    except BaseException as error:
                        error.add_note(named(number))
                        if not isinstance(error, Exception):  # of `pytest.raises`, of a limit of time, of the user
                            raise
                        failures.append(error)
                os.chdir(here)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} rows", failures)

        needed = [value for name, value in inspect.signature(law).parameters.items() if name not in parameters]
        law_of_the_table.__signature__ = inspect.Signature(needed)
        # For the drills, which bring a row of their own.
        law_of_the_table.of_a_row = getattr(law, "of_a_row", law)
        law_of_the_table.rows = {**getattr(law, "rows", {}), tuple(parameters): [row.values for row in table]}
        return law_of_the_table

    return decorate


def in_full(result: Any) -> str:
    """Return a result with all its rows and notes, as the command line prints it in a wide terminal."""
    return f"{view_of(result).to_text(width=2000, lines=None)}\n"
