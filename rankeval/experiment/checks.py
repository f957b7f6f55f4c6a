"""Find all that can be wrong with an experiment before any data is loaded.

The model has checked keys, values, the host and the names of measures. What is checked here imports scikit-learn and
the libraries of the rankers: estimators, parameters, measures, the comparison, the loader. Last come the places that
results go to: the folder, the ledger, the tracking server. A look at the test part must not be spent on a run whose
result has no place.

The folder may vanish and the disk may fill up while rankers train for hours. So the room of all files is held from
before the test part is opened until they are written: the look is not spent on a run that cannot keep its result.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rankeval._registry import chosen
from rankeval.collection.data import RankingData
from rankeval.errors import ConfigError, InvalidInput, RankevalError, warn
from rankeval.experiment.config import ExperimentConfig
from rankeval.experiment.estimators import make_ranker
from rankeval.experiment.final_look import check_ledger, unguarded
from rankeval.experiment.loading import Loaded, find_loader
from rankeval.ledger.folder import room_held
from rankeval.report import ExperimentFacts, report_for_experiment
from rankeval.report.queries import MOST_BYTES
from rankeval.tracking import find_tracker, host

if TYPE_CHECKING:
    from rankeval.model_selection.ranker import QueryRanker


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


@dataclass(frozen=True, eq=False)
class Checked:
    """The rankers of an experiment, not fitted, and the function that loads its data, not called."""

    rankers: Mapping[str, QueryRanker]
    load: Callable[[], Loaded]


def check_experiment(config: ExperimentConfig) -> Checked:
    """Check an experiment without reading its data.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment.

    Raises
    ------
    ConfigError
        If a measure cannot be computed from rows, a ranker cannot be made, the comparison is unknown or not one that a
        plan freezes, the loader cannot be called, there is no such file, the folder of the results cannot be written,
        or nothing can be logged to the tracking server.
    LedgerError
        If the ledger cannot be read, or would be lost with this machine.
    """
    from rankeval.model_selection.checks import check_measures

    try:
        check_measures(config.all_measures, config.convention)
    except InvalidInput as error:
        raise ConfigError(f"{error}", argument="measures") from error
    _check_comparison(config)
    checked = Checked({name: make_ranker(config, name) for name in config.rankers}, find_loader(config))
    _check_folder(config)
    check_ledger(config)
    _check_tracker(config)
    return checked


def _check_comparison(config: ExperimentConfig) -> None:
    from rankeval.significance import CORRECTIONS, TESTS
    from rankeval.significance.declarations import check_claim

    asked = config.comparison
    try:
        chosen("test", asked.test, TESTS)
        correction = CORRECTIONS[chosen("correction", asked.correction, CORRECTIONS)]
        check_claim(asked.claim, asked.margin)
    except InvalidInput as error:
        raise ConfigError(f"{error}", argument="comparison") from error
    if correction.all_pairs_only:
        raise ConfigError(
            f"comparison.correction: {asked.correction} compares all pairs, and an experiment compares with its "
            "baseline: choose another one"
        )
    if not unguarded(config) and not asked.as_frozen:
        raise ConfigError(
            f"comparison: found test {asked.test!r} and correction {asked.correction!r}; the guard's plans freeze "
            "randomization with max_t, so that the openings of a test part are one family: leave the keys out, or "
            "switch the guard off (guard: off)"
        )


def _check_folder(config: ExperimentConfig) -> None:
    try:
        with room_for_files(config):
            pass
    except InvalidInput as error:
        raise ConfigError(str(error)) from error


def _check_tracker(config: ExperimentConfig) -> None:
    """Make the tracker once, and let the host try its server: both must not be missed after the opening."""
    if config.tracking is None:
        return
    name, uri = config.tracking.host, config.tracking.uri
    make_tracker, _ = find_tracker(name)
    try:
        make_tracker()
    except Exception as error:
        raise ConfigError(f"tracking: the host {name!r} makes no tracker: {type(error).__name__}: {error}") from error
    check = host(name).check
    try:
        said = None if check is None else check(config.tracking.experiment or config.name, uri)
    except RankevalError as error:
        raise ConfigError(f"{error}", argument="tracking") from error
    except Exception as error:
        raise ConfigError(f"tracking: the host {name!r} fails at its check: {type(error).__name__}: {error}") from error
    if said:
        warn(said)
