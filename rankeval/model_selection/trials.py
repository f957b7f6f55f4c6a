"""Tune a ranker with Optuna: report every fold to the pruner, and end the study if the guard refuses.

A trial keeps what it was asked for in its user attributes, so that a study that another process
loads can be logged: the measure, the value of each fold, and why it failed.

A refusal is a BaseException, which Optuna does not catch: it leaves the trial in the state RUNNING.
So a refusal first tells the study that the trial failed, then goes on up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval._arguments import explained
from rankeval._checks import refuse, require, shown
from rankeval.collection.convention import Convention
from rankeval.errors import Refusal
from rankeval.evaluation.result import aggregates
from rankeval.model_selection import boosters
from rankeval.model_selection.checks import check_measures, check_names
from rankeval.model_selection.fitting import FoldScoring, Task
from rankeval.model_selection.limits import decides
from rankeval.model_selection.query_split import Rows
from rankeval.model_selection.ranker import QueryRanker, as_ranker

if TYPE_CHECKING:
    from rankeval.measures import Measure

MEAN_OF_FOLDS = "mean of folds"
"""The value of a trial; `cross_validate` pools the queries of all folds."""

Space = Callable[[Any], Mapping[str, Any]] | Mapping[str, Any]


@explained
@dataclass(frozen=True, eq=False)
class OptunaObjective:
    """The objective of a study: the mean of folds of each measure; see `rankeval.optuna_objective`.

    Attributes
    ----------
    estimator : object
        The ranker, fitted with the parameters of each trial.
    space : callable or mapping
        The source of the parameters.
    task : Task
        The rows, with groups and weights if given.
    folds : list of (ndarray, ndarray)
        Numbers of the training and the test rows of each fold, of shape (n_train_rows,) and
        (n_test_rows,). They are the same for all trials.
    scoring : FoldScoring
        The measures that are optimised, and all rows, grouped by query.

    Examples
    --------
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> rk.optuna_objective(Ridge(), {"alpha": [0.1, 10.0]}, rk.datasets.make_ranking(30), measure="ARP").direction
    'minimize'
    """

    estimator: Any
    space: Space
    task: Task
    folds: list[tuple[Rows, Rows]]
    scoring: FoldScoring

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that are optimised, in the order of a trial's values."""
        return tuple(measure for _, measure in self.scoring.labelled)

    @property
    def measure(self) -> Measure:
        """The measure that is optimised; of several the first."""
        return self.measures[0]

    @property
    def directions(self) -> list[str]:
        """The direction for each measure: "maximize", or "minimize" if less is better, as for ARP."""
        return [
            "maximize" if measure.family.greater_is_better else "minimize"
            for measure in self.measures
        ]

    @property
    def direction(self) -> str:
        """The direction of a study of one measure; raises InvalidInput for several."""
        directions = self.directions
        several = f"the objective has {len(directions)} measures, and a direction for each"
        refuse((len(directions) > 1, several, f"use {_created(directions)}"))
        return directions[0]

    def __call__(self, trial: Any) -> float | list[float]:
        """Return the mean of folds; of several measures a list of means."""
        study, directions = getattr(trial, "study", None), self.directions
        names = [str(measure) for measure in self.measures]
        if study is not None:
            found = [direction.name.lower() for direction in study.directions]
            verb = "are" if len(names) > 1 else "is"
            wanted = f"{verb} to be {'d, '.join(directions)}d: {_created(directions)}"
            refuse((found != directions, f"{', '.join(names)} {wanted}"))
        trial.set_user_attr("measure", _alone(names))
        trial.set_user_attr("value", MEAN_OF_FOLDS)
        try:
            folds = self._folds(trial)
        except (Exception, Refusal) as error:
            self._note(error, trial, study)
            raise
        trial.set_user_attr("folds", _alone(folds))
        value: float | list[float] = _alone([float(np.mean(values)) for values in folds])
        return value

    def _folds(self, trial: Any) -> list[list[float]]:
        """Return the values of the folds by measure; the pruner may end the trial before the last."""
        import optuna

        ranker = self.ranker(trial)
        self.task.refuse_unusable(ranker)
        values: list[tuple[float, ...]] = []
        for step, (train, test) in enumerate(self.folds, start=1):
            held_out = self.task.data.take(test)
            score = self.task.fit(ranker, train).predict(held_out.X, qid=held_out.qid)
            values.append(tuple(aggregates(self.scoring.evaluate(test, score)).values()))
            if len(self.measures) > 1:  # Optuna reports and prunes by one value
                continue
            trial.report(*values[-1], step - 1)
            if trial.should_prune() and step < len(self.folds):
                raise optuna.TrialPruned(f"after {step} of {len(self.folds)} folds")
        return [list(of_measure) for of_measure in zip(*values, strict=True)]

    def _note(self, error: BaseException, trial: Any, study: Any) -> None:
        """Write to the trial why it fails; a refusal also ends it."""
        import optuna

        if isinstance(error, optuna.TrialPruned):
            return
        is_refusal = isinstance(error, Refusal)
        words = str(error) if is_refusal else f"{type(error).__name__}: {error}"
        trial.set_user_attr("refused" if is_refusal else "error", words)
        if is_refusal and study is not None:
            # Optuna marks no trial as failed for a BaseException. `study.stop` would hide the
            # refusal with several jobs: Optuna then ignores errors of the other threads.
            study.tell(trial, state=optuna.trial.TrialState.FAIL)

    def ranker(self, trial: Any) -> QueryRanker:
        """Return an unfitted ranker with a trial's parameters.

        Parameters
        ----------
        trial : optuna.trial.Trial or FrozenTrial
            ``study.best_trial`` gives the ranker to fit on all data.
        """
        require(hasattr(trial, "suggest_categorical"), "trial", trial, "a trial of Optuna")
        params = self.space(trial) if callable(self.space) else _suggested(trial, self.space)
        if callable(self.space):
            check_names(self.estimator, params, where="space")
        return as_ranker(boosters.cloned(self.estimator).set_params(**params))

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.measures))
        unpruned = "" if len(self.measures) == 1 else ", no pruning"
        folds = f"{MEAN_OF_FOLDS} ({len(self.folds)}){unpruned}"
        return f"OptunaObjective({self.estimator!r}, {names}, {folds})"


