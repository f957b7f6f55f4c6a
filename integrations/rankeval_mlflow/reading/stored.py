"""The runs of an experiment as records, for a site of all of them: what `loading.load` reads, without the results.

A run holds one record or several: of an evaluation of each role, a comparison, a promotion. Several
become the parts of one record. A run that another program logged has its parameters and metrics.

The trap: promotions are in an experiment of their own. Those of a model belong here if one of its
versions was made or evaluated here. A gate evaluates by itself, so the record of its decision names
no run: the version leads to its runs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from rankeval.errors import InvalidInput, RankevalError
from rankeval.shelf.folder import NAME as RECORD
from rankeval.shelf.record import Record
from rankeval.tracking import SOURCES, StoredRun
from rankeval_mlflow.delivery.connection import NOT_READ, asking, existing
from rankeval_mlflow.delivery.payload import pieces_of
from rankeval_mlflow.reading.listing import PAGE, broke_off
from rankeval_mlflow.reading.loading import (
    CROSS_VALIDATION,
    checked_file,
    manifest_of,
    record_within,
)
from rankeval_mlflow.reading.resolving import experiment_ids, model_behind, pages
from rankeval_mlflow.run_names import DECISION, HEADLINE, KIND, evaluated_runs

NOT_WHOLE = "not whole: its upload has not ended"
"""Why a run is left out of lists."""

_PROMOTIONS = ("promotion", "rollback")


def stored_runs(*, experiment: str, uri: str | None = None) -> Iterator[StoredRun]:
    """Yield the runs of an experiment, the first one first."""
    with asking(uri, f"the runs of experiment {experiment!r}") as client:
        ids = experiment_ids(client, experiment)
        own = [*_searched(client, ids)]
        here = {run.info.run_id for run in own}
        every = experiment_ids(client, None)
        promoted = [
            run
            for kind in _PROMOTIONS
            for run in _searched(client, every, f"tags.`{KIND}` = '{kind}'")
        ]
        sources = {run.info.run_id: _sources(client, run) for run in promoted}
        models = {
            run.data.params.get("model")
            for run in promoted
            if not sources[run.info.run_id].isdisjoint({*ids, *here})
        }
        others = [run for run in promoted if run.info.run_id not in here]
        for run in [*own, *(run for run in others if run.data.params.get("model") in models)]:
            read = partial(_record, client, run, sources.get(run.info.run_id, set()))
            yield StoredRun(run.info.run_id, read, run.info.start_time / 1000)


def _searched(client: Any, ids: list[str], query: str = "") -> Iterator[Any]:
    order = ["attributes.start_time ASC"]
    return pages(client.search_runs, ids, query, order_by=order, max_results=PAGE)


def _sources(client: Any, promotion: Any) -> set[str]:
    """Return the runs, and the experiment, that made or evaluated the version of a promotion."""
    params = promotion.data.params
    name, number = params.get("model", ""), params.get("version", "")
    version = existing(client.get_model_version, name, number, codes=NOT_READ)
    found = {_candidate(client, promotion)}
    if version is not None:
        found |= {version.run_id, *evaluated_runs(version.tags).values()}
        model_id = model_behind(version)
        model = model_id and existing(client.get_logged_model, model_id, codes=NOT_READ)
        if model:
            found |= {model.source_run_id, model.experiment_id}
            found |= {metric.run_id for metric in model.metrics or ()}
    return {source for source in found if source}


def _candidate(client: Any, promotion: Any) -> str | None:
    """Return the run whose evaluation decided on a version; None if a gate decided."""
    try:
        return _record(client, promotion).facts.get("candidate_run")
    except RankevalError:  # it cannot be read, and then no list has it
        return None


def _record(client: Any, run: Any, sources: Collection[str] = ()) -> Record:
    tags = run.data.tags
    if broke_off(run):
        raise InvalidInput(NOT_WHOLE)
    manifests = [manifest_of(client, run, piece) for piece in pieces_of(tags)]
    parts, facts = {}, {}
    for manifest in manifests:
        for folder in _folders(manifest):
            record = record_within(client, run, manifest, folder)
            # Now, while the store is asked: an altered file is then the fault of this run.
            parts[folder] = replace(record, files=dict(record.files))
        if DECISION in manifest["files"]:
            facts = json.loads(checked_file(client, run, manifest, DECISION, "the decision"))
    named = run.info.run_name or run.info.run_id
    if len(parts) == 1 and not facts:
        return replace(*parts.values(), name=named)
    kind = tags.get(KIND, "run")
    return Record(
        kind="run" if kind in {part.kind for part in parts.values()} else kind,
        name=named,
        headline=tags.get(HEADLINE, ""),
        params=run.data.params,
        metrics=run.data.metrics,
        facts={**facts, SOURCES: " ".join(sorted(sources))} if sources else facts,
        parts=parts,
    )


def _folders(manifest: dict[str, Any]) -> list[str]:
    """Return the folders of the records of a piece, without the parts that a record has itself."""
    ends = [path for path in manifest["files"] if path.endswith(f"/{RECORD}")]
    folders = [path.removesuffix(f"/{RECORD}") for path in ends if "/parts/" not in path]
    return [folder for folder in folders if f"{folder}/{CROSS_VALIDATION}" not in folders]
