"""Load evaluations from MLflow, the same that were logged or an error, and compare those of several runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rankeval._checks import few, shown
from rankeval.errors import InvalidInput
from rankeval_mlflow.delivery.completeness import pieces_by_role, pieces_of
from rankeval_mlflow.layout import evaluation_path, role_of
from rankeval_mlflow.reading.asking import asking
from rankeval_mlflow.reading.pieces import checked_file, labels_of, manifest_of
from rankeval_mlflow.reading.where import resolve, text_of

if TYPE_CHECKING:
    from rankeval.comparison import Comparison
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
        with ``step=3``; the role alone is the one without a step, or else that of the last step.

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


def compare_runs(
    runs: Iterable[Any], *, role: str | None = None, baseline: Any | None = None, **options: Any
) -> Comparison:
    """Compare the evaluations of several runs, paired by query.

    Parameters
    ----------
    runs : iterable of str or object
        Runs or models, each as in `load_evaluation`.
    role : str, optional
        The role of the evaluation in each run.
    baseline : str or object, optional
        The run that the others are compared with, in any spelling of `load_evaluation`, or the name of its evaluation;
        by default all pairs are compared. A baseline that is not among the runs is added to them.
    **options
        Options of `rankeval.compare`.

    Returns
    -------
    Comparison
        A system has the name of its evaluation, or the name under which its run was given if names are missing or
        equal.

    Raises
    ------
    ConventionMismatch
        If conventions or judgments differ.
    InvalidInput
        If an evaluation cannot be loaded, two names mean the same run, or `rankeval.compare` refuses an option.
    UnknownName
        If a setting of `rankeval.compare` does not exist.
    TrackingError
        If the store cannot be reached, or an artifact was altered.

    Examples
    --------
    >>> import rankeval as rk
    >>> from rankeval_mlflow import log_evaluation
    >>> labels, qid = [1, 0, 0, 1], ["a", "a", "b", "b"]
    >>> scores = {"bm25": [2, 1, 2, 1], "ltr": [2, 1, 1, 2]}
    >>> evaluations = [rk.evaluate(labels, one, qid=qid, measures="RR", name=name) for name, one in scores.items()]
    >>> runs = [log_evaluation(ev).run_id for ev in evaluations]
    >>> compare_runs(runs, baseline="bm25").table[["baseline", "system", "difference"]].values.tolist()
    [['bm25', 'ltr', 0.25]]
    """
    from rankeval.comparison import compare

    if isinstance(runs, (str, bytes)) or not isinstance(runs, Iterable):
        raise InvalidInput(f"runs is {shown(runs)}; expected several runs, each by its id or as a model")
    given = list(runs)
    spelt = [text_of(one) for one in given]
    with asking(None, few(spelt)) as client:
        found = [resolve(client, one, role).run for one in given]
        _refuse_repeated(spelt, [run.info.run_id for run in found])
        loaded = {
            name: (run.info.run_id, evaluation_of(client, run, role)) for name, run in zip(spelt, found, strict=True)
        }
        reference = _among(client, baseline, loaded, role) if baseline is not None else None
    called = _called({name: evaluation for name, (_, evaluation) in loaded.items()})
    systems = {called[name]: evaluation for name, (_, evaluation) in loaded.items()}
    return compare(systems, baseline=None if reference is None else called[reference], **options)


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


def _among(client: Any, baseline: Any, loaded: dict[str, tuple[str, Evaluation]], role: str | None) -> str:
    """Return the name of the baseline among the loaded runs; load it if it is a run besides them."""
    names = [name for name, (_, evaluation) in loaded.items() if evaluation.name == baseline]
    if len(names) == 1:
        return names[0]
    spelt = text_of(baseline)
    if spelt in loaded:
        return spelt
    if len(names) > 1:
        raise InvalidInput(f"baseline {shown(baseline)} is the name of several evaluations; give the id of its run")
    run = resolve(client, baseline, role).run
    for name, (run_id, _) in loaded.items():
        if run_id == run.info.run_id:
            return name
    loaded[spelt] = (run.info.run_id, evaluation_of(client, run, role))
    return spelt


def _called(evaluations: Mapping[str, Evaluation]) -> dict[str, str]:
    """Return the name of each system: that of its evaluation if no other has it."""
    names = [evaluation.name for evaluation in evaluations.values()]
    return {
        given: evaluation.name if evaluation.name and names.count(evaluation.name) == 1 else given
        for given, evaluation in evaluations.items()
    }


def _refuse_repeated(spelt: list[str], ids: list[str]) -> None:
    """Refuse two names of one run: its scores would be compared with themselves."""
    first: dict[str, str] = {}
    for name, run_id in zip(spelt, ids, strict=True):
        if run_id in first:
            also = "" if name == first[run_id] else f" and {name}"
            raise InvalidInput(f"runs names one run twice: {first[run_id]}{also}; give each run once")
        first[run_id] = name


def _chosen(run: Any, role: str | None) -> tuple[str, str]:
    """Return the role of the chosen evaluation, and the label of the piece that holds it."""
    labels_of(run)
    run_id = run.info.run_id
    held = pieces_by_role(run.data.tags)
    if role is not None and role != role_of(role) and role in pieces_of(run.data.tags):
        return role, role  # one step of several: "dev/step-3"
    if not held or (role is not None and role not in held):
        what = f"no evaluation of role {role!r}" if role else "no evaluation"
        raise InvalidInput(f"run {run_id} holds {what}; it holds {sorted(held) or 'none'}")
    if role is None and len(held) > 1:
        raise InvalidInput(f"run {run_id} holds evaluations of the roles {sorted(held)}; choose one with role=")
    chosen = role or next(iter(held))
    return chosen, held[chosen]
