"""What a registration is checked for: one decorated function a rule, each with a code that reports can cite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.register import Match, Sealed


@dataclass(frozen=True)
class Finding:
    """What a rule found: its code, what is wrong, and whether it weakens the protection itself."""

    code: str
    message: str
    serious: bool = False


@dataclass(frozen=True, eq=False)
class Registration:
    """What the rules look at: the content, as it would stand in the register, and what others registered of it."""

    known: Fingerprint
    sealed: Sealed
    labels: np.ndarray[tuple[int], np.dtype[np.float64]]
    others: tuple[Match, ...]


Rule = Callable[[Registration], Iterator[str]]

RULES: dict[str, tuple[Rule, bool]] = {}
"""Code -> (rule, whether its finding is serious)."""


def rule(code: str, *, serious: bool = False) -> Callable[[Rule], Rule]:
    """Register a check under a code; it yields one sentence for each thing it finds.

    Parameters
    ----------
    code : str
        ``RG`` and three digits.
    serious : bool
        Whether a finding weakens the protection, and is warned about.
    """

    def register(check: Rule) -> Rule:
        RULES[code] = (check, serious)
        return check

    return register


def findings(registration: Registration) -> tuple[Finding, ...]:
    """Return what all rules find, in the order of their codes.

    Parameters
    ----------
    registration : Registration
        What is to be registered.
    """
    return tuple(
        Finding(code, message, serious)
        for code, (check, serious) in sorted(RULES.items())
        for message in check(registration)
    )


@rule("RG001", serious=True)
def few_identifiable_queries(registration: Registration) -> Iterator[str]:
    """Find that too few queries can be told from others to be protected."""
    sealed = registration.sealed
    if 2 * sealed.n_identifiable < sealed.n_queries:
        yield (
            f"only {sealed.n_identifiable} of {sealed.n_queries} queries can be told from others by their content: the "
            "others are not recognised when they are used; give docid= or features with more distinct values"
        )


@rule("RG002")
def queries_of_one_label(registration: Registration) -> Iterator[str]:
    """Find queries whose rows all have one label: they rank the same whatever the system."""
    known, labels = registration.known, registration.labels
    high = np.full(known.n_queries, -np.inf)
    low = np.full(known.n_queries, np.inf)
    np.maximum.at(high, known.codes, labels)
    np.minimum.at(low, known.codes, labels)
    alike = int((high == low).sum())
    if alike:
        yield f"{alike} of {known.n_queries} queries have one label only: no ranking of their rows differs from another"


@rule("RG003", serious=True)
def overlap_with_another_collection(registration: Registration) -> Iterator[str]:
    """Find queries that another registered collection has too: their looks are counted apart."""
    for other in registration.others:
        if other.n_matched:
            sealed = other.sealed
            yield (
                f"{other.n_matched} of the {sealed.n_identifiable} identifiable queries of {sealed.name!r} (project "
                f"{sealed.project!r}) are in this collection too: looks at one are looks at the other"
            )


@rule("RG004")
def few_queries(registration: Registration) -> Iterator[str]:
    """Find that only large differences will show."""
    n_queries = registration.known.n_queries
    if n_queries < 50:  # a difference of .06 to .08 in nDCG is what 50 topics can see
        yield (
            f"{n_queries} queries see large differences only: with a standard deviation of .2 of the differences, "
            f"{2.8 * 0.2 / np.sqrt(n_queries):.2f} is found with a power of 80 %"
        )


@rule("RG005")
def repeated_queries(registration: Registration) -> Iterator[str]:
    """Find content that stands under two query ids: it counts twice in every mean."""
    repeated = registration.known.n_queries - len(np.unique(registration.known.content))
    if repeated:
        yield f"{repeated} queries repeat the content of another one, and count again in every mean"
