"""Set whole queries apart: a test part, by a hash of the query ids or by time, and rows to stop a booster early on.

To stop early by one of our measures, whole queries, or whole units of queries, are held out: those
whose ids have the smallest hashes. So the same data gives the same queries in whatever order its
rows come.

A validation part of one's own comes as `eval_set` and its ids, in the forms that the boosters take.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._arguments import explained
from rankeval._checks import check_count, check_share, count, refuse, shown
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.collection.convention import get_convention
from rankeval.collection.data import RankingData
from rankeval.collection.rows import check_rows, column_names
from rankeval.errors import InvalidInput, UnusableQueryIdsError, warn
from rankeval.io import columns
from rankeval.model_selection import boosters, nesting
from rankeval.model_selection.checks import check_measures
from rankeval.model_selection.inside_searches import in_search
from rankeval.model_selection.query_ids import (
    encode,
    find,
    id_array,
    n_rows,
    required_ids,
    without_ids,
)
from rankeval.model_selection.query_split import is_by_query
from rankeval.model_selection.rows import EarlyStopping, TrainingRows
from rankeval.model_selection.splitters import moments, query_times
from rankeval.render.tables import Table


@escaping
@dataclass(frozen=True, repr=False)
class DevTestSplit(Displayed):
    """A dev part to work with, and a test part to look at once.

    Attributes
    ----------
    dev, test : RankingData
        The two parts.
    salt : str
        The salt of the hash.
    test_size : float, optional
        The requested share of queries in the test part; None if it was split by time.
    registered : RegisteredCollection, optional
        The test part in the guard's ledger.
    test_from : object, optional
        The time from which on queries are in the test part; None if it was split by hash.
    n_earlier : int
        Number of rows of the test part that are earlier than ``test_from``, since their queries
        came again later.
    note : str
        What to know of a split that cuts users; empty for others.
    """

    dev: RankingData
    test: RankingData
    salt: str = ""
    test_size: float | None = 0.2
    registered: Any = None
    test_from: Any = None
    n_earlier: int = 0
    note: str = ""

    @property
    def earlier(self) -> str:
        """What to know of the older rows of the test part; empty if there are none."""
        if not self.n_earlier:
            return ""
        return (
            f"{self.n_earlier:,} of the {len(self.test):,} test rows are earlier than {self.test_from}, since a query "
            "is kept whole, at the time of its latest row: give each search an id of its own, such as text + day"
        )

    def _view(self) -> View:
        import pandas as pd

        parts = {"dev": self.dev, "test": self.test}
        sizes = [(name, part.n_queries, len(part)) for name, part in parts.items()]
        table = Table(pd.DataFrame(sizes, columns=["part", "queries", "rows"]))
        registered = self.registered
        ledger = "not registered" if registered is None else f"registered as {registered.name!r}"
        notes = [f"the test part is {ledger}", self.earlier, self.note]
        return View(["Dev and test part of the data"], [table], [*filter(None, notes)])


@explained
def dev_test_split(
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    test_size: float | None = None,
    salt: str = "",
    times: Any = None,
    test_from: Any = None,
    guard: Any = None,
    test_name: str | None = None,
    supersedes: Any = None,
) -> DevTestSplit:
    """Split off a test part by a salted hash of the query ids, or by time.

    By hash, the side of a query depends only on its id and the salt. It stays the same if queries
    are added, and if ids are numbers in one file and texts in another. So the share of test queries
    is ``test_size`` in expectation.

    By time, the test part has all queries with a row at ``test_from`` or later, with all of their
    rows. So no row of the dev part is of that time or later. If later rows are added, no query
    leaves the test part; a query of the dev part that comes again goes to the test part, unless it
    has another id then. If ids come back, as texts of a search log do, much of the test part is
    old: a warning says how many rows. Then give each search an id of its own, such as text + day.

    Parameters
    ----------
    X : RankingData, array, sparse matrix or frame of shape (n_rows, n_features)
        The data, or its features.
    y : array-like of shape (n_rows,), optional
        The relevance of each row; that of the RankingData if X is one.
    qid : array-like of shape (n_rows,), optional
        The query of each row. It may also be a pandas index level or a column of X named "qid".
    group : array-like of int of shape (n_queries,), optional
        Sizes of consecutive queries, instead of ``qid``.
    docid : array-like of shape (n_rows,), optional
        The document of each row.
    test_size : float, optional
        The share of queries to test on, 0.2 if not given; not for a split by time.
    salt : str, default=""
        Another salt gives another split by hash.
    times : str, mapping, Series or array-like of shape (n_rows,), optional
        The times of the rows or queries, as in `QueryTimeSplit`, for a split by time. If they are a
        column of X, it stays a feature in both parts; an index level is not a feature.
    test_from : date, time, text or number, optional
        The time at which the test part begins, of the same kind as ``times``. Without a time zone
        it is UTC.
    guard : Guard, optional
        Registers the test part; from then on only frozen plans can use it.
    test_name : str, optional
        The name of the registered test part.
    supersedes : RegisteredCollection or str, optional
        The registered test part that this one replaces, as in `Guard.register`. If queries were
        added, it is the one before, even under the same name.

    Returns
    -------
    DevTestSplit
        The two parts, ``.dev`` and ``.test``, as `RankingData`.

    Raises
    ------
    InvalidInput
        If y is missing, the share is not between 0 and 1, one part would be empty, only one of
        ``times`` and ``test_from`` is given, they come with a share or a salt, a time is missing or
        of another kind, or ``supersedes`` is given without a guard.
    QueryIdError
        If the query of each row is not known.
    LedgerError
        If the guard cannot register the test part, for instance because its name is that of other
        content and ``supersedes`` does not say so.

    Examples
    --------
    >>> import rankeval as rk
    >>> split = dev_test_split(rk.datasets.make_ranking(30, rng=0), test_size=0.3)
    >>> split.dev.n_queries, split.test.n_queries
    (21, 9)
    """
    if not isinstance(
        salt, str | Integral
    ):  # the text of another object may be another one in each process
        raise InvalidInput(argument="salt", found=shown(salt), expected="text")
    by_time = times is not None or test_from is not None
    is_mixed = by_time and (
        times is None or test_from is None or test_size is not None or salt != ""
    )
    refuse(
        (
            is_mixed,
            "a split by time needs both times= and test_from=, and neither test_size= nor salt=",
        ),
    )
    _check_guard(guard, supersedes)
    data = as_ranking_data(X, y, who="dev_test_split", qid=qid, group=group, docid=docid)
    codes, queries = encode(data.qid)
    if by_time:
        known, of_rows = query_times(times, data.X, y, codes, queries)
        start = _start(test_from, known)
        is_test = known >= start
    else:
        test_size = 0.2 if test_size is None else test_size
        check_share("test_size", test_size)
        is_test = hashed_share(queries, salt) < test_size
    in_test = is_test[codes]
    n_earlier = int((of_rows[in_test] < start).sum()) if by_time else 0
    if is_test.all() or not is_test.any():
        side = "dev" if is_test.all() else "test"
        other = "test_from" if by_time else "test_size or salt"
        raise InvalidInput(
            f"no query of {len(queries)} fell into the {side} part: choose another {other}"
        )
    dev, test = _sides(data, in_test, test_name)
    parts = DevTestSplit(
        dev, test, salt=salt, test_size=test_size, test_from=test_from, n_earlier=n_earlier
    )
    return _registered(parts, parts.earlier, guard, supersedes)


@explained
def user_test_split(
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    times: Any,
    last: int | None = None,
    test_from: Any = None,
    guard: Any = None,
    test_name: str | None = None,
    supersedes: Any = None,
) -> DevTestSplit:
    """Split the rows of each user by time: the last ones to test on, or all from one day on.

    This is the usual protocol of recommenders. It cuts users by design, where `dev_test_split` keeps
    queries whole: the earlier rows of a user are one list and the later ones another, which have
    the same id in different parts.

    With ``last``, the parts overlap in time. The rows of other users that train a model may be later
    than a test row, which no model in service could have seen: a warning and ``note`` say how many.
    With ``test_from`` there are none.

    Parameters
    ----------
    X, y, docid
        As in `dev_test_split`.
    qid : array-like of shape (n_rows,), optional
        The user of each row; also a pandas index level or a column of X named "qid".
    times : str, Series or array-like of shape (n_rows,)
        The time of each row, in the forms of `QueryTimeSplit`.
    last : int, optional
        The number of rows of each user in the test part. Rows of equal time stay in their order.
        Users with so many rows or fewer stay in the dev part.
    test_from : date, time, text or number, optional
        Instead of ``last``: the time at which the test part begins, for all users.
    guard, test_name, supersedes : optional
        As in `dev_test_split`. The guard registers the documents of the test part too.

    Returns
    -------
    DevTestSplit
        ``note`` has the numbers of users on one side only, and of rows from the future of others.

    Raises
    ------
    InvalidInput
        If y is missing, a part would be empty, or not exactly one of ``last`` and ``test_from`` is
        given; if times are those of users, a time is missing or of another kind, or ``supersedes``
        is given without a guard.
    QueryIdError
        If the user of each row is not known.
    LedgerError
        If the guard cannot register the test part.

    References
    ----------
    Meng, McCreadie, Macdonald and Ounis (2020), Exploring Data Splitting Strategies for the
    Evaluation of Recommendation Models, RecSys, doi:10.1145/3383313.3418479.

    Examples
    --------
    >>> user, day = ["ann", "ann", "bob", "ann"], [1, 3, 2, 2]
    >>> split = user_test_split([[0], [1], [2], [3]], [1, 1, 1, 1], qid=user, times=day, last=1)
    >>> split.test.X.tolist(), split.note
    ([[1]], '1 of 2 users have no test row')
    """
    refuse(
        ((last is None) == (test_from is None), "give either last= or test_from=, and not both"),
    )
    _check_guard(guard, supersedes)
    data = as_ranking_data(X, y, who="user_test_split", qid=qid, docid=docid)
    codes, users = encode(data.qid)
    of_users = "a user is cut by the times of rows, and these are times of users"
    refuse((is_by_query(times, len(codes)), of_users, "give one time a row"), argument="times")
    _, moment = query_times(times, data.X, y, codes, users)
    if last is None:
        in_test = moment >= _start(test_from, moment)
    else:
        check_count("last", last)
        in_test = _last_rows(codes, moment, last)
    sides = "all rows fell into one part, and both need rows: choose another last or test_from"
    refuse((in_test.all() or not in_test.any(), sides))
    future = _from_future(codes, moment, in_test)
    note = "; ".join(filter(None, [*_one_sided(codes, in_test), future]))
    dev, test = _sides(data, in_test, test_name)
    parts = DevTestSplit(dev, test, test_size=None, test_from=test_from, note=note)
    return _registered(parts, future, guard, supersedes)


def _last_rows(codes: NDArray[np.int64], moment: NDArray[Any], last: int) -> NDArray[np.bool_]:
    order = np.lexsort((moment, codes))
    sizes = np.bincount(codes)
    ends = np.cumsum(sizes)
    place = ends[codes[order]] - np.arange(len(codes))  # 1 for the last row of a user
    in_test = np.empty(len(codes), dtype=bool)
    in_test[order] = (place <= last) & (sizes[codes[order]] > last)
    return in_test


def _one_sided(codes: NDArray[np.int64], in_test: NDArray[np.bool_]) -> Iterator[str]:
    """Yield how many users have rows in one part only."""
    n_users = int(codes.max()) + 1
    for side, is_side in (("test", in_test), ("dev", ~in_test)):
        if lacking := n_users - len(np.unique(codes[is_side])):
            yield f"{lacking:,} of {count(n_users, 'user')} have no {side} row"


def _from_future(codes: NDArray[np.int64], moment: NDArray[Any], in_test: NDArray[np.bool_]) -> str:
    """Say how many dev rows are later than a test row of another user; "" if none is."""
    dev, test = moment[~in_test], moment[in_test]
    # A user's own dev rows are not later than the user's test rows.
    later = int((dev > test.min()).sum())
    n_before = len(np.unique(codes[in_test][test < dev.max()]))
    if not later:
        return ""
    return (
        f"{later:,} dev rows are later than test rows of {n_before:,} other users: a model "
        "that learns from them has seen the future; test_from= cuts all users at one time"
    )


def _check_guard(guard: Any, supersedes: Any) -> None:
    is_other = guard is not None and not hasattr(guard, "register")
    alone = "supersedes= is for a registered test part: give guard= too"
    refuse(
        (is_other, f"guard is {shown(guard)}; give a rk.Guard"),
        (supersedes is not None and guard is None, alone),
    )


def _start(test_from: Any, known: NDArray[Any]) -> Any:
    start = moments([test_from], "test_from")
    unlike = (
        f"test_from is {shown(test_from)}, and times are such as {known[0]}: give both of one kind"
    )
    refuse(((start.dtype.kind == "M") != (known.dtype.kind == "M"), unlike))
    return start[0]


def _sides(
    data: RankingData, in_test: NDArray[np.bool_], test_name: str | None
) -> tuple[RankingData, RankingData]:
    dev, test = (f"{data.name}-{side}" if data.name else side for side in ("dev", "test"))
    return data.take(~in_test, name=dev), data.take(in_test, name=test_name or test)


def _registered(parts: DevTestSplit, warning: str, guard: Any, supersedes: Any) -> DevTestSplit:
    """Warn if there is something to say, and register the test part if there is a guard."""
    if warning:
        warn(warning)
    if guard is None:
        return parts
    registered = guard.register(parts.test.name, parts.test, supersedes=supersedes)
    return replace(parts, registered=registered)


def as_ranking_data(
    X: Any,
    y: Any = None,
    *,
    who: str,
    qid: Any = None,
    group: Any = None,
    docid: Any = None,
    **beside: Any,
) -> RankingData:
    """Return rows, labels and query ids as `RankingData`."""
    if isinstance(X, RankingData):
        again = f"{who} got a RankingData, which has labels and ids, and also y, qid, group or docid: leave those out"
        refuse((any(argument is not None for argument in (y, qid, group, docid)), again))
        check_rows(X=X.X, **beside)
        return X
    refuse((y is None, f"{who} needs y, the relevance of each row"))
    check_rows(X=X, y=y, qid=qid, docid=docid, **beside)
    ids = required_ids(X, y, who=who, qid=qid, group=group)
    labels = columns.labels(columns.as_column(y), "y")
    features = without_ids(X)
    names = tuple(map(str, column_names(features))) or None
    return RankingData(
        features if hasattr(features, "shape") else np.asarray(features), labels, ids, docid, names
    )


def hashed_share(queries: NDArray[Any], salt: str) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each query, a hash of its id and the salt."""
    heads = [hashlib.sha256(f"{salt}\0{query}".encode()).digest()[:8] for query in queries.tolist()]
    bits = [int.from_bytes(head, "big") >> 11 for head in heads]
    return np.array(bits, dtype=np.float64) / 2.0**53


