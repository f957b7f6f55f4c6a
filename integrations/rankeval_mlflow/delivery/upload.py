"""The steps that send an upload. Every step can be repeated, so a broken upload goes on from where it stopped.

* Runs and logged models: each has the tag `rankeval.record` with the upload and its place in it, by which a later
  attempt finds it again. MLflow repeats a request whose answer was lost, and so would make a second
  one: it may not here. If there are two nevertheless, since the server was still at the first, the
  empty one is deleted.
* Metrics: they carry the time of the upload, and MLflow keeps one of two that agree in name, value, step and time. A
  piece that the run holds already carries the time of the first upload.
* Parameters, tags, artifacts: a repetition writes the same values again. MLflow never changes a parameter: if the run
  has another value of that name, ours is called ``<label>/<name>``.
* Inputs: MLflow keeps each once.

The files with the numbers go first; what is drawn from them for people comes after them. The
completeness tag comes last: a run that has it has everything.

Work that grows, such as a study, is found again by later uploads too: the tag `rankeval.record` of
its run and of each child has a mark of the work instead of the upload. A child that is whole is not
sent again. The tag ``rankeval.<label>.revision`` says how far the run has grown: an upload that
waited while a later one was sent changes nothing. Two machines that log the same new study at the
same moment may each make its run, since MLflow has no unique key for one.

Logged models are made first, so that metrics name them; their files are sent after the numbers.

MLflow keeps one input for each name and digest in a run, so dev and test of the same content would
be one. The role that came second has its name behind the digest. A tag has the digest whole.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import posixpath
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlflow import entities
from mlflow.exceptions import MlflowException

from rankeval._checks import said
from rankeval._secrets import bare
from rankeval.errors import InvalidInput, warn
from rankeval.shelf.record import BESIDE_ENDS
from rankeval.tracking import TrackedRun
from rankeval_mlflow.delivery.addresses import (
    now_ms,
    page_link,
    run_link,
    version_link,
    view_link,
    where_to_look,
)
from rankeval_mlflow.delivery.connection import existing, made_once
from rankeval_mlflow.delivery.payload import (
    MLMODEL,
    DatasetUse,
    Node,
    Payload,
    SavedModel,
    Scores,
    cut,
    held_revision,
    identified,
    is_held,
    manifest,
    walk,
    with_piece,
)
from rankeval_mlflow.delivery.spool import PendingUpload, alone
from rankeval_mlflow.run_names import (
    BEST,
    COMPLETE,
    EVALUATION,
    KIND,
    MAX_TAG,
    NOTE,
    PAGE,
    RECORD,
    ROLE,
    SHOWN_DIGEST,
    TABLES,
    VIEW,
    manifest_path,
    name_hash,
    piece_tag,
    safe_name,
    short_digest,
    state_of,
    version_tag,
    with_evaluation,
)
from rankeval_mlflow.views import REPORT, render, with_measures, with_sections

# Drawing that ended two processes, as by too much memory, is not tried a third time.
_ATTEMPTS = 2
# Seconds to wait for another process that writes the tags of a version: a few requests.
_PATIENCE = 60.0
_MAX_DESCRIPTION = 5000  # characters that MLflow's database holds of a version
_MOST_RUNS = 50_000  # of a page, as many as MLflow gives


_MAX_DIGEST = 36
_CONTEXT = "mlflow.data.context"
Digests = Mapping[tuple[str, str, str], str]
"""(name, full digest, role) -> the digest that MLflow shows."""

_PARENT = "mlflow.parentRunId"


@contextlib.contextmanager
def written(files: Mapping[str, bytes]) -> Iterator[Path]:
    """Yield a temporary folder that holds files while they are sent; a resend makes them again."""
    with tempfile.TemporaryDirectory(prefix="rankeval-") as folder:
        for path, content in files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        yield Path(folder)


def drawn_files(node: Node, attempt: int) -> tuple[dict[str, bytes], list[str]]:
    """Draw the files of a node; one that cannot be drawn is a warning, and never a lost record."""
    drawn: dict[str, bytes] = {}
    failures = []
    for rendering in node.renderings:
        if attempt > _ATTEMPTS:
            failures.append(
                f"Not drawn from {rendering.source}: drawing it ended {attempt - 1} processes."
            )
            continue
        try:
            files = render(rendering.kind, node.files[rendering.source], rendering.options)
        except Exception as error:  # noqa: BLE001 - a drawing library may raise anything, and the scores are safe
            why = f"Not drawn from {rendering.source}: {type(error).__name__}: {said(error)[:200]}."
            warn(why)
            failures.append(why)
            continue
        drawn |= {posixpath.join(rendering.into, path): content for path, content in files.items()}
    return drawn, failures


def promised_tables(node: Node) -> list[str]:
    """Return the artifact paths of the tables that a node is to have."""
    return [
        posixpath.join(rendering.into, path)
        for rendering in node.renderings
        for path in rendering.tables
    ]


def shown_digests(run: Any, uses: Iterable[DatasetUse]) -> Digests:
    """Return the digest that MLflow shows of each data set."""
    roles = {}
    for entry in run.inputs.dataset_inputs if run.inputs else ():
        tags = {tag.key: tag.value for tag in entry.tags}
        roles[entry.dataset.name, entry.dataset.digest] = tags.get(_CONTEXT, "")
    chosen = {}
    for use in uses:
        digest = use.given.get("digest") or short_digest(use.digest)
        if roles.setdefault((use.name, digest), use.role) != use.role:
            digest = f"{digest[:SHOWN_DIGEST]}-{use.role}"[:_MAX_DIGEST]
        chosen[use.name, use.digest, use.role] = digest
    return chosen


def dataset_input(use: DatasetUse, digests: Digests) -> entities.DatasetInput:
    """Return a data set as MLflow's input."""
    source: dict[str, Any] = {"uri": use.source} if use.source else {"tags": {}}
    ours = {"source_type": "local" if use.source else "code", "source": json.dumps(source)}
    profile = {**json.loads(use.given.get("profile") or "{}"), **use.profile}
    named = {
        "name": use.name,
        "digest": digests[use.name, use.digest, use.role],
        "profile": json.dumps(profile),
    }
    dataset = entities.Dataset(**{**ours, **use.given, **named})
    tags = {_CONTEXT: use.role, "rankeval.role": use.role, "rankeval.digest": use.digest}
    return entities.DatasetInput(dataset, [entities.InputTag(*tag) for tag in tags.items()])


