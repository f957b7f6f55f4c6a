"""Log an experiment to its host: one run, with a child for each ranker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankeval.errors import TrackingError
from rankeval.experiment.config import ExperimentConfig
from rankeval.report import Candidate, ExperimentFacts
from rankeval.tracking import RunRecord, TrackedRun, find_tracker


def track(
    config: ExperimentConfig, facts: ExperimentFacts, artifacts: Mapping[str, bytes]
) -> tuple[TrackedRun | None, str | None]:
    """Log the experiment; return the run, or the message of a server that refused.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment, with its host.
    facts : ExperimentFacts
        The content of its report.
    artifacts : mapping of str to bytes
        Its files by path.
    """
    if config.tracking is None:
        return None, None
    make_tracker, _ = find_tracker(config.tracking.host)
    try:
        experiment = config.tracking.experiment or config.name
        return make_tracker().log(
            _record(config, facts, artifacts), experiment=experiment, uri=config.tracking.uri
        ), None
    except TrackingError as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 - a host must not hide the result of a test part that was opened
        return None, f"the host {config.tracking.host!r} failed: {type(error).__name__}: {error}"


def _record(config: ExperimentConfig, facts: ExperimentFacts, artifacts: Mapping[str, bytes]) -> RunRecord:
    return RunRecord(
        name=config.name,
        params={
            "primary": facts.primary,
            "baseline": facts.baseline,
            "convention": config.convention,
            "cv.n_splits": config.cv.n_splits,
            "cv.seed": config.cv.seed,
            "seed": config.seed,
            "comparison.test": facts.comparison.test,
            "comparison.correction": facts.comparison.correction,
            "comparison.claim": facts.comparison.claim,
            "comparison.margin": facts.comparison.margin,
        },
        tags={
            "rankeval.kind": "experiment",
            "rankeval.headline": facts.comparison.headline,
            **facts.guard.tags(),
        },
        comparison=facts.comparison,
        data=facts.data,
        artifacts={path: content for path, content in artifacts.items() if not path.startswith("predictions/")},
        children=tuple(_child(each, facts, artifacts) for each in facts.candidates),
    )


def _child(candidate: Candidate, facts: ExperimentFacts, artifacts: Mapping[str, bytes]) -> RunRecord:
    path = f"predictions/{candidate.name}.parquet"
    return RunRecord(
        name=candidate.name,
        params={"estimator": candidate.estimator, **{key: _plain(value) for key, value in candidate.params.items()}},
        metrics=_metrics(candidate),
        tags={
            "rankeval.kind": "candidate",
            "rankeval.digest": candidate.digest,
            "rankeval.trained": "no: cached by an earlier run" if candidate.reused else "yes",
            **facts.guard.tags(),
        },
        said={"test": facts.guard.line} if facts.guard.active else {},
        evaluations={"dev": candidate.dev, "test": candidate.test},
        data=facts.data,
        artifacts={path: artifacts[path], "search.csv": candidate.search.to_csv(index=False).encode()},
    )


def _metrics(candidate: Candidate) -> dict[str, float]:
    used = {} if candidate.n_iterations is None else {"n_iterations": float(candidate.n_iterations)}
    return {"tuning_seconds": candidate.seconds, **used}


def _plain(value: Any) -> str | float | bool | None:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
