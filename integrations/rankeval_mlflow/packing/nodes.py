"""Pack an Evaluation, a Comparison or a RunRecord into nodes: metrics, tags, artifacts, inputs, description.

The layout of an evaluation of role ``dev``::

    metrics    nDCG_at_10 ...                   the keys of the measures; dev/nDCG_at_10 if the run already has an
                                                evaluation of another role (`rankeval.role` names the first)
    tags       rankeval.card                    the convention
    facts      of the role, in the manifest: canonical spelling of the measures, card, digests, data, values not finite
    artifacts  rankeval/dev/evaluation.parquet  the whole evaluation with the scores of every query, bit for bit
               rankeval/dev/report.html
    inputs     the data set, role as context, full digest in the tag `rankeval.digest`
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import rankeval
from rankeval.tracking import LoggedData, RunRecord
from rankeval_mlflow.delivery.payload import DatasetUse, Node, Scores
from rankeval_mlflow.layout import CARD, HEADLINE, evaluation_path
from rankeval_mlflow.names import checked_role, param_text, safe_names, sha256, short_digest
from rankeval_mlflow.views.descriptions import comparison_section, evaluation_section
from rankeval_mlflow.views.rendering import render

if TYPE_CHECKING:
    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation

# A comparison with more rows has no metrics: they would bury the others. The table has all rows.
MAX_COMPARED = 50

# The columns that are logged as metrics, to search and sort runs by; the table has the others.
_SIGNS = ("difference", "p_adjusted")


def evaluation_node(evaluation: Evaluation, role: str, data: LoggedData | None = None, said: str = "") -> Node:
    """Pack an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    role : str
        The role of its data.
    data : LoggedData, optional
        The data set; by default one that has only the digest of the judgments.
    said : str
        A sentence for the page.
    """
    checked_role(role)
    data = data or judged_data(evaluation, role)
    values = aggregates(evaluation)
    whole = evaluation.to_bytes()
    card = evaluation.convention.card()
    spelt = {key: str(measure) for key, measure in zip(keys_of(evaluation).values(), evaluation.measures, strict=True)}
    facts = {
        "measures": spelt,
        "convention": card,
        "judgments": evaluation.judgments_digest,
        "ranking": evaluation.ranking_digest,
        "data": {"name": data.name, "digest": data.digest},
        # MLflow turns infinity into the largest float, and nan of a model's metric into 0: neither is sent.
        "not_finite": {key: repr(value) for key, value in values.items() if not math.isfinite(value)},
        "rankeval": rankeval.__version__,
    }
    return Node(
        name=evaluation.name or f"{role} evaluation",
        label=role,
        tags={CARD: f"{evaluation.convention.name} {sha256(json.dumps(card, sort_keys=True).encode())[:12]}"},
        facts={role: facts},
        scores=(
            Scores(
                role=role,
                metrics={key: value for key, value in values.items() if math.isfinite(value)},
                dataset_name=data.name,
                dataset_digest=data.digest,
                evaluation_sha256=sha256(whole),
            ),
        ),
        datasets=(dataset_use(data),),
        files={evaluation_path(role): whole, **_drawn(role, whole, said)},
        sections={role: evaluation_section(evaluation, role)},
    )


def _drawn(role: str, whole: bytes, said: str) -> dict[str, bytes]:
    """Return the files that are drawn from an evaluation."""
    drawn = render("evaluation", whole, {"role": role, "said": said})
    return {f"rankeval/{role}/{path}": content for path, content in drawn.items()}


def aggregates(evaluation: Evaluation) -> dict[str, float]:
    """Return the aggregate of every measure by its key."""
    keys = keys_of(evaluation)
    values = evaluation.aggregate().to_numpy(dtype=float)
    return {keys[label]: float(value) for label, value in zip(evaluation.measure_names, values, strict=True)}


def keys_of(evaluation: Evaluation) -> dict[str, str]:
    """Return the metric name of every measure by its label: the key, made safe for a user's own measures."""
    safe = safe_names(dict.fromkeys(measure.key for measure in evaluation.measures))
    return {label: safe[measure.key] for label, measure in evaluation.by_name.items()}


