"""The ranks that systems may have, read from a comparison of all pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rankeval._registry import chosen
from rankeval.comparison.derived.query_scores import has_scores, held_scores
from rankeval.comparison.record import ComparisonRecord
from rankeval.errors import InvalidInput
from rankeval.measures import direction
from rankeval.significance.declarations import CORRECTIONS, Floats, Settings
from rankeval.significance.orders import competition_ranks, rank_ranges, shares_first

RANK_COLUMNS = ("measure", "system", "mean", "rank", "rank_low", "rank_high", "share_first")


def rank_table(record: ComparisonRecord) -> pd.DataFrame:
    """Return a row per measure and system with its rank and the range of ranks that is not ruled out.

    Parameters
    ----------
    record : ComparisonRecord
        A two-sided comparison of all pairs, corrected for any false claim.

    Returns
    -------
    DataFrame
        As `rankeval.Comparison.ranks` describes it.

    Raises
    ------
    InvalidInput
        A comparison that says nothing on all pairs at once; the message has the reason.
    """
    _refuse_other_comparisons(record)
    leading = list(record.table.columns[: record.table.columns.get_loc("measure")])  # a collection or a slice
    scores = {} if leading else _scores(record)
    settings = Settings(n_resamples=record.n_resamples, rng=record.rng)
    table = record.table.assign(gain=record.gains, shown=record.shown)
    parts = []
    for _, rows in table.groupby([*leading, "measure"], sort=False):
        part = _ranks_of(rows, scores.get(rows["measure"].iloc[0]), settings)
        parts.append(part.assign(**rows[leading].iloc[0]))
    return pd.concat(parts, ignore_index=True)[[*leading, *RANK_COLUMNS]]


def _ranks_of(table: pd.DataFrame, scores: Floats | None, settings: Settings) -> pd.DataFrame:
    """Rank the systems of some rows: all pairs by one measure, over the same queries."""
    measure = str(table["measure"].iloc[0])
    means = pd.concat([table.set_index(role)[f"mean_{role}"] for role in ("baseline", "system")])
    means = means[~means.index.duplicated()]  # in the order in which the systems were given
    sign = direction(measure)
    low, high = rank_ranges(_shown_better(table, means.index))
    found = pd.DataFrame(
        {
            "measure": measure,
            "system": means.index,
            "mean": means.to_numpy(),
            "rank": competition_ranks(sign * means.to_numpy()),
            "rank_low": low,
            "rank_high": high,
            "share_first": np.nan if scores is None else shares_first(sign * scores, settings),
        }
    )
    return found.sort_values(["rank", "rank_low", "rank_high"], kind="stable")


def _shown_better(table: pd.DataFrame, systems: pd.Index[str]) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return a matrix: True at [i, j] if the mean of i was shown to be better than that of j."""
    better = np.zeros((len(systems), len(systems)), dtype=np.bool_)
    first, second = (systems.get_indexer(pd.Index(table[role])) for role in ("baseline", "system"))
    up, down = (table["shown"] & (sign * table["gain"] > 0) for sign in (1, -1))
    better[second[up], first[up]] = True
    better[first[down], second[down]] = True
    return better


def _scores(record: ComparisonRecord) -> dict[str, Floats]:
    """Return the scores by query of each measure; empty if the comparison holds none, or is one of folds."""
    if not has_scores(record):
        return {}
    measures = record.table["measure"].unique().tolist()
    shared = held_scores(record, measures)
    return {measure: shared.scores[:, :, place] for place, measure in enumerate(shared.measures)}


def _refuse_other_comparisons(record: ComparisonRecord) -> None:
    if record.baseline is not None:
        raise InvalidInput(
            f"ranks follow from all pairs, and these are comparisons with {record.baseline!r} only: they say nothing "
            "on how the others rank among each other. Compare without baseline=, or call rankeval.rank_intervals"
        )
    if record.alternative != "two-sided" or record.claim != "difference":
        raise InvalidInput(
            f"ranks need both directions of each pair, found claim={record.claim!r} and "
            f'alternative={record.alternative!r}; compare with claim="difference" and alternative="two-sided"'
        )
    correction = CORRECTIONS[chosen("correction", record.correction, CORRECTIONS)]
    if not correction.familywise:
        able = ", ".join(repr(name) for name, one in CORRECTIONS.items() if one.familywise)
        raise InvalidInput(
            f"ranks hold for all systems at once only if the chance of any false claim is controlled, and "
            f"{record.correction!r} does not; compare with correction= one of {able}"
        )
    if record.table["p_adjusted"].isna().all():
        raise InvalidInput(
            "ranks follow from adjusted p-values, and this comparison has none: a note of it says why",
            remedy="compare on queries that were not looked at before",
        )
