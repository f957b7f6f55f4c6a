"""Small logs of scored rows, as arrays and as Parquet data sets."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import rankeval as rk

MEASURES = ["nDCG@10", "AP", "RR", "gm_AP", "nDCG(gain={1: 3})@5"]
NAMES = {"qid": "query", "relevance": "label", "score": "value"}


@dataclass
class Log:
    """Rows of a log, in one order."""

    qid: NDArray
    y: NDArray
    score: NDArray

    @classmethod
    def made(cls, seed: int = 0, n_queries: int = 60, ids=lambda numbers: numbers, most: int = 30) -> Log:
        """Return a log sorted by query: some labels below 0, queries without a relevant row, and ties."""
        rng = np.random.default_rng(seed)
        numbers = np.sort(ids(rng.permutation(10 * n_queries)[:n_queries]))
        lengths = rng.integers(1, most, n_queries)
        qid = np.repeat(numbers, lengths)
        y = rng.integers(-1, 4, len(qid)) * np.repeat(rng.integers(0, 4, n_queries) > 0, lengths)
        return cls(qid, y, np.round(rng.normal(size=len(qid)), 1))

    def ordered(self, order) -> Log:
        return Log(self.qid[order], self.y[order], self.score[order])

    def shuffled(self, seed: int = 0) -> Log:
        return self.ordered(np.random.default_rng(seed).permutation(len(self.qid)))

    @property
    def table(self) -> pa.Table:
        return pa.table({"query": pa.array(self.qid), "label": self.y, "value": self.score})

    def evaluation(self, **how) -> rk.Evaluation:
        return rk.evaluate(self.y, self.score, qid=self.qid, **{"measures": MEASURES, **how})

    def write(self, folder: Path, *, cuts=(), row_group_size: int = 40, **how) -> Path:
        """Write the rows as a folder of files, cut at some rows."""
        folder.mkdir(exist_ok=True)
        ends = [0, *cuts, len(self.qid)]
        for number, (begin, end) in enumerate(pairwise(ends)):
            part = self.table.slice(begin, end - begin)
            pq.write_table(part, folder / f"{number:03}.parquet", row_group_size=row_group_size, **how)
        return folder


def evaluate(data, **how) -> rk.Evaluation:
    return rk.evaluate_dataset(data, **{**NAMES, "measures": MEASURES, **how})