def judged_data(evaluation: Evaluation, role: str, name: str | None = None) -> LoggedData:
    """Describe the data set of an evaluation by the evaluation alone."""
    digest = evaluation.judgments_digest
    rows = int(evaluation.query_counts["retrieved"].sum())
    return LoggedData(name or f"judgments-{short_digest(digest)[:8]}", digest, role, rows, evaluation.n_queries)


def dataset_use(data: LoggedData) -> DatasetUse:
    """Return the data set input of a run."""
    profile = {"num_rows": data.n_rows, "num_queries": data.n_queries}
    return DatasetUse(data.name, data.digest, checked_role(data.role), data.source, profile)


def comparison_node(comparison: Comparison, name: str = "comparison") -> Node:
    """Pack a comparison: its table, its evaluations, and the differences as metrics.

    Parameters
    ----------
    comparison : Comparison
        The comparison. Systems that were given as frames have no evaluations to log.
    name : str
        The folder among the artifacts, and the first part of metric and tag names.
    """
    checked_role(name)
    folder = f"rankeval/{name}"
    evaluations = _evaluations(comparison)
    names = safe_names(evaluations)
    whole = comparison.to_json().encode()
    files = {
        f"{folder}/comparison.json": whole,
        f"{folder}/table.csv": comparison.table.to_csv(index=False).encode(),
        f"{folder}/report.html": render("comparison", whole, {})["report.html"],
    }
    for system, evaluation in evaluations.items():
        files[f"{folder}/evaluations/{names[system].replace('/', '_')}.parquet"] = evaluation.to_bytes()
    return Node(
        name=name,
        label=name,
        metrics=_differences(comparison, name) if comparison.has_pairs else _means(comparison, name),
        tags={
            HEADLINE if name == "comparison" else f"rankeval.{name}.headline": param_text(comparison.headline),
            **_guard_tags(comparison, name),
        },
        facts={name: {"settings": _settings(comparison), "rankeval": rankeval.__version__}},
        files=files,
        sections={name: comparison_section(comparison)},
    )


def _evaluations(comparison: Comparison) -> dict[str, Evaluation]:
    """Return the evaluations of a comparison, on each of several collections; systems given as frames have none."""
    from rankeval.evaluation import Evaluation

    found: dict[str, Evaluation] = {}
    for name, scores in comparison.evaluations.items():
        parts = {f"{name} on {part}": one for part, one in scores.items()} if isinstance(scores, Mapping) else {}
        found |= {each: one for each, one in {name: scores, **parts}.items() if isinstance(one, Evaluation)}
    return found


def record_node(record: RunRecord) -> Node:
    """Pack a run record and its children as a tree of nodes."""
    by_role = {data.role: data for data in reversed(record.data)}
    pieces = [
        evaluation_node(ev, role, by_role.get(role), record.said.get(role, ""))
        for role, ev in record.evaluations.items()
    ]
    if record.comparison is not None:
        pieces.append(comparison_node(record.comparison))
    return _joined(
        Node(
            name=record.name,
            label="record",
            params=_params(record.params),
            metrics=_finite(record.metrics),
            tags=_tags(record.tags),
            facts={"record": {"not_finite": _odd(record.metrics), "names": _renamed(record), "data": _roles(record)}},
            datasets=tuple(dataset_use(data) for data in record.data),
            files={**_long(record.params), **record.artifacts},
            children=tuple(record_node(child) for child in record.children),
        ),
        pieces,
    )


def _joined(node: Node, pieces: Iterable[Node]) -> Node:
    """Add the content of more nodes to a node; a repeated data set counts once."""
    parts = [node, *pieces]
    uses = {(use.name, use.digest, use.role): use for part in parts for use in part.datasets}
    return Node(
        name=node.name,
        label=node.label,
        params=node.params,
        metrics={key: value for part in parts for key, value in part.metrics.items()},
        tags={key: value for part in parts for key, value in part.tags.items()},
        scores=tuple(scores for part in parts for scores in part.scores),
        datasets=tuple(uses.values()),
        files={path: content for part in parts for path, content in part.files.items()},
        sections={key: text for part in parts for key, text in part.sections.items()},
        children=node.children,
        facts={key: facts for part in parts for key, facts in part.facts.items()},
    )


