"""The type in which a column is read whose files have it in several: one that changes no value, or none.

relevance, score, weights   bool, int8, int32 -> int64;  float32, float64, int32 -> float64
qid, docid                  int32, int64 -> int64;  string, large_string -> large_string;  int64, string -> refused
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rankeval.errors import InvalidInput, QueryIdError
from rankeval.io.columns import without_view

SCHEMA = "the schema of the data set"
"""Where a type stands that no file has, and that a caller gave."""

_IDS = ("qid", "docid")


def is_text(kind: pa.DataType) -> bool:
    """Say whether a type is that of texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of dictionaries and views."""
    return plain(kind.value_type) if pa.types.is_dictionary(kind) else without_view(kind)


def common(role: str, name: str, kinds: Mapping[Any, str]) -> pa.DataType:
    """Return the one type in which the column of all files is read.

    Parameters
    ----------
    role : str
        What the column is: ``qid``, ``relevance`` and so on.
    name : str
        Its name.
    kinds : mapping of pyarrow DataType to str
        The types that files have it in, each with a file, and one that `SCHEMA` alone has.

    Raises
    ------
    InvalidInput
        If every common type would change values; a `QueryIdError` for ids of queries.
    """
    known = [kind for kind in kinds if not pa.types.is_null(kind)] or list(kinds)
    fitting = _texts_or_whole if role in _IDS else _number
    found = known[0] if len(known) == 1 else fitting(known)
    told = next((kind for kind in known if kinds[kind] == SCHEMA and _rounds(kind, found)), None)
    if found is not None and told is None:
        return found
    pairs = ((one, other) for one in known for other in known if one != other)
    first, other = next(((a, b) for a, b in pairs if fitting([a, b]) is None), (known[0], told))
    remedy = "ids of one type" if role in _IDS else "numbers of one type"
    raise (QueryIdError if role == "qid" else InvalidInput)(
        f"{role}={name!r} is of type {first} in {kinds[first]} and of type {other} in {kinds[other]}, and to read "
        f"them as one would change values; write all files with {remedy}"
    )


def _rounds(told: pa.DataType, found: pa.DataType | None) -> bool:
    """Say whether values would be others in the type that a schema asks for, though there is a common one."""
    return told != found and bool(pa.types.is_boolean(told) or pa.types.is_floating(told))


def _texts_or_whole(kinds: list[pa.DataType]) -> pa.DataType | None:
    if all(is_text(kind) for kind in kinds):
        return pa.large_string()
    if all(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) for kind in kinds):
        return pa.large_binary()
    return _whole(kinds) if all(pa.types.is_integer(kind) for kind in kinds) else None


def _number(kinds: list[pa.DataType]) -> pa.DataType | None:
    """Return the type of numbers; one that float64 does not hold is refused when it is read."""
    whole = [kind for kind in kinds if pa.types.is_integer(kind) or pa.types.is_boolean(kind)]
    if len(whole) == len(kinds):
        return _whole(kinds)
    return pa.float64() if all(kind in whole or pa.types.is_floating(kind) for kind in kinds) else None


def _whole(kinds: list[pa.DataType]) -> pa.DataType | None:
    if not any(kind == pa.uint64() for kind in kinds):
        return pa.int64()
    return None if any(pa.types.is_signed_integer(kind) for kind in kinds) else pa.uint64()
