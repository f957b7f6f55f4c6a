"""Cross-validations with seeds in MLflow: their spread as metrics and on a leaderboard, the seeds as a table."""

from __future__ import annotations

import mlflow
import numpy as np
import pandas as pd
from shown import whole
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import rankeval as rk
import rankeval_mlflow as rkm


def test_seeds_are_logged_loaded_and_ranked(tmp_path):
    """As the result has them, to the last bit."""
    experiment = mlflow.set_experiment("seeds")
    data = rk.datasets.make_ranking(20, 6, rng=0)
    options = {"measures": ["nDCG@10", "AP"], "cv": 2}
    tree = DecisionTreeRegressor(max_depth=3, max_features=1)
    result = rk.cross_validate(tree, data, seeds=[4, 2, 9], name="tree", **options)
    run = mlflow.get_run(rkm.log(result).run_id)
    rkm.log(rk.cross_validate(Ridge(), data, name="ridge", **options))
    spread = result.seeds.std()
    assert run.data.metrics["nDCG_at_10_seed_sd"] == spread["nDCG@10"]
    path = mlflow.artifacts.download_artifacts(
        run_id=run.info.run_id, artifact_path="rankeval/dev/seeds.csv", dst_path=str(tmp_path)
    )
    np.testing.assert_allclose(pd.read_csv(path, index_col="seed"), result.seeds, rtol=1e-14)
    loaded = rkm.load(run.info.run_id)
    pd.testing.assert_frame_equal(loaded.seeds, result.seeds, check_exact=True)
    board = rkm.leaderboard("seeds", measure="AP")
    rows = board.table.set_index("system")["seed_sd"]
    assert rows["tree"] == spread["AP"]
    assert np.isnan(rows["ridge"])
    assert "seed_sd" in whole(board)
    view = mlflow.get_experiment(experiment.experiment_id).tags["mlflow.sharedViewState.rankeval"]
    assert "seed_sd" not in view
