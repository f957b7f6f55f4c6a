"""Pack an Evaluation or a Comparison: what a run holds of one.

The layout of an evaluation of role ``dev``; at a step of training, the folder is ``rankeval/dev/step-3/``::

    params     system, measure (the first), convention, data, role
    metrics    nDCG_at_10 ...                   the keys of the measures; dev/nDCG_at_10 if the run already has an
               nDCG_at_10_ci_low, _ci_high      evaluation of another role (`rankeval.role` names the first)
    tags       rankeval.kind, rankeval.card     the convention
    facts      of the role, in the manifest: canonical spelling of the measures, card, digests, data, values not finite
    artifacts  rankeval/dev/evaluation.parquet  the whole evaluation with the scores of every query, bit for bit
               rankeval/dev/queries.json        drawn: the worst queries as MLflow shows tables
               rankeval/dev/report.html         drawn
    inputs     the data set, role as context, full digest in the tag `rankeval.digest`

The layout of a comparison called ``final``::

    params     baseline, test, correction, measures, claim, systems
    metrics    final/SYSTEM nDCG_at_10 difference, ... p_adjusted, ... ci_low_adjusted, ... ci_high_adjusted
               final/NEWS/SYSTEM ...            for a collection or slice;  "SYSTEM vs OTHER" if there is no baseline
    tags       rankeval.kind, rankeval.final.headline, and of the guard: its ledger, its head, the standing
    facts      of the comparison, in the manifest: settings, evaluations by system, guard, metrics that are left out
    artifacts  rankeval/final/comparison.json   the comparison, to the last bit
               rankeval/final/table.csv
               rankeval/final/evaluations/      the evaluation of each system
               rankeval/final/report.html       drawn
    inputs     the data sets of the evaluations

Names of systems may be of any length: those in metrics and paths are cut so that they stay different.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rankeval
from rankeval.comparison.record import main_measure, part_of_row
from rankeval.evaluation.result import by_name, to_bytes
from rankeval.tracking import LoggedData
from rankeval_mlflow import layout
from rankeval_mlflow.delivery.payload import DatasetUse, Node, Rendering, Scores
from rankeval_mlflow.views import QUERIES, comparison_section, evaluation_section, intervals

if TYPE_CHECKING:
    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation


# Difference that a store's columns and JSON may leave in an aggregate.
CLOSE = 1e-9


# Rows of the table whose numbers become metrics, against a baseline and of all pairs: four metrics each.
MOST_AGAINST, MOST_PAIRS = 2500, 250

_SIGNS = ("difference", "p_adjusted", "ci_low_adjusted", "ci_high_adjusted")
_SHORT = 40
_DIVISION_SLASH = "\u2215"


def judged_data(evaluation: Evaluation, role: str, name: str | None = None) -> LoggedData:
    """Describe the data set of an evaluation by the evaluation alone.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    role : str
        The role of the data.
    name : str, optional
        Its name; by default one with the start of the digest of the judgments.
    """
    digest = evaluation.judgments_digest
    rows = int(evaluation.facts.query_counts["retrieved"].sum())
    return LoggedData(name or f"judgments-{layout.short_digest(digest)[:8]}", digest, role, rows, evaluation.n_queries)


def dataset_use(data: LoggedData) -> DatasetUse:
    """Return the data set input of a run.

    Parameters
    ----------
    data : LoggedData
        The data set.
    """
    profile = {"num_rows": data.n_rows, "num_queries": data.n_queries}
    return DatasetUse(data.name, data.digest, layout.checked_role(data.role), data.source, profile)


def evaluation_node(
    evaluation: Evaluation,
    role: str,
    data: LoggedData | None = None,
    said: str = "",
    *,
    step: int | None = None,
    report: bool = True,
    slices: Any = None,
) -> Node:
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
    step : int, optional
        The epoch or other step of training.
    report : bool
        Whether a report is drawn.
    slices : object, optional
        An attribute of the queries, as in ``Evaluation.slices``, for the report.
    """
    label = layout.label_of(role, step)
    data = data or judged_data(evaluation, role)
    values = aggregates(evaluation)
    limits = intervals(evaluation)
    whole = to_bytes(evaluation)
    scores = Scores(
        role=role,
        metrics=_metrics(evaluation, values, limits),
        dataset_name=data.name,
        dataset_digest=data.digest,
        evaluation_sha256=layout.sha256(whole),
        step=step or 0,
    )
    has_table = step is None and evaluation.n_queries > 0
    table = f"{layout.folder(label)}/{QUERIES}" if has_table else None
    options = {"role": role, "said": said, "report": report, "table": step is None}
    if slices is not None:
        from rankeval.report.html import slice_table

        options["slices"] = vars(slice_table(evaluation, slices))
    tables = (QUERIES,) if has_table else ()
    drawn = Rendering("evaluation", layout.evaluation_path(label), layout.folder(label), options, tables)
    params = {"system": layout.short_name(evaluation.name)} if evaluation.name else {}
    params |= {"measure": layout.param_text(evaluation.measure_names[0]), "convention": evaluation.convention.name}
    card = layout.sha256(json.dumps(evaluation.convention.card(), sort_keys=True).encode())[:12]
    return Node(
        name=layout.short_name(evaluation.name, most=200) if evaluation.name else f"{role} evaluation",
        label=label,
        params={**params, "data": data.name, "role": role},
        tags={layout.KIND: "evaluation", layout.CARD: f"{evaluation.convention.name} {card}"},
        facts={role: _facts(evaluation, data, values)},
        scores=(scores,),
        datasets=(dataset_use(data),),
        files={layout.evaluation_path(label): whole},
        renderings=(drawn,) if report or has_table else (),
        # A later step takes the place of an earlier one in the description, which has room for few.
        sections={role: evaluation_section(evaluation, role, limits, step=step, table=table)},
    )


