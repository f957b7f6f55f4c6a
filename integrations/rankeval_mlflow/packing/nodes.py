"""Make the run of a record: here a result meets the names, limits and pages of MLflow.

The layout of an evaluation of role ``dev``; at a step of training, the folder is
``rankeval/dev/step-3/``::

    params     system, measure (the first), convention, data, role
    metrics    nDCG_at_10 ...                   the keys of the measures; dev/nDCG_at_10 if the run already has an
               nDCG_at_10_ci_low, _ci_high      evaluation of another role (`rankeval.role` names the first)
    tags       rankeval.kind, rankeval.card     the convention
    facts      of the role, in the manifest: canonical spelling of the measures, card, digests, data, values not finite
    artifacts  rankeval/dev/evaluation.parquet  the whole evaluation with the scores of every query, bit for bit
               rankeval/dev/queries.json        drawn: the worst queries as MLflow shows tables
               rankeval/dev/report.html         drawn
               rankeval/dev/queries.html        if the caller gives a page of queries
    inputs     the data set, role as context, full digest in the tag `rankeval.digest`

Each fold of a cross-validation is a step of a metric, and a nested run if asked for; beside those
of the evaluation::

    metrics    nDCG_at_10_fold       the value of each fold, the fold as step: a line in MLflow's charts
               nDCG_at_10_sd         their standard deviation (n - 1); 0 says that folds agree, not that models do
               fold_queries, fold_fit_seconds, fold_score_seconds      by step as well
    params     n_folds, and the parameters of the ranker (`rankeval_mlflow.parameters`)
    artifacts  rankeval/dev/folds.csv, with the parameters that a search chose

The run of a study called ``ridge`` grows, so its parameters are only those that never change::

    metrics    nDCG_at_10, trials        the value of the best trial, and the number of trials that ended
    tags       rankeval.ridge.best, .revision    the runs of the best trials; how far the run has grown
    artifacts  rankeval/ridge/study.json, trials.csv
    children   a run for each trial: its parameters, nDCG_at_10, nDCG_at_10_fold by step, the tags rankeval.trial
               and rankeval.best

The layout of any other result called ``final``, such as a comparison or an agreement::

    metrics    difference/final/nDCG_at_10 ...  the metrics of the record, with the name after what they are of; without
               agreement/final/observed ...     a name of its own, difference/nDCG_at_10
    tags       rankeval.kind, rankeval.final.headline, and of the guard: its ledger, its head, the standing
    artifacts  rankeval/final/table.csv ...     the tables and the files of the record
               rankeval/final/report.html       drawn
               rankeval/final/notes.txt         the result in words
    inputs     the data sets of its evaluations
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from math import isfinite
from typing import Any

import pandas as pd

import rankeval
from rankeval._visible import markdown
from rankeval.evaluation import Evaluation
from rankeval.evaluation.result import EVALUATION, aggregates, by_name
from rankeval.report import report_for_judging
from rankeval.report.html import queries_of_comparison, table_of_slice_texts, title_of
from rankeval.shelf.folder import packed
from rankeval.shelf.kinds import KINDS, result_of
from rankeval.shelf.record import Record, checked_word
from rankeval.tracking import LoggedData
from rankeval_mlflow.delivery.addresses import now_ms
from rankeval_mlflow.delivery.payload import DatasetUse, Node, Rendering, Scores
from rankeval_mlflow.parameters import node_with_settings, with_params
from rankeval_mlflow.run_names import (
    CARD,
    KIND,
    evaluation_path,
    label_of,
    metrics_of,
    param_text,
    params_of,
    safe_names,
    sha256,
    short_name,
)
from rankeval_mlflow.run_names import folder as folder_of
from rankeval_mlflow.views import QUERIES, QUERY_TABLE, REPORT, query_table_note, with_needs

_UNNAMED = "comparison"
_PEOPLE = ("system", "baseline")  # parameters that are names of any length


def node_of(
    record: Record, label: str | None = None, *, report: bool = True, ended_ms: int | None = None
) -> Node:
    """Return the run of a record."""
    if record.kind == "evaluation":
        node = _evaluation(record, report=report)
    elif record.kind == "cross-validation":
        node = _cross_validation(record)
    elif record.kind == "cross-validations":
        node = _cross_validations(record)
    elif record.kind == "study":
        node = _study(record, label)
    elif record.kind in ("fold", "trial"):
        node = _child(record)
    else:
        node = _result(record, label, report=report)
    ended_ms = now_ms() if ended_ms is None else ended_ms
    children = tuple(node_of(child, ended_ms=ended_ms) for child in record.children.values())
    node = replace(node, children=children)
    if record.started is None and record.seconds is None:
        return node
    took_ms = round(1000 * (record.seconds or 0))
    if record.started is not None:
        ended_ms = round(1000 * record.started) + took_ms
    return replace(node, started_ms=ended_ms - took_ms, ended_ms=ended_ms)


def _evaluation(record: Record, *, report: bool) -> Node:
    facts, (data,) = record.facts, record.data
    role, step, n_queries = facts["role"], facts["step"], facts["n_queries"]
    label, report = label_of(role, step), report and n_queries > 0
    scores = Scores(
        role=role,
        metrics=metrics_of(record.metrics),
        dataset_name=data.name,
        dataset_digest=data.digest,
        evaluation_sha256=sha256(record.files[EVALUATION]),
        step=step or 0,
    )
    folder, section = folder_of(label), record.text
    tables: tuple[str, ...] = ()
    if step is None and n_queries > 0:
        left_out = facts.get("left_out", "")  # records of older versions lack it
        section += f"\n\n{query_table_note(facts['n_telling'], left_out, f'{folder}/{QUERIES}')}"
        tables = (QUERIES,)
    options = {
        "role": role,
        "said": " ".join(record.notes),
        "report": report,
        "table": step is None,
    }
    files = packed(record)
    if "seeds" in record.tables:
        files["seeds.csv"] = _csv(record.tables["seeds"])
    if "slices" in record.tables:
        options["slices"] = vars(table_of_slice_texts(record.tables["slices"]))
    drawn = Rendering("evaluation", evaluation_path(label), folder, options, tables)
    return Node(
        name=short_name(record.name, most=200),
        label=label,
        params=_params(record),
        tags={KIND: record.kind, CARD: record.tags["card"]},
        facts={role: _facts(record, data)},
        scores=(scores,),
        datasets=(dataset_use(data),),
        files=within(folder, files),
        renderings=(drawn,) if report or tables else (),
        # A later step takes the place of an earlier one in the description, which has room for few.
        sections={role: section},
    )


def _facts(record: Record, data: LoggedData) -> dict[str, Any]:
    facts, metrics, safe = record.facts, record.metrics, safe_names(record.metrics)
    measures = facts["measures"]
    # MLflow turns infinity into the largest float, and nan of a model's metric into 0: neither is
    # sent.
    not_finite = {safe[key]: repr(metrics[key]) for key in measures if not isfinite(metrics[key])}
    return {
        **{name: facts[name] for name in ("system", "convention", "judgments", "ranking")},
        "measures": {safe[key]: spelling for key, spelling in measures.items()},
        "data": {"name": data.name, "digest": data.digest},
        "not_finite": not_finite,
        "rankeval": rankeval.__version__,
    }


def _cross_validation(record: Record) -> Node:
    ((role, evaluation),) = record.parts.items()
    node = with_folds(_evaluation(evaluation, report=True), record)
    settings = dict(record.params)
    n_folds = str(settings.pop("n_folds"))
    # The evaluation is a piece of its own, from which the reader takes this part.
    own = {
        path: content for path, content in packed(record).items() if not path.startswith("parts/")
    }
    node = replace(
        node,
        name=short_name(record.name, most=200),
        files={**node.files, **within(f"{folder_of(node.label)}/{record.kind}", own)},
        params={**node.params, "n_folds": n_folds},
        tags={**node.tags, KIND: record.kind},
        sections={**node.sections, f"{role} folds": record.text},
    )
    return node_with_settings(node, settings, record.facts["changed"])


def with_folds(node: Node, record: Record) -> Node:
    """Return a node with the folds as steps of metrics, their spread and their table."""
    folds = record.tables["folds"]
    if "best_params" in record.tables:
        folds = folds.join(record.tables["best_params"])
    table = within(folder_of(node.label), {"folds.csv": folds.to_csv().encode()})
    return replace(
        node,
        metrics={**node.metrics, **metrics_of(record.metrics)},
        steps=(*node.steps, *steps_of(record.series)),
        files={**node.files, **table},
    )


def within(folder: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return files by their paths in a folder."""
    return {f"{folder}/{path}": content for path, content in files.items()}


