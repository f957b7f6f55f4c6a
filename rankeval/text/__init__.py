"""Text: a baseline that ranks by words, summaries of documents, and the cost of a search.

::

    docs -> VectorSpace or BM25 .fit -> .search(queries) -> Run -> evaluate, compare
    doc, query -> lead, key_sentences, snippets -> Snippet(start, end, marks)
    search, queries -> profile -> Profile -> compare
"""

from __future__ import annotations

from rankeval._registry import late
from rankeval.io.texts import read_texts as read_texts

_HOMES = {
    "profiling": ("Profile",),
    "rankers": ("BM25", "VectorSpace"),
    "summaries": ("Snippet", "key_sentences", "lead", "snippets"),
}
__all__, __getattr__ = late(__name__, _HOMES)
__all__ += ["read_texts"]


def __dir__() -> list[str]:
    return sorted(__all__)
