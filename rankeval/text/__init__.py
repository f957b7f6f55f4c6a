"""Text: a baseline that ranks by words, summaries of documents, and the cost of a search.

::

    docs -> VectorSpace or BM25 .fit -> .search(queries) -> Run -> evaluate, compare
    doc, query -> lead, key_sentences, snippets -> Snippet(start, end, marks)
    search, queries -> profile -> Profile -> compare
"""

from __future__ import annotations

from rankeval.io.texts import read_texts
from rankeval.text.profiling import Profile
from rankeval.text.rankers import BM25, VectorSpace
from rankeval.text.summaries import Snippet, key_sentences, lead, snippets

__all__ = [
    "BM25",
    "Profile",
    "Snippet",
    "VectorSpace",
    "key_sentences",
    "lead",
    "read_texts",
    "snippets",
]


def __dir__() -> list[str]:
    return sorted(__all__)
