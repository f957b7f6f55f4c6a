"""Rank the evaluations of an experiment by a measure: those on the same data by the same rules, others apart.

A leaderboard has the table of the ranked evaluations, tested against the first, and the runs that
are not ranked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from html import escape
from itertools import chain
from typing import Any

import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import check_alpha, check_count, count, shown
from rankeval._registry import unknown
from rankeval._visible import escaping, visible
from rankeval.comparison import Comparison, compare
from rankeval.comparison.inputs import fold_notes
from rankeval.comparison.record import with_notes
from rankeval.comparison.tables import WithTable
from rankeval.errors import InvalidInput, RankevalError
from rankeval.measures import Measure, direction, measure_from_key
from rankeval.measures import measure as parsed
from rankeval.render.tables import Table
from rankeval.shelf.record import BESIDE_ENDS
from rankeval.significance.orders import competition_ranks
from rankeval_mlflow.delivery.connection import asking
from rankeval_mlflow.packing.nodes import keys_of, values_of
from rankeval_mlflow.reading.listing import (
    PAGE,
    ListedEvaluation,
    broke_off,
    difference,
    entries_of,
    of_data,
    prevailing,
)
from rankeval_mlflow.reading.loading import evaluation_of
from rankeval_mlflow.reading.resolving import experiment_ids, pages
from rankeval_mlflow.reading.stored import NOT_WHOLE
from rankeval_mlflow.run_names import short_digest

# The relative difference that two computers may make of one mean.
_SAME = 1e-9

# Evaluations that are loaded at the same time: most of the time is spent waiting for a server.
_AT_ONCE = 8


COLUMNS = (
    "rank",
    "system",
    "run_id",
    "value",
    "ci_low",
    "ci_high",
    "seed_sd",
    "group",
    "n_queries",
    "logged_at",
)
OTHER_COLUMNS = ("run_id", "system", "reason")
_TESTED = (
    'group: "below" is shown to differ from the first (paired t test over queries, alpha {alpha:g}{corrected}); '
    '"tied" is not'
)
_CORRECTED = (
    "; the first was chosen by the same scores, so Holm's correction is over all {pairs} pairs of the {rows} rows that "
    "are tested"
)
_WEIGHTED = (
    'group: "weighted" is ranked by its weighted mean, and not tested here; rk.compare does that'
)


@dataclass(frozen=True)
class Chosen:
    """The measure of a ranking: its metric in MLflow, and its name."""

    key: str
    name: str


@dataclass(frozen=True)
class RankedEvaluation:
    """An evaluation with its value, and its scores once they are loaded."""

    entry: ListedEvaluation
    value: float
    evaluation: Any = None

    @property
    def weighted(self) -> bool:
        """Whether it is known to be a mean over weighted queries."""
        return self.evaluation is not None and self.evaluation.weights is not None


@dataclass(frozen=True)
class Other:
    """A run that is not ranked, and why."""

    run_id: str
    system: str
    reason: str


def chosen_measure(
    client: Any, entries: Sequence[ListedEvaluation], measure: str | Measure | None
) -> Chosen:
    """Return the measure that was asked for, or the one that comes first in most evaluations."""
    logged = dict.fromkeys(key for entry in entries for key in entry.metrics)
    firsts = Counter(entry.run.data.params.get("measure", "") for entry in entries)
    name = firsts.most_common(1)[0][0] if measure is None else str(measure)
    key = name if name in logged else _key(name)
    if key not in logged:
        newest = max(entries, key=lambda entry: entry.logged_at)
        keys = keys_of(evaluation_of(client, newest.run, newest.content.role))
        key = next(iter(keys.values())) if measure is None else keys.get(name, key)
    if key not in logged:
        known = [_name(metric) for metric in logged if not metric.endswith(BESIDE_ENDS)]
        raise unknown("measure of these evaluations", name, known)
    return Chosen(key, _name(key))


def by_value(
    entries: Sequence[ListedEvaluation], chosen: Chosen
) -> tuple[list[RankedEvaluation], list[Other]]:
    """Return the evaluations, the best first and of equal ones the earliest first, and those without a value."""
    values = [(entry, entry.metrics.get(chosen.key)) for entry in entries]
    ranked = [RankedEvaluation(entry, value) for entry, value in values if value is not None]
    ranked.sort(
        key=lambda evaluated: (
            -direction(chosen.name).sign * evaluated.value,
            evaluated.entry.logged_at,
        )
    )
    missing = f"no value by {chosen.name}"
    return ranked, [
        Other(entry.run_id, entry.system, missing) for entry, value in values if value is None
    ]


def with_scores(
    client: Any, ranked: Sequence[RankedEvaluation], chosen: Chosen, limit: int
) -> tuple[list[RankedEvaluation], list[Other]]:
    """Load the scores of the first evaluations, until as many as asked for can be compared with each other.

    Data sets of the same digest may have been cut to other queries, which only the scores tell. The
    judgments that most of the first evaluations share are the ones that count. An evaluation whose
    run says another value than its scores is ranked by neither.
    """
    load = partial(_loaded, client, chosen)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        first = list(pool.map(load, ranked[:limit]))
    digests = Counter(
        evaluated.evaluation.judgments_digest
        for evaluated in first
        if isinstance(evaluated, RankedEvaluation)
    )
    digest = max(digests, key=digests.__getitem__, default=None)
    kept: list[RankedEvaluation] = []
    others: list[Other] = []
    for loaded in chain(first, map(load, ranked[limit:])):
        if isinstance(loaded, Other):
            others.append(loaded)
        elif loaded.evaluation.judgments_digest == (
            digest := digest or loaded.evaluation.judgments_digest
        ):
            kept.append(loaded)
        else:
            n = loaded.evaluation.n_queries
            others.append(
                _other(loaded, f"other queries or judgments ({n} queries) of the same data")
            )
        if len(kept) == limit:
            break
    return [*kept, *ranked[len(kept) + len(others) :]], others


def _loaded(client: Any, chosen: Chosen, evaluated: RankedEvaluation) -> RankedEvaluation | Other:
    try:
        evaluation = evaluation_of(client, evaluated.entry.run, evaluated.entry.content.role)
    except InvalidInput as error:
        return _other(evaluated, str(error))
    own = values_of(evaluation).get(chosen.key, math.nan)
    if not math.isclose(own, evaluated.value, rel_tol=_SAME):
        return _other(
            evaluated,
            f"its metric {chosen.key} is {evaluated.value:.6g}, and its evaluation {own:.6g}: another was logged later",
        )
    return replace(evaluated, evaluation=evaluation)


def _other(evaluated: RankedEvaluation, reason: str) -> Other:
    return Other(evaluated.entry.run_id, evaluated.entry.system, reason)


def _key(name: str) -> str:
    """Return the metric of a measure in any spelling; the name itself if it is none of ours."""
    with suppress(RankevalError):
        return parsed(name).key
    return name


def _name(key: str) -> str:
    """Return the name of a measure by its metric; the metric's if it is a measure of the user's own."""
    with suppress(RankevalError):
        return str(measure_from_key(key))
    return key


@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard(WithTable):
    """The evaluations of an experiment, ranked by a measure.

    Attributes
    ----------
    table : DataFrame
        A row per evaluation, the best first. Columns: rank (tied values share the best of their
        ranks), system, run_id, value (the aggregate), ci_low and ci_high (95 % interval of this
        mean alone; nan where none is defined), seed_sd (standard deviation over seeds, if the value
        is a mean over some, else nan), group, n_queries, logged_at. The group is "first";
        "below" if the evaluation is shown to differ from the first; "tied" if it is not; "weighted"
        if its queries have weights, which is not tested here; "" if nothing was tested.
    others : DataFrame
        The runs that are not ranked. Columns: run_id, system, reason.
    measure : str
        The measure.
    data, digest, role, convention : str
        What the ranked evaluations share: the name of the data set, its digest, the role, the
        convention.
    n_ranked : int
        The number of evaluations that were ranked, of which the table has the first.
    comparison : Comparison or None
        All pairs of the rows shown that are not weighted; None if nothing was tested.
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
        part = (
            ""
            if self.n_ranked == len(self.table)
            else f", the first {len(self.table)} of {self.n_ranked:,}"
        )
        return (
            f"{self.measure} on {self.data} ({short_digest(self.digest)}), role {self.role}, convention "
            f"{self.convention}{part}"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<li>{escape(visible(f'{other.system} ({other.run_id}): {other.reason}'))}</li>"
            for other in self.others.itertuples()
        )
        more = (
            f"<details><summary>{escape(visible(self._left_out()))}</summary><ul>{rows}</ul></details>"
            if rows
            else ""
        )
        return self._laid_out().to_html() + more

    def _laid_out(self) -> Table:
        shown = self.table.copy()
        if shown["seed_sd"].isna().all():
            shown = shown.drop(columns="seed_sd")
        shown["logged_at"] = shown["logged_at"].dt.strftime("%Y-%m-%d %H:%M")
        shown = shown.rename(
            columns={"logged_at": "logged (UTC)", "run_id": "run", "value": self.measure}
        )
        left = (self._left_out(),) if len(self.others) else ()
        notes, spare = (*self.notes, *left), ("logged (UTC)",)
        return Table(shown, {"rank": "d"}, caption=self.caption, notes=notes, spare=spare)

    def _left_out(self) -> str:
        reasons = Counter(self.others["reason"]).most_common(5)
        listed = "; ".join(f"{n} {reason}" for reason, n in reasons)
        return f"not ranked: {count(len(self.others), 'evaluation')} ({listed})"


