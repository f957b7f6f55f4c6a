"""Pack a RunRecord with its children, a tree of runs, and the folds of a cross-validation.

A record with a comparison and children is an experiment: its run has the metrics of the best child under the names that
the child uses, and a table of all (``rankeval/record/rankers.csv``, drawn as ``rankers.json``). A report of the record
itself (``report.html``) is at ``rankeval/record/report.html``, as every other one is in the folder of its piece.

Of a cross-validation every fold is a step of a metric, and a nested run if asked for. The layout, beside that of the
pooled evaluation of the role::

    metrics    nDCG_at_10          the mean over queries, each scored by the model that did not see it
               nDCG_at_10_fold     the value of each fold, the fold as step: a line in MLflow's charts
               nDCG_at_10_sd       their standard deviation (n - 1); 0 says that folds agree, not that models do
               fold_queries, fold_fit_seconds, fold_score_seconds      by step as well
    params     n_folds, and the parameters of the ranker (`rankeval_mlflow.parameters`)
    artifacts  rankeval/dev/folds.csv, with the parameters that a search chose
    children   one run a fold: nDCG_at_10, n_queries, its seconds, the parameters that a search chose in it
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd

from rankeval._checks import shown
from rankeval.comparison.record import best_first, main_measure
from rankeval.errors import warn
from rankeval.model_selection.results import CrossValidation
from rankeval.render.tables import Table, markdown
from rankeval.tracking import RunRecord
from rankeval_mlflow import layout
from rankeval_mlflow.delivery.payload import DatasetUse, Node, Rendering
from rankeval_mlflow.packing.results import (
    by_fold,
    comparison_node,
    dataset_use,
    differences,
    evaluation_node,
    fold_node,
    keys_of,
)
from rankeval_mlflow.parameters import with_estimator, with_params
from rankeval_mlflow.views import RANKERS, REPORT

# Columns of the table of folds that are no measures, and the names of their metrics.
_FACTS = {
    "n_queries": f"{layout.FOLD_START}queries",
    "fit_seconds": f"{layout.FOLD_START}fit_seconds",
    "score_seconds": f"{layout.FOLD_START}score_seconds",
}

LABEL = "record"
_CSV = f"{layout.folder(LABEL)}/rankers.csv"
_GUARD = "rankeval.guard."


def _with_folds(node: Node, cv: CrossValidation) -> Node:
    """Add each fold as a step of metrics, the spread of the folds, and their table."""
    keys, table = keys_of(cv.evaluation), _table_of_folds(cv)
    names = {label: f"{key}{layout.FOLD_END}" for label, key in keys.items()} | _FACTS
    spread = {f"{key}_sd": table[label].std(ddof=1) for label, key in keys.items()}  # none for one fold
    return replace(
        node,
        metrics={**node.metrics, **layout.metrics_of(spread)},
        steps=(*node.steps, *by_fold({name: table[label].to_numpy(dtype=float) for label, name in names.items()})),
        files={**node.files, f"{layout.folder(node.label)}/folds.csv": table.to_csv().encode()},
    )


def cross_validation_node(
    cv: CrossValidation, role: str, data: DatasetUse, *, ended_ms: int, name: str | None = None, children: bool
) -> Node:
    """Pack a cross-validation: its pooled evaluation, and its folds.

    Parameters
    ----------
    cv : CrossValidation
        The result.
    role : str
        The role of its data.
    data : DatasetUse
        The data set.
    ended_ms : int
        When it ended, in milliseconds since 1970. It began as many seconds before as its folds took one by one.
    name : str, optional
        Name of the run.
    children : bool
        Whether each fold is a nested run too.
    """
    node = _with_folds(evaluation_node(cv.evaluation, role, data), cv)
    caption = "Folds; metrics are over all queries. Their training parts overlap, so they are no sample to test on."
    section = Table(_table_of_folds(cv).reset_index(), caption=caption).to_markdown()
    told = replace(
        node,
        name=name or cv.evaluation.name or "cross-validation",
        params={**node.params, "n_folds": str(len(cv.folds))},
        tags={**node.tags, layout.KIND: "cross-validation"},
        sections={**node.sections, f"{role} folds": section},
        started_ms=ended_ms - _milliseconds(cv.folds),
        ended_ms=ended_ms,
        children=tuple(_child(cv, place, ended_ms) for place in range(len(cv.folds))) if children else (),
    )
    return with_estimator(told, cv.ranker)


def several_node(nodes: dict[str, Node], tables: pd.DataFrame, *, ended_ms: int, name: str) -> Node:
    """Pack the cross-validations of several rankers as children of one run.

    Parameters
    ----------
    nodes : dict of str to Node
        The run of each ranker, by name.
    tables : DataFrame
        The folds of all, by system and fold.
    ended_ms : int
        When they ended.
    name : str
        Name of the run.
    """
    means = tables.groupby("system", sort=False).mean(numeric_only=True)
    caption = "Means of folds. The runs below have the means over all queries."
    return Node(
        name=name,
        label="cross-validation",
        params={"n_systems": str(len(nodes)), "n_folds": next(iter(nodes.values())).params["n_folds"]},
        tags={layout.KIND: "cross-validation"},
        files={"rankeval/cross-validation/folds.csv": tables.to_csv().encode()},
        sections={"cross-validation": Table(means.reset_index(), caption=caption).to_markdown()},
        started_ms=ended_ms - _milliseconds(tables),
        ended_ms=ended_ms,
        datasets=next(iter(nodes.values())).datasets,  # all rankers have the same rows
        children=tuple(nodes.values()),
    )


def _child(cv: CrossValidation, place: int, ended_ms: int) -> Node:
    row = cv.folds.iloc[[place]]
    values = {key: float(row[label].iloc[0]) for label, key in keys_of(cv.evaluation).items()}
    values |= {name: float(row[name].iloc[0]) for name in _FACTS}
    params: dict[str, Any] = {}
    if place < len(cv.splits):
        params |= {"train_queries": cv.splits[place].n_train, "test_queries": cv.splits[place].n_test}
    if cv.best_params is not None:
        params |= {str(key): value for key, value in cv.best_params.iloc[place].items()}
    return fold_node(place, values, ended_ms - _milliseconds(row), params)


def _milliseconds(folds: pd.DataFrame) -> int:
    return round(1000 * float(folds[["fit_seconds", "score_seconds"]].to_numpy(dtype=float).sum()))


def _table_of_folds(cv: CrossValidation) -> pd.DataFrame:
    return cv.folds if cv.best_params is None else cv.folds.join(cv.best_params)


def record_node(record: RunRecord) -> Node:
    """Pack a run record and its children as a tree of nodes.

    Parameters
    ----------
    record : RunRecord
        The record.
    """
    by_role = {data.role: dataset_use(data) for data in reversed(record.data)}
    pieces = [
        evaluation_node(ev, role, by_role.get(role), record.said.get(role, ""))
        for role, ev in record.evaluations.items()
    ]
    ended = None if record.started is None or record.seconds is None else record.started + record.seconds
    children = tuple(_candidate(record, child) for child in record.children)
    reports = {REPORT: f"{layout.folder(LABEL)}/{REPORT}"}
    # Of the tags of a guard the run has the two that its ledger is checked by; the facts have all.
    checked = (layout.GUARD_LEDGER, layout.GUARD_HEAD) if record.tags.get(layout.GUARD_HEAD) else ()
    tags = {name: value for name, value in record.tags.items() if name in checked or not name.startswith(_GUARD)}
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
        own = _with_folds(own, record.folds)
    ranked = _ranked(record)
    best = [_best(record.children[ranked[0]], children[ranked[0]])] if ranked else []
    table = [_table([record.children[place] for place in ranked], record)] if ranked else []
    if record.comparison is not None:
        compared = comparison_node(record.comparison)
        named = {key: value for key, value in compared.params.items() if key == "system"}
        pieces.append(replace(compared, params=named, datasets=()))
    return _with_model(_joined(own, [*best, *pieces, *table]), record)


def _candidate(record: RunRecord, child: RunRecord) -> Node:
    """Pack a child; that of an experiment has its own difference from the baseline."""
    node, compared = record_node(child), record.comparison
    if compared is None or compared.settings.baseline is None:
        return node
    return replace(node, metrics={**node.metrics, **differences(compared, (compared.settings.baseline, child.name))})


def _with_model(node: Node, record: RunRecord) -> Node:
    # A ranker that cannot be saved is a warning, and never a lost record.
    if record.model is None:
        return node
    from rankeval_mlflow.saving import saved, unpacked

    # MLflow refuses these characters in names of models.
    name = re.sub(r"[/:.%\"']", "_", layout.short_name(record.name))
    try:
        packed = isinstance(record.model, bytes)
        model = unpacked(record.model, name) if packed else saved(record.model, name, X=record.rows)
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
                params[name if params.get(name, value) == value else layout.safe_name(f"{part.label}/{name}")] = value
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
    own = {*layout.params_of(child.params), *(name for model in node.models for name in model.params)}
    params = {name: value for name, value in node.params.items() if name not in own}
    return Node(
        name=node.name, label=LABEL, params={**params, "system": layout.short_name(child.name)}, metrics=metrics
    )


def _table(children: list[RunRecord], record: RunRecord) -> Node:
    measure = main_measure(record.comparison)  # type: ignore[arg-type] # there are ranked children
    rows = [_means(child, measure) for child in children]
    caption = f"The rankers, the best first; the metrics of this run are those of {rows[0]['ranker']}."
    tuned = [{name: layout.param_text(value) for name, value in child.params.items()} for child in children]
    whole = pd.DataFrame([{**row, **params, **row} for row, params in zip(rows, tuned, strict=True)])
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
        "not_finite": {name: repr(float(value)) for name, value in record.metrics.items() if not math.isfinite(value)},
        "names": changed,
        "data": {layout.checked_role(data.role): {"name": data.name, "digest": data.digest} for data in record.data},
        "guard": {key.removeprefix("rankeval."): value for key, value in record.tags.items() if key.startswith(_GUARD)},
    }
