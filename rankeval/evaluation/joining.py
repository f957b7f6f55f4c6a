"""Truth and ranking of any make, joined, once the guard was asked: for whatever is not a measure of a query."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import QueryIdError
from rankeval.join.joined import Joined, join_arrays


def join(
    truth: Any,
    ranking: Any,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    convention: str | Convention = "rankeval",
    action: str,
) -> Joined:
    """Refuse registered content, then join truth and ranking.

    Parameters
    ----------
    truth, ranking, qid, group, convention
        As of `rankeval.evaluate`.
    action : str
        What is about to be done, for the refusal.

    Returns
    -------
    Joined

    Raises
    ------
    InvalidInput
        When the data cannot be joined.
    GuardRefusal
        When the content is registered with a guard and this ranking was not opened.
    """
    from rankeval.collection.qrels import as_qrels
    from rankeval.collection.run import as_run
    from rankeval.contamination.refusal import ContaminationCheck
    from rankeval.evaluation.scoring import _is_collection, ids_of_rows
    from rankeval.join.collections import join_collection

    rules = get_convention(convention)
    if qid is not None or group is not None:
        ids = ids_of_rows(qid, group, ranking)
        joined = join_arrays(truth, ranking, ids, docid=None, convention=rules)  # checks what the guard reads
        ContaminationCheck.current().refuse(None, truth, ids, score=ranking, action=action)
        return joined
    if not _is_collection(truth):
        raise QueryIdError(
            "qid= is missing: arrays need the query of each row (qid=) or the group sizes (group=); "
            "a collection is given as Qrels and Run, dicts, frames or paths"
        )
    qrels, run = as_qrels(truth), as_run(ranking)
    ContaminationCheck.current().refuse_collection(qrels, run, action=action)
    return join_collection(qrels, run, convention=rules)
