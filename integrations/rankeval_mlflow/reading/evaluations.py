"""Load evaluations from MLflow: the same that were logged, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval.errors import InvalidInput
from rankeval_mlflow.delivery.completeness import pieces_by_role, pieces_of
from rankeval_mlflow.layout import evaluation_path, role_of
from rankeval_mlflow.reading.asking import asking
from rankeval_mlflow.reading.pieces import checked_file, held_instead, labels_of, manifest_of
from rankeval_mlflow.reading.where import resolve, text_of

if TYPE_CHECKING:
    from rankeval.evaluation import Evaluation


def load_evaluation(name: Any, role: str | None = None) -> Evaluation:
    """Load an evaluation that `log_evaluation` or an experiment wrote.

    Parameters
    ----------
    name : str or object
        A run by its id or as `log_evaluation` returned it. Or a model, which stands for the run that holds its
        evaluation: a version ``"models:/ranker/7"``, ``"models:/ranker/latest"`` or ``"models:/ranker@champion"`` (the
        first part may be left out), a logged model ``"models:/m-..."``, or what MLflow returned for these.
    role : str, optional
        The role of the evaluation; needed only if there are several. ``"dev/step-3"`` is the evaluation that was logged
        with ``step=3``; the role alone is that of the greatest step.

    Returns
    -------
    Evaluation
        The logged evaluation, bit for bit.

    Raises
    ------
    InvalidInput
        If nothing has this name, the run has no whole evaluation of this role, there are several and ``role`` is
        missing, or an artifact is gone. The message says what there is.
    TrackingError
        If the store cannot be reached, or an artifact was altered.

    Examples
    --------
    >>> import rankeval as rk
    >>> from rankeval_mlflow import log_evaluation
    >>> ev = rk.evaluate([1, 0, 1], [0.3, 0.2, 0.1], qid=["a", "a", "b"], measures="RR")
    >>> run = log_evaluation(ev)
    >>> load_evaluation(run).per_query.equals(ev.per_query)
    True
    """
    said = text_of(name)
    with asking(None, said) as client:
        return evaluation_of(client, resolve(client, name, role).run, role)


def evaluation_of(client: Any, run: Any, role: str | None) -> Evaluation:
    """Load the evaluation of a run that the store has given already.

    Parameters
    ----------
    client : MlflowClient
        A client of the store.
    run : Run
        The run.
    role : str or None
        The role; None if there is only one.

    Raises
    ------
    InvalidInput
        If the run has no whole evaluation of this role, or several and ``role`` is None, or an artifact is gone.
    TrackingError
        If an artifact was altered.
    """
    from rankeval.evaluation import Evaluation

    role, label = _chosen(run, role)
    manifest = manifest_of(client, run, label)
    path = evaluation_path(label if role_of(label) == role_of(role) else role)
    return Evaluation.from_bytes(checked_file(client, run, manifest, path, f"the evaluation of role {role!r}"))


def _chosen(run: Any, role: str | None) -> tuple[str, str]:
    """Return the role of the chosen evaluation, and the label of the piece that holds it."""
    labels_of(run)
    run_id = run.info.run_id
    held = pieces_by_role(run.data.tags)
    if role is not None and role != role_of(role) and role in pieces_of(run.data.tags):
        return role, role  # one step of several: "dev/step-3"
    if not held or (role is not None and role not in held):
        what = f"no evaluation of role {role!r}" if role else "no evaluation"
        raise InvalidInput(f"run {run_id} holds {what}; {held_instead(run)}")
    if role is None and len(held) > 1:
        raise InvalidInput(f"run {run_id} holds evaluations of the roles {sorted(held)}; choose one with role=")
    chosen = role or next(iter(held))
    return chosen, held[chosen]
