"""The result of an evaluation: scores by query, and the convention that made them.

`Evaluation` shows what a reader of the numbers uses. What other rooms need beside that are
functions of this module.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import (
    check_count,
    check_share,
    count,
    few,
    plural,
    require,
    shown,
    whole_number,
)
from rankeval._display import Displayed, View
from rankeval._visible import escaping, markdown
from rankeval.collection.convention import COUNTED_AS, Convention
from rankeval.collection.data import RankingData
from rankeval.errors import InvalidInput
from rankeval.evaluation.by_query import LEAST_QUERIES, labels_of, query_places, slices_of
from rankeval.evaluation.facts import QueryFacts, digest
from rankeval.evaluation.lacking import fixed, own_notes, undefined_notes
from rankeval.evaluation.storage import to_bytes, unpacked_fields
from rankeval.io.opening import read_bytes, write_atomically
from rankeval.join.flat import Floats, Ints
from rankeval.join.id_forms import FEW, advice
from rankeval.measures import Measure, direction
from rankeval.measures.family import AGGREGATES
from rankeval.measures.tie_enumeration import DRAWS
from rankeval.render.tables import Table, interval, number
from rankeval.shelf.record import INTERVAL_ENDS, SEED_END, Record, checked_word, digest_of
from rankeval.tracking import LoggedData

if TYPE_CHECKING:
    import pandas as pd


_AGAINST_RANK = (
    "the scores run against the rank column: documents that it ranks first have the lowest scores, "
    "and count as ranked last; if the scores are distances, give -score"
)
EVALUATION = "evaluation.parquet"
_WORDS = {"mean": "mean", "sum": "sum", "gmean": "geometric mean"}


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Displayed):
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
    excluded : mapping of str to tuple
        Reason -> the ids of the queries left out for it.
    undefined : mapping of str to int
        Measure -> number of queries whose value was 0/0. The convention says how these count.
    facts : QueryFacts
        What is known of each query: its numbers of documents, its share in the counts of the rules,
        in ``undefined`` and in the digests, and the standard errors of scores that are means over
        drawn orders of tied rows.
    weights : ndarray of shape (n_queries,), optional
        Query weights.
    name : str, optional
        Name of the system.

    Examples
    --------
    >>> import rankeval as rk
    >>> qrels, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 0.2, "b": 0.9}}
    >>> ev = rk.evaluate(qrels, run, measures=["RR", "P@1"])
    >>> ev.aggregate().to_dict()
    {'RR': 0.5, 'P@1': 0.0}
    """

    queries: NDArray[Any]
    measure_names: tuple[str, ...]
    measures: tuple[Measure, ...]
    scores: Floats
    convention: Convention
    excluded: Mapping[str, tuple[Any, ...]]
    undefined: Mapping[str, int]
    facts: QueryFacts
    weights: Floats | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        require(self.name is None or isinstance(self.name, str), "name", self.name, "text")

    @property
    def n_queries(self) -> int:
        """Number of queries that count."""
        return len(self.queries)

    @cached_property
    def judgments_digest(self) -> str:
        """SHA-256 of the judgments of the queries that count."""
        return digest(self.queries, self.facts.judgments)

    @cached_property
    def ranking_digest(self) -> str:
        """SHA-256 of the ranking as the measures see it, of the queries that count."""
        return digest(self.queries, self.facts.rankings)

    @property
    def per_query(self) -> pd.DataFrame:
        """The scores as a DataFrame: index ``qid``, a column for each measure."""
        import pandas as pd

        ids = pd.Index(self.queries, name="qid")
        return pd.DataFrame(self.scores, index=ids, columns=list(self.measure_names), copy=False)

    @property
    def seeds(self) -> pd.DataFrame | None:
        """The aggregates of each seed: index ``seed``, a column for each measure.

        None unless the scores are means over the seeds of `rankeval.cross_validate`. ``seeds.std()``
        is the spread over seeds.
        """
        import pandas as pd

        by_seed = self.facts.seeds.items()
        rows = {seed: aggregates(replace(self, scores=scores)) for seed, scores in by_seed}
        return pd.DataFrame.from_dict(rows, "index").rename_axis("seed") if rows else None

    def aggregate(self) -> pd.Series[float]:
        """Return the aggregate of every measure over queries.

        Returns
        -------
        Series of shape (n_measures,)
            Index of measure names; the declared mean, sum or geometric mean, weighted if there are
            weights.
        """
        import pandas as pd

        return pd.Series(aggregates(self), name=self.name, dtype=np.float64)

    def mean(self) -> pd.Series[float]:
        """Return the aggregates of the measures whose aggregate is a mean.

        Returns
        -------
        Series of shape (n_means,)
            Index of measure names. Sums and geometric means are left out.
        """
        kinds = {name: measure.family.aggregate for name, measure in by_name(self).items()}
        return self.aggregate()[[name for name, kind in kinds.items() if kind == "mean"]]

    def ci(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return a confidence interval for each measure with a mean, by Student's t over queries.

        A weighted mean has its linearised standard error, and Satterthwaite's degrees of freedom.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Level of the interval, between 0 and 1.

        Returns
        -------
        DataFrame of shape (n_means, 3)
            Index of measure names, columns mean, ci_low, ci_high; nan limits with fewer than two
            queries, where all scores are the same number, and if one query carries more than half
            of the weight. An interval ends at the bounds of its
            measure: no mean is beyond them, so the interval covers the mean of all queries as often
            as an uncut one.

        Raises
        ------
        InvalidInput
            If the level is not between 0 and 1.

        References
        ----------
        Cochran (1977), Sampling Techniques, chapter 6, for weighted means; Satterthwaite (1946), doi:10.2307/3002019.

        Examples
        --------
        >>> import rankeval as rk
        >>> qid = [1, 1, 2, 2, 3, 3]
        >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=qid, measures="RR")
        >>> ev.ci(0.95).round(2).values.tolist()
        [[0.83, 0.12, 1.0]]
        """
        import pandas as pd
        from scipy import stats

        from rankeval.significance.weighted import degrees_of_freedom, weighted_error

        check_share("confidence_level", confidence_level)
        means = self.mean()
        columns = [self.measure_names.index(label) for label in means.index]
        weights = np.ones(self.n_queries) if self.weights is None else self.weights
        is_counted = weights > 0
        scores, weights = self.scores[is_counted][:, columns], weights[is_counted]
        ends, n = np.full((2, len(columns)), np.nan), len(scores)
        if n > 1:
            spread = np.where((scores != scores[0]).any(axis=0), scores.std(axis=0, ddof=1), np.nan)
            degrees: float = n - 1
            if self.weights is not None:
                error = weighted_error(scores, weights) * np.sqrt(n)
                spread = np.where(np.isfinite(spread) & np.isfinite(error), error, np.nan)
                degrees = degrees_of_freedom(weights)
            half = spread * stats.t.ppf((1 + confidence_level) / 2, degrees) / np.sqrt(n)
            bounds = np.array([self.measures[column].family.bounds for column in columns])
            low, high = bounds.reshape(-1, 2).T
            # A measure of somebody else's may have scores beyond the bounds that it declares.
            low, high = np.minimum(low, scores.min(axis=0)), np.maximum(high, scores.max(axis=0))
            ends = np.clip([means - half, means + half], low, high)
        return pd.DataFrame({"mean": means, "ci_low": ends[0], "ci_high": ends[1]})

    @property
    def tied_share(self) -> float:
        """Share of the retrieved rows with the score of another row of their query."""
        return self._share("tied")

    @property
    def judged_share(self) -> float:
        """Share of the retrieved rows that have a judgment."""
        return self._share("judged")

    def _share(self, count: str) -> float:
        retrieved = int(self.facts.query_counts["retrieved"].sum())
        return float(self.facts.query_counts[count].sum() / retrieved) if retrieved else 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a reader of the numbers, such as those on queries that were left out."""
        affected = self.facts.totals()
        notes = []
        counted_as = COUNTED_AS.get(self.convention.missing)
        if counted_as and (n_missing := affected.get("missing")):
            notes.append(f"{count(n_missing, 'query')} missing from the run: {counted_as}")
        for reason, ids in self.excluded.items():
            if len(ids):
                notes.append(f"{count(len(ids), 'query')} left out: {reason}")
        notes += own_notes(self)
        if n_documents := affected.get("gain"):
            grade = "a grade that the map of gains does not name: the gain is the grade"
            notes.append(f"{count(n_documents, 'document')} with {grade}")
        return (*notes, *undefined_notes(self), *info_of(self).values())

    def subset(self, queries: Any) -> Evaluation:
        """Return the evaluation of some of the queries, as if they alone had been evaluated.

        Nothing is scored again: a rule that looks at all judgments (``unjudged="highest"``) looked
        at all of them. Counts, notes and digests are those of the chosen queries, and ``notes``
        says that this is a subset. All queries give the evaluation itself.

        Parameters
        ----------
        queries : iterable of ids, or array or Series of bool of shape (n_queries,)
            The queries to keep, in any order. An array of bool goes by position, in the order of
            ``queries``. A Series of bool goes by its index of query ids, which must contain every
            query and may contain more.

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
        >>> qid = ["a", "a", "b", "b", "c", "c"]
        >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=qid, measures="RR")
        >>> ev.subset(["c", "b"]).per_query["RR"].to_dict()
        {'b': 0.5, 'c': 1.0}
        >>> ev.subset(ev.per_query["RR"] < 1).n_queries
        1
        """
        return self._part(np.sort(query_places(queries, self.queries, self.excluded)))

    def _part(self, places: Ints) -> Evaluation:
        if len(places) == self.n_queries:
            return self
        queries, facts = self.queries[places], self.facts.part(places)
        weights = None if self.weights is None else self.weights[places]
        if weights is not None and not weights.any():
            ids = few(queries[:6].tolist())
            raise InvalidInput(
                f"all queries of this part have the weight 0 ({ids}), so it has no mean",
                argument="query_weight",
                remedy="leave them out first, with subset",
            )
        n_undefined = facts.undefined.sum(axis=0).tolist()
        return replace(
            self,
            queries=queries,
            scores=self.scores[places],
            excluded={},
            undefined=dict(zip(self.measure_names, n_undefined, strict=True)),
            facts=replace(facts, whole=self.facts.whole or self.n_queries),
            weights=weights,
        )

    def worst(self, n: int = 10, measure: str | Measure | None = None) -> pd.DataFrame:
        """Return the queries with the worst scores that a ranking can change, the worst first.

        A query is left out if no order of its documents changes its score by this measure: none is
        relevant, or all ranked rows are equally relevant and there are no others. A query of weight
        0 is left out too, since it cannot change the mean.

        Parameters
        ----------
        n : int
            How many queries; all if there are fewer.
        measure : str or Measure, optional
            One of the measures; by default the first. If lower is better (ARP), the highest scores
            are the worst.

        Returns
        -------
        DataFrame of shape (n, n_measures + 4)
            Index ``qid``; the columns of ``per_query``, then those of ``query_counts``. Queries
            with equal scores are in ascending order of their ids. ``attrs["left_out"]`` is the
            number of queries that were left out, and ``attrs["note"]`` a sentence that says why.

        Raises
        ------
        InvalidInput
            If ``n`` is not a whole number of at least 1, or ``measure`` names several.
        UnknownName
            If the measure is not one of this evaluation.

        Examples
        --------
        >>> import rankeval as rk
        >>> qid = ["a", "a", "b", "b", "c", "c"]
        >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=qid, measures="RR")
        >>> ev.worst(2)[["RR", "relevant", "retrieved"]].reset_index().values.tolist()
        [['b', 0.5, 1, 2], ['a', 1.0, 1, 2]]
        """
        check_count("n", n)
        names = self.measure_names
        labels = names[:1] if measure is None else labels_of(measure, names)
        if len(labels) > 1:
            raise InvalidInput(f"measure means {', '.join(labels)}", remedy="name one of them")
        places = worst_first(self, labels[0])
        frame = self.per_query.assign(**self.facts.query_counts).iloc[places[:n]]
        frame.attrs["left_out"] = self.n_queries - len(places)
        frame.attrs["note"] = left_out_of_worst(self, labels[0])
        return frame

    def slices(self, by: Any, *, confidence_level: float | None = None) -> pd.DataFrame:
        """Return the aggregates for each value of an attribute of the queries.

        Parameters
        ----------
        by : Series or mapping by query id, DataFrame, array, or str
            The attribute. A Series, mapping or DataFrame may have more queries. A DataFrame has
            query ids as its index or as a column ``qid``, and gives a row for each combination of
            its columns. An array goes by position, in the order of ``queries``. An attribute may
            also have a value for each evaluated row, equal within a query: ``log.market``, in the
            order of the rows, or ``log.market.set_axis(log.qid)`` in any other order and for
            evaluations that were loaded. A str names one of ``query_counts``. Cut a number with
            many values into classes first (``pandas.cut``, ``pandas.qcut``).
        confidence_level : float, optional
            Between 0 and 1: adds the limits of ``ci`` for each mean of each slice. If there are
            many slices, one is likely to look unusual by chance.

        Returns
        -------
        DataFrame of shape (n_slices, n_measures + 1)
            Index: the values, ascending, named as the attribute; queries without a value are the
            slice nan. Columns: ``n_queries``, and each measure's declared aggregate (followed by
            ``<measure> ci_low`` and ``<measure> ci_high`` if asked for). A row has the numbers of
            the `subset` of its queries.

        Raises
        ------
        QueryIdError
            If no id is common, an id is repeated, or the number of values does not fit.
        InvalidInput
            If the values cannot be grouped, the level is not between 0 and 1, or the weights of a
            slice are all 0.
        UnknownName
            If there is no such count.

        Examples
        --------
        >>> import rankeval as rk
        >>> qid = ["a", "a", "b", "b", "c", "c"]
        >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=qid, measures="RR")
        >>> ev.slices({"a": "short", "b": "long", "c": "long"}).reset_index().values.tolist()
        [['long', 2, 0.75], ['short', 1, 1.0]]
        """
        import pandas as pd

        values, places = slices_of(by, self.queries, self.facts.query_counts, self.facts.rows)
        rows = [_row(self._part(queries), confidence_level) for queries in places]
        return pd.DataFrame(rows, index=values)

    def save(self, path: str | Path) -> None:
        """Write the evaluation to one Parquet file with a checksum, replaced atomically.

        Parameters
        ----------
        path : path
            The file.

        Raises
        ------
        InvalidInput
            If the folder does not exist or cannot be written to, or the disk is full.
        """
        write_atomically(path, [to_bytes(self)])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Evaluation:
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
            If the file does not exist, is of another kind, or was altered after it was saved.

        Examples
        --------
        >>> import tempfile
        >>> import rankeval as rk
        >>> path = f"{tempfile.mkdtemp()}/ridge.parquet"
        >>> rk.evaluate([1, 0], [0.5, 0.1], qid=["a", "a"], measures="RR").save(path)
        >>> rk.Evaluation.load(path).per_query["RR"].to_dict()
        {'a': 1.0}
        """
        return from_bytes(read_bytes(path), str(path))

    def record(
        self,
        *,
        role: str = "dev",
        data: LoggedData | RankingData | str | None = None,
        step: int | None = None,
        note: str = "",
        slices: Any = None,
    ) -> Record:
        """Return the evaluation in plain values, from which folders, runs and pages are made.

        Parameters
        ----------
        role : str, default "dev"
            The role of its data: "train", "dev", "test" or another plain word.
        data : LoggedData, RankingData or str, optional
            The data set, or its name. The digest of the judgments identifies it in any case.
        step : int, optional
            The epoch or other step of training.
        note : str
            A sentence that a reader should see first.
        slices : Series, mapping, DataFrame, array or str, optional
            An attribute of the queries, as in `slices`: the means of each of its values are a table
            of the record.

        Returns
        -------
        Record
            ``metrics`` are the aggregates by the keys of their measures, with the ends of their 95
            % intervals.

        Raises
        ------
        InvalidInput
            If the role is not a plain word, the data set has another role, or the step is not a
            whole number from 0.
        """
        at = whole_number(step)
        is_step = step is None or (at is not None and 0 <= at < 2**31)
        require(is_step, "step", step, "a whole number such as the epoch, 0 or greater")
        logged = data_of(self, checked_word(role, "role"), data)
        first, card = self.measure_names[0], self.convention.card()
        params = {"system": self.name} if self.name else {}
        params |= {"measure": first, "convention": card["name"], "data": logged.name, "role": role}
        facts = {
            "role": role,
            "step": at,
            "n_queries": self.n_queries,
            "n_telling": len(worst_first(self, first)),
            "left_out": left_out_of_worst(self, first),
            "system": self.name,
            "measures": {measure.key: str(measure) for measure in self.measures},
            "convention": card,
            "judgments": self.judgments_digest,
            "ranking": self.ranking_digest,
        }
        limits = intervals(self)
        described = _described(self, role, at, limits)
        values = [f"{name} {number(value)}" for name, value in aggregates(self).items()]
        tables: dict[str, Any] = {}
        worst: list[str] = []
        if slices is not None:
            tables["slices"] = table_of_slices(self, slices)
            worst = [worst_slice(tables["slices"], self)]
        if self.seeds is not None:
            tables["seeds"] = self.seeds
        tags = {"card": f"{card['name']} {digest_of(card)}"}
        return Record(
            kind="evaluation",
            name=self.name or f"{role} evaluation",
            headline=", ".join(values),
            params=params,
            metrics=_with_ends(self, limits),
            tables=tables,
            files={EVALUATION: to_bytes(self)},
            notes=tuple(filter(None, [note, *worst])),
            text="\n\n".join([described, *map(markdown, worst)]),
            facts=facts,
            tags=tags,
            data=(logged,),
        )

    @classmethod
    def from_record(cls, record: Record) -> Evaluation:
        """Return the evaluation of a record, the same bit for bit."""
        return from_bytes(record.files[EVALUATION])

    def _view(self) -> View:
        name = f"{self.name}: " if self.name else ""
        tied = f", {self.tied_share:.1%} of rows tied" if self.tied_share else ""
        queries = count(self.n_queries, "query")
        sentence = f"{name}{queries}, convention {self.convention.name}{tied}"
        return View([sentence], [table_of_values(self)], self.notes)


def table_of_values(evaluation: Evaluation) -> Table:
    """Return the table of the values over all queries, a row for each measure."""
    import pandas as pd

    values = aggregates(evaluation)
    return Table(pd.DataFrame({"measure": [*values], "value": [*values.values()]}))


def _row(part: Evaluation, confidence_level: float | None) -> dict[str, float]:
    limits = {} if confidence_level is None else part.ci(confidence_level).to_dict("index")
    row: dict[str, float] = {"n_queries": part.n_queries}
    for label, value in aggregates(part).items():
        row[label] = value
        if label in limits:
            row |= {f"{label} {end}": limits[label][end] for end in ("ci_low", "ci_high")}
    return row


def from_bytes(content: bytes, where: str = "") -> Evaluation:
    """Return the evaluation from the bytes of `to_bytes`, the same bit for bit."""
    return Evaluation(**unpacked_fields(content, where))


def data_of(
    evaluation: Evaluation, role: str, data: LoggedData | RankingData | str | None = None
) -> LoggedData:
    """Describe the data set of an evaluation; the digest of the judgments identifies it."""
    if isinstance(data, LoggedData):
        if data.role != role:
            roles = f"the role {data.role!r}, the evaluation {role!r}"
            raise InvalidInput(f"the data set {data.name!r} has {roles}")
        return data
    judged = evaluation.judgments_digest
    name = data.name if isinstance(data, RankingData) else data
    is_name = name is None or isinstance(name, str)
    require(is_name, "data", type(data), "its name, RankingData or LoggedData")
    if isinstance(data, RankingData):
        return LoggedData(name or "data", judged, role, len(data), data.n_queries)
    name = name or name_by_digest(judged)
    n_rows = int(evaluation.facts.query_counts["retrieved"].sum())
    return LoggedData(name, judged, role, n_rows, evaluation.n_queries)


def name_by_digest(judged: str) -> str:
    """Return the name of a data set that nobody named."""
    return f"judgments-{judged.removeprefix('sha256:')[:8]}"


def aggregates_by_key(evaluation: Evaluation) -> dict[str, float]:
    """Return the aggregates by the keys of their measures."""
    values = zip(evaluation.measures, aggregates(evaluation).values(), strict=True)
    return {measure.key: value for measure, value in values}


def _with_ends(
    evaluation: Evaluation, limits: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """Return `aggregates_by_key` with the ends of intervals."""
    # A measure of a user may have the name of an end: it stays.
    values = aggregates_by_key(evaluation)
    measures, metrics = by_name(evaluation), dict(values)
    for label, pair in limits.items():
        for end, value in zip(INTERVAL_ENDS, pair, strict=True):
            metrics[f"{measures[label].key}{end}"] = value
    if (seeds := evaluation.seeds) is not None:
        spread = zip(evaluation.measures, seeds.std().tolist(), strict=True)
        metrics |= {f"{measure.key}{SEED_END}": sd for measure, sd in spread}
    return metrics | values


def seeds_note(evaluation: Evaluation) -> str:
    """Say how far the seeds are apart; "" without seeds."""
    if (seeds := evaluation.seeds) is None:
        return ""
    if not np.ptp([*evaluation.facts.seeds.values()], axis=0).any():
        equal = f"all {len(seeds)} seeds gave equal scores"
        return f"{equal}: the estimator draws nothing at random as it is set"
    apart = ", ".join(f"{label} {sd:.2g}" for label, sd in seeds.std().items())
    return f"mean over {len(seeds)} seeds, of standard deviation {apart}"


def intervals(evaluation: Evaluation) -> dict[str, tuple[float, float]]:
    """Return label -> 95 % interval of each mean."""
    if not evaluation.n_queries:
        return {}
    limits = evaluation.ci()
    ends = zip(limits.index, limits["ci_low"], limits["ci_high"], strict=True)
    return {str(label): (float(low), float(high)) for label, low, high in ends}


def table_of_slices(evaluation: Evaluation, by: Any) -> pd.DataFrame:
    """Return `Evaluation.slices`, the worst first, with 95 % intervals."""
    table = evaluation.slices(by, confidence_level=0.95).reset_index()
    first = evaluation.measure_names[0]
    gains = table[first] * (direction(first).sign or 1)
    return worst_slices_first(table, gains, table["n_queries"])


def worst_slices_first(table: pd.DataFrame, gains: Any, sizes: Any) -> pd.DataFrame:
    """Order slices by gains; those with fewer than 5 queries, which chance moves most, come last."""
    order = np.lexsort((gains, np.asarray(sizes) < LEAST_QUERIES))
    return table.iloc[order].reset_index(drop=True)


def worst_slice(table: pd.DataFrame, evaluation: Evaluation) -> str:
    """Say which slice is the worst by the first measure."""
    worst, first = table.astype(object).iloc[0], evaluation.measure_names[0]
    name = ", ".join(map(str, worst[: table.columns.get_loc("n_queries")]))
    size = count(int(worst["n_queries"]), "query")
    return f"The worst slice is {name}: {first} {number(worst[first])} on {size}."


def _described(
    evaluation: Evaluation, role: str, step: int | None, limits: Mapping[str, tuple[float, float]]
) -> str:
    """Describe an evaluation in Markdown: aggregates and intervals of the means, with the notes."""
    import pandas as pd

    values = list(aggregates(evaluation).values())
    frame = pd.DataFrame({"measure": evaluation.measure_names, "value": values})
    if limits:
        shown = {label: interval(*pair) for label, pair in limits.items()}
        frame["95 % interval"] = [shown.get(label, "") for label in evaluation.measure_names]
    system = f"{evaluation.name}, " if evaluation.name else ""
    at = "" if step is None else f" at step {step}"
    queries = count(evaluation.n_queries, "query")
    caption = f"{system}{role}{at}: {queries}, convention {evaluation.convention.name}"
    notes = [*undefined_notes(evaluation), *info_of(evaluation).values()]
    return Table(frame, caption=caption, notes=tuple(notes)).to_markdown()


def by_name(evaluation: Evaluation) -> dict[str, Measure]:
    """Return the measures by the names asked for."""
    return dict(zip(evaluation.measure_names, evaluation.measures, strict=True))


def aggregates(evaluation: Evaluation) -> dict[str, float]:
    """Return `Evaluation.aggregate` as a dict of plain numbers; nan if there are no queries."""
    if not evaluation.n_queries:
        return dict.fromkeys(evaluation.measure_names, float("nan"))
    columns = zip(by_name(evaluation).items(), evaluation.scores.T, strict=True)
    return {
        name: float(AGGREGATES[measure.family.aggregate](values, evaluation.weights))
        for (name, measure), values in columns
    }


def aggregate_errors(evaluation: Evaluation) -> pd.Series[float]:
    """Return the standard error of each aggregate from drawn orders of tied rows, 0 if exact.

    `Evaluation.ci` covers the choice of queries instead.
    """
    import pandas as pd

    errors, weights = evaluation.facts.errors, evaluation.weights
    total = pd.Series(0.0, index=list(evaluation.measure_names), name=evaluation.name)
    if errors is not None and evaluation.n_queries:
        weights = np.ones(evaluation.n_queries) if weights is None else weights
        kinds = np.array([measure.family.aggregate for measure in evaluation.measures])
        # Each query is drawn on its own, so the squares of the errors add up.
        total += np.sqrt((weights[:, None] ** 2 * errors**2).sum(axis=0))
        total /= np.where(kinds == "sum", 1.0, weights.sum())
        # The slope of exp is its value.
        total *= np.where(kinds == "gmean", [*aggregates(evaluation).values()], 1.0)
    return total


def _draws_note(evaluation: Evaluation, drawn: NDArray[np.bool_]) -> str:
    """Say which values are means over drawn orders, and how uncertain that leaves the aggregate."""
    errors, numbers = aggregate_errors(evaluation), drawn.sum(axis=0).tolist()
    parts = []
    for (label, measure), n_drawn in zip(by_name(evaluation).items(), numbers, strict=True):
        if n_drawn:
            error = f"the {_WORDS[measure.family.aggregate]} {errors[label]:.2g}"
            parts.append(f"{label} in {count(n_drawn, 'query')} (standard error of {error})")
    orders = f"mean over {DRAWS} drawn orders of tied rows, where there were too many"
    return f"{orders}: {', '.join(parts)}"


def standard_errors(evaluation: Evaluation) -> pd.DataFrame:
    """Return the standard error of each score, shaped as ``per_query``; 0 for exact scores."""
    errors = evaluation.facts.errors
    if errors is None:
        errors = np.zeros_like(evaluation.scores)
    return replace(evaluation, scores=errors).per_query


def reading_of(evaluation: Evaluation, name: str) -> Floats:
    """Return a reading of unjudged documents, one of `facts.READINGS`: nan where it was not made.

    If all documents are judged, it is the scores themselves, and 1 for the share judged.
    """
    facts, scores = evaluation.facts, evaluation.scores
    if name in facts.readings:
        return facts.readings[name]
    whole = facts.query_counts["judged"] == facts.query_counts["retrieved"]
    return np.where(whole[:, None], np.ones_like(scores) if name == "judged" else scores, np.nan)


def info_of(evaluation: Evaluation, unit: str = "query") -> dict[str, str]:
    """Return further notes by subject, such as constant scores, drawn ties and a subset."""
    notes, facts, affected = {}, evaluation.facts, evaluation.facts.totals()
    n_ranked = int((facts.query_counts["retrieved"] > 1).sum())
    constant = affected.get("constant", 0)
    # Some tied queries are common, and no sign of a broken ranker.
    if constant and 2 * constant >= n_ranked:
        share = f"{constant:,} of {count(n_ranked, unit)}"
        notes["constant"] = f"constant scores: all rows are tied in {share}"
    if negative := affected.get("negative", 0):
        pooled = evaluation.convention.negative == "unjudged"
        documents = count(negative, "ranked document" if pooled else "document")
        meaning = "not judged" if pooled else "not relevant"
        notes["negative"] = f"{documents} with a label below zero, taken as {meaning}"
    if ids := _ids_note(evaluation):
        notes["ids"] = ids
    if "rank" in facts.signs:
        notes["rank"] = _AGAINST_RANK
    for subject in facts.signs.keys() & {"clicks", "reading"}:
        notes[subject] = "; ".join(facts.signs[subject])
    if "sampled" in facts.signs:
        notes["sampled"] = sampled_note(evaluation)
    if facts.drawn is not None:
        notes["ties"] = _draws_note(evaluation, facts.drawn)
    if evaluation.weights is not None:
        notes["weights"] = weights_note(evaluation, unit)
    if facts.seeds:
        notes["seeds"] = seeds_note(evaluation)
    if facts.whole is not None:
        notes["subset"] = f"a subset: {size_of(evaluation)}"
    return notes


def weights_note(evaluation: Evaluation, unit: str = "query") -> str:
    """Say how many queries have a weight, and how many equal ones tell as much; "" if unweighted."""
    from rankeval.significance.weighted import effective_number

    if (weights := evaluation.weights) is None:
        return ""
    counted = weights[weights > 0]
    if not len(counted):
        return f"all {plural(unit)} have the weight 0"
    share = f"{len(counted):,} of {count(len(weights), unit)}"
    return f"weighted: {share} weigh more than 0, effective number {effective_number(counted):,.0f}"


def faults_of(evaluation: Evaluation, unit: str = "query") -> list[str]:
    """Return the notes on possible mistakes, which go wherever the numbers go."""
    notes = info_of(evaluation, unit)
    subjects = "constant", "ids", "rank", "clicks", "reading"
    return [notes[subject] for subject in subjects if subject in notes]


def sampled_note(evaluation: Evaluation) -> str:
    """Say that lists have a sample of the items; "" if they do not."""
    if "sampled" not in evaluation.facts.signs:
        return ""
    n_sampled, n_items = evaluation.facts.signs["sampled"]
    return (
        f"lists have {n_sampled} sampled of {n_items} items: the numbers are not those of a ranking "
        "of all items, and the order of systems may be another one there; "
        "rk.analysis.corrected_for_sampling estimates it"
    )


def _ids_note(evaluation: Evaluation) -> str:
    """Say that hardly any retrieved document is judged, with the likely cause; "" if many are."""
    facts = evaluation.facts
    n_judged = int(facts.query_counts["judged"].sum())
    n_retrieved = n_judged + int(facts.rule_counts.get("unjudged", np.zeros(0)).sum())
    if "ids" not in facts.signs or FEW * n_judged > n_retrieved:
        return ""
    run, qrels, cause = facts.signs["ids"]
    judged = f"only {n_judged:,}" if n_judged else "none"
    found = f"{judged} of {count(n_retrieved, 'retrieved document')} are judged"
    return f"{found}; the run has {shown(run)}, the qrels have {shown(qrels)}{advice(cause)}"


def size_of(evaluation: Evaluation, unit: str = "query") -> str:
    """Return the number of queries in words: "40 queries", or "7 of 40 queries" for a subset."""
    whole = evaluation.facts.whole
    part = "" if whole is None else f"{evaluation.n_queries:,} of "
    return part + count(whole or evaluation.n_queries, unit)


def worst_first(evaluation: Evaluation, label: str) -> Ints:
    """Return the places of the queries with weight that a ranking can change, the worst first."""
    facts, column = evaluation.facts, evaluation.measure_names.index(label)
    measure, values = evaluation.measures[column], evaluation.scores[:, column]
    sign = 1 if measure.family.greater_is_better else -1
    # Queries are in ascending order, and a stable sort keeps it among equal scores.
    places = np.argsort(sign * values, kind="stable")
    by_rows = evaluation.convention.judgments == "rows"
    is_fixed = fixed(measure, facts, facts.undefined[:, column], values, by_rows=by_rows)
    return places[~(is_fixed | _weightless(evaluation))[places]]


def _weightless(evaluation: Evaluation) -> NDArray[np.bool_]:
    """Return a mask of the queries of weight 0, which cannot change a mean."""
    if evaluation.weights is None:
        return np.zeros(evaluation.n_queries, dtype=np.bool_)
    return np.asarray(evaluation.weights == 0)


def left_out_of_worst(evaluation: Evaluation, label: str) -> str:
    """Return the sentence on the queries that `worst_first` leaves out; "" if there are none."""
    weightless = int(_weightless(evaluation).sum())
    fixed_ones = evaluation.n_queries - len(worst_first(evaluation, label)) - weightless
    reasons = {"whose score no ranking changes": fixed_ones, "of weight 0": weightless}
    parts = [f"{count(number, 'query')} {why}" for why, number in reasons.items() if number]
    return f"Left out: {' and '.join(parts)}." if parts else ""
