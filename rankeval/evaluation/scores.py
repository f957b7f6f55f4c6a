"""The scores of queries, and the numbers and sentences that follow from them alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import check_share, count
from rankeval.collection.convention import COUNTED_AS, Convention
from rankeval.errors import InvalidInput
from rankeval.evaluation.aggregation import aggregated, aggregated_errors, draws_note, half_widths
from rankeval.evaluation.facts import QueryFacts, Whole
from rankeval.join.flat import Floats, Ints
from rankeval.measures import Measure

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class QueryScores:
    """The scores of one ranking, query by query. `Evaluation` explains the fields, and adds what is done with them."""

    queries: NDArray[Any]
    measure_names: tuple[str, ...]
    measures: tuple[Measure, ...]
    scores: Floats
    convention: Convention
    query_counts: Mapping[str, NDArray[np.int64]]
    rule_counts: Mapping[str, int]
    excluded: Mapping[str, tuple[Any, ...]]
    undefined: Mapping[str, int]
    judgments_digest: str
    ranking_digest: str
    facts: QueryFacts
    weights: Floats | None = None
    name: str | None = None
    errors: Floats | None = None
    whole: Whole | None = None
    n_folds: int = 0

    @property
    def n_queries(self) -> int:
        """Number of queries that count."""
        return len(self.queries)

    @property
    def by_name(self) -> dict[str, Measure]:
        """The measures by the names asked for."""
        return dict(zip(self.measure_names, self.measures, strict=True))

    @property
    def per_query(self) -> pd.DataFrame:
        """The scores as a DataFrame of shape (n_queries, n_measures): index ``qid``, columns as asked for."""
        import pandas as pd

        return pd.DataFrame(
            self.scores, index=pd.Index(self.queries, name="qid"), columns=list(self.measure_names), copy=False
        )

    @property
    def standard_errors(self) -> pd.DataFrame:
        """The standard error of each score, shaped as ``per_query``; 0 for exact scores."""
        errors = np.zeros_like(self.scores) if self.errors is None else self.errors
        return replace(self, scores=errors).per_query

    def reading(self, name: str) -> Floats:
        """Return a reading of unjudged documents, nan where it was not made.

        Parameters
        ----------
        name : str
            One of ``rankeval.evaluation.facts.READINGS``.

        Returns
        -------
        ndarray of shape (n_queries, n_measures)
            The scores themselves if all documents are judged, and 1 for the share judged.
        """
        if name in self.facts.readings:
            return self.facts.readings[name]
        whole = self.query_counts["judged"] == self.query_counts["retrieved"]
        return np.where(whole[:, None], np.ones_like(self.scores) if name == "judged" else self.scores, np.nan)

    def aggregate_errors(self) -> pd.Series[float]:
        """Return the standard error that drawn orders of tied rows leave in the values of `aggregate`.

        Returns
        -------
        Series of shape (n_measures,)
            Index of measure names; 0 if all scores are exact. `ci` covers the choice of queries instead.
        """
        return self._series(self._aggregate_errors())

    def _aggregate_errors(self) -> dict[str, float]:
        return aggregated_errors(self.by_name, self.scores, self.errors, self.weights)

    def aggregate(self) -> pd.Series[float]:
        """Return the aggregate of every measure over queries.

        Returns
        -------
        Series of shape (n_measures,)
            Index of measure names; the declared mean, sum or geometric mean, weighted if there are weights.
        """
        return self._series(self.aggregates())

    def mean(self) -> pd.Series[float]:
        """Return the aggregates of the measures whose aggregate is a mean.

        Returns
        -------
        Series of shape (n_means,)
            Index of measure names. Sums and geometric means are left out.
        """
        means = [name for name, one in self.by_name.items() if one.family.aggregate == "mean"]
        return self.aggregate()[means]

    def aggregates(self) -> dict[str, float]:
        """Return `aggregate` as a dict of plain numbers.

        Returns
        -------
        dict of str to float
            Measure name -> aggregate.
        """
        return aggregated(self.by_name, self.scores, self.weights)

    def _series(self, values: Mapping[str, float]) -> pd.Series[float]:
        import pandas as pd

        return pd.Series(values, name=self.name, dtype=np.float64)

    def ci(self, level: float = 0.95) -> pd.DataFrame:
        """Return a confidence interval for each measure that is a mean, by Student's t over queries.

        Parameters
        ----------
        level : float
            Between 0 and 1.

        Returns
        -------
        DataFrame of shape (n_means, 3)
            Index of measure names, columns mean, ci_low, ci_high; nan limits with fewer than two queries, and where
            all scores are the same number. The interval may go beyond the bounds of the measure.

        Raises
        ------
        InvalidInput
            If the level is not between 0 and 1, or the queries have weights.

        Examples
        --------
        >>> import rankeval as rk
        >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=[1, 1, 2, 2, 3, 3], measures="RR")
        >>> ev.ci(0.95).round(2).values.tolist()
        [[0.83, 0.12, 1.55]]
        """
        import pandas as pd

        check_share("level", level)
        if self.weights is not None:
            raise InvalidInput("ci: no interval is given for weighted means; resample the weighted queries instead")
        means = self.mean()
        columns = [self.measure_names.index(label) for label in means.index]
        half = half_widths(self.scores[:, columns], level)
        return pd.DataFrame({"mean": means, "ci_low": means - half, "ci_high": means + half})

    @property
    def tied_share(self) -> float:
        """Share of the retrieved rows with the score of another row of their query."""
        return self._share("tied")

    @property
    def judged_share(self) -> float:
        """Share of the retrieved rows that have a judgment."""
        return self._share("judged")

    def _share(self, count: str) -> float:
        retrieved = int(self.query_counts["retrieved"].sum())
        return float(self.query_counts[count].sum() / retrieved) if retrieved else 0.0

    @property
    def info(self) -> dict[str, str]:
        """Further notes by subject: constant scores, labels below zero, ties over drawn orders, and a subset."""
        said = {}
        n_ranked = int((self.query_counts["retrieved"] > 1).sum())
        constant = self.rule_counts.get("constant", 0)
        if constant and 2 * constant >= n_ranked:  # some tied queries are common, and no sign of a broken ranker
            said["constant"] = f"constant scores: all rows are tied in {constant:,} of {count(n_ranked, 'query')}"
        if negative := self.rule_counts.get("negative", 0):
            pooled = self.convention.negative == "unjudged"
            counted, taken = ("ranked document", "not judged") if pooled else ("document", "not relevant")
            said["negative"] = f"{count(negative, counted)} with a label below zero, taken as {taken}"
        if self.errors is not None:
            said["ties"] = draws_note(self.by_name, self.facts.drawn, self._aggregate_errors())
        if self.whole is not None:
            said["subset"] = f"a subset: {self.size}"
        return said

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a reader of the numbers, such as those on queries that were left out."""
        said = []
        missing = self.rule_counts.get("missing", 0)
        if missing and self.convention.missing in COUNTED_AS:
            said.append(f"{count(missing, 'query')} missing from the run: {COUNTED_AS[self.convention.missing]}")
        said += [f"{count(len(ids), 'query')} left out: {reason}" for reason, ids in self.excluded.items() if len(ids)]
        barren = self.rule_counts.get("no_relevant", 0)
        if barren and self.convention.no_relevant != "skip":
            value = {"zero": 0, "one": 1}[self.convention.no_relevant]
            said.append(f"{count(barren, 'query')} without a relevant document: 0/0 counted as {value}")
        if unnamed := self.rule_counts.get("gain", 0):
            said.append(
                f"{count(unnamed, 'document')} with a grade that the map of gains does not name: the gain is the grade"
            )
        return (*said, *self.info.values())

    def worst_first(self, label: str) -> Ints:
        """Return the places of the queries that a ranking can change, the worst by a measure first.

        Parameters
        ----------
        label : str
            The name of one of the measures.
        """
        column = self.measure_names.index(label)
        values = self.scores[:, column]
        sign = 1 if self.measures[column].family.greater_is_better else -1
        # Queries are in ascending order, and a stable sort keeps it among equal scores.
        places = np.argsort(sign * values, kind="stable")
        fixed = self.facts.rule_counts.get("fixed", np.zeros(self.n_queries)) > 0
        if self.convention.judgments != "rows":  # of a measure of unjudged rows the value may change, and is not 0
            fixed &= (values == 0) | self.facts.undefined[:, column]
        worst: Ints = places[~fixed[places]]
        return worst

    def left_out_of_worst(self, label: str) -> str:
        """Return the sentence on the queries that `worst_first` leaves out; "" if there are none.

        Parameters
        ----------
        label : str
            The name of one of the measures.
        """
        number = self.n_queries - len(self.worst_first(label))
        return f"Left out: {count(number, 'query')} whose score no ranking changes." if number else ""

    @property
    def size(self) -> str:
        """The number of queries in words, such as "40 queries", or "7 of 40 queries" for a subset."""
        if self.whole is None:
            return count(self.n_queries, "query")
        return f"{self.n_queries:,} of {count(self.whole.n_queries, 'query')}"
