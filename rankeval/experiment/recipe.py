"""Run an experiment, a recipe over public calls, and log it: a run with a child for each ranker.

Load the data, split it, register the test part, tune every candidate on dev, freeze the winners,
open the test part once, compare, report, log. Results of an earlier run come from the cache, and
opening the same rankings again costs no look: you may run the same file as often as you like.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import said
from rankeval._display import Displayed, View, view_of
from rankeval._registry import chosen
from rankeval._visible import escaping
from rankeval.collection.data import RankingData
from rankeval.comparison import Comparison, compare
from rankeval.comparison.headline import named_system
from rankeval.errors import ConfigError, RankevalError, Refusal, TrackingError, warn
from rankeval.evaluation import Evaluation
from rankeval.evaluation.result import worst_slices_first
from rankeval.experiment.checks import check_experiment, room_for_files
from rankeval.experiment.config import check_config, load_config
from rankeval.experiment.final_look import Opened, guard_test_part, moved_rows, open_test
from rankeval.experiment.loading import DataParts
from rankeval.experiment.schema import ExperimentConfig, RankerConfig
from rankeval.experiment.training import Trained, train, versions
from rankeval.io.opening import write_atomically
from rankeval.measures import direction
from rankeval.model_selection.shelved import diagnosed
from rankeval.report import report_for_experiment
from rankeval.report.summaries import Candidate, ExperimentFacts, GuardFacts
from rankeval.shelf.files import record_of
from rankeval.shelf.folder import write
from rankeval.tracking import LoggedData, RunRecord, TrackedRun, host

Progress = Callable[[int, int, str], None]
"""Called with the number of steps done, the number of all steps, and the present step in words."""

NOT_LOGGED = "the experiment was not logged: "
"""The start of the warning for a run whose tracking server refused."""

_TESTED = ("test", "correction", "claim", "margin")


@escaping
@dataclass(frozen=True, eq=False, repr=False)
class ExperimentResult(Displayed):
    """The result of an experiment, and its files.

    Attributes
    ----------
    config : ExperimentConfig
        The experiment.
    facts : ExperimentFacts
        Candidates, comparison, guard and data: the content of the report.
    directory : Path
        Has ``report.html``, ``comparison.csv``, ``experiment.yaml``,
        ``predictions/<ranker>.parquet``, and records of its runs in ``runs``, for `rankeval site`.
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
        return {candidate.name: candidate.test for candidate in self.facts.candidates}

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

        Raises
        ------
        UnknownName
            If the experiment has no such ranker.
        """
        chosen("ranker", ranker, self.evaluations)
        return self.directory / "predictions" / f"{ranker}.parquet"

    def _view(self) -> View:
        view = view_of(self.comparison)
        report = f"Report of {self.facts.name}: {self.report}"
        return replace(view, notes=[*view.notes, report])


@explained
def run_experiment(
    config: ExperimentConfig | Mapping[str, Any] | str | Path, *, progress: Progress | None = None
) -> ExperimentResult:
    """Tune rankers on dev, open the test part once, compare, report and log.

    Parameters
    ----------
    config : ExperimentConfig, mapping, str or Path
        The experiment, as an ExperimentConfig, a mapping of plain values, a file, or the name of a
        shipped one.
    progress : callable, optional
        Called with the number of steps done, the number of all steps, and the present step in
        words.

    Returns
    -------
    ExperimentResult
        If the tracking server cannot be reached, everything else is done. A warning and
        ``tracking_error`` say how to log the run later.

    Raises
    ------
    ConfigError
        If a key or value of the experiment is wrong.
    GuardRefusal
        If the dev part contains registered test content. The tracking server then has a run that
        FAILED, with the reason, as after every error after the data was read.

    Notes
    -----
    A second run trains only candidates whose settings, data or library versions changed. It adds no
    look if the rankings are the same.

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
    if not isinstance(config, ExperimentConfig):
        config = check_config(config) if isinstance(config, Mapping) else load_config(config)
    done = count()

    def step(doing: str) -> None:
        if progress is not None:
            progress(next(done), len(config.rankers) + 4, doing)

    checked = check_experiment(config)
    with begun(config) as run:
        step("loading data")
        parts = checked.parts()
        run.data = parts.logged
        part = guard_test_part(config, parts)
        trained = {}
        for name, ranker in checked.rankers.items():
            step(f"tuning {name}")
            trained[name] = train(name, ranker, config, parts)
        step("opening the test part")
        scores = {name: candidate.scores for name, candidate in trained.items()}
        artifacts = {
            f"predictions/{name}.parquet": _predictions(parts.test, column)
            for name, column in scores.items()
        }
        with room_for_files(config, artifacts, n_queries=parts.test.n_queries):
            opened = open_test(config, part, scores)
            facts = _facts(config, opened, parts, trained)
            step("writing the report")
            artifacts["comparison.csv"] = facts.comparison.table.to_csv(index=False).encode()
            artifacts["experiment.yaml"] = facts.config.encode()
            artifacts["report.html"] = report_for_experiment(facts).encode()
        for path, content in artifacts.items():
            write_atomically(config.directory / path, [content])
    record = experiment_record(config, facts, artifacts, trained, run)
    _keep(config, record)
    step("logging")
    tracked, tracking_error = sent(config, record)
    if tracking_error:
        warn(f"{NOT_LOGGED}{tracking_error}")
    step("done")
    return ExperimentResult(config, facts, config.directory, tracked, tracking_error)


