"""Tune two rankers on dev with scikit-learn, freeze the winners, open the test set once.

The data are scikit-learn's images of digits, as a retrieval task: a query is an image, its rows are candidate images,
and a candidate of the same digit is relevant.
"""

import sklearn
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import rankeval as rk

data = rk.datasets.load_digits_retrieval()
guard = rk.Guard("digits", ledger="trial-ledger")  # a trial, as it warns; yours: rk.Guard("digits")
split = rk.dev_test_split(data, test_size=0.3, guard=guard, test_name="digits-test")
dev = split.dev
print(f"dev: {dev.n_queries} queries; test: {split.test.n_queries} queries, registered and closed")

# 1. Tune. With metadata routing on, one qid reaches the ranker, the splitter and the scorer; one predict serves all
#    measures.
sklearn.set_config(enable_metadata_routing=True)
grids = {
    "ridge": (Ridge(), {"estimator__alpha": [0.1, 1.0, 10.0]}),
    "trees": (HistGradientBoostingRegressor(random_state=0, max_iter=60), {"estimator__learning_rate": [0.1, 0.3]}),
}
scorer = rk.make_scorer(["nDCG@10", "AP", "RR"])
winners = {}
for name, (model, grid) in grids.items():
    search = GridSearchCV(rk.QueryRanker(model), grid, scoring=scorer, cv=rk.QueryKFold(3), refit="nDCG@10")
    search.fit(dev.X, dev.y, qid=dev.qid)
    winners[name] = search.best_estimator_
    print(f"{name}: {search.best_params_}, nDCG@10 {search.best_score_:.3f} on dev")

# 2. Freeze. From now on the systems are fixed, and nobody has seen a test score.
plan = guard.freeze(split.registered, systems=winners, baseline="ridge", measure="nDCG@10", secondary=["AP"])

# 3. Open the test set once, for all systems together.
result = guard.open(plan)
print(result)

# 4. Tuning on the test set is refused.
try:
    rk.cross_validate(Ridge(), split.test)
except rk.errors.GuardRefusal as refusal:
    print(f"refused: {refusal}")