def steps_of(series: Mapping[str, Mapping[int, float]]) -> tuple[tuple[str, float, int], ...]:
    """Return series as metrics with steps; values that are not finite are left out."""
    names = safe_names(series)
    return tuple(
        (names[name], float(value), step)
        for name, values in series.items()
        for step, value in values.items()
        if isfinite(value)
    )


def _cross_validations(record: Record) -> Node:
    label = "cross-validation"
    folds = {"folds.csv": record.tables["folds"].to_csv().encode()}
    return Node(
        name=record.name,
        label=label,
        params=_params(record),
        tags={KIND: label},
        files=within(folder_of(label), {**folds, **packed(record)}),
        sections={label: record.text},
        datasets=tuple(map(dataset_use, record.data)),
    )


def _child(record: Record) -> Node:
    node = Node(
        name=record.name,
        label=record.kind,
        metrics=metrics_of(record.metrics),
        steps=steps_of(record.series),
        tags={KIND: record.kind, **params_of(record.tags)},
        sections={record.kind: markdown(param_text(record.text))} if record.text else {},
        mark=record.facts.get("mark", ""),
        status=record.status,
    )
    return with_params(node, record.params)


def _study(record: Record, label: str | None) -> Node:
    """Return the run of a study, which grows by the trials that end later."""
    identity, n_trials = record.facts["identity"], len(record.children)
    node = _result(record, label, report=False)
    # Each time that it is logged has a point of its own in the charts.
    grown = [(key, value, n_trials) for key, value in node.metrics.items()]
    return replace(
        node,
        metrics={},
        steps=(*node.steps, *grown),
        name=short_name(record.name, most=200),
        mark=identity,
        revision=n_trials,
        best=tuple(f"{identity}/{number}" for number in record.facts["best"]),
        columns=tuple(name for child in record.children.values() for name in child.params),
    )


