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
               rankeval/dev/queries.html        if the caller gives a page of queries
    inputs     the data set, role as context, full digest in the tag `rankeval.digest`

The layout of a comparison called ``final``::

    params     system and baseline (whose difference the metrics are), systems, test, correction, measures, claim
    metrics    difference/final/nDCG_at_10 ...  of a pair; difference/final/NEWS/nDCG_at_10 on a collection or slice
               ..._ci_low, _ci_high, _p_adjusted    the adjusted interval and p-value
               mean/final/nDCG_at_10 ...        of one system alone, with the ends of its interval
    tags       rankeval.kind, rankeval.final.headline, and of the guard: its ledger, its head, the standing
    facts      of the comparison, in the manifest: settings, evaluations by system, guard
    artifacts  rankeval/final/comparison.json   the comparison, to the last bit
               rankeval/final/table.csv
               rankeval/final/evaluations/      the evaluation of each system
               rankeval/final/report.html       drawn
               rankeval/final/queries.html      if the caller gives a page of queries
    inputs     the data sets of the evaluations

The layout of a result of `rankeval.judging`, `rankeval.profile` or `rankeval.online`, such as an agreement ``final``::

    params     level, judges, n_items; of a calibration baseline, system, n_human, n_machine, correction
    metrics    agreement/final/krippendorff_alpha ...   with the ends of its interval
               ab_test/final/B/orders ...               of each arm, if more than one is compared with the control
    tags       rankeval.kind, rankeval.final.headline
    artifacts  rankeval/final/table.csv, per_query.csv ...    each of its frames
               rankeval/final/notes.txt                       the table with its notes, and why a value is undefined
               rankeval/final/report.html

No metric has the name of a system, so that the comparisons of ten releases are one column and one chart. The pair is
the baseline and the best of the others, or the only pair. Of all pairs of three systems or more none is shown: they are
in the table. The comparison without a name of its own, ``comparison``, has the metrics ``difference/nDCG_at_10``.

Names of systems may be of any length: those in paths are cut so that they stay different.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from mlflow.data.dataset import Dataset

import rankeval
from rankeval._checks import require
from rankeval._secrets import hidden
from rankeval.collection.data import RankingData
from rankeval.comparison import Comparison
from rankeval.comparison.record import best_first, part_of_row
from rankeval.comparison.tables import caption_of
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation, to_bytes
from rankeval.evaluation.result import by_name
from rankeval.judging import Agreement, Calibration, Disagreement, Reusability
from rankeval.online import ABTest, ClickRates, LogChecks, Perplexity, PolicyValue, Propensities
from rankeval.report import GuardFacts, report_for_judging
from rankeval.report.html import named, slice_table
from rankeval.text.profiling import Profile
from rankeval.tracking import LoggedData
from rankeval_mlflow import layout
from rankeval_mlflow.delivery.payload import DatasetUse, Node, Rendering, Scores
from rankeval_mlflow.views import QUERIES, REPORT, comparison_section, evaluation_section, intervals

# Difference that a store's columns and JSON may leave in an aggregate.
CLOSE = 1e-9


# Columns of tables, and the ends of the names of their metrics.
_LOW, _HIGH = layout.INTERVAL_ENDS
_ENDS = {"difference": "", "p_adjusted": "_p_adjusted", "ci_low_adjusted": _LOW, "ci_high_adjusted": _HIGH}
_ENDS_OF_MEANS = {"mean": "", "ci_low": _LOW, "ci_high": _HIGH}
_MOST = 100  # a table of more rows, such as the rate of each document, has no metrics
_UNNAMED = "comparison"
# Results with a table: the column that a metric is named by ("": those of ``by``), and those that are metrics, with the
# ends of their names.
_LIMITS = {"ci_low": _LOW, "ci_high": _HIGH}
_RESULTS: dict[type, tuple[str, dict[str, str]]] = {
    Agreement: ("coefficient", {"value": "", **_LIMITS}),
    Calibration: ("measure", {"estimate": "", "gain": "_gain", **{key: _ENDS[key] for key in list(_ENDS)[1:]}}),
    Disagreement: ("judgments", {key: f"_{key}" for key in ("tau_b", "tau_ap", "overlap")}),
    Reusability: ("system", {}),
    Profile: ("quantity", {"value": "", **_LIMITS}),
    ABTest: ("metric", {"estimate": "", "relative": "_relative", "p_adjusted": "_p_adjusted", **_LIMITS}),
    ClickRates: ("", {"click_rate": "", "abandonment": "", **_LIMITS}),
    LogChecks: ("check", {"found": ""}),
    Perplexity: ("position", {"perplexity": ""}),
    PolicyValue: (
        "how",
        {"value": "", "effective_share": "_effective_share", "effective_clicks": "_effective_clicks", **_LIMITS},
    ),
    Propensities: ("position", {"propensity": "", **_LIMITS}),
}
_FIGURES = ("sample_ratio",)  # numbers beside the table that are metrics
_FACTS_OF_JUDGING = ("n_items", "baseline", "system", "n_human", "n_machine")
_NO_NAME = "dataset"  # MLflow's name of a data set without one
_LONGEST = 1_000_000  # the schema of more columns is refused by the server


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


