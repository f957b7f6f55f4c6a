"""Tune LightGBM with Optuna: each fold is reported, and the pruner ends trials that fall behind.

The objective refuses test content that a guard has registered, and a refusal ends the study.
"""

import optuna
from lightgbm import LGBMRanker
from optuna.distributions import FloatDistribution, IntDistribution

import rankeval as rk

data = rk.datasets.load_digits_retrieval(n_queries=150)
guard = rk.Guard("digits", ledger="trial-ledger")  # a trial, as it warns; yours: rk.Guard("digits")
split = rk.dev_test_split(data, test_size=0.3, guard=guard, test_name="digits-test")

space = {
    "num_leaves": IntDistribution(2, 31),
    "learning_rate": FloatDistribution(0.01, 0.5, log=True),
    "n_estimators": [20, 40],
}
ranker = LGBMRanker(n_jobs=1, verbose=-1)
objective = rk.optuna_objective(ranker, space, split.dev, measure="nDCG@10", cv=rk.QueryKFold(4))

optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(
    direction="maximize",
    sampler=optuna.samplers.TPESampler(seed=0),
    pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1),
)
study.optimize(objective, n_trials=15)

pruned = sum(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)
print(f"{len(study.trials)} trials, {pruned} of them pruned between folds")
print(f"best: nDCG@10 {study.best_value:.3f} with {study.best_params}")
print("its folds:", ", ".join(f"{value:.3f}" for value in study.best_trial.user_attrs["folds"]))

winner = objective.ranker(study.best_trial).fit(split.dev.X, split.dev.y, qid=split.dev.qid)
print(f"the winner, fitted to {split.dev.n_queries} queries: {winner}")

# Tuning on the test part is refused before a study starts.
try:
    rk.optuna_objective(ranker, space, split.test)
except rk.errors.GuardRefusal as refusal:
    print(f"refused: {refusal}")