SCORE = "nDCG@10"
"""The measure of `QueryRanker.score`, and the default of `eval_measure`."""


def hold_out(
    ranker: Any, rows: TrainingRows, validation: TrainingRows | None = None
) -> tuple[TrainingRows, EarlyStopping | None]:
    """Return the rows to fit and those to watch: the validation part, or queries held out of all rows."""
    share, rounds, last = (
        ranker.validation_fraction,
        ranker.early_stopping_rounds,
        nesting.last_of(ranker.estimator),
    )
    rounds = boosters.booster_of(last).own_rounds(last) if rounds is None else rounds
    useless = (
        validation is not None and rounds is None and not nesting.stops_by_itself(ranker.estimator)
    )
    both = "validation_fraction takes the queries to stop on from X, eval_set has its own: give only one"
    when = "give early_stopping_rounds too"
    refuse(
        (share is not None and validation is not None, both),
        (
            share is not None and rounds is None,
            f"validation_fraction reserves queries for early stopping: {when}",
        ),
        (useless, f"eval_set has rows to stop training on: {when}"),
    )
    if rounds is None:
        return replace(rows, validation=validation), None
    check_count("early_stopping_rounds", rounds)
    boosters.refuse_no_earlier_model(last)
    found = check_measures(
        SCORE if ranker.eval_measure is None else ranker.eval_measure, ranker.eval_convention
    )
    if len(found) > 1:
        raise InvalidInput(
            argument="eval_measure", found=f"{ranker.eval_measure!r}", remedy="give one measure"
        )
    rules = get_convention(ranker.eval_convention)
    # Held-out rows have no documents to break ties by.
    rules = rules.with_rules(ties="expected") if rules.ties == "docid" else rules
    watched, name = validation, "eval_set"
    if watched is None:
        is_held_out = _held_out(0.1 if share is None else share, rows)
        rows, watched = (rows.take(np.flatnonzero(part)) for part in (~is_held_out, is_held_out))
        name = "the part held out for early stopping"
    watch = EarlyStopping(found[0][1], int(rounds), watched.in_blocks(), rules)
    first = watch.evaluation(np.zeros(len(watched.y)))
    if first.facts.totals()["fixed"] >= first.n_queries:
        warn(
            f"{name} has {count(first.n_queries, 'query')}, and no ranking changes {watch.measure} of any, as none has "
            "relevant rows and others: training stops at the first iteration. Give other queries, or more of them"
        )
    return rows, watch


