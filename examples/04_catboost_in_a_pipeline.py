"""CatBoost at the end of a Pipeline, searched and cross-validated, with metadata routing off.

scikit-learn passes no ids here. Scorer, splitter and ranker find them in the index of X and y.
"""

import numpy as np
import pandas as pd
from catboost import CatBoostRanker
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankeval as rk

data = rk.datasets.load_digits_retrieval(n_queries=100)
data = data.take(np.random.default_rng(0).permutation(len(data)))
X = pd.DataFrame(data.X, columns=data.feature_names, index=pd.Index(data.qid, name="qid"))
y = pd.Series(data.y, index=X.index)

catboost = CatBoostRanker(
    iterations=40, depth=4, thread_count=2, random_seed=0, verbose=False, allow_writing_files=False
)
pipeline = make_pipeline(StandardScaler(), PCA(random_state=0), rk.QueryRanker(catboost))

# A Pipeline passes ids to its last step only with routing on. QueryRanker around the Pipeline needs no routing.
ranker = rk.QueryRanker(make_pipeline(StandardScaler(), PCA(random_state=0), catboost))
search = GridSearchCV(
    ranker,
    {"estimator__pca__n_components": [10, 30]},
    scoring=rk.make_scorer(["nDCG@10", "AP"]),
    refit="nDCG@10",
    cv=rk.QueryKFold(3),
)
search.fit(X, y)
for place, params in enumerate(search.cv_results_["params"]):
    print(f"{params}: nDCG@10 {search.cv_results_['mean_test_nDCG@10'][place]:.3f}")

# rk.cross_validate passes the ids to either form.
for name, estimator in {"QueryRanker last": pipeline, "QueryRanker around": ranker}.items():
    result = rk.cross_validate(estimator, X, y, measures="nDCG@10", cv=3)
    print(f"{name}: {result}")
