"""Run an experiment: a recipe over public calls.

Load the data, split it, register the test part, tune every candidate on dev, freeze the winners, open the test part
once, compare, report, log. Results of an earlier run come from the cache, and opening the same rankings again costs no
look: you may run the same file as often as you like.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rankeval.collection.data import RankingData
from rankeval.comparison import Comparison, compare
from rankeval.errors import RankevalWarning
from rankeval.evaluation import Evaluation
from rankeval.experiment.checks import check_experiment, room_for_files
from rankeval.experiment.config import check_config, load_config
from rankeval.experiment.final_look import Opened, guard_test_part, open_test
from rankeval.experiment.loading import Parts
from rankeval.experiment.moved import moved_rows
from rankeval.experiment.sections import ExperimentConfig
from rankeval.experiment.tracked import begun, record_of, sent
from rankeval.experiment.training import Trained, train, versions
from rankeval.io.opening import write_atomically
from rankeval.report import Candidate, ExperimentFacts, GuardFacts, report_for_experiment
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
        run.data = parts.logged()
        part = guard_test_part(config, parts)
        trained = {}
        for name, ranker in checked.rankers.items():
            step(f"tuning {name}")
            trained[name] = train(name, ranker, config, parts, run.data)
        step("opening the test part")
        scores = {name: one.scores for name, one in trained.items()}
        artifacts = {f"predictions/{name}.parquet": _predictions(parts.test, one) for name, one in scores.items()}
        with room_for_files(config, artifacts, n_queries=parts.test.n_queries):
            opened = open_test(config, part, scores)
            facts = _facts(config, opened, parts, run.data, trained)
            step("writing the report")
            artifacts["comparison.csv"] = facts.comparison.table.to_csv(index=False).encode()
            artifacts["experiment.yaml"] = facts.config.encode()
            artifacts["report.html"] = report_for_experiment(facts).encode()
        for path, content in artifacts.items():
            write_atomically(config.directory / path, [content])
    step("logging")
    tracked, tracking_error = sent(config, record_of(config, facts, artifacts, trained, run))
    if tracking_error:
        warnings.warn(f"{NOT_LOGGED}{tracking_error}", RankevalWarning, stacklevel=2)
    step("done")
    return ExperimentResult(config, facts, config.directory, tracked, tracking_error)


def _predictions(test: RankingData, score: NDArray[np.float64]) -> bytes:
    columns = {"qid": test.qid.tolist(), "relevance": test.y, "score": score}
    if test.docid is not None:
        columns["docid"] = test.docid.tolist()
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


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
            params={**config.rankers[name].params, **one.params},
            dev=replace(one.validation.evaluation, name=name),
            test=opened.evaluations[name],
            **{key: getattr(one, key) for key in ("search", "seconds", "reused", "digest", "n_iterations")},
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
        moved=moved_rows(
            opened.comparison, opened.evaluations, {n: one.scores for n, one in trained.items()}, parts.test
        ),
        slices=_slices(config, opened.evaluations, parts),
        config=config.to_yaml(),
        versions=versions(path for ranker in config.rankers.values() for path in ranker.paths),
    )


def _secondary(config: ExperimentConfig, evaluations: Mapping[str, Evaluation]) -> Comparison | None:
    others, alpha = config.all_measures[1:], config.comparison.alpha
    if not others or config.baseline is None:
        return None
    return compare(evaluations, baseline=config.baseline, measures=others, correction="none", alpha=alpha)


def _slices(config: ExperimentConfig, evaluations: Mapping[str, Evaluation], parts: Parts) -> dict[str, pd.DataFrame]:
    tables = {}
    for name, values in parts.slices.items():
        found = {ranker: one.slices(values) for ranker, one in evaluations.items()}
        first = next(iter(found.values()))
        columns = {str(name): first.index.map(str), "queries": first["n_queries"].array}
        means = {ranker: one[config.all_measures[0]].array for ranker, one in found.items()}
        tables[str(name)] = pd.DataFrame(columns | means)
    return tables
