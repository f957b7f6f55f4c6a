"""Stop XGBoost when AP no longer rises on held-out queries, also in cross-validation.

Within each fold a fifth of the training queries is held out for that. The fold's own test queries are never used.
"""

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBRanker

import rankeval as rk

data = rk.datasets.load_digits_retrieval(n_queries=150)
data = data.take(np.random.default_rng(0).permutation(len(data)))

booster = XGBRanker(n_estimators=200, learning_rate=0.1, max_depth=3, n_jobs=1)
stopping = rk.QueryRanker(booster, early_stopping_rounds=30, validation_fraction=0.2, eval_measure="AP")
rivals = {
    "200 trees": booster,
    "stopped by AP": stopping,
    # The Pipeline is inside, so that the scaler is not fitted to the held-out queries either.
    "scaled, stopped by AP": rk.QueryRanker(
        make_pipeline(StandardScaler(), booster), early_stopping_rounds=30, validation_fraction=0.2, eval_measure="AP"
    ),
}

results = rk.cross_validate(rivals, data, measures=["AP", "nDCG@10"], cv=rk.QueryKFold(3), return_estimators=True)
for name, result in results.items():
    trees = [ranker.n_iterations_ or booster.n_estimators for ranker in result.estimators]
    means = result.evaluation.aggregate()
    print(
        f"{name}: AP {means['AP']:.3f}, nDCG@10 {means['nDCG@10']:.3f}, trees by fold {trees}, "
        f"fitted in {result.fit_seconds:.1f} s"
    )

# This question compares fitted models over pooled folds. The result says that its test is approximate.
print(results.compare(question="models", baseline="200 trees", measures="AP"))
