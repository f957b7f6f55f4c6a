"""The parts of learning-to-rank data: the words that name them, and the check that no query is in two."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import InvalidInput

PART_OF: dict[str, str] = {
    "train": "train",
    "vali": "vali",
    "valid": "vali",
    "validation": "vali",
    "val": "vali",
    "dev": "vali",
    "test": "test",
}
"""Word -> part, for names of files and values of a column."""


def check_distinct(qids: Mapping[str, NDArray[np.generic]], remedy: str) -> None:
    """Raise if a query is in two parts.

    Parameters
    ----------
    qids : mapping of str to ndarray of shape (n_rows,)
        The query of each row, by part.
    remedy : str
        The end of the message: the way to read such data all the same.

    Raises
    ------
    InvalidInput
        Naming the query and its parts.
    """
    seen: dict[object, str] = {}
    for part, qid in qids.items():
        for query in np.unique(qid).tolist():
            if query in seen:
                raise InvalidInput(
                    f"query {query!r} is in {seen[query]} and in {part}: the same query in both is a leak, and "
                    f"different queries need different ids; {remedy}"
                )
            seen[query] = part
