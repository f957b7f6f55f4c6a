"""An evaluation as one Parquet file: a table by query, and all else as JSON in its metadata.

The footer has the SHA-256 of all other bytes of the file, so no damage loads as other numbers.
Checksums of Parquet would cover the pages of the columns alone, not the footer. A file of an older
version has none, and is read as it is.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval._checks import said, shown
from rankeval.collection.convention import Convention
from rankeval.errors import InvalidInput
from rankeval.evaluation.facts import GRADES, KINDS, READINGS, SEED, QueryFacts
from rankeval.io.opening import DEFAULT
from rankeval.measures import measure

# Errors from a table or a card that `to_bytes` did not write.
_NOT_OURS = (
    pa.ArrowException,
    OSError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
)
_METADATA = b"rankeval.evaluation"
# Stands behind all ids that the footer holds, and is not ASCII, as the JSON beside it is: so its
# last place is its own.
_CHECKSUM = "rankeval.sha256\N{MIDDLE DOT}"
_DIGITS = 64
_BY_QUERY = ("judgments", "rankings", *GRADES, *KINDS)

# Arrow keeps what it decoded a file with: of a million queries as much as the evaluation takes
# (bench_mlflow).
_LARGE = 2**20


def to_bytes(evaluation: Any) -> bytes:
    """Return an evaluation as the bytes of a Parquet file: columns by query, the rest metadata."""
    import pyarrow.parquet as pq

    columns = {"qid": _ids(evaluation.queries)}
    for kind, values in {"measure": evaluation.scores, **evaluation.facts.table()}.items():
        if values.ndim == 2:
            for name, column in zip(evaluation.measure_names, values.T, strict=True):
                columns[f"{kind}:{name}"] = column
        else:
            columns[kind] = values
    if evaluation.weights is not None:
        columns["weight"] = evaluation.weights
    card = json.dumps(_card(evaluation), default=_plain)
    table = pa.table(columns).replace_schema_metadata({_METADATA: card})
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, compression="zstd") as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({_CHECKSUM: "0" * _DIGITS})
    content = bytearray(sink.getvalue())
    place = _place_of_checksum(content)
    content[place] = _checksum(content, place).encode()
    return bytes(content)


def _card(evaluation: Any) -> dict[str, Any]:
    """Return all that does not go by query, in the order of the file."""
    facts, measures = evaluation.facts, evaluation.measures
    card = {
        "convention": evaluation.convention.card(),
        "measures": [*map(str, measures)],
        "semantics": [measure.semantics for measure in measures],
        "qid_dtype": evaluation.queries.dtype.str,
        "whole": facts.whole and {"n_queries": facts.whole},
        "measure_names": evaluation.measure_names,
    }
    card["rule_counts"] = facts.totals()
    for name in ("excluded", "undefined", "name"):
        card[name] = getattr(evaluation, name)
    return card | {"n_folds": facts.n_folds, "signs": facts.signs}


def _place_of_checksum(content: bytes | bytearray) -> slice:
    name = _CHECKSUM.encode()
    # A byte says that a text follows, and a byte how long it is.
    start = content.rfind(name) + len(name) + 2
    return slice(start, start + _DIGITS)


def _checksum(content: bytes | bytearray, place: slice) -> str:
    view = memoryview(content)
    checksum = hashlib.sha256(view[: place.start])
    checksum.update(view[place.stop :])
    return checksum.hexdigest()


def _ids(queries: NDArray[Any]) -> pa.Array:
    kind = {"i": pa.int64(), "u": pa.uint64()}.get(queries.dtype.kind)
    try:
        return pa.array(queries if kind else queries.tolist(), kind)
    except (OverflowError, pa.ArrowException) as error:
        problem = f"these ids cannot be stored ({error}); give them as text"
        raise InvalidInput(problem, argument="qid") from None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def unpacked_fields(content: bytes, where: str = "") -> dict[str, Any]:
    """Return the fields of the evaluation that `to_bytes` wrote."""
    if not isinstance(content, (bytes, bytearray)):
        raise InvalidInput(argument="content", found=shown(content), expected="bytes")
    place = _place_of_checksum(content)
    has_checksum = _CHECKSUM.encode() in content
    if has_checksum and content[place] != _checksum(content, place).encode():
        problem = "the file was altered after it was saved: its checksum is that of other content"
        raise InvalidInput(problem, where=where, remedy="restore a copy, or evaluate again")
    try:
        fields = _fields(content)
    except _NOT_OURS as error:
        expected = "expected a Parquet file that Evaluation.save of this version wrote"
        found = f"found another ({type(error).__name__}: {said(error)[:300]})"
        raise InvalidInput(f"{expected}; {found}", where=where) from error
    if len(content) > _LARGE:
        pa.default_memory_pool().release_unused()
    return fields


def _fields(content: bytes) -> dict[str, Any]:
    from rankeval.io.tables import parquet_table

    table = parquet_table(pa.BufferReader(content), "it", DEFAULT)
    card = json.loads((table.schema.metadata or {})[_METADATA])
    names = card["measure_names"]
    # A file without these numbers is older than the first change of a definition.
    semantics = card.get("semantics") or [1] * len(names)
    measures = zip(map(measure, card["measures"]), semantics, strict=True)

    def by_measure(kind: str) -> NDArray[Any]:
        return np.column_stack([table[f"{kind}:{name}"].to_numpy() for name in names])

    ids, dtype = table["qid"], np.dtype(card["qid_dtype"])
    queries = np.array(ids.to_numpy() if dtype.kind in "iu" else ids.to_pylist(), dtype)
    kinds = {name: name.partition(":")[0] for name in table.column_names}
    known = {name: table[name].to_numpy() for name, kind in kinds.items() if kind in _BY_QUERY}
    tables = ("undefined", "drawn", "error", *READINGS)
    of_measures = [kind for kind in kinds.values() if kind in tables or kind.startswith(SEED)]
    known |= {kind: by_measure(kind) for kind in dict.fromkeys(of_measures)}
    whole = (card["whole"] or {}).get("n_queries")
    # Older files have no signs.
    signs = {sign: tuple(words) for sign, words in card.get("signs", {}).items()}
    facts = QueryFacts.of(known, whole=whole, n_folds=card["n_folds"], signs=signs)
    weights = table["weight"].to_numpy() if "weight" in table.column_names else None
    fields = {
        "queries": queries,
        "measure_names": tuple(names),
        "measures": tuple(replace(bound, semantics=number) for bound, number in measures),
        "scores": by_measure("measure"),
        "convention": Convention.from_card(card["convention"]),
    }
    fields["excluded"] = {reason: tuple(ids) for reason, ids in card["excluded"].items()}
    facts = facts.with_totals(card["rule_counts"])
    return fields | {
        "undefined": card["undefined"],
        "facts": facts,
        "weights": weights,
        "name": card["name"],
    }
