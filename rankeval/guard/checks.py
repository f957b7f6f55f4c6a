"""Checks of a registration: how one is declared and run, and ours, each of which is one decorated function.

Declare a check in any module, and every registration runs it::

    @guard_check("RG900", severity="warning")
    def no_query_text(registration):
        '''The texts of the queries are missing.'''
        if "text" not in registration.data.queries:
            yield "give queries=, so that readers of a report know what was asked"

The first line of the docstring describes the check in `list_checks` and in ``rankeval guard
checks``, with its help. A finding carries the code of its check: in the warning, in the registered
collection, and in the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import isgeneratorfunction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import check_number, count, few, require
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.contamination.evidence import (
    ENOUGH_POSITIVES,
    IDENTIFIABLE_BITS,
    REFUSAL_CHANCE,
    chance_of_being_contained,
)
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.matching import Match
from rankeval.contamination.registered import RegisteredContent
from rankeval.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd


Severity = Literal["error", "warning", "note"]


def check_positive(name: str, value: float) -> None:
    """Refuse anything but a number above 0."""
    check_number(name, value)
    require(value > 0, name, value, "a number above 0, on the scale of the measure")


def check_text(name: str, value: Any, expected: str) -> None:
    """Refuse anything but a text that is not blank."""
    require(isinstance(value, str) and value.strip(), name, value, expected)


@dataclass(frozen=True)
class Aim:
    """The difference that somebody wants to find on a collection."""

    effect: float | None = None  # The difference; None if nobody said
    sd: float = 0.2  # Standard deviation of the differences by query

    def __post_init__(self) -> None:
        check_positive("sd", self.sd)
        if self.effect is not None:
            check_positive("effect", self.effect)


NO_AIM = Aim()


@dataclass(frozen=True, eq=False)
class Registration:
    """The data of a registration, as the checks see it."""

    data: Fingerprint  # The queries and rows by their hashes
    content: RegisteredContent  # The collection as the ledger will have it
    labels: NDArray[np.float64]  # (n_rows,): The labels
    others: tuple[Match, ...]  # The parts of other registered collections that are in it
    retired: tuple[Match, ...] = ()  # The parts of collections that were given up as tests
    # Whether rankings are of these rows alone. Those of judgments may hold documents without one.
    ranks_rows: bool = True
    aim: Aim = NO_AIM  # The difference that is to be found

    @property
    def has_one_label(self) -> NDArray[np.bool_]:
        """Whether all rows of a query have the same label, for each query."""
        data = self.data
        # Sorted by query, each query is a slice, whose extremes reduceat takes.
        order = np.argsort(data.codes, kind="stable")
        first = np.searchsorted(data.codes[order], np.arange(data.n_queries))
        labels = self.labels[order]
        same: NDArray[np.bool_] = np.maximum.reduceat(labels, first) == np.minimum.reduceat(
            labels, first
        )
        return same


Find = Callable[[Registration], Iterator[str]]


@dataclass(frozen=True)
class GuardCheck:
    """A declared check: code, severity, description, and the function that yields a sentence per finding."""

    code: str
    severity: Severity
    words: str
    find: Find


@escaping
@dataclass(frozen=True, repr=False)
class Finding(Displayed):
    """One thing that a check found."""

    code: str
    severity: Severity
    message: str

    @property
    def words(self) -> str:
        """The code and the message."""
        return f"{self.code}: {self.message}"

    def _view(self) -> View:
        return View([self.words])


CHECKS: dict[str, GuardCheck] = {}
"""Code -> check."""


def guard_check(code: str, *, severity: Severity = "note") -> Callable[[Find], Find]:
    """Declare a check of registrations.

    Parameters
    ----------
    code : str
        A code that no other check has, such as ``"RG900"``.
    severity : {"error", "warning", "note"}
        With an error the collection is not registered. A warning says that the collection is less
        protected than its owner may think. A note is kept with the collection only.

    Returns
    -------
    callable
        A decorator that declares a function and returns it as it is. The function yields one
        sentence per finding.

    Raises
    ------
    InvalidInput
        If the code is already declared, or the function returns its findings instead of yielding
        them.
    """

    def declare(find: Find) -> Find:
        if code in CHECKS:
            raise InvalidInput(
                f"guard check {code} is already declared ({CHECKS[code].words}); choose another code"
            )
        if not isgeneratorfunction(find):
            raise InvalidInput(
                f"guard check {code} must yield its findings, one sentence each, and not return them"
            )
        words = (find.__doc__ or find.__name__).strip().partition("\n")[0]
        CHECKS[code] = GuardCheck(code, severity, words, find)
        return find

    return declare


def run_checks(registration: Registration) -> tuple[Finding, ...]:
    """Return the findings of all checks, in the order of their codes."""
    findings = tuple(
        Finding(check.code, check.severity, message)
        for _, check in sorted(CHECKS.items())
        for message in check.find(registration)
    )
    errors = [finding.words for finding in findings if finding.severity == "error"]
    if errors:
        raise InvalidInput(
            f"{registration.content.name!r} cannot be a test collection. {'; '.join(errors)}"
        )
    return findings


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


LEAST_QUERIES = 6
"""Of five differences one sign pattern in 32 is that of the data, and one its mirror image: p is .0625 or more."""
LEAST_ROWS = 3
"""Rows that must be found before a warning: single rows of count features are met again by chance."""


@guard_check("RG001", severity="warning")
def few_identifiable_queries(registration: Registration) -> Iterator[str]:
    """Most queries cannot be told from others, so they are not protected."""
    content = registration.content
    if 2 * content.n_identifiable < content.n_queries:
        yield (
            f"only {content.n_identifiable} of {count(content.n_queries, 'query')} can be recognised by their content. "
            f"{_of_the_rest(content)}"
        )


def _of_the_rest(content: RegisteredContent) -> str:
    """Say how queries are recognised that their content does not tell, and what would help."""
    known = content.protected
    documents = known.document_entries
    if documents is None or not known.has_positives_only:
        return (
            "The rest are recognised at most under the same ids, by all their labels together: give docid= or features "
            "with more distinct values"
        )
    same = f"under the same ids if {ENOUGH_POSITIVES} of these or more come back"
    if len(documents) < ENOUGH_POSITIVES:
        same = "under the same ids only as a whole"
    times = np.unique(documents.value, return_counts=True)[1]
    n_most = max(1, math.floor(0.9 * content.n_queries))
    by_chance = chance_of_being_contained(times, n_most) >= REFUSAL_CHANCE
    new = (
        "never under new ids, since other queries have the same ones"
        if by_chance
        else ("under new ids if the data has no other queries")
    )
    return (
        f"The rest are recognised by their relevant documents: {same}, and {new}. Give the documents that were judged "
        "not relevant too, or the texts of the queries (queries=)"
    )


@guard_check("RG002")
def queries_of_one_label(registration: Registration) -> Iterator[str]:
    """All rows of a query have one label: every ranking of them scores the same."""
    alike = registration.has_one_label
    if registration.ranks_rows and alike.any() and not alike.all():
        some = f"{int(alike.sum())} of {count(registration.data.n_queries, 'query')}"
        names = few(registration.data.names[alike].tolist())
        yield f"{some} with one label only: every ranking of their rows scores the same ({names})"


@guard_check("RG003", severity="warning")
def overlap_with_another_collection(registration: Registration) -> Iterator[str]:
    """Another registered collection has some of these queries: a look at one is a look at the other."""
    data = registration.data
    for other in registration.retired:
        if other.n_matched:
            theirs, names = other.registered, few(data.names[other.queries].tolist())
            yield (
                f"{int(other.queries.sum())} of the {count(data.n_queries, 'query')} ({names}) were given up as a "
                f"test when project {theirs.project!r} retired {theirs.name!r} ({theirs.retired}): models may have "
                "been fitted on them since, so they count as looked at. Choose other queries"
            )
    for other in registration.others:
        if not len(other.pairs) or _is_public(registration, other):
            continue
        theirs, (here, there) = other.registered, (np.unique(side) for side in other.pairs.T)
        # What `supersedes` names is a collection of the same project.
        if theirs.project == registration.content.project:
            way_out = (
                f"If this takes the place of {theirs.name!r}, register it with "
                f"supersedes={theirs.name!r}; otherwise choose"
            )
        else:
            way_out = f"Agree with project {theirs.project!r} on who looks, or choose"
        names = few(data.names[here].tolist())
        yield (
            f"{len(there)} of the {other.found_among} of {theirs.name!r} (project {theirs.project!r}) are in this "
            f"collection too, as {len(here)} of its {count(data.n_queries, 'query')} ({names}): looks belong to "
            f"queries, so a look at one collection is a look at these queries of the other. {way_out} other queries"
        )


@guard_check("RG004")
def few_queries(registration: Registration) -> Iterator[str]:
    """Few queries show large differences only."""
    n_queries = registration.data.n_queries
    if (
        registration.aim.effect is None and 2 <= n_queries < 50
    ):  # 50 topics find a difference of .06 to .08 in nDCG
        from rankeval.significance.power import detectable_difference

        least = float(detectable_difference(n_queries, registration.aim.sd))
        yield (
            f"{count(n_queries, 'query')} can show large differences only: if differences have a standard deviation "
            f"of {registration.aim.sd:g}, one of {least:.2f} is found with a power of 80 %"
        )


@guard_check("RG005")
def repeated_queries(registration: Registration) -> Iterator[str]:
    """Several queries have the same content: it counts more than once in every mean."""
    data = registration.data
    # The first query of each content is the original, the others repeat it.
    _, first = np.unique(data.content, return_index=True)
    repeated = np.ones(data.n_queries, dtype=bool)
    repeated[first] = False
    if repeated.any():
        yield (
            f"{count(int(repeated.sum()), 'query')} with the content of another query: it counts again in every mean "
            f"({few(data.names[repeated].tolist())})"
        )


@guard_check("RG006", severity="warning")
def rows_of_another_collection(registration: Registration) -> Iterator[str]:
    """Rows of another registered collection stand in other queries here."""
    for other in registration.others:
        signature = other.registered.protected
        known, data = (
            signature.row_entries,
            registration.data.rows_told(by_signs=signature.by_signs),
        )
        if known is None or known.bits is None or data is None:
            continue
        _, _, ours, theirs = known.found_in(data)
        # Queries that are the same are RG003's: only rows that moved to other queries are left.
        moved = ~np.isin(data.query[theirs], other.pairs[:, 0]) & ~np.isin(
            known.query[ours], other.pairs[:, 1]
        )
        rows = np.unique(ours[moved])
        if len(rows) >= LEAST_ROWS and known.bits[rows].sum() >= IDENTIFIABLE_BITS:
            name, project = other.registered.name, other.registered.project
            yield (
                f"at least {count(len(rows), 'row')} of {name!r} (project {project!r}) are in other queries here: a "
                "model that was tuned on one has seen rows of the other. If documents were grouped into queries "
                "otherwise, register the collection that you report on, and no other"
            )


@guard_check("RG007", severity="error")
def one_label_in_all(registration: Registration) -> Iterator[str]:
    """All rows have one label: nothing can be measured."""
    if registration.ranks_rows and len(np.unique(registration.labels)) == 1:
        yield (
            f"all {count(len(registration.labels), 'row')} have the label {registration.labels[0]:g}, so every ranking "
            "scores the same: give the labels of the test queries as y"
        )


@guard_check("RG008", severity="warning")
def too_few_queries_for_any_test(registration: Registration) -> Iterator[str]:
    """So few queries show no difference, however large it is."""
    n_queries = registration.data.n_queries
    if n_queries < LEAST_QUERIES:
        yield (
            f"{count(n_queries, 'query')} cannot show any difference at 5 %: the randomisation test has a p-value of "
            f"{2.0 ** (1 - n_queries):.2g} at least, and needs {LEAST_QUERIES} queries"
        )


@guard_check("RG009", severity="warning")
def too_few_queries_for_the_effect(registration: Registration) -> Iterator[str]:
    """There are fewer queries than the stated effect needs."""
    effect, n_queries = registration.aim.effect, registration.data.n_queries
    if effect is None:
        return
    from rankeval.significance.power import detectable_difference, topics_needed

    needed = topics_needed(effect, registration.aim.sd)
    if n_queries < needed:
        least = float(detectable_difference(max(2, n_queries), registration.aim.sd))
        yield (
            f"a difference of {effect:g} needs {count(needed, 'query')} to be found with a power of 80 %, if "
            f"differences have a standard deviation of {registration.aim.sd:g}, and there are {n_queries}, which "
            f"find one of {least:.2g}"
        )


@guard_check("RG010")
def unidentifiable_queries(registration: Registration) -> Iterator[str]:
    """There are queries that cannot be told from others, fewer than half."""
    content = registration.content
    n_lost = content.n_queries - content.n_identifiable
    if 0 < n_lost <= content.n_queries / 2:
        lost = registration.data.names_by_content[~content.protected.identifiable]
        yield (
            f"{n_lost} of {count(content.n_queries, 'query')} cannot be recognised by their content, each alone "
            f"({few(lost.tolist())})"
        )


@guard_check("RG011")
def registered_by_another_project(registration: Registration) -> Iterator[str]:
    """Another project has registered the same collection, such as a public benchmark."""
    for other in registration.others:
        if _is_public(registration, other):
            theirs = other.registered
            yield (
                f"project {theirs.project!r} has registered the same collection as {theirs.name!r}: looks are counted "
                "for each project, and a plan is confirmatory only if no project had looked before"
            )


@guard_check("RG012")
def queries_told_by_their_texts(registration: Registration) -> Iterator[str]:
    """Most queries are told by their texts alone, which data must bring too."""
    content = registration.content
    n_queries, n_told = content.n_queries, int(content.protected.told_without_text.sum())
    if 2 * n_told < n_queries <= 2 * content.n_identifiable:
        yield (
            f"only {n_told} of {count(n_queries, 'query')} can be recognised without their texts, which "
            f"rk.evaluate(..., queries=texts) and runs of rk.text bring. {_of_the_rest(content)}"
        )


def _is_public(registration: Registration, other: Match) -> bool:
    """Return whether a match is the same collection in another project: that is no accident."""
    ours, theirs = registration.content, other.registered
    return ours.digest == theirs.digest and ours.project != theirs.project
