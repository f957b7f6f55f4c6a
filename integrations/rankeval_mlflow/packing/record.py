"""Pack a RunRecord with its children: a tree of runs.

A record with a comparison and children is an experiment: its run has the metrics of the best child
under the names that the child uses, and a table of all (``rankeval/record/rankers.csv``, drawn as
``rankers.json``). A report of the record itself (``report.html``) is at
``rankeval/record/report.html``, as every other one is in the folder of its piece.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import pandas as pd

from rankeval._checks import said, shown
from rankeval._visible import markdown
from rankeval.comparison.record import best_first, main_measure
from rankeval.comparison.shelved import difference_metrics
from rankeval.errors import warn
from rankeval.render.tables import Table
from rankeval.shelf.record import checked_word
from rankeval.tracking import RunRecord
from rankeval_mlflow.delivery.payload import Node, Rendering
from rankeval_mlflow.packing.nodes import dataset_use, node_of, with_folds
from rankeval_mlflow.parameters import with_params
from rankeval_mlflow.run_names import (
    GUARD_HEAD,
    GUARD_LEDGER,
    folder,
    metrics_of,
    param_text,
    params_of,
    safe_name,
    safe_names,
    short_name,
)
from rankeval_mlflow.views import RANKERS, REPORT

LABEL = "record"
_CSV = f"{folder(LABEL)}/rankers.csv"
_GUARD = "rankeval.guard."


def record_node(record: RunRecord) -> Node:
    """Pack a run record and its children as a tree of nodes."""
    by_role = {data.role: data for data in reversed(record.data)}
    pieces = [
        node_of(ev.record(role=role, data=by_role.get(role), note=record.said.get(role, "")))
        for role, ev in record.evaluations.items()
    ]
    children = tuple(_candidate(record, child) for child in record.children)
    own = with_params(_own_piece(record, children), record.params)
    if record.folds is not None:
        own = with_folds(own, record.folds.record(predictions=False))
    if record.comparison is not None:
        compared = node_of(record.comparison.record())
        system = {key: value for key, value in compared.params.items() if key == "system"}
        pieces.append(replace(compared, params=system, datasets=()))
    ranked = _ranked(record)
    if ranked:
        best = _best(record.children[ranked[0]], children[ranked[0]])
        pieces = [best, *pieces, _table([record.children[place] for place in ranked], record)]
    return _with_model(_joined([own, *pieces]), record)


def _own_piece(record: RunRecord, children: tuple[Node, ...]) -> Node:
    """Pack what the record itself says, without its evaluations and its comparison."""
    report = f"{folder(LABEL)}/{REPORT}"
    # Of the tags of a guard the run has the two that its ledger is checked by; the facts have all.
    checked = (GUARD_LEDGER, GUARD_HEAD) if record.tags.get(GUARD_HEAD) else ()
    tags = {
        name: value
        for name, value in record.tags.items()
        if name in checked or not name.startswith(_GUARD)
    }
    files = {
        report if path == REPORT else path: content for path, content in record.artifacts.items()
    }
    sections = {LABEL: markdown(param_text(record.reason))} if record.reason else {}
    started_ms = ended_ms = None
    if record.started is not None:
        started_ms = round(1000 * record.started)
        if record.seconds is not None:
            ended_ms = round(1000 * (record.started + record.seconds))
    return Node(
        name=short_name(record.name, most=200),
        label=LABEL,
        metrics=metrics_of(record.metrics),
        tags=params_of(tags),
        facts={LABEL: _facts(record)},
        datasets=tuple(map(dataset_use, record.data)),
        files=files,
        sections=sections,
        children=children,
        started_ms=started_ms,
        ended_ms=ended_ms,
        status=record.status,
    )


def _candidate(record: RunRecord, child: RunRecord) -> Node:
    """Pack a child; that of an experiment has its own difference from the baseline."""
    node, compared = record_node(child), record.comparison
    if compared is None or compared.settings.baseline is None:
        return node
    own = metrics_of(difference_metrics(compared, (compared.settings.baseline, child.name)))
    return replace(node, metrics={**node.metrics, **own})


def _with_model(node: Node, record: RunRecord) -> Node:
    # A ranker that cannot be saved is a warning, and never a lost record.
    if record.model is None:
        return node
    from rankeval_mlflow.saving import saved, unpacked_model

    # MLflow refuses these characters in names of models.
    name = re.sub(r"[/:.%\"']", "_", short_name(record.name))
    try:
        if isinstance(record.model, bytes):
            model = unpacked_model(record.model, name)
        else:
            model = saved(record.model, name, X=record.rows)
    except Exception as error:  # noqa: BLE001 - the libraries of rankers raise whatever they want
        problem = f"The ranker was not saved: {type(error).__name__}: {said(error)[:300]}"
        warn(f"{problem} (run {shown(record.name)})")
        return replace(node, sections={**node.sections, "model": markdown(problem)})
    return replace(with_params(node, model.params), models=(model,))


def _joined(parts: Sequence[Node]) -> Node:
    """Join nodes; files and metrics of later ones win, tags of earlier ones."""
    uses = {(use.name, use.digest, use.role): use for part in parts for use in part.datasets}
    merged: dict[str, Any] = {
        name: _merged(parts, name) for name in ("metrics", "files", "sections", "facts")
    }
    return replace(
        parts[0],
        params=_joined_params(parts),
        tags=_merged(parts[::-1], "tags"),
        scores=tuple(scores for part in parts for scores in part.scores),
        datasets=tuple(uses.values()),
        renderings=tuple(drawing for part in parts for drawing in part.renderings),
        **merged,
    )


def _merged(parts: Sequence[Node], name: str) -> dict[str, Any]:
    """Return one mapping of all parts; of two values under one key, the later."""
    return {key: value for part in parts for key, value in getattr(part, name).items()}


def _joined_params(parts: Sequence[Node]) -> dict[str, str]:
    """Return all parameters and roles; a second value of a name is ``<label>/<name>``."""
    params: dict[str, str] = {}
    roles = [part.params["role"] for part in parts if "role" in part.params]
    if roles:
        params["role"] = ", ".join(dict.fromkeys(roles))
    for part in parts:
        for name, value in part.params.items():
            if name != "role":
                is_other = params.get(name, value) != value
                params[safe_name(f"{part.label}/{name}") if is_other else name] = value
    return params


def _ranked(record: RunRecord) -> list[int]:
    """Return the places of an experiment's children, the best by its main measure first."""
    if record.comparison is None:
        return []
    places = {child.name: place for place, child in enumerate(record.children) if child.evaluations}
    order = () if record.comparison.table.empty else best_first(record.comparison)
    return [places[name] for name in order if name in places] or list(places.values())


