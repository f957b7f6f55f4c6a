"""rankeval: honest experiments with ranking models.

Everything public stands here by name and is imported when it is first asked for, so that ``import
rankeval`` stays fast and loads neither MLflow, scikit-learn, SciPy, pandas nor matplotlib.
"""

from __future__ import annotations

from importlib import metadata

from rankeval._registry import late

__version__ = "0.1.0"

# An older project has this import name too: where both are installed, they overwrite each other's
# files.
for _namesake in metadata.distributions(name="rankeval"):
    from rankeval._source import install as _install
    from rankeval.errors import warn as _warn

    _warn(
        f"the distribution rankeval {_namesake.version}, another project with this import name, is installed too: "
        f"pip uninstall rankeval, then {_install(options='--force-reinstall')}"
    )

_HOMES = {
    "collection.convention": ("Convention",),
    "collection.data": ("RankingData",),
    "io.opening": ("Limits",),
    "collection.qrels": ("Qrels",),
    "collection.run": ("Run",),
    "measures": ("Measure", "list_measures", "measure", "measure_from_key"),
    "evaluation": ("Evaluation", "evaluate"),
    "streaming": ("evaluate_dataset",),
    "shelf.record": ("Record",),
    "shelf.kinds": ("load", "read_record", "save"),
    "analysis.contingency": ("ContingencyTable", "contingency_table"),
    "analysis.overlap": ("rank_biased_overlap",),
    "analysis.explanation": ("Explanation", "explain_difference"),
    "comparison": ("Comparison", "compare"),
    "comparison.ordering": ("OrderAgreement", "order_agreement", "rank_intervals"),
    "comparison.variance": ("Anova", "anova"),
    "significance.catalogue": ("list_tests",),
    "significance.power": ("topics_needed",),
    "guard": ("Guard",),
    "model_selection.scorers": ("lightgbm_feval", "make_scorer", "xgboost_metric"),
    "model_selection.query_split": ("QuerySplit",),
    "model_selection.splitters": (
        "PredefinedFolds",
        "QueryKFold",
        "QueryShuffleSplit",
        "QueryTimeSplit",
        "RepeatedQueryKFold",
        "StratifiedQueryKFold",
    ),
    "model_selection.holdout": ("dev_test_split",),
    "model_selection.ranker": ("QueryRanker",),
    "model_selection.results": ("CrossValidation", "CrossValidations"),
    "model_selection.validation": ("LearningCurve", "cross_validate", "learning_curve"),
    "model_selection.trials": ("OptunaObjective", "optuna_objective"),
    "experiment": ("run_experiment",),
    "text.profiling": ("Profile", "profile"),
    **dict.fromkeys(
        ("analysis.curves", "datasets", "errors", "judging", "online", "testing", "text"), ()
    ),
}
__all__, __getattr__ = late(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
