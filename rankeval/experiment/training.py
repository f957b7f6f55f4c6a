"""Train the candidates of an experiment, or take their results from the cache; either way with their fitted rankers.

Results are kept from one run of an experiment to the next, without pickle. The digest of everything that a
result depends on names its folder, so a changed setting is never answered with an old result::

    rankeval-out/<experiment>/kept/<digest>/scores.parquet     scores of the test part
                                            dev.parquet        out-of-fold `Evaluation`
                                            predictions.parquet   out-of-fold score of each row of dev
                                            facts.json         chosen parameters, the search, folds, seconds
                                            model-<host>       the fitted ranker as its tracking host packed it

Nobody here reads what a host packed: it goes back to the host with the next run. A folder is filled under another name
and renamed: a killed run leaves no half-filled one.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from rankeval.collection.data import take_rows
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.experiment.config import ExperimentConfig
from rankeval.experiment.loading import Parts
from rankeval.experiment.tuning import TunedCandidate, tune
from rankeval.model_selection.results import CrossValidation, Split
from rankeval.significance.columns import FOLD
from rankeval.tracking import LoggedData, host

if TYPE_CHECKING:
    from rankeval.model_selection.ranker import QueryRanker


FORMAT = 3
"""Part of every digest; to be increased when the cached content or its computation changes.

The fields of an `Evaluation` are parts of it as they are: a version that stores others trains anew.
"""


_DAMAGE = (
    pa.ArrowException,
    OSError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    RecursionError,
)
"""What reading a damaged file may raise: by values of another kind, numbers without end, lists in lists."""

MOST_ROWS = 1000
"""Rows of dev from which a host takes the columns of a model, and on which it checks what it saved."""


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Map top-level modules to distributions; cached, since the file lists of all installed packages are read."""
    return metadata.packages_distributions()


