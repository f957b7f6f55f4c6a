"""A search on dev keeps the better point, whichever way the measure points; Pipelines and random searches too."""

from __future__ import annotations

import numpy as np
import pytest
from experiment.loaded import load_parts
from lightgbm import LGBMRanker
from model_selection.libraries import each
from sklearn.linear_model import Ridge
from sklearn.model_selection import ParameterSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.experiment import check_config
from rankeval.experiment.checks import make_ranker
from rankeval.experiment.training import tune


@pytest.mark.parametrize("measure", ["ARP", "nDCG@10"])
def test_the_better_point_is_kept_and_its_mean_shown(measure, tmp_path, monkeypatch):
    """The mean of ARP is the mean of ARP, though the search maximises its negative."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    config = check_config(
        {
            "name": "small",
            "data": {"loader": "digits", "arguments": {"n_queries": 30, "n_candidates": 15}},
            "rankers": {
                name: {"estimator": "sklearn.linear_model.Ridge", "grid": {"alpha": [0.1, 1e9]}}
                for name in ("one", "other")
            },
            "measures": [measure, "AP"],
            "cv": {"n_splits": 3},
            "tracking": "off",
        }
    )
    parts = load_parts(config)
    tuned = tune(make_ranker(config, "one"), "one", parts, config=config)
    means = tuned.search[f"mean {measure}"]
    best = means.idxmin() if measure == "ARP" else means.idxmax()
    assert (means > 0).all()
    assert tuned.params["alpha"] == tuned.search["alpha"][best]
    assert tuned.validation.evaluation.mean()[measure] == pytest.approx(means[best], abs=0.05 * means[best])


LIGHTGBM = {"n_estimators": 20, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}


def experiment(third, **changes):
    """Return the experiment with a ranker called third."""
    return check_config(
        {
            "name": "small",
            "data": {"loader": "digits", "arguments": {"n_queries": 40, "n_candidates": 12}},
            "rankers": {"ridge": {"estimator": "sklearn.linear_model.Ridge"}, "third": third},
            "measures": ["AP"],
            "cv": {"n_splits": 2},
            "guard": "off",
            "tracking": "off",
            "seed": 7,
            **changes,
        }
    )


def tuned(config):
    parts = load_parts(config)
    return parts, tune(make_ranker(config, "third"), "third", parts, config=config)


def test_steps_are_a_pipeline_named_and_searched_as_by_scikit_learn():
    steps = ["sklearn.preprocessing.StandardScaler", {"estimator": "sklearn.linear_model.Ridge", "name": "model"}]
    config = experiment({"steps": steps, "params": {"model__tol": 0.01}, "grid": {"model__alpha": [0.1, 1e9]}})
    pipeline = make_ranker(config, "third").estimator
    assert list(pipeline.named_steps) == ["standardscaler", "model"]
    assert (pipeline["model"].tol, pipeline["model"].random_state) == (0.01, 7)
    parts, found = tuned(config)
    alpha = found.params["model__alpha"]
    by_hand = make_pipeline(StandardScaler(), Ridge(alpha=alpha)).fit(parts.dev.X, parts.dev.y)
    np.testing.assert_allclose(found.scores, by_hand.predict(parts.test.X))
    assert found.search["model__alpha"].tolist() == [0.1, 1e9]


@pytest.mark.parametrize(
    ("path", "params"),
    each(
        [
            ("lightgbm.LGBMRanker", LIGHTGBM),
            (
                "catboost.CatBoostRanker",
                {"iterations": 20, "thread_count": 1, "verbose": False, "allow_writing_files": False},
            ),
            ("xgboost.XGBRanker", {"n_estimators": 20, "n_jobs": 1}),
        ]
    ),
)
def test_a_pipeline_stops_early_on_queries_held_out(path, params):
    """Without a validation part QueryRanker holds a share out, and watches the primary measure."""
    steps = ["sklearn.preprocessing.StandardScaler", {"estimator": path, "params": params}]
    config = experiment({"steps": steps, "early_stopping_rounds": 2, "validation_fraction": 0.3})
    parts, found = tuned(config)
    name = path.rpartition(".")[2]
    ranker = make_ranker(config, "third")
    assert ranker.estimator.steps[-1][0] == name.lower()
    assert ranker.eval_measure == "AP"
    by_hand = ranker.fit(parts.dev.X, parts.dev.y, qid=parts.dev.qid)
    assert found.n_iterations == by_hand.n_iterations_ <= 20


def test_a_random_search_draws_what_scikit_learn_draws_with_the_seed_of_the_experiment():
    from scipy import stats

    drawn = {"num_leaves": {"int": [2, 9]}, "reg_alpha": {"float": [0.5, 1]}, "reg_lambda": {"log_float": [0.1, 10]}}
    search = {"n_iter": 4, "distributions": {**drawn, "max_bin": [15, 63]}}
    config = experiment({"estimator": "lightgbm.LGBMRanker", "params": LIGHTGBM, "search": search})
    parts, found = tuned(config)
    spaces = {
        "num_leaves": stats.randint(2, 10),
        "reg_alpha": stats.uniform(0.5, 0.5),
        "reg_lambda": stats.loguniform(0.1, 10),
        "max_bin": [15, 63],
    }
    expected = list(ParameterSampler({f"estimator__{k}": v for k, v in spaces.items()}, 4, random_state=7))
    points = found.search[list(spaces)].to_dict("records")
    assert points == [{key.removeprefix("estimator__"): value for key, value in one.items()} for one in expected]
    best = points[found.search["mean AP"].idxmax()]
    assert found.params == best
    by_hand = rk.QueryRanker(LGBMRanker(**LIGHTGBM, **best, random_state=7)).fit(
        parts.dev.X, parts.dev.y, qid=parts.dev.qid
    )
    np.testing.assert_array_equal(found.scores, by_hand.predict(parts.test.X))
    assert found.n_iterations is None


def test_both_ends_of_a_range_of_whole_numbers_are_drawn():
    from rankeval.experiment.schema import SearchConfig
    from rankeval.experiment.training import distributions

    drawn = distributions(SearchConfig(distributions={"depth": {"int": [2, 4]}}))["depth"].rvs(200, random_state=0)
    assert sorted(set(drawn.tolist())) == [2, 3, 4]


def test_an_own_parameter_of_a_booster_stops_it_too_by_the_measure_of_the_file():
    config = experiment(
        {"estimator": "lightgbm.LGBMRanker", "params": {**LIGHTGBM, "early_stopping_round": 2}, "eval_measure": "RR"}
    )
    ranker = make_ranker(config, "third")
    assert (ranker.eval_measure, ranker.early_stopping_rounds) == ("RR", None)
    assert tuned(config)[1].n_iterations <= 20


def test_labels_that_a_booster_refuses_are_refused_under_its_key_before_anything_is_fitted(monkeypatch):
    monkeypatch.setattr("rankeval.model_selection.boosters.fit", None)
    for third in (
        {"params": {**LIGHTGBM, "label_gain": [0]}},
        {"params": {**LIGHTGBM, "label_gain": [0]}, "grid": {"num_leaves": [3, 5]}},
    ):
        with pytest.raises(InvalidInput) as refused:
            tuned(experiment({"estimator": "lightgbm.LGBMRanker", **third}))
        assert (refused.value.where, refused.value.argument) == ("rankers.third", "y")


def test_a_grid_may_hold_the_gains_that_the_labels_need():
    grid = {"label_gain": [[0, 1], [0, 2]]}
    third = {"estimator": "lightgbm.LGBMRanker", "params": LIGHTGBM, "grid": grid}
    assert len(tuned(experiment(third))[1].search) == 2