def aggregates(evaluation: Evaluation) -> dict[str, float]:
    """Return the aggregate of every measure by its key.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    """
    keys = keys_of(evaluation)
    values = evaluation.aggregate().to_numpy(dtype=float)
    return {keys[label]: float(value) for label, value in zip(evaluation.measure_names, values, strict=True)}


def keys_of(evaluation: Evaluation) -> dict[str, str]:
    """Return the metric name of every measure by its label: the key, made safe for a user's own measures.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    """
    safe = layout.safe_names(dict.fromkeys(measure.key for measure in evaluation.measures))
    return {label: safe[measure.key] for label, measure in by_name(evaluation).items()}


def by_fold(folds: Mapping[str, Iterable[float]]) -> tuple[tuple[str, float, int], ...]:
    """Return metrics with the fold as step; values that are not finite are left out.

    Parameters
    ----------
    folds : mapping of str to iterable of float
        The values of all folds by metric.
    """
    return tuple(
        (key, float(value), step)
        for key, values in folds.items()
        for step, value in enumerate(values)
        if math.isfinite(value)
    )


def _metrics(
    evaluation: Evaluation, values: dict[str, float], limits: dict[str, tuple[float, float]]
) -> dict[str, float]:
    keys = keys_of(evaluation)
    ends = {
        f"{keys[label]}{side}": end
        for label, pair in limits.items()
        for side, end in zip(layout.INTERVAL_ENDS, pair, strict=True)
    }
    # MLflow's tables have the order of this mapping. A measure of a user may have the name of an end: it stays.
    return layout.metrics_of({**values, **ends, **values})


def _facts(evaluation: Evaluation, data: LoggedData, values: dict[str, float]) -> dict[str, Any]:
    keys = keys_of(evaluation)
    return {
        "system": evaluation.name,
        "measures": {keys[label]: str(measure) for label, measure in by_name(evaluation).items()},
        "convention": evaluation.convention.card(),
        "judgments": evaluation.judgments_digest,
        "ranking": evaluation.ranking_digest,
        "data": {"name": data.name, "digest": data.digest},
        # MLflow turns infinity into the largest float, and nan of a model's metric into 0: neither is sent.
        "not_finite": {key: repr(value) for key, value in values.items() if not math.isfinite(value)},
        "rankeval": rankeval.__version__,
    }


@dataclass(frozen=True)
class _Held:
    """An evaluation of a comparison: of a system, on a collection if there are several, and its file."""

    system: str
    part: str
    evaluation: Evaluation
    path: str


