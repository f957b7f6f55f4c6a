"""Find all that can be wrong with an experiment before any data is loaded.

The model has checked keys, values, the host and the names of measures. What is checked here imports
scikit-learn and the libraries of the rankers: estimators, parameters, measures, the comparison, the
loader. Last come the places that results go to: the folder, the ledger, the tracking server. A look
at the test part must not be spent on a run whose result has no place.

Rankers are made; only `check_run` fits them, on a few queries. What a file names is looked at
before it is called: ``os:system`` as a loader would run the path, ``subprocess.Popen`` as an
estimator would start a program. The checks catch mistakes and no malice, because importing a module
already runs its code.

The folder may vanish and the disk may fill up while rankers train for hours. So the room of all
files is held from before the test part is opened until they are written: the look is not spent on a
run that cannot keep its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankeval._arguments import explained
from rankeval._checks import said
from rankeval._registry import chosen
from rankeval._source import install
from rankeval.errors import ConfigError, InvalidInput, warn
from rankeval.experiment.config import blaming, load_config
from rankeval.experiment.final_look import check_ledger, check_parts, why_unguarded
from rankeval.experiment.loading import DataParts, Loaded, find_loader, imported, split
from rankeval.experiment.schema import ExperimentConfig, RankerConfig, StepConfig
from rankeval.ledger.folder import room_held
from rankeval.report.queries import MOST_BYTES
from rankeval.tracking import host

if TYPE_CHECKING:
    from rankeval.model_selection.ranker import QueryRanker

_ROOM = {"comparison.csv": 1 << 16, "experiment.yaml": 1 << 16, "report.html": 1 << 19}
"""Bytes of files without the table of queries: reports of 12 rankers have 0.1 to 0.3 MB."""
_SCORE = 256
"""Bytes of one query and ranker in that table."""


def load_parts(config: ExperimentConfig | str | Path) -> DataParts:
    """Load the rows of an experiment and split them as a run does, which trains and opens nothing.

    Parameters
    ----------
    config : ExperimentConfig, str or Path
        The experiment, or its file. As in a run, paths start from the working directory.

    Returns
    -------
    Parts
        ``dev``, ``test``, and ``validation`` if a ranker stops early on such a part.

    Raises
    ------
    ConfigError
        If the file is wrong, a ranker cannot be made, or a part is missing.

    Examples
    --------
    >>> load_parts("quickstart").test.n_queries
    78
    """
    config = config if isinstance(config, ExperimentConfig) else load_config(config)
    return _made_of(config).parts()


@explained
def check_run(config: ExperimentConfig) -> DataParts:
    """Check a run without it: the file, its data, its parts by the guard, and a small fit of each ranker.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment.

    Returns
    -------
    Parts
        Its rows. Nothing was registered, recorded or opened.

    Raises
    ------
    ConfigError, LedgerError
        As `check_experiment`, or if a part is missing, or a ranker's steps name no column of it or
        leave categories to an estimator of numbers.
    InvalidInput
        If a ranker cannot be trained on 20 queries of dev, among them some with empty cells.
    GuardRefusal
        If a part to train on contains registered test content, or queries of the test part.
    """
    from rankeval.experiment.training import fit_few

    checked = check_experiment(config)
    parts = checked.parts()
    check_parts(config, parts)
    for name, ranker in checked.rankers.items():
        fit_few(name, ranker, config, parts)
    return parts


@contextmanager
def room_for_files(
    config: ExperimentConfig, predictions: Mapping[str, bytes] | None = None, *, n_queries: int = 0
) -> Iterator[None]:
    """Hold the room of all files of an experiment."""
    paths = [f"predictions/{name}.parquet" for name in config.rankers]
    sizes = _ROOM | {path: 1 if predictions is None else len(predictions[path]) for path in paths}
    sizes["report.html"] += min(_SCORE * n_queries * len(paths), MOST_BYTES)
    with ExitStack() as stack:
        try:
            stack.enter_context(_room_in(config.directory, sizes))
        except OSError as error:
            problem = f"{error.filename!r} cannot be written: {error.strerror or error}"
            raise InvalidInput(problem, argument="output.directory") from error
        yield


def _room_in(directory: Path, sizes: Mapping[str, int]) -> ExitStack:
    stack = ExitStack()
    places = {directory / path: size for path, size in sizes.items()}
    for attempts_left in reversed(range(10)):
        try:
            (directory / "predictions").mkdir(parents=True, exist_ok=True)
            stack.enter_context(room_held(places))
            break
        # The check of another run removed a folder while it was empty.
        except (FileNotFoundError, FileExistsError):
            if not attempts_left:
                raise
    return stack


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders, the innermost first, but those in which somebody has written meanwhile."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


@dataclass(frozen=True, eq=False)
class Checked:
    """The rankers of an experiment, not fitted, and the loader of its data, not called."""

    config: ExperimentConfig
    rankers: Mapping[str, QueryRanker]
    load: Callable[[], Loaded]

    def parts(self) -> DataParts:
        """Load the rows and split them."""
        from rankeval.model_selection.ranker import stops_early

        watched = any(map(stops_early, self.rankers.values()))
        parts = split(self.config, self.load(), watched=watched)
        for name, ranker in self.rankers.items():
            own = self.config.rankers[name]
            if own.column is None:
                _check_columns(own, ranker.estimator, parts.dev.X, f"rankers.{name}")
        return parts


def _check_columns(config: RankerConfig, estimator: Any, X: Any, key: str) -> None:
    """Refuse steps of columns that do not exist, and categories before an estimator of numbers."""
    from sklearn.utils import get_tags

    from rankeval.model_selection.boosters import booster_of
    from rankeval.model_selection.category_columns import categories_of
    from rankeval.model_selection.nesting import last_of

    left, last, before = categories_of(X), last_of(estimator), (config.steps or [])[:-1]
    with blaming(f"{key}.steps.0.columns"):
        for column in (before[0].columns or ()) if before else ():
            chosen("column", column, getattr(X, "columns", ()))
            left.pop(column, None)
    if any(step.columns is None for step in before):
        return  # what comes out of such a step is not known before a fit
    # Boosters and scikit-learn's histograms read the types of a frame, and an encoder hands an
    # array on.
    reads_types = bool(booster_of(last)) or getattr(last, "categorical_features", None) is not None
    is_sklearn = type(last).__module__.startswith("sklearn.")
    takes_numbers = is_sklearn and not get_tags(last).no_validation
    if left and (before if reads_types else takes_numbers):
        names = ", ".join(left)
        problem = f"the categories {names} reach {type(last).__name__}, which takes numbers"
        columns = f"columns: [{', '.join(categories_of(X))}], params: {{handle_unknown: ignore}}"
        step = f"{{estimator: sklearn.preprocessing.OneHotEncoder, {columns}}}"
        others = "leave them out, or choose a booster without steps"
        remedy = f"encode them in a first step, such as {step}, {others}"
        raise ConfigError(problem, argument=key, remedy=remedy)


def _made_of(config: ExperimentConfig) -> Checked:
    rankers = {name: make_ranker(config, name) for name in config.rankers}
    return Checked(config, rankers, find_loader(config))


def check_experiment(config: ExperimentConfig) -> Checked:
    """Check an experiment without reading its data."""
    from rankeval.model_selection.checks import check_measures

    with blaming("measures"):
        check_measures(config.all_measures, config.convention, takes_columns=False)
    _check_comparison(config)
    checked = _made_of(config)
    predictions = config.directory / "predictions"
    made = [folder for folder in (predictions, *predictions.parents) if not folder.exists()]
    with blaming(""), room_for_files(config):
        pass
    remove_empty(made)
    check_ledger(config)
    _check_tracker(config)
    return checked


def _check_comparison(config: ExperimentConfig) -> None:
    from rankeval.significance import CORRECTIONS, TESTS
    from rankeval.significance.declarations import check_claim

    section = config.comparison
    test, name = section.test, section.correction
    with blaming("comparison"):
        chosen("test", test, TESTS)
        correction = CORRECTIONS[chosen("correction", name, CORRECTIONS)]
        check_claim(section.claim, section.margin)
    if correction.all_pairs_only:
        raise ConfigError(
            f"{name} compares all pairs, and an experiment compares with its baseline",
            argument="comparison.correction",
            remedy="choose another one",
        )
    if not why_unguarded(config) and (test, name) != ("randomization", "max_t"):
        raise ConfigError(
            argument="comparison",
            found=f"{test} with {name}",
            expected="randomization with max_t, as the guard's plans have",
            remedy="leave the keys out, or switch the guard off (guard: off)",
        )


def _check_tracker(config: ExperimentConfig) -> None:
    """Check before the opening that the tracker can be made, and that its server takes runs."""
    tracking = config.tracking
    if tracking is None:
        return
    destination = host(tracking.host)
    assert destination.tracker is not None  # the model refuses a host without one
    with blaming("tracking", f"the host {tracking.host!r} cannot log"):
        try:
            destination.tracker()
        except ImportError as error:
            folders = "--set tracking.host=files --set tracking.uri=results"
            remedy = f"log to folders, {folders}, or to nothing, --set tracking=off, or {install()}"
            raise InvalidInput(
                f"the host {tracking.host!r}: {said(error)}", remedy=remedy
            ) from error
        experiment = tracking.experiment or config.name
        problem = destination.check and destination.check(experiment, tracking.uri)
    if problem:
        warn(problem)


def make_ranker(config: ExperimentConfig, name: str) -> QueryRanker:
    """Make a ranker of an experiment as a QueryRanker, which stops early if the file says so."""
    from rankeval.model_selection.boosters import booster_of
    from rankeval.model_selection.checks import check_measures
    from rankeval.model_selection.libraries import in_words
    from rankeval.model_selection.nesting import last_of
    from rankeval.model_selection.ranker import QueryRanker, stops_early
    from rankeval.model_selection.score_columns import ColumnRanker

    own, key = config.rankers[name], f"rankers.{name}"
    if own.column is None:
        estimator = make_estimator(own, name=name, seed=config.seed)
    else:
        estimator = ColumnRanker(own.column, ascending=own.ascending)
    if own.early_stopping_rounds is not None and not booster_of(last_of(estimator)):
        problem = f"only {in_words()} can stop early, found {own.title}"
        raise ConfigError(problem, argument=f"{key}.early_stopping_rounds", remedy="leave it out")
    watched = own.eval_measure or config.all_measures[0]
    ranker = QueryRanker(
        estimator,
        validation_fraction=own.validation_fraction,
        early_stopping_rounds=own.early_stopping_rounds,
        eval_measure=watched,
        eval_convention=config.convention,
    )
    with blaming(key):
        check_measures(watched, config.convention, takes_columns=False)
        stops = stops_early(ranker)
    for option in () if stops else ("validation_fraction", "eval_measure"):
        if getattr(own, option) is not None:
            raise ConfigError(
                "belongs to early stopping",
                argument=f"{key}.{option}",
                remedy="give early_stopping_rounds too",
            )
    return ranker


def make_estimator(config: RankerConfig, *, name: str, seed: int) -> Any:
    """Make the estimator or the Pipeline of a ranker, with the experiment's seed as default."""
    from rankeval.model_selection.checks import check_names

    key = f"rankers.{name}"
    if config.estimator is not None:
        step = StepConfig(estimator=config.estimator, params=config.params)
        estimator = _made(step, ("fit", "predict"), key, seed)
    else:
        estimator = _pipeline(config.steps or [], key, seed)
    # A value of each parameter that is searched: one that is refused is found before an hour of
    # search.
    searched = {
        name: values[0] if isinstance(values, list) else next(iter(values.values()))[0]
        for name, values in config.searched.items()
    }
    with blaming(""):
        check_names(estimator, {**config.params, **searched}, where=key)
    estimator = _with_params(estimator, config.params, key)
    _with_params(estimator, searched, key)
    return estimator


