"""Pack data sets: the inputs of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval.tracking import LoggedData
from rankeval_mlflow.delivery.payload import DatasetUse
from rankeval_mlflow.names import checked_role, short_digest

if TYPE_CHECKING:
    from rankeval.evaluation import Evaluation


def judged_data(evaluation: Evaluation, role: str, name: str | None = None) -> LoggedData:
    """Describe the data set of an evaluation by the evaluation alone.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    role : str
        The role of the data.
    name : str, optional
        Its name; by default one with the start of the digest of the judgments.
    """
    digest = evaluation.judgments_digest
    rows = int(evaluation.query_counts["retrieved"].sum())
    return LoggedData(name or f"judgments-{short_digest(digest)[:8]}", digest, role, rows, evaluation.n_queries)


def dataset_use(data: LoggedData) -> DatasetUse:
    """Return the data set input of a run.

    Parameters
    ----------
    data : LoggedData
        The data set.
    """
    profile = {"num_rows": data.n_rows, "num_queries": data.n_queries}
    return DatasetUse(data.name, data.digest, checked_role(data.role), data.source, profile)
