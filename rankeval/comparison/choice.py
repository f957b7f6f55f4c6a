"""The best of several systems, and what the choice is worth."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from rankeval.render.tables import number, signed


@dataclass(frozen=True)
class Choice:
    """The system with the best mean, and its value corrected for having been chosen.

    Attributes
    ----------
    system : str
        The candidate with the best mean; the first of equal ones.
    measure : str
        The measure it was chosen by.
    baseline : str or None
        The system it is compared with, which is no candidate. None: every system is one.
    estimate : float
        Its difference from the baseline, system minus baseline as in the table, or its mean if there is no baseline;
        corrected for the choosing if there are several candidates.
    ci_low, ci_high : float
        Interval of its true difference or mean, which holds for the system chosen.
    n_candidates : int
        The number of systems it was chosen from.
    confidence_level : float
        Of the interval.

    Examples
    --------
    >>> best = Choice("v3", "AP", "v0", 0.02, -0.01, 0.05, n_candidates=9, confidence_level=0.95)
    >>> print(str(best).partition(" [")[0])
    v3 against v0, chosen as the best of 9: about +0.0200 AP
    """

    system: str
    measure: str
    baseline: str | None
    estimate: float
    ci_low: float
    ci_high: float
    n_candidates: int
    confidence_level: float

    def __str__(self) -> str:
        write = number if self.baseline is None else signed
        against = "" if self.baseline is None else f" against {self.baseline}"
        value = f"{write(self.estimate)} {self.measure}"
        ends = f"[{100 * self.confidence_level:g}% interval {write(self.ci_low)} to {write(self.ci_high)}]"
        if self.n_candidates == 1:
            return f"{self.system}{against}: {value} {ends}."
        chosen = f", chosen as the best of {self.n_candidates}"
        return f"{self.system}{against}{chosen}: about {value} {ends}, corrected for the choosing."

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"
