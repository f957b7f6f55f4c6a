"""What a comparison sets out to show: the claims, and the one-sided hypotheses that each is made of.

A claim other than "difference" is about the *gain* of a system: its difference from the baseline, turned so that
positive is better. The claim is shown if each of its one-sided hypotheses is::

    claim         shown if                      hypotheses
    better        gain > margin                 gain is greater than margin
    not_worse     gain > -margin                gain is greater than -margin
    equivalent    -margin < gain < margin       gain is greater than -margin, gain is less than margin

so the p-value is the largest of theirs (intersection-union test, Berger 1982, doi:10.1080/00401706.1982.10487790), and
each finite end of the interval belongs to one of them, at the level of the test. For "equivalent" that is the
two one-sided tests procedure (TOST) of Schuirmann (1987), doi:10.1007/BF01068419, and a 1 - 2 alpha interval.

Differences are moved by the margin before they are tested, so every paired test knows all claims.

**Absence of harm and queries that nobody saw.** A change that breaks one query in fifty leaves 36 % of samples of 50
queries unbroken, and the differences of such a sample vary little or not at all: Student's t and the sign flips then
rule out any loss. So "not_worse" and "equivalent" are tested over the n differences and one query more, which lost (for
the other side of "equivalent": gained) all that a query can. And no p-value is below the chance that n queries show
nothing of a breakage as large as the margin, ``(1 - margin / loss) ** n``: at small levels one query would not do.
`tests/calibration` has the error rates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Side = Literal["greater", "less"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What is to be shown of a gain.

    Attributes
    ----------
    words : str
        What is shown, in help and headers.
    caption : str
        How it is shown, in captions; may name ``{margin}``. Empty for "difference".
    hypotheses : tuple of (side, int)
        What must be shown: on which side of which multiple of the margin the gain lies. Empty for "difference".
    margin : {"none", "optional", "required"}
        Whether a margin other than 0 may or must be given.
    harmless : bool
        Whether absence of harm is claimed, so that unseen queries count.
    verb, adjective, nothing : str
        Words of the headline: "a beats b"; "2 others are shown better"; "No difference was shown".
    """

    words: str
    caption: str = ""
    hypotheses: tuple[tuple[Side, int], ...] = ()
    margin: Literal["none", "optional", "required"] = "required"
    harmless: bool = False
    verb: str = "beats"
    adjective: str = "better"
    nothing: str = "No gain was shown"

    @property
    def sides(self) -> int:
        """Number of ends of the interval that are finite, at the level of the test each; 0 for "difference"."""
        return len(self.hypotheses)

    def is_within(self, low: NDArray[np.float64], high: NDArray[np.float64], margin: float) -> NDArray[np.bool_]:
        """Return whether an interval of the gain shows the claim; of "difference", whether it excludes 0."""
        if not self.hypotheses:
            return np.asarray((low > 0) | (high < 0))
        shown = [low > factor * margin if side == "greater" else high < factor * margin for side, factor in self]
        return np.asarray(np.logical_and.reduce(shown))

    def __iter__(self) -> Iterator[tuple[Side, int]]:
        return iter(self.hypotheses)


@dataclass(frozen=True)
class Unseen:
    """The queries that nobody saw, as a claim of no harm counts them.

    Attributes
    ----------
    count : int
        How many are added to those seen.
    loss : ndarray of shape (n_pairs,)
        What each of them lost, in each column of differences.
    seen : ndarray of shape (n_pairs,)
        Number of queries seen in each column.
    """

    count: int
    loss: NDArray[np.float64]
    seen: NDArray[np.float64]

    def part(self, columns: slice) -> Unseen:
        """Return those of some columns."""
        return replace(self, loss=self.loss[columns], seen=self.seen[columns])

    def least_p(self, margin: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return the chance that a breakage as large as the margin leaves every query seen whole."""
        return np.asarray(np.clip(1 - margin / self.loss, 0.0, 1.0) ** self.seen)

    def reach(self, alpha: float) -> NDArray[np.float64]:
        """Return the largest mean loss by a breakage that goes unseen with a chance above alpha."""
        return np.asarray(self.loss * (1 - alpha ** (1 / self.seen)))


def unseen_share(n: int, alpha: float) -> float:
    """Return the share of broken queries up to which n queries may well show none: ``1 - alpha ** (1 / n)``.

    If a larger share were broken, n queries drawn at random would all be whole with a chance below alpha.
    """
    return float(1 - alpha ** (1 / n))


CLAIMS: dict[str, Claim] = {
    "difference": Claim(words="a difference", margin="none", nothing="No difference was shown"),
    "better": Claim(
        words="a gain above the margin",
        caption="one-sided, to show a gain above {margin:g}",
        hypotheses=(("greater", 1),),
        margin="optional",
    ),
    "not_worse": Claim(
        words="a gain, or a loss smaller than the margin",
        caption="one-sided, to show that no loss reaches {margin:g}",
        hypotheses=(("greater", -1),),
        harmless=True,
        verb="is not worse than",
        adjective="not worse",
        nothing="Non-inferiority was not shown",
    ),
    "equivalent": Claim(
        words="neither a gain nor a loss as large as the margin",
        caption="two one-sided tests, to show that neither gain nor loss reaches {margin:g}",
        hypotheses=(("greater", -1), ("less", 1)),
        harmless=True,
        verb="is equivalent to",
        adjective="equivalent",
        nothing="Equivalence was not shown",
    ),
}
"""Name -> claim."""
