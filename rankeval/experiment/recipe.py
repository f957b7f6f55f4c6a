"""Run an experiment: a recipe over public calls.

Load the data, split it, register the test part, tune every candidate on dev, freeze the winners, open the test part
once, compare, report, log. Results of an earlier run come from the cache, and opening the same rankings again costs no
look: you may run the same file as often as you like.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from rankeval.comparison import Comparison, compare
from rankeval.errors import ConfigError, RankevalWarning
from rankeval.evaluation import Evaluation
from rankeval.experiment.checks import Checked, artifacts_of, check_experiment, predictions_of, room_for_files
from rankeval.experiment.config import ExperimentConfig, check_config, load_config
from rankeval.experiment.final_look import Opened, guard_test_part, open_test
from rankeval.experiment.loading import Parts, split
from rankeval.experiment.tracked import begun, track
from rankeval.experiment.training import Trained, train, versions
from rankeval.io.opening import write_atomically
from rankeval.report import Candidate, ExperimentFacts, GuardFacts
from rankeval.tracking import LoggedData, TrackedRun

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
        return f"ExperimentResult({self.facts.name!r}: {self.comparison.headline})"

    def _repr_html_(self) -> str:
        return self.comparison._repr_html_()


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
        If the dev part holds registered test content. The tracking server then has a run that FAILED, with the reason,
        as after every error that comes once data is read.

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
    checked = check_experiment(config)
    with begun(config) as run:
        steps.next("loading data")
        parts = _parts(config, checked)
        run.data = parts.logged()
        part = guard_test_part(config, parts)
        trained = {}
        for name, ranker in checked.rankers.items():
            steps.next(f"tuning {name}")
            trained[name] = train(name, ranker, config, parts, run.data)
        steps.next("opening the test part")
        scores = {name: one.tuned.scores for name, one in trained.items()}
        artifacts = predictions_of(parts.test, scores)
        with room_for_files(config, artifacts, n_queries=parts.test.n_queries):
            opened = open_test(config, part, scores)
            facts = _facts(config, opened, parts, run.data, trained)
            steps.next("writing the report")
            artifacts |= artifacts_of(facts)
        for path, content in artifacts.items():
            write_atomically(config.directory / path, [content])
    steps.next("logging")
    tracked, tracking_error = track(config, facts, artifacts, trained, run)
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


def _parts(config: ExperimentConfig, checked: Checked) -> Parts:
    """Load the data and split it; the validation part is kept apart if a ranker stops early."""
    from rankeval.model_selection.capabilities import stops_early

    stopping = [name for name, ranker in checked.rankers.items() if stops_early(ranker)]
    parts = split(config, checked.load(), watched=bool(stopping))
    for name in stopping if parts.validation is not None else ():
        if checked.rankers[name].validation_fraction is not None:
            raise ConfigError(
                f"rankers.{name}.validation_fraction: the data has a validation part, on which training stops: leave "
                "it out, or set split.join_validation: true"
            )
    return parts


def _facts(
    config: ExperimentConfig,
    opened: Opened,
    parts: Parts,
    data: tuple[LoggedData, ...],
    trained: Mapping[str, Trained],
) -> ExperimentFacts:
    candidates = tuple(
        Candidate(
            name=name,
            estimator=config.rankers[name].title,
            params={**config.rankers[name].params, **one.tuned.params},
            search=one.tuned.search,
            dev=replace(one.tuned.dev, name=name),
            test=opened.evaluations[name],
            seconds=one.tuned.seconds,
            reused=one.reused,
            digest=one.digest,
            n_iterations=one.tuned.n_iterations,
        )
        for name, one in trained.items()
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
        notes=parts.notes,
        config=config.to_yaml(),
        versions=versions(path for ranker in config.rankers.values() for path in ranker.paths),
    )


def _secondary(config: ExperimentConfig, evaluations: Mapping[str, Evaluation]) -> pd.DataFrame:
    """Return the differences by the other measures, without p-values: the plan promised none."""
    others = config.all_measures[1:]
    if not others or config.baseline is None:
        return pd.DataFrame()
    table = compare(
        evaluations,
        baseline=config.baseline,
        measures=others,
        correction="none",
        alpha=config.comparison.alpha,
    ).table
    of_tests = ["p_value", "p_adjusted", "ci_low_adjusted", "ci_high_adjusted", "detectable_difference"]
    return table.drop(columns=of_tests)