def _alone(values: list[Any]) -> Any:
    """Return the value of the only measure; of several measures all values."""
    return values if len(values) > 1 else values[0]


def _created(directions: Sequence[str]) -> str:
    several = "directions=objective.directions"
    option = several if len(directions) > 1 else f'direction="{directions[0]}"'
    return f"optuna.create_study({option})"


@explained
def optuna_objective(
    estimator: Any,
    space: Space,
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group: Any = None,
    docid: Any = None,
    columns: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    position: Any = None,
    eval_set: Any = None,
    eval_qid: Any = None,
    measure: str | Measure | Sequence[str | Measure] = "nDCG@10",
    cv: Any = 5,
    convention: str | Convention = "rankeval",
) -> OptunaObjective:
    """Make an objective for ``optuna.create_study(direction="maximize").optimize(objective)``.

    ``objective.direction`` is "maximize", or "minimize" if less of the measure is better, as for
    ARP. With several measures, a trial has a value for each; create the study with
    ``directions=objective.directions``. Optuna does not prune trials of such a study.

    Folds are fitted one after the other. Each fold's mean is reported under its number, so that the
    study's pruner can end a trial between folds. To run trials in parallel, use Optuna:
    ``optimize(..., n_jobs=)``, or several processes on one storage.

    The value of a trial is the mean of folds, as scikit-learn's ``mean_test_score`` is.
    `cross_validate` gives the mean over all queries, which differs a little if folds have unequal
    numbers of queries. The user attributes of a trial say so (``value``), with the measure
    (``measure``), the value of each fold (``folds``; of several measures a list for each), and why
    a trial failed (``error``, ``refused``). ``rankeval_mlflow.log(study)`` reads them.

    Parameters
    ----------
    estimator : object
        Anything that `QueryRanker` takes, or a QueryRanker.
    space : callable or mapping
        A function of a trial that returns parameters of the estimator. Or a mapping of parameters
        to ``optuna.distributions`` or lists of choices: ``[3, 15]`` are two values,
        ``IntDistribution(3, 15)`` is a range.
    X, y, qid, group, docid, columns, groups, sample_weight, query_weight, position, eval_set, eval_qid, cv
        As in `cross_validate`. All trials are scored on the same folds.
    measure : str, Measure or list of these, default ``"nDCG@10"``
        The measure to optimise, or several.
    convention
        As in `cross_validate`.

    Returns
    -------
    OptunaObjective
        The objective. ``objective.ranker(study.best_trial)`` returns the winner, not yet fitted.

    Raises
    ------
    QueryIdError
        If the query of each row is not known.
    InvalidInput
        If the space is neither a function nor a mapping, a parameter has neither a distribution nor
        choices or has a bare pair of numbers, or `cross_validate` would refuse an argument. In a
        trial, if the directions of the study are not those of the measures.
    UnknownName
        If the measure, the convention, a rule or a parameter of the space does not exist. The
        parameters that a function returns are checked in the trial.
    GuardRefusal
        If the data is registered test content.

    Examples
    --------
    >>> import optuna
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> objective = optuna_objective(Ridge(), {"alpha": [0.1, 10.0]}, rk.datasets.make_ranking(30, rng=0), cv=3)
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(direction=objective.direction)
    >>> study.optimize(objective, n_trials=2)
    >>> len(study.trials), objective.ranker(study.best_trial)
    (2, QueryRanker(estimator=Ridge(alpha=...)))
    """
    arguments = locals()
    forms = "a function of a trial that returns parameters, or a mapping of parameters to distributions or choices"
    refuse(
        (
            not callable(space) and not isinstance(space, Mapping),
            f"space is {shown(space)}; give {forms}",
        )
    )
    found = check_measures(measure, convention)
    ranker = as_ranker(estimator)
    if not callable(space):
        space = {name: _distribution(name, wanted) for name, wanted in space.items()}
        check_names(estimator, space, where="space")
    task = Task.of([ranker], arguments, who="optuna_objective", action="optimise")
    if not callable(space) and not decides(space):  # else each trial is asked
        task.refuse_unusable(ranker)
    scoring = FoldScoring.of(task, found, convention, columns)
    return OptunaObjective(estimator, space, task, task.folds(cv), scoring)


