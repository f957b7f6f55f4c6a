"""evaluate: refuse, join, score, wrap; and `Given`, truth and ranking as a caller gives them.

`Given` is the one way into a join. `Given.refuse_or_join` asks `contamination.refusal` first.
Cross-validation asks it once for all folds before it joins, and the guard itself joins what it
opens.

Scores given as judgments: refused where the values show it, because the result would be a number
like any other.

Values tell the two apart only where they differ in kind. Scores of a model are real numbers, hardly
one of them twice or on a grid; judgments are few whole numbers, and many documents of a query share
one. Judgments with fractions are never scores by that alone: means of several judges lie on a grid,
such as thirds, and gains from clicks have zeros. Nor are whole scores labels by that alone: ranks
have no ties within a query, and rounded scores have many levels. So both sides must look like the
other. The trap is a false alarm. A gain of any real number, never zero, beside a ranker that knows
a few whole scores looks just like a swap: such judgments are given as `Qrels`, or as a named column
of a frame.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._arguments import explained
from rankeval._checks import check_count, refuse, require
from rankeval.collection.convention import Convention, rules_of_call
from rankeval.collection.qrels import as_qrels
from rankeval.collection.run import as_run
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.evaluation.by_query import query_weights
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.scoring import bound_measures
from rankeval.evaluation.scoring import score as score_joined
from rankeval.io import columns
from rankeval.io.frames import frame_columns, is_records
from rankeval.io.words import Grades
from rankeval.join.flat import ids_of_rows
from rankeval.join.joined import Joined, column_role, join_arrays
from rankeval.ledger import discovery
from rankeval.measures import LabelledMeasure, Measure
from rankeval.measures import measures as parse_measures
from rankeval.retrieval.searches import is_search

Specs = str | Measure | Iterable[str | Measure]

DEFAULT_MEASURES = ("nDCG@10", "AP", "RR")

_SAMPLE = 512
"""Values that are looked at first: whole labels of any number cost microseconds."""

_LEAST = 8
"""Distinct real numbers below which there is no evidence."""

_GRIDS = np.array([*range(1, 13), 100.0])
"""Parts of a grade that means of judges and rounded numbers have."""

_COLUMNS = "relevance", "score"
"""The arguments of a call that names them as columns of a frame."""

_MOST_LEVELS, _LOWEST, _HIGHEST = 6, -2, 10
"""Grades of judgments: -2 is spam in TREC's web tracks."""


