"""Frames as tables in text, Markdown, HTML and LaTeX, with everything that needs escaping escaped."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from rankeval.measures import greater_is_better

if TYPE_CHECKING:
    import pandas as pd

Format = str | Callable[[Any], str]

DASH = "\N{EN DASH}"
MINUS = re.compile(r"(?<![\w.-])-(?=[\d\N{INFINITY}])")
LATEX_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "\N{MINUS SIGN}": r"$-$",
        "\N{EN DASH}": "--",
        "±": r"$\pm$",
        "∞": r"$\infty$",
    }
)
MARKDOWN_ESCAPES = str.maketrans({character: f"\\{character}" for character in r"\`*_[]<>|#"} | {"\n": " "})
STYLE = (
    "<style>.rankeval-table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".rankeval-table caption{text-align:left;padding:.3em 0}"
    ".rankeval-table th,.rankeval-table td{padding:.2em .7em;text-align:left;white-space:nowrap}"
    ".rankeval-table .num{text-align:right}.rankeval-table thead th{border-bottom:1px solid}"
    ".rankeval-table .second{text-decoration:underline}.rankeval-table .best{font-weight:bold}</style>"
)


@dataclass(frozen=True)
class Cell:
    """One cell: its text, whether it is a number, and its emphasis ("", "best" or "second")."""

    text: str
    number: bool = False
    emphasis: str = ""


def number(value: float, *, digits: int = 4, sign: bool = False) -> str:
    """Write a number; nan as a dash, infinity as its sign."""
    if math.isnan(value):
        return DASH
    text = f"{value:{'+' if sign else ''}.{digits}f}" if math.isfinite(value) else f"{'-' if value < 0 else ''}∞"
    # A rounded -0.00004 is 0, neither below nor above it.
    return text.lstrip("+-") if text.strip("+-0.") == "" else text


def signed(value: float) -> str:
    """Write a difference: `number` with its sign."""
    return number(value, sign=True)


def p_value(value: float) -> str:
    """Write a p-value with four digits, never as 0; nan (no p-value is given) as a dash."""
    return "< 0.0001" if value < 0.0001 else number(value)


def best_and_second(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Mark the best value of each column as "best" and the next distinct one as "second".

    Parameters
    ----------
    frame : DataFrame
        Numbers, a row per system.
    columns : sequence of str
        Columns to mark: those of measures of which less is better go by the lowest value.

    Returns
    -------
    DataFrame
        Shaped like `frame`, of "best", "second" and "".
    """
    marks = frame.astype(object).copy()
    marks.loc[:, :] = ""
    for column in columns:
        ranks = frame[column].rank(method="dense", ascending=not greater_is_better(column))
        marks.loc[ranks == 1, column] = "best"
        marks.loc[ranks == 2, column] = "second"
    return marks


def to_text(
    frame: pd.DataFrame,
    *,
    formats: Mapping[str, Format] | None = None,
    suffixes: pd.DataFrame | None = None,
    caption: str = "",
    notes: Sequence[str] = (),
) -> str:
    """Render a frame as plain text for a terminal.

    Parameters
    ----------
    frame : DataFrame
        The columns in the order shown; the index is not shown.
    formats : mapping of str to str or callable, optional
        Column -> format specification or function; numbers have four decimals by default.
    suffixes : DataFrame, optional
        Shaped like `frame`: text put behind a cell's value, such as a star.
    caption : str, optional
        A line above the table.
    notes : sequence of str
        Lines below the table.

    Returns
    -------
    str
        Without a line break at its end.
    """
    rows = _cells(frame, formats, suffixes, None)
    lines = [caption] if caption else []
    lines += _drawn([str(column) for column in frame.columns], rows)
    return "\n".join([*lines, *(f"* {note}" for note in notes)])


