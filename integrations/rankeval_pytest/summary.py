"""What the tests checked: a table for the terminal, and the Markdown for a page of the CI service.

The Markdown has names from tests and files, so all of it is escaped. The failed checks come first,
and then what fits: a comment on GitHub has 65,536 characters at most, and a step summary 1 MiB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import accumulate

import pandas as pd

from rankeval._checks import count
from rankeval._visible import markdown, visible
from rankeval.render.tables import Table

_COLUMNS = ["test", "measure", "queries", "gain", "interval", "verdict"]

_ROOM = 20_000
"""Characters for the rows of the table, and as many for the failures and the notes."""


def table_of(rows: Sequence[Mapping[str, str]]) -> Table:
    """Return the table of what was checked; in Markdown the verdict of a failed check is bold."""
    frame = pd.DataFrame(rows, columns=_COLUMNS)
    emphasis = pd.DataFrame("", frame.index, _COLUMNS)
    emphasis["verdict"] = ["best" if row["failure"] else "" for row in rows]
    return Table(frame, emphasis=emphasis, numeric=("queries", "gain"))


def to_markdown(rows: Sequence[Mapping[str, str]], notes: Sequence[str], n_failed: int) -> str:
    """Return the summary as Markdown, short enough for a comment."""
    rows = sorted(rows, key=lambda row: not row["failure"])
    table = table_of(rows).to_markdown().splitlines() if rows else []
    failures = [_details(row) for row in rows if row["failure"]]
    checked = (
        f"{len(failures):,} of {count(len(rows), 'check')} failed"
        if rows
        else "Nothing was checked"
    )
    parts = [f"### rankeval\n\n**{checked}**; pytest: {count(n_failed, 'test')} failed."]
    for thing, pieces in (
        ("row", table),
        ("failure", failures),
        ("note", [f"* {markdown(note)}" for note in notes]),
    ):
        fit = sum(size <= _ROOM for size in accumulate(len(piece) + 1 for piece in pieces))
        left = (
            [f"\n{count(len(pieces) - fit, f'more {thing}')} left out"] if fit < len(pieces) else []
        )
        parts += ["", *pieces[:fit], *left]
    return "\n".join(parts).rstrip() + "\n"


def _details(row: Mapping[str, str]) -> str:
    title, text = (
        escape(visible(part, keep="\n"))
        for part in (f"{row['test']}: {row['measure']}", row["failure"])
    )
    return f"<details><summary>{' '.join(title.split())}</summary>\n\n<pre>\n{text}\n</pre>\n</details>"