@dataclass(frozen=True, eq=False)
class Given:
    """Truth and ranking that can be joined.

    Attributes
    ----------
    truth, ranking : array of shape (n_rows,), or Qrels and Run
        Relevance and score of each row, or the judgments and the run of a collection.
    qid : array of shape (n_rows,), optional
        The query of each row; None for a collection.
    docid : array of shape (n_rows,), optional
        The document of each row.
    name : str, optional
        The name of the run.
    queries : mapping of query id to str, optional
        The texts of the queries, for the guard.
    read : mapping of str to array of shape (n_rows,)
        Columns of the rows that measures read.
    by_position : bool
        Whether only their places say which is which. Names of columns, types and formats of TREC
        files say more.
    rank : array of shape (n_rows,), optional
        A column of ranks beside the scores, which may run against them.
    arguments : tuple of str
        The caller's names of truth and ranking, for messages.
    """

    truth: Any
    ranking: Any
    qid: Any = None
    docid: Any = None
    name: str | None = None
    queries: Mapping[Any, str] | None = None
    read: Mapping[str, Any] = field(default_factory=dict)
    by_position: bool = False
    rank: Any = None
    arguments: tuple[str, str] = ("truth", "ranking")

    @classmethod
    def of(
        cls,
        truth: Any,
        ranking: Any,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        docid: ArrayLike | None = None,
        queries: Mapping[Any, str] | None = None,
        read: Mapping[str, Any] = MappingProxyType({}),
        named: bool = False,
    ) -> Given:
        """Take the arguments of `rankeval.evaluate`, and read files.

        Parameters
        ----------
        truth, ranking, qid, group, docid, queries
            As in `rankeval.evaluate`.
        read : mapping of str to array of shape (n_rows,)
            Columns of the rows that measures read.
        named : bool
            Whether the caller named truth and ranking as columns of a frame.

        Raises
        ------
        QueryIdError
            If arrays come without query ids, or with two sources of them that disagree.
        InvalidInput
            If a file, frame or dict holds no judgments or no run.
        """
        if qid is not None or group is not None:
            names = _COLUMNS if named else cls.arguments
            if group is not None:
                qid = ids_of_rows(qid, group, len(columns.scores(ranking, names[1])))
            given = cls(truth, ranking, qid, docid, queries=queries, read=read, arguments=names)
            return replace(given, by_position=not named)
        if not _is_collection(truth):
            raise QueryIdError(
                "qid= is missing: arrays need the query of each row (qid=) or the group sizes "
                "(group=); a collection is given as Qrels and Run, dicts, frames or paths",
                remedy=_array_remedy(truth),
            )
        if read:
            raise InvalidInput(
                "a column has a number for each ranked row, "
                "and judgments and a run have no such rows",
                argument="columns",
                remedy="join it to a frame of the ranked rows, "
                "and name its columns by qid=, relevance=, score= and columns=",
            )
        qrels, run = as_qrels(truth), as_run(ranking)
        is_json = qrels.source is not None and qrels.source.format == "json"
        texts = run.queries if queries is None else queries
        by_position = is_json or isinstance(truth, Mapping)
        return cls(qrels, run, name=run.name, queries=texts, by_position=by_position)

    def join(self, convention: Convention) -> Joined:
        """Join truth and ranking.

        Raises
        ------
        InvalidInput
            If they do not fit together.
        """
        if self.qid is not None:
            rows = self.truth, self.ranking, self.qid
            beside = {"docid": self.docid, "read": self.read, "arguments": self.arguments}
            joined = join_arrays(*rows, **beside, convention=convention)
            return joined if self.rank is None else joined.beside_ranks(self.rank)
        from rankeval.join.collections import join_collection

        return join_collection(self.truth, self.ranking, convention=convention)

    def refuse_or_join(self, convention: Convention, *, action: str) -> Joined:
        """Join truth and ranking, unless they are registered test content.

        Parameters
        ----------
        convention : Convention
            The rules of the join.
        action : str
            The caller's action, for the refusal.

        Raises
        ------
        InvalidInput
            If they do not fit together, or are swapped.
        GuardRefusal
            If the content is registered with a guard and this ranking was not opened.
        """
        # Arrays are joined first, because the join checks the columns that are read here.
        joined = None if self.qid is None else self.join(convention)
        if self.by_position and joined is not None:
            refuse_swapped(joined.relevance, joined.score, self.qid)
        elif self.by_position:
            refuse_swapped(self.truth.relevance, self.ranking.score, self.ranking.qid)
        if discovery.active_urls():  # without a ledger nothing is registered
            from rankeval.contamination.refusal import ContaminationCheck

            check, texts = ContaminationCheck.current(), self.queries
            if joined is None:
                check.refuse_collection(self.truth, self.ranking, queries=texts, action=action)
            else:
                rows = {"docid": self.docid, "queries": texts, "score": self.ranking}
                check.refuse(None, self.truth, self.qid, **rows, action=action)
        return self.join(convention) if joined is None else joined


def _array_remedy(truth: Any) -> str | None:
    """Say how to pass lists or a matrix, sparse or not, with a query a row."""
    if isinstance(truth, (list, tuple)) and truth and isinstance(truth[0], (list, tuple, set)):
        ids = "if the lists contain ids, give dict(enumerate(...)) of both"
        return f"{ids}; if they contain numbers, give one list of each, with qid="
    is_sparse = hasattr(truth, "toarray")
    if is_sparse or getattr(truth, "ndim", 1) == 2:
        dense = "toarray().ravel()" if is_sparse else "ravel()"
        qid = "qid=np.repeat(np.arange(n_queries), n_documents)"
        return f"if a row is a query, give {dense} of both, and {qid}"
    return None


def _is_collection(truth: Any) -> bool:
    # Polars warns if a lazy frame, which has collect_schema, is asked for its columns.
    is_held = any(hasattr(truth, name) for name in ("relevance", "collect_schema"))
    if is_held or isinstance(truth, (str, os.PathLike, Mapping)) or is_records(truth):
        return True
    is_frame = hasattr(truth, "columns") or hasattr(truth, "__arrow_c_stream__")
    return is_frame and getattr(truth, "ndim", 2) == 2