def _best(child: RunRecord, node: Node) -> Node:
    """Return the piece that gives an experiment's run the metrics of its best ranker."""
    metrics: dict[str, float] = {}
    for place, scores in enumerate(node.scores):
        metrics |= scores.keyed(bare=place == 0)
    own = {*params_of(child.params)}.union(*(model.params for model in node.models))
    params = {name: value for name, value in node.params.items() if name not in own}
    params["system"] = short_name(child.name)
    return Node(node.name, LABEL, params, metrics)


def _table(children: list[RunRecord], record: RunRecord) -> Node:
    measure = main_measure(record.comparison)  # type: ignore[arg-type] # there are ranked children
    rows = [_means(child, measure) for child in children]
    caption = (
        f"The rankers, the best first; the metrics of this run are those of {rows[0]['ranker']}."
    )
    wide = []
    for child, row in zip(children, rows, strict=True):
        params = {name: param_text(value) for name, value in child.params.items()}
        wide.append({**row, **params, **row})
    table = pd.DataFrame(wide).to_csv(index=False)
    return Node(
        name=record.name,
        label=LABEL,
        files={_CSV: table.encode()},
        renderings=(Rendering("rankers", _CSV, folder(LABEL), tables=(RANKERS,)),),
        sections={"rankers": Table(pd.DataFrame(rows), caption=caption).to_markdown()},
    )


def _means(child: RunRecord, measure: str) -> dict[str, Any]:
    row: dict[str, Any] = {"ranker": short_name(child.name)}
    for role, evaluation in reversed(list(child.evaluations.items())):
        means = evaluation.aggregate()
        names = sorted(evaluation.measure_names, key=lambda name: name != measure)
        row |= {f"{role} {name}": float(means[name]) for name in names}
    return row


def _facts(record: RunRecord) -> dict[str, Any]:
    changed: dict[str, str] = {}
    for names in (record.params, record.metrics, record.tags):
        changed |= {safe: name for name, safe in safe_names(names).items() if safe != name}
    not_finite = {
        name: repr(float(value)) for name, value in record.metrics.items() if not isfinite(value)
    }
    data = {
        checked_word(data.role): {"name": data.name, "digest": data.digest} for data in record.data
    }
    guard = {
        key.removeprefix("rankeval."): value
        for key, value in record.tags.items()
        if key.startswith(_GUARD)
    }
    return {"not_finite": not_finite, "names": changed, "data": data, "guard": guard}
