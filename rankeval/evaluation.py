"""evaluate -> Evaluation: refuse, join, score, wrap."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval.collection.convention import CHOICES, Convention
from rankeval.collection.convention import convention as find_convention
from rankeval.collection.grouping import sizes_to_ids
from rankeval.collection.join import Joined, join_arrays
from rankeval.collection.judged import Groups, Judged
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.measures import Measure, measure
from rankeval.measures import measures as parse_measures
from rankeval.measures.family import AGGREGATES

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run

Floats = NDArray[np.float64]
MeasureSpec = str | Measure
Specs = MeasureSpec | Iterable[MeasureSpec]

DEFAULT_MEASURES = ("nDCG@10", "AP", "RR")
FACTS = ("relevant", "retrieved", "tied", "judged")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The scores of one ranking, query by query, with the convention that made them.

    Attributes
    ----------
    queries : ndarray of shape (n_queries,)
        Query ids in ascending order.
    labels : tuple of str
        The measures under the names asked for.
    measures : tuple of Measure
        The same, with the parameters that the convention bound.
    scores : ndarray of shape (n_queries, n_measures)
        One value per query and measure.
    convention : Convention
        The resolved card.
    facts : mapping of str to ndarray of shape (n_queries,)
        ``relevant``, ``retrieved``, ``tied``, ``judged``: numbers of documents per query; tied and judged ones are
        among the retrieved.
    touched : mapping of str to int
        How many rows or queries each rule of the convention had a say in.
    excluded : mapping of str to tuple
        Reason -> the ids of the queries that were left out.
    undefined : mapping of str to int
        Measure -> number of queries whose value was 0/0 and counts as the convention says.
    judgments_digest, ranking_digest : str
        SHA-256 of what was judged, and of what the measures saw of the ranking.
    weights : ndarray of shape (n_queries,), optional
        Query weights.
    name : str, optional
        Name of the system.
    """

    queries: NDArray[Any]
    labels: tuple[str, ...]
    measures: tuple[Measure, ...]
    scores: Floats
    convention: Convention
    facts: Mapping[str, NDArray[np.int64]]
    touched: Mapping[str, int]
    excluded: Mapping[str, tuple[Any, ...]]
    undefined: Mapping[str, int]
    judgments_digest: str
    ranking_digest: str
    weights: Floats | None = None
    name: str | None = None
    info: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_queries(self) -> int:
        """Number of queries that count."""
        return len(self.queries)

    @property
    def per_query(self) -> pd.DataFrame:
        """One row per query (index ``qid``), one column per measure under the name asked for."""
        import pandas as pd

        return pd.DataFrame(
            self.scores, index=pd.Index(self.queries, name="qid"), columns=list(self.labels), copy=False
        )

    def aggregate(self) -> pd.Series[float]:
        """Return every measure by its declared aggregate.

        Returns
        -------
        Series
            Index of measure names; means, sums or geometric means of the queries, weighted if there are weights.
        """
        return self._series(lambda _: True)

    def mean(self) -> pd.Series[float]:
        """Return the measures that are means, as a Series."""
        return self._series(lambda aggregate: aggregate == "mean")

    def _series(self, wanted: Callable[[str], bool]) -> pd.Series[float]:
        import pandas as pd

        values = {
            label: AGGREGATES[one.family.aggregate](self.scores[:, column], self.weights) if self.n_queries else np.nan
            for column, (label, one) in enumerate(zip(self.labels, self.measures, strict=True))
            if wanted(one.family.aggregate)
        }
        return pd.Series(values, name=self.name, dtype=np.float64)

    def ci(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return a confidence interval for each measure that is a mean, by Student's t over queries.

        Parameters
        ----------
        confidence_level : float
            Between 0 and 1.

        Returns
        -------
        DataFrame
            Index of measure names, columns mean, ci_low, ci_high; nan limits with fewer than two queries. The
            interval is of the mean over such queries; it is not cut to the measure's bounds.

        Raises
        ------
        InvalidInput
            When the level is not between 0 and 1, or the queries have weights.
        """
        import pandas as pd
        from scipy import stats

        if not 0 < confidence_level < 1:
            raise InvalidInput(
                f"confidence_level is {confidence_level}; expected a number between 0 and 1, such as 0.95"
            )
        if self.weights is not None:
            raise InvalidInput("ci: no interval is given for weighted means; resample the weighted queries instead")
        means = self.mean()
        values = self.scores[:, [self.labels.index(label) for label in means.index]]
        n_queries = len(values)
        if n_queries > 1:
            spread = values.std(axis=0, ddof=1) / np.sqrt(n_queries)
            half = spread * stats.t.ppf((1 + confidence_level) / 2, n_queries - 1)
        else:
            half = np.full(len(means), np.nan)
        return pd.DataFrame({"mean": means, "ci_low": means - half, "ci_high": means + half})

    @property
    def tied_share(self) -> float:
        """Share of the retrieved rows whose score another row of their query has too."""
        return self._share("tied")

    @property
    def judged_share(self) -> float:
        """Share of the retrieved rows that have a judgment."""
        return self._share("judged")

    def _share(self, fact: str) -> float:
        retrieved = int(self.facts["retrieved"].sum())
        return float(self.facts[fact].sum() / retrieved) if retrieved else 0.0

    def renamed(self, name: str | None) -> Evaluation:
        """Return the evaluation under another system name."""
        return replace(self, name=name)

    def differs_from(self, other: Evaluation) -> list[str]:
        """Say in which rules and judgments two evaluations differ.

        Parameters
        ----------
        other : Evaluation
            The one to compare with.

        Returns
        -------
        list of str
            One sentence each; empty when their numbers may be compared. A rule that touched no row in either does
            not differ.
        """
        differences = []
        for rule in [*CHOICES, "depth"]:
            mine, theirs = getattr(self.convention, rule), getattr(other.convention, rule)
            touched = self.touched.get(rule, 0) + other.touched.get(rule, 0)
            if mine != theirs and touched:
                differences.append(f"{rule} is {mine!r} in one and {theirs!r} in the other")
        mine_bound = dict(zip(self.labels, self.measures, strict=True))
        for label, one in zip(other.labels, other.measures, strict=True):
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
            Columns qid, the measures and the facts; the card and all else in the schema's metadata.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns: dict[str, Any] = {"qid": pa.array(self.queries.tolist())}
        columns |= {f"measure:{label}": self.scores[:, place] for place, label in enumerate(self.labels)}
        columns |= {f"fact:{fact}": self.facts[fact] for fact in FACTS}
        if self.weights is not None:
            columns["weight"] = self.weights
        card = {
            "convention": self.convention.card(),
            "labels": self.labels,
            "measures": [str(one) for one in self.measures],
            "touched": dict(self.touched),
            "excluded": {reason: list(ids) for reason, ids in self.excluded.items()},
            "undefined": dict(self.undefined),
            "judgments_digest": self.judgments_digest,
            "ranking_digest": self.ranking_digest,
            "name": self.name,
            "info": dict(self.info),
            "qid_dtype": self.queries.dtype.str,
        }
        table = pa.table(columns).replace_schema_metadata({"rankeval.evaluation": json.dumps(card, default=_plain)})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        return bytes(sink.getvalue().to_pybytes())

    @classmethod
    def from_bytes(cls, content: bytes) -> Evaluation:
        """Return the evaluation that `to_bytes` gave.

        Parameters
        ----------
        content : bytes
            A Parquet file.

        Raises
        ------
        InvalidInput
            When it is no such file.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(pa.BufferReader(content))
            card = json.loads((table.schema.metadata or {})[b"rankeval.evaluation"])
        except (pa.ArrowInvalid, KeyError) as error:
            raise InvalidInput(f"expected a Parquet file that Evaluation.save wrote; found another ({error})") from None
        rules = card["convention"]
        labels = tuple(card["labels"])
        queries = (
            table["qid"].to_numpy() if card["qid_dtype"] != "|O" else np.array(table["qid"].to_pylist(), dtype=object)
        )
        return cls(
            queries=queries.astype(card["qid_dtype"]),
            labels=labels,
            measures=tuple(measure(name) for name in card["measures"]),
            scores=np.column_stack([table[f"measure:{label}"].to_numpy() for label in labels]),
            convention=Convention(**rules),
            facts={fact: table[f"fact:{fact}"].to_numpy() for fact in FACTS},
            touched=card["touched"],
            excluded={reason: tuple(ids) for reason, ids in card["excluded"].items()},
            undefined=card["undefined"],
            judgments_digest=card["judgments_digest"],
            ranking_digest=card["ranking_digest"],
            weights=table["weight"].to_numpy() if "weight" in table.column_names else None,
            name=card["name"],
            info=card["info"],
        )

    def save(self, path: str | Path) -> None:
        """Write the evaluation to one Parquet file, replaced atomically.

        Parameters
        ----------
        path : path
            Where to.
        """
        target = Path(path)
        partial = target.with_name(f".{target.name}.{os.getpid()}.part")
        partial.write_bytes(self.to_bytes())
        partial.replace(target)

    @classmethod
    def load(cls, path: str | Path) -> Evaluation:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path
            The file.

        Raises
        ------
        InvalidInput
            When it is another kind of file.
        """
        return cls.from_bytes(Path(path).read_bytes())

    def __repr__(self) -> str:
        values = ", ".join(f"{label}={value:.4f}" for label, value in self.aggregate().items())
        name = f"{self.name!r}, " if self.name else ""
        return f"Evaluation({name}{self.n_queries} queries, {values}; {self.convention.name})"

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(str(label))}</th><td>{value:.4f}</td></tr>"
            for label, value in self.aggregate().items()
        )
        notes = [
            f"{self.n_queries} queries",
            f"convention {self.convention.name}",
            f"{self.tied_share:.1%} of rows tied",
        ]
        notes += [f"{len(ids)} queries left out: {reason}" for reason, ids in self.excluded.items()]
        notes += [f"{label}: {number} queries 0/0" for label, number in self.undefined.items() if number]
        caption = escape("; ".join(notes))
        return f"<table><caption>{escape(self.name or 'Evaluation')}</caption>{rows}</table><small>{caption}</small>"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def evaluate(
    truth: Any,
    ranking: Any,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    measures: Specs = DEFAULT_MEASURES,
    convention: str | Convention = "rankeval",
    ties: str | None = None,
    missing: str | None = None,
    no_relevant: str | None = None,
    judgments: str | None = None,
    weights: Any | None = None,
    name: str | None = None,
) -> Evaluation:
    """Score a ranking against judgments, query by query.

    Parameters
    ----------
    truth, ranking : array of shape (n_rows,), or Qrels and Run, dicts, frames, paths
        Relevance and score of each row, with ``qid=`` or ``group=``, rows in any order; or a collection's judgments
        and a run, without.
    qid : array of shape (n_rows,), optional
        The query of each row, ids of any type.
    group : array of shape (n_queries,), optional
        Instead of ``qid``: the number of rows of each query, in row order.
    docid : array of shape (n_rows,), optional
        The document of each row; only ``ties="docid"`` reads it.
    measures : str, Measure or iterable of them
        What to compute.
    convention : str or Convention
        The rules by which truth and ranking are joined and queries count: a preset's name or your own.
    ties, missing, no_relevant, judgments : str, optional
        Single rules; None leaves them as the convention says. See `Convention`.
    weights : mapping or Series by query id, or array of shape (n_rows,), optional
        Query weights; a row-wise array must be constant within a query.
    name : str, optional
        Name of the system; a run's own name if it has one.

    Returns
    -------
    Evaluation

    Raises
    ------
    InvalidInput
        When the data cannot be evaluated: the message says what, where and what to do.
    UnknownName
        For a measure, convention or rule that does not exist.
    GuardRefusal
        When the content is registered with a guard and this ranking was not opened.

    Examples
    --------
    >>> ev = evaluate([1, 0, 0, 1], [0.9, 0.2, 0.3, 0.1], qid=["a", "a", "b", "b"], measures=["RR", "P@1"])
    >>> ev.per_query["RR"].tolist()
    [1.0, 0.5]
    """
    from rankeval.seals.refusal import Seals

    rules = find_convention(convention).with_rules(
        ties=ties, missing=missing, no_relevant=no_relevant, judgments=judgments
    )
    if qid is not None or group is not None:
        if judgments == "qrels":
            raise InvalidInput("judgments='qrels' needs a collection (qrels and run); arrays hold the ranked rows only")
        ids = _ids(qid, group, len(np.asarray(ranking)))
        parse_measures(measures)  # a misspelt name is said before anything is read or hashed
        Seals.current().refuse(None, truth, ids, docid=docid, score=ranking, action="evaluate")
        return score_arrays(
            truth, ranking, ids, docid=docid, measures=measures, convention=rules, weights=weights, name=name
        )
    from rankeval.collection.qrels import as_qrels
    from rankeval.collection.run import as_run

    if not _is_collection(truth):
        raise QueryIdError(
            "qid= is missing: arrays need the query of each row (qid=) or the group sizes (group=); "
            "a collection is given as Qrels and Run, dicts, frames or paths"
        )
    parse_measures(measures)
    qrels, run = as_qrels(truth), as_run(ranking)
    Seals.current().refuse_collection(qrels, run, action="evaluate")
    return score_collection(qrels, run, measures=measures, convention=rules, weights=weights, name=name)


def _is_collection(truth: Any) -> bool:
    if isinstance(truth, (str, os.PathLike, Mapping)) or hasattr(truth, "relevance"):
        return True
    return getattr(truth, "ndim", 2) == 2 and (hasattr(truth, "columns") or hasattr(truth, "__arrow_c_stream__"))


def _ids(qid: ArrayLike | None, group: ArrayLike | None, n_rows: int) -> Any:
    if qid is None:
        return sizes_to_ids(group, n_rows)  # type: ignore[arg-type]
    if group is not None:
        given, sizes = np.asarray(qid), sizes_to_ids(group, n_rows)
        if len(given) != n_rows or not _same_partition(given, sizes):
            raise QueryIdError("qid= and group= cut the rows into different queries; give one of them")
    return qid


def _same_partition(ids: NDArray[Any], sizes: NDArray[np.int64]) -> bool:
    return bool(((ids[1:] != ids[:-1]) == (sizes[1:] != sizes[:-1])).all())


def score_arrays(
    y: ArrayLike,
    score: ArrayLike,
    qid: ArrayLike,
    *,
    measures: Specs = DEFAULT_MEASURES,
    convention: str | Convention = "rankeval",
    docid: ArrayLike | None = None,
    weights: Any | None = None,
    name: str | None = None,
) -> Evaluation:
    """Score arrays without asking the guard: for callers that have asked.

    Parameters
    ----------
    y, score, qid, measures, convention, docid, weights, name
        As of `evaluate`.

    Returns
    -------
    Evaluation
    """
    joined = join_arrays(y, score, qid, docid=docid, convention=find_convention(convention))
    return _score(joined, measures, _query_weights(weights, joined), name)


def score_collection(
    qrels: Qrels,
    run: Run,
    *,
    measures: Specs = DEFAULT_MEASURES,
    convention: str | Convention = "rankeval",
    weights: Any | None = None,
    name: str | None = None,
) -> Evaluation:
    """Score a run without asking the guard: for callers that have asked.

    Parameters
    ----------
    qrels : Qrels
        The judgments.
    run : Run
        The ranking.
    measures, convention, weights, name
        As of `evaluate`.

    Returns
    -------
    Evaluation
    """
    from rankeval.collection.judgments import join_collection

    joined = join_collection(qrels, run, convention=find_convention(convention))
    return _score(joined, measures, _query_weights(weights, joined), name or run.name)


def _query_weights(weights: Any | None, joined: Joined) -> Floats | None:
    """Return one weight a query, from a mapping, or from one a row."""
    if weights is None:
        return None
    if isinstance(weights, Mapping) or hasattr(weights, "index"):
        known = dict(weights.items())
        lacking = [query for query in joined.queries.tolist() if query not in known]
        if lacking:
            raise InvalidInput(f"weights: query {lacking[0]!r} has none ({len(lacking)} such in all)")
        values = np.array([known[query] for query in joined.queries.tolist()], dtype=np.float64)
    else:
        rows = np.asarray(weights, dtype=np.float64)
        if len(rows) != len(joined.score):
            raise InvalidInput(
                f"weights: expected one a row ({len(joined.score)}) or a mapping by query, found {len(rows)}"
            )
        rows = rows if joined.order is None else rows[joined.order]
        filled = joined.offsets[:-1][np.diff(joined.offsets) > 0]
        values = rows[filled]
        if (np.maximum.reduceat(rows, filled) != np.minimum.reduceat(rows, filled)).any():
            raise InvalidInput("weights: found several within one query; a query has one weight, repeated on its rows")
    if not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        raise InvalidInput("weights: expected finite numbers, none below 0 and not all 0")
    return values


def _score(joined: Joined, specs: Specs, weights: Floats | None, name: str | None) -> Evaluation:
    """Score every chunk and wrap the result."""
    asked = parse_measures(specs)
    bound = [one.bound(joined.convention.bind) for _, one in asked]
    scores = np.empty((joined.n_queries, len(bound)))
    facts = {fact: np.zeros(joined.n_queries, dtype=np.int64) for fact in FACTS}
    identity = np.zeros(joined.n_queries, dtype=np.uint64)
    ranked = joined.digest_of_queries()
    for queries, judged, ties in joined.chunks():
        for column, one in enumerate(bound):
            scores[queries, column] = one.values(judged)
        _note_facts(facts, queries, judged, ties)
        identity[queries] = _label_sums(judged)
        ranked.update(judged.offsets.tobytes())
        ranked.update(np.asarray(judged.levels, dtype=np.float64).tobytes())
        ranked.update(judged.code)
        for part in judged.groups:
            ranked.update(part.tobytes())
    judgments = joined.digest_of_queries()
    judgments.update(identity if joined.identity is None else joined.identity)

    evaluation = Evaluation(
        queries=joined.queries,
        labels=tuple(label for label, _ in asked),
        measures=tuple(bound),
        scores=scores,
        convention=joined.convention,
        facts=facts,
        touched=dict(joined.touched),
        excluded=joined.excluded,
        undefined={},
        judgments_digest=judgments.hexdigest(),
        ranking_digest=ranked.hexdigest(),
        weights=weights,
        name=name,
    )
    return _settle_undefined(evaluation)


def _note_facts(facts: dict[str, NDArray[np.int64]], queries: slice, judged: Judged, ties: Groups) -> None:
    facts["relevant"][queries] = (judged.counts * (judged.levels > 0)).sum(axis=1)
    facts["retrieved"][queries] = judged.n_retrieved
    tied = np.bincount(ties.query, weights=ties.end - ties.start, minlength=judged.n_queries)
    facts["tied"][queries] = tied.astype(np.int64)
    if judged.judged is None:
        facts["judged"][queries] = judged.n_retrieved
    else:
        sums = np.concatenate(([0], np.cumsum(judged.judged)))
        facts["judged"][queries] = sums[judged.offsets[1:]] - sums[judged.offsets[:-1]]


def _label_sums(judged: Judged) -> NDArray[np.uint64]:
    """Return a number for each query's labels that does not depend on the order of rows or on the chunk."""
    label = np.asarray(judged.levels, dtype=np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (label ^ np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(29)
        total: NDArray[np.uint64] = (judged.counts.astype(np.uint64) * (mixed * np.uint64(0xC4CEB9FE1A85EC53))).sum(
            axis=1
        )
    return total


def _settle_undefined(evaluation: Evaluation) -> Evaluation:
    """Give 0/0 the value that the convention says, count it, and leave out queries where it says so."""
    rule = evaluation.convention.no_relevant
    barren = evaluation.facts["relevant"] == 0
    nothing = np.isnan(evaluation.scores)
    undefined = dict(zip(evaluation.labels, nothing.sum(axis=0).tolist(), strict=True))
    if nothing.any():
        evaluation.scores[nothing] = 0.0
        if rule == "one":
            evaluation.scores[nothing & barren[:, None]] = 1.0
    touched = {**evaluation.touched, "no_relevant": int(barren.sum())}
    settled = replace(evaluation, undefined=undefined, touched=touched)
    if rule != "skip" or not barren.any():
        return settled
    keep = ~barren
    return replace(
        settled,
        queries=settled.queries[keep],
        scores=settled.scores[keep],
        facts={fact: values[keep] for fact, values in settled.facts.items()},
        weights=None if settled.weights is None else settled.weights[keep],
        excluded={**settled.excluded, "no relevant document": tuple(settled.queries[barren].tolist())},
    )
