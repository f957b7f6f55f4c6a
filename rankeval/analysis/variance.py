"""Analysis of variance of the scores of systems: by query, by system, by replicate, by pairs of these, and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from rankeval._arguments import explained
from rankeval._checks import count, few, refuse
from rankeval._visible import escaping
from rankeval.comparison.inputs import (
    Cells,
    Scores,
    cell_scores,
    check_number_of_systems,
    fold_notes,
    per_query_frame,
)
from rankeval.comparison.tables import WithTable
from rankeval.evaluation.by_query import labels_of
from rankeval.measures import Measure
from rankeval.render.tables import Table, number, p_value
from rankeval.significance.anova import TwoWay, VarianceSource, p_of_f, sphericity, two_way
from rankeval.significance.columns import pair_scores
from rankeval.significance.declarations import Floats

NOT_INTERCHANGEABLE = 0.01
"""Chance of so small an F of query x system, below which nested replicates get a note."""

_TWO_DIGITS = ("F", "partial η²", "partial ω²", "share")

Replicated = Mapping[str, Scores | Mapping[Any, Scores]]


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Anova(WithTable):
    """An analysis of variance of the scores of systems, with notes for the reader.

    Attributes
    ----------
    table : DataFrame
        A row per source: query, system, error; with replicates also query x system; if they are
        crossed, also replicate, query x replicate and system x replicate. Columns: source, df,
        sum_sq, mean_sq, F, p_value, against (the source whose mean square F divides by),
        eta_squared and omega_squared (partial: the share of the source in the sum of its own and of
        ``against``; eta squared of sums of squares, which is too large on few queries, omega
        squared of estimated variances). Nan where there is no F.
    components : DataFrame
        A row per source: source, variance (estimated; a negative estimate is set to 0, and a note
        says so), share (of their sum). For systems and replicates, which are those given, it is the
        variance of their means around the mean of all.
    measure : str
        The measure of the scores.
    systems : tuple of str
        The systems.
    n_queries, n_replicates : int
        Their numbers.
    queries : {"random", "fixed"}
        Whether the claims are about queries like these, or about these only.
    replicates : {"crossed", "nested"}
        Whether replicates are a source of their own, or error.
    epsilon : float
        Greenhouse-Geisser's: 1 if the differences of all pairs of systems vary alike, as the F of
        system assumes; at least 1 / (n_systems - 1). Nan if no difference varies.
    p_corrected : float
        The p-value of system with degrees of freedom times epsilon. With nine near-identical
        variants beside one unlike system and 25 queries, ``p_value`` was at most .05 in 18 % of
        5,000 draws of equal systems, this one in 5 %. Nan if everything is tested against error,
        where epsilon has no part.
    notes : tuple of str
        Sentences that a reader of the numbers must see.

    Examples
    --------
    >>> import pandas as pd
    >>> import rankeval as rk
    >>> bm25 = pd.DataFrame({"AP": [0.1, 0.2, 0.3]}, index=["q1", "q2", "q3"])
    >>> ltr = pd.DataFrame({"AP": [0.3, 0.4, 0.8]}, index=["q1", "q2", "q3"])
    >>> table = rk.analysis.anova({"bm25": bm25, "ltr": ltr}).table[["source", "df", "F"]]
    >>> print(table.round(2).to_string(index=False))
    source  df    F
     query   2 4.33
    system   1 9.00
     error   2  NaN
    """

    table: pd.DataFrame
    components: pd.DataFrame
    measure: str
    systems: tuple[str, ...]
    n_queries: int
    n_replicates: int
    queries: str
    replicates: str
    epsilon: float
    p_corrected: float
    notes: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """What was analysed, in one line."""
        sizes = f"{count(self.n_queries, 'query')}, {count(len(self.systems), 'system')}"
        if self.n_replicates > 1:
            sizes += f", {self.n_replicates} {self.replicates} replicates; queries {self.queries}"
        return f"Analysis of variance of {self.measure}: {sizes}"

    def _laid_out(self) -> Table:
        names = {
            "sum_sq": "sum of squares",
            "mean_sq": "mean square",
            "p_value": "p",
            "against": "tested against",
        }
        names |= {"eta_squared": "partial η²", "omega_squared": "partial ω²"}
        shown = self.table.rename(columns=names)
        for name in ("variance", "share"):
            shown[name] = self.components[name].to_numpy()
        formats: dict[str, Any] = dict.fromkeys(_TWO_DIGITS, partial(number, digits=2))
        formats["p"] = p_value
        return Table(shown, formats, caption=self.caption, notes=self.notes)


@explained
def anova(
    systems: Replicated,
    *,
    measure: str | Measure | None = None,
    queries: str = "random",
    replicates: str = "crossed",
    unpaired: str = "error",
) -> Anova:
    """Analyse the variance of scores by query and system, and by replicate if scores are replicated.

    The F of system asks whether any two systems differ; `rankeval.compare` says which. The
    components say how much of the variance is due to queries, which only more queries reduce, and
    how much to systems.

    Parameters
    ----------
    systems : mapping of str to Evaluation or DataFrame, or to a mapping of these
        Name -> scores, as in `rankeval.compare`; or name -> {replicate: scores}. Replicates are
        shards of the collection, seeds, or repeats of a cross-validation, each with the scores of
        all queries, and have the same names in all systems.
    measure : str or Measure, optional
        The measure to analyse. It may be left out if the systems share one only.
    queries : {"random", "fixed"}, default "random"
        "random": with replicates, system is tested against query x system, since the mean
        difference of two systems varies with the queries drawn, and replicate against query x
        replicate. "fixed": everything is tested against error, as many studies of TREC runs do.
        This speaks of these queries only. Without replicates both are the same.
    replicates : {"crossed", "nested"}, default "crossed"
        "crossed": a replicate is the same shard, or the same folds, for all systems. Then
        replicate, query x replicate and system x replicate are sources of their own, and error is
        what is left. "nested": replicates are interchangeable, as seeds are that systems do not
        share, and whatever differs between them is error. F of system is the same in both, unless
        queries are fixed.
    unpaired : {"error", "skip"}, default "error"
        If some scores lack a query, "error" refuses and "skip" analyses the queries common to all.

    Returns
    -------
    Anova
        For two systems without replicates, F is the square of the paired t. Neither test speaks of
        seeds, shards or folds other than these: a system that was lucky with its seeds is better on
        all queries.

    Raises
    ------
    InvalidInput
        If there are fewer than two systems or queries, systems have different replicates, a score
        is not finite, or the measure is left open.
    ConventionMismatch
        If the conventions of evaluations differ, or the judgments within a replicate.
    QueryIdError
        If query ids are repeated, missing, or not the same everywhere.
    UnknownName
        If there is no such measure or value of ``queries`` or ``replicates``.

    References
    ----------
    Nested: Voorhees, Samarov and Soboroff, Using replicates in information retrieval evaluation, TOIS 36, 2 (2017).
    Crossed: Ferro, Kim and Sanderson, Using collection shards to study retrieval performance effect sizes, TOIS 37, 3
    (2019); Faggioli and Ferro, System effect estimation by sharding: a comparison between ANOVA approaches to detect
    significant differences, ECIR 2021.

    Examples
    --------
    >>> import pandas as pd
    >>> bm25 = {"shard 1": pd.DataFrame({"AP": [0.1, 0.5]}), "shard 2": pd.DataFrame({"AP": [0.3, 0.5]})}
    >>> ltr = {"shard 1": pd.DataFrame({"AP": [0.3, 0.9]}), "shard 2": pd.DataFrame({"AP": [0.5, 0.9]})}
    >>> found = anova({"bm25": bm25, "ltr": ltr})
    >>> print(found.components[["source", "variance"]].round(3).to_string(index=False))
                source  variance
                 query      0.07
                system      0.04
             replicate      0.00
        query x system      0.01
     query x replicate      0.01
    system x replicate      0.00
                 error      0.00
    """
    by_replicate = _by_replicate(systems)
    names, keys = list(by_replicate), list(next(iter(by_replicate.values())))
    cells = cell_scores(by_replicate, ", replicate ")
    frames = {name: per_query_frame(scores) for name, scores in cells.items()}
    label = _label(measure, frames)
    paired = pair_scores(frames, [label], unpaired=unpaired)
    block = paired.scores.reshape(len(paired.queries), len(names), len(keys))
    analysed = two_way(block, queries=queries, replicates=replicates)
    epsilon = sphericity(block)
    rows = {row.source: row for row in analysed.sources}
    system, corrected = rows["system"], np.nan
    if "query x system" not in rows or system.against != "error":
        corrected = p_of_f(system.F, system.df * epsilon, rows[system.against].df * epsilon)
    notes = _design_notes(rows, block, queries, replicates)
    notes += _value_notes(analysed, system, epsilon, corrected)
    if left_out := paired.n_left_out:
        notes.append(f"queries that some scores lack were left out: {left_out}")
    notes += fold_notes(cells)
    table = pd.DataFrame([asdict(row) for row in analysed.sources])
    return Anova(
        table=table,
        components=_components(analysed),
        measure=label,
        systems=tuple(names),
        n_queries=len(block),
        n_replicates=len(keys),
        queries=queries,
        replicates=replicates,
        epsilon=epsilon,
        p_corrected=corrected,
        notes=tuple(notes),
    )


def _by_replicate(systems: Replicated) -> Cells:
    check_number_of_systems(systems)
    by_replicate: Cells = {}
    for name, scores in systems.items():
        # mypy does not narrow what `_are_replicates` finds out.
        is_replicated = isinstance(scores, Mapping) and _are_replicates(scores)
        by_replicate[str(name)] = dict(scores) if is_replicated else {None: scores}  # type: ignore[arg-type,dict-item]
    (first, expected), *others = by_replicate.items()
    known = _replicate_names(expected)
    for name, own in others:
        lacking = _replicate_names(own)
        uneven = f"the design is not balanced: {first!r} has the replicates {known}, {name!r} has {lacking}"
        remedy = "keep those that all systems have, or give the mean of each system's replicates"
        refuse((set(own) != set(expected), uneven, remedy))
    return {name: {key: own[key] for key in expected} for name, own in by_replicate.items()}


def _replicate_names(scores: Mapping[Any, Scores]) -> str:
    return few([name for name in scores if name is not None]) or "none"


def _are_replicates(scores: Any) -> bool:
    """Say whether a system's scores are by replicate; {qid: {measure: score}} is not."""
    if not isinstance(scores, Mapping) or not scores:
        return False
    first = next(iter(scores.values()))
    if not isinstance(first, Mapping):
        return True
    return any(isinstance(row, Mapping) for row in first.values())


