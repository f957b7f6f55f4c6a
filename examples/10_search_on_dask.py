"""Search on a cluster of Dask: the call stays as it is, and so do the scores, to the last bit.

This program starts a scheduler and two workers on this machine. For a real cluster, give `Client` the address of its
scheduler. Its workers need the same versions of rankeval, scikit-learn and LightGBM as this machine.
"""

import joblib
import numpy as np
import sklearn
from dask.distributed import Client, LocalCluster
from lightgbm import LGBMRanker
from sklearn.model_selection import GridSearchCV

import rankeval as rk

data = rk.datasets.load_digits_retrieval(n_queries=60)
X, y, qid = data.X, data.y, data.qid
ranker = rk.QueryRanker(LGBMRanker(n_estimators=10, verbose=-1))
grid = {"estimator__num_leaves": [3, 7, 15, 31], "estimator__learning_rate": [0.1, 0.3]}


def search() -> GridSearchCV:
    """Return the fitted search; joblib's configuration says where its fits run."""
    scorer = rk.make_scorer(["nDCG@10", "AP"])
    tuned = GridSearchCV(ranker, grid, cv=rk.QueryKFold(3), scoring=scorer, refit="nDCG@10", error_score="raise")
    with sklearn.config_context(enable_metadata_routing=True):
        return tuned.fit(X, y, qid=qid)


if __name__ == "__main__":  # the workers import this file
    with joblib.parallel_config("loky", n_jobs=2):
        here = search()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config("dask", scatter=[X]),
    ):
        there = search()
        result = rk.cross_validate(ranker, X, y, qid=qid, cv=3)
    print("the same best setting:", here.best_index_ == there.best_index_)
    scores = [name for name in here.cv_results_ if "test" in name]
    print("the same scores:", all(np.array_equal(here.cv_results_[name], there.cv_results_[name]) for name in scores))
    print("queries out of fold:", result.evaluation.n_queries)