def beside_others(node: Node) -> Node:
    """Return a node for a run of the caller, which may hold other metrics by the same measure."""
    before = f"{node.label}/"
    metrics = {before + key: value for key, value in node.metrics.items()}
    steps = [(before + key, value, step) for key, value, step in node.steps]
    return replace(node, metrics=metrics, steps=tuple(steps))


def _result(record: Record, label: str | None, *, report: bool) -> Node:
    label = checked_word(label or record.kind, "name")
    folder = folder_of(label)
    drawn: tuple[Rendering, ...] = ()
    files = {f"{name}.csv": _csv(table) for name, table in record.tables.items()} | packed(record)
    if record.kind != _UNNAMED:
        files["notes.txt"] = record.text.encode()
        # It is drawn here, since no file of the run holds the whole result.
        if report and record.kind in KINDS:
            page = report_for_judging([result_of(record)], title=title_of(record.kind))
            files[REPORT] = page.encode()
    elif report:
        # The file of the numbers has no scores of queries, so the drawing gets their table.
        table = queries_of_comparison(result_of(record))
        options = {} if table is None else {QUERY_TABLE: asdict(table)}
        drawn = (Rendering("comparison", f"{folder}/comparison.json", folder, options),)
    # The comparison without a name of its own has plain tags, such as `run_names.HEADLINE`.
    start = "rankeval" if label == _UNNAMED else f"rankeval.{label}"
    tags = {
        f"{start}.{name}": param_text(value)
        for name, value in {"headline": record.headline, **record.tags}.items()
    }
    facts = {**record.facts, "notes": list(record.notes), "rankeval": rankeval.__version__}
    return Node(
        name=label,
        label=label,
        params=_params(record, label),
        metrics=metrics_of(_named(record, record.metrics, label)),
        tags={KIND: record.kind, **tags},
        facts={label: facts},
        datasets=tuple(map(dataset_use, record.data)),
        files=within(folder, files),
        renderings=drawn,
        sections={label: record.text},
    )


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=table.index.name is not None).encode()


def _named(record: Record, values: Mapping[str, Any], label: str) -> Mapping[str, Any]:
    """Return values with the label after what they are of, unless it is the kind of the result."""
    if label == record.kind:
        return values
    return {name.replace("/", f"/{label}/", 1): value for name, value in values.items()}


def _params(record: Record, label: str | None = None) -> dict[str, str]:
    shown = {
        name: short_name(str(value)) if name in _PEOPLE else value
        for name, value in record.params.items()
    }
    return params_of(_named(record, shown, label or record.kind))


def dataset_use(data: LoggedData) -> DatasetUse:
    """Return the data set input of a run."""
    profile = {"num_rows": data.n_rows, "num_queries": data.n_queries}
    return DatasetUse(data.name, data.digest, checked_word(data.role), data.source, profile)


def with_given(node: Node, given: Mapping[str, str]) -> Node:
    """Return a node whose data sets, and its children's, have fields of an MLflow data set."""
    if not given:
        return node
    uses = tuple(replace(use, given=given) for use in node.datasets)
    return replace(
        node, datasets=uses, children=tuple(with_given(child, given) for child in node.children)
    )


def with_texts(node: Node, needs: Any) -> Node:
    """Return a node whose pages, and its children's, have the texts of queries."""
    if needs is None:
        return node
    children = tuple(with_texts(child, needs) for child in node.children)
    return replace(node, renderings=with_needs(node.renderings, needs), children=children)


def values_of(evaluation: Evaluation) -> dict[str, float]:
    """Return the aggregate of every measure by the name of its metric."""
    keys = keys_of(evaluation)
    return {keys[label]: value for label, value in aggregates(evaluation).items()}


def keys_of(evaluation: Evaluation) -> dict[str, str]:
    """Return the metric name of every measure by its label: its key, made safe."""
    safe = safe_names(measure.key for measure in evaluation.measures)
    return {label: safe[measure.key] for label, measure in by_name(evaluation).items()}
