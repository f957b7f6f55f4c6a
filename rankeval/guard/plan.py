"""A frozen plan: everything that decides a result, written down before any score is seen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from rankeval.collection.convention import Convention
from rankeval.errors import InvalidInput


@dataclass(frozen=True)
class Plan:
    """What will be opened, and how it will be judged.

    Attributes
    ----------
    project, collection, digest : str
        Whose plan, and for which registered content.
    systems : tuple of (name, output)
        The systems, each with the hash of its ranking output.
    baseline : str, optional
        The system that the others are compared with; all pairs without.
    measure : str
        The primary measure: the only one that confirms anything.
    secondary : tuple of str
        Measures that are shown besides.
    convention : Convention
        How rankings are held against the labels.
    alpha : float
        The level of the test, over all comparisons of the family.
    n_resamples, rng : int
        Of the randomisation test.
    ledger, head : str
        Where the plan stands, and the ledger's head then. Not part of the plan's id.
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
    ledger: str = ""
    head: str = ""

    def __post_init__(self) -> None:
        if not self.systems:
            raise InvalidInput("systems is empty: freeze at least one system")
        if self.baseline is not None and self.baseline not in self.names:
            raise InvalidInput(f"the baseline {self.baseline!r} is not among the systems: {', '.join(self.names)}")
        if not 0 < self.alpha <= 0.5:
            raise InvalidInput(f"alpha is {self.alpha}; expected a level above 0 and up to 0.5, such as 0.05")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the systems."""
        return tuple(name for name, _ in self.systems)

    @property
    def id(self) -> str:
        """Hash over all that matters to the result: the same plan has the same id wherever it is made."""
        text = json.dumps(self.content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def family_key(self) -> str:
        """What two plans must share to be corrected in one batch: baseline, measure, convention, level and test."""
        outputs = dict(self.systems)
        baseline = None if self.baseline is None else outputs[self.baseline]
        shared = {key: value for key, value in self.content().items() if key not in {"systems", "secondary"}}
        return json.dumps(shared | {"baseline": baseline or self.id}, sort_keys=True)

    def content(self) -> dict[str, Any]:
        """Return the plan as JSON can hold it."""
        return {
            "project": self.project,
            "digest": self.digest,
            "systems": [list(system) for system in sorted(self.systems)],
            "baseline": self.baseline,
            "measure": self.measure,
            "secondary": list(self.secondary),
            "convention": self.convention.card(),
            "alpha": self.alpha,
            "n_resamples": self.n_resamples,
            "rng": self.rng,
        }

    @classmethod
    def from_content(cls, content: Mapping[str, Any], *, collection: str, ledger: str, head: str) -> Plan:
        """Return the plan that `content` described.

        Parameters
        ----------
        content : mapping
            What `content` returned.
        collection : str
            Name of the collection.
        ledger, head : str
            Where it stands.
        """
        return cls(
            project=content["project"],
            collection=collection,
            digest=content["digest"],
            systems=tuple((name, output) for name, output in content["systems"]),
            baseline=content["baseline"],
            measure=content["measure"],
            secondary=tuple(content["secondary"]),
            convention=Convention.from_card(content["convention"]),
            alpha=content["alpha"],
            n_resamples=content["n_resamples"],
            rng=content["rng"],
            ledger=ledger,
            head=head,
        )

    def __repr__(self) -> str:
        against = f" against {self.baseline!r}" if self.baseline else ""
        return (
            f"Plan({self.id}: {', '.join(self.names)}{against} on {self.collection!r} by {self.measure}, "
            f"alpha {self.alpha:g}; ledger {self.ledger} at {self.head[:12]})"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(key)}</th><td>{escape(str(value))}</td></tr>"
            for key, value in {"id": self.id, **asdict(self)}.items()
        )
        return f"<table>{rows}</table>"
