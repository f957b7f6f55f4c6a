"""Find the cell that is wrong, and its line: only for errors.

Readers keep no line numbers and do not check single cells, because both cost more than the reading. If a column is
refused as a whole, the file is read once more here, cell by cell, for a message such as "run.csv, line 5, column
score: expected a finite number, found 'x'".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rankeval.errors import FileFormatError
from rankeval.io.columns import Columns
from rankeval.io.text import BOM, number_of, numbers_of_texts


def text_lines(data: bytes, comment: bytes | None = None) -> list[int]:
    """Return the number of each line, from 1, that is neither blank nor a comment."""
    lines = enumerate(data.removeprefix(BOM).split(b"\n"), start=1)
    return [number for number, line in lines if (text := line.strip()) and text[:1] != comment]


def wrong_cell(columns: Columns, value: str, places: Sequence[str], where: str) -> FileFormatError | None:
    """Make the error for the first cell that is no id, or no number, or of another type than the first of its column.

    Parameters
    ----------
    columns : Columns
        As a reader returned them.
    value : {"relevance", "score"}
        The name of the numbers.
    places : sequence of str
        The place of each row, such as ``"line 2"``.
    where : str
        The file's name for messages.
    """
    # The first bad cell of each column, then the topmost of these: a shifted row is bad in several columns.
    found = []
    for name in ("qid", "docid", "aspect", "subgroup", "value"):
        cells = getattr(columns, name)
        cells = cells.to_pylist() if hasattr(cells, "to_pylist") else [] if cells is None else list(cells)
        for row, cell in enumerate(cells):
            problem = _no_number(cell, value) if name == "value" else _no_id(cell)
            if not problem and isinstance(cell, str) != isinstance(cells[0], str):
                problem = f"found {cell!r}, but {cells[0]!r} above: give all values of a column the same type"
            if problem:
                place = places[row] if row < len(places) else f"row {row + 1}"
                found.append((row, f"{where}, {place}, column {value if name == 'value' else name}: {problem}"))
                break
    return FileFormatError(min(found)[1]) if found else None


def _no_id(cell: Any) -> str:
    if cell is None or cell == "":
        return f"expected an id, found {'nothing' if cell is None else repr(cell)}"
    if isinstance(cell, bytes):
        return f"expected UTF-8 text, found {cell[:80]!r}" if "\ufffd" in cell.decode(errors="replace") else ""
    if isinstance(cell, bool) or not isinstance(cell, (str, int)):
        return f"ids are text or integers, found {cell!r}"
    if isinstance(cell, str) and any("\ud800" <= letter <= "\udfff" for letter in cell):
        return f"expected text, found {cell!r}, which holds half a character"
    if isinstance(cell, int) and not -(2**63) <= cell < 2**63:
        return f"found {cell}, an integer beyond 64 bits: give it as text"
    return ""


def _no_number(cell: Any, value: str) -> str:
    try:
        if isinstance(cell, str):
            number_of(cell, "")
            (cell,) = numbers_of_texts([cell])
        elif cell is None:
            return "expected a finite number, found nothing"
        if not math.isfinite(cell):
            return f"expected a finite number, found {cell}"
        if isinstance(cell, int) and (int(float(cell)) != cell if value == "score" else not -(2**63) <= cell < 2**63):
            return f"found {cell}, which a 64-bit {'float' if value == 'score' else 'whole number'} cannot hold"
    except FileFormatError as error:
        return str(error).removeprefix(": ")
    except (TypeError, OverflowError):
        return f"expected a finite number, found {str(cell)[:80]}"
    return ""
