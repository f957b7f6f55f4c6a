"""What a reader of the run sees first: the run's description in Markdown, and a comparison as a page of HTML.

Everything that comes from outside is escaped. The page is one static file without scripts: MLflow shows artifacts in
a sandboxed frame, where nothing can be fetched.
"""

from __future__ import annotations

import html
from collections.abc import Mapping

from rankeval_mlflow.names import MAX_TAG

NOTE = "mlflow.note.content"

_STYLE = """
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;margin:0 auto;padding:24px;max-width:1100px;
color:#1b1f24;background:#fff}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p.lead{color:#57606a;margin:0 0 12px}
.scroll{overflow-x:auto}svg{display:block;max-width:100%;height:auto}
"""


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


def _first_paragraph(text: str) -> str:
    """Return what stands before the first empty line."""
    return text.split("\n\n", maxsplit=1)[0][:500]
