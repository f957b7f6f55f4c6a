"""Load results from MLflow, the same that were logged, or an error; compare runs.

A run holds pieces: the completeness tag names their manifests, and files are held against the
hashes of these.

A decision on a version of a registered model needs the evaluation that was logged for it. Loading
may take the run that the version was made in for the run of its evaluation. A decision may not:
that run can hold the evaluation of another system. A decision sees all evaluations of the version,
since the last of several need not be the right one:

* the runs whose tag ``rankeval.<role>.version`` names it, as `log` with ``model_version=`` wrote it, if the version
  says that it has such an evaluation: whoever may log runs need not have the right to change the
  version;
* the runs that have metrics on a data set which are linked to the logged model behind it, as `log` with ``model_id=``
  wrote them. Their values must be those of the evaluation.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rankeval._arguments import explained
from rankeval._checks import few, refuse, require, shown
from rankeval.comparison import Comparison, compare
from rankeval.errors import InvalidInput, warn
from rankeval.evaluation import Evaluation, from_bytes
from rankeval.model_selection.results import CrossValidations
from rankeval.shelf.folder import NAME as RECORD
from rankeval.shelf.folder import fetched
from rankeval.shelf.kinds import result_of
from rankeval.shelf.record import Record
from rankeval_mlflow import run_names
from rankeval_mlflow.delivery.connection import artifact, asking
from rankeval_mlflow.delivery.payload import (
    checked_manifest,
    pieces_by_role,
    pieces_of,
    refuse_altered,
)
from rankeval_mlflow.packing.nodes import values_of
from rankeval_mlflow.reading import resolving
from rankeval_mlflow.reading.listing import PAGE, metrics_of_role

CROSS_VALIDATION, SEVERAL = "cross-validation", "cross-validations"
CLOSE = 1e-9
"""Difference that a store's columns and JSON may leave in an aggregate."""


def whole_pieces(run: Any) -> tuple[str, ...]:
    """Return the labels of the whole pieces of a run."""
    run_id = run.info.run_id
    if run_names.COMPLETE not in run.data.tags:
        raise InvalidInput(
            f"run {run_id} has no tag {run_names.COMPLETE}: it has no whole evaluation. "
            "`rankeval mlflow list --waiting` shows pending uploads"
        )
    return tuple(pieces_of(run.data.tags))


def held_instead(run: Any) -> str:
    """Say what a run holds that lacks what was asked for, and how to read that."""
    kind = run.data.tags.get(run_names.KIND, "")
    tags = run.data.tags
    held = few(sorted({*pieces_of(tags), *pieces_by_role(tags)}))
    nested = ", and the evaluations of its rankers in nested runs" if kind == "experiment" else ""
    return f"it is a run of kind {kind!r}, and has {held}{nested}: load(run, label)"


def manifest_of(client: Any, run: Any, label: str) -> dict[str, Any]:
    """Return the manifest of a piece."""
    return checked_manifest(
        artifact(client, run, run_names.manifest_path(label)), label, run.data.tags
    )


def checked_file(client: Any, run: Any, manifest: dict[str, Any], path: str, what: str) -> bytes:
    """Return a file of a piece."""
    content = artifact(client, run, path)
    refuse_altered(content, manifest["files"][path], f"{what} in run {run.info.run_id}")
    return content


