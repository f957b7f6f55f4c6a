"""The result of an evaluation on Spark: scores that stay on the cluster, and an `Evaluation` for the driver."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from rankeval.errors import InvalidInput
from rankeval.evaluation.merging import merged
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.scoring import warned_if_empty
from rankeval_spark.parts import PartScores

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
_SPARK_TYPES = {pa.float64(): "double", pa.int64(): "long", pa.string(): "string"}


class SparkEvaluation:
    """The evaluation of the rows of a DataFrame. `rankeval_spark.evaluate` makes it.

    The executors keep the parts of the evaluation, one a partition, until `release`, so that neither `scores` nor
    `evaluation` scores anything again. If an executor is lost, Spark scores its partitions again.

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

    def __init__(self, parts: DataFrame, columns: dict[str, str], *, text_ids: bool, forget: Callable[[], Any]) -> None:
        self._parts: DataFrame | None = parts
        self._columns = columns
        self._forget = forget
        whole = {"qid": pa.string() if text_ids else pa.int64()}
        kinds = (pa.int64() if name.startswith("count:") else pa.float64() for name in columns)
        self._schema = pa.schema(
            [(name, whole.get(name, kind)) for name, kind in zip(columns.values(), kinds, strict=True)]
        )

    @property
    def scores(self) -> DataFrame:
        """The scores as a DataFrame of Spark: a row a query that counts.

        Columns: ``qid`` (string or long), each measure under the name asked for, the numbers of documents
        ``relevant``, ``retrieved``, ``tied`` and ``judged``, and ``weight`` if queries have weights. Use it before
        `release`: after that, Spark scores the rows again each time that the frame is used.
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
        found = self._kept.select("part").toArrow()["part"]
        return warned_if_empty(merged(Evaluation.from_bytes(part.as_py()) for part in found))

    @property
    def _kept(self) -> DataFrame:
        if self._parts is None:
            raise InvalidInput("this result was released; ask for .scores and .evaluation before release()")
        return self._parts

    def release(self) -> None:
        """Let the executors forget the parts.

        An `evaluation` that was asked for before stays. Frames of `scores` are scored again each time they are used.
        """
        if self._parts is None:
            return
        self._parts = None
        self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