def _held_out(share: float, rows: TrainingRows) -> NDArray[np.bool_]:
    check_share("validation_fraction", share)
    codes, groups = encode(rows.qid if rows.groups is None else rows.groups)
    noun = "queries" if rows.groups is None else "groups"
    n_held_out = max(1, round(share * len(groups)))
    few = f"{len(groups)} {noun} are too few to hold out a share of {share} for early stopping"
    refuse((n_held_out >= len(groups), few))
    held_out = np.zeros(len(groups), dtype=bool)
    held_out[np.argsort(hashed_share(groups, "early stopping"), kind="stable")[:n_held_out]] = True
    return held_out[codes]


CUT = "A search of scikit-learn cuts metadata that is as long as X"


def validation_part(
    eval_set: Any,
    eval_qid: Any = None,
    *,
    eval_X: Any = None,
    eval_y: Any = None,
    single_query: bool = False,
) -> RankingData | None:
    """Return the validation rows with labels and ids, or None if none are given."""
    while isinstance(eval_set, (list, tuple)) and len(eval_set) == 1:
        eval_set = eval_set[0]
    parts = tuple(part for part in (eval_X, eval_y) if part is not None)
    found, has_ids = (eval_set if eval_set is not None else parts or None), eval_qid is not None
    refuse(
        (
            parts and eval_set is not None,
            "eval_set and eval_X, eval_y are the same rows twice: leave one out",
        ),
        (len(parts) == 1, "one of eval_X and eval_y is missing: give both, or eval_set=(Xv, yv)"),
        (
            has_ids and found is None,
            "eval_qid has the queries of eval_set, which is missing: give eval_set=(Xv, yv)",
        ),
        (
            has_ids and isinstance(found, RankingData),
            "eval_set is a RankingData, which has ids: leave eval_qid out",
        ),
    )
    if found is None or isinstance(found, RankingData):
        return found
    n_parts = len(found) if isinstance(found, (list, tuple)) else 1
    two = n_parts == 2 and all(isinstance(part, (tuple, RankingData)) for part in found)
    forms = "give (Xv, yv), a list with one such pair, or a RankingData"
    refuse(
        (
            n_parts != 2,
            f"eval_set is a {type(found).__name__} of {count(n_parts, 'part')}: {forms}",
        ),
        (two, "eval_set has 2 validation parts, and training stops on one: give one of them"),
    )
    X, y = found
    columns.refuse_ragged(X, "eval_set")
    try:
        X = X if hasattr(X, "shape") else np.asarray(X)
        return _checked(X, y, eval_qid, single_query=single_query)
    except InvalidInput as error:
        raise error.having(where="eval_set") from error.__cause__


