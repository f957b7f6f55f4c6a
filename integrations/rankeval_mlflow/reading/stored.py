"""The runs of an experiment as records, for a site of all of them: what `loading.load` reads, without the results.

A run holds one record or several: of an evaluation of each role, a comparison, a promotion. Several
become the parts of one record. A run that another program logged has its parameters and metrics.

The trap: promotions are in an experiment of their own. Those of a model belong here if one of its
versions was evaluated here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from rankeval.errors import InvalidInput, RankevalError
from rankeval.shelf.folder import NAME as RECORD
from rankeval.shelf.record import Record
from rankeval.tracking import StoredRun
from rankeval_mlflow.delivery.connection import asking
from rankeval_mlflow.delivery.payload import pieces_of
from rankeval_mlflow.reading.listing import PAGE, broke_off
from rankeval_mlflow.reading.loading import (
    CROSS_VALIDATION,
    checked_file,
    manifest_of,
    record_within,
)
from rankeval_mlflow.reading.resolving import experiment_ids, pages
from rankeval_mlflow.run_names import DECISION, HEADLINE, KIND

NOT_WHOLE = "not whole: its upload has not ended"
"""Why a run is left out of lists."""

_PROMOTIONS = ("promotion", "rollback")


def stored_runs(*, experiment: str, uri: str | None = None) -> Iterator[StoredRun]:
    """Yield the runs of an experiment, the first one first."""
    with asking(uri, f"the runs of experiment {experiment!r}") as client:
        own = [*_searched(client, experiment_ids(client, experiment))]
        every = experiment_ids(client, None)
        promoted = [
            run
            for kind in _PROMOTIONS
            for run in _searched(client, every, f"tags.`{KIND}` = '{kind}'")
        ]
        models = {run.data.params.get("model") for run in promoted if _decides(client, run, own)}
        here = {run.info.run_id for run in own}
        others = [run for run in promoted if run.info.run_id not in here]
        for run in [*own, *(run for run in others if run.data.params.get("model") in models)]:
            read = partial(_record, client, run)
            yield StoredRun(run.info.run_id, read, run.info.start_time / 1000)


def _searched(client: Any, ids: list[str], query: str = "") -> Iterator[Any]:
    order = ["attributes.start_time ASC"]
    return pages(client.search_runs, ids, query, order_by=order, max_results=PAGE)


def _decides(client: Any, run: Any, evaluated: list[Any]) -> bool:
    """Return whether a promotion was of a version that one of these runs evaluated."""
    try:
        candidate = _record(client, run).facts.get("candidate_run")
    except RankevalError:  # it cannot be read, and then no list has it
        return False
    return candidate in {other.info.run_id for other in evaluated}


def _record(client: Any, run: Any) -> Record:
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
        facts=facts,
        parts=parts,
    )


def _folders(manifest: dict[str, Any]) -> list[str]:
    """Return the folders of the records of a piece, without the parts that a record has itself."""
    ends = [path for path in manifest["files"] if path.endswith(f"/{RECORD}")]
    folders = [path.removesuffix(f"/{RECORD}") for path in ends if "/parts/" not in path]
    return [folder for folder in folders if f"{folder}/{CROSS_VALIDATION}" not in folders]
