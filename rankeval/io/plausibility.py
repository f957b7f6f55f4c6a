"""Whether the columns of a table without a header can be what they are read as.

::

    q1 0 d7 2              query, iteration, document, grade: judgments of TREC, read by `trec`
    q1 d7 2 0              query, document, grade, iteration: ir_datasets
    q1 d7 0 2              query, document, iteration, grade
    q1 d7 0 0              query, relevant document: SMART
    196 242 3 881250949    user, item, rating, time: MovieLens, RecBole; or time, rating
    q1 d7 1 9.5            query, document, rank, score: a run
    q1 d7 9.5 1            query, document, score, rank: a run
    q1 Q0 d7 9.5           query, Q0, document, score: a run

Each of these is a row of four columns that ends in a number, so each is read, and its values are 0
or meaningless. The iteration tells: judgments repeat it, but a document stands once in a query. So
a file is doubted if its second column tells the rows of each query apart, or if its last is a time
or a score. The trap is a small collection whose documents are numbers, or judges and subtopics in
the second column. Hence the third column must look like grades, ranks or scores too; and no file is
doubted whose format the caller names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.io.opening import NUMBER

# Days such as 20240131, and seconds or milliseconds since 1970, are greater; ratings are not.
_TIME = 1e7
_GRADES = -10, 100  # the range of grades that a document of this name may be
_ITERATION = re.compile(r"(?i)[a-z]{0,4}[0-9]{0,2}(\.[0-9]+)?")
_LISTED = "qid docid 0 0"  # of SMART: each document that is listed is relevant
_FILLED = {"iter": "0", "Q0": '"Q0"', "rank": "0", "tag": '"run"'}  # columns that nothing reads
_REPEATED = 0.02  # of the rows may repeat a document, by mistake


class Reading(NamedTuple):
    """The columns that rows seem to have, in words, and the reason."""

    columns: str
    why: str

    def reordered(self, fields: Sequence[str]) -> str:
        """Say how to write the columns in the order of these fields."""
        names = enumerate(self.columns.split(), start=1)
        places = _FILLED | {name: f"${place}" for place, name in names}
        if self.columns == _LISTED:
            places["relevance"] = "1"
        if not places.keys() >= {*fields}:
            return "give the judgments here, and the ranking as the run"
        columns = ", ".join(places[name] for name in fields)
        order = f"write them in order, awk '{{print {columns}}}'"
        if "relevance" not in fields or "time" in places:
            return order
        ways = f"{order}, or say format='ndeval' (-R ndeval) if column 2 is a judge or a subtopic"
        if self.columns != "qid docid relevance iter":
            return ways
        return f"{ways}, or format='ir_datasets' (-R ir_datasets) if they are its export"


def is_doubtful(rows: Sequence[Sequence[str]]) -> bool:
    """Say whether rows of four cells need a second look; judgments of the usual form do not."""
    if not rows:
        return False
    return rows[0][1] == "Q0" or _tells_apart(rows) or _are_times([row[3] for row in rows])


def reading_of_four(rows: Sequence[Sequence[str]]) -> Reading | None:
    """Return the columns that rows of four cells seem to have instead of those of `trec.QRELS`."""
    queries, seconds, thirds, fourths = zip(*rows, strict=True)
    if not _are_numbers(fourths):
        return None
    # Documents are not all called 0, as we and trec_eval write the iteration.
    if _are_times(fourths) and _are_grades(thirds) and {*seconds} != {"0"}:
        why = f"column 4 has times or dates, such as {fourths[0]}"
        return Reading("qid docid relevance time", why)
    last = [*map(float, fourths)]
    if {*seconds} == {"Q0"} and all(value % 1 for value in last) and _falls(queries, last):
        why = "column 2 is 'Q0', and column 4 falls within each query, with fractions"
        return Reading("qid Q0 docid score", why)
    if not _tells_apart(rows):
        return None
    apart = "column 2 differs between the rows of each query, and column 3"
    if len({*thirds}) == 1 and thirds[0].upper() in ("0", "Q0") and len({*fourths}) > 1:
        return Reading("qid docid iter relevance", f"{apart} is {thirds[0]!r} in all rows")
    if not _are_numbers(thirds):
        return None
    if _are_times(thirds) and _are_grades(fourths):
        return Reading(
            "qid docid time relevance", f"{apart} has times or dates, such as {thirds[0]}"
        )
    middle = [*map(float, thirds)]
    if _are_ranks(queries, middle) and _descends(queries, middle, last):
        why = f"{apart} counts from {min(middle):.0f} in each query"
        return Reading("qid docid rank score", why)
    has_fractions = any(value % 1 for value in middle)
    if has_fractions and _are_ranks(queries, last) and _descends(queries, last, middle):
        why = f"column 4 counts from {min(last):.0f} in each query"
        return Reading("qid docid score rank", why)
    if not any(middle) and not any(last):
        return Reading(_LISTED, f"{apart} is 0 in all rows, as column 4 is")
    n_levels, n_documents = len({*middle}), len({*seconds})
    if n_documents > n_levels:
        fits = len({*last}) == 1 or n_documents >= 3 * n_levels
    else:
        fits = n_documents == n_levels and not any(last)
    # No iteration, judge or subtopic comes once in a file.
    stand_once = len(rows) > 2 and n_documents == len(rows)
    if (fits or stand_once) and _are_grades(thirds):
        values = ", ".join(sorted({*thirds}, key=float)[:5])
        why = f"{apart} has {n_levels} values in {len(rows)} rows ({values})"
        return Reading("qid docid relevance iter", why)
    return None


def may_be_swapped(rows: Sequence[Sequence[str]]) -> bool:
    """Say whether the second of four columns may be the document, and the third its grade."""
    _, _, thirds, fourths = zip(*rows, strict=True)
    return _tells_apart(rows) and _are_grades(thirds) and _are_numbers(fourths)


def reading_of_six(rows: Sequence[Sequence[str]]) -> Reading | None:
    """Return the columns that rows of a run, of six cells or five without a tag, seem to have."""
    queries, seconds, thirds, fourths, fifths = [*zip(*rows, strict=True)][:5]
    if {third.upper() for third in thirds} == {"Q0"} != {second.upper() for second in seconds}:
        return Reading("qid docid Q0 rank score tag", f"column 3 is {thirds[0]!r} in all rows")
    if not _are_numbers(fourths) or not _are_numbers(fifths):
        return None
    fourth, fifth = [*map(float, fourths)], [*map(float, fifths)]
    # From row to row: a run with gaps in its ranks may have the scores n, ..., 2, 1.
    counts_up = _are_ranks(queries, fifth) and _falls(queries, [-rank for rank in fifth])
    if counts_up and _falls(queries, fourth) and not _are_ranks(queries, fourth):
        why = f"column 5 counts from {min(fifth):.0f} in each query"
        return Reading("qid Q0 docid score rank tag", why)
    return None


def ranks_in_order(query: NDArray[Any], numbers: NDArray[np.float64]) -> bool | None:
    """Say whether a third column has ranks, or scores; None if it may have either.

    Files list the best first: ranks count up from 0 or 1 within each query, and scores fall
    somewhere. Numbers that rise otherwise may be ranks with gaps, or distances.
    """
    order = np.argsort(query, kind="stable")
    query, numbers = query[order], numbers[order]
    is_next = query[1:] == query[:-1]
    steps, starts = np.diff(numbers)[is_next], numbers[np.r_[True, ~is_next]]
    if (steps < 0).any():
        counts_only = (steps > 0).any() and _are_ranks(query.tolist(), numbers.tolist())
        return None if counts_only else False
    counts = (steps == 1).all() and {*starts.tolist()} in ({0.0}, {1.0})
    return True if counts and len(steps) else None


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(map(NUMBER.fullmatch, cells))


def _are_times(cells: Sequence[str]) -> bool:
    return _are_numbers(cells) and min(map(float, cells)) >= _TIME


def _are_grades(cells: Sequence[str]) -> bool:
    lowest, highest = _GRADES
    return _are_numbers(cells) and all(lowest <= float(cell) <= highest for cell in cells)


def _tells_apart(rows: Sequence[Sequence[str]]) -> bool:
    """Say whether the second column has another value in each row of a query."""
    seconds = {row[1] for row in rows}
    if len(seconds) == 1 and _ITERATION.fullmatch(rows[0][1]):
        return False
    return len({(row[0], row[1]) for row in rows}) >= len(rows) * (1 - _REPEATED)


def _are_ranks(queries: Sequence[str], values: Sequence[float]) -> bool:
    """Say whether values count from 0 or 1 within each query, in any order, and one has several."""
    start = min(values)
    lengths = Counter(queries)
    ranks = {*zip(queries, values, strict=True)}
    if start not in (0, 1) or not len(ranks) == len(values) > len(lengths):
        return False
    return all(value % 1 == 0 and value < lengths[query] + start for query, value in ranks)


def _descends(queries: Sequence[str], ranks: Sequence[float], scores: Sequence[float]) -> bool:
    """Say whether the scores of each query never rise from rank to rank, and are not all equal."""
    ordered = sorted(zip(queries, ranks, scores, strict=True))
    return _falls([row[0] for row in ordered], [row[2] for row in ordered])


def _falls(queries: Sequence[str], values: Sequence[float]) -> bool:
    """Say whether the values of each query never rise from row to row, and are not all equal."""
    rows = pairwise(zip(queries, values, strict=True))
    steps = [value - following for (query, value), (other, following) in rows if query == other]
    return bool(steps) and min(steps) >= 0 < max(steps)
