"""Pack a RunRecord with its children: a tree of runs.

A record with a comparison and children is an experiment: its run has the metrics of the best child
under the names that the child uses, and a table of all (``rankeval/record/rankers.csv``, drawn as
``rankers.json``). A report of the record itself (``report.html``) is at
``rankeval/record/report.html``, as every other one is in the folder of its piece.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd

from rankeval._checks import shown
from rankeval._visible import markdown
from rankeval.comparison.record import best_first, main_measure
from rankeval.comparison.shelved import difference_metrics
from rankeval.errors import warn
from rankeval.render.tables import Table
from rankeval.shelf.record import checked_word
from rankeval.tracking import RunRecord
from rankeval_mlflow import run_names as layout
from rankeval_mlflow.delivery.payload import Node, Rendering
from rankeval_mlflow.packing.nodes import dataset_use, node_of, with_folds
from rankeval_mlflow.parameters import with_params
from rankeval_mlflow.views import RANKERS, REPORT

LABEL = "record"
_CSV = f"{layout.folder(LABEL)}/rankers.csv"
_GUARD = "rankeval.guard."


def record_node(record: RunRecord) -> Node:
    """Pack a run record and its children as a tree of nodes."""
    by_role = {data.role: data for data in reversed(record.data)}
    pieces = [
        node_of(ev.record(role=role, data=by_role.get(role), note=record.said.get(role, "")))
        for role, ev in record.evaluations.items()
    ]
    ended = (
        None
        if record.started is None or record.seconds is None
        else record.started + record.seconds
    )
    children = tuple(_candidate(record, child) for child in record.children)
    reports = {REPORT: f"{layout.folder(LABEL)}/{REPORT}"}
    # Of the tags of a guard the run has the two that its ledger is checked by; the facts have all.
    checked = (layout.GUARD_LEDGER, layout.GUARD_HEAD) if record.tags.get(layout.GUARD_HEAD) else ()
    tags = {
        name: value
        for name, value in record.tags.items()
        if name in checked or not name.startswith(_GUARD)
    }
    own = Node(
        name=layout.short_name(record.name, most=200),
        label=LABEL,
        metrics=layout.metrics_of(record.metrics),
        tags=layout.params_of(tags),
        facts={LABEL: _facts(record)},
        datasets=tuple(dataset_use(data) for data in record.data),
        files={reports.get(path, path): content for path, content in record.artifacts.items()},
        sections={LABEL: markdown(layout.param_text(record.reason))} if record.reason else {},
        children=children,
        started_ms=_ms(record.started),
        ended_ms=_ms(ended),
        status=record.status,
    )
    own = with_params(own, record.params)
    if record.folds is not None:
        own = with_folds(own, record.folds.record(predictions=False))
    ranked = _ranked(record)
    best = [_best(record.children[ranked[0]], children[ranked[0]])] if ranked else []
    table = [_table([record.children[place] for place in ranked], record)] if ranked else []
    if record.comparison is not None:
        compared = node_of(record.comparison.record())
        named = {key: value for key, value in compared.params.items() if key == "system"}
        pieces.append(replace(compared, params=named, datasets=()))
    return _with_model(_joined(own, [*best, *pieces, *table]), record)


def _candidate(record: RunRecord, child: RunRecord) -> Node:
    """Pack a child; that of an experiment has its own difference from the baseline."""
    node, compared = record_node(child), record.comparison
    if compared is None or compared.settings.baseline is None:
        return node
    own = layout.metrics_of(difference_metrics(compared, (compared.settings.baseline, child.name)))
    return replace(node, metrics={**node.metrics, **own})


def _with_model(node: Node, record: RunRecord) -> Node:
    # A ranker that cannot be saved is a warning, and never a lost record.
    if record.model is None:
        return node
    from rankeval_mlflow.saving import saved, unpacked_model

    # MLflow refuses these characters in names of models.
    name = re.sub(r"[/:.%\"']", "_", layout.short_name(record.name))
    try:
        packed = isinstance(record.model, bytes)
        model = (
            unpacked_model(record.model, name)
            if packed
            else saved(record.model, name, X=record.rows)
        )
    except Exception as error:  # noqa: BLE001 - the libraries of rankers raise whatever they want
        said = f"The ranker was not saved: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        warn(f"{said} (run {shown(record.name)})")
        return replace(node, sections={**node.sections, "model": markdown(said)})
    return replace(with_params(node, model.params), models=(model,))


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(1000 * seconds)


def _joined(node: Node, pieces: Iterable[Node]) -> Node:
    """Add the content of more nodes to a node, whose own values come first; a repeated data set counts once."""
    parts = [node, *pieces]
    uses = {(use.name, use.digest, use.role): use for part in parts for use in part.datasets}
    roles = [part.params["role"] for part in parts if "role" in part.params]
    params = dict(node.params)
    for part in parts[1:]:
        for name, value in part.params.items():
            if name != "role":
                params[
                    name
                    if params.get(name, value) == value
                    else layout.safe_name(f"{part.label}/{name}")
                ] = value
    if roles:
        params["role"] = ", ".join(dict.fromkeys(roles))
    return replace(
        node,
        params=params,
        metrics={key: value for part in parts for key, value in part.metrics.items()},
        tags={key: value for part in reversed(parts) for key, value in part.tags.items()},
        scores=tuple(scores for part in parts for scores in part.scores),
        datasets=tuple(uses.values()),
        files={path: content for part in parts for path, content in part.files.items()},
        sections={key: text for part in parts for key, text in part.sections.items()},
        facts={key: facts for part in parts for key, facts in part.facts.items()},
        renderings=tuple(drawing for part in parts for drawing in part.renderings),
    )


def _ranked(record: RunRecord) -> list[int]:
    """Return the places of the children of an experiment, the best mean by its main measure first; else nothing."""
    if record.comparison is None:
        return []
    places = {child.name: place for place, child in enumerate(record.children) if child.evaluations}
    order = () if record.comparison.table.empty else best_first(record.comparison)
    return [places[name] for name in order if name in places] or list(places.values())


def _best(child: RunRecord, node: Node) -> Node:
    """Return the piece that gives the run of an experiment the metrics of its best ranker, under the same names."""
    metrics = {
        key if place == 0 else f"{scores.role}/{key}": value
        for place, scores in enumerate(node.scores)
        for key, value in scores.metrics.items()
    }
    own = {
        *layout.params_of(child.params),
        *(name for model in node.models for name in model.params),
    }
    params = {name: value for name, value in node.params.items() if name not in own}
    return Node(
        name=node.name,
        label=LABEL,
        params={**params, "system": layout.short_name(child.name)},
        metrics=metrics,
    )


def _table(children: list[RunRecord], record: RunRecord) -> Node:
    measure = main_measure(record.comparison)  # type: ignore[arg-type] # there are ranked children
    rows = [_means(child, measure) for child in children]
    caption = (
        f"The rankers, the best first; the metrics of this run are those of {rows[0]['ranker']}."
    )
    tuned = [
        {name: layout.param_text(value) for name, value in child.params.items()}
        for child in children
    ]
    whole = pd.DataFrame(
        [{**row, **params, **row} for row, params in zip(rows, tuned, strict=True)]
    )
    return Node(
        name=record.name,
        label=LABEL,
        files={_CSV: whole.to_csv(index=False).encode()},
        renderings=(Rendering("rankers", _CSV, into=layout.folder(LABEL), tables=(RANKERS,)),),
        sections={"rankers": Table(pd.DataFrame(rows), caption=caption).to_markdown()},
    )


def _means(child: RunRecord, measure: str) -> dict[str, Any]:
    row: dict[str, Any] = {"ranker": layout.short_name(child.name)}
    for role, evaluation in reversed(list(child.evaluations.items())):
        means = evaluation.aggregate()
        names = sorted(evaluation.measure_names, key=lambda name: name != measure)
        row |= {f"{role} {name}": float(means[name]) for name in names}
    return row


def _facts(record: RunRecord) -> dict[str, Any]:
    changed: dict[str, str] = {}
    for names in (record.params, record.metrics, record.tags):
        changed |= {safe: name for name, safe in layout.safe_names(names).items() if safe != name}
    return {
        "not_finite": {
            name: repr(float(value))
            for name, value in record.metrics.items()
            if not math.isfinite(value)
        },
        "names": changed,
        "data": {
            checked_word(data.role): {"name": data.name, "digest": data.digest}
            for data in record.data
        },
        "guard": {
            key.removeprefix("rankeval."): value
            for key, value in record.tags.items()
            if key.startswith(_GUARD)
        },
    }