def _checked(X: Any, y: Any, qid: Any, *, single_query: bool) -> RankingData:
    if isinstance(qid, (list, tuple)) and len(qid) == 1 and np.ndim(qid[0]):
        qid = qid[0]  # a list of one column; a list of one id is a column itself
    check_rows(**{"eval_set[0]": X, "eval_set[1]": y, "eval_qid": qid})
    rows, labels = n_rows(X), columns.labels(columns.as_column(y), "eval_set[1]")
    refuse(
        (
            labels.shape != (rows,),
            f"{rows} rows of features, and labels of shape {labels.shape}: give one per row",
        )
    )
    if qid is not None:
        try:
            qid = id_array(qid, rows, "eval_qid")
        except UnusableQueryIdsError as error:
            raise (
                error.having(remedy=f"{CUT}: give eval_qid=[ids]") if in_search() else error
            ) from None
    ways = "eval_qid=, or an index level or column 'qid' of its features"
    ids = find(X, y, qid=qid) if single_query else required_ids(X, y, who="it", ways=ways, qid=qid)
    return RankingData(
        without_ids(X), labels, np.zeros(rows, dtype=np.int64) if ids is None else ids
    )


def refuse_cut(eval_X: Any, X: Any) -> None:
    """Raise if a search may have cut a validation part like X; all its columns would be cut alike, and queries too."""
    way = (
        "put the steps into QueryRanker(Pipeline([...])) and give eval_set=(Xv, yv), eval_qid=[ids]"
    )
    refuse((n_rows(eval_X) == n_rows(X), f"eval_X has as many rows as X. {CUT}: {way}"))
