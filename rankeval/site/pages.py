"""Lay out the pages of a site: one index with the leaderboards, and a light page for each run.

Names, ids and sentences come from strangers' records. Each text of a page passes through `_plain`:
no secret of an address, no control character, and no more than `MOST_LETTERS`; then the template
engine escapes it. The policy of a page allows the one script that sorts the tables by its hash, and
nothing else. Links lead to pages of the site, or to a report that exists beside its record.

The trap: escaping makes a hostile text up to ten times as long. So a page that is too large is laid
out again with fewer rows, until it is at most `MOST_BYTES`; it says how many rows it leaves out.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import ChoiceLoader, PackageLoader
from markupsafe import Markup, escape

from rankeval._secrets import hidden
from rankeval._visible import visible
from rankeval.collection.convention import RULE_WORDS
from rankeval.measures import direction
from rankeval.model_selection.parameters import shown_text
from rankeval.render.tables import interval, number, p_value
from rankeval.report.html import TEMPLATES, title_of
from rankeval.report.queries import allowing
from rankeval.shelf.record import BESIDE_ENDS, Record
from rankeval.site.gathering import Project, Run, value_of
from rankeval.site.ranking import MOST_RANKED, Board, BoardFigures, Promotion

MOST_BYTES = 25_000
"""Size of the page of a run."""

MOST_LETTERS = 300
"""Letters of a text; a longer one is cut."""

_LETTERS_A_ROW = 50
"""Letters of the sentence on a run's own page for each row of its lists: it shrinks with them."""

_FOLDERS = re.compile(
    r"""(?:(?<![\w/:.<])(?:/|[A-Za-z]:[\\/])|(?<=:///)/?)(?:[^\s/\\"'<>]+[\\/])+"""
)
"""The folders of an absolute path, which are nobody else's business."""

_ROWS = (40, 12, 4, 1)
"""Rows of each list of a run's page, tried in turn until the page is small enough."""

_WIDTH, _MARGIN = 120, 4  # of a drawn interval

Compared = Sequence[tuple[Board, BoardFigures]]
Row = tuple[str, Board, BoardFigures]
"""A row of a leaderboard by its name."""


def _plain(value: Any) -> Any:
    """Return a text of a template as it may be shown; marked-up text stays as it is."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return _shown(value, MOST_LETTERS)


def _shown(value: str, most: int) -> str:
    text = _FOLDERS.sub("", hidden(value))
    cut = text if len(text) <= most else f"{text[:most]}..."
    return visible(cut, keep="\n\t")


def _whole(value: str, rows: int) -> Markup:
    """Return the sentence of a run for its own page."""
    return escape(_shown(value, _LETTERS_A_ROW * rows))


@dataclass(frozen=True)
class Bar:
    """An interval as it is drawn: places within `_WIDTH`, None for one that is not finite."""

    mid: float | None
    low: float | None = None
    high: float | None = None


def _bars(values: Sequence[tuple[float, ...]]) -> list[Bar]:
    """Return the drawings of means with intervals on one scale."""
    finite = [end for value in values for end in value if math.isfinite(end)] or [0.0]
    low, width = min(finite), max(finite) - min(finite) or 1.0

    def place(value: float) -> float | None:
        share = (value - low) / width
        return round(_MARGIN + share * (_WIDTH - 2 * _MARGIN), 1) if math.isfinite(share) else None

    return [Bar(*map(place, value)) for value in values]


def _day(began: float | None) -> str:
    return "" if began is None else datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%d")


def _ends(low: float, high: float, *, sign: bool = False) -> str:
    return "" if math.isnan(low) or math.isnan(high) else interval(low, high, sign=sign)


def _sort(value: float) -> str:
    """Return a number as the script sorts by it; "" stands last."""
    return f"{value:.9g}" if math.isfinite(value) else ""


def _numbers(record: Record) -> dict[str, tuple[float, ...]]:
    """Return the numbers of a record by name, each with the ends of its interval or nan."""
    names = [name for name in record.metrics if not name.endswith(BESIDE_ENDS)]
    return {name: value_of(record, name) for name in names}


def _settings(record: Record) -> list[tuple[str, str]]:
    return [(name, shown_text(name, value)) for name, value in record.params.items()]


_PAGES = TEMPLATES.overlay(
    loader=ChoiceLoader([PackageLoader("rankeval.site"), PackageLoader("rankeval.report")]),
    finalize=_plain,
)
_PAGES.filters = {
    **TEMPLATES.filters,
    "decimal": number,
    "p_value": p_value,
    "day": _day,
    "title": title_of,
    "whole": _whole,
}
_PAGES.globals = {
    **TEMPLATES.globals,
    "bars": _bars,
    "direction": direction,
    "ends": _ends,
    "most_ranked": MOST_RANKED,
    "numbers_of": _numbers,
    "rules": RULE_WORDS,
    "settings_of": _settings,
    "sort": _sort,
}


@cache
def _script() -> str:
    return files("rankeval.site").joinpath("templates", "sort.js").read_text(encoding="utf-8")


def index_page(
    title: str, project: Project, compared: Compared, promotions: Sequence[Promotion]
) -> str:
    """Return the page with the leaderboards."""
    shown = {entry.run.place for entry in project.entries}
    decided = [run for run in project.runs if run.guard or run.is_decision]
    decided.sort(key=lambda run: run.began or 0.0)
    shown |= {run.place for run in decided}
    return _PAGES.get_template("index.html.jinja").render(
        title=title,
        project=project,
        compared=compared,
        promotions=[promotion for promotion in promotions if promotion.has_moved],
        decided=decided,
        unranked=[run for run in project.runs if run.place not in shown],
        script=_script(),
        script_hash=allowing(_script()),
    )


def run_page(
    run: Run,
    rows: Sequence[Row],
    pages: Mapping[str, str],
    names: Mapping[str, str],
    public: Path,
    *,
    queries: bool,
) -> str:
    """Return the page of a run: its rows of leaderboards, pages by place, and names of data."""
    children = {name: pages.get(f"{run.place}/children/{name}") for name in run.record.children}
    template = _PAGES.get_template("run.html.jinja")
    views = {title: _link(path, public) for title, path in run.views.items()}
    page = ""
    for most in _ROWS:
        page = template.render(
            run=run,
            compared=rows,
            children=children,
            names=names,
            views=views,
            queries=queries,
            most=most,
            script_hash="'none'",
        )
        if len(page.encode(errors="backslashreplace")) <= MOST_BYTES:
            break
    return page


def _link(path: Path, public: Path) -> str:
    relative = os.path.relpath(path, public / "runs")
    return quote(Path(relative).as_posix().encode(errors="surrogateescape"))
