"""A budget of decisions that share one level: one mechanism and one set of words for gates and promotions.

Each of T decisions is tested at alpha / T. As long as nothing was accepted, every answer was "rejected", and the next
candidate would have been made whatever the scores were. So the chance that a candidate is ever accepted although none
is better is at most alpha, by Bonferroni's inequality, as nearly as the test holds its level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rankeval._checks import check_alpha, check_count, count, require
from rankeval.errors import LedgerError

# More resamples than a test of the last one would take fill the memory.
_MOST = 10_000

_RESAMPLES = 20
"""Resampled patterns, at least, that a p-value at the level of a decision is made of."""


def which_of(number: int, decisions: int) -> str:
    """Say which decision of a budget one is."""
    return f"decision {number} of {decisions}{', a single release' if decisions == 1 else ''}"


@dataclass(frozen=True)
class Budget:
    """The decisions that share one level: those of a gate, or the promotions to an alias on the same queries.

    Attributes
    ----------
    alpha : float
        The one-sided level of all decisions together.
    decisions : int
        Their number.

    Examples
    --------
    >>> budget = Budget(0.05, 20)
    >>> budget.level, budget.left(3), which_of(3, 20), which_of(1, 1)
    (0.0025, 17, 'decision 3 of 20', 'decision 1 of 1, a single release')
    """

    alpha: float
    decisions: int

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_count("budget", self.decisions)
        require(self.decisions <= _MOST, "budget", self.decisions, f"{_MOST:,} decisions or fewer")

    @property
    def level(self) -> float:
        """The level of one decision."""
        return self.alpha / self.decisions

    @property
    def n_resamples(self) -> int:
        """The number of resamples that a test takes: a p-value is a multiple of 1 / (n_resamples + 1)."""
        return max(9999, math.ceil(_RESAMPLES / self.level) - 1)

    def left(self, n_made: int) -> int:
        """Return how many decisions are left after so many."""
        return max(0, self.decisions - n_made)

    def refuse_spent(self, n_made: int, who: str, queries: str) -> None:
        """Raise LedgerError, with the ways on, if no decision is left.

        Parameters
        ----------
        n_made : int
            Decisions that were made.
        who, queries : str
            Who decides, and on which queries.
        """
        if not self.left(n_made):
            raise LedgerError(
                f"{who} has made its {count(self.decisions, 'decision')} on {queries}, and decides no more",
                argument="budget",
                found=str(n_made),
                remedy="collect and label fresh queries; or take a new part, whose ids no decision was made on; or "
                "declare a gate of the guard with terms of its own, whose level adds to this one",
            )

    def refuse_others(self, other: Budget | None, who: str) -> None:
        """Raise LedgerError if a decision on the same queries had other terms; one without terms has none to differ.

        Parameters
        ----------
        other : Budget or None
            Its terms.
        who : str
            Who made it.
        """
        if other is not None and other != self:
            name = "alpha" if other.alpha != self.alpha else "decisions"
            raise LedgerError(
                f"{who} decided on these queries by other terms (alpha {other.alpha:g} over a budget of "
                f"{other.decisions}), and terms do not change",
                argument="alpha" if name == "alpha" else "budget",
                found=f"{getattr(self, name):g}",
                expected=f"{getattr(other, name):g}",
                remedy="use those, or go on with fresh queries",
            )