def comparison_node(
    comparison: Comparison,
    name: str = "comparison",
    *,
    role: str | None = None,
    data: LoggedData | str | None = None,
    report: bool = True,
) -> Node:
    """Pack a comparison: its table, its evaluations, and the differences as metrics.

    Parameters
    ----------
    comparison : Comparison
        The comparison. Systems that were given as frames have no evaluations to log.
    name : str
        The folder among the artifacts, and the first part of metric and tag names.
    role : str, optional
        The role of the data; by default "test" if the guard opened the comparison, else "dev".
    data : LoggedData or str, optional
        The data set, or its name; by default the digest of the judgments stands for it.
    report : bool
        Whether a page is drawn.
    """
    from rankeval.report import GuardFacts

    layout.checked_role(name, "name")
    role = layout.checked_role(role or ("test" if comparison.standing else "dev"))
    held = _held(comparison, layout.folder(name))
    whole = comparison.to_json()
    numbers, left_out = (
        (_means(comparison, held, name), "") if comparison.table.empty else _differences(comparison, held, name)
    )
    guarded = GuardFacts.of(comparison)
    guard = {} if guarded is None else guarded.tags()
    shown = [key for key in (layout.STANDING, layout.GUARD_LEDGER, layout.GUARD_HEAD) if key in guard]
    return Node(
        name=name,
        label=name,
        params=_comparison_params(comparison),
        metrics=numbers,
        tags={
            layout.KIND: "comparison",
            _tag(layout.HEADLINE, name): layout.param_text(comparison.headline),
            **{_tag(key, name): layout.param_text(guard[key]) for key in shown},
        },
        facts={name: _comparison_facts(comparison, held, guard, left_out)},
        datasets=tuple(dataset_use(each) for each in _data(held, role, data)),
        files={
            f"{layout.folder(name)}/comparison.json": whole.encode(),
            f"{layout.folder(name)}/table.csv": comparison.table.to_csv(index=False).encode(),
            **{each.path: to_bytes(each.evaluation) for each in held},
        },
        renderings=(Rendering("comparison", f"{layout.folder(name)}/comparison.json", into=layout.folder(name)),)
        if report
        else (),
        sections={name: comparison_section(comparison, left_out)},
    )


def _held(comparison: Comparison, inside: str) -> list[_Held]:
    from rankeval.evaluation import Evaluation

    found = []
    for system, scores in comparison.evaluations.items():
        parts = scores if isinstance(scores, Mapping) else {"": scores}
        found += [(system, str(part), one) for part, one in parts.items() if isinstance(one, Evaluation)]
    names = _file_names([f"{system} on {part}" if part else system for system, part, _ in found])
    return [_Held(*each, f"{inside}/evaluations/{name}.parquet") for each, name in zip(found, names, strict=True)]


def _file_names(titles: list[str]) -> list[str]:
    # No two are equal, not even where case is ignored.
    chosen: dict[str, str] = {}
    for title in titles:
        name = plain = layout.safe_name(layout.short_name(title)).replace("/", "_")
        while name.lower() in chosen:
            name = f"{plain}_{layout.sha256(f'{name} {title}'.encode())[:8]}"
        chosen[name.lower()] = name
    return list(chosen.values())


def _data(held: list[_Held], role: str, name: LoggedData | str | None) -> list[LoggedData]:
    if isinstance(name, LoggedData):
        return [name]
    found: dict[str, LoggedData] = {}
    for each in held:
        called = " ".join(filter(None, (name, each.part))) or None
        found.setdefault(each.evaluation.judgments_digest, judged_data(each.evaluation, role, called))
    return list(found.values())


def _comparison_params(comparison: Comparison) -> dict[str, str]:
    asked = comparison.settings
    frame, baseline = comparison.means if comparison.table.empty else comparison.table, asked.baseline
    named = [] if frame is None else dict.fromkeys(frame["system"].astype(str))
    pairs = dict.fromkeys([*(comparison.table["baseline"].astype(str) if baseline is None else ()), *named])
    margin = {"margin": repr(asked.margin)} if asked.margin else {}
    return {
        **({"baseline": layout.short_name(baseline)} if baseline is not None else {}),
        "systems": layout.param_text(", ".join(map(layout.short_name, pairs))),
        "measures": layout.param_text(", ".join(dict.fromkeys([] if frame is None else frame["measure"].astype(str)))),
        "test": asked.test,
        "correction": asked.correction,
        "claim": asked.claim,
        **margin,
    }


