"""Assert that two evaluations are the same: queries, measures, conventions, and scores within a tolerance."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rankeval._checks import check_number, count, few, shown
from rankeval.comparison.inputs import Scores, per_query_frame
from rankeval.errors import CheckFailed, InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.testing.check import CHECKS
from rankeval.testing.scores import N_WORST, Given, query_table, scores_of


def assert_evaluations_equal(candidate: Given, baseline: Given, *, atol: float = 1e-9) -> None:
    """Fail if any query's score differs, or if queries, measures or conventions do.

    For changes that should not change a number: a refactoring, a faster index, another version of a library.

    Parameters
    ----------
    candidate, baseline : Evaluation, DataFrame or path
        The evaluations, in any order of rows and measures: evaluations, frames (index of query ids, a column per
        measure), or paths of saved evaluations. Frames have no conventions to compare.
    atol : float, default 1e-9
        The greatest difference of two scores that are taken for equal, 0 or more.

    Raises
    ------
    CheckFailed
        If they differ. It is an AssertionError, and its message names every kind of difference; for scores it counts
        them, names the first query and measure, and has a table of the greatest differences.
    InvalidInput
        If a side is neither of these, or ``atol`` is no such number.

    Examples
    --------
    >>> import pandas as pd
    >>> old = pd.DataFrame({"AP": [0.5, 0.6]}, index=["q1", "q2"])
    >>> assert_evaluations_equal(old + 1e-12, old)
    >>> assert_evaluations_equal(old.assign(AP=[0.5, 0.7]), old)
    Traceback (most recent call last):
    rankeval.errors.CheckFailed: 1 of 2 scores differs by more than 1e-09, first AP of query 'q2': 0.7, was 0.6...
    """
    __tracebackhide__ = True
    check_number("atol", atol)
    if atol < 0:
        raise InvalidInput(f"atol is {atol}; expected the greatest difference that counts as equal, 0 or more")
    one, other = scores_of(candidate), scores_of(baseline)
    new, old = per_query_frame(one), per_query_frame(other)
    reasons = [*_structure(new, old), *_rules(one, other)]
    differing = "" if reasons else _scores(new, old.loc[new.index, list(new.columns)], atol)
    _record(new, old, bool(reasons or differing))
    if reasons:
        raise CheckFailed(f"the evaluations differ: {'; '.join(reasons)}")
    if differing:
        raise CheckFailed(differing)


def _structure(new: pd.DataFrame, old: pd.DataFrame) -> list[str]:
    """Return a sentence on each kind of queries or measures that only one side has."""
    reasons = []
    for things, one, other in (("measure", new.columns, old.columns), ("query", new.index, old.index)):
        for side, labels, others in (("candidate", one, other), ("baseline", other, one)):
            if not labels.is_unique:
                again = labels[labels.duplicated()].tolist()[0]
                raise InvalidInput(f"the {side} has the {things} {shown(again)} more than once")
            if extra := labels.difference(others, sort=False).tolist():
                reasons.append(f"only the {side} has {count(len(extra), things)} ({few(extra)})")
    return reasons


def _rules(one: Scores, other: Scores) -> list[str]:
    """Return a sentence for each rule, set of judgments or weights in which two evaluations differ."""
    if not (isinstance(one, Evaluation) and isinstance(other, Evaluation)):
        return []
    reasons = one.differs_from(other)
    ours, theirs = (each.weights for each in (one, other))
    if (ours is None) != (theirs is None) or (ours is not None and not np.array_equal(ours, np.asarray(theirs))):
        reasons.append("the weights of the queries differ")
    return reasons


def _scores(new: pd.DataFrame, old: pd.DataFrame, atol: float) -> str:
    """Say how many scores differ, which is the first, and which differ most; nothing if all are equal."""
    ours, theirs = (frame.to_numpy(dtype=np.float64) for frame in (new, old))
    apart = ~np.isclose(ours, theirs, rtol=0, atol=atol, equal_nan=True)
    if not apart.any():
        return ""
    rows, columns = np.nonzero(apart)
    first, label = new.index[rows[:1]].tolist()[0], new.columns[columns[0]]
    n, total = len(rows), apart.size
    said = (
        f"{n:,} of {count(total, 'score')} differ{'s' if n == 1 else ''} by more than {atol:g}, first {label} of query "
        f"{shown(first)}: {ours[rows[0], columns[0]]:g}, was {theirs[rows[0], columns[0]]:g}"
    )
    table = pd.DataFrame(
        {
            "qid": new.index[rows],
            "measure": new.columns[columns],
            "baseline": theirs[apart],
            "candidate": ours[apart],
            "difference": ours[apart] - theirs[apart],
        }
    )
    greatest = np.argsort(-table["difference"].abs().to_numpy(), kind="stable")[:N_WORST]
    return f"{said}\n\n{query_table(table.iloc[greatest], 'the greatest differences:')}"


def _record(new: pd.DataFrame, old: pd.DataFrame, differ: bool) -> None:
    shared = ", ".join(str(label) for label in new.columns if label in old.columns)
    verdict = "differs from the baseline" if differ else "equal to the baseline"
    CHECKS.append({"measure": shared, "queries": f"{len(new):,}", "gain": "", "interval": "", "verdict": verdict})
