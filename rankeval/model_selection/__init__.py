"""Rankers under scikit-learn: scorers, splitters, one estimator for all boosters, cross-validation."""

from __future__ import annotations

from rankeval._registry import late

_HOMES = {
    "diagnosis": ("Diagnosis",),
    "results": ("CrossValidations",),
    "studies": ("Study",),
    "trials": ("OptunaObjective",),
    "validation": ("LearningCurve",),
}
__all__, __getattr__ = late(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
