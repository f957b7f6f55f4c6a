"""Results kept from one run to the next, under the digest of all that they depend on; no pickle.

One folder per candidate: ``scores.parquet`` (test part), ``dev.parquet`` (an `Evaluation`), ``facts.json``. A folder
comes into being by one rename, so that a run that is killed leaves none half filled.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.experiment.config import ExperimentConfig
from rankeval.experiment.tuning import Tuned

FORMAT = 1
"""Raised when what is kept, or how it is computed, changes."""


def versions(estimators: list[str]) -> dict[str, str]:
    """Return the versions of what has a say in the results.

    Parameters
    ----------
    estimators : list of str
        Import paths; their distributions are included.
    """
    packages = {"rankeval-mlflow", "numpy", "scipy", "scikit-learn"}
    known = metadata.packages_distributions()
    for path in estimators:
        packages.update(known.get(path.replace(":", ".").partition(".")[0], []))
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in sorted(packages)}}


def candidate_digest(name: str, config: ExperimentConfig, *, dev: str, test: str) -> str:
    """Return the digest of all that a candidate's result depends on.

    Parameters
    ----------
    name : str
        The ranker.
    config : ExperimentConfig
        The experiment; only what bears on this ranker counts.
    dev, test : str
        Digests of the two parts.
    """
    ranker = config.rankers[name]
    said = {
        "format": FORMAT,
        "ranker": ranker.model_dump(mode="json"),
        "measures": config.all_measures,
        "convention": config.convention,
        "cv": config.cv.model_dump(),
        "seed": config.seed,
        "dev": dev,
        "test": test,
        "versions": versions([ranker.estimator]),
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def read_kept(folder: Path, *, name: str) -> Tuned | None:
    """Return what is kept in this folder, or None.

    Parameters
    ----------
    folder : Path
        Named after the candidate's digest.
    name : str
        What the candidate is called now.

    Raises
    ------
    InvalidInput
        When a file of the folder was damaged.
    """
    if not folder.is_dir():
        return None
    try:
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        return Tuned(
            params=dict(facts["params"]),
            search=pd.DataFrame(facts["search"]["rows"], columns=facts["search"]["columns"]),
            dev=replace(Evaluation.load(folder / "dev.parquet"), name=name),
            scores=pq.read_table(folder / "scores.parquet")["score"].to_numpy(),
            seconds=float(facts["seconds"]),
        )
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidInput(
            f"what {folder} keeps of an earlier run is damaged (facts.json, dev.parquet or scores.parquet: {why}); "
            "remove the folder, and the candidate is tuned again"
        ) from error


def keep(folder: Path, tuned: Tuned) -> None:
    """Keep a candidate's result in this folder.

    Parameters
    ----------
    folder : Path
        Named after the candidate's digest.
    tuned : Tuned
        What to keep.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
    try:
        pq.write_table(pa.table({"score": tuned.scores}), draft / "scores.parquet")
        tuned.dev.save(draft / "dev.parquet")
        (draft / "facts.json").write_text(json.dumps(_facts(tuned), indent=1), encoding="utf-8")
        if not folder.exists():
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _facts(tuned: Tuned) -> Mapping[str, Any]:
    frame = tuned.search
    rows = [[_plain(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    return {
        "params": {name: _plain(value) for name, value in tuned.params.items()},
        "search": {"columns": list(map(str, frame.columns)), "rows": rows},
        "seconds": tuned.seconds,
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
