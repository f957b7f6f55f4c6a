"""What is wrong with a fit: the checks of `fit_checks`, made and put into one table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import check_alpha, check_number, count
from rankeval._visible import escaping
from rankeval.comparison.tables import WithTable
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.evaluation.by_query import labels_of
from rankeval.model_selection.fit_checks import CHECKS, Fit
from rankeval.render.tables import Format, Table, number, p_value

FOUND, CLEAN, NOT_MADE = OUTCOMES = ("found", "nothing found", "not made")
"""The outcomes of a check."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(WithTable):
    """What the checks of a fit found, what they did not find, and which could not be made.

    Attributes
    ----------
    table : DataFrame
        A row for each finding, and one for each check without any. Columns: check, its name;
        outcome, "found", "nothing found" or "not made"; figure; p_value of the test that decides,
        nan if none does; seen, what was seen, or why the check could not be made; remedy, what to
        do, empty if nothing was found.
    measure : str
        The measure of the scores.
    alpha : float
        The level of each check that is a test.
    n_queries : int
        The number of held-out queries.
    notes : tuple of str
        Sentences that a reader of the table must see.

    Examples
    --------
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> cv = rk.cross_validate(Ridge(), rk.datasets.make_ranking(60, rng=0), measures="nDCG@10")
    >>> found = cv.diagnose()
    >>> found.findings
    ()
    >>> found.table["outcome"].value_counts().to_dict()
    {'nothing found': 4, 'not made': 3}
    """

    table: pd.DataFrame
    measure: str
    alpha: float
    n_queries: int
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[str, ...]:
        """What was found and what to do, a sentence for each finding; empty if nothing was found."""
        found = self.table[self.table["outcome"] == FOUND]
        return tuple(found["check"] + ": " + found["seen"] + "; " + found["remedy"])

    @property
    def caption(self) -> str:
        """The numbers of rows by outcome in one line."""
        outcomes = list(self.table["outcome"])
        said = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in OUTCOMES)
        return f"Checks of the fit: {said}; {self.measure}, {count(self.n_queries, 'query')}"

    def _laid_out(self) -> Table:
        formats: dict[str, Format] = {"figure": partial(number, digits=3), "p_value": p_value}
        return Table(self.table, formats, caption=self.caption, notes=self.notes)


def diagnose(
    cv: Any, *, measure: Any, serving: Any, difference: float | None, alpha: float
) -> Diagnosis:
    """Make all checks of a cross-validation; `CrossValidation.diagnose` documents the arguments."""
    check_alpha(alpha)
    if difference is not None:
        check_number("difference", difference)
    names = list(cv.evaluation.measure_names)
    label = names[0] if measure is None else labels_of(measure, names)[0]
    data = cv.inputs.task.data
    ContaminationCheck.current().refuse(
        data.X, data.y, data.qid, docid=data.docid, action="diagnose"
    )
    fit = Fit(cv, cv.inputs, label, serving, difference, alpha)
    rows = [row for name in CHECKS for row in _rows(name, fit)]
    weights = "each query counts once here, whatever its weight in the means"
    notes = () if cv.evaluation.weights is None else (weights,)
    return Diagnosis(pd.DataFrame(rows), label, alpha, cv.evaluation.n_queries, notes)


def _rows(name: str, fit: Fit) -> Iterator[dict[str, Any]]:
    check = CHECKS[name]
    has_scores = fit.cv.evaluation.n_queries > 1
    observed = check.find(fit) if has_scores else "there are fewer than two queries"
    row = {
        "check": name,
        "outcome": NOT_MADE,
        "figure": np.nan,
        "p_value": np.nan,
        "seen": "",
        "remedy": "",
    }
    if isinstance(observed, str):
        yield row | {"seen": observed}
        return
    found = [seen for seen in observed if seen.found]
    for seen in found or observed[:1]:
        facts = {"measure": fit.label, "figure": seen.figure, **seen.facts}
        row |= {"figure": seen.figure, "p_value": seen.p_value, "seen": check.seen.format(**facts)}
        outcome, remedy = (FOUND, check.remedy) if seen.found else (CLEAN, "")
        yield row | {"outcome": outcome, "remedy": remedy}
