"""Truth and ranking as a caller gives them: the one way into a join, and past the guard.

`Given.of` takes every make (columns row by row; or Qrels and Run, dicts, frames, paths). `Given.join` joins them by a
convention and asks nobody. `Given.refuse_or_join` also asks the guard: everything that shows a caller something about
the effectiveness of a ranking goes through it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from rankeval.collection.convention import Convention
from rankeval.errors import QueryIdError
from rankeval.io import columns
from rankeval.io.frames import is_records
from rankeval.join.flat import ids_of_rows
from rankeval.join.joined import Joined, join_arrays
from rankeval.ledger import discovery


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
    """

    truth: Any
    ranking: Any
    qid: Any = None
    docid: Any = None
    name: str | None = None

    @classmethod
    def of(
        cls,
        truth: Any,
        ranking: Any,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        docid: ArrayLike | None = None,
    ) -> Given:
        """Take the arguments of `rankeval.evaluate`, and read files.

        Parameters
        ----------
        truth, ranking, qid, group, docid
            As in `rankeval.evaluate`.

        Raises
        ------
        QueryIdError
            If arrays come without query ids, or with two sources of them that disagree.
        InvalidInput
            If a file, frame or dict holds no judgments or no run.
        """
        if qid is not None or group is not None:
            ids = qid if group is None else ids_of_rows(qid, group, len(columns.scores(ranking, "y_score")))
            return cls(truth, ranking, ids, docid)
        if not _is_collection(truth):
            raise QueryIdError(
                "qid= is missing: arrays need the query of each row (qid=) or the group sizes (group=); "
                "a collection is given as Qrels and Run, dicts, frames or paths"
            )
        from rankeval.collection.qrels import as_qrels
        from rankeval.collection.run import as_run

        run = as_run(ranking)
        return cls(as_qrels(truth), run, name=run.name)

    def join(self, convention: Convention) -> Joined:
        """Join truth and ranking.

        Raises
        ------
        InvalidInput
            If they do not fit together.
        """
        if self.qid is not None:
            return join_arrays(self.truth, self.ranking, self.qid, docid=self.docid, convention=convention)
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
            If they do not fit together.
        GuardRefusal
            If the content is registered with a guard and this ranking was not opened.
        """
        if not discovery.active_urls():  # without a ledger nothing is registered
            return self.join(convention)
        from rankeval.contamination.refusal import ContaminationCheck

        check = ContaminationCheck.current()
        if self.qid is None:
            check.refuse_collection(self.truth, self.ranking, action=action)
            return self.join(convention)
        joined = self.join(convention)  # first, because it checks the columns that the guard reads
        check.refuse(None, self.truth, self.qid, docid=self.docid, score=self.ranking, action=action)
        return joined

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of the rows by argument name; none for a collection."""
        if self.qid is None:
            return {}
        return {"y_true": self.truth, "y_score": self.ranking, "qid": self.qid, "docid": self.docid}


def _is_collection(truth: Any) -> bool:
    if isinstance(truth, (str, os.PathLike, Mapping)) or hasattr(truth, "relevance") or is_records(truth):
        return True
    if hasattr(truth, "collect_schema"):  # polars warns if a lazy frame is asked for its columns
        return True
    return getattr(truth, "ndim", 2) == 2 and (hasattr(truth, "columns") or hasattr(truth, "__arrow_c_stream__"))
