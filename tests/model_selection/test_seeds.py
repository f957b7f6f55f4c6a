"""Cross-validation with several seeds: the same folds, the mean over seeds of each query's score, and its spread."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRanker
from model_selection.libraries import CatBoostRanker, XGBRanker, each, installed
from sklearn.ensemble import BaggingRegressor, StackingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import GaussianRandomProjection
from sklearn.tree import DecisionTreeRegressor
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.evaluation.merging import merged
from rankeval.model_selection.ranker import as_ranker
from rankeval.model_selection.seeds import seed_parameters, seeded

MEASURES = ["nDCG@10", "AP", "gm_AP"]
TREE = DecisionTreeRegressor(max_depth=3, max_features=1)
SEEDS = [3, 0, 8]


def tree(seed: int) -> DecisionTreeRegressor:
    return DecisionTreeRegressor(max_depth=3, max_features=1, random_state=seed)


@pytest.fixture
def both(ltr):
    """Return a result over seeds, and the results of each seed alone."""
    options = {"qid": ltr.qid, "measures": MEASURES, "cv": 3, "return_estimators": True}
    alone = [rk.cross_validate(tree(seed), ltr.X, ltr.y, **options) for seed in SEEDS]
    return rk.cross_validate(TREE, ltr.X, ltr.y, seeds=SEEDS, **options), alone


def test_the_score_of_a_query_is_the_mean_over_seeds(both):
    """On the folds of each seed alone; no ranking is averaged."""
    result, alone = both
    assert result.splits == alone[0].splits
    expected = np.mean([one.evaluation.scores for one in alone], axis=0)
    np.testing.assert_allclose(result.evaluation.scores, expected, rtol=0, atol=1e-15)
    assert result.predictions.T.tolist() == [one.predictions.tolist() for one in alone]
    assert [one.estimator_.random_state for one in result.estimators] == [3, 3, 3, 0, 0, 0, 8, 8, 8]


def test_a_row_of_seeds_is_what_the_seed_gives_alone(both):
    """The aggregate, a geometric mean too."""
    result, alone = both
    expected = pd.DataFrame([one.evaluation.aggregate() for one in alone])
    assert result.seeds.index.tolist() == SEEDS
    assert result.seeds.index.name == "seed"
    np.testing.assert_allclose(result.seeds, expected, rtol=1e-14)
    assert result.seeds.columns.tolist() == MEASURES
    assert alone[0].seeds is None


def test_folds_have_means_of_measures_and_sums_of_seconds(both):
    """And the number of queries."""
    result, alone = both
    expected = np.mean([one.folds[MEASURES] for one in alone], axis=0)
    np.testing.assert_allclose(result.folds[MEASURES], expected, rtol=1e-14)
    assert result.folds["n_queries"].tolist() == alone[0].folds["n_queries"].tolist()
    assert list(result.folds) == list(alone[0].folds)
    assert result.folds.index.equals(alone[0].folds.index)


def test_judgments_are_those_of_each_seed_and_the_ranking_is_its_own(both):
    """So that systems with and without seeds can be compared."""
    result, alone = both
    assert result.evaluation.judgments_digest == alone[0].evaluation.judgments_digest
    assert result.evaluation.ranking_digest not in [one.evaluation.ranking_digest for one in alone]
    tied = [one.evaluation.facts.query_counts["tied"] for one in alone]
    assert result.evaluation.facts.query_counts["tied"].tolist() == np.max(tied, axis=0).tolist()


def test_a_number_stands_for_the_first_seeds(ltr):
    """As the table says."""
    result = rk.cross_validate(TREE, ltr.X, ltr.y, qid=ltr.qid, measures="AP", cv=2, seeds=np.int64(4))
    assert result.seeds.index.tolist() == [0, 1, 2, 3]


def test_a_reader_sees_the_spread(both):
    """In every form."""
    result, _ = both
    spread = f"mean over 3 seeds, of standard deviation nDCG@10 {result.seeds['nDCG@10'].std():.2g}"
    assert spread in repr(result)
    assert spread in result._repr_html_()
    assert spread in result.evaluation.record().text
    assert spread in result.record().parts["dev"].text
    assert result.record().parts["dev"].metrics["AP_seed_sd"] == result.seeds["AP"].std()


def test_a_part_of_the_queries_has_its_own_spread(both):
    """That of the seeds on these queries."""
    result, alone = both
    queries = result.evaluation.queries[:10]
    part = result.evaluation.subset(queries)
    expected = [one.evaluation.subset(queries).aggregate()["AP"] for one in alone]
    np.testing.assert_allclose(part.seeds["AP"], expected, rtol=1e-14)
    rest = result.evaluation.subset(result.evaluation.queries[10:])
    with pytest.raises(InvalidInput):
        merged([rest, alone[0].evaluation])


def test_seeds_are_saved(both, tmp_path):
    """In the file of an evaluation and in the folder of a result, to the last bit."""
    result, _ = both
    result.evaluation.save(tmp_path / "ev.parquet")
    rk.save(result, tmp_path / "cv")
    loaded = rk.load(tmp_path / "cv")
    for evaluation in (rk.Evaluation.load(tmp_path / "ev.parquet"), loaded.evaluation):
        pd.testing.assert_frame_equal(evaluation.seeds, result.seeds, check_exact=True)
    assert loaded.predictions.tobytes() == result.predictions.tobytes()
    assert rk.read_record(tmp_path / "cv").parts["dev"].tables["seeds"].shape == (3, 3)


def test_equal_scores_of_all_seeds_are_noted(ltr):
    """Ridge has a seed, which its solver does not use."""
    result = rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, measures="AP", cv=2, seeds=2)
    assert "all 2 seeds gave equal scores" in repr(result)


def test_an_estimator_without_a_seed_is_refused(ltr):
    """By its name, before anything is fitted; one among several too."""
    for estimator in (LinearRegression(), {"tree": TREE, "plain": LinearRegression()}):
        with pytest.raises(InvalidInput) as refused:
            rk.cross_validate(estimator, ltr.X, ltr.y, qid=ltr.qid, seeds=3)
        assert refused.value.argument == "seeds"
        assert "LinearRegression" in str(refused.value)


WRONG = [0, 1, [4], [], [1, 1], [1.5, 2], "ab", 2.5, True, [None, 1], {}]


@each_row("seeds", WRONG)
def test_wrong_seeds_are_refused(ltr, seeds):
    """As a number of seeds or as a list."""
    with pytest.raises(InvalidInput) as refused:
        rk.cross_validate(TREE, ltr.X, ltr.y, qid=ltr.qid, seeds=seeds)
    assert refused.value.argument == "seeds"


NESTED = [
    (LGBMRanker(bagging_seed=1), {"bagging_seed", "random_state"}),
    (XGBRanker(seed=1), {"seed", "random_state"}),
    (CatBoostRanker(), {"random_seed"}),
    (CatBoostRanker(random_state=1), {"random_state"}),
    (make_pipeline(GaussianRandomProjection(2), CatBoostRanker()), {"random_state", "random_seed"}),
    (make_pipeline(GaussianRandomProjection(2), Ridge()), {"random_state"}),
    (BaggingRegressor(TREE), {"random_state"}),
    (RandomizedSearchCV(rk.QueryRanker(TREE), {"estimator__max_depth": [1, 2]}), {"random_state"}),
    (StackingRegressor([("tree", TREE)], rk.QueryRanker(LGBMRanker())), {"random_state"}),
]


@pytest.mark.parametrize(("estimator", "expected"), each(NESTED))
def test_every_seed_within_an_estimator_is_set(estimator, expected):
    """Those of all steps, and of the boosters by the names that they have."""
    ranker = as_ranker(estimator)
    names = seed_parameters(ranker)
    assert {name.rpartition("__")[2] for name in names} == expected
    params = seeded(ranker, 7).get_params()
    assert [params[name] for name in names] == [7] * len(names)
    assert ranker.get_params().keys() <= params.keys()


def test_a_seed_changes_what_a_booster_learns(ltr):
    """And the same seed learns the same."""
    common = {"qid": ltr.qid, "measures": "AP", "cv": 2, "seeds": 2}
    drawing = {
        "lightgbm": LGBMRanker(
            n_estimators=5, subsample=0.5, subsample_freq=1, n_jobs=1, verbose=-1, min_child_samples=1
        ),
        "xgboost": XGBRanker(n_estimators=5, subsample=0.5, n_jobs=1),
        "catboost": CatBoostRanker(iterations=5, depth=2, thread_count=1, verbose=False, allow_writing_files=False),
    }
    drawing = installed(drawing)
    first, again = (rk.cross_validate(drawing, ltr.X, ltr.y, **common) for _ in range(2))
    for name, result in first.items():
        assert result.seeds["AP"].nunique() == 2, name
        assert result.seeds.equals(again[name].seeds), name


def test_a_search_keeps_what_it_chose_with_each_seed(ltr):
    """In a column for each seed."""
    search = RandomizedSearchCV(rk.QueryRanker(TREE), {"estimator__max_depth": [1, 2, 3]}, n_iter=2)
    result = rk.cross_validate(search, ltr.X, ltr.y, qid=ltr.qid, measures="AP", cv=2, seeds=[1, 2])
    assert list(result.best_params) == ["seed 1 estimator__max_depth", "seed 2 estimator__max_depth"]
    assert len(result.best_params) == 2
    assert result.record().series.keys() >= {"AP_fold"}