def _differences(comparison: Comparison, held: list[_Held], name: str) -> tuple[dict[str, float], str]:
    """Return differences, adjusted p-values and intervals as metrics, without nan; and a sentence on those left out.

    Rows over all queries come before those of parts, and rows of the best system before others.
    """
    table, parts = comparison.table, part_of_row(comparison)
    most = MOST_PAIRS if comparison.settings.baseline is None else MOST_AGAINST
    places = list(range(len(table)))
    if len(places) > most:
        best = _leader(comparison)
        others = [
            best not in pair for pair in table[["baseline", "system"]].astype(str).itertuples(index=False, name=None)
        ]
        places = sorted(places, key=lambda place: (bool(parts[place]), others[place]))[:most]
    keys = {label: key for each in held for label, key in keys_of(each.evaluation).items()}
    rows = list(table[["measure", "baseline", "system"]].astype(str).itertuples(index=False, name=None))
    columns = {sign: table[sign].to_numpy(dtype=float) for sign in _SIGNS}
    values = {}
    for place in places:
        label, baseline, system = rows[place]
        pair = (system,) if comparison.settings.baseline is not None else (system, baseline)
        for sign, column in columns.items():
            values[_path(name, parts[place], pair, keys.get(label, label), sign)] = float(column[place])
    left = len(table) - len(places)
    said = (
        ""
        if not left
        else f"Metrics show {len(places):,} of {len(table):,} rows; table.csv and comparison.json have all."
    )
    return layout.metrics_of(values), said


def _leader(comparison: Comparison) -> str:
    from rankeval.measures import direction

    rows = comparison.table[comparison.table["measure"] == main_measure(comparison)]
    means = {
        **dict(zip(rows["baseline"], rows["mean_baseline"], strict=True)),
        **dict(zip(rows["system"], rows["mean_system"], strict=True)),
    }
    return str(max(means, key=lambda system: direction(main_measure(comparison)) * means[system]))


def _path(name: str, part: str, pair: tuple[str, ...], key: str, sign: str) -> str:
    """Return the name of a metric; names of systems are shortened so that its end stays.

    MLflow's charts have a section for what stands before the last slash: one for each comparison, and for each
    collection or slice of it. So a slash in the name of a system becomes the division slash (U+2215), which
    `safe_names` replaces and keeps apart from "_".
    """
    for most in (2 * _SHORT, _SHORT):
        systems = " vs ".join(layout.short_name(one, most) for one in pair).replace("/", _DIVISION_SLASH)
        path = "/".join(filter(None, (name, layout.short_name(part, most), f"{systems} {key} {sign}")))
        if len(path) <= layout.MAX_NAME:
            break
    return path


def _means(comparison: Comparison, held: list[_Held], name: str) -> dict[str, float]:
    if comparison.means is None:
        return {}
    keys = {label: key for each in held for label, key in keys_of(each.evaluation).items()}
    rows = comparison.means.to_dict("records")
    return layout.metrics_of(
        {
            _path(name, "", (str(row["system"]),), keys.get(row["measure"], row["measure"]), end): float(row[end])
            for row in rows
            for end in ("mean", "ci_low", "ci_high")
        }
    )


def _tag(key: str, name: str) -> str:
    """Return the name of a tag of a comparison: the plain one for the comparison without a name of its own."""
    return key if name == "comparison" else f"rankeval.{name}.{key.removeprefix('rankeval.')}"


def _comparison_facts(
    comparison: Comparison, held: list[_Held], guard: Mapping[str, str], left_out: str
) -> dict[str, Any]:
    names = ("baseline", "test", "correction", "family", "alternative", "claim", "margin", "unseen")
    asked = comparison.settings
    more = ("confidence_level", "n_comparisons", "n_resamples", "rng", "primary", "grouped")
    texts = {"weights": asked.collection_weights, "notes": comparison.notes}
    return {
        "settings": {key: getattr(asked, key) for key in (*names, *more)} | texts,
        "evaluations": [{"system": each.system, "part": each.part, "path": each.path} for each in held],
        "guard": {key.removeprefix("rankeval."): value for key, value in guard.items()},
        "left_out": left_out,
        "rankeval": rankeval.__version__,
    }
