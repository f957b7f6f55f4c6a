"""Pack a Comparison: its numbers whole, the differences as metrics, and what a reader sees.

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

Names of systems may be of any length. Files hold them whole; people see short ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rankeval
from rankeval.evaluation.result import to_bytes
from rankeval.tracking import LoggedData
from rankeval_mlflow.delivery.payload import Node, Rendering
from rankeval_mlflow.layout import (
    GUARD_HEAD,
    GUARD_LEDGER,
    HEADLINE,
    KIND,
    MAX_NAME,
    STANDING,
    checked_role,
    folder,
    param_text,
    safe_name,
    safe_names,
    sha256,
    short_name,
)
from rankeval_mlflow.packing.evaluation import dataset_use, judged_data, keys_of
from rankeval_mlflow.views import comparison_section, shown_comparison

if TYPE_CHECKING:
    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation

MOST_AGAINST, MOST_PAIRS = 2500, 250
"""Rows of the table whose numbers become metrics, against a baseline and of all pairs: four metrics each."""

_SIGNS = ("difference", "p_adjusted", "ci_low_adjusted", "ci_high_adjusted")
_SHORT = 40
_DIVISION_SLASH = "\u2215"


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
    checked_role(name, "name")
    role = checked_role(role or ("test" if comparison.standing else "dev"))
    held = _held(comparison, folder(name))
    whole = comparison.to_json()
    shown = shown_comparison(whole)
    numbers, left_out = (
        (_means(comparison, held, name), "") if comparison.table.empty else _differences(comparison, held, name)
    )
    guard = _guard(comparison)
    return Node(
        name=name,
        label=name,
        params=_params(comparison, shown),
        metrics=numbers,
        tags={KIND: "comparison", _tag(HEADLINE, name): param_text(shown.headline), **_guard_tags(guard, name)},
        facts={name: _facts(comparison, held, guard, left_out)},
        datasets=tuple(dataset_use(each) for each in _data(held, role, data)),
        files={
            f"{folder(name)}/comparison.json": whole.encode(),
            f"{folder(name)}/table.csv": comparison.table.to_csv(index=False).encode(),
            **{each.path: to_bytes(each.evaluation) for each in held},
        },
        renderings=_drawings(name) if report else (),
        sections={name: comparison_section(shown, left_out)},
    )


def _drawings(name: str) -> tuple[Rendering, ...]:
    return (Rendering("comparison", f"{folder(name)}/comparison.json", into=folder(name)),)


def _held(comparison: Comparison, inside: str) -> list[_Held]:
    """Return the evaluations of a comparison, on each of several collections; systems given as frames have none."""
    from rankeval.evaluation import Evaluation

    found = []
    for system, scores in comparison.evaluations.items():
        parts = scores if isinstance(scores, Mapping) else {"": scores}
        found += [(system, str(part), one) for part, one in parts.items() if isinstance(one, Evaluation)]
    names = _file_names([f"{system} on {part}" if part else system for system, part, _ in found])
    return [_Held(*each, f"{inside}/evaluations/{name}.parquet") for each, name in zip(found, names, strict=True)]


def _file_names(titles: list[str]) -> list[str]:
    """Return a short name of a file for each title; no two are equal, not even where case is ignored."""
    chosen: dict[str, str] = {}
    for title in titles:
        name = plain = safe_name(short_name(title)).replace("/", "_")
        while name.lower() in chosen:
            name = f"{plain}_{sha256(f'{name} {title}'.encode())[:8]}"
        chosen[name.lower()] = name
    return list(chosen.values())


def _data(held: list[_Held], role: str, name: LoggedData | str | None) -> list[LoggedData]:
    """Return each data set that was evaluated, once; those of collections are told apart by them."""
    if isinstance(name, LoggedData):
        return [name]
    found: dict[str, LoggedData] = {}
    for each in held:
        called = " ".join(filter(None, (name, each.part))) or None
        found.setdefault(each.evaluation.judgments_digest, judged_data(each.evaluation, role, called))
    return list(found.values())


def _params(comparison: Comparison, shown: Comparison) -> dict[str, str]:
    frame, baseline = shown.means if shown.table.empty else shown.table, shown.settings.baseline
    named = [] if frame is None else dict.fromkeys(frame["system"].astype(str))
    pairs = dict.fromkeys([*(shown.table["baseline"].astype(str) if baseline is None else ()), *named])
    margin = {"margin": repr(comparison.settings.margin)} if comparison.settings.margin else {}
    return {
        **({"baseline": baseline} if baseline is not None else {}),
        "systems": param_text(", ".join(pairs)),
        "measures": param_text(", ".join(dict.fromkeys([] if frame is None else frame["measure"].astype(str)))),
        "test": comparison.settings.test,
        "correction": comparison.settings.correction,
        "claim": comparison.settings.claim,
        **margin,
    }


def _differences(comparison: Comparison, held: list[_Held], name: str) -> tuple[dict[str, float], str]:
    """Return differences, adjusted p-values and intervals as metrics, without nan; and a sentence on those left out.

    Rows over all queries come before those of parts, and rows of the best system before others.
    """
    from rankeval.comparison.record import part_of_row

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
    return _finite(values), said


def _leader(comparison: Comparison) -> str:
    """Return the system with the most by the main measure in any row."""
    from rankeval.comparison.record import main_measure
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
        systems = " vs ".join(short_name(one, most) for one in pair).replace("/", _DIVISION_SLASH)
        path = "/".join(filter(None, (name, short_name(part, most), f"{systems} {key} {sign}")))
        if len(path) <= MAX_NAME:
            break
    return path


def _means(comparison: Comparison, held: list[_Held], name: str) -> dict[str, float]:
    """Return the means of a single system and the ends of their intervals as metrics, without nan."""
    if comparison.means is None:
        return {}
    keys = {label: key for each in held for label, key in keys_of(each.evaluation).items()}
    rows = comparison.means.to_dict("records")
    return _finite(
        {
            _path(name, "", (str(row["system"]),), keys.get(row["measure"], row["measure"]), end): float(row[end])
            for row in rows
            for end in ("mean", "ci_low", "ci_high")
        }
    )


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    names = safe_names(metrics)
    return {names[name]: value for name, value in metrics.items() if math.isfinite(value)}


def _guard(comparison: Comparison) -> dict[str, str]:
    """Return what the notes say of the guard; nothing if no guard opened the comparison."""
    from rankeval.report import GuardFacts

    facts = GuardFacts.of(comparison)
    return {} if facts is None else facts.tags()


def _guard_tags(guard: Mapping[str, str], name: str) -> dict[str, str]:
    return {_tag(key, name): param_text(guard[key]) for key in (STANDING, GUARD_LEDGER, GUARD_HEAD) if key in guard}


def _tag(key: str, name: str) -> str:
    """Return the name of a tag of a comparison: the plain one for the comparison without a name of its own."""
    return key if name == "comparison" else f"rankeval.{name}.{key.removeprefix('rankeval.')}"


def _facts(comparison: Comparison, held: list[_Held], guard: Mapping[str, str], left_out: str) -> dict[str, Any]:
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
