"""Log an experiment to its host: one run, with a child for each ranker."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankeval._checks import said
from rankeval.errors import ConfigError, Refusal, TrackingError, warn
from rankeval.experiment.sections import ExperimentConfig
from rankeval.experiment.training import Trained
from rankeval.report import Candidate, ExperimentFacts
from rankeval.tracking import LoggedData, RunRecord, TrackedRun, find_tracker

_TESTED = ("test", "correction", "claim", "margin")


@dataclass
class Run:
    """A run of an experiment that has begun: when, and the data that it read."""

    started: float = field(default_factory=time.time)
    data: tuple[LoggedData, ...] = ()


@contextmanager
def begun(config: ExperimentConfig) -> Iterator[Run]:
    """Begin a run; if a refusal or an error ends it, log a run that FAILED and says why.

    Nothing was scored then, or not all, so the run has no evaluations. A wrong key or value of the file is no run.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment, with its host.
    """
    run = Run()
    try:
        yield run
    except ConfigError:
        raise
    except (Exception, Refusal) as error:
        reason = f"No result. {type(error).__name__}: {said(error)}"
        failed = replace(_begun(config, run, reason, [reason]), status="FAILED", reason=reason)
        _, refused = sent(config, replace(failed, artifacts={"experiment.yaml": config.to_yaml().encode()}))
        if refused:
            warn(f"the failed run was not logged: {refused}")
        raise


def sent(config: ExperimentConfig, record: RunRecord) -> tuple[TrackedRun | None, str | None]:
    """Log a run; return it, or the message of a server that refused, or neither if nothing is tracked.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment, with its host.
    record : RunRecord
        The run.
    """
    if config.tracking is None:
        return None, None
    make_tracker, _ = find_tracker(config.tracking.host)
    try:
        experiment = config.tracking.experiment or config.name
        return make_tracker().log(record, experiment=experiment, uri=config.tracking.uri), None
    except TrackingError as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 - a host must not hide the result of a test part that was opened
        return None, f"the host {config.tracking.host!r} failed: {type(error).__name__}: {error}"


def _begun(config: ExperimentConfig, run: Run, headline: str, more: list[str]) -> RunRecord:
    return RunRecord(
        name=config.name,
        params=_settings(config),
        tags={"rankeval.kind": "experiment", "rankeval.headline": headline},
        data=run.data,
        started=run.started,
        seconds=time.time() - run.started,
        key=_key(config, more),
    )


def _settings(config: ExperimentConfig) -> dict[str, str | float | bool | None]:
    return {
        "primary": config.all_measures[0],
        "baseline": config.baseline,
        "convention": config.convention,
        "cv.n_splits": config.cv.n_splits,
        "cv.seed": config.cv.seed,
        "seed": config.seed,
    }


def _key(config: ExperimentConfig, more: list[str]) -> str:
    # The same settings and results are the same run, whenever, by whomever and to whatever folder it ran.
    settings = config.model_dump(mode="json", exclude={"output", "n_jobs"})
    return hashlib.sha256(json.dumps([settings, more], sort_keys=True).encode()).hexdigest()


def record_of(
    config: ExperimentConfig,
    facts: ExperimentFacts,
    artifacts: Mapping[str, bytes],
    trained: Mapping[str, Trained],
    run: Run,
) -> RunRecord:
    """Return the run of an experiment that is done, with a child for each ranker.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment.
    facts : ExperimentFacts
        The content of its report.
    artifacts : mapping of str to bytes
        Its files by path.
    trained : mapping of str to Trained
        The candidates by name.
    run : Run
        When it began.
    """
    tested, results = facts.comparison.settings, [facts.guard.plan, *(each.digest for each in facts.candidates)]
    begun = _begun(config, run, facts.comparison.headline, results)
    return replace(
        begun,
        params={**begun.params, **{f"comparison.{one}": getattr(tested, one) for one in _TESTED}},
        tags={**begun.tags, **facts.guard.tags()},
        comparison=facts.comparison,
        artifacts={path: content for path, content in artifacts.items() if not path.startswith("predictions/")},
        children=tuple(_child(each, facts, artifacts, trained[each.name]) for each in facts.candidates),
    )


def _child(candidate: Candidate, facts: ExperimentFacts, artifacts: Mapping[str, bytes], trained: Trained) -> RunRecord:
    path = f"predictions/{candidate.name}.parquet"
    metrics = {"tuning_seconds": candidate.seconds, "n_iterations": candidate.n_iterations}
    cached = "no: cached by an earlier run" if trained.model else "no: cached by an earlier run, which kept no model"
    return RunRecord(
        name=candidate.name,
        params={"estimator": candidate.estimator, **{key: _plain(value) for key, value in candidate.params.items()}},
        metrics={key: float(value) for key, value in metrics.items() if value is not None},
        tags={
            "rankeval.kind": "candidate",
            "rankeval.digest": candidate.digest,
            "rankeval.trained": cached if trained.reused else "yes",
            **facts.guard.tags(),
        },
        said={"test": facts.guard.line} if facts.guard.active else {},
        evaluations={"dev": candidate.dev, "test": candidate.test},
        data=facts.data,
        artifacts={path: artifacts[path], "search.csv": candidate.search.to_csv(index=False).encode()},
        started=trained.started,
        seconds=trained.took,
        model=trained.model,
        rows=trained.rows,
        folds=trained.validation,
    )


def _plain(value: Any) -> str | float | bool | None:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
