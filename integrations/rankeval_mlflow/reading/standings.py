"""Leaderboard: the table of the ranked evaluations, tested against the first, and the runs that are not ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from rankeval._checks import count
from rankeval.errors import RankevalError
from rankeval.render.markup import visible
from rankeval.render.tables import Table
from rankeval_mlflow.names import short_digest
from rankeval_mlflow.reading.ranking import Chosen, Other, Ranked, scores_by

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison import Comparison

COLUMNS = ("rank", "system", "run_id", "value", "ci_low", "ci_high", "group", "n_queries", "logged_at")

_TESTED = (
    'group: "below" is shown to differ from the first (paired t test over queries at 5 %{corrected}); "tied" is not'
)
_CORRECTED = (
    "; the first was chosen by the same scores, so Holm's correction is over all {pairs} pairs of the {rows} rows shown"
)


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """The evaluations of an experiment, ranked by a measure.

    Attributes
    ----------
    table : DataFrame
        A row per evaluation, the best first. Columns: rank (tied values share the best of their ranks), system, run_id,
        value (the aggregate), ci_low and ci_high (95 % interval of this mean alone; nan where none is defined), group,
        n_queries, logged_at. The group is "first"; "below" if the evaluation is shown to differ from the first; "tied"
        if it is not; "" if nothing was tested.
    others : DataFrame
        The runs that are not ranked. Columns: run_id, system, reason.
    measure : str
        The measure.
    data, digest, role, convention : str
        What the ranked evaluations share: the name of the data set, its digest, the role, the convention.
    n_ranked : int
        The number of evaluations that were ranked, of which the table has the first.
    comparison : Comparison or None
        All pairs of the rows shown; None if nothing was tested.
    notes : tuple of str
        Sentences that a reader of the table must see.
    """

    table: pd.DataFrame
    others: pd.DataFrame
    measure: str
    data: str
    digest: str
    role: str
    convention: str
    n_ranked: int
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """What was ranked, in one line."""
        part = "" if self.n_ranked == len(self.table) else f", the first {len(self.table)} of {self.n_ranked:,}"
        return (
            f"{self.measure} on {self.data} ({short_digest(self.digest)}), role {self.role}, convention "
            f"{self.convention}{part}"
        )

    def to_markdown(self) -> str:
        """Return a Markdown table."""
        return self._laid_out().to_markdown()

    def __str__(self) -> str:
        return self._laid_out().to_text()

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<li>{escape(visible(f'{one.system} ({one.run_id}): {one.reason}'))}</li>" for one in self._listed()
        )
        more = (
            f"<details><summary>{escape(visible(self._left_out()))}</summary><ul>{rows}</ul></details>" if rows else ""
        )
        return self._laid_out().to_html() + more

    def _laid_out(self) -> Table:
        shown = self.table.copy()
        shown["logged_at"] = shown["logged_at"].dt.strftime("%Y-%m-%d %H:%M")
        shown = shown.rename(columns={"logged_at": "logged (UTC)", "run_id": "run", "value": self.measure})
        left = (self._left_out(),) if len(self.others) else ()
        return Table(shown, {"rank": "d"}, caption=self.caption, notes=(*self.notes, *left))

    def _left_out(self) -> str:
        """Count the runs that are not ranked, by reason."""
        reasons = Counter(self.others["reason"]).most_common(5)
        said = "; ".join(f"{n} {reason}" for reason, n in reasons)
        return f"not ranked: {count(len(self.others), 'evaluation')} ({said})"

    def _listed(self) -> list[Any]:
        return list(self.others.itertuples(index=False))


def laid_out(ranked: Sequence[Ranked], others: Sequence[Other], chosen: Chosen, limit: int) -> Leaderboard:
    """Make the leaderboard of ranked evaluations.

    Parameters
    ----------
    ranked : sequence of Ranked
        The evaluations, the best first; one or more.
    others : sequence of Other
        Those that are not ranked.
    chosen : Chosen
        The measure.
    limit : int
        The number of rows.

    Returns
    -------
    Leaderboard
        With groups if the scores of the rows were loaded.
    """
    import pandas as pd

    shown = ranked[:limit]
    names = _names(shown)
    compared, why = _compared(shown, names, chosen)
    rows = zip(_ranks(shown, chosen), shown, names, _groups(compared, names, len(shown)), strict=True)
    entry = shown[0].entry
    return Leaderboard(
        table=pd.DataFrame([_row(rank, one, group, chosen) for rank, one, _, group in rows], columns=list(COLUMNS)),
        others=pd.DataFrame([asdict(one) for one in others], columns=["run_id", "system", "reason"]),
        measure=chosen.name,
        data=Counter(one.entry.data for one in ranked).most_common(1)[0][0],
        digest=entry.content.digest,
        role=entry.content.role,
        convention=entry.content.convention,
        n_ranked=len(ranked),
        comparison=compared,
        notes=(*why, *_flattered(compared, len(ranked), len(shown))),
    )


def _names(shown: Sequence[Ranked]) -> list[str]:
    """Return a name for each row: the system, with its run if several have it."""
    n = Counter(one.entry.system for one in shown)
    return [
        one.entry.system if n[one.entry.system] == 1 else f"{one.entry.system} ({one.entry.run_id})" for one in shown
    ]


def _ranks(shown: Sequence[Ranked], chosen: Chosen) -> list[int]:
    from rankeval.significance.orders import competition_ranks

    if len(shown) < 2:
        return [1] * len(shown)
    return [int(rank) for rank in competition_ranks([chosen.direction * one.value for one in shown])]


def _row(rank: int, one: Ranked, group: str, chosen: Chosen) -> tuple[Any, ...]:
    """Return a row of the table."""
    entry, metrics = one.entry, one.entry.metrics
    ends = (metrics.get(f"{chosen.key}{end}", float("nan")) for end in ("_ci_low", "_ci_high"))
    size = entry.n_queries if one.evaluation is None else one.evaluation.n_queries
    return (rank, entry.system, entry.run_id, one.value, *ends, group, size, entry.logged_at)


def _compared(shown: Sequence[Ranked], names: list[str], chosen: Chosen) -> tuple[Comparison | None, tuple[str, ...]]:
    """Compare all pairs of the rows, or say why not."""
    from rankeval.comparison import compare

    if len(shown) < 2 or any(one.evaluation is None for one in shown):
        return None, ()
    if any(one.evaluation.weights is not None for one in shown if one.evaluation is not None):
        return None, ("no groups: evaluations with weights are not tested",)
    systems = {name: scores_by(one, chosen) for name, one in zip(names, shown, strict=True)}
    try:
        compared = compare(systems, measures=[chosen.name])
    except RankevalError as error:
        return None, (f"no groups: {error}",)
    pairs = len(shown) * (len(shown) - 1) // 2
    return compared, (_TESTED.format(corrected=_CORRECTED.format(pairs=pairs, rows=len(shown)) if pairs > 1 else ""),)


def _groups(compared: Comparison | None, names: list[str], n: int) -> list[str]:
    """Return the group of each row against the first."""
    if compared is None:
        return [""] * n
    table, first = compared.table, names[0]
    below = {
        (set(pair) - {first}).pop()
        for pair, is_shown in zip(table[["baseline", "system"]].itertuples(index=False), compared.shown, strict=True)
        if is_shown and first in pair
    }
    return ["first", *("below" if name in below else "tied" for name in names[1:])]


def _flattered(compared: Comparison | None, n_ranked: int, n_shown: int) -> tuple[str, ...]:
    """Say what choosing the first is worth, if all candidates were compared, else that its value is too good."""
    if n_ranked < 2:
        return ()
    said = f"the first of {n_ranked:,} is chosen by these scores, so its value flatters it"
    if compared is None or n_ranked > n_shown:
        return (f"{said}; a test set that was not looked at tells its worth",)
    return (f"{said}. {compared.best}",)