@dataclass
class Steps:
    """The sending of one upload through one client; ``fresh`` if no earlier attempt was made."""

    client: Any
    upload: PendingUpload
    payload: Payload
    aggregates: bool
    fresh: bool = False

    def __post_init__(self) -> None:
        self.state: dict[str, Any] = self.upload.sent()
        self.state.pop("refused", None)
        self.began_ms: int = now_ms()

    def whole(self) -> TrackedRun:
        """Send the tree of runs, and the tags of a model version."""
        target = self.payload.target
        run, headline = self._target_run(), None
        if run is None:
            experiment_id, tags = self._experiment(target.experiment_name, target.experiment_id)
        else:
            experiment_id = run.info.experiment_id
            tags = self.client.get_experiment(experiment_id).tags
            headline = run.data.tags.get(ROLE)
        tracked = self._run("0", self.payload.root, experiment_id, target=run)
        self._columns(experiment_id, tags, headline)
        return tracked

    def _columns(self, experiment_id: str, tags: Mapping[str, str], headline: str | None) -> None:
        # Of itself MLflow's table of runs shows no metric.
        keys: dict[str, float] = {}
        params: list[str] = []
        for _, node in walk(self.payload.root):
            params += node.columns
            if node.mark and node.revision is None:  # a trial of a study
                keys |= node.metrics
            for scores in node.scores:
                keys |= scores.keyed(bare=scores.role == (headline or node.scores[0].role))
        measures = [key for key in keys if not key.endswith(BESIDE_ENDS)]
        if value := with_measures(tags.get(VIEW), measures, self.payload.created_ms, params):
            # Who may log runs may lack the right to change the experiment.
            with contextlib.suppress(MlflowException):
                self.client.set_experiment_tag(experiment_id, VIEW, value)
                if NOTE not in tags:
                    self.client.set_experiment_tag(experiment_id, NOTE, view_link(experiment_id))

    def end_failed(self) -> None:
        """End the runs that this upload made: nobody is sending to them any more."""
        for run_id in self.state["runs"].values():
            # The refusal itself is reported; a run may be gone or refuse this too.
            with contextlib.suppress(Exception):
                self.client.set_terminated(run_id, "FAILED")

    def _target_run(self) -> Any | None:
        payload = self.payload
        run = self._entity("run", self.client.get_run, payload.target.run_id)
        self._entity("logged model", self.client.get_logged_model, payload.model_id)
        self._entity(
            "version of a registered model",
            self.client.get_model_version,
            *(payload.model_version or (None,)),
        )
        if run is not None and run.info.lifecycle_stage == "deleted":
            raise InvalidInput(
                f"the run {run.info.run_id} was deleted",
                remedy=f"restore it (mlflow runs restore --run-id {run.info.run_id}) or log to another run",
            )
        return run

    def _entity(self, what: str, ask: Any, *name: str | None) -> Any | None:
        if None in name:
            return None
        entity = existing(ask, *name)
        if entity is None:
            shown = cut(" ".join(map(str, name)), 200)
            raise InvalidInput(f"there is no {what} {shown} in {bare(self.payload.target.uri)}")
        return entity

    def _experiment(
        self, name: str | None, experiment_id: str | None
    ) -> tuple[str, Mapping[str, str]]:
        if name is None:
            found = self._entity(
                "experiment with the id", self.client.get_experiment, experiment_id
            )
        else:
            found = self.client.get_experiment_by_name(name)
        if found is None:
            create = self.client.create_experiment
            if new_id := existing(create, name, codes={"RESOURCE_ALREADY_EXISTS"}):
                return str(new_id), {}
            found = self.client.get_experiment_by_name(name)  # another process has just made it
        refuse_deleted(found)
        return str(found.experiment_id), found.tags

    def _run(
        self,
        place: str,
        node: Node,
        experiment_id: str,
        *,
        parent: str | None = None,
        target: Any | None = None,
    ) -> TrackedRun:
        run = target or self._own_run(place, node, experiment_id, parent)
        run_id, experiment_id = run.info.run_id, run.info.experiment_id
        where = where_to_look(self.payload.target.uri, experiment_id, run_id)
        held = {} if node.revision is None else self._marked_children(run)
        if (held_revision(run.data.tags, node) or 0) >= (node.revision or 1):
            return TrackedRun(run_id, tuple(held.values()), where)
        complete = with_piece(run, node)
        model_ids = [
            self._own_model(f"{place}/{index}", model, run_id, experiment_id)
            for index, model in enumerate(node.models)
        ]
        input_id = self.payload.model_id if place == "0" else None
        digests = shown_digests(run, node.datasets)
        self._inputs(run_id, node, digests, input_id)
        self._files(run_id, place, node)
        note = self._batch(run, node, input_id or next(iter(model_ids), None), digests)
        self._models(place, node, run, model_ids)
        children = tuple(
            held.get(child.mark)
            or self._run(f"{place}-{index}", child, experiment_id, parent=run_id)
            for index, child in enumerate(node.children)
        )
        marks = (child.mark for child in node.children)
        note = self._best(run, node, dict(zip(marks, children, strict=True)), note)
        if place == "0" and self.payload.model_version:
            self._model_version(*self.payload.model_version, run, node)
        self._drawings(run, place, node, note)
        if target is not None:  # another process may have written to it meanwhile
            complete = with_piece(self.client.get_run(run_id), node)
        self.client.set_tag(run_id, COMPLETE, complete, synchronous=True)
        if target is None:
            ended_ms = node.ended_ms
            if ended_ms is None:
                # After the time of its sending, but not after the time that an upload waited.
                ended_ms = self._started(node) + now_ms() - self.began_ms
            self.client.set_terminated(run_id, node.status, ended_ms)
        return TrackedRun(run_id, children, where, tuple(model_ids))

    def _marked_children(self, run: Any) -> dict[str, TrackedRun]:
        """Return the whole children of a run by their marks."""
        query = f"tags.`{_PARENT}` = '{run.info.run_id}' and tags.`{COMPLETE}` LIKE '%'"
        found = self.client.search_runs([run.info.experiment_id], query, max_results=_MOST_RUNS)
        ids = {child.data.tags[RECORD]: child.info.run_id for child in found}
        return {mark: TrackedRun(run_id, (), "") for mark, run_id in ids.items()}

    def _best(self, run: Any, node: Node, children: Mapping[str, TrackedRun], note: str) -> str:
        """Tag the best children, link to them, and note how far the run has grown; return the description."""
        if node.revision is None:
            return note
        best_tag = piece_tag(node.label, "best")
        best = [children[mark].run_id for mark in node.best]
        for former in set(run.data.tags.get(best_tag, "").split()) - {*best}:
            with contextlib.suppress(MlflowException):  # the trial may have been deleted
                self.client.delete_tag(former, BEST)
        for child_id in best:
            self.client.set_tag(child_id, BEST, "yes")
        links = ", ".join(map(run_link, best)) or "none"
        note = with_sections(note, {f"{node.label} best": f"The best: {links}"})
        grown = f"{node.mark} {node.revision}"
        tags = {best_tag: " ".join(best), NOTE: note, piece_tag(node.label, "revision"): grown}
        run_tags = [entities.RunTag(key, value[:MAX_TAG]) for key, value in tags.items()]
        self.client.log_batch(run.info.run_id, tags=run_tags, synchronous=True)
        return note

    def _started(self, node: Node) -> int:
        return self.payload.created_ms if node.started_ms is None else node.started_ms

    def _own_run(self, place: str, node: Node, experiment_id: str, parent: str | None) -> Any:
        tags = {**self.payload.context, **({_PARENT: parent} if parent else {})}
        within = f" and tags.`{_PARENT}` = '{parent}'" if parent else ""

        def find(marked: str) -> list[Any]:
            runs = self.client.search_runs([experiment_id], marked + within)
            return [self.client.get_run(run.info.run_id) for run in runs]

        def make(mark: dict[str, str]) -> Any:
            started_ms = self._started(node)
            return self.client.create_run(
                experiment_id, started_ms, tags | mark, run_name=node.name
            )

        def end(run_id: str) -> None:
            # It is ended too if this user may not delete.
            self.client.set_terminated(run_id, "KILLED")
            self.client.delete_run(run_id)

        return self._made("runs", place, find, make, end, node.mark)

    def _own_model(self, place: str, model: SavedModel, run_id: str, experiment_id: str) -> str:
        tags, params = {**self.payload.context, **model.tags}, dict(model.params)

        def find(marked: str) -> Any:
            return self.client.search_logged_models([experiment_id], marked)

        def make(mark: dict[str, str]) -> Any:
            return self.client.create_logged_model(
                experiment_id, model.name, run_id, tags | mark, params, model.model_type
            )

        own = self._made("models", place, find, make, self.client.delete_logged_model)
        return str(own.model_id)

    def _made(
        self,
        kind: str,
        place: str,
        find: Callable[[str], Any],
        make: Callable[[Any], Any],
        end: Callable[[str], None],
        mark: str = "",
    ) -> Any:
        """Return the run or model at a place; make it if no attempt did, and end any second one."""
        ids, is_fresh = self.state[kind], self.fresh and not mark
        mark = mark or f"{self.upload.id}/{place}"
        marked = f"tags.`{RECORD}` = '{mark}'"
        own = find(marked) if place in ids or not is_fresh else []
        own = own or made_once(lambda: make({RECORD: mark}), lambda: find(marked))
        by_id = {str(made.info.run_id if kind == "runs" else made.model_id): made for made in own}
        chosen = ids[place] if ids.get(place) in by_id else next(iter(by_id))
        for other in by_id.keys() - {chosen}:
            with contextlib.suppress(MlflowException):  # who may log may lack the right to delete
                end(other)
        if ids.get(place) != chosen:
            ids[place] = chosen
            self.upload.remember(self.state)
        return by_id[chosen]

    def _models(self, place: str, node: Node, run: Any, model_ids: Sequence[str]) -> None:
        """Send the files of the models, and link them to their run: MLflow takes a link once."""
        for index, (model, model_id) in enumerate(zip(node.models, model_ids, strict=True)):
            logged = self.client.get_logged_model(model_id)
            if logged.status != entities.LoggedModelStatus.READY:
                self._model_files(place, index, model, logged, run.info.run_id)
                self.client.finalize_logged_model(model_id, "READY")
        linked = {output.model_id for output in (run.outputs.model_outputs if run.outputs else ())}
        if missing := [
            entities.LoggedModelOutput(model_id, 0)
            for model_id in model_ids
            if model_id not in linked
        ]:
            self.client.log_outputs(run.info.run_id, missing)

    def _model_files(
        self, place: str, index: int, model: SavedModel, logged: Any, run_id: str
    ) -> None:
        """Send the files of a model; its ``MLmodel`` last, with the ids that the store gave."""
        with_ids = identified(
            model.files[MLMODEL],
            model_id=logged.model_id,
            run_id=run_id,
            artifact_path=logged.artifact_location,
            created_ms=logged.creation_timestamp,
        )
        self.client.log_model_artifacts(logged.model_id, str(self.upload.model(place, index)))
        with written({MLMODEL: with_ids}) as folder:
            self.client.log_model_artifact(logged.model_id, str(folder / MLMODEL))

    def _inputs(self, run_id: str, node: Node, digests: Digests, model_id: str | None) -> None:
        datasets = [dataset_input(use, digests) for use in node.datasets]
        models = [entities.LoggedModelInput(model_id)] if model_id else None
        if datasets or models:
            self.client.log_inputs(run_id, datasets=datasets, models=models)

    def _files(self, run_id: str, place: str, node: Node) -> None:
        if node.files:
            self.client.log_artifacts(run_id, str(self.upload.files(place)))
        with written({manifest_path(node.label): manifest(node)}) as folder:
            self.client.log_artifacts(run_id, str(folder))

    def _batch(self, run: Any, node: Node, model_id: str | None, digests: Digests) -> str:
        """Log metrics, parameters and tags in one batch, synchronously; return the description."""
        headline = run.data.tags.get(ROLE) or (node.scores[0].role if node.scores else None)
        # The numbers of a run that made a model are those of the model.
        own = model_id if node.models else None
        metrics = [
            entities.Metric(key, value, self.payload.created_ms, 0, model_id=own)
            for key, value in node.metrics.items()
        ]
        metrics += [
            entities.Metric(key, value, self.payload.created_ms, step)
            for key, value, step in node.steps
        ]
        for scores in node.scores if self.aggregates else ():
            digest = digests.get((scores.dataset_name, scores.dataset_digest, scores.role))
            metrics += self._aggregates(
                scores, bare=scores.role == headline, model_id=model_id, digest=digest
            )
        if is_held(run.data.tags, node):
            metrics = [self._again(run, metric) for metric in metrics]
        sections = {**self._links(run, node), **node.sections}
        note = with_sections(run.data.tags.get(NOTE, ""), sections)
        tags = dict(node.tags)
        if headline:
            tags[ROLE] = headline
        if sections:
            tags[NOTE] = note
        if KIND in run.data.tags:  # a run is what it was first
            tags.pop(KIND, None)
        # With the numbers, to save a request: they are drawn next.
        if tables := promised_tables(node):
            tags[TABLES] = _listed(run, tables)
        params = [entities.Param(*param) for param in _params(run.data.params, node).items()]
        self.client.log_batch(
            run.info.run_id,
            metrics=metrics,
            params=params,
            tags=[entities.RunTag(*tag) for tag in tags.items()],
            synchronous=True,
        )
        return note

    def _links(self, run: Any, node: Node) -> dict[str, str]:
        """Return sections of the description with links to the pages of a run and to its version."""
        sections = {}
        if node.revision is not None:  # above the table, which MLflow folds
            sections[f"{node.label} best"] = "The children are being sent."
        if pages := _pages(node):
            links = (page_link(run.info.run_id, page) for page in pages)
            sections[f"{node.label} pages"] = f"Pages: {', '.join(links)}"
        version = self.payload.model_version
        if version and node is self.payload.root:
            sections[" ".join(version)] = f"Evaluation of {version_link(*version)}"
        return sections

    def _aggregates(
        self, scores: Scores, *, bare: bool, model_id: str | None, digest: str | None
    ) -> Iterable[Any]:
        """Yield the metrics of an evaluation, linked to its data set and its model, if any."""
        for key, value in scores.keyed(bare=bare).items():
            yield entities.Metric(
                key,
                value,
                self.payload.created_ms,
                scores.step,
                model_id=model_id,
                dataset_name=scores.dataset_name,
                dataset_digest=digest or short_digest(scores.dataset_digest),
            )

    def _again(self, run: Any, metric: Any) -> Any:
        # MLflow keeps one of two metrics that agree in name, value, step and time.
        for known in self.client.get_metric_history(run.info.run_id, metric.key):
            if (known.value, known.step) == (metric.value, metric.step):
                return entities.Metric(**{**dict(metric), "timestamp": known.timestamp})
        return metric

    def _drawings(self, run: Any, place: str, node: Node, note: str) -> None:
        if not node.renderings or place in self.state.get("drawn", []):
            return
        attempts = self.state.setdefault("drawings", {})
        attempts[place] = attempts.get(place, 0) + 1
        self.upload.remember(self.state)  # drawing must not end process after process
        drawn, failures = drawn_files(node, attempts[place])
        if drawn:
            with written(drawn) as folder:
                self.client.log_artifacts(run.info.run_id, str(folder))
        tags, promised = {}, promised_tables(node)
        tables = [path for path in promised if path in drawn]
        if tables != promised:
            tags[TABLES] = _listed(run, tables)
        if failures:
            tags[NOTE] = with_sections(note, {f"{node.label} drawings": " ".join(failures)})
        if tags:
            run_tags = [entities.RunTag(*tag) for tag in tags.items()]
            self.client.log_batch(run.info.run_id, tags=run_tags, synchronous=True)
        self.state.setdefault("drawn", []).append(place)
        self.upload.remember(self.state)

    def _model_version(self, name: str, version: str, run: Any, node: Node) -> None:
        with alone(f"version-{name_hash(f'{name}/{version}')}", _PATIENCE):
            run_id = run.info.run_id
            version_tags = self.client.get_model_version(name, version).tags
            evaluations = state_of(version_tags, EVALUATION)
            for scores in node.scores:
                key = version_tag(scores.role)
                versions = {*run.data.tags.get(key, "").split("; "), f"{name}/{version}"} - {""}
                self.client.set_tag(run_id, key, "; ".join(sorted(versions)), synchronous=True)
                evaluations = with_evaluation(evaluations, scores.role, scores.metrics, run_id)
            value = json.dumps(evaluations)
            self.client.set_model_version_tag(name, version, EVALUATION, value)
            links = {
                f"evaluation {role}": f"Evaluation {role}: {run_link(logged['run_id'])}"
                for role, logged in evaluations.items()
            }
            describe(self.client, name, version, links)


