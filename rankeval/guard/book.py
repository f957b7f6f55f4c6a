"""The reading side of a guard: its ledger, the looks, whether all of it is whole; and two ledgers made one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rankeval._checks import shown
from rankeval._registry import chosen
from rankeval.errors import InvalidInput, LedgerError
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.looks import looks_table
from rankeval.guard.plan import Plan
from rankeval.guard.records import Journal
from rankeval.ledger import discovery
from rankeval.ledger.ledger import Ledger
from rankeval.ledger.noted import heads_in

if TYPE_CHECKING:
    import pandas as pd


class Book:
    """A ledger as a project reads it; see `Guard`.

    Parameters
    ----------
    project : str
        The name of the project.
    ledger : str or path, optional
        A path or an SQLAlchemy URL.
    who : str, optional
        The person or machine in new entries.
    """

    def __init__(self, project: str, ledger: str | os.PathLike[str] | None = None, who: str | None = None) -> None:
        # The ledger's column holds 255 letters.
        if not isinstance(project, str) or not 1 <= len(project.strip()) <= 255:
            raise InvalidInput(argument="project", found=f"{project!r}", expected="a name of 1 to 255 letters")
        if who is not None and (not isinstance(who, str) or not who.strip()):
            raise InvalidInput(argument="who", found=shown(who), expected="the name of a person or machine")
        url = discovery.default_url() if ledger is None else discovery.ledger_url(ledger)
        if url is None:
            raise LedgerError(
                f"the ledger is switched off ({discovery.VARIABLE}=off or [tool.rankeval] ledger): switch it on, or "
                "name its place with ledger="
            )
        self.project = project
        self._ledger = Ledger(url, who)
        self._journal = Journal(project, self._ledger)
        self._collections: dict[str, RegisteredCollection] = {}
        discovery.watch(url)

    @property
    def ledger(self) -> str:
        """The path or URL of the ledger."""
        return self._ledger.where

    @property
    def head(self) -> str:
        """The hash of the ledger's last entry. Keep it elsewhere to find out later if entries were cut off."""
        return self._journal.read().head

    def plan(self, plan_id: str) -> Plan:
        """Return a frozen plan of this project.

        Parameters
        ----------
        plan_id : str
            Its id, or enough of its beginning.

        Returns
        -------
        Plan

        Raises
        ------
        LedgerError
            If no plan, or more than one, has an id that begins so.
        """
        return self._journal.read().plan(plan_id)

    def looks(
        self, test: RegisteredCollection | str | None = None, *, projects: Literal["own", "all"] = "own"
    ) -> pd.DataFrame:
        """Return the looks at a collection, or all of this project, one row per look, oldest first.

        Looks belong to queries: those at other collections that share queries with this one are listed too. Standings
        are as of the present head, so an opening that was confirmatory is concurrent once the ledger of a colleague was
        merged who opened these queries too.

        What two clones opened beside each other stands in the order of their clocks.

        Parameters
        ----------
        test : RegisteredCollection or str, optional
            The collection or its name; with all its revisions. Without one, all looks of the project.
        projects : {"own", "all"}, default "own"
            Whether to list the looks of other projects at these queries too.

        Returns
        -------
        DataFrame
            Columns: look, time, who, project, system, measure, value (the aggregate that was seen), status, plan,
            output, n_queries (those of the collection that the look was at); without ``test`` a first column ``test``.
            Its ``attrs`` hold ledger, head, the number of looks of other projects at these queries (``elsewhere``), and
            that of the decisions of gates on them (``decisions``): these are no looks, and ``gate.decisions()`` lists
            them.

        Raises
        ------
        LedgerError
            If the collection is not registered, or the ledger is not whole.
        """
        chosen("projects", projects, ("own", "all"))
        return looks_table(self._journal.read(), test, everybody=projects == "all")

    def verify(
        self, head: str | os.PathLike[str] | None = None, *, other: str | os.PathLike[str] | None = None
    ) -> bool:
        """Return whether the ledger is whole: no entry or file altered, none missing.

        To detect entries cut off at the end, it compares the ledger with earlier heads: the last one that this process
        saw, those given here, and those of another copy.

        Parameters
        ----------
        head : str or path, optional
            A head, or a report or any file that names heads.
        other : str or path, optional
            A copy of the ledger, such as that of a colleague, all of whose entries must be here.

        Returns
        -------
        bool

        Raises
        ------
        InvalidInput
            If ``head`` is neither, or a file that names no head.
        LedgerError
            If a ledger cannot be read at all.
        """
        return not self.problems(head, other=other)

    def problems(
        self, head: str | os.PathLike[str] | None = None, *, other: str | os.PathLike[str] | None = None
    ) -> list[str]:
        """Return the faults of the ledger in words, as `verify` finds them.

        Parameters
        ----------
        head, other
            As in `verify`.

        Returns
        -------
        list of str
            One sentence for each fault; empty if the ledger is whole.
        """
        copy = None if other is None else _existing(other)
        return self._ledger.problems(*_heads(head), self._journal.seen, other=copy)

    def merge(self, other: str | os.PathLike[str]) -> int:
        """Add all entries and files of another ledger to this one; the other one stays as it is.

        Plans that were opened in both without knowing of each other become concurrent.

        Parameters
        ----------
        other : str or path
            A path or an SQLAlchemy URL.

        Returns
        -------
        int
            Number of entries that were added; 0 if all were here. Files that were missing come along uncounted.

        Raises
        ------
        LedgerError
            If there is no such ledger, one of the two is not whole, or this one cannot be written.
        """
        self._journal.read()
        return self._ledger.merge(_existing(other))

    def export(self, path: str | os.PathLike[str]) -> int:
        """Add all entries and files to another ledger, which is made if it does not exist.

        Parameters
        ----------
        path : str or path
            A path or an SQLAlchemy URL: from a folder to a database, or back.

        Returns
        -------
        int
            Number of entries that were added there.

        Raises
        ------
        LedgerError
            If one of the two is not whole, or the other one cannot be written.
        """
        self._journal.read()
        return self._ledger.export(path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.project!r}, ledger={self.ledger!r})"


def _existing(spec: str | os.PathLike[str]) -> Ledger:
    ledger = Ledger(discovery.ledger_url(spec))
    if not ledger.exists():
        raise LedgerError(f"there is no ledger {ledger.where}")
    return ledger


def _heads(head: str | os.PathLike[str] | None) -> list[str]:
    """Return the heads that a text is, or that a file names."""
    if head is None:
        return []
    if not isinstance(head, (str, os.PathLike)):
        raise InvalidInput(f"head is {shown(head)}; expected a head, or the path of a report that names one")
    if not Path(head).is_file():
        return [os.fspath(head)]
    found = heads_in(head)
    if not found:
        raise InvalidInput(f"{os.fspath(head)} names no head of a ledger: give a report, or the head itself")
    return found