def versions(estimators: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python and of the libraries that the results depend on.

    Parameters
    ----------
    estimators : iterable of str
        Import paths of the estimators, whose distributions are included.
    """
    packages = {"rankeval-mlflow", "numpy", "scipy", "scikit-learn"}
    known = _distributions()
    for path in estimators:
        packages.update(known.get(path.replace(":", ".").partition(".")[0], []))
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in sorted(packages)}}


def candidate_digest(name: str, config: ExperimentConfig, *, dev: str, test: str, validation: str | None = None) -> str:
    """Return the digest of everything that the result of a candidate depends on.

    Parameters
    ----------
    name : str
        The ranker.
    config : ExperimentConfig
        The experiment. Settings of the other rankers do not change the digest.
    dev, test : str
        Digests of the two parts.
    validation : str, optional
        Digest of the validation part, if this ranker watches it.
    """
    ranker = config.rankers[name]
    dependencies = {
        "format": FORMAT,
        "evaluation": [field.name for field in fields(Evaluation)],
        "ranker": ranker.model_dump(mode="json"),
        "measures": config.all_measures,
        "convention": config.convention,
        "cv": config.cv.model_dump(),
        "seed": config.seed,
        "dev": dev,
        "test": test,
        "validation": validation,
        "versions": versions(ranker.paths),
    }
    return hashlib.sha256(json.dumps(dependencies, sort_keys=True).encode()).hexdigest()


def read_cached(folder: Path, *, name: str) -> TunedCandidate | None:
    """Read a cached result; None if there is none.

    Parameters
    ----------
    folder : Path
        The folder named after the digest of the candidate.
    name : str
        The present name of the candidate.

    Raises
    ------
    InvalidInput
        If a file of the folder is damaged.
    """
    if not folder.is_dir():
        return None
    try:
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        return TunedCandidate(
            params=dict(facts["params"]),
            search=pd.DataFrame(facts["search"]["rows"], columns=facts["search"]["columns"]),
            validation=CrossValidation(
                dev := replace(Evaluation.load(folder / "dev.parquet"), name=name),
                _folds(facts["folds"], dev.measure_names),
                pq.read_table(folder / "predictions.parquet")["score"].to_numpy(),
                splits=tuple(Split(int(train), int(test), str(digest)) for train, test, digest in facts["splits"]),
            ),
            scores=pq.read_table(folder / "scores.parquet")["score"].to_numpy(),
            seconds=float(facts["seconds"]),
            n_iterations=facts["n_iterations"],
        )
    except _DAMAGE as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidInput(
            f"the cached result in {folder} is damaged (facts.json or a .parquet beside it: {why})",
            remedy="remove the folder to tune the candidate again",
        ) from error


def _folds(table: Mapping[str, Any], measures: Iterable[str]) -> pd.DataFrame:
    rows = pd.DataFrame(table["rows"], columns=table["columns"])
    kinds = {"n_queries": "int64", **dict.fromkeys((*measures, "fit_seconds", "score_seconds"), "float64")}
    return rows[list(kinds)].astype(kinds).set_axis(pd.RangeIndex(len(rows), name=FOLD))


def read_packed(folder: Path, host: str) -> bytes | None:
    """Read the fitted ranker of a cached result; None if its run was logged to no such host.

    Parameters
    ----------
    folder : Path
        The folder named after the digest of the candidate.
    host : str
        Name of the tracking host.
    """
    path = _packed(folder, host)
    return path.read_bytes() if path.is_file() else None


def _packed(folder: Path, host: str) -> Path:
    return folder / f"model-{quote(host, safe='')}"


def write_cached(folder: Path, tuned: TunedCandidate, packed: Mapping[str, bytes]) -> None:
    """Write the result of a candidate to the cache.

    Parameters
    ----------
    folder : Path
        The folder named after the digest of the candidate.
    tuned : TunedCandidate
        The result.
    packed : mapping of str to bytes
        The fitted ranker as a tracking host packed it, by the name of the host.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
    try:
        pq.write_table(pa.table({"score": tuned.scores}), draft / "scores.parquet")
        pq.write_table(pa.table({"score": tuned.validation.predictions}), draft / "predictions.parquet")
        tuned.dev.save(draft / "dev.parquet")
        for host, content in packed.items():
            _packed(draft, host).write_bytes(content)
        (draft / "facts.json").write_text(json.dumps(_facts(tuned), indent=1), encoding="utf-8")
        try:
            draft.rename(folder)
        except OSError:  # another run has just written the same result
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _facts(tuned: TunedCandidate) -> Mapping[str, Any]:
    return {
        "params": {name: _plain(value) for name, value in tuned.params.items()},
        "search": _table(tuned.search),
        "folds": _table(tuned.validation.folds),
        "splits": [[split.n_train, split.n_test, split.digest] for split in tuned.validation.splits],
        "seconds": tuned.seconds,
        "n_iterations": tuned.n_iterations,
    }


def _table(frame: pd.DataFrame) -> dict[str, Any]:
    rows = [[_plain(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    return {"columns": list(map(str, frame.columns)), "rows": rows}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, eq=False)
class Trained:
    """A candidate with its result, and what a tracker needs beside it.

    Attributes
    ----------
    tuned : TunedCandidate
        The result.
    reused : bool
        True if it came from the cache.
    digest : str
        SHA-256 of everything that determines it.
    started, took : float
        When this run began with it, in seconds since the epoch, and the seconds that it took.
    model : QueryRanker or bytes, optional
        The fitted ranker, or what the tracking host packed of it, maybe in an earlier run.
    rows : array or frame of shape (n_some_rows, n_features)
        The first rows of dev.
    """

    tuned: TunedCandidate
    reused: bool
    digest: str
    started: float
    took: float
    model: QueryRanker | bytes | None
    rows: Any


def train(
    name: str, ranker: QueryRanker, config: ExperimentConfig, parts: Parts, data: tuple[LoggedData, ...]
) -> Trained:
    """Tune a candidate, or read its result from the cache.

    Parameters
    ----------
    name : str
        The ranker.
    ranker : QueryRanker
        The ranker, not fitted.
    config : ExperimentConfig
        The experiment.
    parts : Parts
        Its data.
    data : tuple of LoggedData
        The digests of its parts.
    """
    from rankeval.model_selection.ranker import stops_early

    started, clock = time.time(), time.perf_counter()
    digests = {one.role: one.digest for one in data}
    if not stops_early(ranker):
        digests.pop("validation", None)
    digest = candidate_digest(name, config, **digests)
    folder = config.directory / "kept" / digest[:20]
    rows = take_rows(parts.dev.X, np.arange(min(MOST_ROWS, len(parts.dev))))
    tuned, model = read_cached(folder, name=name), None
    reused = tuned is not None
    if tuned is None:
        tuned = tune(ranker, name, parts, config=config)
        packed = _packed_ranker(tuned.model, rows, config)
        write_cached(folder, tuned, packed)
        model = next(iter(packed.values()), tuned.model)
    elif config.tracking is not None:
        model = read_packed(folder, config.tracking.host)
    return Trained(tuned, reused, digest, started, time.perf_counter() - clock, model, rows)


def _packed_ranker(model: QueryRanker | None, rows: Any, config: ExperimentConfig) -> Mapping[str, bytes]:
    """Return the fitted ranker as the tracking host packs it; nothing if it packs no models, or not this one.

    A ranker that is not packed goes to the tracker as it is, and the tracker says why it cannot be saved.
    """
    pack = None if config.tracking is None else host(config.tracking.host).pack
    if config.tracking is None or pack is None:
        return {}
    try:
        return {config.tracking.host: pack(model, rows)}
    except Exception:  # noqa: BLE001 - the code of another package may raise anything, and the tracker tells what
        return {}
