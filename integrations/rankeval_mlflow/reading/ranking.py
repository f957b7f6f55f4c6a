"""Rank evaluations by what their runs say, and load the scores by query of the first ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from rankeval._registry import unknown
from rankeval.errors import InvalidInput, RankevalError
from rankeval_mlflow.packing.evaluation import keys_of
from rankeval_mlflow.reading.entries import Entry
from rankeval_mlflow.reading.evaluations import evaluation_of

if TYPE_CHECKING:
    from rankeval.evaluation import Evaluation
    from rankeval.measures import Measure

_SAME = 1e-9
"""The relative difference that two computers may make of one mean."""

_AT_ONCE = 8
"""Evaluations that are loaded at the same time: most of the time is spent waiting for a server."""


@dataclass(frozen=True)
class Chosen:
    """The measure of a ranking: its metric in MLflow, and its name."""

    key: str
    name: str

    @property
    def direction(self) -> float:
        """1, or -1 if less is better."""
        from rankeval.measures import direction

        return direction(self.name)


@dataclass(frozen=True)
class Ranked:
    """An evaluation with its value, and its scores once they are loaded."""

    entry: Entry
    value: float
    evaluation: Evaluation | None = None


@dataclass(frozen=True)
class Other:
    """A run that is not ranked, and why."""

    run_id: str
    system: str
    reason: str


def chosen_measure(client: Any, entries: Sequence[Entry], measure: str | Measure | None) -> Chosen:
    """Return the measure that was asked for, or the one that comes first in most evaluations.

    Parameters
    ----------
    client : MlflowClient
        A client of the store, to load an evaluation if the metrics alone do not tell.
    entries : sequence of Entry
        The evaluations to rank.
    measure : str, Measure or None
        The measure, in any spelling; also the name of its metric.

    Raises
    ------
    UnknownName
        If no evaluation has it.
    """
    logged = dict.fromkeys(key for entry in entries for key in entry.metrics)
    first = Counter(entry.run.data.params.get("measure", "") for entry in entries).most_common(1)[0][0]
    asked = first if measure is None else str(measure)
    key = asked if asked in logged else _key(asked)
    if key not in logged:
        newest = max(entries, key=lambda entry: entry.logged_at)
        keys = keys_of(evaluation_of(client, newest.run, newest.content.role))
        key = next(iter(keys.values())) if measure is None else keys.get(asked, key)
    if key not in logged:
        known = [_name(each) for each in logged if not each.endswith(("_ci_low", "_ci_high"))]
        raise unknown("measure of these evaluations", asked, known)
    return Chosen(key, _name(key))


def by_value(entries: Sequence[Entry], chosen: Chosen) -> tuple[list[Ranked], list[Other]]:
    """Return the evaluations, the best first and of equal ones the earliest first, and those without a value."""
    found = [(entry, entry.metrics.get(chosen.key)) for entry in entries]
    ranked = [Ranked(entry, value) for entry, value in found if value is not None]
    ranked.sort(key=lambda one: (-chosen.direction * one.value, one.entry.logged_at))
    missing = f"no value by {chosen.name}"
    return ranked, [Other(entry.run_id, entry.system, missing) for entry, value in found if value is None]


def with_scores(client: Any, ranked: Sequence[Ranked], chosen: Chosen, limit: int) -> tuple[list[Ranked], list[Other]]:
    """Load the scores of the first evaluations, until as many as asked for can be compared with each other.

    Data sets of the same digest may have been cut to other queries, which only the scores tell. The judgments that most
    of the first evaluations share are the ones that count. An evaluation whose run says another value than its scores
    is ranked by neither.

    Parameters
    ----------
    client : MlflowClient
        A client of the store.
    ranked : sequence of Ranked
        The evaluations, the best first.
    chosen : Chosen
        The measure.
    limit : int
        The number of rows.

    Returns
    -------
    ranked : list of Ranked
        Those that can be compared, with their scores, and after them those that were not loaded.
    others : list of Other
        Those that cannot be compared or loaded, or whose metric is not that of their scores.
    """
    load = partial(_loaded, client, chosen)
    kept: list[Ranked] = []
    others: list[Other] = []
    digest = None
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        loads = chain(pool.map(load, ranked[:limit]), map(load, ranked[limit:]))
        for place, found in enumerate(loads, start=1):
            if isinstance(found, Other):
                others.append(found)
                continue
            kept.append(found)
            if len(kept) >= limit:
                digest, kept, cut = _sharing(kept, digest)
                others += cut
                if len(kept) >= limit:
                    return [*kept, *ranked[place:]], others
    _, kept, cut = _sharing(kept, digest)
    return kept, others + cut


def _loaded(client: Any, chosen: Chosen, one: Ranked) -> Ranked | Other:
    """Return an evaluation with its scores, or why they cannot be loaded, or contradict the metric of the run."""
    try:
        evaluation = evaluation_of(client, one.entry.run, one.entry.content.role)
    except InvalidInput as error:
        return _other(one, str(error))
    own = {key: evaluation.aggregate()[label] for label, key in keys_of(evaluation).items()}.get(chosen.key)
    if own is None:
        return _other(one, f"its metric {chosen.key} is {one.value:.6g}, but its evaluation has none")
    if not math.isclose(own, one.value, rel_tol=_SAME):
        return _other(
            one, f"its metric {chosen.key} is {one.value:.6g}, and its evaluation {own:.6g}: another was logged later"
        )
    return replace(one, evaluation=evaluation)


def _sharing(kept: Sequence[Ranked], digest: str | None) -> tuple[str | None, list[Ranked], list[Other]]:
    """Return the judgments that count, the evaluations that share them, and the others with the reason."""
    digests = [_evaluation(one).judgments_digest for one in kept]
    if not digests:
        return digest, [], []
    digest = digest or Counter(digests).most_common(1)[0][0]
    same = [one for one, mine in zip(kept, digests, strict=True) if mine == digest]
    cut = [
        _other(one, f"other queries or judgments ({_evaluation(one).n_queries} queries) of the same data")
        for one, mine in zip(kept, digests, strict=True)
        if mine != digest
    ]
    return digest, same, cut


def scores_by(one: Ranked, chosen: Chosen) -> Any:
    """Return the scores of an evaluation by query as a frame with one column, named as the measure."""
    evaluation = _evaluation(one)
    label = next(label for label, key in keys_of(evaluation).items() if key == chosen.key)
    return evaluation.per_query[[label]].set_axis([chosen.name], axis="columns")


def _evaluation(one: Ranked) -> Evaluation:
    if one.evaluation is None:
        raise TypeError(f"the scores of {one.entry.run_id} were not loaded")
    return one.evaluation


def _other(one: Ranked, reason: str) -> Other:
    return Other(one.entry.run_id, one.entry.system, reason)


def _key(name: str) -> str:
    """Return the metric of a measure in any spelling; the name itself if it is none of ours."""
    from rankeval.measures import measure

    try:
        return measure(name).key
    except RankevalError:
        return name


def _name(key: str) -> str:
    """Return the name of a measure by its metric; the metric's if it is a measure of the user's own."""
    from rankeval.measures import measure_from_key

    try:
        return str(measure_from_key(key))
    except RankevalError:
        return key
