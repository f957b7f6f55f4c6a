"""An evaluation as one Parquet file: a table by query, and everything else as JSON in the schema's metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval.collection.convention import Convention
from rankeval.errors import InvalidInput
from rankeval.evaluation.facts import READINGS, QueryFacts, Whole
from rankeval.io.opening import DEFAULT
from rankeval.measures import measure

QUERY_COUNTS = ("relevant", "retrieved", "tied", "judged")
"""Numbers of documents that are kept for each query."""

# Errors from a table or a card that `pack` did not write.
_NOT_OURS = (pa.ArrowException, OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
_METADATA = b"rankeval.evaluation"

# Arrow keeps what it decoded a file with: of a million queries as much as the evaluation takes (bench_mlflow).
_LARGE = 2**20

_PLAIN_FIELDS = (
    "measure_names",
    "rule_counts",
    "excluded",
    "undefined",
    "judgments_digest",
    "ranking_digest",
    "name",
    "n_folds",
)
"""Fields that JSON can hold as they are."""


def pack(fields: Mapping[str, Any]) -> bytes:
    """Return an evaluation as the bytes of a Parquet file.

    Parameters
    ----------
    fields : mapping of str to object
        The fields of an `Evaluation`.
    """
    names, errors, weights = fields["measure_names"], fields["errors"], fields["weights"]
    columns = {"qid": _ids(fields["queries"])}
    columns |= {f"measure:{name}": values for name, values in zip(names, fields["scores"].T, strict=True)}
    columns |= {f"count:{count}": fields["query_counts"][count] for count in QUERY_COUNTS}
    facts, whole = fields["facts"], fields["whole"]
    columns |= {f"rule:{rule}": numbers for rule, numbers in facts.rule_counts.items()}
    columns |= {f"undefined:{name}": values for name, values in zip(names, facts.undefined.T, strict=True)}
    for reading, values in facts.readings.items():
        columns |= {f"{reading}:{name}": column for name, column in zip(names, values.T, strict=True)}
    columns |= {"judgments": facts.judgments, "rankings": facts.rankings}
    if errors is not None:
        columns |= {f"drawn:{name}": values for name, values in zip(names, facts.drawn.T, strict=True)}
        columns |= {f"error:{name}": values for name, values in zip(names, errors.T, strict=True)}
    if weights is not None:
        columns["weight"] = weights
    card = {
        "convention": fields["convention"].card(),
        "measures": [str(one) for one in fields["measures"]],
        "semantics": [one.semantics for one in fields["measures"]],
        "qid_dtype": fields["queries"].dtype.str,
        "whole": None if whole is None else asdict(whole),
        **{field: fields[field] for field in _PLAIN_FIELDS},
    }
    table = pa.table(columns).replace_schema_metadata({_METADATA: json.dumps(card, default=_plain)})
    sink = pa.BufferOutputStream()
    import pyarrow.parquet as pq

    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def _ids(queries: NDArray[Any]) -> pa.Array:
    """Return query ids as Arrow holds them."""
    if queries.dtype.kind == "i":
        return pa.array(queries.astype(np.int64, copy=False))
    try:
        return pa.array(queries.tolist(), pa.uint64() if queries.dtype.kind == "u" else None)
    except (OverflowError, pa.ArrowException) as error:
        raise InvalidInput(f"these ids cannot be stored ({error}); give them as text", argument="qid") from None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def unpack(content: bytes, where: str = "") -> dict[str, Any]:
    """Return the fields of the evaluation that `pack` wrote.

    Parameters
    ----------
    content : bytes
        A Parquet file.
    where : str
        The name of the file, for messages.

    Raises
    ------
    InvalidInput
        If it is another file.
    """
    try:
        found = _fields(content)
    except _NOT_OURS as error:
        at = f"{where}: " if where else ""
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise InvalidInput(
            f"{at}expected a Parquet file that Evaluation.save of this version wrote; found another ({why})"
        ) from error
    if len(content) > _LARGE:
        pa.default_memory_pool().release_unused()
    return found


def _fields(content: bytes) -> dict[str, Any]:
    from rankeval.io.tables import parquet_table

    table = parquet_table(pa.BufferReader(content), "it", DEFAULT)
    card = json.loads((table.schema.metadata or {})[_METADATA])
    names = card["measure_names"]
    # A file without these numbers is older than the first change of a definition.
    measures = zip(map(measure, card["measures"]), card.get("semantics") or [1] * len(names), strict=True)
    scores = _columns(table, "measure", names)
    are_exact = f"error:{names[0]}" not in table.column_names
    facts = QueryFacts(
        {rule: table[f"rule:{rule}"].to_numpy() for rule in card["rule_counts"]},
        _columns(table, "undefined", names),
        np.zeros(scores.shape, dtype=bool) if are_exact else _columns(table, "drawn", names),
        table["judgments"].to_numpy(),
        table["rankings"].to_numpy(),
        {
            reading: _columns(table, reading, names)
            for reading in READINGS
            if f"{reading}:{names[0]}" in table.column_names
        },
    )
    return {
        **{field: card[field] for field in _PLAIN_FIELDS},
        "queries": _queries(table["qid"], np.dtype(card["qid_dtype"])),
        "measure_names": tuple(names),
        "measures": tuple(replace(one, semantics=number) for one, number in measures),
        "scores": scores,
        "convention": Convention.from_card(card["convention"]),
        "query_counts": {count: table[f"count:{count}"].to_numpy() for count in QUERY_COUNTS},
        "excluded": {reason: tuple(ids) for reason, ids in card["excluded"].items()},
        "weights": table["weight"].to_numpy() if "weight" in table.column_names else None,
        "errors": None if are_exact else _columns(table, "error", names),
        "facts": facts,
        "whole": None if card["whole"] is None else Whole(**card["whole"]),
    }


def _queries(ids: pa.ChunkedArray, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the ids with the type that they had."""
    if dtype.kind in "iu":
        whole: NDArray[Any] = ids.to_numpy().astype(dtype)
        return whole
    return np.array(ids.to_pylist(), dtype=dtype)


def _columns(table: pa.Table, kind: str, names: list[str]) -> NDArray[Any]:
    return np.column_stack([table[f"{kind}:{name}"].to_numpy() for name in names])
