"""The result of an evaluation: scores by query, and the convention that made them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankeval._checks import check_count, count, few
from rankeval.errors import InvalidInput
from rankeval.evaluation.choosing import places_of
from rankeval.evaluation.differences import differences
from rankeval.evaluation.facts import Whole
from rankeval.evaluation.labels import labels_of
from rankeval.evaluation.scores import QueryScores
from rankeval.evaluation.slicing import slices_of
from rankeval.evaluation.storage import pack, unpack
from rankeval.io.opening import read_bytes, write_atomically
from rankeval.join.flat import Ints
from rankeval.measures import Measure

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Evaluation(QueryScores):
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
        How many rows or queries each rule of the convention affected; under ``gain``, how many documents have a grade
        that a measure's map of gains does not name; under ``constant``, the queries whose rows all have one score;
        under ``fixed``, those that no ranking of their documents changes.
    excluded : mapping of str to tuple
        Reason -> the ids of the queries left out for it.
    undefined : mapping of str to int
        Measure -> number of queries whose value was 0/0. The convention says how these count.
    judgments_digest, ranking_digest : str
        SHA-256 of the judgments, and of the ranking as the measures see it, of the queries that count.
    facts : QueryFacts
        The share of each query in ``rule_counts``, ``undefined`` and the digests.
    weights : ndarray of shape (n_queries,), optional
        Query weights.
    name : str, optional
        Name of the system.
    errors : ndarray of shape (n_queries, n_measures), optional
        Standard errors of scores that are means over drawn orders of tied rows, 0 for exact scores. None if all scores
        are exact. They do not contain the uncertainty from the choice of queries.
    whole : Whole, optional
        Number of queries and digest of the judgments of the evaluation that this is a subset of; None if it is no
        subset.
    n_folds : int, default 0
        Number of folds whose held-out queries are scored here, each by a model of its own; 0 if these are not scores of
        a cross-validation. `rankeval.compare` notes that a test over several folds is approximate.

    Examples
    --------
    >>> import rankeval as rk
    >>> ev = rk.evaluate({"q": {"a": 1, "b": 0}}, {"q": {"a": 0.2, "b": 0.9}}, measures=["RR", "P@1"])
    >>> ev.aggregate().to_dict()
    {'RR': 0.5, 'P@1': 0.0}
    """

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
        return differences(self, other)

    def subset(self, queries: Any) -> Evaluation:
        """Return the evaluation of some of the queries, as if they alone had been evaluated.

        Nothing is scored again: a rule that looks at all judgments (``unjudged="highest"``) looked at all of them.
        Counts, notes and digests are those of the chosen queries, and ``notes`` says that this is a
        subset. All queries give the evaluation itself.

        Parameters
        ----------
        queries : iterable of ids, or array or Series of bool of shape (n_queries,)
            The queries to keep, in any order. An array of bool goes by position, in the order of ``queries``. A Series
            of bool goes by its index of query ids, which must hold every query and may hold more.

        Returns
        -------
        Evaluation
            Its ``excluded`` is empty, since every chosen query counts.

        Raises
        ------
        QueryIdError
            If an id is unknown or repeated, or a mask does not fit.
        InvalidInput
            If no query is chosen, or the weights of the chosen ones are all 0.

        Examples
        --------
        >>> import rankeval as rk
        >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=["a", "a", "b", "b", "c", "c"], measures="RR")
        >>> ev.subset(["c", "b"]).per_query["RR"].to_dict()
        {'b': 0.5, 'c': 1.0}
        >>> ev.subset(ev.per_query["RR"] < 1).n_queries
        1
        """
        return self._part(places_of(queries, self.queries, self.excluded))

    def _part(self, places: Ints) -> Evaluation:
        if len(places) == self.n_queries:
            return self
        queries, facts = self.queries[places], self.facts.part(places)
        judgments_digest, ranking_digest = facts.digests(queries)
        weights = None if self.weights is None else self.weights[places]
        if weights is not None and not weights.any():
            raise InvalidInput(
                f"weights: all queries of this part have the weight 0 ({few(queries.tolist())}), so it has no mean; "
                "leave them out first, with subset"
            )
        return replace(
            self,
            queries=queries,
            scores=self.scores[places],
            query_counts={count: numbers[places] for count, numbers in self.query_counts.items()},
            rule_counts=facts.totals(),
            excluded={},
            undefined=dict(zip(self.measure_names, facts.undefined.sum(axis=0).tolist(), strict=True)),
            judgments_digest=judgments_digest,
            ranking_digest=ranking_digest,
            facts=facts,
            weights=weights,
            errors=self.errors[places] if self.errors is not None and facts.drawn.any() else None,
            whole=self.whole or Whole(self.n_queries, self.judgments_digest),
        )

    def worst(self, n: int = 10, measure: str | Measure | None = None) -> pd.DataFrame:
        """Return the queries with the worst scores, the worst first, of those that a ranking can change.

        A query is left out if no order of its documents changes its score: none is relevant, or all ranked rows are
        equally relevant and there are no others.

        Parameters
        ----------
        n : int
            How many queries; all if there are fewer.
        measure : str or Measure, optional
            One of the measures; by default the first. If lower is better (ARP), the highest scores are the worst.

        Returns
        -------
        DataFrame of shape (n, n_measures + 4)
            Index ``qid``; the columns of ``per_query``, then those of ``query_counts``. Queries with equal scores stand
            by ascending id. ``attrs["left_out"]`` says how many queries were left out.

        Raises
        ------
        InvalidInput
            If ``n`` is not a whole number of at least 1, or ``measure`` names several.
        UnknownName
            If the measure is not one of this evaluation.

        Examples
        --------
        >>> import rankeval as rk
        >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=["a", "a", "b", "b", "c", "c"], measures="RR")
        >>> ev.worst(2)[["RR", "relevant", "retrieved"]].reset_index().values.tolist()
        [['b', 0.5, 1, 2], ['a', 1.0, 1, 2]]
        """
        check_count("n", n)
        labels = self.measure_names[:1] if measure is None else labels_of(measure, self.measure_names)
        if len(labels) > 1:
            raise InvalidInput(f"measure stands for {', '.join(labels)}", remedy="name one of them")
        places = self.worst_first(labels[0])
        frame = self.per_query.assign(**self.query_counts).iloc[places[:n]]
        frame.attrs["left_out"] = self.n_queries - len(places)
        return frame

    def slices(self, by: Any, *, level: float | None = None) -> pd.DataFrame:
        """Return the aggregates for each value of an attribute of the queries.

        Parameters
        ----------
        by : Series or mapping by query id, DataFrame, array of shape (n_queries,), or str
            The attribute. A Series, mapping or DataFrame may have more queries. A DataFrame has query ids as its index
            or as a column ``qid``, and gives a row for each combination of its columns. An array goes by position, in
            the order of ``queries``. A str names one of ``query_counts``. Cut a number with many values into classes
            first (``pandas.cut``, ``pandas.qcut``).
        level : float, optional
            Between 0 and 1: adds the limits of ``ci`` for each mean of each slice. If there are many slices, one is
            likely to look unusual by chance.

        Returns
        -------
        DataFrame of shape (n_slices, n_measures + 1)
            Index: the values, ascending, named as the attribute; queries without a value are the slice nan. Columns:
            ``n_queries``, and each measure's declared aggregate (followed by ``<measure> ci_low`` and
            ``<measure> ci_high`` if asked for). A row has the numbers of the `subset` of its queries.

        Raises
        ------
        QueryIdError
            If no id is common, an id is repeated, or the number of values does not fit.
        InvalidInput
            If the values cannot be grouped, the level is not between 0 and 1, an interval of weighted queries is asked
            for, or the weights of a slice are all 0.
        UnknownName
            If there is no such count.

        Examples
        --------
        >>> import rankeval as rk
        >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=["a", "a", "b", "b", "c", "c"], measures="RR")
        >>> ev.slices({"a": "short", "b": "long", "c": "long"}).reset_index().values.tolist()
        [['long', 2, 0.75], ['short', 1, 1.0]]
        """
        import pandas as pd

        values, places = slices_of(by, self.queries, self.query_counts)
        parts = [self._part(each) for each in places]
        return pd.DataFrame([_row(part, level) for part in parts], index=values)

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
        return f"Evaluation({name}{count(self.n_queries, 'query')}, {values}; {said})"

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(str(label))}</th><td>{value:.4f}</td></tr>"
            for label, value in self.aggregate().items()
        )
        notes = [
            count(self.n_queries, "query"),
            f"convention {self.convention.name}",
            f"{self.tied_share:.1%} of rows tied",
        ]
        notes += [f"{label}: {count(number, 'query')} 0/0" for label, number in self.undefined.items() if number]
        notes += self.notes
        caption = escape("; ".join(notes))
        return f"<table><caption>{escape(self.name or 'Evaluation')}</caption>{rows}</table><small>{caption}</small>"


def _row(part: Evaluation, level: float | None) -> dict[str, float]:
    """Return the row of a slice: its number of queries, aggregates, and the limits of means if they are asked for."""
    limits = {} if level is None else part.ci(level).to_dict("index")
    row: dict[str, float] = {"n_queries": part.n_queries}
    for label, value in part.aggregates().items():
        row[label] = value
        row |= {f"{label} {end}": limits[label][end] for end in ("ci_low", "ci_high") if label in limits}
    return row
