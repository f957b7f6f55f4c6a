"""Draw a comparison as an HTML page: one static file without scripts.

MLflow shows artifacts in a sandboxed frame that cannot fetch anything, and names come from outside, so everything is
escaped and in the file.
"""

from __future__ import annotations

import html
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankeval.comparison import Comparison

_STYLE = """
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;margin:0 auto;padding:24px;max-width:1100px;
color:#1b1f24;background:#fff}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p.lead{color:#57606a;margin:0 0 12px}
.scroll{overflow-x:auto}.scroll td:not(.num){white-space:normal;overflow-wrap:anywhere;min-width:14ch}
svg{display:block;max-width:100%;height:auto}
"""


def comparison_page(comparison: Comparison) -> bytes:
    """Return a comparison as an HTML page: its findings, table, caption and notes, and a plot of the intervals.

    Parameters
    ----------
    comparison : Comparison
        The comparison, under the names that people shall see.
    """
    parts = {
        "Differences" if comparison.has_pairs else "Means": f'<div class="scroll">{comparison._repr_html_()}</div>',
        "Intervals": _svg(comparison.plot()),
    }
    against = f"against {comparison.baseline}" if comparison.baseline is not None else "all pairs"
    return page("Comparison", against if comparison.has_pairs else "one system", parts)


def page(title: str, lead: str, parts: Mapping[str, str]) -> bytes:
    """Return an HTML page with a title, a first line and sections.

    Parameters
    ----------
    title, lead : str
        Plain text.
    parts : mapping of str to str
        Sections by heading: HTML that is already escaped, under plain text.
    """
    body = "".join(f"<h2>{html.escape(heading)}</h2>{content}" for heading, content in parts.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{html.escape(title)}</h1><p class="lead">{html.escape(lead)}</p>{body}</body></html>'
    ).encode()


def _svg(figure: Figure) -> str:
    """Return a figure as SVG for a page; equal figures give equal bytes."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "rankeval", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return buffer.getvalue()[buffer.getvalue().index("<svg") :]