def _distribution(name: str, wanted: Any) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(wanted, (FloatDistribution, IntDistribution, CategoricalDistribution)):
        return wanted
    is_sequence = (
        isinstance(wanted, Sequence) and not isinstance(wanted, (str, bytes)) and len(wanted) > 0
    )
    is_pair = isinstance(wanted, tuple) and len(wanted) == 2
    is_pair = is_pair and all(
        isinstance(value, Real) and not isinstance(value, bool) for value in wanted
    )
    kind = (
        "IntDistribution"
        if is_pair and all(isinstance(value, Integral) for value in wanted)
        else "FloatDistribution"
    )
    given = f"space[{name!r}] is {shown(wanted)}"
    values = f"give the list {list(wanted) if is_pair else ''} for the two values"
    unclear = f"which may mean two values or a range: {values}, or optuna.distributions.{kind}{wanted!r} for it"
    kinds = "FloatDistribution, IntDistribution or CategoricalDistribution"
    refuse(
        (is_pair, f"{given}, {unclear}"),
        (not is_sequence, f"{given}; give an optuna.distributions.{kinds}, or a list of choices"),
    )
    return CategoricalDistribution(list(wanted))


def _suggested(trial: Any, space: Mapping[str, Any]) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    params: dict[str, Any] = {}
    for name, wanted in space.items():
        if isinstance(wanted, CategoricalDistribution):
            params[name] = trial.suggest_categorical(name, wanted.choices)
        else:
            suggest = (
                trial.suggest_float if isinstance(wanted, FloatDistribution) else trial.suggest_int
            )
            params[name] = suggest(name, wanted.low, wanted.high, step=wanted.step, log=wanted.log)
    return params