def _params(params: Mapping[str, Any]) -> dict[str, str]:
    names = safe_names(params)
    return {names[name]: param_text(value) for name, value in params.items()}


def _long(params: Mapping[str, Any]) -> dict[str, bytes]:
    """Return a file with the full parameters that MLflow would cut."""
    cut = {name: str(value) for name, value in params.items() if param_text(value) != str(value)}
    return {"rankeval/params.json": json.dumps(cut, indent=1).encode()} if cut else {}


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    names = safe_names(metrics)
    return {names[name]: float(value) for name, value in metrics.items() if math.isfinite(value)}


def _odd(metrics: Mapping[str, float]) -> dict[str, str]:
    """Return the metrics that MLflow would alter."""
    return {name: repr(float(value)) for name, value in metrics.items() if not math.isfinite(value)}


def _tags(tags: Mapping[str, str]) -> dict[str, str]:
    names = safe_names(tags)
    return {names[name]: param_text(value) for name, value in tags.items()}


def _roles(record: RunRecord) -> dict[str, dict[str, str]]:
    """Return the data set of every role: MLflow keeps only the first role of each."""
    return {checked_role(data.role): {"name": data.name, "digest": data.digest} for data in record.data}


def _renamed(record: RunRecord) -> dict[str, str]:
    """Return the names that MLflow refuses by the names that they got."""
    changed: dict[str, str] = {}
    for names in (record.params, record.metrics, record.tags):
        changed |= {safe: name for name, safe in safe_names(names).items() if safe != name}
    return changed


def _differences(comparison: Comparison, name: str) -> dict[str, float]:
    """Return the differences and adjusted p-values as metrics, without nan."""
    table = comparison.table
    if len(table) > MAX_COMPARED:
        return {}
    keys = {
        label: key for evaluation in _evaluations(comparison).values() for label, key in keys_of(evaluation).items()
    }
    values = {}
    rows = table[["measure", "baseline", "system"]].astype(str).itertuples(index=False, name=None)
    for place, ((label, baseline, system), part) in enumerate(zip(rows, comparison.part_of_row, strict=True)):
        pair = system if comparison.baseline is not None else f"{system} vs {baseline}"
        folder = f"{name}/{part}" if part else name
        for sign in _SIGNS:
            values[f"{folder}/{pair}/{keys.get(label, label)}/{sign}"] = float(table[sign].iloc[place])
    return _finite(values)


def _means(comparison: Comparison, name: str) -> dict[str, float]:
    """Return the means of a single system and the ends of their intervals as metrics, without nan."""
    if comparison.means is None:
        return {}
    keys = {label: key for one in _evaluations(comparison).values() for label, key in keys_of(one).items()}
    rows = comparison.means.to_dict("records")
    ends = ("mean", "ci_low", "ci_high")
    return _finite(
        {
            f"{name}/{row['system']}/{keys.get(row['measure'], row['measure'])}/{end}": float(row[end])
            for row in rows
            for end in ends
        }
    )


def _guard_tags(comparison: Comparison, name: str) -> dict[str, str]:
    """Return what the notes say of the guard as tags; none if no guard opened the comparison."""
    from rankeval.report import GuardFacts

    facts = GuardFacts.of(comparison)
    prefix = "rankeval." if name == "comparison" else f"rankeval.{name}."
    tags = {} if facts is None else facts.tags()
    return {f"{prefix}{key.removeprefix('rankeval.')}": param_text(value) for key, value in tags.items()}


def _settings(comparison: Comparison) -> dict[str, Any]:
    """Return the settings of a comparison."""
    names = ("baseline", "test", "correction", "family", "alternative", "claim", "margin")
    more = ("confidence_level", "n_comparisons", "n_resamples", "rng", "primary", "grouped", "weights", "notes")
    return {name: getattr(comparison, name) for name in (*names, *more)}