@explained
def load_evaluation(name: Any, role: str | None = None, *, uri: str | None = None) -> Evaluation:
    """Load an evaluation that `log` or an experiment wrote.

    Parameters
    ----------
    name : str or object
        A run by its id or as `log` returned it. Or a model, for the run that has its evaluation: a
        version ``"models:/ranker/7"``, ``"models:/ranker/latest"`` or
        ``"models:/ranker@champion"`` (the first part may be left out), a logged model
        ``"models:/m-..."``, or what MLflow returned for these.
    role : str, optional
        The role of the evaluation; needed only if there are several. For a version, only the
        evaluations that were logged for it count. ``"dev/step-3"`` is the evaluation that was
        logged with ``step=3``; the role alone is that of the greatest step.
    uri : str, optional
        The tracking store, with its model registry; by default MLflow's own setting.

    Returns
    -------
    Evaluation
        The logged evaluation, bit for bit.

    Raises
    ------
    InvalidInput
        If nothing has this name, the run has no whole evaluation of this role, there are several
        and ``role`` is missing, or an artifact is gone. The message says what there is.
    TrackingError
        If the store cannot be reached, or an artifact was altered.

    Examples
    --------
    >>> import rankeval as rk
    >>> from rankeval_mlflow import log
    >>> ev = rk.evaluate([1, 0, 1], [0.3, 0.2, 0.1], qid=["a", "a", "b"], measures="RR")
    >>> run = log(ev)
    >>> load_evaluation(run).per_query.equals(ev.per_query)
    True
    """
    with asking(uri, resolving.text_of(name)) as client:
        run, role = resolving.evaluation_meant(client, name, role)
        if (version := resolving.version_meant(client, name)) is not None:
            chosen = _chosen(run, role)[0]
            run_ids = {
                _content(logged, chosen): logged.info.run_id
                for logged in _naming(client, version, chosen)
            }
            run_ids.pop(_content(run, chosen), None)
            others = [*run_ids.values()]
            if others:
                warn(
                    f"{resolving.text_of(name)} has several evaluations of role {chosen!r}; this is the last, of run "
                    f"{run.info.run_id}; load another by its run: {few(others)}"
                )
        return evaluation_of(client, run, role)


@explained
def load(run: Any, label: str | None = None, *, uri: str | None = None) -> Any:
    """Load any result that `log` wrote, as it was.

    Parameters
    ----------
    run : str or object
        A run or a model, as in `load_evaluation`.
    label : str, optional
        The name of the result in the run: the role of an evaluation or a cross-validation, the name
        of another result, such as "comparison" or "agreement". Needed only if the run has
        several.
    uri : str, optional
        The tracking store, with its model registry; by default MLflow's own setting.

    Returns
    -------
    object
        The result, the same numbers bit for bit. Fitted estimators and scores by row are not
        stored.

    Raises
    ------
    InvalidInput
        If nothing has this name, the run has several results and ``label`` is missing, or an
        artifact is gone. The message says what there is.
    TrackingError
        If the store cannot be reached, or an artifact was altered.

    Examples
    --------
    >>> import rankeval as rk
    >>> from rankeval_mlflow import log
    >>> profile = rk.profile(str.split, {"q1": "new guinea", "q2": "economy"})
    >>> load(log(profile)).table.equals(profile.table)
    True
    """
    with asking(uri, resolving.text_of(run)) as client:
        return _loaded(client, resolving.resolve(client, run), label)


def _loaded(client: Any, run: Any, label: str | None) -> Any:
    labels = whole_pieces(run)
    chosen_label = labels[0] if label is None and len(labels) == 1 else label
    remedy = f"give label=, one of {few(sorted({*labels, *pieces_by_role(run.data.tags)}))}"
    refuse((chosen_label is None, f"run {run.info.run_id} holds {len(labels)} results", remedy))
    return _of_record(client, run, *_record_in(client, run, str(chosen_label)))


def _record_in(client: Any, run: Any, label: str) -> tuple[dict[str, Any], str]:
    """Return the manifest of the piece that holds a result, and the folder of its record."""
    pieces = whole_pieces(run)
    folder = run_names.folder(label)
    for piece in sorted(pieces, key=lambda piece: piece != label):
        manifest = manifest_of(client, run, piece)
        for within in (f"{folder}/{CROSS_VALIDATION}", folder):
            if f"{within}/{RECORD}" in manifest["files"]:
                return manifest, within
    raise InvalidInput(f"run {run.info.run_id} has no result {label!r}; {held_instead(run)}")