def rows_to_text(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Render rows of values as `to_text` renders a frame.

    Parameters
    ----------
    header : sequence of str
        Name of each column.
    rows : sequence of sequence
        Its values, row by row.

    Returns
    -------
    str
        Without a line break at its end.
    """
    return "\n".join(
        _drawn(header, [[Cell(_formatted(value, None), _is_number(value)) for value in row] for row in rows])
    )


def _drawn(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Return the lines of a table for a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for place, column in enumerate(header):
        right = any(row[place].number for row in rows)
        table.add_column(Text(column), justify="right" if right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell.text) for cell in row))
    out = StringIO()
    Console(file=out, width=10_000, color_system=None).print(table)
    return [line.rstrip() for line in out.getvalue().rstrip("\n").splitlines()]


def to_markdown(
    frame: pd.DataFrame,
    *,
    formats: Mapping[str, Format] | None = None,
    suffixes: pd.DataFrame | None = None,
    emphasis: pd.DataFrame | None = None,
    caption: str = "",
    notes: Sequence[str] = (),
) -> str:
    """Render a frame as a Markdown table; best in bold, second underlined.

    Parameters
    ----------
    frame, formats, suffixes, caption, notes
        As in `to_text`.
    emphasis : DataFrame, optional
        Shaped like `frame`, of "best", "second" and "".

    Returns
    -------
    str
        GitHub's flavour, without a line break at its end.
    """
    rows = _cells(frame, formats, suffixes, emphasis)
    wrappers = {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}
    header = [str(column).translate(MARKDOWN_ESCAPES) for column in frame.columns]
    rule = ["---:" if any(row[place].number for row in rows) else "---" for place in range(len(header))]
    body = [[wrappers[cell.emphasis].format(cell.text.translate(MARKDOWN_ESCAPES)) for cell in row] for row in rows]
    lines = [caption.translate(MARKDOWN_ESCAPES), ""] if caption else []
    lines += [f"| {' | '.join(row)} |" for row in (header, rule, *body)]
    lines += ["", *(f"* {note.translate(MARKDOWN_ESCAPES)}" for note in notes)] if notes else []
    return "\n".join(lines)


def to_html(
    frame: pd.DataFrame,
    *,
    formats: Mapping[str, Format] | None = None,
    suffixes: pd.DataFrame | None = None,
    emphasis: pd.DataFrame | None = None,
    caption: str = "",
    notes: Sequence[str] = (),
) -> str:
    """Render a frame as an HTML fragment that stands alone in a notebook cell.

    Parameters
    ----------
    frame, formats, suffixes, emphasis, caption, notes
        As in `to_markdown`.

    Returns
    -------
    str
        One ``div``; all text is escaped.
    """
    rows = _cells(frame, formats, suffixes, emphasis)
    numeric = [any(row[place].number for row in rows) for place in range(frame.shape[1])]
    head = "".join(
        f'<th scope="col"{_classes("num" if right else "")}>{html.escape(str(column))}</th>'
        for column, right in zip(frame.columns, numeric, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{_classes('num' if right else '', cell.emphasis)}>{_with_minus(html.escape(cell.text))}</td>"
            for cell, right in zip(row, numeric, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    below = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    below = f"<ul>{below}</ul>" if below else ""
    table = f'<table class="rankeval-table">{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f"<div>{STYLE}{table}{below}</div>"


def to_latex(
    frame: pd.DataFrame,
    *,
    formats: Mapping[str, Format] | None = None,
    suffixes: pd.DataFrame | None = None,
    emphasis: pd.DataFrame | None = None,
    caption: str = "",
    notes: Sequence[str] = (),
    label: str = "",
) -> str:
    r"""Render a frame as a LaTeX table; needs ``\usepackage{booktabs}``.

    Parameters
    ----------
    frame, formats, suffixes, emphasis, caption, notes
        As in `to_markdown`; notes end the caption.
    label : str, optional
        What ``\ref`` refers to.

    Returns
    -------
    str
        A ``table`` environment if there is a caption or a label, else the ``tabular`` alone.
    """
    rows = _cells(frame, formats, suffixes, emphasis)
    wrappers = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}
    columns = "".join("r" if any(row[place].number for row in rows) else "l" for place in range(frame.shape[1]))
    header = " & ".join(str(column).translate(LATEX_ESCAPES) for column in frame.columns)
    body = [
        " & ".join(wrappers[cell.emphasis] % _with_minus(cell.text).translate(LATEX_ESCAPES) for cell in row)
        for row in rows
    ]
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", rf"{header} \\", r"\midrule"]
    lines += [*(rf"{row} \\" for row in body), r"\bottomrule", r"\end{tabular}"]
    if not (caption or label or notes):
        return "\n".join(lines)
    words = " ".join(f"{line.rstrip('.')}." for line in (caption, *notes) if line).translate(LATEX_ESCAPES)
    above = [r"\begin{table}", r"\centering", rf"\caption{{{words}}}", *([rf"\label{{{label}}}"] if label else [])]
    return "\n".join([*above, *lines, r"\end{table}"])


def _cells(
    frame: pd.DataFrame,
    formats: Mapping[str, Format] | None,
    suffixes: pd.DataFrame | None,
    emphasis: pd.DataFrame | None,
) -> list[list[Cell]]:
    """Format every value; a column counts as numeric if its values are numbers before formatting."""
    formats = formats or {}
    rows = []
    for place in range(len(frame)):
        row = []
        for column_place, column in enumerate(frame.columns):
            value = frame.iloc[place, column_place]
            behind = "" if suffixes is None else str(suffixes.iloc[place, column_place])
            strength = "" if emphasis is None else str(emphasis.iloc[place, column_place])
            row.append(Cell(_formatted(value, formats.get(column)) + behind, _is_number(value), strength))
        rows.append(row)
    return rows


def _formatted(value: Any, how: Format | None) -> str:
    if callable(how):
        return how(value)
    if how is not None:
        return format(value, how)
    if isinstance(value, str) or not _is_number(value):
        return str(value)
    return number(value) if isinstance(value, float) else str(value)


def _with_minus(text: str) -> str:
    """Set the hyphen before a number as a minus sign."""
    return MINUS.sub("\N{MINUS SIGN}", text)


def _is_number(value: Any) -> bool:
    return not isinstance(value, str | bool) and hasattr(value, "__float__")


def _classes(*names: str) -> str:
    joined = " ".join(name for name in names if name)
    return f' class="{joined}"' if joined else ""
