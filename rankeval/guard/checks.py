"""Checks of a registration: how one is declared, and run. Ours are in `rankeval.guard.registration_checks`.

Declare a check in any module, and every registration runs it::

    @guard_check("RG900", severity="warning")
    def no_query_text(registration):
        '''The texts of the queries are missing.'''
        if "text" not in registration.data.queries:
            yield "give queries=, so that readers of a report know what was asked"

The first line of the docstring describes the check in `list_checks` and in ``rankeval guard checks``, with its help. A
finding carries the code of its check: in the warning, in the registered collection, and in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import isgeneratorfunction
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import check_number
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.matching import Match
from rankeval.contamination.register import RegisteredContent
from rankeval.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Aim:
    """The difference that somebody wants to find on a collection.

    Attributes
    ----------
    effect : float, optional
        The difference; None if nobody said.
    sd : float
        Standard deviation of the differences by query.
    """

    effect: float | None = None
    sd: float = 0.2

    def __post_init__(self) -> None:
        for name, value in (("effect", self.effect), ("sd", self.sd)):
            if value is not None:
                check_number(name, value)
                if value <= 0:
                    raise InvalidInput(f"{name} is {value}; expected a number above 0, on the scale of the measure")


NO_AIM = Aim()


@dataclass(frozen=True, eq=False)
class Registration:
    """The data of a registration, as the checks see it.

    Attributes
    ----------
    data : Fingerprint
        Content of the collection.
    content : RegisteredContent
        The collection as the ledger will hold it.
    labels : ndarray of shape (n_rows,)
        The labels.
    others : tuple of Match
        The parts of other registered collections that are in it.
    retired : tuple of Match
        The parts of collections that were given up as tests.
    ranks_rows : bool
        Whether rankings are of these rows alone. Those of judgments may hold documents without one.
    aim : Aim
        The difference that is to be found.
    """

    data: Fingerprint
    content: RegisteredContent
    labels: NDArray[np.float64]
    others: tuple[Match, ...]
    retired: tuple[Match, ...] = ()
    ranks_rows: bool = True
    aim: Aim = NO_AIM

    @property
    def has_one_label(self) -> NDArray[np.bool_]:
        """Whether all rows of a query have the same label, for each query."""
        data = self.data
        order = np.argsort(data.codes, kind="stable")
        first = np.searchsorted(data.codes[order], np.arange(data.n_queries))
        labels = self.labels[order]
        same: NDArray[np.bool_] = np.maximum.reduceat(labels, first) == np.minimum.reduceat(labels, first)
        return same


Find = Callable[[Registration], Iterator[str]]


@dataclass(frozen=True)
class GuardCheck:
    """A declared check: code, severity, description, and the function that yields a sentence per finding."""

    code: str
    severity: Severity
    words: str
    find: Find


@dataclass(frozen=True)
class Finding:
    """One thing that a check found."""

    code: str
    severity: Severity
    message: str

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


CHECKS: dict[str, GuardCheck] = {}
"""Code -> check."""


def guard_check(code: str, *, severity: Severity = "note") -> Callable[[Find], Find]:
    """Declare a check of registrations.

    Parameters
    ----------
    code : str
        A code that no other check has, such as ``"RG900"``.
    severity : {"error", "warning", "note"}
        With an error the collection is not registered. A warning says that the collection is less protected than its
        owner may think. A note is kept with the collection only.

    Returns
    -------
    callable
        A decorator that declares a function and returns it as it is. The function yields one sentence per finding.

    Raises
    ------
    InvalidInput
        If the code is already declared, or the function returns its findings instead of yielding them.
    """

    def declare(find: Find) -> Find:
        if code in CHECKS:
            raise InvalidInput(f"guard check {code} is already declared ({CHECKS[code].words}); choose another code")
        if not isgeneratorfunction(find):
            raise InvalidInput(f"guard check {code} must yield its findings, one sentence each, and not return them")
        words = (find.__doc__ or find.__name__).strip().partition("\n")[0]
        CHECKS[code] = GuardCheck(code, severity, words, find)
        return find

    return declare


def run_checks(registration: Registration) -> tuple[Finding, ...]:
    """Return the findings of all checks, in the order of their codes.

    Parameters
    ----------
    registration : Registration
        The collection to be registered.

    Raises
    ------
    InvalidInput
        If a finding is an error.
    """
    found = tuple(
        Finding(check.code, check.severity, message)
        for _, check in sorted(CHECKS.items())
        for message in check.find(registration)
    )
    wrong = [str(one) for one in found if one.severity == "error"]
    if wrong:
        raise InvalidInput(f"{registration.content.name!r} cannot be a test collection. {'; '.join(wrong)}")
    return found


def list_checks() -> pd.DataFrame:
    """Return the checks of a registration: code, severity and description.

    Examples
    --------
    >>> list_checks().loc["RG004", "finds"]
    'Few queries show large differences only.'
    """
    import pandas as pd

    rows = [(check.code, check.severity, check.words) for _, check in sorted(CHECKS.items())]
    return pd.DataFrame(rows, columns=["code", "severity", "finds"]).set_index("code")
