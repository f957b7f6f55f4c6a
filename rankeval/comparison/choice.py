"""The best of several systems, and what the choice is worth."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from rankeval.measures import greater_is_better
from rankeval.render.tables import telling


@dataclass(frozen=True)
class Choice:
    """The system with the best mean, and the value of choosing by the best mean.

    The value is one of the procedure: on other queries it would choose other systems too. With systems of very unlike
    variance it differs from the named system's own gain. It is lower if some noisy systems are worse in truth: these
    would often be chosen. The headline speaks of the named system, this value of the choice.

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
        if there are several candidates, that of those chosen on other queries.
    ci_low, ci_high : float
        Interval of the system's true difference or mean, which holds although it was chosen. The end on the worse side
        is stretched where necessary, so that the interval holds the estimate too.
    n_candidates : int
        The number of systems it was chosen from.
    confidence_level : float
        Of the interval.

    Examples
    --------
    >>> best = Choice("v3", "AP", "v0", 0.02, -0.01, 0.05, n_candidates=9, confidence_level=0.95)
    >>> print(str(best).partition(" [")[0])
    Choosing the largest mean of 9 candidates, here v3, gains about +0.0200 AP over v0
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
        low, value, high = (self._written(one) for one in (self.ci_low, self.estimate, self.ci_high))
        ends = f"[{100 * self.confidence_level:g}% interval {low} to {high}]"
        if self.n_candidates == 1:
            against = "" if self.baseline is None else f" against {self.baseline}"
            said = f"{self.system}{against}: {value} {self.measure} {ends}."
        else:
            said = f"{self._subject} {self._verb(value)} {ends}."
        return " ".join(said.split())

    @property
    def _subject(self) -> str:
        extreme = "largest" if greater_is_better(self.measure) else "smallest"
        return f"Choosing the {extreme} mean of {self.n_candidates} candidates, here {self.system},"

    def _verb(self, value: str) -> str:
        if self.baseline is None:
            return f"leads to a mean of about {value} {self.measure}"
        if greater_is_better(self.measure):
            return f"gains about {value} {self.measure} over {self.baseline}"
        return f"changes {self.measure} (less is better) by about {value} from {self.baseline}"

    def _written(self, value: float) -> str:
        return telling(value, sign=self.baseline is not None)

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"
