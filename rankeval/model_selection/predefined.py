"""Use folds that a data set defines, such as LETOR's Fold1 to Fold5, by the ids of their queries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval._registry import unknown
from rankeval.datasets import load_letor_parts
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.model_selection.query_split import QuerySplit

PARTS = ("train", "vali", "test")


class PredefinedFolds(QuerySplit):
    """Splits given by the ids of queries.

    Ids are compared as text, so 7 equals "7". A query of the data that a fold does not name is left out of the fold.

    Parameters
    ----------
    folds : iterable of (train, test)
        The ids of the queries of each part.

    Raises
    ------
    InvalidInput
        If there are no folds, a part is empty, or a query is in both parts of a fold.

    Examples
    --------
    >>> cv = PredefinedFolds([(["a"], ["b"]), (["b"], ["a"])])
    >>> [test.tolist() for _, test in cv.split([[0], [1], [2]], qid=["b", "a", "b"])]
    [[0, 2], [1]]
    """

    def __init__(self, folds: Iterable[tuple[Iterable[Any], Iterable[Any]]]) -> None:
        super().__init__(_ByIds([(_spelled(train), _spelled(test)) for train, test in folds]))

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], *, train: Sequence[str] = ("train", "vali"), test: Sequence[str] = ("test",)
    ) -> Self:
        """Read the folds of a folder with Fold1, Fold2, ..., such as LETOR, MSLR-WEB and MQ2008.

        Parameters
        ----------
        path : path
            The folder; each fold is a folder that `rankeval.datasets.load_letor_parts` reads.
        train, test : sequence of {"train", "vali", "test"}
            The files of each side. LETOR's part for validation, ``vali``, belongs to the training side by default:
            early stopping holds out queries of its own, and searches have inner folds.

        Raises
        ------
        InvalidInput
            If the folder has no fold.
        UnknownName
            If a part is none of these.
        """
        for part in (*train, *test):
            if part not in PARTS:
                raise unknown("part of a fold", part, PARTS)
        root = Path(path)
        found = [one for one in root.glob("*") if one.is_dir() and re.fullmatch(r"(?i)fold[_-]?\d+", one.name)]
        if not found:
            raise InvalidInput(f"there are no folders Fold1, Fold2, ... in {str(root)!r}")
        folds = []
        for folder in sorted(found, key=lambda one: int(re.sub(r"\D", "", one.name))):
            parts = {name: np.unique(part.qid).tolist() for name, part in load_letor_parts(folder).items()}
            folds.append(tuple([query for part in side for query in parts.get(part, ())] for side in (train, test)))
        return cls(folds)  # type: ignore[arg-type]


class _ByIds:
    """A splitter of queries that finds them by their ids."""

    def __init__(self, folds: list[tuple[frozenset[str], frozenset[str]]]) -> None:
        if not folds:
            raise InvalidInput("folds is empty: give the ids of training and test queries of at least one fold")
        for number, (train, test) in enumerate(folds):
            if not train or not test:
                raise InvalidInput(f"fold {number} has no {'training' if not train else 'test'} queries")
            if both := train & test:
                raise InvalidInput(f"fold {number} trains and tests on query {min(both)!r}")
        self.folds = folds

    def split(self, X: Any, _y: Any = None) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the positions of the queries of each side; X holds their ids."""
        spelled = [str(query) for query in np.asarray(X)[:, 0].tolist()]
        known = set(spelled)
        for number, fold in enumerate(self.folds):
            for side in fold:
                if absent := side - known:
                    raise QueryIdError(
                        f"fold {number} has {count(len(absent), 'query')} that the data lacks, such as "
                        f"{min(absent)!r}: give all of the data, such as train, vali and test of one fold together"
                    )
            train, test = (np.flatnonzero([query in side for query in spelled]) for side in fold)
            yield train, test

    def get_n_splits(self, _X: Any = None, _y: Any = None, _groups: Any = None) -> int:
        """Return the number of folds."""
        return len(self.folds)

    def __repr__(self) -> str:
        return f"_ByIds({[(sorted(train), sorted(test)) for train, test in self.folds]})"


def _spelled(queries: Iterable[Any]) -> frozenset[str]:
    return frozenset(map(str, queries.tolist() if hasattr(queries, "tolist") else queries))