def _label(wanted: str | Measure | None, frames: Mapping[str, pd.DataFrame]) -> str:
    first, *others = frames.values()
    shared = [str(name) for name in first if all(name in other for other in others)]
    refuse((not shared, "the systems share no measure"))
    labels = shared if wanted is None else labels_of(wanted, shared)
    several = f"measure is left open: the scores have {', '.join(labels)}; name one, measure={labels[0]!r}"
    refuse((len(labels) > 1, several))
    return labels[0]


def _components(analysed: TwoWay) -> pd.DataFrame:
    variance = {name: max(value, 0.0) for name, value in analysed.components.items()}
    total = sum(variance.values())
    shares = [value / total if total > 0 else np.nan for value in variance.values()]
    columns = {"source": list(variance), "variance": list(variance.values()), "share": shares}
    return pd.DataFrame(columns)


def _design_notes(
    rows: Mapping[str, VarianceSource], block: Floats, queries: str, replicates: str
) -> list[str]:
    if block.shape[2] == 1:
        return [
            "one score for each query and system, so query x system is part of the error; replicates separate them"
        ]
    rivals = "query and system are tested against query x system"
    if replicates == "crossed":
        rivals = (
            "system is tested against query x system, replicate against query x replicate, query "
            "against nothing, since no mean square is its rival"
        )
    remedy = 'queries="fixed" tests against error, for claims about these queries'
    notes = [f"{rivals}: the claims are about queries like these; {remedy}"]
    if queries == "fixed":
        notes = [
            f"all is tested against error: the claims are about these {count(len(block), 'query')} only"
        ]
    both = rows["query x system"]
    # Interchangeable scores of a cell differ by chance alone, which gives so small an F once in a
    # hundred cases.
    chance = stats.f.cdf(both.F, both.df, rows["error"].df)
    if replicates == "nested" and chance < NOT_INTERCHANGEABLE:
        notes.append(
            f"the replicates are not interchangeable: query x system has an F of {both.F:.2f}, which is too small; if "
            'all systems share them, as they share shards, take replicates="crossed"'
        )
    return notes


def _value_notes(
    analysed: TwoWay, system: VarianceSource, epsilon: float, corrected: float
) -> list[str]:
    notes = [
        f"the estimated variance of {name} is negative ({value:.2g}) and set to 0"
        for name, value in analysed.components.items()
        if value < 0
    ]
    if np.isnan(system.F):
        notes.append(f"no F is given against a mean square of 0, that of {system.against}")
    elif system.df > 1 and not np.isnan(corrected):
        notes.append(
            "the F of system assumes that the differences of all pairs of systems vary alike; corrected for how they "
            f"do vary (Greenhouse-Geisser epsilon {epsilon:.2f}), its p is {p_value(corrected)}"
        )
    return notes
