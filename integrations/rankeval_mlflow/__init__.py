"""rankeval_mlflow: log results of rankeval to MLflow, whole or not at all.

A public name is imported at its first use: other programs import this package through entry points,
and MLflow takes seconds to import.
"""

from __future__ import annotations

from importlib.util import find_spec


def _lacks_the_library() -> bool:
    """Return whether the package rankeval is missing here, or is another project's."""
    try:
        return find_spec("rankeval") is None or find_spec("rankeval.tracking") is None
    except Exception as error:  # finding a module runs the package around it
        raise ImportError(f"the package rankeval cannot be imported: {error!r}") from error


# An ImportError, since any other error of a plugin breaks `import mlflow`.
if _lacks_the_library():
    raise ImportError(
        "the package rankeval that is installed here is another project with the same import name: "
        "pip uninstall rankeval, then install rankeval-mlflow again from where you have it (--force-reinstall)"
    )


from rankeval._registry import late  # noqa: E402 - not before the library is known to be ours

_HOMES = {
    "autologging": ("autolog",),
    "genai": ("genai_scorer",),
    "promotion.explaining": ("why",),
    "promotion.promoting": ("promote", "rollback"),
    "reading.leaderboards": ("leaderboard",),
    "reading.loading": ("compare_runs", "load", "load_comparison", "load_evaluation"),
    "recording": ("log", "log_ranker"),
}
_KINDS = ("agreement", "comparison", "cross_validation", "evaluation", "online", "profile")
__all__, __getattr__ = late(__name__, _HOMES, moved={f"log_{kind}": "log" for kind in _KINDS})


def __dir__() -> list[str]:
    return sorted(__all__)
