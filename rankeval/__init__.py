"""rankeval: honest experiments with ranking models.

Everything public stands here by name and is imported when it is first asked for, so that ``import
rankeval`` stays fast and loads neither MLflow, scikit-learn, SciPy, pandas nor matplotlib.
"""

from __future__ import annotations

import sys as _sys
from pathlib import Path as _Path

from rankeval._registry import late

__version__ = "0.1.0"

# An older project has this import name too: where both are installed, they overwrite each other's
# files. It is found by its folder, since `importlib.metadata` takes as long to import as the rest.
for _folder in _sys.path:
    for _namesake in _Path(_folder).glob("rankeval-*-info"):
        from rankeval._source import install as _install
        from rankeval.errors import warn as _warn

        _version = _namesake.stem.partition("-")[2]
        _warn(
            f"the distribution rankeval {_version}, another project with this import name, is installed too: "
            f"pip uninstall rankeval, then {_install(options='--force-reinstall')}"
        )

_HOMES = {
    "collection.convention": ("Convention",),
    "collection.data": ("RankingData",),
    "collection.qrels": ("Qrels",),
    "collection.run": ("Run",),
    "measures": ("Measure", "list_measures", "measure", "measure_from_key"),
    "fusion.fusing": ("fuse",),
    "retrieval.retrieving": ("retrieve",),
    "evaluation": ("Evaluation", "evaluate"),
    "streaming": ("evaluate_dataset",),
    "shelf.record": ("Record",),
    "shelf.kinds": ("load", "read_record", "save"),
    "analysis.overlap": ("rank_biased_overlap",),
    "analysis.explanation": ("Explanation", "explain_difference"),
    "analysis.ordering": ("rank_intervals",),
    "comparison": ("Comparison", "compare"),
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
    "model_selection.holdout": ("dev_test_split", "user_test_split"),
    "model_selection.ranker": ("QueryRanker",),
    "model_selection.results": ("CrossValidation",),
    "model_selection.score_columns": ("ColumnRanker", "Fusion"),
    "model_selection.validation": ("cross_validate", "learning_curve"),
    "model_selection.trials": ("optuna_objective",),
    "experiment": ("run_experiment",),
    "text.profiling": ("profile",),
    **dict.fromkeys(("analysis", "analysis.curves", "datasets", "errors", "io", "judging"), ()),
    **dict.fromkeys(("model_selection", "online", "testing", "text"), ()),
}
_MOVED = {
    "Anova": "analysis.Anova",
    "ContingencyTable": "analysis.ContingencyTable",
    "CrossValidations": "model_selection.CrossValidations",
    "LearningCurve": "model_selection.LearningCurve",
    "Limits": "io.Limits",
    "OptunaObjective": "model_selection.OptunaObjective",
    "OrderAgreement": "analysis.OrderAgreement",
    "Profile": "text.Profile",
    "anova": "analysis.anova",
    "contingency_table": "analysis.contingency_table",
    "order_agreement": "analysis.order_agreement",
}
__all__, __getattr__ = late(__name__, _HOMES, _MOVED)


def __dir__() -> list[str]:
    return sorted(__all__)
