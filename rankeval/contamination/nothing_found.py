"""Data that showed nothing of a registered collection needs no second look: a search scores the same folds many times.

What is remembered is a SHA-256 over the features, labels and query ids as they were given, and the registration. A
registration never changes; exemptions only take evidence away. Where data was refused or warned about, nothing is
remembered; and where it showed a trace, that holds only as long as no other call shows more of the registration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable

import numpy as np

from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.memory import MEMORY

_MOST = 1024

_NOTHING: dict[bytes, dict[str, Hashable]] = {}
"""Digest of some data -> id of a registration of which it shows too little -> all that was shown of it by then."""


def known_nothing(data: Fingerprint, *, most_rows: int | None) -> dict[str, Hashable]:
    """Return the registrations of which the data is known to show too little, and `traces` of each; add what is found.

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
