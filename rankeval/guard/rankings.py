"""The rankings of frozen systems: made from scores, fitted models or runs, and kept so that they can be opened later.

They are stored in the order of the content, not of the rows: so a plan can be opened where the same collection was
loaded with its rows in another order and its queries under other names.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.alignment import check_rows
from rankeval.collection.qrels import as_qrels
from rankeval.collection.run import Run, as_run
from rankeval.contamination.fingerprint import Fingerprint, run_outputs
from rankeval.contamination.hashing import Hashes
from rankeval.errors import InvalidInput
from rankeval.guard.collection import Content
from rankeval.io.columns import as_column, scores
from rankeval.ledger.chain import pack, unpack
from rankeval.measures import measure

if TYPE_CHECKING:
    from rankeval.evaluation import Evaluation

Ranking = NDArray[np.float64] | Run
"""Scores in the order of the rows, or a run."""


@dataclass(frozen=True, eq=False)
class Known:
    """A collection in hand with its fingerprint: what rankings are made for.

    Attributes
    ----------
    content : Content
        The data.
    prints : Fingerprint
        Of the data.
    """

    content: Content
    prints: Fingerprint

    def ranking(self, name: str, system: Any) -> Ranking:
        """Return the ranking of one system: its scores, what a fitted model predicts, or a run.

        Parameters
        ----------
        name : str
            What the system is called, for errors.
        system : array, fitted model or Run
            The system.

        Raises
        ------
        InvalidInput
            When it gives no ranking of this collection.
        """
        if self.content.qrels is not None:
            return as_run(system)
        if hasattr(system, "predict"):
            system = self._predict(name, system)
        # Scores are put beside rows that were registered before, but are given for these.
        check_rows(y=self.content, **{name: system})
        score = scores(as_column(system), f"the scores of {name!r}").astype(np.float64)
        n_rows = len(self.prints.codes)
        if len(score) != n_rows:
            raise InvalidInput(f"{name!r} has {len(score)} scores for {n_rows} rows: give one a row, in their order")
        if not np.isfinite(score).all():
            raise InvalidInput(
                f"{name!r}: the score of row {int(np.argmin(np.isfinite(score)))} is not a finite number"
            )
        return score

    def outputs(self, ranking: Ranking) -> dict[str, Hashes]:
        """Return what identifies the ranking output, query by query.

        Parameters
        ----------
        ranking : ndarray or Run
            The ranking.
        """
        return run_outputs(self.prints, ranking) if isinstance(ranking, Run) else self.prints.outputs(ranking)

    def evaluate(self, name: str, ranking: Ranking, measures: Sequence[str], convention: Any) -> Evaluation:
        """Score a ranking; this is not refused.

        Parameters
        ----------
        name : str
            Name of the system.
        ranking : ndarray or Run
            The ranking.
        measures : sequence of str
            What to compute, by canonical names: a convention may read such a name as another tool's.
        convention : Convention
            How.
        """
        from rankeval.evaluation import score_arrays, score_collection

        content, asked = self.content, [measure(one) for one in measures]
        if isinstance(ranking, Run):
            return score_collection(as_qrels(content.qrels), ranking, measures=asked, convention=convention, name=name)
        return score_arrays(
            content.labels,
            ranking,
            np.asarray(content.qid),
            measures=asked,
            convention=convention,
            docid=content.docid,
            name=name,
        )

    def pack(self, ranking: Ranking) -> dict[str, Any]:
        """Return a ranking as JSON can hold it, in the order of the content.

        Parameters
        ----------
        ranking : ndarray or Run
            The ranking.
        """
        if not isinstance(ranking, Run):
            return {"score": pack(ranking[self.prints.canonical_order()])}
        place = {name: place for place, name in enumerate(self._query_names().tolist())}
        query = np.array([place.get(name, -1) for name in ranking.qid.to_pylist()], dtype=np.int64)
        judged = query >= 0
        return {
            "query": pack(query[judged]),
            "docid": _pack_ids(ranking.docid.filter(_mask(judged))),
            "score": pack(ranking.score[judged]),
        }

    def unpack(self, packed: Mapping[str, Any], name: str) -> Ranking:
        """Return the ranking that was packed, for the rows or query names in hand.

        Parameters
        ----------
        packed : mapping
            What `pack` returned.
        name : str
            Name of the system.
        """
        score = unpack(packed["score"])
        if "docid" not in packed:
            rows = np.empty_like(score)
            rows[self.prints.canonical_order()] = score
            return rows
        return Run(self._query_names()[unpack(packed["query"])], _unpack_ids(packed["docid"]), score, name)

    def by_content(self, evaluation: Evaluation) -> NDArray[np.float64]:
        """Return the scores of an evaluation, a row per query in the order of the content; nan where left out.

        Parameters
        ----------
        evaluation : Evaluation
            Of this collection.
        """
        place = {name: place for place, name in enumerate(self._query_names().tolist())}
        scores = np.full((self.prints.n_queries, len(evaluation.measure_names)), np.nan)
        scores[[place[name] for name in evaluation.queries.tolist()]] = evaluation.scores
        return scores

    def _query_names(self) -> NDArray[Any]:
        names: NDArray[Any] = self.prints.names[np.argsort(self.prints.content, kind="stable")]
        return names

    def _predict(self, name: str, model: Any) -> Any:
        X = self.content.X
        if X is None:
            raise InvalidInput(f"{name!r} is a model, but the collection was registered without X: give its scores")
        if hasattr(X, "columns") and "qid" in X.columns and "qid" not in getattr(model, "feature_names_in_", ()):
            X = X.drop(columns="qid")
        try:
            takes_ids = "qid" in inspect.signature(model.predict).parameters
        except (TypeError, ValueError):  # compiled methods have no signature, and take no ids
            takes_ids = False
        return model.predict(X, qid=self.content.qid) if takes_ids else model.predict(X)


def output_digest(outputs: Mapping[str, Hashes]) -> str:
    """Return one hash for a whole ranking output: the name under which its look is counted.

    Parameters
    ----------
    outputs : mapping of str to ndarray of uint64
        Kind of row -> hash of each query.
    """
    kind = next(kind for kind in ("features", "documents", "labels") if kind in outputs)
    return hashlib.sha256(kind.encode() + np.sort(outputs[kind]).astype("<u8").tobytes()).hexdigest()


def _mask(rows: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return pa.array(rows)


def _pack_ids(ids: Any) -> str:
    """Return Arrow ids, which are strings or numbers, as text."""
    import pyarrow as pa

    table = pa.table({"docid": ids})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return base64.b64encode(zlib.compress(sink.getvalue().to_pybytes(), 1)).decode()


def _unpack_ids(packed: str) -> Any:
    import pyarrow as pa

    with pa.ipc.open_stream(zlib.decompress(base64.b64decode(packed))) as reader:
        return reader.read_all()["docid"].combine_chunks()