def described(
    evaluation: Evaluation, role: str, data: Dataset | LoggedData | RankingData | str | None = None
) -> DatasetUse:
    """Return the data set of an evaluation as an input of a run; the digest of the judgments identifies it.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    role : str
        The role of its data.
    data : mlflow.data.Dataset, LoggedData, RankingData or str, optional
        The data set, or its name. A Dataset of MLflow also says where the data lies, and keeps MLflow's digest.
    """
    if isinstance(data, LoggedData):
        if data.role != role:
            raise InvalidInput(f"the data set {data.name!r} has the role {data.role!r}, the evaluation {role!r}")
        return dataset_use(data)
    if not (data is None or isinstance(data, str | Dataset | RankingData)):
        expected = "its name, an mlflow.data.Dataset, RankingData or LoggedData"
        raise InvalidInput(argument="data", found=f"of type {type(data).__name__}", expected=expected)
    name = data if isinstance(data, str) else getattr(data, "name", None)
    given = {}
    if isinstance(data, Dataset):
        name = None if name == _NO_NAME else name
        told = {key: str(value) for key, value in data.to_dict().items() if key != "name" and value}
        given = {key: text for key, text in told.items() if len(text) <= _LONGEST} | {"source": hidden(told["source"])}
    described = judged_data(evaluation, role, name)
    if isinstance(data, RankingData):
        described = replace(described, name=name or "data", n_rows=len(data), n_queries=data.n_queries)
    return replace(dataset_use(described), given=given)


