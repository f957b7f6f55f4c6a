"""Checks of a fit that was cross-validated: how one is declared, and ours, the entries of `CHECKS`.

A check is a function of a `Fit`. It returns what it observed, the gravest first, or a sentence that
says why it cannot be made::

    def one_fold(fit):
        n_folds = len(fit.inputs.folds)
        return [Observed(n_folds, found=n_folds < 2)]

    CHECKS["one_fold"] = FitCheck(
        one_fold, "There is one fold.", "the folds are {figure}", "folds", "below two", "take five"
    )

Columns are ranked by under the rules and on the queries of the cross-validation, so a difference is
paired by query. A *gain* is over rows in random order: with equal scores and ``ties="expected"`` a
measure has its exact mean over all orders. A useless model gains 0.

The trap is data on which there is little to see: few queries, or a weak signal. A check that is a
test speaks only if the test rejects. That is why the check of single columns tests whether a column
has 95 % of the model's gain, and not whether the model is better: few queries cannot show that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from rankeval._checks import count, refuse, require
from rankeval.collection.data import RankingData
from rankeval.model_selection.checks import signs
from rankeval.model_selection.nesting import features_for
from rankeval.model_selection.query_ids import NAME, has_column, index_levels
from rankeval.model_selection.query_split import Rows
from rankeval.significance import paired_test
from rankeval.significance.declarations import Floats, Side

if TYPE_CHECKING:
    from rankeval.model_selection.fitting import FitInputs

MOST_COLUMNS = 2000
"""Columns of numbers, beyond which none is ranked by alone: it would take minutes."""

_SCREENED = 500
"""Queries on which the best single column is chosen; it is compared on all."""

_KEPT = 0.75
"""The share of its gain in training that a sound model is not shown to miss out of fold."""

_AS_WELL = 0.95
"""The share of the model's gain from which on a column ranks as well."""

_USUAL = 0.8
"""The share of the searches that end at one edge."""

_OVERLAP = 5
"""The factor of the p of `edge`: splits share queries, so a plain t claims too often. With it, a
parameter that does nothing is found at an edge in about 2 of 100 data sets (measure_fit, idle)."""

_MOST_TIED = 0.5
"""The share of rows with the score of another row of their query, above which scores rank little."""

_FAR_LARGER = 2.0
"""How many times as large a far larger share is, or how many times as small the rest of it."""

_LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True)
class Observed:
    """One thing that a check looked at."""

    figure: float
    found: bool
    p_value: float = np.nan  # Of the test that decides, if one does, corrected as the limit says
    facts: Mapping[str, Any] = field(default_factory=dict)  # For the sentence of the check


@dataclass(frozen=True, eq=False)
class Fit:
    """A cross-validation as the checks see it."""

    cv: Any  # CrossValidation
    inputs: FitInputs
    label: str  # The measure
    serving: Any  # Rows as the model is served them; None if there are none
    difference: float | None  # The one that is claimed
    alpha: float

    @cached_property
    def predicted(self) -> Floats:
        """The out-of-fold score of each row; of several seeds, that of the first."""
        predicted: Floats = self.cv.predictions
        return predicted if predicted.ndim == 1 else predicted[:, 0]

    @cached_property
    def rows(self) -> Rows:
        """The rows that were held out."""
        return np.flatnonzero(np.isfinite(self.predicted))

    def scores(self, score: Floats, rows: Rows, **rules: str) -> pd.Series:
        """Return the measure of each query, if these rows are ranked by a score of all rows."""
        scoring = self.inputs.scoring
        labelled = [pair for pair in scoring.labelled if pair[0] == self.label]
        # Names of rules are texts, and mypy asks for the literals of each field.
        convention = replace(scoring.joined.convention, **rules)  # type: ignore[arg-type]
        joined = replace(scoring.joined, convention=convention)
        evaluation = replace(scoring, joined=joined, labelled=labelled).evaluate(rows, score[rows])
        scores: pd.Series = signs(labelled)[self.label] * evaluation.per_query[self.label]
        return scores.dropna()

    def gains(self, rows: Rows, **scores: Floats) -> pd.DataFrame:
        """Return how much better than rows in random order each query is ranked by each score."""
        chance = self.scores(np.zeros(len(self.predicted)), rows, ties="expected")
        ranked = {name: self.scores(score, rows) - chance for name, score in scores.items()}
        return pd.DataFrame(ranked).dropna()

    @cached_property
    def features(self) -> pd.DataFrame:
        """The features of all rows."""
        data = self.inputs.task.data
        return _framed(data.X, data.feature_names or range(data.X.shape[1]))


