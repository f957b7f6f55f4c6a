"""The files of an experiment: predictions, comparison, the whole file with its defaults, report.

The folder may vanish and the disk may fill up while rankers train for hours. So the room of all files is held from
before the test part is opened until they are written: the look is not spent on a run that cannot keep its result.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rankeval.collection.data import RankingData
from rankeval.errors import InvalidInput
from rankeval.experiment.config import ExperimentConfig
from rankeval.ledger.disk import room_held
from rankeval.report import ExperimentFacts, report_for_experiment
from rankeval.report.queries import MOST_BYTES

_ROOM = {"comparison.csv": 1 << 16, "experiment.yaml": 1 << 16, "report.html": 1 << 19}
"""Bytes of the files without the table of queries: reports of up to 12 rankers have 0.1 to 0.3 MB."""
_SCORE = 256
"""Bytes of one query and ranker in that table."""


@contextmanager
def room_for_files(
    config: ExperimentConfig, predictions: Mapping[str, bytes] | None = None, *, n_queries: int = 0
) -> Iterator[None]:
    """Hold the room of all files of an experiment.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment.
    predictions : mapping of str to bytes, optional
        The files of predictions by path. Before they are known, some room is held for each.
    n_queries : int
        Number of test queries.

    Raises
    ------
    InvalidInput
        If a file cannot be written: for its name, its folder, a permission or the disk.
    """
    paths = [_path(name) for name in config.rankers]
    sizes = _ROOM | {path: 1 if predictions is None else len(predictions[path]) for path in paths}
    sizes["report.html"] += min(_SCORE * n_queries * len(paths), MOST_BYTES)
    with ExitStack() as stack:
        try:
            (config.directory / "predictions").mkdir(parents=True, exist_ok=True)
            stack.enter_context(room_held({config.directory / path: size for path, size in sizes.items()}))
        except OSError as error:
            why = error.strerror or error
            raise InvalidInput(f"output.directory: {error.filename!r} cannot be written: {why}") from error
        yield


def predictions_of(test: RankingData, scores: Mapping[str, NDArray[np.float64]]) -> dict[str, bytes]:
    """Return the files of predictions by path.

    Parameters
    ----------
    test : RankingData
        The test part.
    scores : mapping of str to ndarray of shape (n_test_rows,)
        The scores of each ranker.
    """
    return {_path(name): _predictions(test, score) for name, score in scores.items()}


def artifacts_of(facts: ExperimentFacts) -> dict[str, bytes]:
    """Return the content of each other file by its path.

    Parameters
    ----------
    facts : ExperimentFacts
        The content of the report.
    """
    return {
        "comparison.csv": facts.comparison.table.to_csv(index=False).encode(),
        "experiment.yaml": facts.config.encode(),
        "report.html": report_for_experiment(facts).encode(),
    }


def _path(ranker: str) -> str:
    return f"predictions/{ranker}.parquet"


def _predictions(test: RankingData, score: NDArray[np.float64]) -> bytes:
    columns = {"qid": test.qid.tolist(), "relevance": test.y, "score": score}
    if test.docid is not None:
        columns["docid"] = test.docid.tolist()
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()
