"""What follows from a comparison when it is asked for: the best system, effects and posteriors, ranks.

These read the scores query by query from the evaluations that a comparison holds, paired as it
paired them. After `Comparison.from_json` it holds none, and then they refuse, or return what was
kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from rankeval._checks import refuse
from rankeval._registry import chosen
from rankeval.comparison.inputs import Scores, SharedScores, shared_scores
from rankeval.comparison.record import Choice, ComparisonRecord, gains, kept, known_means, overall
from rankeval.errors import InvalidInput
from rankeval.significance.columns import differences
from rankeval.significance.declarations import CORRECTIONS, FOLD_TESTS, Floats, Rng, seed_of
from rankeval.significance.effects import (
    cliffs_delta,
    correlated_t,
    effect_interval,
    hedges_g,
    signed_rank,
    standardised_effect,
    superiority,
)
from rankeval.significance.multiple import value_of_choice
from rankeval.significance.orders import competition_ranks, rank_ranges, shares_first
from rankeval.significance.weighted import relative

METHODS = ("t", "signed_rank")
RANK_COLUMNS = ("measure", "system", "mean", "rank", "rank_low", "rank_high", "share_first")


def has_scores(record: ComparisonRecord) -> bool:
    """Tell whether systems were compared, and the scores of every one are here, query by query."""
    settings = record.settings
    is_special = settings.test in FOLD_TESTS or bool(settings.collection_weights)
    return not record.table.empty and not is_special and _holds(record)


def _holds(record: ComparisonRecord) -> bool:
    """Tell whether the scores of all systems are here, and the groups that were tested."""
    names = {*record.table["system"], *record.table["baseline"]}
    is_whole = not record.settings.member or kept(record).groups is not None
    return is_whole and names <= set(record.evaluations)


def held_scores(record: ComparisonRecord, measures: Sequence[str]) -> SharedScores:
    """Return the scores of a comparison query by query, paired as it paired them."""
    settings = record.settings
    several = f"this is computed from the {settings.units} of one collection, and the comparison is over several"
    remedy = "compare the systems on one of them, {system: parts[collection] for system, parts in evaluations.items()}"
    alone = "this is computed from differences, and the comparison has one system: compare two"
    lost = (
        f"the scores of every {settings.unit} are needed, and this comparison was read from a file "
        "or lost its evaluations"
    )
    again = "compare the evaluations again"
    refuse(
        (settings.collection_weights, f"{several}: {remedy}"),
        (record.table.empty, alone),
        (not _holds(record), lost, again),
    )
    # unpaired="skip" compared the common queries only; else all systems have the same ones.
    evaluations = cast("Mapping[str, Scores]", record.evaluations)
    return shared_scores(
        evaluations, list(measures), unpaired="skip", unit=settings.row, weighted=True
    )


def tested_scores(record: ComparisonRecord, measures: Sequence[str]) -> SharedScores:
    """Return the scores that were tested: those of `held_scores`, or the means of groups."""
    shared, groups = held_scores(record, measures), kept(record).groups
    if groups is None:
        return shared
    scores, weights, _ = groups.apart(shared.scores, {}, shared.weights)
    return replace(shared, scores=scores, weights=weights)


def best_system(record: ComparisonRecord, measure: str) -> Choice:
    """Return the system with the best mean, and its value corrected for the choosing."""
    settings, choice = record.settings, kept(record).choice
    if record.table.empty:
        rows = {row["measure"]: row for row in known_means(record).to_dict("records")}
        row = rows[chosen("measure", measure, rows)]
        value, low, high = (float(row[name]) for name in ("mean", "ci_low", "ci_high"))
        name, level = str(row["system"]), settings.confidence_level
        return Choice(name, measure, None, value, low, high, 1, level)
    chosen("measure of the comparison", measure, record.table["measure"].tolist())
    if choice is not None and choice.measure == measure:
        return choice
    folds = f"the value of the best is estimated from {settings.units}, and this comparison is one of folds"
    refuse((settings.test in FOLD_TESTS, folds, 'compare with question="models"'))
    scores = tested_scores(record, [measure])
    columns = dict(zip(scores.systems, scores.scores[:, :, 0].T, strict=True))
    names = [name for name in columns if name != settings.baseline]
    values = np.column_stack([columns[name] for name in names])
    if settings.baseline is not None:
        values = differences(values, columns[settings.baseline][:, None])
    settings.must_know_directions([measure], "the best system has the better mean")
    sign = settings.direction(measure).sign
    best = value_of_choice(sign * values, settings.of_resampling, scores.weights)
    low, high = sorted((sign * best.ci_low, sign * best.ci_high))
    return Choice(
        names[best.leader],
        measure,
        settings.baseline,
        sign * best.estimate,
        low,
        high,
        len(names),
        settings.confidence_level,
        settings.lower_is_better.get(measure),
    )


class _RowScores(NamedTuple):
    """The scores behind a row, by query or by fold; gains are positive if the system is better."""

    names: dict[str, str]
    direction: float
    baseline: Floats
    system: Floats
    gains: Floats


def scores_by_row(record: ComparisonRecord) -> Iterator[_RowScores]:
    """Yield the scores behind each row, without those of slices."""
    table, folds = overall(record).table, kept(record).folds
    weighted = (
        f"effects and posteriors count every {record.settings.unit} once, and these are weighted"
    )
    refuse((record.settings.n_effective, weighted, "take effect_size of the table"))
    scores = folds or tested_scores(record, [str(name) for name in table["measure"].unique()])
    for row in table[["measure", "baseline", "system"]].to_dict("records"):
        sign = record.settings.direction(row["measure"]).sign or 1.0
        columns = np.asarray(scores.scores[:, :, scores.measures.index(row["measure"])])
        baseline = columns[:, scores.systems.index(row["baseline"])]
        system = columns[:, scores.systems.index(row["system"])]
        names = {str(name): value for name, value in row.items()}
        yield _RowScores(names, sign, baseline, system, sign * differences(system, baseline))


def effects_of(record: ComparisonRecord) -> pd.DataFrame:
    """Return the table of effects, as `rankeval.Comparison.effects` documents it."""
    level, rows = record.settings.confidence_level, []
    ratio = _ratio(record)
    for row in scores_by_row(record):
        interval = effect_interval(row.gains, confidence_level=level, ratio=ratio)
        delta = row.direction * cliffs_delta(row.system, row.baseline)
        effects = {
            "cohens_d": standardised_effect(row.gains),
            "d_low": interval.low,
            "d_high": interval.high,
            "hedges_g": hedges_g(row.gains),
            "cliffs_delta": delta + 0.0,  # no -0
            "superiority": superiority(row.gains),
        }
        rows.append(row.names | {name: float(effect) for name, effect in effects.items()})
    return pd.DataFrame(rows)


def posteriors_of(
    record: ComparisonRecord, rope: float, *, method: str, n_samples: int, rng: Rng
) -> pd.DataFrame:
    """Return the table of posterior probabilities, as `rankeval.Comparison.bayes` documents it."""
    settings, rows = record.settings, []
    by_ranks = chosen("method", method, METHODS) == "signed_rank"
    overlap = 'the signed rank test takes independent gains, and folds overlap: use method="t", the correlated t'
    problem = f'{overlap}, or compare the {settings.units} with question="models"'
    refuse((by_ranks and kept(record).folds, problem))
    measures = record.table["measure"].unique()
    settings.must_know_directions(measures, "a posterior is of worse and better")
    seed, ratio = seed_of(rng), _ratio(record)
    for row in scores_by_row(record):
        if by_ranks:
            posterior = signed_rank(row.gains, rope, n_samples=n_samples, rng=seed)
        else:
            posterior = correlated_t(row.gains, rope, ratio=ratio)
        names = ("worse", "equivalent", "better")
        rows.append(row.names | {f"p_{name}": float(getattr(posterior, name)) for name in names})
    return pd.DataFrame(rows)


def _ratio(record: ComparisonRecord) -> float:
    """Return the ratio of test to training queries; 0 for a comparison over queries."""
    folds = kept(record).folds
    return folds.ratio if folds else 0.0


def rank_table(record: ComparisonRecord) -> pd.DataFrame:
    """Return a row per measure and system with its rank and the range of ranks that is not ruled out.

    Takes a two-sided comparison of all pairs, corrected for any false claim; refuses any other.
    """
    settings = record.settings
    correction = CORRECTIONS[chosen("correction", settings.correction, CORRECTIONS)]
    able = ", ".join(repr(name) for name, known in CORRECTIONS.items() if known.familywise)
    needs = {
        "all pairs: compare without baseline=, or call rankeval.rank_intervals": settings.baseline
        is None,
        'both directions of each pair: compare with claim="difference"': settings.claim
        == "difference",
        f"control of the chance of any false claim: compare with correction= one of {able}": correction.familywise,
        "adjusted p-values: this comparison has none, and a note of it says why": (
            record.table["p_adjusted"].notna().any()
        ),
    }
    if lacking := [need for need, is_met in needs.items() if not is_met]:
        raise InvalidInput(f"ranks need {lacking[0]}")
    settings.must_know_directions(record.table["measure"].unique(), "ranks have a direction")
    leading = list(
        record.table.columns[: record.table.columns.get_loc("measure")]
    )  # a collection or a slice
    scores: dict[str, Floats] = {}
    if not leading and has_scores(record):
        shared = tested_scores(record, record.table["measure"].unique().tolist())
        shares = np.ones(1) if shared.weights is None else relative(shared.weights)
        weighed = shared.scores * shares[:, None, None]
        scores = {measure: weighed[:, :, place] for place, measure in enumerate(shared.measures)}
    table = record.table.assign(gain=gains(record), shown=record.shown)
    parts = []
    for _, rows in table.groupby([*leading, "measure"], sort=False):
        part = _ranks_of(rows, scores.get(rows["measure"].iloc[0]), record)
        parts.append(part.assign(**rows[leading].iloc[0]))
    ranks = pd.concat(parts, ignore_index=True)[[*leading, *RANK_COLUMNS]]
    ranks.attrs["caption"] = record.caption
    return ranks


def _ranks_of(table: pd.DataFrame, scores: Floats | None, record: ComparisonRecord) -> pd.DataFrame:
    measure = str(table["measure"].iloc[0])
    means = pd.concat([table.set_index(role)[f"mean_{role}"] for role in ("baseline", "system")])
    means = means[~means.index.duplicated()]  # in the order in which the systems were given
    sign = record.settings.direction(measure).sign
    low, high = rank_ranges(_shown_better(table, means.index))
    share: Any = np.nan
    if scores is not None:
        share = shares_first(sign * scores, record.settings.of_resampling)
    columns = {
        "measure": measure,
        "system": means.index,
        "mean": means.to_numpy(),
        "rank": competition_ranks(sign * means.to_numpy()),
        "rank_low": low,
        "rank_high": high,
        "share_first": share,
    }
    ranks = pd.DataFrame(columns)
    return ranks.sort_values(["rank", "rank_low", "rank_high"], kind="stable")


def _shown_better(
    table: pd.DataFrame, systems: pd.Index[str]
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return a matrix: True at [i, j] if the mean of i was shown to be better than that of j."""
    better = np.zeros((len(systems), len(systems)), dtype=np.bool_)
    first, second = (systems.get_indexer(pd.Index(table[role])) for role in ("baseline", "system"))
    up, down = (table["shown"] & (sign * table["gain"] > 0) for sign in (1, -1))
    better[second[up], first[up]] = True
    better[first[down], second[down]] = True
    return better
