"""Rows that Spark computes once and keeps, whatever happens later to the data that they were computed from.

`DataFrame.persist` cannot do it: it keeps plans, and takes two reads of one path for the same plan, although the files
changed between them. So a second call would get the parts of the first. A write of Spark to the path, and `clearCache`,
throw such plans away, and their rows are computed again from other data. An RDD is kept for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class Kept:
    """Rows on the executors, in memory or on disk. If an executor is lost, Spark computes its rows again.

    Attributes
    ----------
    rows : DataFrame
        Reads them; they are computed when they are first read.
    rdd : RDD of the JVM
        Holds them until `forget`.
    """

    rows: DataFrame
    rdd: Any

    @classmethod
    def of(cls, rows: DataFrame) -> Kept:
        """Keep rows. What they are shuffled from is computed now.

        Parameters
        ----------
        rows : DataFrame
            Few and large rows: each is copied when it is read.
        """
        from pyspark import StorageLevel
        from pyspark.sql import DataFrame

        session = rows.sparkSession
        level = session.sparkContext._getJavaStorageLevel(StorageLevel.MEMORY_AND_DISK_DESER)  # noqa: SLF001
        # The JVM's own RDD, since that of Python would pickle each row twice.
        rdd = rows._jdf.javaRDD().persist(level)  # noqa: SLF001
        return cls(DataFrame(session._jsparkSession.createDataFrame(rdd, rows._jdf.schema()), session), rdd)  # noqa: SLF001

    def forget(self) -> None:
        """Take the rows out of memory and off the disks."""
        self.rdd.unpersist()
