"""Descriptions of a run in Markdown, its tables and its pages. Names come from outside, and are escaped.

Of itself MLflow's table of runs shows no metric. A view that was saved for all, which is a tag of
the experiment, does: it stands in the menu "Views" of the page, and `run_names.VIEW_ADDRESS` opens it.

Delivery draws tables and pages from the files that hold the numbers of a run, when it sends an
upload and again at a resend: the numbers are safe on disk by then.

Tables have the layout of `mlflow.log_table`: MLflow shows them beside the artifact tree and across
runs. Pages are those of `rankeval.report`, one static HTML file each.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rankeval.comparison import Comparison
from rankeval.evaluation import Evaluation, from_bytes
from rankeval.evaluation.result import worst_first
from rankeval.io.texts_by_id import as_texts
from rankeval.report import report_for_evaluation, report_for_judging
from rankeval.report.queries import QueryTable, TextTable
from rankeval_mlflow.run_names import MAX_TAG, short_name

NAME = "Rankings"
# Measures that have a column. A tag of an experiment holds 5,000 characters.
MOST = 12

_LONGEST = 100
_OTHERS = ("params.`system`", "attributes.`Dataset`", "attributes.`Models`")


# Rows of a table of queries; the evaluation among the artifacts has all.
MOST_QUERIES = 1000

REPORT = "report.html"
QUERIES = "queries.json"
RANKERS = "rankers.json"
NEEDS, QUERY_TABLE = "needs", "query_table"  # options of drawings
Drawing = Callable[[bytes, Mapping[str, Any]], dict[str, bytes]]


def with_sections(note: str, sections: Mapping[str, str]) -> str:
    """Insert or replace our sections in the description of a run; the text of the user stays."""
    for key, text in sections.items():
        start = f"<!-- rankeval {key} -->"
        end = f"<!-- /rankeval {key} -->"
        block = f"{start}\n\n{text}\n\n{end}"
        if len(block) > MAX_TAG // 2:
            first = text.split("\n\n", maxsplit=1)[0][:500]
            block = f"{start}\n\n{first} The table is long: see the report among the artifacts.\n\n{end}"
        before, mark, rest = note.partition(start)
        after = rest.partition(end)[2]
        joined = f"{before}{block}{after}" if mark else f"{note}\n\n{block}".lstrip()
        if len(joined) <= MAX_TAG:
            note = joined
    return note


def with_measures(
    before: str | None, keys: Sequence[str], now_ms: int, params: Sequence[str]
) -> str | None:
    """Return the saved view with columns for measures and parameters; None if it needs no change, or is not ours."""
    wanted = [f"metrics.`{key}`" for key in keys if len(key) <= _LONGEST]
    param_columns = [f"params.`{name}`" for name in params if len(name) <= _LONGEST]
    try:
        held = _columns(before) if before else []
    except (ValueError, LookupError, TypeError):
        return None
    shown = [column for column in held if column.startswith("metrics.")]
    columns = [*dict.fromkeys([*shown, *wanted])][:MOST]
    others = [column for column in held if column not in shown] if held else [*_OTHERS]
    room = max(0, len(_OTHERS) + MOST - len(others))
    chosen = [
        *columns,
        *others,
        *[name for name in dict.fromkeys(param_columns) if name not in others][:room],
    ]
    if not columns or set(chosen) == set(held):
        return None
    state = json.dumps({"selectedColumns": chosen})
    return json.dumps({"name": NAME, "createdAt": now_ms, "updatedAt": now_ms, "state": state})


def _columns(value: str) -> list[str]:
    state: dict[str, Any] = json.loads(json.loads(value)["state"])
    return [str(column) for column in state["selectedColumns"]]


def worst_first_table(evaluation: Evaluation) -> bytes:
    """Return the queries that a ranking can change, with all scores, the worst first, at most `MOST_QUERIES`."""
    worst = worst_first(evaluation, evaluation.measure_names[0])[:MOST_QUERIES]
    queries = np.asarray(evaluation.queries, dtype=object)[worst]
    scores = dict(zip(evaluation.measure_names, evaluation.scores.T, strict=True))
    numbers = {
        name: values[worst] for name, values in {**scores, **evaluation.facts.query_counts}.items()
    }
    return log_table(
        pd.DataFrame({"query": [short_name(str(query)) for query in queries], **numbers})
    )


def query_table_note(n_telling: int, left_out: str, path: str) -> str:
    """Return the sentences that say what a table of queries holds."""
    some = (
        "The queries, the worst first"
        if n_telling <= MOST_QUERIES
        else f"The {MOST_QUERIES:,} worst queries"
    )
    note = f"{some}: {path} among the artifacts; evaluation.parquet beside it has all."
    return f"{note} {left_out}".rstrip()


def log_table(frame: pd.DataFrame) -> bytes:
    """Return a table in the layout of `mlflow.log_table`: names of columns, and rows; nan and infinity as null."""
    return frame.to_json(orient="split", index=False, double_precision=6).encode()


def render(kind: str, content: bytes, options: Mapping[str, Any]) -> dict[str, bytes]:
    """Return drawn files by path."""
    return KINDS[kind](content, options)


def _evaluation(content: bytes, options: Mapping[str, Any]) -> dict[str, bytes]:
    evaluation = from_bytes(content)
    if not evaluation.n_queries:
        return {}
    drawn = {QUERIES: worst_first_table(evaluation)} if options.get("table", True) else {}
    if options.get("report", True):
        words = {name: options[name] for name in ("role", "said", NEEDS) if name in options}
        slices = TextTable(**options["slices"]) if "slices" in options else None
        drawn[REPORT] = report_for_evaluation(evaluation, **words, slices=slices).encode()
    return drawn


def _comparison(content: bytes, options: Mapping[str, Any]) -> dict[str, bytes]:
    comparison = Comparison.from_json(content.decode())
    baseline = comparison.settings.baseline
    title = "Comparison" if baseline is None else f"Comparison against {baseline}"
    queries = None
    if QUERY_TABLE in options:
        held = options[QUERY_TABLE]
        queries = QueryTable(**{**held, "first": TextTable(**held["first"])})
    page = report_for_judging([comparison], title=title, needs=options.get(NEEDS), queries=queries)
    return {REPORT: page.encode()}


def with_needs(drawings: Sequence[Any], needs: Any) -> tuple[Any, ...]:
    """Return drawings whose pages have the texts of queries beside their ids."""
    texts = {str(query): text for query, text in as_texts(needs, NEEDS, "qid").items()}
    return tuple(
        replace(drawing, options={**drawing.options, NEEDS: texts}) for drawing in drawings
    )


def _rankers(content: bytes, _options: Mapping[str, Any]) -> dict[str, bytes]:
    frame = pd.read_csv(io.BytesIO(content))
    return {RANKERS: log_table(frame)}


# What can be drawn: by kind, the function of content and options.
KINDS: dict[str, Drawing] = {
    "evaluation": _evaluation,
    "comparison": _comparison,
    "rankers": _rankers,
}