def record_within(client: Any, run: Any, manifest: dict[str, Any], within: str) -> Record:
    """Return the record in a folder of a piece; its files are read when they are asked for."""
    piece = within.removesuffix(f"/{CROSS_VALIDATION}")

    def opened(path: str) -> io.BytesIO:
        kind, _, rest = path.partition(
            "/"
        )  # the evaluation of a cross-validation is a piece of its own
        place = (
            f"{piece}/{rest.partition('/')[2]}"
            if kind == "parts" and piece != within
            else f"{within}/{path}"
        )
        return io.BytesIO(checked_file(client, run, manifest, place, f"the file {place!r}"))

    return fetched(opened, f"run {run.info.run_id}", children=False)


def _of_record(client: Any, run: Any, manifest: dict[str, Any], within: str) -> Any:
    record = record_within(client, run, manifest, within)
    if record.kind != SEVERAL:
        return result_of(record)
    query = f"tags.`mlflow.parentRunId` = '{run.info.run_id}'"
    children = resolving.pages(
        client.search_runs, [run.info.experiment_id], query, max_results=PAGE
    )
    runs = {str(child.data.tags["mlflow.runName"]): child for child in children}
    systems = [str(system) for system in record.tables["folds"].index.unique("system")]
    held = {system: runs.get(run_names.short_name(system, most=200)) for system in systems}
    gone = [system for system, child in held.items() if child is None]
    if gone:
        raise InvalidInput(
            f"run {run.info.run_id} has no child run of {few(gone)}: it was deleted or has another name"
        )
    return CrossValidations(
        {system: _loaded(client, child, None) for system, child in held.items()}
    )


def evaluation_of(client: Any, run: Any, role: str | None) -> Evaluation:
    """Load the evaluation of a run that the store has given already."""
    role, label = _chosen(run, role)
    manifest = manifest_of(client, run, label)
    # A record of an experiment keeps its evaluations by role and not under its own label.
    path = run_names.evaluation_path(
        label if run_names.role_of(label) == run_names.role_of(role) else role
    )
    return from_bytes(checked_file(client, run, manifest, path, f"the evaluation of role {role!r}"))


def _chosen(run: Any, role: str | None) -> tuple[str, str]:
    whole_pieces(run)
    held = pieces_by_role(run.data.tags)
    if role is not None and role != run_names.role_of(role) and role in pieces_of(run.data.tags):
        return role, role  # one step of several: "dev/step-3"
    chosen = resolving.chosen_role(f"run {run.info.run_id}", held, role, held_instead(run))
    return chosen, held[chosen]


def logged_for(client: Any, version: Any, role: str) -> list[tuple[Any, Evaluation]]:
    """Return the runs with evaluations of a role logged for a version or its logged model, oldest first."""
    called = f"models:/{version.name}/{version.version}"
    named = run_names.evaluated_runs(version.tags).get(role)
    linked = list(_linked(client, resolving.model_behind(version), role))
    runs = [*(_naming(client, version, role) if named else ()), *(run for run, _ in linked)]
    if not runs:
        if named:
            resolving.run_with(client, named)  # raises if it was deleted
            raise InvalidInput(f"run {named} does not say that it has the evaluation of {called}")
        roles = sorted(run_names.evaluated_runs(version.tags))
        others = f", only of {few(roles)}: choose by role=" if roles else ""
        raise InvalidInput(f"no evaluation of this role was logged for {called}{others}")
    loaded: dict[str, Evaluation] = {}
    for run in runs:
        content = _content(run, role)
        loaded[content] = loaded.get(content) or evaluation_of(client, run, role)
    for run, values in linked:
        if not _agree(values, values_of(loaded[_content(run, role)])):
            run_id = run.info.run_id
            raise InvalidInput(
                f"the evaluation in run {run_id} is not the one logged for {called}: the values differ"
            )
    once = {(run.info.start_time, run.info.run_id): run for run in runs}
    return [(run, loaded[_content(run, role)]) for _, run in sorted(once.items())]


