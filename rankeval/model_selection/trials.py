"""Tune a ranker with Optuna: report every fold to the pruner, and end the study if the guard refuses.

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
    """The objective of a study: the mean of folds of a measure; see `rankeval.optuna_objective`.

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
        The one measure that is optimised, and all rows, grouped by query.

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
    def measure(self) -> Measure:
        """The measure that is optimised."""
        return self.scoring.labelled[0][1]

    @property
    def direction(self) -> str:
        """The direction of the study: "maximize", or "minimize" if less is better, as for ARP."""
        return "maximize" if self.measure.family.greater_is_better else "minimize"

    def __call__(self, trial: Any) -> float:
        """Return the mean of folds."""
        import optuna

        study = getattr(trial, "study", None)
        is_other = study is not None and [
            direction.name.lower() for direction in study.directions
        ] != [self.direction]
        way = f'optuna.create_study(direction="{self.direction}")'
        refuse((is_other, f"{self.measure} is to be {self.direction}d: {way}"))
        try:
            ranker = self.ranker(trial)
            self.task.refuse_unusable(ranker)
            values: list[float] = []
            for step, (train, test) in enumerate(self.folds):
                score = self.task.fit(ranker, train).predict(self.task.data.take(test).X)
                values += aggregates(self.scoring.evaluate(test, score)).values()
                trial.report(values[-1], step)
                if trial.should_prune() and step + 1 < len(self.folds):
                    raise optuna.TrialPruned(f"after {step + 1} of {len(self.folds)} folds")
        except Refusal as refusal:
            # Optuna marks no trial as failed for a BaseException. `study.stop` would hide the
            # refusal with several jobs: Optuna then ignores errors of the other threads.
            if study is not None:
                trial.set_user_attr("refused", str(refusal))
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            raise
        trial.set_user_attr("measure", str(self.measure))
        trial.set_user_attr("folds", values)
        trial.set_user_attr("value", MEAN_OF_FOLDS)
        return float(np.mean(values))

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
        return f"OptunaObjective({self.estimator!r}, {self.measure}, {MEAN_OF_FOLDS} ({len(self.folds)}))"


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
    measure: str | Measure = "nDCG@10",
    cv: Any = 5,
    convention: str | Convention = "rankeval",
) -> OptunaObjective:
    """Make an objective for ``optuna.create_study(direction="maximize").optimize(objective)``.

    ``objective.direction`` is "maximize", or "minimize" if less of the measure is better, as for
    ARP.

    Folds are fitted one after the other. Each fold's mean is reported under its number, so that the
    study's pruner can end a trial between folds. To run trials in parallel, use Optuna:
    ``optimize(..., n_jobs=)``, or several processes on one storage.

    The value of a trial is the mean of folds, as scikit-learn's ``mean_test_score`` is.
    `cross_validate` gives the mean over all queries, which differs a little if folds have unequal
    numbers of queries. The user attributes of a trial say so (``value``), with the value of each
    fold (``folds``).

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
    measure : str or Measure, default ``"nDCG@10"``
        The measure to optimise.
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
        choices or has a bare pair of numbers, there are several measures, or `cross_validate` would
        refuse an argument.
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
    refuse(
        (len(found) > 1, f"measure is {shown(measure)}; give one measure for the study to optimise")
    )
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
