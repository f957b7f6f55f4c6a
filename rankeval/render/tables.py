"""Frames as tables in text, Markdown, HTML and LaTeX, with everything that needs escaping escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any

from rankeval.measures import greater_is_better

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Template

Format = str | Callable[[Any], str]

DASH = "\N{EN DASH}"
MINUS = re.compile(r"(?<![\w.-])-(?=[\d\N{INFINITY}])")
# Our own, because pandas leaves "<", ">" and "|" as they are: TeX's default font has other characters in their places.
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
TEMPLATE = """<div>{{ style | safe }}<table class="rankeval-table">
{%- if caption %}<caption>{{ caption }}</caption>{% endif -%}
<thead><tr>
{%- for name, numeric in columns %}<th scope="col"{% if numeric %} class="num"{% endif %}>{{ name }}</th>{% endfor -%}
</tr></thead><tbody>
{%- for row in rows %}<tr>
{%- for cell in row %}
{%- set classes = (["num"] if columns[loop.index0][1] else []) + ([cell.emphasis] if cell.emphasis else []) -%}
<td{% if classes %} class="{{ classes | join(" ") }}"{% endif %}>{{ cell.text | minus }}</td>{% endfor -%}
</tr>{% endfor -%}
</tbody></table>
{%- if notes %}<ul>{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>{% endif -%}
</div>"""


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
        Columns to mark. If less is better by a measure, its lowest value is the best.

    Returns
    -------
    DataFrame
        Shaped like `frame`, of "best", "second" and "".
    """
    import pandas as pd

    marks = pd.DataFrame("", index=frame.index, columns=frame.columns)
    for column in columns:
        ranks = frame[column].rank(method="dense", ascending=not greater_is_better(column))
        marks[column] = ranks.map({1: "best", 2: "second"}).fillna("")
    return marks


@dataclass(frozen=True)
class Table:
    """A frame laid out for reading: as text, Markdown, HTML or LaTeX.

    Attributes
    ----------
    frame : DataFrame
        The columns in the order shown; the index is not shown.
    formats : mapping of str to str or callable, optional
        Column -> format specification or function; numbers have four decimals by default.
    suffixes : DataFrame, optional
        Shaped like `frame`: text put behind a cell's value, such as a star.
    emphasis : DataFrame, optional
        Shaped like `frame`, of "best" (bold), "second" (underlined) and "". Plain text leaves it out.
    caption : str, optional
        A line above the table.
    notes : sequence of str
        Lines below the table; in LaTeX they end the caption.
    """

    frame: pd.DataFrame
    formats: Mapping[str, Format] = field(default_factory=dict)
    suffixes: pd.DataFrame | None = None
    emphasis: pd.DataFrame | None = None
    caption: str = ""
    notes: Sequence[str] = ()

    def to_text(self) -> str:
        """Return plain text for a terminal, without a line break at its end."""
        rows = self._rows()
        lines = _drawn(_columns(self.frame.columns, rows), rows)
        return "\n".join([*filter(None, [self.caption]), *lines, *(f"* {note}" for note in self.notes)])

    def to_markdown(self) -> str:
        """Return a Markdown table of GitHub's flavour, without a line break at its end."""

        def line(cells: Iterable[str]) -> str:
            return f"| {' | '.join(cells)} |"

        wrappers = {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}
        rows = self._rows()
        columns = _columns(self.frame.columns, rows)
        lines = [_markdown(self.caption), ""] if self.caption else []
        lines.append(line(_markdown(name) for name, _ in columns))
        lines.append(line("---:" if numeric else "---" for _, numeric in columns))
        lines += [line(wrappers[cell.emphasis].format(_markdown(cell.text)) for cell in row) for row in rows]
        lines += ["", *(f"* {_markdown(note)}" for note in self.notes)] if self.notes else []
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return an HTML fragment that stands alone in a notebook cell: one ``div``, with all text escaped."""
        rows = self._rows()
        return _template().render(
            style=STYLE, columns=_columns(self.frame.columns, rows), rows=rows, caption=self.caption, notes=self.notes
        )

    def to_latex(self, *, label: str = "") -> str:
        r"""Return a LaTeX table; it needs ``\usepackage{booktabs}``.

        Parameters
        ----------
        label : str, optional
            Name for ``\ref``.

        Returns
        -------
        str
            A ``table`` environment if there is a caption, notes or a label, else the ``tabular`` alone.
        """
        import pandas as pd

        wrappers = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}
        rows = self._rows()
        columns = _columns(self.frame.columns, rows)
        body = [[wrappers[cell.emphasis] % _latex(with_minus(cell.text)) for cell in row] for row in rows]
        shown = pd.DataFrame(body, columns=[_latex(name) for name, _ in columns], dtype=object)
        words = " ".join(f"{line.rstrip('.')}." for line in (self.caption, *self.notes) if line)
        written = shown.style.hide(axis="index").to_latex(
            hrules=True,
            column_format="".join("r" if numeric else "l" for _, numeric in columns),
            position_float="centering" if words or label else None,
            caption=_latex(words) or None,
            label=label or None,
        )
        return str(written).rstrip("\n")

    def _rows(self) -> list[list[Cell]]:
        """Format every value. A cell counts as a number by its value, since formats may return any text."""
        formats = [self.formats.get(name) for name in self.frame.columns]
        blank = [("",) * len(formats)] * len(self.frame)
        suffixes, emphasis = (blank if part is None else _values(part) for part in (self.suffixes, self.emphasis))
        return [
            [
                Cell(_formatted(value, how) + suffix, _is_number(value), strength)
                for value, suffix, strength, how in zip(*row, formats, strict=True)
            ]
            for row in zip(_values(self.frame), suffixes, emphasis, strict=True)
        ]


def rows_to_text(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Render rows of values as `Table.to_text` renders a frame.

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
    # Without pandas, whose import takes as long as reading a million lines of a run.
    cells = [[Cell(_formatted(value, None), _is_number(value)) for value in row] for row in rows]
    return "\n".join(_drawn(_columns(header, cells), cells))


def with_minus(text: str) -> str:
    """Set the hyphen before a number as a minus sign."""
    return MINUS.sub("\N{MINUS SIGN}", text)


@cache
def _template() -> Template:
    from jinja2 import Environment

    environment = Environment(autoescape=True)
    environment.filters["minus"] = with_minus
    return environment.from_string(TEMPLATE)


def _columns(names: Iterable[Any], rows: Sequence[Sequence[Cell]]) -> list[tuple[str, bool]]:
    """Return each column's name, and whether it holds numbers, which stand at the right."""
    return [(str(name), any(row[place].number for row in rows)) for place, name in enumerate(names)]


def _drawn(columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Return the lines of a table for a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for name, numeric in columns:
        grid.add_column(Text(name), justify="right" if numeric else "left", no_wrap=True)
    for row in rows:
        grid.add_row(*(Text(cell.text) for cell in row))
    out = StringIO()
    Console(file=out, width=10_000, color_system=None).print(grid)
    return [line.rstrip() for line in out.getvalue().rstrip("\n").splitlines()]


def _values(frame: pd.DataFrame) -> Iterable[tuple[Any, ...]]:
    return frame.itertuples(index=False, name=None)


def _markdown(text: str) -> str:
    return text.translate(MARKDOWN_ESCAPES)


def _latex(text: str) -> str:
    return text.translate(LATEX_ESCAPES)


def _formatted(value: Any, how: Format | None) -> str:
    if callable(how):
        return how(value)
    if how is not None:
        return format(value, how)
    return number(value) if isinstance(value, float) else str(value)


def _is_number(value: Any) -> bool:
    return not isinstance(value, str | bool) and hasattr(value, "__float__")
