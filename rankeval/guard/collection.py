"""A registered collection with its data at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

from rankeval._checks import count
from rankeval.collection.data import RankingData
from rankeval.collection.qrels import Qrels, as_qrels
from rankeval.collection.rows import check_rows, index_of
from rankeval.contamination.hashing import as_numbers
from rankeval.errors import InvalidInput, LedgerError
from rankeval.guard.checks import Finding
from rankeval.guard.loaded import LoadedCollection
from rankeval.guard.plan import short
from rankeval.io.columns import as_typed
from rankeval.join.flat import ids_of_rows


@dataclass(frozen=True, eq=False)
class RegisteredCollection:
    """A test collection that the guard protects.

    Attributes
    ----------
    name, project : str
        Its name, and the project that registered it.
    id : str
        The hash of the entry that registered it.
    digest : str
        SHA-256 of its exact content, whatever the order of rows and the ids of queries.
    n_queries, n_rows, n_identifiable : int
        Sizes; the last is the number of queries that can be told from others.
    findings : tuple of Finding
        Findings of the registration checks.
    revises : str, optional
        The id of the registration that this one revises or supersedes; looks carry over from it.
    ledger, head : str
        The ledger, and its head after the registration.
    content : LoadedCollection
        The data.
    """

    name: str
    project: str
    id: str
    digest: str
    n_queries: int
    n_rows: int
    n_identifiable: int
    findings: tuple[Finding, ...]
    revises: str | None
    ledger: str
    head: str
    content: LoadedCollection = field(repr=False)

    def loaded(self) -> LoadedCollection:
        """Return the data, which must still be the registered content.

        Raises
        ------
        LedgerError
            If the data was changed in memory since.
        """
        now = replace(self.content)  # a copy without the fingerprint, which is thus taken again
        if now.prints.digest != self.digest:
            raise LedgerError(
                f"the data of {self.name!r} was changed in memory after its registration (digest "
                f"{now.prints.digest[:12]} now, {self.digest[:12]} then): load it again and register it under the same "
                "name"
            )
        return now

    def __repr__(self) -> str:
        return (
            f"RegisteredCollection({self.name!r}{', a revision' if self.revises else ''}, "
            f"{count(self.n_queries, 'query')}, {count(self.n_rows, 'row')}, "
            f"{self.n_identifiable} identifiable, digest {self.digest[:12]}, project {self.project!r}, "
            f"ledger {self.ledger} at {short(self.head)})"
        )

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(str(one))}</li>" for one in self.findings)
        return f"<code>{escape(repr(self))}</code><ul>{notes}</ul>"


def load_collection(
    X: Any, y: Any, *, qid: Any, group: Any, qrels: Any, queries: Mapping[Any, str] | None, docid: Any
) -> LoadedCollection:
    """Check the data that was given to `Guard.register` or `Guard.status`.

    Parameters
    ----------
    X, y, qid, group, docid
        Rows; X may be a RankingData, or judgments as Qrels.
    qrels : Qrels, mapping, frame or path
        Judgments, instead of rows.
    queries : mapping of query id to str, optional
        The texts of the queries.

    Raises
    ------
    InvalidInput
        If both are given, or neither, or a part is missing.
    QueryIdError
        If the group sizes are none of these rows, or disagree with the ids.
    """
    if isinstance(X, RankingData):
        if y is not None or qid is not None or group is not None:
            raise InvalidInput("a RankingData has its own y and qid: give it alone")
        X, y, qid, docid = X.X, X.y, X.qid, X.docid if docid is None else docid
    if isinstance(X, Qrels):
        X, qrels = None, X
    if qrels is not None:
        if any(part is not None for part in (X, y, qid, group)):
            raise InvalidInput("give rows (X, y, and qid= or group=) or judgments (qrels=), not both")
        return LoadedCollection(qrels=as_qrels(qrels), queries=queries)
    if y is None:
        raise InvalidInput("y is missing: a test collection has a label for each row, or is given as qrels=")
    if qid is None and group is None:
        raise InvalidInput("qid= is missing: give the query of each row, or the sizes of consecutive queries (group=)")
    check_rows(X=X, y=y, qid=qid, docid=docid)
    index = next((found for found in map(index_of, (X, y, qid, docid)) if found is not None), None)
    labels = as_numbers(y, name="y")
    if not np.isfinite(labels).all():
        raise InvalidInput(f"row {int(np.argmin(np.isfinite(labels)))} has no finite label", argument="y")
    if group is not None:
        qid = ids_of_rows(qid, group, len(labels))
    # Kept in a form whose rows can be taken, but for frames, from which models read names.
    rows = X.tocsr() if hasattr(X, "tocsr") else X if X is None or hasattr(X, "iloc") else np.asarray(X)
    documents = None if docid is None else as_typed(docid, "docid")
    return LoadedCollection(rows, labels, as_typed(qid), documents, queries=queries, index=index)
