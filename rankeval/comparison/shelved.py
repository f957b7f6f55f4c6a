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
    paths = [f"evaluations/{name}.parquet" for name in file_names([_title(*key) for key in held])]
    evaluations = {path: to_bytes(one) for path, one in zip(paths, held.values(), strict=True)}
    places = [
        {"system": system, "part": part, "path": path}
        for (system, part), path in zip(held, paths, strict=True)
    ]
    guard = {} if compared.opening is None else {"standing": compared.standing, **compared.opening}
    pair = compared_pair(compared)
    return Record(
        kind="comparison",
        name="comparison",
        headline=headline,
        params=_params(compared, pair),
        metrics=_metrics(compared, pair),
        tables={"table": compared.table},
        files={NUMBERS: numbers.encode(), **evaluations},
        notes=compared.notes,
        text=text,
        facts={"evaluations": places, "guard": guard},
        tags=_tags(guard),
        data=_data(held, role, data),
    )


def systems_of(record: Record) -> dict[str, Any]:
    """Return the evaluations of a record, by system, and by collection if there are several."""
    found: dict[str, Any] = {}
    for place in record.facts["evaluations"]:
        evaluation = from_bytes(record.files[place["path"]])
        if place["part"]:
            found.setdefault(place["system"], {})[place["part"]] = evaluation
        else:
            found[place["system"]] = evaluation
    return found


def evaluations_of(compared: ComparisonRecord) -> Held:
    """Return the evaluations of a comparison; systems that were compared as frames have none."""
    found: Held = {}
    for system, scores in compared.evaluations.items():
        parts = scores if isinstance(scores, Mapping) else {"": scores}
        found |= {
            (system, str(part)): one for part, one in parts.items() if isinstance(one, Evaluation)
        }
    return found


def _title(system: str, part: str) -> str:
    return f"{system} on {part}" if part else system


def _tags(guard: Mapping[str, Any]) -> dict[str, str]:
    if not guard:
        return {}
    standing = _CONFIRMATORY if guard["standing"] == _CONFIRMATORY else "exploratory"
    return {
        "standing": standing,
        "guard.ledger": str(guard["ledger"]),
        "guard.head": str(guard["head"]),
    }


def _data(held: Held, role: str, data: Any) -> tuple[LoggedData, ...]:
    if isinstance(data, LoggedData):
        return (data,)
    found: dict[str, LoggedData] = {}
    for (_, part), evaluation in held.items():
        is_name = data is None or isinstance(data, str)
        given = (" ".join(filter(None, (data, part))) or None) if is_name else data
        found.setdefault(evaluation.judgments_digest, data_of(evaluation, role, given))
    return tuple(found.values())


def compared_pair(compared: ComparisonRecord) -> tuple[str, str] | None:
    """Return baseline and system of the differences that are metrics; None if there is no pair, or no one to choose."""
    columns = compared.table[["baseline", "system"]].astype(str)
    pairs = list(dict.fromkeys(columns.itertuples(index=False, name=None)))
    by_system = {system: (baseline, system) for baseline, system in pairs}
    if compared.settings.baseline is None or len(pairs) < 2:
        return pairs[0] if len(pairs) == 1 else None
    return next((by_system[system] for system in best_first(compared) if system in by_system), None)


def _params(compared: ComparisonRecord, pair: tuple[str, str] | None) -> dict[str, str]:
    asked = compared.settings
    frame = compared.means if compared.table.empty else compared.table
    systems = [] if frame is None else [*dict.fromkeys(frame["system"].astype(str))]
    measures = [] if frame is None else dict.fromkeys(frame["measure"].astype(str))
    baselines = compared.table["baseline"].astype(str).tolist()
    first, system = pair or (asked.baseline, systems[0] if len(systems) == 1 else None)
    every = dict.fromkeys([*(baselines if asked.baseline is None else []), *systems])
    shown = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..." for name in every]
    params = {
        "system": system,
        "baseline": first,
        "systems": ", ".join(shown),
        "measures": ", ".join(measures),
    }
    params |= {"test": asked.test, "correction": asked.correction, "claim": asked.claim}
    params |= {"margin": repr(asked.margin)} if asked.margin else {}
    params |= {} if asked.unit == "query" else {"unit": asked.unit}
    if frame is not None and asked.member:
        params["groups"] = asked.sized(int(frame["n_queries"].iloc[0]))
    return {name: value for name, value in params.items() if value is not None}


def difference_metrics(
    compared: ComparisonRecord, pair: tuple[str, str] | None
) -> dict[str, float]:
    """Return the differences of a pair, their adjusted p-values and intervals as metrics; None has no metrics."""
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
    """Return metrics by name. Charts have a section for all that has the same text before the last slash."""
    held = evaluations_of(compared).values()
    keys = {
        name: measure.key
        for one in held
        for name, measure in zip(one.measure_names, one.measures, strict=True)
    }
    values: dict[str, float] = {}
    for (
        column,
        end,
    ) in (
        ends.items()
    ):  # a measure of a user may have the name of an end: it stays, as it comes first
        for measure, part, value in zip(rows["measure"], rows["part"], rows[column], strict=True):
            steps = [what, part, f"{keys.get(measure, measure)}{end}"]
            values.setdefault("/".join(filter(None, steps)), float(value))
    return values
