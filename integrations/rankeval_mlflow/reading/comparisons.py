"""Load comparisons from MLflow with the scores of every query, and compare the evaluations of several runs."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rankeval._checks import few, shown
from rankeval.errors import InvalidInput
from rankeval.evaluation.result import from_bytes
from rankeval_mlflow.layout import folder
from rankeval_mlflow.reading.evaluations import checked_file, evaluation_of, held_instead, labels_of, manifest_of
from rankeval_mlflow.reading.resolving import asking, resolve, text_of

if TYPE_CHECKING:
    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation

_NUMBERS = "comparison.json"


def load_comparison(name: Any, label: str = "comparison", *, uri: str | None = None) -> Comparison:
    """Load a comparison that `log_comparison` or an experiment wrote, with its evaluations.

    Parameters
    ----------
    name : str or object
        A run or a model, as in `load_evaluation`.
    label : str, default "comparison"
        The name that the comparison was logged under.
    uri : str, optional
        The tracking store, with its model registry; by default MLflow's own setting.

    Returns
    -------
    Comparison
        The logged numbers, bit for bit, and the evaluations by which figures, ``best`` and the like are computed.
        Systems that were compared as frames of scores have none.

    Raises
    ------
    InvalidInput
        If nothing has this name, the run holds no comparison of this label, or an artifact is gone. The message says
        what there is.
    TrackingError
        If the store cannot be reached, or an artifact was altered.

    Examples
    --------
    >>> import rankeval as rk
    >>> from rankeval_mlflow import log_comparison
    >>> labels, qid = [1, 0, 0, 1], ["a", "a", "b", "b"]
    >>> scores = {"bm25": [2, 1, 2, 1], "ltr": [2, 1, 1, 2]}
    >>> systems = {name: rk.evaluate(labels, one, qid=qid, measures="RR") for name, one in scores.items()}
    >>> run = log_comparison(rk.compare(systems, baseline="bm25"))
    >>> back = load_comparison(run)
    >>> back.table["difference"].tolist(), list(back.evaluations)
    ([0.25], ['bm25', 'ltr'])
    """
    from rankeval.comparison import Comparison

    if not isinstance(label, str):
        raise InvalidInput(argument="label", found=shown(label), expected="the name that a comparison was logged under")
    with asking(uri, text_of(name)) as client:
        run = resolve(client, name).run
        manifest = _holder(client, run, label)
        path, what = f"{folder(label)}/{_NUMBERS}", f"the comparison {label!r}"
        numbers = Comparison.from_json(checked_file(client, run, manifest, path, what).decode())
        return replace(numbers, evaluations=_evaluations(client, run, manifest, label))


def _holder(client: Any, run: Any, label: str) -> dict[str, Any]:
    """Return the manifest of the piece that holds a comparison: its own, or that of the record of an experiment."""
    held: list[str] = []
    for piece in sorted(labels_of(run), key=lambda piece: piece != label):
        manifest = manifest_of(client, run, piece)
        paths = [posixpath.split(path) for path in manifest["files"]]
        found = [posixpath.basename(where) for where, name in paths if name == _NUMBERS]
        if label in found:
            return manifest
        held += found
    instead = f"it holds {few(sorted(held))}" if held else held_instead(run)
    raise InvalidInput(f"run {run.info.run_id} holds no comparison {label!r}; {instead}")


def _evaluations(client: Any, run: Any, manifest: dict[str, Any], label: str) -> dict[str, Any]:

    found: dict[str, Any] = {}
    for held in manifest["facts"][label]["evaluations"]:
        what = f"the evaluation of {held['system']!r}"
        evaluation = from_bytes(checked_file(client, run, manifest, held["path"], what))
        if held["part"]:
            found.setdefault(held["system"], {})[held["part"]] = evaluation
        else:
            found[held["system"]] = evaluation
    return found


def compare_runs(
    runs: Iterable[Any], *, role: str | None = None, baseline: Any | None = None, uri: str | None = None, **options: Any
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
    uri : str, optional
        The tracking store; by default MLflow's own setting.
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
        raise InvalidInput(argument="runs", found=shown(runs), expected="several runs, each by its id or as a model")
    given = list(runs)
    spelt = [text_of(one) for one in given]
    with asking(uri, few(spelt)) as client:
        found = [resolve(client, one, role).run for one in given]
        _refuse_repeated(spelt, [run.info.run_id for run in found])
        loaded = {
            name: (run.info.run_id, evaluation_of(client, run, role)) for name, run in zip(spelt, found, strict=True)
        }
        reference = _among(client, baseline, loaded, role) if baseline is not None else None
    called = _called({name: evaluation for name, (_, evaluation) in loaded.items()})
    systems = {called[name]: evaluation for name, (_, evaluation) in loaded.items()}
    return compare(systems, baseline=None if reference is None else called[reference], **options)


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
            raise InvalidInput(f"runs names one run twice: {first[run_id]}{also}", remedy="give each run once")
        first[run_id] = name
