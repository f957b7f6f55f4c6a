"""How good is a ranker, tuning included? Nested cross-validation of two algorithms in one call, repeated five times.

Within each outer fold a search tunes on inner folds, and its winner ranks the outer test queries. So the score is that
of the whole procedure, search included, and not that of the luckiest setting.
"""

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import rankeval as rk

data = rk.datasets.load_digits_retrieval(n_queries=60, n_candidates=20)
data = data.take(np.random.default_rng(0).permutation(len(data)))

scorer = rk.make_scorer("nDCG@10")
linear = make_pipeline(StandardScaler(), Ridge())
squares = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge())
grid = {"estimator__ridge__alpha": [100.0, 10000.0]}
rivals = {
    name: GridSearchCV(rk.QueryRanker(pipeline), grid, scoring=scorer, cv=rk.QueryKFold(3))
    for name, pipeline in {"linear": linear, "squares": squares}.items()
}

# One call runs both searches on the same outer folds. Each query is held out five times. Routing is not needed.
outer = rk.RepeatedQueryKFold(3, n_repeats=5, random_state=0)
results = rk.cross_validate(rivals, data, measures=["nDCG@10", "AP"], cv=outer)
for name, result in results.items():
    chosen = result.best_params.iloc[:, 0].value_counts().to_dict()
    print(f"{name}: nDCG@10 {result.folds['nDCG@10'].mean():.3f} over {len(result.folds)} folds; alpha chosen {chosen}")

# Which algorithm is better? Folds overlap, so the test is the corrected resampled t. An ordinary t test is refused.
print(results.compare(question="algorithms", baseline="linear"))
try:
    rk.compare({name: result.folds for name, result in results.items()})
except rk.errors.InvalidInput as error:
    print(f"refused: {error}")

# Would more judged queries help?
squares.set_params(ridge__alpha=10000.0)
curve = rk.learning_curve(squares, data, measures="nDCG@10", cv=rk.QueryKFold(3), sizes=[0.25, 0.5, 1.0])
for n_queries, row in curve.mean().iterrows():
    print(f"squares, trained on {n_queries} queries: nDCG@10 {row['nDCG@10']:.3f}")
