"""Let the folds of a registered benchmark be fitted, while a plan over folds is frozen.

The allowance holds for this process, all its threads included, and for its workers: it is pickled with every unfitted
ranker and every scorer that the process sends out. A worker may outlive the freeze, so an allowance is good for nothing
once the temporary file that stands for it is gone. A worker on another machine never sees the file, and refuses.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

_GRANTED: dict[str, frozenset[str]] = {}
"""Path of the temporary file -> ids of the registrations whose folds may be fitted."""


@contextmanager
def allowed(registrations: Iterable[str]) -> Iterator[None]:
    """Fit on parts of registered collections inside this context without a refusal.

    Parameters
    ----------
    registrations : iterable of str
        Ids of registrations: the hashes of their entries.

    Examples
    --------
    >>> with allowed(["1f3a"]):
    ...     is_allowed("1f3a"), is_allowed("77c0")
    (True, False)
    >>> is_allowed("1f3a")
    False
    """
    with tempfile.NamedTemporaryFile(prefix="rankeval-folds-") as token:
        _GRANTED[token.name] = frozenset(registrations)
        try:
            yield
        finally:
            del _GRANTED[token.name]


def is_allowed(registration: str) -> bool:
    """Return whether the folds of a registration may be fitted now."""
    return any(registration in names and os.path.exists(token) for token, names in _GRANTED.items())  # noqa: PTH110 - asked for every score


def granted() -> dict[str, frozenset[str]]:
    """Return the allowances in force, for `receive` in a worker."""
    return {token: names for token, names in _GRANTED.items() if os.path.exists(token)}  # noqa: PTH110 - as above


def receive(allowances: Mapping[str, frozenset[str]]) -> None:
    """Take over the allowances of the process that sent work, and forget those that ended."""
    for token in set(_GRANTED) - set(granted()):
        del _GRANTED[token]
    _GRANTED.update(allowances)


class Allowance:
    """The allowances in force, as they travel with work: made again where they are unpickled."""

    def __reduce__(self) -> tuple[type[Allowance], tuple[()], dict[str, frozenset[str]]]:
        return Allowance, (), granted()

    def __setstate__(self, allowances: dict[str, frozenset[str]]) -> None:
        receive(allowances)
