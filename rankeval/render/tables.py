"""Frames as tables in text, Markdown, HTML and LaTeX, with everything that needs escaping escaped.

A cell is a value with an emphasis, a mark set high behind it, and a rest that is neither. Numbers
of a column stay below each other although their marks differ: LaTeX and HTML leave room for the
widest ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from rankeval._checks import count, require
from rankeval._display import cut, lines_of
from rankeval._visible import markdown, visible
from rankeval.render.fitting import Strip, fitted

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Template

_RUN = ("=", "+", "-", "@", "\t", "\r", "'")
"""Spreadsheets run a text that begins so as a formula (OWASP, CSV injection); ' marks our guard."""
MINUS = re.compile(r"(?<![\w.-])-(?=[\d\N{INFINITY}])")
# Our own, because pandas leaves "<", ">" and "|" as they are: TeX's default font has other
# characters in their places.
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\N{MINUS SIGN}": r"$-$",
    "\N{EN DASH}": "--",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "†": r"$\dagger$",
    "↓": r"$\downarrow$",
    "≤": r"$\le$",
}
LATEX_ESCAPES = str.maketrans(_LATEX | {character: f"\\{character}" for character in "&%$#_{}"})
LATEX_EMPHASIS = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}
MARKDOWN_EMPHASIS = {"best": "**%s**", "second": "<u>%s</u>", "": "%s"}
STYLE = (
    "<style>.rankeval-table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".rankeval-table caption{text-align:left;padding:.3em 0}"
    ".rankeval-table th,.rankeval-table td{padding:.2em .7em;text-align:left;white-space:nowrap}"
    ".rankeval-table .num{text-align:right}.rankeval-table thead th{border-bottom:1px solid}"
    ".rankeval-table .second{text-decoration:underline}.rankeval-table .best{font-weight:bold}"
    ".rankeval-table sup{display:inline-block;text-align:left;line-height:1}"
    ".rankeval-table .tail{display:inline-block;text-align:left;white-space:pre}</style>"
)
TEMPLATE = """<div>{{ style | safe }}<table class="rankeval-table">
{%- if caption %}<caption>{{ caption }}</caption>{% endif -%}
<thead><tr>
{%- for name, numeric in columns %}<th scope="col"{% if numeric %} class="num"{% endif %}>{{ name }}</th>{% endfor -%}
</tr></thead><tbody>
{%- for row in rows %}<tr>
{%- for cell in row -%}
<td{% if columns[loop.index0][1] %} class="num"{% endif %}>
{%- if cell.emphasis %}<span class="{{ cell.emphasis }}">{{ minus(cell.text) }}</span>
{%- else %}{{ minus(cell.text) }}{% endif -%}
{%- set mark, tail = widest[loop.index0] -%}
{%- if mark %}<sup style="min-width:{{ mark | length }}ch">{{ cell.mark }}</sup>{% endif -%}
{%- if tail %}<span class="tail" style="min-width:{{ tail | length }}ch">{{ minus(cell.tail) }}</span>{% endif -%}
</td>{% endfor -%}
</tr>{% endfor -%}
</tbody></table>
{%- if notes %}<ul>{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>{% endif -%}
</div>"""


def guarded(text: str) -> str:
    """Return a text for a cell of CSV, with ' before one that a spreadsheet would run as a formula.

    Of a text that begins with ' it is doubled, so that no two texts give the same cell.
    """
    return f"'{text}" if text.startswith(_RUN) else text


def unguarded(cell: str) -> str:
    """Return the text of a cell that is `guarded`, even if a spreadsheet took the guard away."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_RUN) else cell


def with_minus(text: str) -> str:
    """Set the hyphen before a number as a minus sign."""
    return MINUS.sub("\N{MINUS SIGN}", text)


def markdown_cell(cell: Cell) -> str:
    """Write a cell in Markdown, which has no way to leave room for a mark."""
    high = f"<sup>{markdown(cell.mark)}</sup>" if cell.mark else ""
    return MARKDOWN_EMPHASIS[cell.emphasis] % markdown(cell.text) + high + markdown(cell.tail)


def latex(text: str) -> str:
    """Escape text for LaTeX; line breaks become spaces: an empty line would end a paragraph."""
    return visible(" ".join(text.splitlines())).translate(LATEX_ESCAPES)


def latex_cell(cell: Cell, widest: tuple[str, str]) -> str:
    """Write a cell in LaTeX; ``widest`` are the widest mark and tail of its column."""
    value = LATEX_EMPHASIS[cell.emphasis] % latex(with_minus(cell.text))
    (widest_mark, widest_tail), tail = widest, cell.tail
    # An invisible rest of the widest mark and tail stands behind the cell's own.
    marks = cell.mark, widest_mark[len(cell.mark) :]
    high, high_rest = (rf"\textsuperscript{{{latex(part)}}}" if part else "" for part in marks)
    room = rf"\phantom{{{high_rest}}}" if high_rest else ""
    rest = "0" * (len(widest_tail) - len(tail)) if tail else latex(widest_tail)
    room_behind = rf"\phantom{{{rest}}}" if rest else ""
    return value + high + room + latex(with_minus(tail)) + room_behind


@cache
def _template() -> Template:
    from jinja2 import Environment

    return Environment(autoescape=True).from_string(TEMPLATE)


Format = str | Callable[[Any], str]

DASH = "\N{EN DASH}"
MOST_CAPTION = 4
"""Lines of a caption, if the number of lines is limited."""
MOST_DIGITS = 6
"""Decimals shown at most, if their number follows from the uncertainty."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    number: bool = False
    emphasis: str = ""  # "", "best" or "second"
    mark: str = ""  # Set high behind the text
    tail: str = ""  # Behind text and mark


