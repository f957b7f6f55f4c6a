"""The result of an evaluation: scores by query, and the convention that made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import check_share
from rankeval.collection.convention import CHOICES, COUNTED_AS, Convention
from rankeval.errors import InvalidInput
from rankeval.evaluation.storage import pack, unpack
from rankeval.io.opening import read_bytes, write_atomically
from rankeval.measures import Measure
from rankeval.measures.aggregates import AGGREGATES

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The scores of one ranking, query by query, with the convention that made them.

    Attributes
    ----------
    queries : ndarray of shape (n_queries,)
        Query ids in ascending order.
    measure_names : tuple of str of length n_measures
        The names under which the measures were asked for.
    measures : tuple of Measure of length n_measures
        The measures, with the parameters that the convention bound.
    scores : ndarray of shape (n_queries, n_measures)
        One value per query and measure.
    convention : Convention
        The rules, with ``judgments`` as it was applied.
    query_counts : mapping of str to ndarray of shape (n_queries,)
        Numbers of documents: ``relevant``, ``retrieved``, and of the retrieved ones ``tied`` and ``judged``.
    rule_counts : mapping of str to int
        How many rows or queries each rule of the convention affected.
    excluded : mapping of str to tuple
        Reason -> the ids of the queries left out for it.
    undefined : mapping of str to int
        Measure -> number of queries whose value was 0/0. The convention says how these count.
    judgments_digest, ranking_digest : str
        SHA-256 of the judgments, and of the ranking as the measures see it.
    weights : ndarray of shape (n_queries,), optional
        Query weights.
    name : str, optional
        Name of the system.
    info : mapping of str to str
        Further notes for readers, such as that ties were averaged over drawn orders.
    errors : ndarray of shape (n_queries, n_measures), optional
        Standard errors of scores that are means over drawn orders of tied rows, 0 for exact scores. None if all scores
        are exact. They do not contain the uncertainty from the choice of queries.

    Examples
    --------
    >>> import rankeval as rk
    >>> ev = rk.evaluate({"q": {"a": 1, "b": 0}}, {"q": {"a": 0.2, "b": 0.9}}, measures=["RR", "P@1"])
    >>> ev.aggregate().to_dict()
    {'RR': 0.5, 'P@1': 0.0}
    """

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
    weights: Floats | None = None
    name: str | None = None
    info: Mapping[str, str] = field(default_factory=dict)
    errors: Floats | None = None

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

    def aggregate_errors(self) -> pd.Series[float]:
        """Return the standard error that drawn orders of tied rows leave in the values of `aggregate`.

        Returns
        -------
        Series of shape (n_measures,)
            Index of measure names; 0 if all scores are exact. `ci` covers the choice of queries instead.
        """
        if self.errors is None or not self.n_queries:
            return self._series(dict.fromkeys(self.measure_names, 0.0))
        weights = np.ones(self.n_queries) if self.weights is None else self.weights
        total, values = float(weights.sum()), self.aggregates()
        # Each query is drawn on its own, so the squares of the errors add up.
        of_sums = np.sqrt((weights[:, None] ** 2 * self.errors**2).sum(axis=0))
        errors = dict(zip(self.measure_names, of_sums.tolist(), strict=True))
        for name, one in self.by_name.items():
            if one.family.aggregate != "sum":
                errors[name] /= total
            if one.family.aggregate == "gmean":
                errors[name] *= values[name]  # the slope of exp is its value
        return self._series(errors)

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
        if not self.n_queries:
            return dict.fromkeys(self.measure_names, float("nan"))
        return {
            name: float(AGGREGATES[one.family.aggregate](values, self.weights))
            for (name, one), values in zip(self.by_name.items(), self.scores.T, strict=True)
        }

    def _series(self, values: Mapping[str, float]) -> pd.Series[float]:
        import pandas as pd

        return pd.Series(values, name=self.name, dtype=np.float64)

    def ci(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return a confidence interval for each measure that is a mean, by Student's t over queries.

        Parameters
        ----------
        confidence_level : float
            Between 0 and 1.

        Returns
        -------
        DataFrame of shape (n_means, 3)
            Index of measure names, columns mean, ci_low, ci_high; nan limits with fewer than two queries. The
            interval may go beyond the bounds of the measure.

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
        from scipy import stats

        check_share("confidence_level", confidence_level)
        if self.weights is not None:
            raise InvalidInput("ci: no interval is given for weighted means; resample the weighted queries instead")
        means = self.mean()
        values = self.scores[:, [self.measure_names.index(label) for label in means.index]]
        n_queries = len(values)
        if n_queries > 1:
            spread = values.std(axis=0, ddof=1) / np.sqrt(n_queries)
            half = spread * stats.t.ppf((1 + confidence_level) / 2, n_queries - 1)
        else:
            half = np.full(len(means), np.nan)
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
    def notes(self) -> tuple[str, ...]:
        """Sentences for a reader of the numbers, about queries without a ranking and queries that were left out."""
        said = []
        missing = self.rule_counts.get("missing", 0)
        if missing and self.convention.missing in COUNTED_AS:
            said.append(f"{_queries(missing)} missing from the run: {COUNTED_AS[self.convention.missing]}")
        said += [f"{_queries(len(ids))} left out: {reason}" for reason, ids in self.excluded.items() if len(ids)]
        barren = self.rule_counts.get("no_relevant", 0)
        if barren and self.convention.no_relevant != "skip":
            value = {"zero": 0, "one": 1}[self.convention.no_relevant]
            said.append(f"{_queries(barren)} without a relevant document: 0/0 counted as {value}")
        return (*said, *self.info.values())

    def renamed(self, name: str | None) -> Evaluation:
        """Return the evaluation under another system name.

        Parameters
        ----------
        name : str or None
            The new name.

        Returns
        -------
        Evaluation
            The same scores.
        """
        return replace(self, name=name)

    def differs_from(self, other: Evaluation) -> list[str]:
        """Return the rules and judgments in which two evaluations differ.

        Parameters
        ----------
        other : Evaluation
            The other evaluation.

        Returns
        -------
        list of str
            One sentence each; empty if the numbers may be compared. A rule that affected no row of either evaluation
            does not differ.

        Examples
        --------
        >>> import rankeval as rk
        >>> labels, tied = [1, 0], [0.5, 0.5]
        >>> one, other = (rk.evaluate(labels, tied, qid=[1, 1], measures="RR", ties=ties) for ties in ("best", "worst"))
        >>> one.differs_from(other)
        ["ties is 'best' in one and 'worst' in the other"]
        """
        differences = []
        for rule in [*CHOICES, "depth"]:
            mine, theirs = getattr(self.convention, rule), getattr(other.convention, rule)
            affected = self.rule_counts.get(rule, 0) + other.rule_counts.get(rule, 0)
            if mine != theirs and affected:
                differences.append(f"{rule} is {mine!r} in one and {theirs!r} in the other")
        mine_bound = self.by_name
        for label, one in other.by_name.items():
            if label in mine_bound and mine_bound[label] != one:
                differences.append(f"{label} means {mine_bound[label]} in one and {one} in the other")
        if self.judgments_digest != other.judgments_digest:
            differences.append(
                f"the judgments differ (digest {self.judgments_digest[:12]} over {self.n_queries} queries in one, "
                f"{other.judgments_digest[:12]} over {other.n_queries} in the other)"
            )
        return differences

    def to_bytes(self) -> bytes:
        """Return the evaluation as the bytes of a Parquet file.

        Returns
        -------
        bytes
            Columns: qid, the measures, the counts. Everything else is in the schema's metadata.
        """
        return pack(vars(self))

    @classmethod
    def from_bytes(cls, content: bytes) -> Evaluation:
        """Return the evaluation from the bytes that `to_bytes` gave.

        Parameters
        ----------
        content : bytes
            A Parquet file.

        Returns
        -------
        Evaluation
            The same scores, bit for bit.

        Raises
        ------
        InvalidInput
            If the bytes are those of another file.
        """
        return cls(**unpack(content))

    def save(self, path: str | Path) -> None:
        """Write the evaluation to one Parquet file, replaced atomically.

        Parameters
        ----------
        path : path
            The file.

        Raises
        ------
        InvalidInput
            If the folder does not exist or cannot be written to.
        """
        write_atomically(path, [self.to_bytes()])

    @classmethod
    def load(cls, path: str | Path) -> Evaluation:
        """Read an evaluation that `save` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Evaluation
            The same scores, bit for bit.

        Raises
        ------
        InvalidInput
            If the file does not exist or is of another kind.

        Examples
        --------
        >>> import tempfile
        >>> import rankeval as rk
        >>> path = f"{tempfile.mkdtemp()}/ridge.parquet"
        >>> rk.evaluate([1, 0], [0.5, 0.1], qid=["a", "a"], measures="RR").save(path)
        >>> rk.Evaluation.load(path).per_query["RR"].to_dict()
        {'a': 1.0}
        """
        return cls(**unpack(read_bytes(path), str(path)))

    def __repr__(self) -> str:
        values = ", ".join(f"{label}={value:.4f}" for label, value in self.aggregate().items())
        name = f"{self.name!r}, " if self.name else ""
        said = "; ".join((self.convention.name, *self.notes))
        return f"Evaluation({name}{_queries(self.n_queries)}, {values}; {said})"

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(str(label))}</th><td>{value:.4f}</td></tr>"
            for label, value in self.aggregate().items()
        )
        notes = [
            _queries(self.n_queries),
            f"convention {self.convention.name}",
            f"{self.tied_share:.1%} of rows tied",
        ]
        notes += [f"{label}: {_queries(number)} 0/0" for label, number in self.undefined.items() if number]
        notes += self.notes
        caption = escape("; ".join(notes))
        return f"<table><caption>{escape(self.name or 'Evaluation')}</caption>{rows}</table><small>{caption}</small>"


def _queries(number: int) -> str:
    return f"{number} query" if number == 1 else f"{number} queries"
