"""A frozen plan: everything that decides a result, written down before any score is seen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from rankeval._checks import refuse
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.collection.convention import Convention
from rankeval.ledger.graph import mention, short

if TYPE_CHECKING:
    from rankeval.significance.declarations import ClaimName


@escaping
@dataclass(frozen=True, repr=False)
class Plan(Displayed):
    """The systems that will be opened, and how they will be compared.

    Attributes
    ----------
    project, collection, digest : str
        The project, and the registered collection by name and content.
    systems : tuple of (name, output)
        The systems by name, each with the hash of its ranking output.
    baseline : str, optional
        The system that the others are compared with; all pairs without one.
    measure : str
        The primary measure: the only one that confirms anything.
    secondary : tuple of str
        Measures that are shown besides.
    convention : Convention
        The rules by which rankings are scored.
    alpha : float
        The level of the test, over all comparisons of the family.
    n_resamples, rng : int
        Resamples and seed of the randomisation test.
    folds : str
        The folds whose held-out parts were predicted, in words, with a hash over their queries; ""
        for other plans.
    n_folds : int
        Their number; 0 for other plans.
    claim : {"difference", "better", "not_worse", "equivalent"}
        The claim to be shown, as in `rankeval.compare`.
    margin : float
        Of the claim.
    unseen : int
        Number of unseen queries that the claim counts.
    queries : str, optional
        The file of the ledger that lists the queries to test on; None for all.
    groups : str
        The file of the ledger that has the group of each query; "" without groups.
    grouped_by : str
        The noun for a group.
    registration : str
        The entry of the ledger that registered the collection.
    ledger, head : str
        The ledger and its head when the plan was read. Like the name and the registration of the
        collection and the notes, no part of the plan's id.
    notes : tuple of str
        Sentences that a reader of the plan should see.
    """

    project: str
    collection: str
    digest: str
    systems: tuple[tuple[str, str], ...]
    baseline: str | None
    measure: str
    secondary: tuple[str, ...]
    convention: Convention
    alpha: float
    n_resamples: int
    rng: int
    folds: str = ""
    n_folds: int = 0
    claim: ClaimName = "difference"
    margin: float = 0.0
    unseen: int = 0
    queries: str | None = None
    groups: str = ""
    grouped_by: str = ""
    registration: str = ""
    ledger: str = ""
    head: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Sorted, so that a plan has the same id and the same tables in whatever order its systems
        # were given.
        object.__setattr__(self, "systems", tuple(sorted(map(tuple, self.systems))))
        object.__setattr__(self, "secondary", tuple(self.secondary))
        unknown = (
            f"the baseline {self.baseline!r} is not among the systems: {', '.join(self.names)}"
        )
        # A first baseline is free, and the only system would be looked at for its own sake.
        alone = "the plan has one system, which has no baseline: leave baseline= out"
        if self.baseline is not None:
            refuse((self.baseline not in self.names, unknown), (len(self.systems) == 1, alone))
        # A program that formats JSON may write 0.0 as 0: the id must not depend on it.
        object.__setattr__(self, "margin", float(self.margin))
        from rankeval.significance.declarations import refuse_undirected

        refuse_undirected(self.claim, self.baseline)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the systems."""
        return tuple(name for name, _ in self.systems)

    @property
    def id(self) -> str:
        """Hash over everything that decides the result: the same plan has the same id wherever it is made."""
        # 80 bits: no accident gives two plans one id, and a reader can still type it.
        text = json.dumps(self.content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def about(self) -> dict[str, str | None]:
        """The keys by which entries of the ledger name the plan, its collection and its queries."""
        names = {"plan": self.id, "digest": self.digest, "collection": self.collection}
        return names | {"registration": self.registration, "queries": self.queries}

    @property
    def family_key(self) -> str:
        """Text that two plans share if they are corrected in one batch: all but their systems and secondary measures.

        Plans with a baseline share its ranking. A plan of all pairs is a batch of its own.
        """
        shared = {
            key: value
            for key, value in self.content().items()
            if key not in {"systems", "secondary"}
        }
        baseline = self.id if self.baseline is None else dict(self.systems)[self.baseline]
        return json.dumps(shared | {"baseline": baseline}, sort_keys=True)

    def content(self) -> dict[str, Any]:
        """Return the plan as JSON can hold it."""
        return content_of(self, _HASHED)

    @classmethod
    def from_body(cls, body: Mapping[str, Any], *, ledger: str, head: str) -> Plan:
        """Return the plan that an entry of the ledger froze.

        Parameters
        ----------
        body : mapping
            The body of the entry.
        ledger, head : str
            The ledger and its head.
        """
        unhashed = {name: body[name] for name in ("collection", "registration")}
        hashed = fields_in(body["content"], _HASHED)
        return cls(**hashed, **unhashed, notes=tuple(body["notes"]), ledger=ledger, head=head)

    def _view(self) -> View:
        against = f" against {self.baseline!r}" if self.baseline else ""
        over = f" over {self.folds}" if self.folds else ""
        claim = "" if self.claim == "difference" else f", claim {self.claim} by {self.margin:g}"
        over += f", tested by {self.grouped_by}," if self.groups else ""
        sentence = (
            f"Plan {self.id}: {', '.join(self.names)}{against} on {self.collection!r}{over} by "
            f"{self.measure}, alpha {self.alpha:g}{claim}"
        )
        frozen = f"Frozen in {mention(self.ledger, short(self.head))}"
        return View([sentence, frozen], notes=self.notes)


_UNHASHED = {"collection", "registration", "ledger", "head", "notes"}
_HASHED = tuple(field.name for field in fields(Plan) if field.name not in _UNHASHED)
"""The fields that decide a result."""
_LATER_FIELDS = ("unseen", "groups", "grouped_by")
"""Those that came later, also to the terms of a gate: content lacks them if they have no value."""


def content_of(declared: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return fields as JSON holds them; later ones only with a value, so that ids of old plans stay."""
    present = [name for name in names if name not in _LATER_FIELDS or getattr(declared, name)]
    return {name: getattr(declared, name) for name in present} | {
        "convention": declared.convention.card()
    }


def fields_in(content: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of `content_of`; the later ones that it lacks have their defaults."""
    # Not copied to a dict: the body of an entry raises LedgerError for a key that it lacks.
    values = {name: content[name] for name in names if name in content or name not in _LATER_FIELDS}
    return values | {"convention": Convention.from_card(content["convention"])}
