"""evaluate on Spark: choose the columns, cut the rows by query, score each partition, decide, wrap.

    df -> columns -> repartition by query -> one part a partition, kept -> notes and evidence at the
    driver -> result

The trap is a query cut in two, whose halves would be scored as two queries. `repartition` by a
number and the query's column sends all rows of a query to one partition, and adaptive execution
leaves such a shuffle as it is: it cuts partitions of joins and of the hint REBALANCE only. `merged`
refuses a query that stands in two parts.

The rows are kept once they are computed, whatever happens later to the data that they were computed
from. `DataFrame.persist` cannot do it: it keeps plans, and takes two reads of one path for the same
plan, although the files changed between them. So a second call would get the parts of the first. A
write of Spark to the path, and `clearCache`, throw such plans away, and their rows are computed
again from other data. An RDD is kept for itself.

The result has scores that stay on the cluster, and an `Evaluation` for the driver.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from rankeval import __version__
from rankeval._arguments import explained
from rankeval._checks import check_count
from rankeval._source import install
from rankeval.collection.convention import Convention, get_convention
from rankeval.contamination.streamed import StreamedCheck
from rankeval.errors import InvalidInput
from rankeval.evaluation import DEFAULT_MEASURES, Evaluation, from_bytes
from rankeval.evaluation.by_query import refuse_weights
from rankeval.evaluation.front_door import columns_read
from rankeval.evaluation.merging import merged
from rankeval.evaluation.scoring import bound_measures, warned_if_empty
from rankeval.join.joined import column_role
from rankeval.measures import Measure
from rankeval.measures import measures as parse_measures
from rankeval_spark.parts import PART, Note, PartScores, PartScoring, as_raised, score_columns
from rankeval_spark.rows import chosen_columns, partitioned_by_query, refuse_gaps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame


_SPARK_TYPES = {pa.float64(): "double", pa.int64(): "long", pa.string(): "string"}

OLDEST = (4, 0)
"""The oldest Spark that the tests run on."""

ROWS = 1_500_000
"""Rows in a partition: enough to pay for its start, few enough for the memory of any executor."""

_LEAST_ROWS = 100_000
_BYTES_A_ROW = 12  # of the columns of an evaluation, in Parquet


class SparkEvaluation:
    """The evaluation of the rows of a DataFrame. `rankeval_spark.evaluate` makes it.

    The executors keep the parts of the evaluation, one a partition, until `release`, so that
    neither `scores` nor `evaluation` scores anything again. If an executor is lost, Spark scores
    its partitions again.

    Parameters
    ----------
    parts : DataFrame
        The parts, which are kept.
    columns : mapping of str to str
        Columns of a part's table -> those of `scores`.
    text_ids : bool
        Whether ids of queries are texts.
    forget : callable
        Makes the executors forget them.

    Examples
    --------
    >>> with rankeval_spark.evaluate(df, qid="qid", relevance="label", score="score") as result:  # doctest: +SKIP
    ...     result.scores.write.parquet("scores")
    ...     result.evaluation.aggregate()
    """

    def __init__(
        self,
        parts: DataFrame,
        columns: dict[str, str],
        *,
        text_ids: bool,
        forget: Callable[[], Any],
    ) -> None:
        self._parts: DataFrame | None = parts
        self._columns = columns
        self._forget = forget
        whole = {"qid": pa.string() if text_ids else pa.int64()}
        kinds = (pa.int64() if name.startswith("count:") else pa.float64() for name in columns)
        self._schema = pa.schema(
            [
                (name, whole.get(name, kind))
                for name, kind in zip(columns.values(), kinds, strict=True)
            ]
        )

    @property
    def scores(self) -> DataFrame:
        """The scores as a DataFrame of Spark: a row a query that counts.

        Columns: ``qid`` (string or long), each measure under the name asked for, the numbers of
        documents ``relevant``, ``retrieved``, ``tied`` and ``judged``, and ``weight`` if queries
        have weights. Use it before `release`: after that, Spark scores the rows again each time
        that the frame is used.
        """
        from pyspark.sql.types import StructType

        fields = StructType()
        for field in self._schema:
            fields = fields.add(field.name, _SPARK_TYPES[field.type])
        kept = self._kept.select("part")
        return kept.mapInArrow(PartScores(self._columns, self._schema).rows, fields)

    @cached_property
    def evaluation(self) -> Evaluation:
        """The evaluation, collected to the driver when it is first asked for: bit for bit that of `rankeval.evaluate`.

        It holds about 100 bytes a query and 8 a score.
        """
        parts = self._kept.select("part").toArrow()["part"]
        return warned_if_empty(merged(from_bytes(part.as_py()) for part in parts))

    @property
    def _kept(self) -> DataFrame:
        if self._parts is None:
            raise InvalidInput(
                "this result was released",
                remedy="ask for .scores and .evaluation before release()",
            )
        return self._parts

    def release(self) -> None:
        """Let the executors forget the parts.

        An `evaluation` that was asked for before stays. Frames of `scores` are scored again each
        time they are used.
        """
        if self._parts is None:
            return
        self._parts = None
        self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Rows on the executors, in memory or on disk; Spark computes lost ones again."""

    rows: DataFrame  # Reads them; they are computed when they are first read
    rdd: Any  # Holds them until `forget`

    @classmethod
    def of(cls, rows: DataFrame) -> KeptRows:
        """Keep rows. What they are shuffled from is computed now."""
        from pyspark import StorageLevel
        from pyspark.sql import DataFrame

        session = rows.sparkSession
        level = session.sparkContext._getJavaStorageLevel(StorageLevel.MEMORY_AND_DISK_DESER)  # noqa: SLF001
        # The JVM's own RDD, since that of Python would pickle each row twice.
        frame = rows._jdf  # noqa: SLF001
        spark = session._jsparkSession  # noqa: SLF001
        rdd = frame.javaRDD().persist(level)
        return cls(DataFrame(spark.createDataFrame(rdd, frame.schema()), session), rdd)

    def forget(self) -> None:
        """Take the rows out of memory and off the disks."""
        self.rdd.unpersist()


