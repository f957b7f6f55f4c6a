"""A comparison as a record, and back.

Metrics are the differences of one pair: the baseline and the best of the others, or the only pair.
They hold no name of a system, so that the comparisons of ten releases are one column and one chart.
Of all pairs of three systems or more none is shown: they are in the table. One system alone has its
means.

::

    difference/nDCG_at_10               difference/NEWS/nDCG_at_10 on a collection or slice
    difference/nDCG_at_10_ci_low        the adjusted interval, and _p_adjusted
    mean/nDCG_at_10                     of one system alone, with the ends of its interval
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rankeval.comparison.record import ComparisonRecord, best_first, part_of_row
from rankeval.evaluation import Evaluation, to_bytes
from rankeval.evaluation.result import data_of, from_bytes
from rankeval.shelf.folder import file_names
from rankeval.shelf.record import INTERVAL_ENDS, Record, checked_word
from rankeval.tracking import LoggedData

NUMBERS = "comparison.json"
_LOW, _HIGH = INTERVAL_ENDS
_ENDS = {
    "difference": "",
    "p_adjusted": "_p_adjusted",
    "ci_low_adjusted": _LOW,
    "ci_high_adjusted": _HIGH,
}
_ENDS_OF_MEANS = {"mean": "", "ci_low": _LOW, "ci_high": _HIGH}
_LONGEST = 60  # characters of a name in a list of names
_CONFIRMATORY = "confirmatory"

Held = dict[tuple[str, str], Evaluation]
"""The evaluation of each system, on each collection if there are several."""


def comparison_record(
    compared: ComparisonRecord, numbers: str, headline: str, text: str, role: str | None, data: Any
) -> Record:
    """Return the record of a comparison, given its JSON, its headline and its text in Markdown."""
    role = checked_word(role or ("test" if compared.standing else "dev"), "role")
    held = evaluations_of(compared)
    names = file_names([f"{system} on {part}" if part else system for system, part in held])
    places, files = [], {NUMBERS: numbers.encode()}
    for name, ((system, part), evaluation) in zip(names, held.items(), strict=True):
        path = f"evaluations/{name}.parquet"
        places.append({"system": system, "part": part, "path": path})
        files[path] = to_bytes(evaluation)
    guard = {} if compared.opening is None else {"standing": compared.standing, **compared.opening}
    pair = compared_pair(compared)
    params, metrics = _params(compared, pair), _metrics(compared, pair)
    facts = {"evaluations": places, "guard": guard}
    return Record(
        kind="comparison",
        name="comparison",
        headline=headline,
        params=params,
        metrics=metrics,
        tables={"table": compared.table},
        files=files,
        notes=compared.notes,
        text=text,
        facts=facts,
        tags=_tags(guard),
        data=_data(held, role, data),
    )


def systems_of(record: Record) -> dict[str, Any]:
    """Return the evaluations of a record, by system, and by collection if there are several."""
    systems: dict[str, Any] = {}
    for place in record.facts["evaluations"]:
        evaluation = from_bytes(record.files[place["path"]])
        if place["part"]:
            systems.setdefault(place["system"], {})[place["part"]] = evaluation
        else:
            systems[place["system"]] = evaluation
    return systems


def evaluations_of(compared: ComparisonRecord) -> Held:
    """Return the evaluations of a comparison; systems that were compared as frames have none."""
    held: Held = {}
    for system, scores in compared.evaluations.items():
        parts = scores if isinstance(scores, Mapping) else {"": scores}
        for part, own in parts.items():
            if isinstance(own, Evaluation):
                held[system, str(part)] = own
    return held


def _tags(guard: Mapping[str, Any]) -> dict[str, str]:
    if not guard:
        return {}
    standing = _CONFIRMATORY if guard["standing"] == _CONFIRMATORY else "exploratory"
    places = {f"guard.{name}": str(guard[name]) for name in ("ledger", "head")}
    return {"standing": standing, **places}


def _data(held: Held, role: str, data: Any) -> tuple[LoggedData, ...]:
    if isinstance(data, LoggedData):
        return (data,)
    by_digest: dict[str, LoggedData] = {}
    for (_, part), evaluation in held.items():
        own = data
        if data is None or isinstance(data, str):
            own = " ".join(filter(None, (data, part))) or None
        by_digest.setdefault(evaluation.judgments_digest, data_of(evaluation, role, own))
    return tuple(by_digest.values())


def compared_pair(compared: ComparisonRecord) -> tuple[str, str] | None:
    """Return baseline and system of the differences that are metrics, if a pair stands out."""
    columns = compared.table[["baseline", "system"]].astype(str)
    pairs = list(dict.fromkeys(columns.itertuples(index=False, name=None)))
    by_system = {system: (baseline, system) for baseline, system in pairs}
    if len(pairs) == 1:
        return pairs[0]
    if compared.settings.baseline is None:
        return None
    return next((by_system[system] for system in best_first(compared) if system in by_system), None)


def _params(compared: ComparisonRecord, pair: tuple[str, str] | None) -> dict[str, str]:
    settings = compared.settings
    frame = compared.means if compared.table.empty else compared.table
    systems = [] if frame is None else [*dict.fromkeys(frame["system"].astype(str))]
    measures = [] if frame is None else dict.fromkeys(frame["measure"].astype(str))
    every = systems
    if settings.baseline is None:
        baselines = compared.table["baseline"].astype(str)
        every = [*dict.fromkeys([*baselines, *systems])]
    shown = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..." for name in every]
    first, system = pair or (settings.baseline, systems[0] if len(systems) == 1 else None)
    params = {
        "system": system,
        "baseline": first,
        "systems": ", ".join(shown),
        "measures": ", ".join(measures),
        "test": settings.test,
        "correction": settings.correction,
        "claim": settings.claim,
    }
    if settings.margin:
        params["margin"] = repr(settings.margin)
    if settings.unit != "query":
        params["unit"] = settings.unit
    if frame is not None and settings.member:
        params["groups"] = settings.sized(int(frame["n_queries"].iloc[0]))
    return {name: value for name, value in params.items() if value is not None}


def difference_metrics(
    compared: ComparisonRecord, pair: tuple[str, str] | None
) -> dict[str, float]:
    """Return the difference_metrics of a pair, their adjusted p-values and intervals as metrics."""
    if pair is None:
        return {}
    table = compared.table.assign(part=part_of_row(compared))
    rows = table[(table["baseline"] == pair[0]) & (table["system"] == pair[1])]
    return _named(compared, rows, "difference", _ENDS)


def _metrics(compared: ComparisonRecord, pair: tuple[str, str] | None) -> dict[str, float]:
    if compared.table.empty and compared.means is not None:
        return _named(compared, compared.means.assign(part=""), "mean", _ENDS_OF_MEANS)
    return difference_metrics(compared, pair)


def _named(
    compared: ComparisonRecord, rows: pd.DataFrame, what: str, ends: Mapping[str, str]
) -> dict[str, float]:
    """Return metrics by name; charts group names by the text before the last "/"."""
    keys: dict[Any, str] = {}
    for evaluation in evaluations_of(compared).values():
        own = [measure.key for measure in evaluation.measures]
        keys |= zip(evaluation.measure_names, own, strict=True)
    values: dict[str, float] = {}
    # A measure of a user may have the name of an end: it stays, as it comes first.
    for column, end in ends.items():
        for measure, part, value in zip(rows["measure"], rows["part"], rows[column], strict=True):
            steps = [what, part, f"{keys.get(measure, measure)}{end}"]
            values.setdefault("/".join(filter(None, steps)), float(value))
    return values