def evaluation_node(
    evaluation: Evaluation,
    role: str,
    data: DatasetUse | None = None,
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
    data : DatasetUse, optional
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
    data = data or described(evaluation, role)
    values = aggregates(evaluation)
    limits, keys = intervals(evaluation), keys_of(evaluation)
    sides = {keys[measure]: zip(layout.INTERVAL_ENDS, pair, strict=True) for measure, pair in limits.items()}
    ends = {f"{key}{end}": value for key, pair in sides.items() for end, value in pair}
    whole = to_bytes(evaluation)
    scores = Scores(
        role=role,
        # MLflow's tables have the order of this mapping. A measure of a user may have the name of an end: it stays.
        metrics=layout.metrics_of({**values, **ends, **values}),
        dataset_name=data.name,
        dataset_digest=data.digest,
        evaluation_sha256=layout.sha256(whole),
        step=step or 0,
    )
    has_table = step is None and evaluation.n_queries > 0
    table = f"{layout.folder(label)}/{QUERIES}" if has_table else None
    options = {"role": role, "said": said, "report": report, "table": step is None}
    if slices is not None:
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
        datasets=(data,),
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


def fold_node(place: int, values: Mapping[str, float], started_ms: int, params: Mapping[str, Any]) -> Node:
    """Pack one fold as a run. Its queries are in the evaluation of the run above, so it has no file of its own.

    Parameters
    ----------
    place : int
        Which fold.
    values : mapping of str to float
        Its metrics, ``fit_seconds`` and ``score_seconds`` among them.
    started_ms : int
        When it began.
    params : mapping
        More parameters.
    """
    return Node(
        name=f"fold {place}",
        label="fold",
        params=layout.params_of({"fold": place, **params}),
        metrics=layout.metrics_of(values),
        tags={layout.KIND: "fold"},
        started_ms=started_ms,
        ended_ms=started_ms + round(1000 * float(values["fit_seconds"] + values["score_seconds"])),
    )


def _facts(evaluation: Evaluation, data: DatasetUse, values: dict[str, float]) -> dict[str, Any]:
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
    data: Dataset | LoggedData | RankingData | str | None = None,
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
    data : mlflow.data.Dataset, LoggedData, RankingData or str, optional
        As for `described`.
    report : bool
        Whether a page is drawn.
    """
    layout.checked_role(name, "name")
    role = layout.checked_role(role or ("test" if comparison.standing else "dev"))
    held = _held(comparison, layout.folder(name))
    whole = comparison.to_json()
    pair = None if comparison.table.empty else compared_pair(comparison)
    numbers = differences(comparison, pair, name)
    if comparison.table.empty and comparison.means is not None:
        numbers = _named(comparison, comparison.means.assign(part=""), name, "mean", _ENDS_OF_MEANS)
    guarded = GuardFacts.of(comparison)
    guard = {} if guarded is None else guarded.tags()
    shown = [key for key in (layout.STANDING, layout.GUARD_LEDGER, layout.GUARD_HEAD) if key in guard]
    return Node(
        name=name,
        label=name,
        params=_comparison_params(comparison, pair),
        metrics=numbers,
        tags={
            layout.KIND: "comparison",
            _tag(layout.HEADLINE, name): layout.param_text(comparison.headline),
            **{_tag(key, name): layout.param_text(guard[key]) for key in shown},
        },
        facts={name: _comparison_facts(comparison, held, guard)},
        datasets=_data(held, role, data),
        files={
            f"{layout.folder(name)}/comparison.json": whole.encode(),
            f"{layout.folder(name)}/table.csv": comparison.table.to_csv(index=False).encode(),
            **{each.path: to_bytes(each.evaluation) for each in held},
        },
        renderings=(Rendering("comparison", f"{layout.folder(name)}/comparison.json", into=layout.folder(name)),)
        if report
        else (),
        sections={name: comparison_section(comparison)},
    )


def _held(comparison: Comparison, inside: str = "") -> list[_Held]:
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


def _data(held: list[_Held], role: str, data: Any) -> tuple[DatasetUse, ...]:
    if isinstance(data, LoggedData):
        return (dataset_use(data),)
    found: dict[str, DatasetUse] = {}
    for each in held:
        called = " ".join(filter(None, (data, each.part))) or None if data is None or isinstance(data, str) else data
        found.setdefault(each.evaluation.judgments_digest, described(each.evaluation, role, called))
    return tuple(found.values())


def _comparison_params(comparison: Comparison, pair: tuple[str, str] | None) -> dict[str, str]:
    asked = comparison.settings
    frame, baseline = comparison.means if comparison.table.empty else comparison.table, asked.baseline
    named = [] if frame is None else dict.fromkeys(frame["system"].astype(str))
    pairs = dict.fromkeys([*(comparison.table["baseline"].astype(str) if baseline is None else ()), *named])
    beside = {"margin": repr(asked.margin)} if asked.margin else {}
    beside |= {} if asked.unit == "query" else {"unit": asked.unit}
    if frame is not None and asked.member:
        beside["groups"] = asked.sized(int(frame["n_queries"].iloc[0]))
    first, system = pair or (baseline, next(iter(named)) if len(named) == 1 else None)
    return {
        **{key: layout.short_name(one) for key, one in (("system", system), ("baseline", first)) if one is not None},
        "systems": layout.param_text(", ".join(map(layout.short_name, pairs))),
        "measures": layout.param_text(", ".join(dict.fromkeys([] if frame is None else frame["measure"].astype(str)))),
        "test": asked.test,
        "correction": asked.correction,
        "claim": asked.claim,
        **beside,
    }


def compared_pair(comparison: Comparison) -> tuple[str, str] | None:
    """Return baseline and system of the differences that are metrics; None if there is no pair, or no one to choose.

    Parameters
    ----------
    comparison : Comparison
        The comparison. Against a baseline the best of the others by the main measure is chosen.
    """
    columns = comparison.table[["baseline", "system"]].astype(str)
    pairs = list(dict.fromkeys(columns.itertuples(index=False, name=None)))
    by_system = {system: (baseline, system) for baseline, system in pairs}
    if comparison.settings.baseline is None or len(pairs) < 2:
        return pairs[0] if len(pairs) == 1 else None
    return next((by_system[system] for system in best_first(comparison) if system in by_system), None)


def differences(comparison: Comparison, pair: tuple[str, str] | None, name: str = _UNNAMED) -> dict[str, float]:
    """Return the differences of a pair, their adjusted p-values and intervals as metrics, without nan.

    Parameters
    ----------
    comparison : Comparison
        The comparison.
    pair : tuple of (baseline, system)
        The pair; None has no metrics.
    name : str
        The name of the comparison in its run.
    """
    if pair is None:
        return {}
    table = comparison.table.assign(part=part_of_row(comparison))
    rows = table[(table["baseline"] == pair[0]) & (table["system"] == pair[1])]
    return _named(comparison, rows, name, "difference", _ENDS)


def _named(
    comparison: Comparison, rows: pd.DataFrame, name: str, what: str, ends: Mapping[str, str]
) -> dict[str, float]:
    """Return metrics by name. MLflow's charts have a section for all that has the same text before the last slash."""
    keys = {label: key for each in _held(comparison) for label, key in keys_of(each.evaluation).items()}
    values: dict[str, float] = {}
    for column, end in ends.items():  # a measure of a user may have the name of an end: it stays, as it comes first
        for measure, part, value in zip(rows["measure"], rows["part"], rows[column], strict=True):
            before = [what, *([] if name == _UNNAMED else [name]), *([layout.short_name(part)] if part else [])]
            values.setdefault("/".join([*before, f"{keys.get(measure, measure)}{end}"]), float(value))
    return layout.metrics_of(values)


def _tag(key: str, name: str) -> str:
    """Return the name of a tag of a comparison: the plain one for the comparison without a name of its own."""
    return key if name == _UNNAMED else f"rankeval.{name}.{key.removeprefix('rankeval.')}"


def _comparison_facts(comparison: Comparison, held: list[_Held], guard: Mapping[str, str]) -> dict[str, Any]:
    names = ("baseline", "test", "correction", "family", "alternative", "claim", "margin", "unseen")
    asked = comparison.settings
    more = ("confidence_level", "n_comparisons", "n_resamples", "rng", "primary", "grouped")
    texts = {"weights": asked.collection_weights, "notes": comparison.notes}
    return {
        "settings": {key: getattr(asked, key) for key in (*names, *more)} | texts,
        "evaluations": [{"system": each.system, "part": each.part, "path": each.path} for each in held],
        "guard": {key.removeprefix("rankeval."): value for key, value in guard.items()},
        "rankeval": rankeval.__version__,
    }


def result_node(result: Any, name: str | None, *, report: bool, argument: str = "result") -> Node:
    """Pack a result of judging, of online evaluation or of a profile: its frames, its notes, its numbers as metrics.

    Parameters
    ----------
    result : object
        The result, of a kind that is declared above.
    name : str, optional
        The folder among the artifacts; by default the kind of the result.
    report : bool
        Whether a page is drawn. It is drawn here, since no file of the run holds the whole result.
    argument : str
        The argument that holds the result, for errors.
    """
    expected = "a result of rankeval.judging, rankeval.online or rankeval.profile"
    require(type(result) in _RESULTS, argument, type(result), expected)
    kind, title = named(result)
    name, (key, ends) = layout.checked_role(name or kind, "name"), _RESULTS[type(result)]
    table, before = result.table, kind if name == kind else f"{kind}/{name}"
    rows, facts = table.to_dict("records"), vars(result)
    numbers = {f"{before}/{one}": facts[one] for one in _FIGURES if one in facts}
    keys = [[(one, row[one]) for one in ([key] if key else result.by)] for row in rows]
    called = ["_".join(one if isinstance(one, str) else f"{of}_{one}" for of, one in each) or "all" for each in keys]
    if isinstance(result, LogChecks):
        called = [one.replace(",", "") for one in called]
    if isinstance(result, ABTest):
        arms = {arm: layout.short_name(str(arm)) for arm in result.arms.index}
        numbers |= {f"{before}/{arms[arm]}/users": float(users) for arm, users in result.arms["users"].items()}
        if len(arms) > 2:
            called = [f"{arms[arm]}/{own}" for arm, own in zip(table["arm"], called, strict=True)]
    for row, own in zip(rows, called, strict=True):
        # Of several pairs of systems with one measure none is a metric, as of a comparison of all pairs.
        if called.count(own) == 1 and len(rows) <= _MOST:
            numbers |= {f"{before}/{own}{end}": row[one] for one, end in ends.items() if one in row}
    shared = {one: set(table[one]) for one in _FACTS_OF_JUDGING if one in table}
    params = {one: layout.short_name(str(*values)) for one, values in shared.items() if len(values) == 1}
    facts = {f"{before}/system" if one == "name" else one: value for one, value in facts.items()}
    params |= {one: value for one, value in facts.items() if isinstance(value, str) and one not in {"caption", "rate"}}
    if isinstance(result, Agreement):
        params["judges"] = ", ".join(map(str, result.disputed.columns.drop(["qid", "docid", "n_labels", "spread"])))
    frames = {one: frame for one, frame in facts.items() if isinstance(frame, pd.DataFrame)}
    files = {f"{one}.csv": frame.to_csv(index=frame.index.name is not None) for one, frame in frames.items()}
    files |= {"notes.txt": str(result)} | ({REPORT: report_for_judging([result], title=title)} if report else {})
    return Node(
        name=name,
        label=name,
        params=layout.params_of({one: value for one, value in params.items() if value}),
        metrics=layout.metrics_of(numbers),
        tags={layout.KIND: kind, _tag(layout.HEADLINE, name): layout.param_text(caption_of(result))},
        facts={name: {"notes": list(result.notes), "rankeval": rankeval.__version__}},
        files={f"{layout.folder(name)}/{path}": text.encode() for path, text in files.items()},
        sections={name: result.to_markdown()},
    )