def _content(run: Any, role: str) -> str:
    """Return the hash of the piece of a run with the evaluation of a role; "" if there is none."""
    tags = run.data.tags
    return pieces_of(tags).get(pieces_by_role(tags).get(role, ""), "")


def _naming(client: Any, version: Any, role: str) -> Iterator[Any]:
    key = run_names.version_tag(role)
    query = f"tags.`{key}` LIKE '%/{version.version}%'"
    for run in resolving.pages(
        client.search_runs, resolving.experiment_ids(client, None), query, max_results=PAGE
    ):
        if f"{version.name}/{version.version}" in run.data.tags[key].split("; ") and _content(
            run, role
        ):
            yield run


def _linked(client: Any, model_id: str | None, role: str) -> Iterator[tuple[Any, dict[str, float]]]:
    linked: dict[str, dict[str, float]] = {}
    for metric in (client.get_logged_model(model_id).metrics if model_id else None) or ():
        if metric.dataset_digest and metric.run_id:  # others are no aggregates of evaluations
            linked.setdefault(metric.run_id, {})[metric.key] = metric.value
    for run in map(client.get_run, linked):
        values = metrics_of_role(run, linked[run.info.run_id], role)
        if values and _content(run, role) and not resolving.is_deleted(run):
            yield run, values


def _agree(logged: Mapping[str, float], own: Mapping[str, float]) -> bool:
    finite = {key: value for key, value in own.items() if math.isfinite(value)}
    return bool(finite) and all(
        math.isclose(logged.get(key, math.nan), value, rel_tol=CLOSE, abs_tol=CLOSE)
        for key, value in finite.items()
    )


@explained
def load_comparison(name: Any, label: str = "comparison", *, uri: str | None = None) -> Comparison:
    """Load a comparison that `log` or an experiment wrote, with its evaluations.

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
        The logged numbers, bit for bit, and the evaluations from which figures and ``best`` are
        computed. Systems that were compared as frames of scores have none.

    Raises
    ------
    InvalidInput
        If nothing has this name, the run has no comparison of this label, or an artifact is gone.
        The message says what there is.
    TrackingError
        If the store cannot be reached, or an artifact was altered.

    Examples
    --------
    >>> import rankeval as rk
    >>> from rankeval_mlflow import log
    >>> labels, qid = [1, 0, 0, 1], ["a", "a", "b", "b"]
    >>> scores = {"bm25": [2, 1, 2, 1], "ltr": [2, 1, 1, 2]}
    >>> systems = {name: rk.evaluate(labels, one, qid=qid, measures="RR") for name, one in scores.items()}
    >>> run = log(rk.compare(systems, baseline="bm25"))
    >>> back = load_comparison(run)
    >>> back.table["difference"].tolist(), list(back.evaluations)
    ([0.25], ['bm25', 'ltr'])
    """
    require(isinstance(label, str), "label", label, "the name that a comparison was logged under")
    with asking(uri, resolving.text_of(name)) as client:
        run = resolving.resolve(client, name)
        result = _of_record(client, run, *_record_in(client, run, label))
        if not isinstance(result, Comparison):
            raise InvalidInput(
                f"run {run.info.run_id} has no comparison {label!r}; {held_instead(run)}"
            )
        return result


