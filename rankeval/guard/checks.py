"""The checks of a registration. Each is one decorated function, and stands nowhere else.

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

from rankeval._checks import count
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.matching import Match
from rankeval.contamination.register import RegisteredContent
from rankeval.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

Severity = Literal["warning", "note"]


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
    """

    data: Fingerprint
    content: RegisteredContent
    labels: NDArray[np.float64]
    others: tuple[Match, ...]


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
    severity : {"warning", "note"}
        A warning says that the collection is less protected than its owner may think. A note is kept with the
        collection only.

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
    """
    return tuple(
        Finding(check.code, check.severity, message)
        for _, check in sorted(CHECKS.items())
        for message in check.find(registration)
    )


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


@guard_check("RG001", severity="warning")
def few_identifiable_queries(registration: Registration) -> Iterator[str]:
    """Most queries cannot be told from others, so they are not protected."""
    content = registration.content
    if 2 * content.n_identifiable < content.n_queries:
        yield (
            f"only {content.n_identifiable} of {count(content.n_queries, 'query')} can be recognised by their "
            "content. The rest are not recognised when they are used: give docid=, or features with more distinct "
            "values"
        )


@guard_check("RG002")
def queries_of_one_label(registration: Registration) -> Iterator[str]:
    """All rows of a query have one label: every ranking of them scores the same."""
    data = registration.data
    order = np.argsort(data.codes, kind="stable")
    first = np.searchsorted(data.codes[order], np.arange(data.n_queries))
    labels = registration.labels[order]
    alike = int((np.maximum.reduceat(labels, first) == np.minimum.reduceat(labels, first)).sum())
    if alike:
        some = f"{alike} of {count(data.n_queries, 'query')}"
        yield f"{some} with one label only: every ranking of their rows scores the same"


@guard_check("RG003", severity="warning")
def overlap_with_another_collection(registration: Registration) -> Iterator[str]:
    """Another registered collection has some of these queries: a look at one is a look at the other."""
    for other in registration.others:
        if other.n_matched:
            theirs = other.registered
            yield (
                f"{other.n_matched} of the {theirs.n_identifiable} identifiable queries of {theirs.name!r} (project "
                f"{theirs.project!r}) are in this collection too: a look at one is a look at the other"
            )


@guard_check("RG004")
def few_queries(registration: Registration) -> Iterator[str]:
    """Few queries show large differences only."""
    n_queries = registration.data.n_queries
    if n_queries < 50:  # 50 topics find a difference of .06 to .08 in nDCG
        # 2.8 = 1.96 + 0.84: the quantiles of a two-sided test at 5 % and of a power of 80 %.
        yield (
            f"{count(n_queries, 'query')} can show large differences only: if differences have a standard deviation "
            f"of .2, one of {2.8 * 0.2 / np.sqrt(n_queries):.2f} is found with a power of 80 %"
        )


@guard_check("RG005")
def repeated_queries(registration: Registration) -> Iterator[str]:
    """Several queries have the same content: it counts more than once in every mean."""
    repeated = registration.data.n_queries - len(np.unique(registration.data.content))
    if repeated:
        yield f"{count(repeated, 'query')} with the content of another query: it counts again in every mean"
