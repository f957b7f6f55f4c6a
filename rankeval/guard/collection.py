"""A collection in memory, and the rankings that systems give of it.

Rankings are made from scores, fitted models or runs, and stored in the ledger until they are
opened. The ledger stores a ranking in the order of the content, not of the rows: its scores are
sorted as `Fingerprint.canonical_order` sorts the rows. So a plan can be opened where the same
collection was loaded with its rows in another order and its queries under other ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count, few, refuse, require, said
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.collection.data import RankingData, take_rows
from rankeval.collection.qrels import Qrels, as_qrels
from rankeval.collection.rows import check_rows, index_of
from rankeval.collection.run import Run, as_run
from rankeval.contamination.fingerprint import (
    Fingerprint,
    fingerprint,
    fingerprint_qrels,
    queries_of,
    run_outputs,
)
from rankeval.contamination.hashing import as_numbers
from rankeval.errors import InvalidInput, LedgerError, RankevalError
from rankeval.evaluation.responses import by_query, ranking_methods, responses
from rankeval.guard.checks import Finding
from rankeval.io.columns import as_column, as_typed, refuse_ragged, refuse_unbounded, scores
from rankeval.join.flat import ids_of_rows
from rankeval.join.matching import Hashes
from rankeval.ledger.graph import mention, short
from rankeval.measures import measure

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison.groups import Groups
    from rankeval.evaluation import Evaluation
    from rankeval.ledger.ledger import Ledger


Ranking = NDArray[np.float64] | Run
"""Scores in the order of the rows, or a run."""


@dataclass(frozen=True, eq=False)
class LoadedCollection:
    """A collection in memory: rows with their labels, or judgments."""

    X: Any | None = None  # Rows; None for judgments
    y: NDArray[np.float64] | None = None
    qid: NDArray[Any] | None = None
    docid: NDArray[Any] | None = None
    qrels: Qrels | None = None  # Judgments
    queries: Mapping[Any, str] | None = None  # The texts of the queries
    index: Any | None = None  # Labels of the rows; scores with an index must have the same one

    @cached_property
    def prints(self) -> Fingerprint:
        """The fingerprint of the data as it was when first asked for."""
        if self.qrels is not None:
            prints = fingerprint_qrels(self.qrels, queries=self.queries)
        else:
            prints = fingerprint(self.X, self.y, self.qid, docid=self.docid, queries=self.queries)
        if self.queries is None:
            return prints
        known = set(map(str, self.queries))
        missing = [name for name in prints.names.tolist() if str(name) not in known]
        if missing:
            raise InvalidInput(
                argument="queries",
                found=f"without {few(missing)}",
                expected="the text of each query",
            )
        return prints

    def rows_of(self, places: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which rows belong to some queries."""
        # Places count queries in the order of the content; the sort says which query of the data
        # each one is.
        wanted = np.zeros(self.prints.n_queries, dtype=bool)
        wanted[np.argsort(self.prints.content, kind="stable")[places]] = True
        return wanted[self.prints.codes]

    def part(self, rows: NDArray[np.bool_]) -> LoadedCollection:
        """Return the collection with some of its rows, those of whole queries."""
        if self.qrels is not None:
            columns = {
                name: getattr(self.qrels, name) for name in ("qid", "docid", "aspect", "subgroup")
            }
            kept = {name: column and column.filter(rows) for name, column in columns.items()}
            return replace(self, qrels=Qrels(relevance=self.qrels.relevance[rows], **kept))
        places = np.flatnonzero(rows)
        parts = {name: getattr(self, name) for name in ("X", "y", "qid", "docid", "index")}
        taken = {
            name: None if column is None else take_rows(column, places)
            for name, column in parts.items()
        }
        return replace(self, **taken)

    @property
    def labels(self) -> NDArray[np.float64]:
        """The labels, one per row."""
        return as_numbers(self.y if self.qrels is None else self.qrels.relevance, name="labels")

    def ranking(self, name: str, system: Any) -> Ranking:
        """Return the ranking of one system from its scores, its fitted model or its run."""
        if self.qrels is not None:
            return as_run(system)
        if hasattr(system, "predict"):
            try:
                system = self._predict(name, system)
            except RankevalError:
                raise
            except Exception as error:
                cause = said(error).rstrip(".")
                raise InvalidInput(
                    f"{name!r} cannot predict on the rows of the collection: {cause}. If it was fitted on other "
                    f"features, give its scores of these rows instead: systems={{{name!r}: scores, ...}}"
                ) from error
        # The scores must have the index of the rows, which were given at the registration: the collection
        # stands in for its labels, of which the index alone is read.
        check_rows(**{"y": self, name if name != "y" else "the system y": system})
        score = scores(as_column(system), f"the scores of {name!r}").astype(np.float64)
        n_rows = len(self.prints.codes)
        if len(score) != n_rows:
            found = f"{count(len(score), 'score')} for {count(n_rows, 'row')}"
            raise InvalidInput(
                f"has {found}; give one per row, in their order", argument=repr(name)
            )
        refuse_unbounded(score, repr(name))
        return score

    def outputs(self, ranking: Ranking) -> dict[str, Hashes]:
        """Return the hashes of a ranking output, query by query, in the order of the content."""
        prints = self.prints
        outputs = (
            run_outputs(prints, ranking) if isinstance(ranking, Run) else prints.outputs(ranking)
        )
        order = np.argsort(prints.content, kind="stable")
        return {kind: hashes[order] for kind, hashes in outputs.items()}

    def evaluate(
        self, name: str, ranking: Ranking, measures: Sequence[str], convention: Any
    ) -> Evaluation:
        """Score a ranking without asking whether the collection is registered."""
        from rankeval.evaluation import Given, score

        truth = self.labels if self.qrels is None else self.qrels
        labelled = [(str(parsed), parsed) for parsed in map(measure, measures)]
        return score(
            Given(truth, ranking, self.qid, self.docid).join(convention), labelled, name=name
        )

    def stored(self, ranking: Ranking) -> dict[str, NDArray[Any]]:
        """Return a ranking as arrays, in the order of the content."""
        if not isinstance(ranking, Run):
            return {"score": ranking[self.prints.canonical_order]}
        grouping, codes = queries_of(ranking.qid)
        query = self.prints.places(grouping.queries)[codes]
        judged = query >= 0  # other queries of the run belong to other collections
        return {
            "query": query[judged],
            "docid": _encode_ids(ranking.docid.filter(judged)),
            "score": ranking.score[judged],
        }

    def restored(self, stored: Mapping[str, NDArray[Any]], name: str) -> Ranking:
        """Return a stored ranking for the rows or query ids at hand."""
        score = stored["score"]
        if "docid" not in stored:
            # The inverse of the order in which `stored` takes the scores.
            rows = np.empty_like(score)
            rows[self.prints.canonical_order] = score
            return rows
        qid = self.prints.names_by_content[stored["query"]]
        return Run(qid, _decode_ids(stored["docid"]), score, name)

    def by_content(self, evaluation: Evaluation) -> NDArray[np.float64]:
        """Return the scores of an evaluation, a row per query in the order of the content; nan if it lacks one."""
        scores = np.full((self.prints.n_queries, len(evaluation.measure_names)), np.nan)
        scores[self.prints.places(evaluation.queries)] = evaluation.scores
        return scores

    @property
    def ids(self) -> pd.Index[Any]:
        """The ids of the queries, in the order of the content."""
        from rankeval.evaluation.by_query import id_index

        return id_index(self.prints.names_by_content)

    def grouped(self, groups: Any) -> Groups:
        """Return the groups of the queries, in the order of the content; if none are given, each query is alone."""
        from rankeval.comparison.groups import Groups, query_groups

        return (
            Groups("query", "query", np.arange(len(self.ids)))
            if groups is None
            else query_groups(groups, self.ids)
        )

    def _predict(self, name: str, model: Any) -> Any:
        X = self.X
        if X is None:
            raise InvalidInput(
                f"{name!r} is a model, but the collection was registered without X: give its scores"
            )
        # A column of query ids is no feature, unless the model was fitted with it.
        if (
            hasattr(X, "iloc")
            and "qid" in X.columns
            and "qid" not in getattr(model, "feature_names_in_", ())
        ):
            X = X.drop(columns="qid")
        if (ranker := by_query(model)) is not None:
            return ranker.predict(X, qid=self.qid)
        # An index of predictions is compared with that of the rows, so they are not made an array
        # here.
        return model.predict(X) if ranking_methods(model) == ("predict",) else responses(model, X)


