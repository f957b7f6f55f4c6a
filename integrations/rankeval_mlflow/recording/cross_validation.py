"""Log a cross-validation: the mean over queries, its folds as steps, and a nested run of each fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval.errors import InvalidInput
from rankeval.model_selection.results import CrossValidation, CrossValidations
from rankeval.tracking import LoggedData, TrackedRun
from rankeval_mlflow.delivery.addresses import now_ms
from rankeval_mlflow.delivery.payload import Node
from rankeval_mlflow.packing.folds import cross_validation_node, several_node
from rankeval_mlflow.recording.runs import described, send

if TYPE_CHECKING:
    from rankeval.collection.data import RankingData


def log_cross_validation(
    cv: CrossValidation | CrossValidations,
    *,
    role: str = "dev",
    data: LoggedData | RankingData | str | None = None,
    name: str | None = None,
    run_id: str | None = None,
    fold_runs: bool = True,
) -> TrackedRun:
    """Log a cross-validation to MLflow, synchronously and whole.

    The run gets the evaluation of every held-out query, as from `log_evaluation`: ``nDCG_at_10`` is the mean over
    queries, each scored by the model that did not see it, and `load_evaluation` returns it. Beside it:

    * the value of each fold as a step of ``nDCG_at_10_fold``, which MLflow draws as a line;
    * their standard deviation as ``nDCG_at_10_sd``, with n - 1;
    * size and seconds of each fold, also as steps; a table of the folds;
    * a nested run of each fold, with the parameters that a search chose in it.

    Parameters
    ----------
    cv : CrossValidation or CrossValidations
        The result of `rankeval.cross_validate`. If it has several rankers, each is a nested run.
    role : str, default "dev"
        The role of the data.
    data : LoggedData, RankingData or str, optional
        The data set, or its name. By default the digest of the judgments identifies it.
    name : str, optional
        Name of the run; by default that of the ranker.
    run_id : str, optional
        The run to write to. By default the active run, else a new run that is ended. The time of a new run is that of
        its folds, one after the other.
    fold_runs : bool, default True
        Whether each fold is a nested run too.

    Returns
    -------
    TrackedRun
        The id of the run, those of its children, and a line that says how to look at it.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses. Everything is kept on disk, and the message says how to send it.
    InvalidInput
        If ``cv`` is something else, the role is no plain word, or the run has another evaluation of this role.

    Examples
    --------
    >>> import mlflow
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> data = rk.datasets.make_ranking(30, 10, rng=0)
    >>> run = log_cross_validation(rk.cross_validate(Ridge(), data, measures="AP", cv=3), data="made up")
    >>> {"AP", "AP_fold", "AP_sd"} <= set(mlflow.get_run(run.run_id).data.metrics), len(run.children)
    (True, 3)
    """
    ended = now_ms()
    if isinstance(cv, CrossValidation):
        return send(_node(cv, role, data, ended, name, fold_runs=fold_runs), run_id)
    if not isinstance(cv, CrossValidations):
        raise InvalidInput(f"cv is of type {type(cv).__name__}; expected the result of rankeval.cross_validate")
    nodes = {
        system: _node(result, role, data, ended, system, fold_runs=fold_runs) for system, result in cv.results.items()
    }
    return send(several_node(nodes, cv.folds, ended_ms=ended, name=name or "cross-validation"), run_id)


def _node(
    cv: CrossValidation,
    role: str,
    data: LoggedData | RankingData | str | None,
    ended: int,
    name: str | None,
    *,
    fold_runs: bool,
) -> Node:
    used = described(cv.evaluation, role, data)
    return cross_validation_node(cv, role, used, ended_ms=ended, name=name, children=fold_runs)
