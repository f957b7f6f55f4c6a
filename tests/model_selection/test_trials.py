"""Optuna's studies over rankers."""

from __future__ import annotations

import threading
import time

import numpy as np
import optuna
import pytest
from lightgbm import LGBMRanker
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row

import rankeval as rk
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.errors import AmbiguousName, GuardRefusal, InvalidInput, MissingQueryIdsRefusal, QueryIdError, UnknownName

SPACE = {"alpha": FloatDistribution(1e-2, 1e5, log=True)}


@pytest.fixture(autouse=True)
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


def new_study(**options):
    return optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0), **options)


def objective(ltr, estimator=None, space=SPACE, **options):
    told = {"cv": 3, "measure": "AP", **options}
    return rk.optuna_objective(Ridge() if estimator is None else estimator, space, ltr.X, ltr.y, qid=ltr.qid, **told)


def test_the_value_is_that_of_cross_validation(ltr):
    """And each fold's mean is reported under its number."""
    study = new_study()
    study.optimize(objective(ltr), n_trials=3)
    for trial in study.trials:
        assert trial.state == TrialState.COMPLETE
        folds = rk.cross_validate(Ridge(**trial.params), ltr.X, ltr.y, qid=ltr.qid, cv=3, measures="AP").folds["AP"]
        assert trial.value == pytest.approx(folds.mean(), abs=1e-12)
        assert list(trial.intermediate_values) == [0, 1, 2]
        assert list(trial.intermediate_values.values()) == pytest.approx(folds.tolist(), abs=1e-12)
        assert trial.user_attrs["measure"] == "AP"
        assert trial.user_attrs["value"] == "mean of folds"