def _keep(config: ExperimentConfig, record: RunRecord) -> None:
    """Write the record of a run beside its report, for `rankeval site`; the same work once."""
    assert record.key is not None
    place = config.directory / "runs" / record.key[:20]
    if not place.exists():
        # The predictions and models are in the folder already.
        children = [replace(child, artifacts={}, model=None) for child in record.children]
        try:
            write(record_of(replace(record, children=tuple(children))), place)
        except RankevalError as error:
            warn(f"the record for `rankeval site` was not written: {error}")


def _predictions(test: RankingData, score: NDArray[np.float64]) -> bytes:
    docid = {} if test.docid is None else {"docid": test.docid.tolist()}
    columns = {"qid": test.qid.tolist(), "relevance": test.y, "score": score, **docid}
    return pd.DataFrame(columns).to_parquet(index=False)


def _facts(
    config: ExperimentConfig, opened: Opened, parts: DataParts, trained: Mapping[str, Trained]
) -> ExperimentFacts:
    comparison, evaluations = opened.comparison, opened.evaluations
    baseline, primary, others = config.baseline, config.all_measures[0], config.all_measures[1:]
    secondary = None
    if others and baseline is not None:
        rule: dict[str, Any] = {"baseline": baseline, "alpha": config.comparison.alpha}
        secondary = compare(evaluations, measures=others, correction="none", **rule)
    candidates = tuple(
        _candidate(name, config.rankers[name], result, evaluations[name])
        for name, result in trained.items()
    )
    scores = {name: candidate.scores for name, candidate in trained.items()}
    paths = [path for ranker in config.rankers.values() for path in ranker.paths]
    return ExperimentFacts(
        config.name,
        primary,
        baseline,
        candidates,
        comparison,
        secondary,
        opened.guard,
        parts.logged,
        notes=parts.notes,
        moved=moved_rows(comparison, evaluations, scores, parts.test),
        slices=_slices(config, opened, parts),
        config=config.to_yaml(),
        versions=versions(paths),
    )


def _candidate(name: str, config: RankerConfig, trained: Trained, test: Evaluation) -> Candidate:
    return Candidate(
        name=name,
        estimator=config.title,
        params={**config.params, **trained.params},
        dev=replace(trained.validation.evaluation, name=name),
        test=test,
        search=trained.search,
        seconds=trained.seconds,
        reused=trained.reused,
        digest=trained.digest,
        n_iterations=trained.n_iterations,
        findings=diagnosed(trained.validation)[1],
    )


def _slices(config: ExperimentConfig, opened: Opened, parts: DataParts) -> dict[str, pd.DataFrame]:
    evaluations, baseline, primary = opened.evaluations, config.baseline, config.all_measures[0]
    tables, leader = {}, next(iter(evaluations))
    if baseline is not None:
        leader = named_system(opened.comparison)
    sign = direction(primary).sign or 1
    for name, values in parts.slices.items():
        slices = {ranker: test.slices(values) for ranker, test in evaluations.items()}
        first = slices[leader]
        columns = {str(name): first.index.map(str), "queries": first["n_queries"].array}
        scores = {ranker: table[primary].array for ranker, table in slices.items()}
        frame, gains = pd.DataFrame(columns | scores), scores[leader]
        if baseline is not None:
            gains = frame[f"{leader} - {baseline}"] = gains - scores[baseline]
        tables[str(name)] = worst_slices_first(frame, sign * gains, frame["queries"])
    return tables


@dataclass
class ExperimentRun:
    """A run of an experiment that has begun: when, and the data that it read."""

    started: float = field(default_factory=time.time)
    data: tuple[LoggedData, ...] = ()