@explained
def evaluate(
    truth: Any,
    ranking: Any = None,
    *,
    qid: ArrayLike | str | None = None,
    relevance: str | None = None,
    score: str | None = None,
    group: ArrayLike | None = None,
    docid: ArrayLike | str | None = None,
    columns: Any = None,
    measures: Specs = DEFAULT_MEASURES,
    convention: str | Convention = "rankeval",
    ties: str | None = None,
    missing: str | None = None,
    no_relevant: str | None = None,
    judgments: str | None = None,
    exclude_self: bool = False,
    grades: Grades = None,
    n_items: int | None = None,
    n_sampled: int | None = None,
    query_weight: Any | None = None,
    queries: Any = None,
    k: int | None = None,
    name: str | None = None,
) -> Evaluation:
    """Score a ranking against judgments, query by query.

    Parameters
    ----------
    truth, ranking : array of shape (n_rows,), or Qrels and Run, dicts, frames, paths
        With ``qid=`` or ``group=``: the relevance and the score of each row, rows in any order.
        Without: the judgments of a collection and a run, also as ``{qid: {docid: number}}`` or
        ``{qid: [docid, ...]}``: a ranked list of a run, relevant documents of judgments. Arguments
        that look swapped are refused. Series in one call need equal indexes in the same order;
        others are refused, because the caller may have meant position or label. Scores are compared
        as 64-bit floats; whole numbers that do not fit into them are refused.

        Beside the judgments of a collection, ``ranking`` may also be a search: a function of the
        text of a query, or an object with a method ``transform`` or ``search``, as in
        `rankeval.retrieve`. It is called with each of the ``queries``.

        With ``relevance=`` and ``score=``: ``truth`` is a frame of pandas, polars or Arrow with a
        row for each ranked document, and ``ranking`` is left out. See `evaluate_dataset` for
        Parquet that is larger than memory.
    qid : array of shape (n_rows,), or str, optional
        The query of each row, ids of any type; the name of its column in a frame.
    relevance, score : str, optional
        The columns of a frame with the relevance and the score of each row.
    group : array of shape (n_queries,), optional
        Instead of ``qid``: the number of rows of each query, in row order.
    docid : array of shape (n_rows,), or str, optional
        The document of each row, or its column; only ``ties="docid"`` reads it.
    columns : mapping of str to array of shape (n_rows,), or str or list of str, optional
        Columns of the rows that measures read, such as ``{"price": price}`` for
        ``"Revenue@5(column='price')"``: finite numbers, one per row. For a frame, the names of its
        columns: ``["price"]``, or ``{"price": "price_usd"}`` to give one another name. A column
        that no measure reads is left alone.
    measures : str, Measure or iterable of them
        The measures to compute.
    convention : str or Convention
        The rules that join truth and ranking and decide which queries count: the name of a preset,
        or a `Convention`.
    ties, missing, no_relevant, judgments : str, optional
        Single rules that replace those of the convention. See `Convention`.
    exclude_self : bool, default False
        Leave out of ranking and judgments the documents whose id is that of their query: the rule
        ``own_document="exclude"`` of a convention. In BEIR's Quora and ArguAna each query is a
        document of the collection, and finds itself first. ``notes`` has their number, and
        ``excluded`` the queries that have no other document. Arrays and frames need ``docid``.
    grades : mapping of str to number, optional
        The grades of labels that are words, such as ``{"Exact": 2, "Partial": 1, "Irrelevant": 0}``.
        Labels that are not named are refused.
    n_items, n_sampled : int, optional
        The number of all items, and of those sampled for each list beside its relevant ones, as
        recommenders are often evaluated. The result keeps them and a note goes with the numbers,
        since such means differ from those of a ranking of all items.
        `rankeval.analysis.corrected_for_sampling` estimates these. Evaluations of other samples are
        not compared.
    query_weight : mapping or Series by query id, or array of shape (n_rows,), or str, optional
        The weight of each query in the means; a row-wise array, or a column of a frame, must be
        constant within a query.
    queries : mapping of query id to str, optional
        The texts of the queries, or of some. The guard recognises a registered text under any id.
        By default those that a run of ``rk.text`` or ``retrieve`` was found for. A search needs
        them, in any form that `rankeval.retrieve` takes; judged queries without a text are missing
        from its run, and ``notes`` names them.
    k : int, optional
        Documents to keep for each query of a search, by default 1000.
    name : str, optional
        Name of the system; by default the name of the run.

    Returns
    -------
    Evaluation
        ``per_query`` has shape (n_queries, n_measures).

    Raises
    ------
    InvalidInput
        If the data cannot be evaluated, or judgments are real numbers beside a ranking by few whole
        ones, as if the two were swapped. The message names the argument, the place and the remedy.
    UnknownName
        If a measure, convention or rule does not exist.
    GuardRefusal
        If the content is registered with a guard and this ranking was not opened.

    Examples
    --------
    >>> qid, label, score = ["a", "a", "b", "b"], [1, 0, 0, 1], [0.9, 0.2, 0.3, 0.1]
    >>> ev = evaluate(label, score, qid=qid, measures=["RR", "P@1"])
    >>> ev.per_query["RR"].tolist()
    [1.0, 0.5]

    A frame:

    >>> import pandas as pd
    >>> log = pd.DataFrame({"query": qid, "label": label, "score": score})
    >>> ev = evaluate(log, qid="query", relevance="label", score="score", measures="RR")
    >>> ev.per_query["RR"].tolist()
    [1.0, 0.5]
    """
    searches = qid is None and group is None and is_search(ranking)
    if not searches:
        have_ids = queries is None or hasattr(queries, "items")
        require(have_ids, "queries", queries, "texts by query id")
        require(k is None, "k", k, "None, unless the ranking is a search")
    is_by_row = qid is not None or group is not None
    own_document = "exclude" if exclude_self else None
    rules = rules_of_call(
        convention,
        is_by_row,
        ties=ties,
        missing=missing,
        no_relevant=no_relevant,
        judgments=judgments,
        own_document=own_document,
    )
    parsed = parse_measures(measures, rules)  # a misspelt name is an error before anything is read
    read = columns_read(columns, parsed, rules)
    by_role = {"qid": qid, "relevance": relevance, "score": score, "docid": docid}
    by_role["query_weight"] = query_weight
    by_role |= {column_role(name): column for name, column in read.items()}
    if any(isinstance(column, str) for column in by_role.values()):
        _refuse_mixed(truth, ranking, group, by_role)
    else:
        for role in ("relevance", "score"):
            require(by_role[role] is None, role, by_role[role], "the name of a column of the frame")
        if ranking is None:
            raise InvalidInput(
                f"ranking is missing beside truth ({type(truth).__name__})",
                remedy="give the scores of its rows, or a run; "
                "of a frame, name the columns by qid=, relevance= and score=",
            )
    if relevance is not None:
        names = {role: name for role, name in by_role.items() if isinstance(name, str)}
        by_role |= frame_columns(truth, names)
        truth, ranking = by_role["relevance"], by_role["score"]
    if grades is not None:
        truth = _graded(truth, grades, is_by_row=is_by_row)
    if searches:
        from rankeval.retrieval.retrieving import searched

        truth = as_qrels(truth)
        ranking, queries = searched(truth, ranking, queries, k, name), None
    given = Given.of(
        truth,
        ranking,
        qid=by_role["qid"],
        group=group,
        docid=by_role["docid"],
        queries=queries,
        read={column: by_role[column_role(column)] for column in read},
        named=isinstance(relevance, str),
    )
    given = replace(given, rank=by_role.get("rank"))
    joined = given.refuse_or_join(rules, action="evaluate")
    if n_items is not None or n_sampled is not None:
        joined = _sampled(joined, n_items, n_sampled)
    rows = {}
    if given.qid is not None:
        arguments = (*given.arguments, "qid", "docid")
        rows = dict(zip(arguments, (truth, ranking, given.qid, given.docid), strict=True))
    weight = None if query_weight is None else query_weights(by_role["query_weight"], joined, rows)
    return score_joined(joined, parsed, weights=weight, name=name or given.name, rows=given.qid)


