"""What this process was shown of registered collections, below what is refused: so that loops over queries add up.

The same query again and again does not: content is kept as a set, and of the labels of a query the last word counts.

Data that showed nothing of a registered collection needs no second look: a search scores the same folds many times.

What is remembered is a SHA-256 over the features, labels and query ids as they were given, and the registration. A
registration never changes; exemptions only take evidence away. Where data was refused or warned about, nothing is
remembered; and where it showed a trace, that holds only as long as no other call shows more of the registration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.agreement import CHANGED
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.join.matching import Hashes


@dataclass(frozen=True, eq=False)
class Shown:
    """Evidence on the queries of one registered collection.

    Attributes
    ----------
    content : ndarray of bool of shape (n_queries,)
        The queries whose content was shown.
    columns : ndarray of float of shape (n_queries,)
        The best evidence of columns of each query, in bits; 0 for none.
    candidates : ndarray of int of shape (n_queries,)
        How many queries with the labels of each one were shown.
    ratios : ndarray of float of shape (n_queries, len(CHANGED))
        The evidence of the labels of each query (`contamination.agreement`); nan where none was shown.
    """

    content: NDArray[np.bool_]
    columns: NDArray[np.float64]
    candidates: NDArray[np.int64]
    ratios: NDArray[np.float64]

    @classmethod
    def empty(cls, n_queries: int) -> Shown:
        """Return no evidence."""
        return cls(
            np.zeros(n_queries, dtype=bool),
            np.zeros(n_queries),
            np.zeros(n_queries, dtype=np.int64),
            np.full((n_queries, len(CHANGED)), np.nan),
        )

    def copy(self) -> Shown:
        """Return a copy."""
        return Shown(self.content.copy(), self.columns.copy(), self.candidates.copy(), self.ratios.copy())

    def without(self, exempt: NDArray[np.bool_]) -> Shown:
        """Return a copy without some queries of the collection, which may be used now."""
        empty = Shown.empty(len(exempt))
        return Shown(
            np.where(exempt, empty.content, self.content),
            np.where(exempt, empty.columns, self.columns),
            np.where(exempt, empty.candidates, self.candidates),
            np.where(exempt[:, None], empty.ratios, self.ratios),
        )

    def told_by_columns(self, least: float, enough: float) -> NDArray[np.bool_]:
        """Return the queries that their columns tell, all together.

        M of N queries with candidates are found with s_i bits each. The chance that any M of them are found is at most
        ``C(N, M) prod 2^-s_i``, and so few are chosen that this is least.

        Parameters
        ----------
        least, enough : float
            Least evidence of one query, and of all together.
        """
        told = np.zeros(len(self.columns), dtype=bool)
        net = self.columns - np.log2(np.maximum(self.candidates, 1))
        found = np.flatnonzero((self.columns > 0) & (net >= least))
        if not len(found):
            return told
        from scipy.special import gammaln

        found = found[np.argsort(-net[found])]
        n, m = int((self.candidates > 0).sum()), np.arange(1, len(found) + 1)
        ways = (gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)) / np.log(2)
        total = np.cumsum(net[found]) - ways - np.log2(n)
        if total.max() >= enough:
            told[found[: int(total.argmax()) + 1]] = True
        return told


MEMORY: dict[str, Shown] = {}
"""Hash of the entry of a registration -> what was shown of it."""

REST: dict[str, Hashes] = {}
"""Hash of the entry of a registration -> content of the queries that were not recognised in data that was refused.

Kept only if others of the collection may be among them: whoever drops what was named keeps exactly these.
"""


def is_rest(registration: str, content: Hashes) -> bool:
    """Return whether data holds all that was left of refused data without the queries that were named.

    Parameters
    ----------
    registration : str
        The hash of the entry of the registration.
    content : ndarray of uint64
        The content of each query of the data.
    """
    return registration in REST and bool(np.isin(REST[registration], content).all())


_MOST = 1024

_NOTHING: dict[bytes, dict[str, Hashable]] = {}
"""Digest of the data -> id of a registration that it does not match enough -> the traces shown by then."""


def known_nothing(data: Fingerprint, *, most_rows: int | None) -> dict[str, Hashable]:
    """Return the registrations that the data is known not to match enough, with the traces of each; add new ones.

    Parameters
    ----------
    data : Fingerprint
        The data.
    most_rows : int, optional
        Rows whose columns are looked at first; a closer look asks anew.
    """
    X = data.X
    if not isinstance(X, np.ndarray) or not X.flags.c_contiguous or "documents" in data.rows:
        return {}
    digest = hashlib.sha256(f"{X.dtype} {X.shape} {most_rows} {data.y is None}".encode())
    for part in (X, data.codes, data.ids, *(() if data.y is None else (data.y,))):
        digest.update(np.ascontiguousarray(part).data)
    key = digest.digest()
    if key not in _NOTHING and len(_NOTHING) >= _MOST:
        del _NOTHING[next(iter(_NOTHING))]
    return _NOTHING.setdefault(key, {})


def traces(registration: str) -> Hashable:
    """Return a value that changes when more is shown of a registration; the same data again changes nothing."""
    shown = MEMORY.get(registration)
    if shown is None:
        return None
    return hash((shown.content.tobytes(), shown.columns.tobytes(), shown.ratios.tobytes()))


def forget_nothing() -> None:
    """Forget all of it: for tests."""
    _NOTHING.clear()