@contextmanager
def begun(config: ExperimentConfig) -> Iterator[ExperimentRun]:
    """Begin a run; if a refusal or an error ends it, log a run that FAILED and says why.

    Nothing was scored then, or not all, so the run has no evaluations. A wrong key or value of the
    file is no run.
    """
    run = ExperimentRun()
    try:
        yield run
    except ConfigError:
        raise
    except (Exception, Refusal) as error:
        reason = f"No result. {type(error).__name__}: {said(error)}"
        files = {"experiment.yaml": config.to_yaml().encode()}
        record = _begun(config, run, reason, [reason])
        failed = replace(record, status="FAILED", reason=reason, artifacts=files)
        _, refused = sent(config, failed)
        if refused:
            warn(f"the failed run was not logged: {refused}")
        raise


def sent(config: ExperimentConfig, record: RunRecord) -> tuple[TrackedRun | None, str | None]:
    """Log a run, if runs are tracked; return it, or the message of a server that refused."""
    if config.tracking is None:
        return None, None
    make_tracker = host(config.tracking.host).tracker
    assert make_tracker is not None  # the model refuses a host without one
    try:
        experiment = config.tracking.experiment or config.name
        return make_tracker().log(record, experiment=experiment, uri=config.tracking.uri), None
    except TrackingError as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 - a host must not hide the result of an opened test
        return None, f"the host {config.tracking.host!r} failed: {type(error).__name__}: {error}"


def _begun(
    config: ExperimentConfig, run: ExperimentRun, headline: str, more: list[str]
) -> RunRecord:
    # The same settings and results are the same run, whenever, by whomever and to whatever folder
    # it ran.
    settings = config.model_dump(mode="json", exclude={"output", "n_jobs"})
    params: dict[str, Any] = {"primary": config.all_measures[0]}
    for name in ("baseline", "convention"):
        params[name] = getattr(config, name)
    for name in ("n_splits", "seed"):
        params[f"cv.{name}"] = settings["cv"][name]
    identity = json.dumps([settings, more], sort_keys=True)
    return RunRecord(
        name=config.name,
        params={**params, "seed": config.seed},
        tags={"rankeval.kind": "experiment", "rankeval.headline": headline},
        data=run.data,
        started=run.started,
        seconds=time.time() - run.started,
        key=hashlib.sha256(identity.encode()).hexdigest(),
    )


def experiment_record(
    config: ExperimentConfig,
    facts: ExperimentFacts,
    artifacts: Mapping[str, bytes],
    trained: Mapping[str, Trained],
    run: ExperimentRun,
) -> RunRecord:
    """Return the run of an experiment that is done, with a child for each ranker."""
    comparison, candidates = facts.comparison, facts.candidates
    results = [facts.guard.plan, *(candidate.digest for candidate in candidates)]
    begun = _begun(config, run, comparison.headline, results)
    params = {f"comparison.{name}": getattr(comparison.settings, name) for name in _TESTED}
    children = [_child(child, facts, artifacts, trained[child.name]) for child in candidates]
    own = {path: file for path, file in artifacts.items() if not path.startswith("predictions/")}
    return replace(
        begun,
        params={**begun.params, **params},
        tags={**begun.tags, **facts.guard.tags()},
        comparison=comparison,
        artifacts=own,
        children=tuple(children),
    )


def _child(
    candidate: Candidate, facts: ExperimentFacts, artifacts: Mapping[str, bytes], trained: Trained
) -> RunRecord:
    params: dict[str, Any] = {"estimator": candidate.estimator}
    params |= {key: _plain(value) for key, value in candidate.params.items()}
    metrics = {"tuning_seconds": float(candidate.seconds)}
    if candidate.n_iterations is not None:
        metrics["n_iterations"] = float(candidate.n_iterations)
    origin = "yes"
    if trained.reused:
        origin = "no: cached by an earlier run"
        if not trained.model:
            origin = f"{origin}, which kept no model"
    tags = {"rankeval.kind": "candidate", "rankeval.digest": candidate.digest}
    tags |= {"rankeval.trained": origin, **facts.guard.tags()}
    path = f"predictions/{candidate.name}.parquet"
    search = candidate.search.to_csv(index=False).encode()
    files = {path: artifacts[path], "search.csv": search}
    lines = {"test": facts.guard.line} if facts.guard.active else {}
    lines["dev"] = " ".join(f"{finding}." for finding in candidate.findings)
    return RunRecord(
        name=candidate.name,
        params=params,
        metrics=metrics,
        tags=tags,
        said=lines,
        evaluations={"dev": candidate.dev, "test": candidate.test},
        data=facts.data,
        artifacts=files,
        started=trained.started,
        seconds=trained.took,
        model=trained.model,
        rows=trained.rows,
        folds=trained.validation,
    )


def _plain(value: Any) -> str | float | bool | None:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