def _graded(truth: Any, grades: Mapping[Any, float], *, is_by_row: bool) -> Any:
    from rankeval.collection.qrels import Qrels

    if is_by_row:
        return columns.relevances(truth, "truth", grades)
    return Qrels.from_any(truth, grades=grades)


def _sampled(joined: Joined, n_items: Any, n_sampled: Any) -> Joined:
    check_count("n_sampled", n_sampled)
    check_count("n_items", n_items)
    require(n_sampled < n_items, "n_sampled", n_sampled, f"fewer than the {n_items} items")
    sampled = str(int(n_sampled)), str(int(n_items))
    return replace(joined, signs={**joined.signs, "sampled": sampled})


def _refuse_mixed(truth: Any, ranking: Any, group: Any, by_role: dict[str, Any]) -> None:
    """Refuse names of columns beside arrays, without a frame, or without all that are needed."""
    name = next(f"{role}={name!r}" for role, name in by_role.items() if isinstance(name, str))
    parts = list(truth) if isinstance(truth, (list, tuple)) else [truth]
    are_paths = parts and all(isinstance(part, (str, os.PathLike)) for part in parts)
    parquet = f"{name} is the name of a column, but evaluate reads no Parquet data set"
    beside = f"{name} is the name of a column of a frame, and a ranking or group= was given too"
    alone = "give the frame alone, with qid=, relevance= and score=, or arrays as truth and ranking"
    dataset = "call rankeval.evaluate_dataset(data, qid=, relevance=, score=)"
    refuse(
        (are_paths or hasattr(truth, "get_fragments"), parquet, dataset),
        (ranking is not None or group is not None, beside, alone),
    )
    needed = ["qid", "relevance", "score"]
    if by_role["docid"] is not None:
        needed.append("docid")
    refuse_unnamed({role: by_role[role] for role in needed}, "the frame")