@explained
def compare_runs(
    runs: Iterable[Any],
    *,
    role: str | None = None,
    baseline: Any | None = None,
    uri: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare the evaluations of several runs, paired by query.

    Parameters
    ----------
    runs : iterable of str or object
        Runs or models, each as in `load_evaluation`.
    role : str, optional
        The role of the evaluation in each run.
    baseline : str or object, optional
        The run that the others are compared with, in any spelling of `load_evaluation`, or the name
        of its evaluation; by default all pairs are compared. A baseline that is not among the runs
        is added to them.
    uri : str, optional
        The tracking store; by default MLflow's own setting.
    **options
        Options of `rankeval.compare`.

    Returns
    -------
    Comparison
        A system has the name of its evaluation, or the name under which its run was given if names
        are missing or equal.

    Raises
    ------
    ConventionMismatch
        If conventions or judgments differ.
    InvalidInput
        If an evaluation cannot be loaded, two names mean the same run, or `rankeval.compare`
        refuses an option.
    UnknownName
        If a setting of `rankeval.compare` does not exist.
    TrackingError
        If the store cannot be reached, or an artifact was altered.

    Examples
    --------
    >>> import rankeval as rk
    >>> from rankeval_mlflow import log
    >>> labels, qid = [1, 0, 0, 1], ["a", "a", "b", "b"]
    >>> scores = {"bm25": [2, 1, 2, 1], "ltr": [2, 1, 1, 2]}
    >>> evaluations = [rk.evaluate(labels, one, qid=qid, measures="RR", name=name) for name, one in scores.items()]
    >>> runs = [log(ev).run_id for ev in evaluations]
    >>> compare_runs(runs, baseline="bm25").table[["baseline", "system", "difference"]].values.tolist()
    [['bm25', 'ltr', 0.25]]
    """
    are_several = isinstance(runs, Iterable) and not isinstance(runs, (str, bytes))
    require(are_several, "runs", runs, "several runs, each by its id or as a model")
    names = [*runs]
    spelt = [resolving.text_of(name) for name in names]
    with asking(uri, few(spelt)) as client:
        resolved = [resolving.evaluation_meant(client, name, role) for name in names]
        _refuse_repeated(spelt, [run.info.run_id for run, _ in resolved])
        loaded = {
            name: (run.info.run_id, evaluation_of(client, run, meant))
            for name, (run, meant) in zip(spelt, resolved, strict=True)
        }
        reference = _among(client, baseline, loaded, role) if baseline is not None else None
    called = _called({name: evaluation for name, (_, evaluation) in loaded.items()})
    systems = {called[name]: evaluation for name, (_, evaluation) in loaded.items()}
    return compare(systems, baseline=None if reference is None else called[reference], **options)


def _among(
    client: Any, baseline: Any, loaded: dict[str, tuple[str, Evaluation]], role: str | None
) -> str:
    """Return the name of the baseline among the loaded runs; load it if it is a run besides them."""
    spelt = resolving.text_of(baseline)
    names = [name for name, (_, evaluation) in loaded.items() if evaluation.name == spelt]
    if len(names) == 1:
        return names[0]
    if spelt in loaded:
        return spelt
    if len(names) > 1:
        raise InvalidInput(
            f"baseline {shown(baseline)} is the name of several evaluations; give the id of its run"
        )
    run, role = resolving.evaluation_meant(client, baseline, role)
    for name, (run_id, _) in loaded.items():
        if run_id == run.info.run_id:
            return name
    loaded[spelt] = (run.info.run_id, evaluation_of(client, run, role))
    return spelt


def _called(evaluations: Mapping[str, Evaluation]) -> dict[str, str]:
    names = [evaluation.name for evaluation in evaluations.values()]
    return {
        spelt: evaluation.name if evaluation.name and names.count(evaluation.name) == 1 else spelt
        for spelt, evaluation in evaluations.items()
    }


def _refuse_repeated(spelt: list[str], ids: list[str]) -> None:
    # The scores of a run would be compared with themselves.
    first: dict[str, str] = {}
    for name, run_id in zip(spelt, ids, strict=True):
        if run_id in first:
            also = "" if name == first[run_id] else f" and {name}"
            raise InvalidInput(
                f"runs names one run twice: {first[run_id]}{also}", remedy="give each run once"
            )
        first[run_id] = name