@each_row(
    ("estimator", "space"),
    [
        (
            LGBMRanker(n_estimators=5, n_jobs=1, verbose=-1),
            {
                "num_leaves": IntDistribution(2, 8),
                "learning_rate": [0.1, 0.3],
                "importance_type": CategoricalDistribution(["split"]),
            },
        ),
        (rk.QueryRanker(Ridge()), lambda trial: {"estimator__alpha": trial.suggest_float("alpha", 0.1, 1.0)}),
        (make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": FloatDistribution(0.1, 1.0)}),
    ],
    ids=["lightgbm", "QueryRanker", "Pipeline"],
)  # fmt: skip
def test_any_estimator_and_either_kind_of_space(estimator, space, ltr):
    study, asked = new_study(), objective(ltr, estimator, space)
    study.optimize(asked, n_trials=2)
    winner = asked.ranker(study.best_trial).fit(ltr.X, ltr.y, qid=ltr.qid)
    assert winner.score(ltr.X, ltr.y, qid=ltr.qid) > 0.5
    assert "AP, mean of folds (3)" in repr(asked)


def test_the_pruner_decides(ltr):
    """After the first fold, before the others are fitted."""

    class After(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            return trial.number > 0

    study = new_study(pruner=After())
    study.optimize(objective(ltr), n_trials=2)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE, TrialState.PRUNED]
    assert list(study.trials[1].intermediate_values) == [0]


class RegisteredLater:
    """A check that lets the first fits through."""

    left = 0

    def refuse(self, X, y, qid, *, docid=None, score=None, action):
        type(self).left -= 1
        if type(self).left < 0:
            raise GuardRefusal(f"registered content: {action}")


@each_row("n_jobs", [1, 2])
def test_a_refusal_fails_the_trial_and_stops_the_study(n_jobs, ltr, monkeypatch):
    """Even where the study catches Exceptions; no trial stays RUNNING."""
    study, asked = new_study(), objective(ltr)
    RegisteredLater.left = 4  # one trial of three folds, and one fold of the next
    monkeypatch.setattr(ContaminationCheck, "current", RegisteredLater)
    with pytest.raises(GuardRefusal, match="registered content: fit"):
        study.optimize(asked, n_trials=20, catch=(Exception,), n_jobs=n_jobs)
    states = [trial.state for trial in study.trials]
    assert TrialState.FAIL in states
    assert TrialState.RUNNING not in states
    assert len(states) <= 1 + n_jobs
    refused = next(trial for trial in study.trials if trial.state == TrialState.FAIL)
    assert "registered content" in refused.user_attrs["refused"]


def test_missing_ids_inside_of_the_objective_stop_the_study(ltr):
    """A MissingQueryIdsRefusal is a refusal too."""

    def space(_trial):
        raise MissingQueryIdsRefusal("no ids")

    study = new_study()
    with pytest.raises(MissingQueryIdsRefusal):
        study.optimize(objective(ltr, space=space), n_trials=5, catch=(Exception,))
    assert [trial.state for trial in study.trials] == [TrialState.FAIL]


def test_a_refusal_is_raised_though_another_job_ends_at_that_moment(ltr, monkeypatch):
    """A study that was told to stop leaves without a look at what its other threads raised."""
    study, told, ended = new_study(), threading.Event(), threading.Event()
    stop = study.stop

    def stop_and_wait():
        stop()
        told.set()
        ended.wait(5)
        time.sleep(0.2)

    def space(trial):
        if trial.number == 1:
            raise MissingQueryIdsRefusal("no ids")
        told.wait(1)
        return {}

    monkeypatch.setattr(study, "stop", stop_and_wait)
    with pytest.raises(MissingQueryIdsRefusal):
        study.optimize(objective(ltr, space=space), n_trials=9, n_jobs=2, callbacks=[lambda *_: ended.set()])
    assert study.trials[1].state == TrialState.FAIL


def test_by_ask_and_tell_there_is_nothing_to_stop(ltr, monkeypatch):
    study, asked = new_study(), objective(ltr)
    RegisteredLater.left = 0
    monkeypatch.setattr(ContaminationCheck, "current", RegisteredLater)
    with pytest.raises(GuardRefusal):
        asked(study.ask())
    assert study.trials[0].state == TrialState.FAIL


def test_registered_content_is_refused_before_there_is_a_study(ltr, monkeypatch):
    RegisteredLater.left = 0
    monkeypatch.setattr(ContaminationCheck, "current", RegisteredLater)
    with pytest.raises(GuardRefusal, match="optimise"):
        objective(ltr)


def test_a_measure_of_which_less_is_better_is_minimised(ltr):
    asked = objective(ltr, measure="ARP")
    assert (asked.direction, objective(ltr).direction) == ("minimize", "maximize")
    study = optuna.create_study(direction=asked.direction)
    study.optimize(asked, n_trials=3)
    assert study.best_value == min(trial.value for trial in study.trials)
    with pytest.raises(InvalidInput, match=r'ARP is to be minimized: .*direction="minimize"'):
        new_study().optimize(asked, n_trials=1)
    with pytest.raises(InvalidInput, match='direction="maximize"'):
        optuna.create_study(directions=["maximize", "maximize"]).optimize(objective(ltr), n_trials=1)


def test_several_measures_are_a_value_each_with_a_direction_each(ltr):
    """The values are the means of folds of cross_validate; nothing is pruned, and the repr says so."""
    asked = objective(ltr, measure=["AP", "ARP"])
    assert asked.directions == ["maximize", "minimize"]
    study = optuna.create_study(directions=asked.directions, sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(asked, n_trials=2)
    for trial in study.trials:
        folds = rk.cross_validate(Ridge(**trial.params), ltr.X, ltr.y, qid=ltr.qid, cv=3, measures=["AP", "ARP"]).folds
        assert trial.values == pytest.approx(folds[["AP", "ARP"]].mean().tolist(), abs=1e-12)
        assert trial.user_attrs["folds"] == [pytest.approx(folds[name].tolist()) for name in ("AP", "ARP")]
        assert trial.user_attrs["measure"] == ["AP", "ARP"]
    assert "AP, ARP, mean of folds (3), no pruning" in repr(asked)
    assert asked.ranker(study.best_trials[0]).estimator.alpha == study.best_trials[0].params["alpha"]
    with pytest.raises(InvalidInput, match=r"use optuna.create_study\(directions=objective.directions\)"):
        _ = asked.direction
    with pytest.raises(InvalidInput, match=r"AP, ARP are to be maximized, minimized: .*directions=objective"):
        optuna.create_study(directions=["maximize", "maximize"]).optimize(asked, n_trials=1)
    with pytest.raises(InvalidInput, match="are to be maximized, minimized"):
        new_study().optimize(asked, n_trials=1)


def test_a_trial_keeps_its_measure_and_why_it_failed(ltr):
    """Also if it failed before its first fold, so that a study that was loaded from a storage can be logged."""
    study = new_study()
    study.optimize(objective(ltr, space=lambda _trial: {"alpha": -1.0}), n_trials=1, catch=(Exception,))
    attrs = study.trials[0].user_attrs
    assert attrs["measure"] == "AP"
    assert "alpha" in attrs["error"]


def test_the_measure_is_read_under_the_convention(ltr):
    """And documents, weights and groups are those of cross_validate."""
    told = {
        "docid": np.arange(len(ltr.y)),
        **dict.fromkeys(("sample_weight", "query_weight"), np.array([1.0 + int(query[1:]) % 3 for query in ltr.qid])),
        "groups": np.array([int(query[1:]) % 8 for query in ltr.qid]),
        "convention": "trec_eval-9.0.8",
        "cv": 3,
    }
    value = objective(ltr, measure="11pt_avg", **told)(optuna.trial.FixedTrial({"alpha": 1.0}))
    found = rk.cross_validate(Ridge(alpha=1.0), ltr.X, ltr.y, qid=ltr.qid, measures="11pt_avg", **told)
    assert value == pytest.approx(found.folds["11pt_avg"].mean(), abs=1e-12)
    with pytest.raises(AmbiguousName):
        objective(ltr, measure="11pt_avg")


@each_row("pair", [(3, 15), (0.1, 1)])
def test_a_bare_pair_of_numbers_is_refused_with_both_meanings(pair, ltr):
    """Before a study is made; each remedy works."""
    with pytest.raises(InvalidInput, match=r"may mean two values or a range: give the list .*optuna.distributions\."):
        objective(ltr, space={"alpha": pair})
    study = new_study()
    study.optimize(objective(ltr, space={"alpha": list(pair)}), n_trials=6)
    assert {trial.params["alpha"] for trial in study.trials} == set(pair)
    kind = IntDistribution if isinstance(pair[0], int) else FloatDistribution
    study = new_study()
    study.optimize(objective(ltr, space={"alpha": kind(*pair)}), n_trials=6)
    assert len({trial.params["alpha"] for trial in study.trials}) > 2


def test_the_names_of_a_space_are_checked(ltr):
    """When the objective is made, or by the first trial if the space is a function: a study would tune nothing."""
    ranker = LGBMRanker(n_estimators=2, n_jobs=1, verbose=-1)
    with pytest.raises(UnknownName):
        objective(ltr, ranker, {"estimator__num_leaves": [2, 31]})
    study = new_study()
    with pytest.raises(UnknownName):
        study.optimize(objective(ltr, ranker, lambda _trial: {"estimator__num_leaves": 2}), n_trials=3)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL]
    with pytest.warns(rk.errors.RankevalWarning):
        objective(ltr, ranker, {"num_leavs": [2, 31]})
    with pytest.warns(rk.errors.RankevalWarning):
        new_study().optimize(objective(ltr, ranker, lambda _trial: {"num_leavs": 2}), n_trials=1)


def test_tuples_of_anything_else_are_choices(ltr):
    for choices in ((True, False), ("svd", "lsqr"), (1.0, 2.0, 3.0), (1.0,)):
        name = {bool: "fit_intercept", str: "solver", float: "alpha"}[type(choices[0])]
        study = new_study()
        study.optimize(objective(ltr, space={name: choices}), n_trials=1)
        assert study.best_params[name] in choices


def test_bad_use(ltr):
    with pytest.raises(InvalidInput, match="estimator is 'ridge'"):
        objective(ltr, "ridge")
    with pytest.raises(InvalidInput, match='direction="maximize"'):
        optuna.create_study().optimize(objective(ltr), n_trials=1)
    with pytest.raises(InvalidInput, match="space is 3"):
        objective(ltr, space=3)
    for wanted in ("high", 1.0, [], np.array([1.0, 2.0])):
        with pytest.raises(InvalidInput, match=r"space\['alpha'\] is .*list of choices"):
            objective(ltr, space={"alpha": wanted})
    with pytest.raises(UnknownName):
        objective(ltr, measure="nDGC")
    with pytest.raises(QueryIdError, match="optuna_objective needs the query id"):
        rk.optuna_objective(Ridge(), SPACE, ltr.X, np.asarray(ltr.y))


def test_the_value_of_a_trial_is_named_the_mean_of_folds_and_the_other_the_mean_over_all_queries():
    """With folds of unequal sizes the two differ, so the attributes and both reprs say which one is meant."""
    data = rk.datasets.make_ranking(31, rng=0)
    objective = rk.optuna_objective(Ridge(), {"alpha": [1.0]}, data, measure="AP", cv=3)
    study = optuna.create_study(direction=objective.direction)
    study.optimize(objective, n_trials=1)
    result = rk.cross_validate(Ridge(), data, measures="AP", cv=3)
    pooled = result.evaluation.aggregate()["AP"]
    assert study.best_value == pytest.approx(result.folds["AP"].mean(), abs=1e-12)
    assert study.best_value == pytest.approx(np.mean(study.best_trial.user_attrs["folds"]), abs=1e-12)
    assert study.best_value != pytest.approx(pooled, abs=1e-9)
    assert repr(objective) == "OptunaObjective(Ridge(), AP, mean of folds (3))"
    assert "over all 31 queries out of fold" in repr(result)
    assert f"{pooled:.4f}" in repr(result)
    assert "By fold" in result._repr_html_()