def columns_read(
    columns: Any, labelled: Iterable[LabelledMeasure], rules: Convention
) -> dict[str, Any]:
    """Return name -> the column that measures read, or its name in a frame."""
    known = columns_by_name(columns)
    measures = bound_measures((measure for _, measure in labelled), rules)
    for measure in measures:
        measure.refuse_lacking(known)
    return {name: known[name] for measure in measures for name in measure.columns.values()}


def columns_by_name(columns: Any) -> dict[str, Any]:
    """Return the columns of a call by the names that measures know; a list is of names."""
    if columns is None or hasattr(columns, "items"):  # a mapping, or a frame of pandas
        return dict(() if columns is None else columns.items())
    names = [columns] if isinstance(columns, str) else columns
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        expected = "a mapping of names to columns, or a list of names of columns"
        found = f"of type {type(columns).__name__}"
        raise InvalidInput(argument="columns", found=found, expected=expected)
    return dict(zip(names, names, strict=True))


def refuse_unnamed(by_role: Mapping[str, Any], what: str) -> None:
    """Refuse anything but the names of columns, given by argument; ``what`` has the columns."""
    for role, column in by_role.items():
        if not isinstance(column, str):
            found = "nothing" if column is None else f"a {type(column).__name__}"
            problem = f"expected the name of a column of {what}, found {found}"
            raise InvalidInput(problem, argument=role)


def refuse_swapped(relevance: NDArray[Any], score: NDArray[Any], qid: Any) -> None:
    """Refuse judgments that look like scores beside scores that look like judgments."""
    sample = score[:: len(score) // _SAMPLE + 1]
    is_real = relevance.dtype.kind == "f" and _real(relevance[:: len(relevance) // _SAMPLE + 1])
    if is_real and len(score) and (sample == np.floor(sample)).all() and _labels(score, qid):
        numbers = f"real numbers, as scores are ({relevance[0]:.6g}, ...)"
        raise InvalidInput(
            argument="truth",
            found=f"{numbers}, beside a ranking by few whole numbers",
            expected="the judgments first, then the ranking",
            remedy="swap the two; if these are the judgments, give rk.Qrels, "
            "or a frame with relevance= and score=",
        )


def _real(values: NDArray[Any]) -> bool:
    values = values.astype(np.float64, copy=False)
    # Gains from clicks have zeros.
    if (values == np.floor(values)).mean() > 1 / 3 or (values == 0).mean() > 0.05:
        return False
    on_grid = np.rint(values[:, None] * _GRIDS) / _GRIDS
    distance = np.abs(values[:, None] - on_grid).min(axis=1)
    # The tolerance of a third that was rounded to three digits.
    free = distance > np.minimum(5e-4, 5e-3 * np.abs(values))
    return bool(free.mean() > 0.6) and len(np.unique(values[free])) >= _LEAST  # about .86 by chance


def _labels(score: NDArray[Any], qid: Any) -> bool:
    levels = np.unique(score)
    if len(levels) > _MOST_LEVELS or levels[0] < _LOWEST or levels[-1] > _HIGHEST:
        return False
    if (levels != np.floor(levels)).any():
        return False
    if len(levels) == 1:
        return bool(levels[0] == 1)  # judgments of relevant documents alone
    query, _ = columns.comparable(qid, "qid")
    order = np.lexsort((score, query))
    query, score = query[order], score[order]
    is_same_query, is_tied = query[1:] == query[:-1], score[1:] == score[:-1]
    return bool((is_same_query & is_tied).any())
