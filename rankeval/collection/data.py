"""Data to rank, as loaders and splits return it: rows of features with a label and a query id."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from rankeval._arguments import explained
from rankeval._checks import count, require
from rankeval._display import Displayed, View
from rankeval.collection.rows import check_rows
from rankeval.errors import InvalidInput
from rankeval.io.columns import (
    as_typed,
    refuse_missing,
    refuse_unbounded,
    relevances,
    without_view,
)
from rankeval.io.words import Grades

if TYPE_CHECKING:
    import pandas as pd


@explained
@dataclass(frozen=True, eq=False, repr=False)
class RankingData(Displayed):
    """Rows to be ranked within their queries.

    Parameters
    ----------
    X : array, sparse matrix, frame or Arrow table of shape (n_rows, n_features)
        The features.
    y : array of shape (n_rows,)
        The relevance of each row.
    qid : array of shape (n_rows,)
        The query of each row, of any hashable type. The rows of a query need not be adjacent.
    docid : array of shape (n_rows,), optional
        The document of each row.
    feature_names : tuple of str, optional
        Names of the columns of X.
    name : str, optional
        The data's name in reports and logs.
    grades : mapping of str to number, optional
        The grades of labels that are words, such as ``{"Exact": 2, "Irrelevant": 0}``.

    Raises
    ------
    InvalidInput
        If the parts differ in length or index, or a label or an id is refused.

    Examples
    --------
    >>> import numpy as np
    >>> RankingData(np.zeros((3, 2)), [1, 0, 2], ["a", "a", "b"])
    RankingData(3 rows, 2 queries, 2 features)
    """

    X: Any
    y: NDArray[Any]
    qid: NDArray[Any]
    docid: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    name: str | None = None
    grades: InitVar[Grades] = None

    def __post_init__(self, grades: Grades) -> None:
        check_rows(X=self.X, y=self.y, qid=self.qid, docid=self.docid)
        require(getattr(self.X, "shape", ()), "X", self.X, "an array, a sparse matrix or a frame")
        require(self.name is None or isinstance(self.name, str), "name", self.name, "text")
        n_rows = self.X.shape[0]
        for part in ("y", "qid") if self.docid is None else ("y", "qid", "docid"):
            values = getattr(self, part)
            column = relevances(values, "y", grades) if part == "y" else as_typed(values, part)
            object.__setattr__(self, part, column)
            if column.shape != (n_rows,):
                problem = f"{part} has shape {column.shape}, but X has {count(n_rows, 'row')}"
                raise InvalidInput(problem, remedy=f"give one {part} a row")
            (refuse_unbounded if part == "y" else refuse_missing)(column, part)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_queries(self) -> int:
        """Number of distinct queries."""
        # Some objects have no order.
        return len(set(self.qid.tolist()) if self.qid.dtype.kind == "O" else np.unique(self.qid))

    def take(self, rows: ArrayLike, *, name: str | None = None) -> RankingData:
        """Return the data of these rows, in this order.

        Parameters
        ----------
        rows : array of int of shape (n_taken,), or of bool of shape (n_rows,)
            The rows, by number or by mask.
        name : str, optional
            The part's name, by default the name of the whole.

        Raises
        ------
        IndexError
            If there is no such row.

        Examples
        --------
        >>> import numpy as np
        >>> data = RankingData(np.zeros((3, 2)), [1, 0, 2], ["a", "a", "b"])
        >>> data.take([2, 0]).qid.tolist()
        ['b', 'a']
        """
        choice = np.asarray(rows)
        fits = choice.ndim == 1 and (choice.dtype.kind in "biu" or not choice.size)
        require(fits, "rows", rows, "numbers of rows, or a mask")
        if not choice.size:
            choice = choice.astype(np.intp)
        index = np.arange(len(self))[choice]  # so no library counts otherwise
        columns = {"X": take_rows(self.X, index), "y": self.y[index], "qid": self.qid[index]}
        docid = None if self.docid is None else self.docid[index]
        return replace(self, **columns, docid=docid, name=name or self.name)

    def _view(self) -> View:
        label = f"{self.name!r}, " if self.name else ""
        sizes = ((len(self), "row"), (self.n_queries, "query"), (self.X.shape[1], "feature"))
        return View([f"RankingData({label}{', '.join(count(*size) for size in sizes)})"])


def empty_cells(data: RankingData) -> pd.DataFrame:
    """Return which cells are empty, for the features that have any."""
    import pandas as pd

    rows = data.X[:0].toarray() if hasattr(data.X, "tocsr") else data.X
    rows = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
    empty = pd.DataFrame(rows, columns=data.feature_names).isna()
    return empty.loc[:, empty.any()]


def shares_of_empty(data: RankingData) -> list[str]:
    """Say how many cells are empty, of each feature that has any."""
    shares = empty_cells(data).mean().items()
    return [f"{feature}: {100 * share:.3g} % empty" for feature, share in shares]


def stack_rows(tables: list[Any]) -> Any:
    """Return the rows of several arrays, sparse matrices or frames as one of the same kind."""
    if hasattr(tables[0], "iloc"):
        import pandas as pd

        return pd.concat(tables, ignore_index=True)
    if hasattr(tables[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(tables, format="csr")
    return np.vstack(tables)


def take_rows(table: Any, rows: NDArray[Any]) -> Any:
    """Return rows, by number, of a matrix, a frame, an Arrow table or a list, as the same kind."""
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if isinstance(table, (pa.Table, pa.RecordBatch)):
        fields = [field.with_type(without_view(field.type)) for field in table.schema]
        # In the metadata pandas notes which column is the index.
        return table.cast(pa.schema(fields, table.schema.metadata)).take(rows)
    if hasattr(table, "tocsr"):
        return table.tocsr()[rows]
    if hasattr(table, "shape"):
        return table[rows]
    return [table[row] for row in rows]