def leaderboard_table(
    ranked: Sequence[RankedEvaluation],
    others: Sequence[Other],
    chosen: Chosen,
    limit: int,
    alpha: float,
) -> Leaderboard:
    """Make the leaderboard of ranked evaluations."""
    shown = ranked[:limit]
    names = _names(shown)
    compared, why = _compared(shown, names, chosen, alpha)
    groups = _groups(compared, names, shown)
    sign = direction(chosen.name).sign
    values = [sign * evaluated.value for evaluated in shown]
    ranks = competition_ranks(values) if len(values) > 1 else [1]
    rows = [
        _row(int(rank), evaluated, group, chosen)
        for rank, evaluated, group in zip(ranks, shown, groups, strict=True)
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    left_out = pd.DataFrame([asdict(other) for other in others], columns=list(OTHER_COLUMNS))
    content = shown[0].entry.content
    data_names = Counter(evaluated.entry.data for evaluated in ranked)
    n_tested = len(shown) - groups.count("weighted")
    flattered = _flattered(compared, len(ranked), n_tested)
    return Leaderboard(
        table=table,
        others=left_out,
        measure=chosen.name,
        data=data_names.most_common(1)[0][0],
        digest=content.digest,
        role=content.role,
        convention=content.convention,
        n_ranked=len(ranked),
        comparison=compared,
        notes=why + flattered,
    )


def _names(shown: Sequence[RankedEvaluation]) -> list[str]:
    n = Counter(evaluated.entry.system for evaluated in shown)
    return [
        evaluated.entry.system
        if n[evaluated.entry.system] == 1
        else f"{evaluated.entry.system} ({evaluated.entry.run_id})"
        for evaluated in shown
    ]


def _row(rank: int, evaluated: RankedEvaluation, group: str, chosen: Chosen) -> tuple[Any, ...]:
    entry = evaluated.entry
    metrics = entry.metrics
    ends = (metrics.get(f"{chosen.key}{end}", math.nan) for end in BESIDE_ENDS)
    size = entry.n_queries if evaluated.evaluation is None else evaluated.evaluation.n_queries
    return (rank, entry.system, entry.run_id, evaluated.value, *ends, group, size, entry.logged_at)


def _compared(
    shown: Sequence[RankedEvaluation], names: list[str], chosen: Chosen, alpha: float
) -> tuple[Comparison | None, tuple[str, ...]]:
    if any(evaluated.evaluation is None for evaluated in shown):
        return None, ()
    tested = {
        name: evaluated.evaluation
        for name, evaluated in zip(names, shown, strict=True)
        if not evaluated.weighted
    }
    notes = (_WEIGHTED,) if len(tested) < len(shown) else ()
    if len(tested) < 2:
        return None, notes
    systems = {}
    for name, evaluation in tested.items():
        label = next(label for label, key in keys_of(evaluation).items() if key == chosen.key)
        systems[name] = evaluation.per_query[[label]].set_axis([chosen.name], axis="columns")
    try:
        compared = compare(systems, measures=[chosen.name], alpha=alpha)
    except RankevalError as error:
        return None, (f"no groups: {error}", *notes)
    pooled = fold_notes(tested)
    pairs = len(tested) * (len(tested) - 1) // 2
    corrected = _CORRECTED.format(pairs=pairs, rows=len(tested)) if pairs > 1 else ""
    return with_notes(compared, *pooled), (
        _TESTED.format(alpha=alpha, corrected=corrected),
        *notes,
        *pooled,
    )


def _groups(
    compared: Comparison | None, names: Sequence[str], shown: Sequence[RankedEvaluation]
) -> list[str]:
    groups = {
        name: "weighted" for name, evaluated in zip(names, shown, strict=True) if evaluated.weighted
    }
    if compared is not None:
        first, *others = (name for name in names if name not in groups)
        pairs = compared.table.loc[compared.shown, ["baseline", "system"]]
        below = set(pairs[(pairs == first).any(axis="columns")].to_numpy().ravel())
        groups |= {first: "first"} | {name: "below" if name in below else "tied" for name in others}
    return [groups.get(name, "") for name in names]


def _flattered(compared: Comparison | None, n_ranked: int, n_tested: int) -> tuple[str, ...]:
    """Say what choosing the first is worth, if all candidates were compared, else that its value is too good."""
    if n_ranked < 2:
        return ()
    warning = f"the first of {n_ranked:,} is chosen by these scores, so its value flatters it"
    if compared is None or n_ranked > n_tested:
        return (f"{warning}; a test set that was not looked at shows its worth",)
    return (f"{warning}. {compared.best.words}",)


@explained
def leaderboard(
    experiment: str | None,
    *,
    measure: str | Measure | None = None,
    data: str | None = None,
    role: str | None = None,
    limit: int = 20,
    significance: bool = True,
    alpha: float = 0.05,
    uri: str | None = None,
) -> Leaderboard:
    """Rank the evaluations of an experiment, with groups against the first.

    Evaluations are ranked together only if they are of the same role, on the same data (by its
    digest) and by the same convention. By default these are the ones that most runs share; the
    other runs are listed with the reason. One search gives all runs; scores by query are loaded for
    the rows shown only.

    Parameters
    ----------
    experiment : str or None
        Name of the experiment; None for all experiments.
    measure : str or Measure, optional
        The measure; by default the first one of the evaluations.
    data : str, optional
        Name or digest of the data set.
    role : str, optional
        The role of the evaluations.
    limit : int, default 20
        The number of rows.
    significance : bool, default True
        Whether to load the scores by query, check the metrics of the runs by them, and test the
        rows shown against the first of them. Without it, the ranking is by whatever was logged last
        as the metric.
    alpha : float, default 0.05
        Level of these tests, over all pairs of the rows shown.
    uri : str, optional
        The tracking store, with its model registry; by default MLflow's own setting.

    Returns
    -------
    Leaderboard
        Its ``table`` has the rows, its ``others`` the runs that are not ranked.

    Raises
    ------
    InvalidInput
        If no evaluation can be ranked, or an argument is out of range.
    UnknownName
        If the experiment, the data set, the role or the measure does not exist.
    TrackingError
        If the store cannot be reached, or an artifact of a row was altered.

    Notes
    -----
    The first of the rows was chosen by the same scores that it is tested with. So all pairs of the rows shown are
    tested (paired t, corrected by Holm), which is valid for any choice among them. Evaluations with
    query weights are ranked by their weighted means and not tested; which they are is known only if
    the scores are loaded.

    Examples
    --------
    >>> import rankeval as rk
    >>> import mlflow
    >>> from rankeval_mlflow import log
    >>> experiment = mlflow.set_experiment("search")
    >>> truth = {f"q{i}": {"a": 1, "b": 0} for i in range(20)}
    >>> for name, right in {"bm25": 8, "ltr": 20}.items():
    ...     ranking = {q: {"a": 1, "b": 0 if i < right else 2} for i, q in enumerate(truth)}
    ...     run = log(rk.evaluate(truth, ranking, measures="RR", name=name))
    >>> leaderboard("search").table[["rank", "system", "value", "group"]].values.tolist()
    [[1, 'ltr', 1.0, 'first'], [2, 'bm25', 0.7, 'below']]
    """
    check_count("limit", limit)
    check_alpha(alpha)
    with asking(
        uri, "its runs" if experiment is None else f"the runs of experiment {shown(experiment)}"
    ) as client:
        runs = list(pages(client.search_runs, experiment_ids(client, experiment), max_results=PAGE))
        entries = [entry for run in runs for entry in entries_of(run)]
        if not entries:
            remedy = "log one with rankeval_mlflow.log"
            raise InvalidInput(
                f"experiment {shown(experiment)} has no whole evaluation", remedy=remedy
            )
        on_data = entries if data is None else of_data(entries, data)
        held = [entry for entry in on_data if role in (None, entry.content.role)]
        if not held:
            raise unknown("role", role, {entry.content.role for entry in on_data})
        content = prevailing(held)
        alike = [entry for entry in entries if entry.content == content]
        chosen = chosen_measure(client, alike, measure)
        ranked, others = by_value(alike, chosen)
        if significance:
            ranked, more = with_scores(client, ranked, chosen, limit)
            others += more
        if not ranked:
            raise InvalidInput(
                f"no evaluation can be ranked by {chosen.name}: {others[0].run_id}: {others[0].reason}"
            )
    others += [
        Other(entry.run_id, entry.system, why)
        for entry in entries
        if (why := difference(entry, content))
    ]
    others += [
        Other(run.info.run_id, run.info.run_name or "", NOT_WHOLE) for run in runs if broke_off(run)
    ]
    return leaderboard_table(ranked, others, chosen, limit, alpha)
