"""Check that columns given in one call have the same rows.

Arrays go together by position, pandas objects by label. If both could be meant, a wrong guess gives a number like any
other: a shuffled ``df.y`` beside ``pd.Series(model.predict(X))`` is right by position and wrong by label; a shuffled
``qid`` is the other way round. So all Series and frames of one call must have equal indexes in the same order, and
then both readings agree. Columns without an index go by position.
"""

from __future__ import annotations

from typing import Any

from rankeval.errors import QueryIdError
from rankeval.io.columns import refuse_masked


def check_rows(**columns: Any) -> None:
    """Refuse columns of one call whose indexes differ, and masked values; lengths are left to the caller.

    Parameters
    ----------
    **columns : array-like of shape (n_rows, ...) or None
        Arguments by name.

    Raises
    ------
    QueryIdError
        If two have different indexes.
    InvalidInput
        If one masks a value.
    """
    first, known = "", None
    for name, column in columns.items():
        refuse_masked(column, name)
        index = index_of(column)
        if index is None:
            continue
        if known is None:
            first, known = name, index
        elif len(known) == len(index) and (found := _difference(known, index)):
            row, one, other = found
            raise QueryIdError(
                f"{first} and {name} have different indexes: row {row} is {one!r} in {first} and {other!r} in {name}. "
                f"If the labels say which rows belong together, give {name}.loc[{first}.index]; if the rows are in the "
                f"same order, give {name}.to_numpy(), or both the same index"
            )


def index_of(column: Any) -> Any | None:
    """Return the pandas index of a Series or frame; None for other columns."""
    index = getattr(column, "index", None)
    return index if hasattr(index, "get_indexer") else None


def same_rows(one: Any, other: Any) -> bool:
    """Say whether two pandas indexes have equal labels in the same order."""
    return len(one) == len(other) and _difference(one, other) is None


def _difference(one: Any, other: Any) -> tuple[int, Any, Any] | None:
    """Return the first row at which two indexes of one length differ, and its labels; None if there is no such row."""
    if one is other or one.equals(other):
        return None
    # Compare labels too: for pandas an index of pyarrow's integers never equals one of NumPy's.
    for row, (left, right) in enumerate(zip(one.tolist(), other.tolist(), strict=True)):
        if left is right:  # pd.NA cannot be compared with itself
            continue
        if type(left) is not type(right) or not (left == right or (left != left and right != right)):  # noqa: PLR0124 - nan
            return row, left, right
    return None
