"""An evaluation as one Parquet file: a table by query, with the card and all else in the schema's metadata."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval.collection.convention import Convention
from rankeval.errors import InvalidInput
from rankeval.io.limits import DEFAULT
from rankeval.measures import measure

if TYPE_CHECKING:
    from rankeval.evaluation.result import Evaluation

QUERY_COUNTS = ("relevant", "retrieved", "tied", "judged")
"""Numbers of documents that are kept for each query."""

# What a table and a card raise on being taken apart that `pack` did not write.
_NOT_OURS = (pa.ArrowException, OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
_METADATA = b"rankeval.evaluation"


def pack(evaluation: Evaluation) -> bytes:
    """Return an evaluation as the bytes of a Parquet file.

    Parameters
    ----------
    evaluation : Evaluation
        What to write.
    """
    columns: dict[str, Any] = {"qid": _ids(evaluation.queries)}
    columns |= {f"measure:{label}": evaluation.scores[:, place] for place, label in enumerate(evaluation.measure_names)}
    columns |= {f"count:{count}": evaluation.query_counts[count] for count in QUERY_COUNTS}
    if evaluation.errors is not None:
        columns |= {
            f"error:{label}": evaluation.errors[:, place] for place, label in enumerate(evaluation.measure_names)
        }
    if evaluation.weights is not None:
        columns["weight"] = evaluation.weights
    card = {
        "convention": evaluation.convention.card(),
        "measure_names": evaluation.measure_names,
        "measures": [str(one) for one in evaluation.measures],
        "rule_counts": dict(evaluation.rule_counts),
        "excluded": {reason: list(ids) for reason, ids in evaluation.excluded.items()},
        "undefined": dict(evaluation.undefined),
        "judgments_digest": evaluation.judgments_digest,
        "ranking_digest": evaluation.ranking_digest,
        "name": evaluation.name,
        "info": dict(evaluation.info),
        "qid_dtype": evaluation.queries.dtype.str,
    }
    table = pa.table(columns).replace_schema_metadata({_METADATA: json.dumps(card, default=_plain)})
    sink = pa.BufferOutputStream()
    import pyarrow.parquet as pq

    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def _ids(queries: NDArray[Any]) -> pa.Array:
    """Return query ids as Arrow holds them."""
    try:
        return pa.array(queries.tolist(), pa.uint64() if queries.dtype.kind == "u" else None)
    except (OverflowError, pa.ArrowException) as error:
        raise InvalidInput(f"qid: these ids cannot be stored ({error}); give them as text") from None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def unpack(content: bytes, where: str = "") -> dict[str, Any]:
    """Return the parts of the evaluation that `pack` wrote.

    Parameters
    ----------
    content : bytes
        A Parquet file.
    where : str
        What messages call the file.

    Raises
    ------
    InvalidInput
        When it is no such file.
    """
    try:
        return _parts(content)
    except _NOT_OURS as error:
        at = f"{where}: " if where else ""
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise InvalidInput(f"{at}expected a Parquet file that Evaluation.save wrote; found another ({why})") from error


def _parts(content: bytes) -> dict[str, Any]:
    from rankeval.io.parquet import parquet_table

    table = parquet_table(pa.BufferReader(content), "it", DEFAULT)
    card = json.loads((table.schema.metadata or {})[_METADATA])
    labels = tuple(card["measure_names"])
    queries = np.array(table["qid"].to_pylist(), dtype=card["qid_dtype"])
    return {
        "queries": queries,
        "measure_names": labels,
        "measures": tuple(measure(name) for name in card["measures"]),
        "scores": _columns(table, "measure", labels),
        "convention": Convention.from_card(card["convention"]),
        "query_counts": {count: table[f"count:{count}"].to_numpy() for count in QUERY_COUNTS},
        "rule_counts": card["rule_counts"],
        "excluded": {reason: tuple(ids) for reason, ids in card["excluded"].items()},
        "undefined": card["undefined"],
        "judgments_digest": card["judgments_digest"],
        "ranking_digest": card["ranking_digest"],
        "weights": table["weight"].to_numpy() if "weight" in table.column_names else None,
        "name": card["name"],
        "info": card["info"],
        "errors": _columns(table, "error", labels) if f"error:{labels[0]}" in table.column_names else None,
    }


def _columns(table: pa.Table, kind: str, labels: tuple[str, ...]) -> NDArray[np.float64]:
    return np.column_stack([table[f"{kind}:{label}"].to_numpy() for label in labels])