def refuse_session(df: Any) -> None:
    """Refuse anything but a DataFrame of a classic session that is new enough."""
    try:
        import pyspark
    except ImportError:
        raise InvalidInput(
            "rankeval_spark needs PySpark, which is not installed", remedy=install("spark")
        ) from None
    oldest = ".".join(map(str, OLDEST))
    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < OLDEST:
        raise InvalidInput(
            f"this is PySpark {pyspark.__version__}; rankeval_spark needs {oldest} or newer"
        )
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        kind = f"{type(df).__module__}.{type(df).__qualname__}"
        raise InvalidInput(
            f"df: expected a DataFrame of pyspark.sql, found a {kind}; rankeval.evaluate takes arrays, frames and files"
        )
    if type(df).__module__.startswith("pyspark.sql.connect"):
        raise InvalidInput(
            "df: this DataFrame is of Spark Connect, which has no broadcasts; give one of a classic session "
            "(SparkSession.builder.master(...)), or write the rows as Parquet"
        )


def partitions_for(rows: Any) -> int:
    """Return a number of partitions for the shuffle: `ROWS` rows each, and all cores if it pays.

    Without a number Spark makes 200 of any data, since adaptive execution leaves a cached shuffle
    as it is; each costs a fifth of a second (bench_spark). The number comes from the optimizer's
    estimate of the size, which costs nothing. Estimates of joins are far too large at times, and
    some sources have none: if the estimate asks for more partitions than the session's default, the
    rows are counted.
    """
    session = rows.sparkSession
    size = int(str(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))  # noqa: SLF001 - no other way
    n_rows = size // _BYTES_A_ROW
    if n_rows > ROWS * int(session.conf.get("spark.sql.shuffle.partitions")):
        n_rows = rows.count()
    busy = min(session.sparkContext.defaultParallelism, -(-n_rows // _LEAST_ROWS))
    return int(max(1, busy, -(-n_rows // ROWS)))


@contextmanager
def executors_explained() -> Iterator[None]:
    """Say it in one sentence if the executors lack this package."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if "No module named 'rankeval" not in str(error):
            raise
        raise InvalidInput(
            "the executors of Spark cannot import rankeval: install rankeval-mlflow there, or send them its wheel "
            'under a name that ends in .zip: spark.sparkContext.addPyFile("rankeval_mlflow.zip"); if their Python is '
            "another one, name yours by the environment variable PYSPARK_PYTHON"
        ) from error


@explained
def evaluate(
    df: DataFrame,
    *,
    qid: str,
    relevance: str,
    score: str,
    docid: str | None = None,
    columns: Mapping[str, str] | Sequence[str] | str | None = None,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    convention: str | Convention = "rankeval",
    query_weight: str | None = None,
    name: str | None = None,
    partitions: int | None = None,
) -> SparkEvaluation:
    """Score the rows of a Spark DataFrame, query by query, where they lie.

    The rows are shuffled by query, and the executors score whole queries with the kernel of
    `rankeval.evaluate`. The job runs in this call; errors of the data and refusals of the guard are
    raised here. The executors need this package, with NumPy, pandas and PyArrow: install it there.
    If they have the dependencies only, send them the wheel under a name that ends in ``.zip``:
    ``spark.sparkContext.addPyFile("rankeval_mlflow.zip")``.

    Parameters
    ----------
    df : DataFrame
        One row for each ranked document, rows in any order. It is read once; if Spark cannot tell
        its size, it is counted before.
    qid, relevance, score : str
        The columns with the query of each row (text or whole numbers), its relevance and its score
        (numbers).
    docid : str, optional
        The column with the document of each row; ``ties="docid"`` reads it, and no document may
        stand twice in a query.
    columns : list of str, mapping of str to str, or str, optional
        Columns that measures read, as in `rankeval.evaluate_dataset`.
    measures : str, Measure or iterable of them
        The measures to compute.
    convention : str or Convention
        As in `rankeval.evaluate`. Its rule ``ties="stable"`` is refused, because the rows of a
        DataFrame have no order.
    query_weight : str, optional
        The column with the weight of the row's query, the same on all its rows.
    name : str, optional
        Name of the system.
    partitions : int, optional
        Number of partitions for the shuffle. By default 1.5 million rows each, or fewer if cores
        would be idle.

    Returns
    -------
    SparkEvaluation
        ``scores``, a DataFrame, and ``evaluation``, equal bit for bit to that of
        `rankeval.evaluate` on the same rows.

    Raises
    ------
    InvalidInput
        If the data cannot be evaluated, or the session is of Spark Connect or too old.
    UnknownName
        If a column, measure, convention or rule does not exist.
    GuardRefusal
        If the content is registered with a guard and this ranking was not opened.

    Examples
    --------
    >>> result = rankeval_spark.evaluate(df, qid="query", relevance="grade", score="bm25")  # doctest: +SKIP
    >>> result.scores.orderBy("nDCG@10").show(3)  # doctest: +SKIP
    >>> rankeval_mlflow.log(result.evaluation, role="dev")  # doctest: +SKIP
    """
    refuse_session(df)
    rules = get_convention(convention)
    labelled = tuple(parse_measures(measures, rules))
    bound = bound_measures([measure for _, measure in labelled], rules)
    _refuse_order_of_rows(rules)
    if partitions is not None:
        check_count("partitions", partitions)
    names = {
        "qid": qid,
        "relevance": relevance,
        "score": score,
        "docid": docid,
        "query_weight": query_weight,
    }
    names |= {
        column_role(column): name for column, name in columns_read(columns, labelled, rules).items()
    }
    rows = chosen_columns(df, names)
    check = StreamedCheck.current()
    watch = df.sparkSession.sparkContext.broadcast(check.snapshot()) if check.is_needed else None
    mapped = rules.ties in ("best", "worst") and any(measure.gain_map for measure in bound)
    scoring = PartScoring(rules, labelled, name, needs_grades=mapped, watch=watch)
    whole = partitioned_by_query(
        rows, partitions_for(rows) if partitions is None else int(partitions)
    )
    shown = score_columns([label for label, _ in labelled], query_weight is not None)
    text_ids = rows.schema["qid"].dataType.typeName() == "string"
    with ExitStack() as failing:
        if watch is not None:
            failing.callback(watch.unpersist)
        with executors_explained():
            parts = KeptRows.of(whole.mapInArrow(scoring.parts, PART))
            failing.callback(parts.forget)
            collected = parts.rows.select("note", "evidence").toArrow()
        notes: list[Note] = [json.loads(note) for note in collected["note"].to_pylist()]
        _refuse(notes, names, rules, bound)
        for evidence in collected["evidence"].to_pylist():
            check.add(None if evidence is None else pickle.loads(evidence))  # noqa: S301 - our own workers wrote it
        check.refuse(action="evaluate")
        return SparkEvaluation(parts.rows, shown, text_ids=text_ids, forget=failing.pop_all().close)


def _refuse_order_of_rows(rules: Convention) -> None:
    if rules.ties == "stable":
        raise InvalidInput(
            f"ties='stable' ({rules.name!r}): the rows of a DataFrame have no order that tied rows could keep",
            remedy="choose rk.Convention.with_rules(ties='docid') with docid=, or another rule",
        )


def _refuse(
    notes: Sequence[Note],
    names: Mapping[str, str | None],
    rules: Convention,
    bound: Sequence[Measure],
) -> None:
    if not notes:
        raise InvalidInput("the DataFrame is empty: give a row for each ranked document")
    if other := {note["version"] for note in notes} - {__version__}:
        raise InvalidInput(
            f"rankeval is version {__version__} at the driver and {', '.join(sorted(other))} at executors; install the "
            "same one"
        )
    refuse_gaps([note["gaps"] for note in notes if "gaps" in note], names)
    for note in notes:
        if "error" in note:
            raise as_raised(note)
    if not any(note["weighs"] for note in notes):
        refuse_weights(np.zeros(1))
    grades = np.unique([grade for note in notes for grade in note["grades"]])
    for measure in bound:
        measure.refuse_falling_gains(rules.ties, grades)
