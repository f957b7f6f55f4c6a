"""rankeval_mlflow: log evaluations and comparisons of rankeval to MLflow, whole or not at all.

A public name is imported at its first use: other programs import this package through entry points, and MLflow takes
seconds to import.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

_HOME_OF = {
    "autolog": "rankeval_mlflow.autologging",
    "log_ranker": "rankeval_mlflow.recording",
    "log_cross_validation": "rankeval_mlflow.recording",
    "log_evaluation": "rankeval_mlflow.recording",
    "log_comparison": "rankeval_mlflow.recording",
    "log_agreement": "rankeval_mlflow.recording",
    "log_profile": "rankeval_mlflow.recording",
    "log_online": "rankeval_mlflow.recording",
    "load_evaluation": "rankeval_mlflow.reading.loading",
    "compare_runs": "rankeval_mlflow.reading.loading",
    "load_comparison": "rankeval_mlflow.reading.loading",
    "leaderboard": "rankeval_mlflow.reading.leaderboards",
    "promote": "rankeval_mlflow.promotion.promoting",
    "rollback": "rankeval_mlflow.promotion.promoting",
    "genai_scorer": "rankeval_mlflow.genai",
}
__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - strings all, the keys of the table above


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
        "pip uninstall rankeval, then pip install --force-reinstall rankeval-mlflow"
    )


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first asked for (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rankeval_mlflow' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