Find = Callable[[Fit], Sequence[Observed] | str]


@dataclass(frozen=True)
class FitCheck:
    """A declared check."""

    find: Find
    words: str  # What it finds, as a sentence
    seen: str  # A sentence with the names of facts in braces
    figure: str  # The figure in words
    limit: str  # When it is found; {alpha} stands for the level
    remedy: str  # What to do then


def _framed(X: Any, names: Sequence[Any]) -> pd.DataFrame:
    """Return features as a frame; columns without names get these."""
    features: Any = features_for(None, X)
    if not hasattr(features, "iloc"):
        found = f"{features.shape[1]} columns without names, and training has {len(names)}"
        refuse((features.shape[1] != len(names), found, "give a frame"), argument="serving")
        is_sparse = hasattr(features, "tocsr")
        # The stubs of pandas know `sparse` of a frame only, and not of the class.
        make: Any = pd.DataFrame.sparse.from_spmatrix if is_sparse else pd.DataFrame  # type: ignore[attr-defined]
        features = make(features, columns=names)
    framed: pd.DataFrame = features.rename(columns=str)
    return framed


def _test(differences: Any, alternative: Side) -> float:
    """Return the p-value of the paired t test of a mean of 0; nan of one difference."""
    if len(differences) < 2:
        return np.nan
    return float(paired_test("t", np.asarray(differences), alternative=alternative).p_value)


def edge(fit: Fit) -> Sequence[Observed] | str:
    """Look for parameters whose chosen value is at one end of the values tried."""
    by_end = defaultdict(list)
    for search in fit.inputs.searches:
        for key, of_search in search.items():
            by_end[key].append(of_search)
    observed = []
    for (parameter, end), searches in by_end.items():
        gains = np.array(searches)  # (n_searches, n_splits); a search chooses by its mean
        means = gains.mean(axis=1)
        share, p = float((means > 0).mean()), _test(gains.ravel(), "greater")
        p = min(1.0, _OVERLAP * len(by_end) * p)
        is_usual = share >= _USUAL and p <= fit.alpha
        facts = {"parameter": parameter, "end": end, "n": len(means), "gain": means.mean()}
        observed.append(Observed(share, is_usual, p, facts))
    none = "no search inside tried three or more numbers of one parameter on the same rows"
    return _gravest_first(observed) or none


def _gravest_first(observed: list[Observed]) -> list[Observed]:
    return sorted(observed, key=attrgetter("found", "figure"), reverse=True)


def overfit(fit: Fit) -> Sequence[Observed] | str:
    """Compare the gain on each query of a model that was fitted to it and of one that was not."""
    trained = fit.inputs.trained()
    rows = np.flatnonzero(np.isfinite(trained) & np.isfinite(fit.predicted))
    if not len(rows):
        return (
            "no query is held out by one fold and trained on in the next, or other processes "
            "fitted the models: return_estimators=True keeps them"
        )
    gains = fit.gains(rows, training=trained, held_out=fit.predicted)
    p = _test(gains["held_out"] - _KEPT * gains["training"], "less")
    means = gains.mean()
    kept = means["held_out"] / means["training"] if means["training"] else np.nan
    return [Observed(kept, p <= fit.alpha, p, dict(means))]