def output_digest(outputs: Mapping[str, Hashes]) -> str:
    """Return one hash for a whole ranking output, under which its look is counted."""
    # The first kind that the rows have: features tell rows apart that share a label. Sorted, so
    # that the order of the queries makes no difference, and little-endian, so that the machine
    # makes none.
    kind = next(kind for kind in ("features", "documents", "labels") if kind in outputs)
    return hashlib.sha256(
        kind.encode() + np.sort(outputs[kind]).astype("<u8").tobytes()
    ).hexdigest()


def keep_groups(ledger: Ledger, groups: Groups) -> dict[str, Any]:
    """Keep the groups of queries in a file of the ledger, and return the fields of a plan or a gate that name them."""
    return {
        "groups": ledger.keep("signatures", {"groups": groups.numbers}),
        "grouped_by": groups.noun,
    }


def groups_kept(ledger: Ledger, declared: Any, ids: Any) -> pd.Series[int]:
    """Return the groups of a plan or of the terms of a gate, by ids in the order of the content."""
    import pandas as pd

    return pd.Series(ledger.load(declared.groups)["groups"], ids, name=declared.grouped_by)


def _encode_ids(ids: Any) -> NDArray[np.uint8]:
    import pyarrow as pa

    table = pa.table({"docid": ids})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def _decode_ids(encoded: NDArray[np.uint8]) -> Any:
    import pyarrow as pa

    with pa.ipc.open_stream(encoded.tobytes()) as reader:
        return reader.read_all()["docid"].combine_chunks()


