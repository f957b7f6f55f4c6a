"""The side of a guard that decides on candidates one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval.collection.convention import Convention, get_convention
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.gate.declaring import declare
from rankeval.guard.gate.gate import Gate
from rankeval.guard.gate.terms import Terms
from rankeval.guard.releases import Releases
from rankeval.measures import Measure
from rankeval.measures import measure as parse_measure

if TYPE_CHECKING:
    from rankeval.significance.declarations import ClaimName


class Gates(Releases):
    """Gates; see `Guard`."""

    def gate(
        self,
        test: RegisteredCollection,
        *,
        baseline: Any = None,
        budget: int = 20,
        measure: str | Measure = "nDCG@10",
        claim: ClaimName = "better",
        margin: float = 0.0,
        alpha: float = 0.05,
        convention: str | Convention = "rankeval",
        sd: float | None = None,
        rng: int = 0,
        name: str = "gate",
    ) -> Gate:
        """Declare a gate: it accepts or rejects one candidate after the other, and shows nothing else.

        A gate is declared once for a collection and its revisions. The same call again returns it, with or without its
        baseline. Each candidate is tested at ``alpha / budget``. If the queries were looked at before, the gate is
        declared all the same, and says so in its entry, in a warning and wherever it is printed: its level does not
        hold for candidates that such looks helped to make.

        Parameters
        ----------
        test : RegisteredCollection
            The collection that `register` returned.
        baseline : array, fitted model or Run
            The system in use, as in `freeze`. Candidates are compared with it until one is accepted.
        budget : int, default 20
            Number of decisions.
        measure : str or Measure
            The measure.
        claim : {"better", "not_worse"}, default "better"
            What must be shown of a candidate: that it is better than the baseline by more than the margin, or not worse
            by the margin. The latter counts one unseen query, as `rankeval.compare` does.
        margin : float, default 0
            Of the claim, in units of the measure; "not_worse" needs one.
        alpha : float, default 0.05
            The level of all decisions together.
        convention : str or Convention
            The rules by which rankings are scored.
        sd : float, optional
            Standard deviation of the differences by query, from which the gate says what it can find; by default .2.
            It is no part of the terms.
        rng : int
            Seed of the randomisation test.
        name : str, default "gate"
            Name of the gate.

        Returns
        -------
        Gate
            Its ``decide(name, system)`` returns a Decision, which says if the system was accepted and how many
            decisions are left. Printed, the gate says which difference it can find.

        Raises
        ------
        InvalidInput
            If there is no baseline for a new gate, a term is out of range, or so few queries can show nothing.
        LedgerError
            If a gate of this name has other terms, or the collection was retired.

        Examples
        --------
        >>> import tempfile
        >>> from rankeval.datasets import make_ranking
        >>> from rankeval.guard import Guard
        >>> data = make_ranking(60, rng=0)
        >>> guard = Guard("my-project", ledger=f"{tempfile.mkdtemp()}/ledger")
        >>> gate = guard.gate(guard.register("my-test", data), baseline=-data.y, budget=10)
        >>> bool(gate.decide("perfect", data.y)), bool(gate.decide("random", data.X[:, 0] * 0))
        (True, False)
        """
        terms = Terms(
            measure=str(parse_measure(measure, get_convention(convention))),
            convention=get_convention(convention),
            claim=claim,
            margin=float(margin),
            alpha=float(alpha),
            budget=budget,
            rng=int(rng),
            unseen=1 if claim == "not_worse" else 0,
        )
        return declare(self._journal, test, name, terms, baseline=baseline, sd=sd)