def refuse_deleted(experiment: Any | None) -> None:
    """Raise InvalidInput if an experiment was deleted; one that does not exist yet will be made."""
    if experiment is not None and experiment.lifecycle_stage == "deleted":
        raise InvalidInput(
            f"the experiment {experiment.name!r} was deleted",
            remedy=f"restore it (mlflow experiments restore -x {experiment.experiment_id}) or log under another name",
        )


def describe(client: Any, name: str, version: str, sections: Mapping[str, str]) -> None:
    """Insert or replace sections in the description of a version, if there is room."""
    before = client.get_model_version(name, version).description or ""
    after = with_sections(before, sections)
    if after != before and len(after) <= _MAX_DESCRIPTION:
        client.update_model_version(name, version, after)


def _pages(node: Node) -> list[str]:
    drawn = [
        posixpath.join(rendering.into, REPORT)
        for rendering in node.renderings
        if rendering.options.get("report", rendering.kind == "comparison")
    ]
    return [*drawn, *(path for path in node.files if path.endswith((REPORT, PAGE)))]


def _listed(run: Any, tables: Iterable[str]) -> str:
    """Return the tag by which MLflow finds the tables of a run, with more of them."""
    before = json.loads(run.data.tags.get(TABLES, "[]"))
    ours = [{"path": path, "type": "table"} for path in tables]
    return json.dumps([*before, *(table for table in ours if table not in before)])


def _params(before: Mapping[str, str], node: Node) -> dict[str, str]:
    """Return the parameters of a node; a second value of a name is ``<label>/<name>``.

    If the run has that one too with another value, it is ``<label>/<name>-2``, and so on.
    """
    return {
        next(key for key in _names(node.label, name) if before.get(key, value) == value): value
        for name, value in node.params.items()
    }


def _names(label: str, name: str) -> Iterator[str]:
    yield name
    yield safe_name(f"{label}/{name}")
    yield from (safe_name(f"{label}/{name}-{number}") for number in itertools.count(2))