@escaping
@dataclass(frozen=True, eq=False, repr=False)
class RegisteredCollection(Displayed):
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

    def _view(self) -> View:
        revision = ", a revision" if self.revises else ""
        sizes = f"{count(self.n_queries, 'query')}, {count(self.n_rows, 'row')}"
        sentence = f"{self.name}{revision}: {sizes}, {self.n_identifiable} recognisable"
        registered = f"project {self.project!r}, {mention(self.ledger, short(self.head))}"
        notes = [finding.words for finding in self.findings]
        return View([sentence, f"Registered: digest {self.digest[:12]}, {registered}"], notes=notes)


def check_registered(collection: Any, *, or_name: bool = False) -> None:
    """Refuse anything but a registered collection, or its name if that will do."""
    expected = "a registered collection or its name" if or_name else "the result of guard.register"
    kinds = (RegisteredCollection, str) if or_name else (RegisteredCollection,)
    require(isinstance(collection, kinds), "collection", collection, expected)


def load_collection(
    X: Any,
    y: Any,
    *,
    qid: Any,
    group: Any,
    qrels: Any,
    queries: Mapping[Any, str] | None,
    docid: Any,
) -> LoadedCollection:
    """Check the data that was given to `Guard.register` or `Guard.status`."""
    twice = isinstance(X, RankingData) and any(part is not None for part in (y, qid, group))
    if isinstance(X, RankingData):
        X, y, qid, docid = X.X, X.y, X.qid, X.docid if docid is None else docid
    if isinstance(X, Qrels):
        X, qrels = None, X
    has_rows, judged = any(part is not None for part in (X, y, qid, group)), qrels is not None
    both = "give rows (X, y, and qid= or group=) or judgments (qrels=), not both"
    no_y = "y is missing: a test collection has a label for each row, or is given as qrels="
    no_qid = (
        "qid= is missing: give the query of each row, or the sizes of consecutive queries (group=)"
    )
    refuse(
        (twice, "a RankingData has its own y and qid: give it alone"),
        (has_rows and judged, both),
        (not judged and y is None, no_y),
        (not judged and qid is None and group is None, no_qid),
    )
    if judged:
        return LoadedCollection(qrels=as_qrels(qrels), queries=queries)
    refuse_ragged(X, "X")
    check_rows(X=X, y=y, qid=qid, docid=docid)
    index = next((found for found in map(index_of, (X, y, qid, docid)) if found is not None), None)
    labels = as_numbers(y, name="y")
    refuse_unbounded(labels, "y")
    if group is not None:
        qid = ids_of_rows(qid, group, len(labels))
    # Kept in a form whose rows can be taken, but for frames, from which models read names.
    rows = X.to_pandas() if hasattr(X, "to_pandas") else X
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
    elif rows is not None and not hasattr(rows, "iloc"):
        rows = np.asarray(rows)
    documents = None if docid is None else as_typed(docid, "docid")
    return LoadedCollection(rows, labels, as_typed(qid), documents, queries=queries, index=index)
