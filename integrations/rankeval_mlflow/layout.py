"""Where things are in a run: the names of our tags, and the paths of our artifacts.

A run of MLflow holds one or more *pieces*, each logged by one call: an evaluation of a role, a comparison, the record
of an experiment. Each piece has a folder ``rankeval/<label>/`` among the artifacts.
"""

from __future__ import annotations

COMPLETE = "rankeval.complete"
"""The tag that is written last: which pieces the run holds, whole."""

RECORD = "rankeval.record"
"""The tag by which an upload finds the run that it made before it broke off."""

ROLE = "rankeval.role"
"""The tag with the role whose metrics have bare keys; the metrics of other roles are ``<role>/<key>``."""

HEADLINE = "rankeval.headline"
"""The tag with the result of a run's only comparison; named comparisons have ``rankeval.NAME.headline``."""

NOTE = "mlflow.note.content"
"""MLflow's own tag with the description of a run."""


def evaluation_path(role: str) -> str:
    """Return the artifact path of the evaluation of a role."""
    return f"rankeval/{role}/evaluation.parquet"
