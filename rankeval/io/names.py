"""The names of our columns in other tools: one table, by which frames, records and files are read.

Our own name wins over other tools' names; if two of these could be meant, the caller must choose. The trap is a name
that means two things. PyTerrier's frames have ``docno``, the id, beside ``docid``, the document's number in the index,
and ``query``, the text, beside ``qid``. BEIR and ranx call the relevance ``score``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankeval.errors import InvalidInput
from rankeval.io.columns import id_column

SPELLINGS: dict[str, tuple[str, ...]] = {
    "qid": ("qid", "query_id", "query-id", "q_id", "topic_id"),
    "docid": ("docid", "docno", "doc_id", "corpus-id", "corpus_id", "document_id", "did", "pid"),
    "relevance": ("relevance", "rel", "label", "grade", "judgment", "judgement"),
    "score": ("score", "similarity", "prediction", "sim"),
    "aspect": ("aspect", "subtopic_id", "subtopic"),
    "subgroup": ("subgroup",),
    "name": ("run", "tag"),
}
"""Part -> its names, our own first; ``name`` is the system's."""

LAST: dict[str, tuple[str, ...]] = {"qid": ("query", "topic"), "relevance": ("score",)}
"""Names that stand for a part only if it has no other: ``query`` is an id in trectools, and a text elsewhere."""

JUDGED_BY_SCORE = frozenset({"corpus-id", "corpus_id", "q_id"})
"""Names of BEIR and ranx, beside which a score is the relevance. Elsewhere this would hide a mix-up with a ranking."""

NUMBER_IN_INDEX = "number in index"
"""The part of PyTerrier's ``docid``, which must not be taken for an id, in what `columns_of` returns."""


def spelled(names: Iterable[str], part: str) -> list[str]:
    """Return the names that may stand for a part, such as ``docno`` for ``docid``; our own name wins."""
    held = set(names)
    found = [name for name in SPELLINGS[part] if name in held]
    if found[:2] == ["docid", "docno"]:
        return ["docno"]  # if `refuse_other_pairs` agrees
    if not found and not (part == "relevance" and not held & JUDGED_BY_SCORE):
        found = [name for name in LAST.get(part, ()) if name in held]
    return found[:1] if found[:1] == [part] else found


def columns_of(
    names: Sequence[str],
    role: str,
    asked: Mapping[str, Any] | None = None,
    *,
    where: str = "the frame",
    advice: str = "say which by {part}=",
    error: Callable[[str], InvalidInput] = InvalidInput,
) -> dict[str, str]:
    """Return part -> column: query, document and number, and of the other parts those that are there.

    Parameters
    ----------
    names : sequence of str
        The names of the columns.
    role : {"relevance", "score"}
        The part that the number is.
    asked : mapping of str to str, False or None
        The column that the caller asked for, by part. None is any usual name, False leaves out a part.
    where, advice : str
        The table and what to do, for messages.
    error : callable
        Makes the error.
    """
    asked = asked or {}
    parts = {}
    needed = ("qid", "docid", role)
    for part in (*needed, *(("aspect", "subgroup") if role == "relevance" else ("name",))):
        wanted = asked.get(part)
        found = [] if wanted is False else spelled(names, part) if wanted is None else [wanted]
        if not found and part not in needed:
            continue
        if len(found) != 1 or found[0] not in names:
            shown = wanted or part
            raise error(f"{where} has no column {shown!r}: {_hint(names, part, found)}; {advice.format(part=part)}")
        if names.count(found[0]) > 1:
            raise error(f"{where} has {names.count(found[0])} columns {found[0]!r}; name each column once")
        parts[part] = found[0]
    if asked.get("docid") is None and parts["docid"] == "docno" and "docid" in names:
        parts[NUMBER_IN_INDEX] = "docid"
    return parts


def _hint(names: Sequence[str], part: str, found: Sequence[str]) -> str:
    if len(found) > 1:
        return f"columns {', '.join(map(repr, found))} could be it"
    if part == "score" and "rank" in names:
        return "a rank is no score; rankings are ordered by descending score, so that score = -rank keeps the order"
    return f"its columns are {list(names)}"


def refuse_other_pairs(
    docno: Any, docid: Any, where: str, advice: str, error: Callable[[str], InvalidInput] = InvalidInput
) -> None:
    """Refuse ``docno`` beside ``docid`` unless they are PyTerrier's: an id of text, and a number in the index.

    Parameters
    ----------
    docno, docid : array, list, Series or Arrow array
        The columns of these names.
    where, advice : str
        The table and what to do, for messages.
    error : callable
        Makes the error.
    """
    try:
        number = id_column(docid, "docid")
    except InvalidInput:
        number = None
    is_number = number is not None and (
        pa.types.is_integer(number.type) or pc.all(pc.match_substring_regex(number, "^[0-9]+$")).as_py() is not False
    )
    if not is_number or pa.types.is_integer(id_column(docno, "docno").type):
        raise error(
            f"{where} has the columns 'docno' and 'docid', and they are not as in PyTerrier, where 'docno' is text and "
            f"'docid' a number in the index: either could be the document's id; {advice.format(part='docid')}"
        )
