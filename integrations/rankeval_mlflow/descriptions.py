"""What a reader of the run sees first: the run's description in Markdown, and the report as a page of HTML.

Everything that comes from outside is escaped. The page is one static file without scripts: MLflow shows artifacts in
a sandboxed frame, where nothing can be fetched.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence

from rankeval_mlflow.names import MAX_TAG

NOTE = "mlflow.note.content"

_STYLE = """
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;margin:0 auto;padding:24px;max-width:960px;
color:#1b1f24;background:#fff}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p.lead{color:#57606a;margin:0 0 12px}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:4px 14px 4px 0;border-bottom:1px solid #d8dee4;text-align:left;vertical-align:top}
th{color:#57606a;font-weight:600}td.n,th.n{text-align:right}
code{font:13px ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}
ul{padding-left:20px}svg{display:block;max-width:100%}
"""


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown, numbers to the right, every cell escaped.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : iterable of sequence
        Cells; floats are rounded to four places.
    """
    body = [list(row) for row in rows]
    rule = ["---:" if _numeric(body, column) else "---" for column in range(len(header))]
    lines = [[_markdown(cell) for cell in header], rule, *([_markdown(cell) for cell in row] for row in body)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in HTML, numbers to the right, every cell escaped."""
    body = [list(row) for row in rows]
    mark = [' class="n"' if _numeric(body, column) else "" for column in range(len(header))]

    def line(cells: Sequence[object], tag: str) -> str:
        parts = (f"<{tag}{where}>{html.escape(shown(cell))}</{tag}>" for cell, where in zip(cells, mark, strict=True))
        return f"<tr>{''.join(parts)}</tr>"

    rows_html = "".join(line(row, "td") for row in body)
    return f'<div class="scroll"><table><thead>{line(header, "th")}</thead><tbody>{rows_html}</tbody></table></div>'


def page(title: str, lead: str, parts: Mapping[str, str]) -> bytes:
    """Return a page: its title and first line, and under each heading some HTML.

    Parameters
    ----------
    title, lead : str
        Plain text.
    parts : mapping of str to str
        Heading (plain text) -> HTML that is escaped already.
    """
    body = "".join(f"<h2>{html.escape(heading)}</h2>{content}" for heading, content in parts.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{html.escape(title)}</h1><p class="lead">{html.escape(lead)}</p>{body}</body></html>'
    ).encode()


def histogram(values: Sequence[float], label: str) -> str:
    """Return how the values between 0 and 1 of one measure lie, as an SVG of twenty bars.

    Parameters
    ----------
    values : sequence of float
        One value per query, each in [0, 1].
    label : str
        What is shown, for readers that cannot see it.
    """
    counts = [0] * 20
    for value in values:
        counts[min(int(value * 20), 19)] += 1
    top = max(counts)
    bars = "".join(
        f'<rect x="{24 + 24 * bin_}" y="{100 - 84 * count / top:.1f}" width="22" height="{84 * count / top:.1f}"/>'
        for bin_, count in enumerate(counts)
    )
    marks = "".join(f'<text x="{24 + 480 * mark / 4}" y="116">{mark / 4:g}</text>' for mark in range(5))
    return (
        f'<svg viewBox="0 0 530 122" width="530" height="122" role="img" aria-label="{html.escape(label)}">'
        f'<g fill="#0969da">{bars}</g><path d="M24 100.5H504" stroke="#57606a"/>'
        f'<g font-size="11" fill="#57606a" text-anchor="middle">{marks}<text x="27" y="10">{top}</text></g></svg>'
    )


def merged(note: str, sections: Mapping[str, str]) -> str:
    """Return a run's description with our sections put in or replaced; what the user wrote stays as it is.

    Parameters
    ----------
    note : str
        The description so far.
    sections : mapping of str to str
        Key -> Markdown.
    """
    for key, text in sections.items():
        start, end = f"<!-- rankeval {key} -->", f"<!-- /rankeval {key} -->"
        block = f"{start}\n\n{text}\n\n{end}"
        if len(block) > MAX_TAG // 2:
            block = (
                f"{start}\n\n{_first_paragraph(text)} The table is long: see the report among the artifacts.\n\n{end}"
            )
        before, found, rest = note.partition(start)
        after = rest.partition(end)[2] if found else ""
        joined = f"{before}{block}{after}" if found else f"{note}\n\n{block}".lstrip()
        if len(joined) <= MAX_TAG:
            note = joined
    return note


def shown(cell: object) -> str:
    """Return a cell as text: floats to four places, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4f}" if math.isfinite(cell) else str(cell)
    return str(cell)


def _first_paragraph(text: str) -> str:
    """Return what stands before the first empty line."""
    return text.split("\n\n", maxsplit=1)[0][:500]


def _numeric(rows: Sequence[Sequence[object]], column: int) -> bool:
    """Return whether a column holds numbers only."""
    return bool(rows) and all(isinstance(row[column], int | float) for row in rows)


def _markdown(cell: object) -> str:
    """Return a cell of a Markdown table: no pipe, no tag, no emphasis comes through."""
    text = " ".join(html.escape(shown(cell), quote=False).split())
    for mark in r"\|*_`[]":
        text = text.replace(mark, f"\\{mark}")
    return text
