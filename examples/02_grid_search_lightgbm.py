"""Search LightGBM's settings with scikit-learn's GridSearchCV: one qid, three measures, one predict per fold.

The data are scikit-learn's images of digits, as a retrieval task, with shuffled rows.
"""

import numpy as np
import sklearn
from lightgbm import LGBMRanker
from sklearn.model_selection import GridSearchCV

import rankeval as rk

data = rk.datasets.load_digits_retrieval(n_queries=150)
data = data.take(np.random.default_rng(0).permutation(len(data)))

# With metadata routing on, qid is passed to fit and reaches the ranker, the splitter and the scorer.
sklearn.set_config(enable_metadata_routing=True)
search = GridSearchCV(
    rk.QueryRanker(LGBMRanker(n_estimators=40, n_jobs=1, verbose=-1)),
    {"estimator__num_leaves": [4, 15], "estimator__learning_rate": [0.05, 0.1, 0.2]},
    scoring=rk.make_scorer(["nDCG@10", "AP", "RR"]),
    refit="nDCG@10",
    cv=rk.QueryKFold(5),
    n_jobs=2,
)
search.fit(data.X, data.y, qid=data.qid)

results = search.cv_results_
for place in np.argsort(results["rank_test_nDCG@10"]):
    values = ", ".join(f"{name} {results[f'mean_test_{name}'][place]:.3f}" for name in ("nDCG@10", "AP", "RR"))
    print(f"{values}  {results['params'][place]}")

# The score of the search is nDCG@10, the measure of refit. It is too high on rows that the model was fitted to.
print(f"refitted: {search.best_params_}")
print(f"nDCG@10 on its own training rows, which says nothing: {search.score(data.X, data.y, qid=data.qid):.3f}")
