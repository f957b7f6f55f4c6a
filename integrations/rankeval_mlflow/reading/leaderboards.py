"""Rank the evaluations of an experiment by a measure: those on the same data by the same rules, others apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rankeval._checks import check_count, shown
from rankeval._registry import unknown
from rankeval.errors import InvalidInput
from rankeval_mlflow.reading.asking import asking, experiment_ids, pages
from rankeval_mlflow.reading.entries import Entry, broke_off, difference, entries_of, of_data, prevailing
from rankeval_mlflow.reading.listing import PAGE
from rankeval_mlflow.reading.ranking import Other, by_value, chosen_measure, with_scores
from rankeval_mlflow.reading.standings import Leaderboard, laid_out

if TYPE_CHECKING:
    from rankeval.measures import Measure

NOT_WHOLE = "not whole: its upload has not ended"


def leaderboard(
    experiment: str | None,
    *,
    measure: str | Measure | None = None,
    data: str | None = None,
    role: str | None = None,
    limit: int = 20,
    significance: bool = True,
    uri: str | None = None,
) -> Leaderboard:
    """Rank the evaluations of an experiment, with groups against the first.

    Evaluations are ranked together only if they are of the same role, on the same data (by its digest) and by the same
    convention. By default these are the ones that most runs share; the other runs are listed with the reason. One
    search gives all runs; scores by query are loaded for the rows shown only.

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
        Whether to load the scores by query, hold the metrics of the runs against them, and test the rows shown against
        the first of them. Without it, the ranking is by whatever was logged last as the metric.
    uri : str, optional
        The tracking store; by default MLflow's own setting.

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
    tested (paired t, corrected by Holm), which holds for any choice among them.

    Examples
    --------
    >>> import rankeval as rk
    >>> import mlflow
    >>> from rankeval_mlflow import log_evaluation
    >>> experiment = mlflow.set_experiment("search")
    >>> truth = {f"q{i}": {"a": 1, "b": 0} for i in range(20)}
    >>> for name, right in {"bm25": 8, "ltr": 20}.items():
    ...     ranking = {q: {"a": 1, "b": 0 if i < right else 2} for i, q in enumerate(truth)}
    ...     run = log_evaluation(rk.evaluate(truth, ranking, measures="RR", name=name))
    >>> leaderboard("search").table[["rank", "system", "value", "group"]].values.tolist()
    [[1, 'ltr', 1.0, 'first'], [2, 'bm25', 0.7, 'below']]
    """
    check_count("limit", limit)
    with asking(uri, "its runs" if experiment is None else f"the runs of experiment {shown(experiment)}") as client:
        runs = list(pages(client.search_runs, experiment_ids(client, experiment), max_results=PAGE))
        entries = [entry for run in runs for entry in entries_of(run)]
        if not entries:
            raise InvalidInput(f"experiment {shown(experiment)} holds no whole evaluation; log_evaluation logs one")
        content = prevailing(_asked(entries, data, role))
        alike = [entry for entry in entries if entry.content == content]
        chosen = chosen_measure(client, alike, measure)
        ranked, others = by_value(alike, chosen)
        if significance:
            ranked, more = with_scores(client, ranked, chosen, limit)
            others += more
        if not ranked:
            raise InvalidInput(f"no evaluation can be ranked by {chosen.name}: {others[0].run_id}: {others[0].reason}")
    others += [Other(entry.run_id, entry.system, why) for entry in entries if (why := difference(entry, content))]
    others += [Other(run.info.run_id, run.info.run_name or "", NOT_WHOLE) for run in runs if broke_off(run)]
    return laid_out(ranked, others, chosen, limit)


def _asked(entries: Sequence[Entry], data: str | None, role: str | None) -> list[Entry]:
    """Return the evaluations on the data and of the role that were asked for."""
    found = list(entries) if data is None else of_data(entries, data)
    if role is None:
        return found
    if held := [entry for entry in found if entry.content.role == role]:
        return held
    raise unknown("role", role, {entry.content.role for entry in found})