def number(value: float, *, digits: int = 4, sign: bool = False) -> str:
    """Write a number; nan as a dash, infinity as its sign."""
    if math.isnan(value):
        return DASH
    kind = f"{'+' if sign else ''}.{digits}{'f' if abs(value) < 1e15 else 'g'}"
    text = format(value, kind).replace("+inf", "∞").replace("inf", "∞")
    # A rounded -0.00004 is 0, neither below nor above it.
    return text.lstrip("+-") if text.strip("+-0.") == "" else text


def interval(low: float, high: float, *, digits: int = 4, sign: bool = False) -> str:
    """Write an interval; a dash if an end is nan or both are infinite, because then there is none.

    Examples
    --------
    >>> interval(-0.1, 0.25), interval(0.01, math.inf, sign=True), interval(-math.inf, math.inf) == DASH
    ('[-0.1000, 0.2500]', '[+0.0100, ∞]', True)
    """
    if math.isnan(low) or math.isnan(high) or (low == -math.inf and high == math.inf):
        return DASH
    start, end = (number(value, digits=digits, sign=sign) for value in (low, high))
    return f"[{start}, {end}]"


signed: partial[str] = partial(number, sign=True)
"""Write a difference: `number` with its sign."""


def decimals(largest: float) -> int:
    """Return 4, or beyond 10,000 or below .001 the decimals for four digits of the largest.

    Below 1e-6 they would be many: `telling` then gives two digits and an exponent.

    Examples
    --------
    >>> decimals(0.7), decimals(0.00021), decimals(1.2e8)
    (4, 7, 0)
    """
    is_usual = 0.001 <= largest < 10_000 or not largest > 1e-6
    return 4 if is_usual else digits_for([largest], significant=4)


def telling(value: float, *, sign: bool = False, least: float = 0.0, digits: int = 4) -> str:
    """Write a number with its decimals, or with two significant digits if it would seem to be 0.

    Up to ``least`` it is 0.

    Examples
    --------
    >>> telling(0.0312), telling(-3e-7, sign=True), telling(3e-17, least=1e-12)
    ('0.0312', '-3e-07', '0.0000')
    """
    text = number(value, digits=digits, sign=sign)
    if text.strip("0.") or not abs(value) > least:
        return text
    return f"{value:{'+' if sign else ''}.2g}"


def p_value(value: float) -> str:
    """Write a p-value with four digits, never as 0; nan (no p-value is given) as a dash."""
    return "< 0.0001" if value < 0.0001 else number(value)


