"""The terms of a gate, and the test by which it decides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.convention import Convention
from rankeval.errors import InvalidInput
from rankeval.measures import greatest_loss

if TYPE_CHECKING:
    from rankeval.significance.declarations import ClaimName

_RESAMPLES = 20
"""Resampled patterns, at least, that a p-value at the level of a decision is made of."""

CLAIMS = ("better", "not_worse")
"""What a gate can ask for: a claim with one side."""


@dataclass(frozen=True)
class Terms:
    """What a gate asks of every candidate.

    Attributes
    ----------
    measure : str
        The measure.
    convention : Convention
        The rules by which rankings are scored.
    claim : {"better", "not_worse"}
        The claim to be shown of the candidate.
    margin : float
        Of the claim.
    alpha : float
        The level of all decisions together.
    budget : int
        Number of decisions.
    rng : int
        Seed of the randomisation test.
    unseen : int
        Number of unseen queries that "not_worse" counts; 0 for gates declared before any were.
    """

    measure: str
    convention: Convention
    claim: ClaimName
    margin: float
    alpha: float
    budget: int
    rng: int
    unseen: int = 0

    def __post_init__(self) -> None:
        if self.claim not in CLAIMS:
            raise InvalidInput(f"claim is {self.claim!r}; a gate asks for {' or '.join(map(repr, CLAIMS))}")
        from rankeval.significance.declarations import check_claim

        check_claim(self.claim, self.margin)
        if isinstance(self.budget, bool) or not isinstance(self.budget, int) or not 1 <= self.budget <= 10_000:
            raise InvalidInput(f"budget is {self.budget!r}; expected the number of decisions, from 1 to 10,000")
        if not 0 < self.alpha < 0.5:
            raise InvalidInput(f"alpha is {self.alpha}; expected a level above 0 and below 0.5, such as 0.05")

    @property
    def level(self) -> float:
        """The level of one decision."""
        return self.alpha / self.budget

    @property
    def words(self) -> str:
        """What must be shown of a candidate."""
        if self.claim == "not_worse":
            return f"not worse than the baseline by {self.margin:g}"
        return f"better than the baseline{f' by more than {self.margin:g}' if self.margin else ''}"

    @property
    def least_queries(self) -> int:
        """The number of queries below which no candidate can be accepted."""
        from rankeval.significance.signs import EXACT_UP_TO

        least = max(2, math.ceil(-math.log2(self.level)))
        return least if least <= EXACT_UP_TO else EXACT_UP_TO + 1

    def shows(self, gains: NDArray[np.float64], largest: float) -> bool:
        """Return whether the claim is shown, one-sided by the randomisation test, at the level of one decision.

        Parameters
        ----------
        gains : ndarray of shape (n_queries,)
            The gain of the candidate on each query.
        largest : float
            The greatest score of the baseline: what a query can lose by a measure without a declared range.
        """
        from rankeval.significance.running import paired_test

        loss = greatest_loss(self.measure)
        found = paired_test(
            "randomization",
            gains,
            alpha=self.level,
            n_resamples=max(9999, math.ceil(_RESAMPLES / self.level) - 1),
            rng=self.rng,
            claim=self.claim,
            margin=self.margin,
            unseen=self.unseen,
            greatest_loss=loss if math.isfinite(loss) else largest or 1.0,
        )
        return bool(found.p_value <= self.level)

    def detectable(self, n_queries: int, sd: float) -> float:
        """Return the gain that is accepted four times in five; for "not_worse" the margin, of a system that is equal.

        Parameters
        ----------
        n_queries : int
            Number of queries.
        sd : float
            Standard deviation of the differences by query.
        """
        from rankeval.significance.power import detectable_difference

        found = detectable_difference(
            max(2, n_queries), sd, self.level, claim=self.claim, margin=self.margin, unseen=self.unseen
        )
        return float(found)

    def content(self) -> dict[str, Any]:
        """Return the terms as JSON can hold them."""
        names = [field.name for field in fields(self) if field.name != "unseen" or self.unseen]
        return {name: getattr(self, name) for name in names} | {"convention": self.convention.card()}

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Terms:
        """Return the terms that `content` described."""
        named = {field.name: content[field.name] for field in fields(cls) if field.name != "unseen"}
        named["unseen"] = content.get("unseen", 0)
        numbers = {"margin": float(content["margin"]), "alpha": float(content["alpha"])}
        return cls(**named | numbers | {"convention": Convention.from_card(content["convention"])})

    def differences(self, other: Terms) -> str:
        """Return in words where other terms differ; "" if they are the same."""
        ours, theirs = self.content(), other.content()
        return ", ".join(
            f"{name} is {ours[name]} and not {theirs[name]}" for name in ours if ours[name] != theirs[name]
        )
