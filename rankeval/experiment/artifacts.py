"""The files of an experiment: predictions, comparison, the whole file with its defaults, report."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rankeval.collection.data import RankingData
from rankeval.report import ExperimentFacts, report_for_experiment


def artifacts_of(
    facts: ExperimentFacts, test: RankingData, scores: Mapping[str, NDArray[np.float64]]
) -> dict[str, bytes]:
    """Return the content of each file by its path.

    Parameters
    ----------
    facts : ExperimentFacts
        The content of the report.
    test : RankingData
        The test part.
    scores : mapping of str to ndarray of shape (n_test_rows,)
        The scores of each ranker.
    """
    files = {f"predictions/{name}.parquet": _predictions(test, score) for name, score in scores.items()}
    files["comparison.csv"] = facts.comparison.table.to_csv(index=False).encode()
    files["experiment.yaml"] = facts.config.encode()
    files["report.html"] = report_for_experiment(facts).encode()
    return files


def _predictions(test: RankingData, score: NDArray[np.float64]) -> bytes:
    columns = {"qid": test.qid.tolist(), "relevance": test.y, "score": score}
    if test.docid is not None:
        columns["docid"] = test.docid.tolist()
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()
