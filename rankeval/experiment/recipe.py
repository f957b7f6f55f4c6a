"""Run an experiment: a recipe over public calls.

Load the data, split it, register the test part, tune every candidate on dev, freeze the winners, open the test part
once, compare, report, log. Results of an earlier run come from the cache, and opening the same rankings again costs no
look: you may run the same file as often as you like.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rankeval.collection.data import RankingData
from rankeval.comparison import Comparison, compare
from rankeval.errors import RankevalWarning, TrackingError
from rankeval.evaluation import Evaluation
from rankeval.experiment.cache import candidate_digest, read_cached, versions, write_cached
from rankeval.experiment.config import ExperimentConfig, check_config, load_config
from rankeval.experiment.final_look import Opened, guard_test_part, open_test
from rankeval.experiment.loading import Parts, load_parts, make_estimator
from rankeval.experiment.tuning import TunedCandidate, tune
from rankeval.io.opening import write_atomically
from rankeval.measures import measure
from rankeval.report import Candidate, ExperimentFacts, GuardFacts, headline, report_for_experiment
from rankeval.tracking import LoggedData, RunRecord, TrackedRun, find_tracker

Progress = Callable[[int, int, str], None]
"""Called with the number of steps done, the number of all steps, and the present step in words."""

NOT_LOGGED = "the experiment was not logged: "
"""The start of the warning for a run whose tracking server refused."""


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """The result of an experiment, and its files.

    Attributes
    ----------
    config : ExperimentConfig
        The experiment.
    facts : ExperimentFacts
        Candidates, comparison, guard and data: the content of the report.
    directory : Path
        Holds ``report.html``, ``comparison.csv``, ``experiment.yaml`` and ``predictions/<ranker>.parquet``.
    tracked : TrackedRun, optional
        The run on the tracking server.
    tracking_error : str, optional
        The reason why the run was not logged, and how to send it again.
    """

    config: ExperimentConfig
    facts: ExperimentFacts
    directory: Path
    tracked: TrackedRun | None = None
    tracking_error: str | None = None

    @property
    def comparison(self) -> Comparison:
        """The comparison on the test part by the primary measure."""
        return self.facts.comparison

    @property
    def evaluations(self) -> dict[str, Evaluation]:
        """The rankers on the test part, by all measures."""
        return {each.name: each.test for each in self.facts.candidates}

    @property
    def guard(self) -> GuardFacts:
        """Facts on the guard: ledger, looks, standing."""
        return self.facts.guard

    @property
    def n_trained(self) -> int:
        """Number of candidates trained in this run; the results of the others were cached."""
        return self.facts.n_trained

    @property
    def looks_added(self) -> int:
        """Number of looks at the test part that this run added."""
        return self.facts.guard.looks_added

    @property
    def report(self) -> Path:
        """Path of the report."""
        return self.directory / "report.html"

    def predictions(self, ranker: str) -> Path:
        """Return the path of the test scores of a ranker.

        Parameters
        ----------
        ranker : str
            Name of the ranker in the experiment.
        """
        return self.directory / "predictions" / f"{ranker}.parquet"

    def __repr__(self) -> str:
        return f"ExperimentResult({self.facts.name!r}: {headline(self.facts)})"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(headline(self.facts))}</p>{self.comparison._repr_html_()}"


def run_experiment(
    config: ExperimentConfig | Mapping[str, Any] | str | Path, *, progress: Progress | None = None
) -> ExperimentResult:
    """Tune rankers on dev, open the test part once, compare, report and log.

    Parameters
    ----------
    config : ExperimentConfig, mapping, str or Path
        The experiment, as an ExperimentConfig, a mapping of plain values, a file, or the name of a shipped one.
    progress : callable, optional
        Called with the number of steps done, the number of all steps, and the present step in words.

    Returns
    -------
    ExperimentResult
        If the tracking server cannot be reached, everything else is done. A warning and ``tracking_error`` say how to
        log the run later.

    Raises
    ------
    ConfigError
        If a key or value of the experiment is wrong.
    GuardRefusal
        If the dev part holds registered test content.

    Notes
    -----
    A second run trains only candidates whose settings, data or library versions changed. It adds no look if the
    rankings are the same.

    Examples
    --------
    >>> import tempfile
    >>> ridge = "sklearn.linear_model.Ridge"
    >>> config = {
    ...     "name": "example",
    ...     "data": {"loader": "digits", "arguments": {"n_queries": 30}},
    ...     "rankers": {
    ...         "plain": {"estimator": ridge},
    ...         "tuned": {"estimator": ridge, "grid": {"alpha": [0.1, 100.0]}},
    ...     },
    ...     "guard": "off",
    ...     "tracking": "off",
    ...     "output": {"directory": tempfile.mkdtemp()},
    ... }
    >>> result = run_experiment(config)
    >>> result.comparison.table[["baseline", "system"]].values.tolist(), result.report.name
    ([['plain', 'tuned']], 'report.html')
    """
    config = _checked(config)
    steps = _Steps(progress, len(config.rankers) + 4)
    for spec in config.all_measures:
        measure(spec)
    estimators = {name: make_estimator(ranker, name=name, seed=config.seed) for name, ranker in config.rankers.items()}
    steps.next("loading data")
    parts = load_parts(config)
    part = guard_test_part(config, parts.test)
    data = parts.logged()
    tuned = {}
    for name, estimator in estimators.items():
        steps.next(f"tuning {name}")
        tuned[name] = _tuned(name, estimator, config, parts, data)
    steps.next("opening the test part")
    scores = {name: one.scores for name, (one, _, _) in tuned.items()}
    opened = open_test(config, part, scores)
    facts = _facts(config, opened, data, tuned)
    steps.next("writing the report")
    artifacts = _artifacts(facts, parts.test, scores)
    for path, content in artifacts.items():
        target = config.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, [content])
    steps.next("logging")
    tracked, tracking_error = _track(config, facts, artifacts)
    if tracking_error:
        warnings.warn(f"{NOT_LOGGED}{tracking_error}", RankevalWarning, stacklevel=2)
    steps.next("done")
    return ExperimentResult(config, facts, config.directory, tracked, tracking_error)


@dataclass
class _Steps:
    """Counts the steps and reports each one."""

    progress: Progress | None
    total: int
    done: int = -1

    def next(self, doing: str) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total, doing)


def _checked(config: ExperimentConfig | Mapping[str, Any] | str | Path) -> ExperimentConfig:
    if isinstance(config, ExperimentConfig):
        return config
    return check_config(config) if isinstance(config, Mapping) else load_config(config)


def _tuned(
    name: str, estimator: Any, config: ExperimentConfig, parts: Parts, data: tuple[LoggedData, LoggedData]
) -> tuple[TunedCandidate, bool, str]:
    """Return the tuned candidate, whether it came from the cache, and its digest."""
    digest = candidate_digest(name, config, dev=data[0].digest, test=data[1].digest)
    folder = config.directory / "kept" / digest[:20]
    cached = read_cached(folder, name=name)
    if cached is not None:
        return cached, True, digest
    tuned = tune(estimator, config.rankers[name].grid, parts.dev, parts.test, config=config)
    write_cached(folder, tuned)
    return tuned, False, digest


def _facts(
    config: ExperimentConfig,
    opened: Opened,
    data: tuple[LoggedData, ...],
    tuned: Mapping[str, tuple[TunedCandidate, bool, str]],
) -> ExperimentFacts:
    candidates = tuple(
        Candidate(
            name=name,
            estimator=config.rankers[name].estimator,
            params={**config.rankers[name].params, **one.params},
            search=one.search,
            dev=one.dev.renamed(name),
            test=opened.evaluations[name],
            seconds=one.seconds,
            reused=reused,
            digest=digest,
        )
        for name, (one, reused, digest) in tuned.items()
    )
    return ExperimentFacts(
        name=config.name,
        primary=config.all_measures[0],
        baseline=config.baseline,
        candidates=candidates,
        comparison=opened.comparison,
        secondary=_secondary(config, opened.evaluations),
        guard=opened.guard,
        data=data,
        config=config.to_yaml(),
        versions=versions([ranker.estimator for ranker in config.rankers.values()]),
    )


def _secondary(config: ExperimentConfig, evaluations: Mapping[str, Evaluation]) -> pd.DataFrame:
    """Return the differences by the other measures, without p-values: the plan promised none."""
    others = config.all_measures[1:]
    if not others:
        return pd.DataFrame()
    table = compare(
        evaluations,
        baseline=config.baseline,
        measures=others,
        correction="none",
        confidence_level=config.comparison.confidence_level,
    ).table
    return table.drop(columns=["p_value", "p_adjusted", "detectable_difference"])


def _artifacts(
    facts: ExperimentFacts, test: RankingData, scores: Mapping[str, NDArray[np.float64]]
) -> dict[str, bytes]:
    """Return the content of each file by its path."""
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


def _track(
    config: ExperimentConfig, facts: ExperimentFacts, artifacts: Mapping[str, bytes]
) -> tuple[TrackedRun | None, str | None]:
    """Log the experiment; return the run, or the message of a server that refused."""
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
    guard = facts.guard
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
        },
        tags={
            "rankeval.kind": "experiment",
            "rankeval.standing": guard.standing,
            "rankeval.headline": headline(facts),
            "rankeval.guard.ledger": guard.ledger or guard.reason,
            "rankeval.guard.head": guard.head,
            "rankeval.guard.plan": guard.plan,
            "rankeval.guard.looks": str(guard.looks),
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
        metrics={"tuning_seconds": candidate.seconds},
        tags={
            "rankeval.kind": "candidate",
            "rankeval.digest": candidate.digest,
            "rankeval.trained": "no: cached by an earlier run" if candidate.reused else "yes",
        },
        evaluations={"dev": candidate.dev, "test": candidate.test},
        data=facts.data,
        artifacts={path: artifacts[path], "search.csv": candidate.search.to_csv(index=False).encode()},
    )


def _plain(value: Any) -> str | float | bool | None:
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