def digits_for(errors: Iterable[float], *, default: int = 4, significant: int = 2) -> int:
    """Return the decimals at which the largest of the standard errors has two digits.

    Examples
    --------
    >>> digits_for([0.012, 0.041]), digits_for([0.0042]), digits_for([35.0])
    (3, 4, 0)
    """
    known = [error for error in errors if math.isfinite(error) and error > 0]
    if not known:
        return default
    # Rounded first: .0996 is .10 to two digits.
    exponent = int(f"{max(known):.1e}".partition("e")[2])
    return min(max(significant - 1 - exponent, 0), MOST_DIGITS * significant // 2)


@dataclass(frozen=True)
class Table:
    """A frame laid out for reading: as text, Markdown, HTML or LaTeX."""

    frame: pd.DataFrame  # The columns in the order shown; the index is not shown
    # Column -> format specification or function; numbers have four decimals by default.
    formats: Mapping[str, Format] = field(default_factory=dict)
    # Shaped like `frame`, of "best" (bold), "second" (underlined) and "". Plain text leaves it out.
    emphasis: pd.DataFrame | None = None
    # Shaped like `frame`: text set high behind a cell's value, such as a star.
    marks: pd.DataFrame | None = None
    # Shaped like `frame`: text behind value and mark, such as a standard error.
    tails: pd.DataFrame | None = None
    numeric: Sequence[str] = ()  # Columns of text that are aligned to the right
    caption: str = ""  # A line above the table
    notes: Sequence[str] = ()  # Lines below the table; in LaTeX they end the caption
    spare: Sequence[str] = ()  # Columns that plain text leaves out, in this order, for lack of room

    def to_text(self, *, width: int | None = None, lines: int | None = None) -> str:
        """Return plain text for a terminal, without a line break at its end.

        With a width, the columns are fitted into it. With a number of lines, the last rows give
        way, and the columns for which there is no room beside the first ones. A line below the
        table says what is left out.
        """
        rows = self._rows()
        columns = _columns(self.frame.columns, rows, self.numeric)
        # Rich cuts spaces off the end of what stands at the right, so columns with marks are filled
        # up here.
        for place in [place for place, room in enumerate(_widest(rows)) if any(room)]:
            name, _ = columns[place]
            columns[place] = name, False
            for row, cell in zip(rows, _filled(name, [row[place] for row in rows]), strict=True):
                row[place] = cell
        strips = _strips(columns, rows)
        blocks, left_out = fitted(strips, width, self.spare, in_blocks=lines is None)
        caption, notes = self._words()
        above = lines_of(caption, width) if caption else []
        above = above if lines is None else cut(above, MOST_CAPTION)
        below = lines_of(f"not shown: {', '.join(left_out)}", width) if left_out else []
        room = None if lines is None else lines - len(above) - len(below)
        below += [line for note in notes for line in lines_of(f"* {note}", width, hanging="  ")]
        return "\n".join([*above, *_drawn(blocks, room), *below])

    def without_notes(self) -> Table:
        """Return the same table without its notes."""
        return replace(self, notes=())

    def to_markdown(self) -> str:
        """Return a Markdown table of GitHub's flavour, without a line break at its end."""

        def line(cells: Iterable[str]) -> str:
            return f"| {' | '.join(cells)} |"

        rows = self._rows()
        columns = _columns(self.frame.columns, rows, self.numeric)
        lines = [markdown(self.caption), ""] if self.caption else []
        lines.append(line(markdown(name) for name, _ in columns))
        lines.append(line("---:" if numeric else "---" for _, numeric in columns))
        lines += [line(map(markdown_cell, row)) for row in rows]
        lines += ["", *(f"* {markdown(note)}" for note in self.notes)] if self.notes else []
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return an HTML fragment for a notebook cell: one ``div``, with all text escaped."""
        rows = self._rows()
        caption, notes = self._words()
        return _template().render(
            caption=caption,
            notes=notes,
            columns=_columns(self.frame.columns, rows, self.numeric),
            rows=rows,
            widest=_widest(rows),
            style=STYLE,
            minus=with_minus,
        )

    def to_latex(self, *, label: str = "") -> str:
        r"""Return a ``table`` if there is a caption, notes or a label, else a ``tabular`` alone.

        It needs ``\usepackage{booktabs}``.
        """
        import pandas as pd

        # A label cannot be escaped: these characters break it.
        fits = not set(label) & set("\\{}%#$&~^\n")
        require(fits, "label", label, "letters, digits and -:._ for LaTeX")
        rows = self._rows()
        columns, widest = _columns(self.frame.columns, rows, self.numeric), _widest(rows)
        body = [list(map(latex_cell, row, widest)) for row in rows]
        header = [latex(name) for name, _ in columns]
        # At the begin of a line "[" and "*" would be arguments of the command that ends the line
        # above.
        for line in (header, *body):
            line[0] = "{}" * line[0].startswith(("[", "*")) + line[0]
        shown = pd.DataFrame(body, columns=header, dtype=object)
        sentences = [line for line in (self.caption, *self.notes) if line]
        words = " ".join(f"{line[0].upper()}{line[1:].rstrip('.')}." for line in sentences)
        sides = "".join("r" if numeric else "l" for _, numeric in columns)
        written = shown.style.hide(axis="index").to_latex(
            hrules=True,
            column_format=sides,
            position_float="centering" if words or label else None,
            caption=latex(words) or None,
            label=label or None,
        )
        return str(written).rstrip("\n")

    def texts(self) -> list[list[str]]:
        """Return the text of each cell, row by row, with what stands behind the value."""
        return [[cell.text + cell.mark + cell.tail for cell in row] for row in self._rows()]

    def _rows(self) -> list[list[Cell]]:
        """Format every value; the value's type makes a cell a number, whatever its text."""
        formats = [self.formats.get(name) for name in self.frame.columns]
        blank = [("",) * len(formats)] * len(self.frame)
        parts = (self.emphasis, self.marks, self.tails)
        behind = (blank if part is None else _values(part) for part in parts)
        return [
            list(map(_cell, row, formats, *texts))
            for row, *texts in zip(_values(self.frame), *behind, strict=True)
        ]

    def _words(self) -> tuple[str, list[str]]:
        return visible(self.caption, keep="\n"), [visible(note, keep="\n") for note in self.notes]


def rows_to_text(
    header: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None = None
) -> str:
    """Render rows of values as `Table.to_text` renders a frame."""
    # Without pandas, whose import takes as long as reading a million lines of a run.
    cells = [[_cell(value) for value in row] for row in rows]
    blocks, _ = fitted(_strips(_columns(header, cells), cells), width)
    return "\n".join(_drawn(blocks))


def _strips(columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[Cell]]) -> list[Strip]:
    texts = [[cell.text + cell.mark + cell.tail for cell in row] for row in rows]
    return [
        Strip(name, numeric, [row[place] for row in texts])
        for place, (name, numeric) in enumerate(columns)
    ]


