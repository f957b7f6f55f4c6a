"""The side of a guard that answers for refusals: why data is refused, and how to give up what need not be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rankeval.contamination.matching import match
from rankeval.guard import releasing
from rankeval.guard.book import Book
from rankeval.guard.collection import RegisteredCollection, load_collection
from rankeval.guard.status import Status, status_of
from rankeval.ledger import discovery


class Releases(Book):
    """Why data is refused, exemptions and retirement; see `Guard`."""

    def status(
        self,
        X: Any | None = None,
        y: Any | None = None,
        *,
        qid: Any | None = None,
        group: Any | None = None,
        docid: Any | None = None,
        qrels: Any | None = None,
        queries: Mapping[Any, str] | None = None,
    ) -> Status:
        """Return whether some data would be refused, and why.

        Parameters
        ----------
        X, y, qid, group, docid, qrels, queries
            The data, as in `register`; X may be left out.

        Returns
        -------
        Status
            The answer with the evidence: ``.rows`` is a mask, so that ``X[~status.rows]`` is the rest, and ``.queries``
            are the ids.

        Raises
        ------
        InvalidInput
            If the data is incomplete.
        QueryIdError
            If the group sizes do not add up to the rows, or disagree with the ids.

        Examples
        --------
        >>> import tempfile
        >>> from rankeval.datasets import make_ranking
        >>> from rankeval.guard import Guard
        >>> guard = Guard("my-project", ledger=f"{tempfile.mkdtemp()}/ledger")
        >>> test, other = make_ranking(60, rng=0), make_ranking(60, rng=1)
        >>> collection = guard.register("my-test", test)
        >>> guard.status(test).refused, guard.status(other).refused
        (True, False)
        """
        data = load_collection(X, y, qid=qid, group=group, qrels=qrels, queries=queries, docid=docid).prints
        records = self._journal.read()
        found = [match(one, data) for one in records.in_force()]
        return status_of(found, data, ledger=self.ledger, head=records.head, off=discovery.default_url() is None)

    def exempt(self, test: RegisteredCollection | str, queries: Iterable[Any] | Status, reason: str) -> int:
        """Exempt some queries of a registered collection: they are not refused any more anywhere.

        For a legitimate overlap, such as another split of the same data. It goes on record, and for plans that are
        frozen later these queries count as exposed, since systems may have been fitted on them.

        Parameters
        ----------
        test : RegisteredCollection or str
            The collection of any project, as "name" or "project/name".
        queries : iterable of query id, or Status
            The queries, by the ids under which they were registered; or the result of `status`, for those found in the
            data.
        reason : str
            The reason, which goes on record.

        Returns
        -------
        int
            Number of queries that were exempted now.

        Raises
        ------
        InvalidInput
            If there is no reason, or an id is not registered.
        LedgerError
            If there is no such collection.

        Examples
        --------
        >>> import tempfile
        >>> from rankeval.datasets import make_ranking
        >>> from rankeval.guard import Guard
        >>> guard, data = Guard("my-project", ledger=f"{tempfile.mkdtemp()}/ledger"), make_ranking(60, rng=0)
        >>> test = guard.register("my-test", data)
        >>> part = data.take(data.qid < 5)
        >>> guard.status(part).refused, guard.exempt("my-test", guard.status(part), reason="also in the dev split")
        (True, 4)
        >>> guard.status(part).refused
        False
        """
        return releasing.exempt(self._journal, test, queries, reason)

    def retire(self, test: RegisteredCollection | str, reason: str) -> None:
        """Retire a test collection for good: its content may be fitted on from now on, and it is never opened again.

        All its revisions are retired with it. Other projects that registered the same content keep it.

        Parameters
        ----------
        test : RegisteredCollection or str
            The collection or its name.
        reason : str
            The reason, which goes on record.

        Raises
        ------
        InvalidInput
            If there is no reason.
        LedgerError
            If it is not registered, or was retired before.

        Examples
        --------
        >>> import tempfile
        >>> from rankeval.datasets import make_ranking
        >>> from rankeval.guard import Guard
        >>> guard = Guard("my-project", ledger=f"{tempfile.mkdtemp()}/ledger")
        >>> test = guard.register("my-test", make_ranking(60, rng=0))
        >>> guard.retire(test, reason="replaced by a larger one")
        >>> guard.verify()
        True
        """
        releasing.retire(self._journal, test, reason)
