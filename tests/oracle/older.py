"""Calls of today in the words of commits with several functions for them, as names.toml says."""

from __future__ import annotations

from typing import Any

BY_CLASS = {
    "Evaluation": "log_evaluation",
    "Comparison": "log_comparison",
    "CrossValidation": "log_cross_validation",
    "CrossValidations": "log_cross_validation",
    "Profile": "log_profile",
    "Agreement": "log_agreement",
    "Calibration": "log_agreement",
    "Disagreement": "log_agreement",
    "Reusability": "log_agreement",
}
"""The function of the plugin that logged a class of results; ``log_online`` logged the rest."""


def log(result: Any, run_id: str | None = None, **options: Any) -> Any:
    """Log a result with the function for its class."""
    import rankeval_mlflow

    name = BY_CLASS.get(type(result).__name__, "log_online")
    return getattr(rankeval_mlflow, name)(result, run_id=run_id, **options)
