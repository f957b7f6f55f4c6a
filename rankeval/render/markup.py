"""Characters and frames of the markup languages: what must be escaped, and what surrounds a table.

A cell is a value with an emphasis, a mark set high behind it, and a rest that is neither (`rankeval.render.tables`).
Numbers of a column stay below each other although their marks differ: LaTeX and HTML leave room for the widest ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from rankeval.errors import InvalidInput

if TYPE_CHECKING:
    from jinja2 import Template

# C0 and C1 controls (an escape sequence begins with one), separators of lines and paragraphs, marks of the writing
# direction (they can make one name look like another), and halves of characters, which no encoding can print.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
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
        "†": r"$\dagger$",
        "↓": r"$\downarrow$",
        "≤": r"$\le$",
    }
)
MARKDOWN_ESCAPES = str.maketrans({character: f"\\{character}" for character in r"\`*_[]<>|#"} | {"\n": " "})
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
{%- if cell.emphasis %}<span class="{{ cell.emphasis }}">{{ cell.text | minus }}</span>
{%- else %}{{ cell.text | minus }}{% endif -%}
{%- set mark, tail = widest[loop.index0] -%}
{%- if mark %}<sup style="min-width:{{ mark | length }}ch">{{ cell.mark }}</sup>{% endif -%}
{%- if tail %}<span class="tail" style="min-width:{{ tail | length }}ch">{{ cell.tail | minus }}</span>{% endif -%}
</td>{% endfor -%}
</tr>{% endfor -%}
</tbody></table>
{%- if notes %}<ul>{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>{% endif -%}
</div>"""


def visible(text: str, *, keep: str = "") -> str:
    r"""Return a text with its control characters as Python escapes.

    Parameters
    ----------
    text : str
        Any text, with names and ids from files.
    keep : str
        Characters to keep, such as our own line ends.

    Examples
    --------
    >>> print(visible("a\x1b]0;b"))
    a\x1b]0;b
    """
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], text)


def with_minus(text: str) -> str:
    """Set the hyphen before a number as a minus sign."""
    return MINUS.sub("\N{MINUS SIGN}", text)


def markdown(text: str) -> str:
    """Escape text for Markdown of GitHub's flavour; control characters become Python escapes."""
    return visible(text, keep="\n").translate(MARKDOWN_ESCAPES)


def markdown_cell(text: str, emphasis: str, mark: str, tail: str) -> str:
    """Write a cell in Markdown, which has no way to leave room for a mark."""
    high = f"<sup>{markdown(mark)}</sup>" if mark else ""
    return MARKDOWN_EMPHASIS[emphasis] % markdown(text) + high + markdown(tail)


def latex(text: str) -> str:
    """Escape text for LaTeX; line breaks become spaces, since an empty line would end a paragraph."""
    return visible(" ".join(text.splitlines())).translate(LATEX_ESCAPES)


def refuse_label(label: str) -> None:
    r"""Raise if a name for ``\ref`` has characters that break ``\label{...}``: it cannot be escaped there.

    Raises
    ------
    InvalidInput
        If it has.
    """
    if found := sorted(set(label) & set("\\{}%#$&~^\n")):
        raise InvalidInput(
            f"label is {label!r}; LaTeX takes no {' '.join(map(repr, found))} in one: use letters, digits and -:._"
        )


def latex_cell(text: str, emphasis: str, mark: str, tail: str, *, widest: tuple[str, str] = ("", "")) -> str:
    """Write a cell in LaTeX.

    Parameters
    ----------
    text, emphasis, mark, tail : str
        The parts of the cell.
    widest : tuple of str
        The widest mark and tail of its column; an invisible rest of each stands behind the cell's own.
    """
    value = LATEX_EMPHASIS[emphasis] % latex(with_minus(text))
    high, high_rest = (rf"\textsuperscript{{{latex(part)}}}" if part else "" for part in (mark, widest[0][len(mark) :]))
    room = rf"\phantom{{{high_rest}}}" if high_rest else ""
    rest = latex(widest[1]) if not tail else "0" * (len(widest[1]) - len(tail))
    room_behind = rf"\phantom{{{rest}}}" if rest else ""
    return value + high + room + latex(with_minus(tail)) + room_behind


def html(
    columns: Sequence[tuple[str, bool]], widest: Sequence[tuple[str, str]], rows: Sequence[Any], **texts: Any
) -> str:
    """Write a table in HTML with all text escaped.

    Parameters
    ----------
    columns : sequence of (str, bool)
        The name of each column, and whether it holds numbers.
    widest : sequence of (str, str)
        The widest mark and tail of each column.
    rows : sequence of sequence of Cell
        The cells.
    **texts : str or sequence of str
        ``caption`` and ``notes``.
    """
    return _template().render(style=STYLE, columns=columns, widest=widest, rows=rows, **texts)


@cache
def _template() -> Template:
    from jinja2 import Environment

    environment = Environment(autoescape=True)
    environment.filters["minus"] = with_minus
    return environment.from_string(TEMPLATE)