def _made(step: StepConfig, methods: tuple[str, ...], key: str, seed: int) -> Any:
    where = f"{key}.estimator"
    cls = imported(step.estimator, key=where)
    has_methods = all(callable(getattr(cls, method, None)) for method in methods)
    if not isinstance(cls, type) or not has_methods:
        problem = f"{step.estimator!r} is not a class with {' and '.join(methods)}"
        raise ConfigError(problem, argument=where)
    with blaming(key, f"{step.estimator} cannot be made"):
        estimator = cls(**step.params)
        if "random_state" in estimator.get_params() and "random_state" not in step.params:
            estimator.set_params(random_state=seed)
    if step.columns is None:
        return estimator
    from sklearn.compose import ColumnTransformer

    transformers = [("columns", estimator, step.columns)]
    return ColumnTransformer(transformers, remainder="passthrough", sparse_threshold=0)


def _pipeline(steps: list[StepConfig], key: str, seed: int) -> Any:
    from sklearn.pipeline import Pipeline, make_pipeline

    made = []
    for place, step in enumerate(steps):
        methods = ("fit", "predict") if place == len(steps) - 1 else ("fit", "transform")
        made.append(_made(step, methods, f"{key}.steps.{place}", seed))
    usual = [name for name, _ in make_pipeline(*made).steps]
    names = [step.name or name for step, name in zip(steps, usual, strict=True)]
    for name in names:  # scikit-learn would say so at the first fit
        if names.count(name) > 1 or "__" in name or name in signature(Pipeline).parameters:
            problem = f"scikit-learn takes no step called {name!r}, or not twice"
            raise ConfigError(problem, argument=f"{key}.steps", remedy="choose another name")
    return Pipeline(list(zip(names, made, strict=True)))


def _with_params(estimator: Any, params: Mapping[str, Any], key: str) -> Any:
    # Making the copy shows what CatBoost's `set_params` lets through.
    from rankeval.model_selection.boosters import cloned

    with blaming(key, f"{type(estimator).__name__} cannot be made"):
        return cloned(cloned(estimator).set_params(**params))
