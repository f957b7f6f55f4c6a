"""The result of a promotion: whether the alias was moved, and why."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison import Comparison
    from rankeval.guard.gate.decisions import Decision

Outcome = Literal["moved", "in place", "rejected", "overtaken", "would move"]


@dataclass(frozen=True, eq=False)
class Promotion:
    """The result of `promote`. It is true if the alias is with the version, or would be after a dry run.

    Attributes
    ----------
    model, alias, version : str
        The registered model, the alias, and the version that asked for it.
    outcome : {"moved", "in place", "rejected", "overtaken", "would move"}
        "moved": the alias was moved to the version; the reason says if it could not be read again. "in place": it was
        there before, and nothing was decided. "rejected": the
        claim or a floor was not shown. "overtaken": the version was accepted, but another promoter moved the alias
        meanwhile. "would move": accepted in a dry run.
    reason : str
        Why, in a sentence or a few.
    alias_before : str or None
        The version that had the alias; None if none had it.
    comparison : Comparison or None
        The candidate against that version; None if nothing was compared, or a gate with a budget decided.
    floors : DataFrame or None
        A row per slice with a floor: slice, n_queries, mean_holder, mean_candidate, gain, gain_low (its one-sided
        lower limit), floor, p_value, passes_if_equal (the floor that an equal candidate passes four times in five; nan
        for tests whose power is not that of Student's t) and passed.
    decision : Decision or None
        The answer of the gate, if one decided.
    run_id : str or None
        The run with the record; None if nothing was written.
    where : str
        How to look at the record; "" without one.
    """

    model: str
    alias: str
    version: str
    outcome: Outcome
    reason: str
    alias_before: str | None
    comparison: Comparison | None = None
    floors: pd.DataFrame | None = None
    decision: Decision | None = None
    run_id: str | None = None
    where: str = ""

    @property
    def accepted(self) -> bool:
        """Whether nothing spoke against the version."""
        return self.outcome != "rejected"

    @property
    def moved(self) -> bool:
        """Whether the alias was moved to the version, and was not seen elsewhere when it was read again."""
        return self.outcome == "moved"

    def __bool__(self) -> bool:
        return self.outcome in {"moved", "in place", "would move"}

    def __str__(self) -> str:
        before = "no version" if self.alias_before is None else f"version {self.alias_before}"
        said = _WORDS[self.outcome].format(version=self.version, before=before)
        return f"{self.model}@{self.alias}: {said}. {self.reason}"

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(str(self))}</p>"]
        if self.floors is not None:
            parts.append(self.floors.to_html(index=False, escape=True))
        if self.comparison is not None:
            parts.append(self.comparison._repr_html_())
        return "".join(parts)


_WORDS: dict[str, str] = {
    "moved": "moved from {before} to version {version}",
    "in place": "version {version} has it already",
    "rejected": "stays with {before}; version {version} is rejected",
    "overtaken": "not moved to version {version}, although it was accepted",
    "would move": "would move from {before} to version {version}",
}