def single_column(fit: Fit) -> Sequence[Observed] | str:
    """Rank by each column alone, in both directions, and compare the best one with the model."""
    numbers = fit.features.select_dtypes(["number", "bool"])
    n_columns, n_other = numbers.shape[1], fit.features.shape[1] - numbers.shape[1]
    if n_columns + n_other < 2 or not 0 < n_columns <= MOST_COLUMNS:
        return f"it takes two columns, 1 to {MOST_COLUMNS:,} of them numbers: X has {n_columns:,}"
    queries, _ = pd.factorize(fit.inputs.task.data.qid[fit.rows])
    some = fit.rows[queries % (queries.max() // _SCREENED + 1) == 0]
    candidates = [(name, sign) for name in numbers for sign in (1, -1)]
    means = [fit.scores(_ranked(numbers[name], sign), some).mean() for name, sign in candidates]
    name, sign = candidates[int(np.argmax(means))]
    gains = fit.gains(fit.rows, model=fit.predicted, column=_ranked(numbers[name], sign))
    p = _test(gains["column"] - _AS_WELL * gains["model"], "greater")
    model, column = gains.mean()
    share = column / model if model else np.nan
    first = "greatest" if sign > 0 else "smallest"
    others = f" ({count(n_other, 'column')} without numbers not tried)" if n_other else ""
    facts = {"name": name, "first": first, "model": model, "column": column, "others": others}
    return [Observed(share, p <= fit.alpha, p, facts)]


def _ranked(column: pd.Series, sign: int) -> Floats:
    """Return a column as a score; rows without a value come last."""
    score: Floats = sign * column.to_numpy(np.float64, na_value=np.nan)
    return np.nan_to_num(score, nan=-_LARGEST)


def folds(fit: Fit) -> Sequence[Observed] | str:
    """Test whether queries differ more between folds than within them (one-way F)."""
    fold = np.full(len(fit.predicted), -1)
    for place, (_, test) in reversed([*enumerate(fit.inputs.folds)]):  # the first time counts
        fold[test] = place
    of_query = pd.Series(fold, index=fit.inputs.task.data.qid).groupby(level=0).first()
    groups = fit.scores(fit.predicted, fit.rows).groupby(of_query)
    parts = [part for _, part in groups]
    if len(parts) < 2 or min(map(len, parts)) < 2 or not groups.std().any():
        return "it takes two folds or more, with unequal scores of two queries or more in each"
    f, p = stats.f_oneway(*parts)
    means = groups.mean().abs()
    return [Observed(f, p <= fit.alpha, p, {"low": means.min(), "high": means.max()})]


def seed(fit: Fit) -> Sequence[Observed] | str:
    """Compare the claimed difference with the reach of one more seed: its prediction interval."""
    by_seed = getattr(fit.cv, "seeds", None)
    if by_seed is None:
        return "the result is of one seed: cross_validate(..., seeds=5) fits each fold by five"
    if fit.difference is None:
        return "no difference is claimed: give difference="
    means = by_seed[fit.label]
    n = len(means)
    reach = stats.t.isf(0.025, n - 1) * means.std() * np.sqrt(1 + 1 / n)
    claimed = abs(fit.difference)
    return [Observed(reach, 0 < reach >= claimed, facts={"n": n, "claimed": claimed})]


def constant(fit: Fit) -> Sequence[Observed] | str:
    """Count rows that have the score of another row of their query, in single precision."""
    columns = {"query": fit.inputs.task.data.qid, "score": fit.predicted.astype(np.float32)}
    tied = pd.DataFrame(columns).iloc[fit.rows].duplicated(keep=False).mean()
    return [Observed(tied, tied > _MOST_TIED)]


def serving(fit: Fit) -> Sequence[Observed] | str:
    """Compare the columns of the rows that are served with those of training."""
    if fit.serving is None:
        return "no rows as they are served: give serving="
    rows, known = fit.serving, fit.features
    X = rows.X if isinstance(rows, RankingData) else rows
    require(
        np.ndim(X) == 2, "serving", type(X), "an array or a frame, of dicts pandas.DataFrame(rows)"
    )
    served = _framed(X, [*known])
    # The rows of one query share values, so the test counts queries.
    n_queries = len(np.unique(fit.inputs.task.data.qid))
    n_served = _n_served(rows) or round(len(served) * n_queries / len(known))
    sizes = n_queries, max(1, n_served)
    n_states = 2 * known.shape[1]
    observed = []
    for name in known:
        absent = name not in served
        column = pd.Series(np.nan, served.index) if absent else served[name]
        for state, shares in _states(known[name], column):
            p = min(1.0, n_states * _fisher(shares, sizes))
            is_far = _is_far_larger(*shares) and p <= fit.alpha
            kind = "absent" if absent else state
            facts = {"name": name, "state": kind, "share": shares[1], "known": shares[0]}
            observed.append(Observed(shares[1], absent or is_far, p, facts))
    return _gravest_first(observed)


def _n_served(rows: Any) -> int:
    """Return the number of queries that are served; 0 if the rows do not say their queries."""
    if isinstance(rows, RankingData):
        return len(np.unique(rows.qid))
    columns = [rows[NAME]] if has_column(rows) else []
    levels = [ids for _, ids in index_levels(rows, None, NAME)]
    return max((pd.Series(ids).nunique() for ids in [*columns, *levels]), default=0)


def _states(known: pd.Series, served: pd.Series) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield states of a column, with the shares of rows in it in training and at serving."""
    missing = served.isna().mean()
    yield "missing", (known.isna().mean(), missing)
    values = served.dropna().unique()
    if len(values) == 1:
        yield f"always {values[0]}", ((known == values[0]).mean(), 1 - missing)


def _is_far_larger(known: float, served: float) -> bool:
    """Return whether twice the share of rows, or at most half of the others, are in a state at serving."""
    return served >= _FAR_LARGER * known or 1 - known >= _FAR_LARGER * (1 - served)


def _fisher(shares: tuple[float, float], sizes: tuple[int, int]) -> float:
    counts = [round(share * n) for share, n in zip(shares, sizes, strict=True)]
    table = np.array([counts[::-1], [sizes[1] - counts[1], sizes[0] - counts[0]]])
    return float(stats.fisher_exact(table, alternative="greater").pvalue)


CHECKS: dict[str, FitCheck] = {
    "edge": FitCheck(
        edge,
        "The best setting lies at the edge of the values that a search tried.",
        "{parameter} is chosen among the {end} values tried in {figure:.0%} of {n} searches: {gain:+.4f} "
        "{measure} over the best setting further inside",
        "share of the searches that end at this edge",
        "at least 80 % of the searches end there, and the setting is shown to gain over the best "
        "one further inside (t test over the splits of all searches; p is multiplied by 5, because "
        "splits share queries, and is at most {alpha:g} over all ends)",
        "widen the grid or the range beyond this end",
    ),
    "overfit": FitCheck(
        overfit,
        "Held-out queries gain far less than queries in training.",
        "over rows in random order, {measure} gains {training:+.4f} on queries in training "
        "and {held_out:+.4f} out of fold",
        "gain out of fold as a share of the gain in training",
        "the model is shown to keep less than three quarters of its gain (paired t test over "
        "queries, p at most {alpha:g})",
        "regularise, stop early, drop columns that name rows or queries, or add queries",
    ),
    "single_column": FitCheck(
        single_column,
        "One column alone, in either direction, ranks as well as the model.",
        "over rows in random order, {measure} gains {column:+.4f} by the column {name} alone, {first} first, "
        "and {model:+.4f} by the model{others}",
        "gain of the best column as a share of the gain of the model",
        "the column is shown to have more than 95 % of the model's gain (paired t test over "
        "queries, p at most {alpha:g})",
        "ask whether the column is known when rows are ranked (a leak); if it is, you may "
        "need no model",
    ),
    "folds": FitCheck(
        folds,
        "Folds disagree more than their queries explain.",
        "the folds have {measure} from {low:.4f} to {high:.4f}",
        "F of the folds",
        "queries differ between folds more than within them (one-way F test, p at most {alpha:g})",
        "look at the fold that differs: a time, a source or labels of its own; split by "
        "groups= or by time",
    ),
    "seed": FitCheck(
        seed,
        "A seed moves the mean more than the difference that is claimed.",
        "by its {n} seeds, another seed moves the mean {measure} by up to {figure:.4f} (95 "
        "%), and the claim is {claimed:.4f}",
        "distance within which the mean of another seed lies, with 95 % probability",
        "at least the claimed difference",
        "claim nothing, or compare the means of more seeds",
    ),
    "constant": FitCheck(
        constant,
        "Scores are constant, or nearly, within queries.",
        "{figure:.1%} of the rows have the same score as another row of their query, in single "
        "precision",
        "share of the rows with the same score as another row of their query, in single precision",
        "more than half",
        "look at the regularisation, the scale of columns, and columns that differ only "
        "between queries",
    ),
    "serving": FitCheck(
        serving,
        "A column is absent, constant or far more often missing at serving.",
        "the column {name} is {state} in {share:.1%} of the rows at serving, and in "
        "{known:.1%} in training",
        "share of the rows at serving in which the column is missing or has its constant value",
        "the column is absent; or this share is shown to be larger than in training, and is at "
        "least twice as large, or leaves at most half as many other rows (Fisher's exact test over "
        "queries, p at most {alpha:g} over all columns; if the rows have no qid, the number of "
        "queries is estimated)",
        "mend what fills the column at serving, or train without it",
    ),
}
"""The checks of a fit, in the order of their table."""