def _cell(value: Any, how: Format | None = None, *parts: str) -> Cell:
    return Cell(_formatted(value, how), _is_number(value), *parts)


def _widest(rows: Sequence[Sequence[Cell]]) -> list[tuple[str, str]]:
    """Return the longest mark and the longest tail of each column."""
    widest = []
    for column in zip(*rows, strict=True):
        marks, tails = [cell.mark for cell in column], [cell.tail for cell in column]
        widest.append((max(marks, key=len), max(tails, key=len)))
    return widest


def _filled(name: str, column: Sequence[Cell]) -> list[Cell]:
    """Return the cells of a column with spaces around value and mark: its numbers are aligned."""
    mark, tail = map(len, _widest([[cell] for cell in column])[0])
    room = max(len(name) - mark - tail, *(len(cell.text) for cell in column))
    return [Cell(c.text.rjust(room) + c.mark.ljust(mark) + c.tail.ljust(tail)) for c in column]


def _columns(
    names: Iterable[Any], rows: Sequence[Sequence[Cell]], numeric: Sequence[str] = ()
) -> list[tuple[str, bool]]:
    """Return each column's name, and whether it is aligned to the right, as numbers are."""
    shown = [visible(str(name), keep="\n") for name in names]
    has_number = [any(row[at].number for row in rows) for at in range(len(shown))]
    return [(name, own or name in numeric) for name, own in zip(shown, has_number, strict=True)]


def _drawn(blocks: Sequence[Sequence[Strip]], most: int | None = None) -> list[str]:
    """Return the lines of a table below its caption, of at most so many; they say how many rows are left."""
    lines: list[str] = []
    for block in filter(None, blocks):
        head, body = _aligned(block)
        lines += ["", *head] if lines else head
        for place, row in enumerate(body):
            is_last = place == len(body) - 1
            if most is not None and len(lines) + len(row) > most - (not is_last):
                lines.append(f"... {count(len(body) - place, 'more row')}")
                break
            lines += row
    return lines


def _aligned(strips: Sequence[Strip]) -> tuple[list[str], list[list[str]]]:
    """Return the lines of the header with its rule, and those of each row."""
    # The tables of Rich look like this, but loading them takes as long as reading 400,000 lines.
    from rich.cells import cell_len

    # Names stand above the rule, cells below the row before.
    head = _lines([strip.name for strip in strips], step=-1)[::-1]
    body = [_lines(row) for row in zip(*(strip.cells for strip in strips), strict=True)]
    all_lines = [*head, *(line for row in body for line in row)]
    widths = [max(map(cell_len, column)) for column in zip(*all_lines, strict=True)]
    between = strips[0].between

    def drawn(line: Sequence[str]) -> str:
        cells = []
        for text, width, strip in zip(line, widths, strips, strict=True):
            shown = text.rstrip()
            room = " " * (width - cell_len(shown))
            cells.append(room + shown if strip.numeric else shown + room)
        return between.join(cells).rstrip()

    rule = "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * len(between.join(" " * width for width in widths))
    return [*map(drawn, head), rule], [[*map(drawn, row)] for row in body]


def _lines(cells: Sequence[str], step: int = 1) -> list[tuple[str, ...]]:
    return [*zip_longest(*(cell.split("\n")[::step] for cell in cells), fillvalue="")]


def _values(frame: pd.DataFrame) -> Iterable[tuple[Any, ...]]:
    return frame.itertuples(index=False, name=None)


def _formatted(value: Any, how: Format | None) -> str:
    if callable(how):
        return visible(how(value), keep="\n")
    if how is not None:
        return format(value, how)
    return number(value) if isinstance(value, float) else visible(str(value), keep="\n")


def _is_number(value: Any) -> bool:
    return not isinstance(value, str | bool) and hasattr(value, "__float__")
