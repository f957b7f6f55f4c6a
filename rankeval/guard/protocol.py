"""The guard, by which a test collection is used: register it, freeze systems, open them once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankeval._checks import shown
from rankeval.collection.convention import Convention, get_convention
from rankeval.contamination.matching import match
from rankeval.errors import InvalidInput, LedgerError
from rankeval.guard import freezing, opening, registering
from rankeval.guard.collection import RegisteredCollection, load_collection
from rankeval.guard.declaring import declare
from rankeval.guard.gate import Gate
from rankeval.guard.plan import Plan
from rankeval.guard.records import Journal, Records
from rankeval.guard.status import Status, status_of
from rankeval.guard.terms import Terms
from rankeval.ledger import discovery
from rankeval.ledger.ledger import Ledger
from rankeval.measures import Measure
from rankeval.measures import measure as parse_measure
from rankeval.significance.declarations import ClaimName

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison import Comparison


class Guard:
    """Keeps test collections out of tuning, and counts the looks at them.

    Once a collection is registered, scorers, `evaluate`, `cross_validate` and `QueryRanker.fit` refuse its
    content. All systems of a plan are scored in one batch, and each new ranking output is one look.

    Parameters
    ----------
    project : str
        The name of the project. Looks are counted for each project.
    ledger : str or path, optional
        A path or an SQLAlchemy URL. By default the folder ``rankeval-ledger`` in the project's root, unless
        ``RANKEVAL_LEDGER`` or pyproject.toml names another ledger.

    Raises
    ------
    InvalidInput
        If the name is no text of 1 to 255 letters.
    LedgerError
        If nothing can be kept there, or ledgers are switched off.

    Examples
    --------
    >>> import tempfile
    >>> from rankeval.datasets import make_ranking
    >>> data = make_ranking(60, 10, 4, rng=0)
    >>> guard = Guard("my-project", ledger=f"{tempfile.mkdtemp()}/ledger")
    >>> test = guard.register("my-test", data)
    >>> plan = guard.freeze(test, systems={"v1": data.X[:, 0], "v2": data.X[:, 1]}, baseline="v1")
    >>> guard.open(plan).table[["baseline", "system", "n_queries"]].values.tolist()
    [['v1', 'v2', 60]]
    >>> guard.looks(test)[["system", "status"]].values.tolist()
    [['v2', 'confirmatory']]
    """

    def __init__(self, project: str, ledger: str | os.PathLike[str] | None = None) -> None:
        # The ledger's column holds 255 letters.
        if not isinstance(project, str) or not 1 <= len(project.strip()) <= 255:
            raise InvalidInput(f"project is {project!r}; expected a name of 1 to 255 letters")
        url = discovery.default_url() if ledger is None else discovery.ledger_url(ledger)
        if url is None:
            raise LedgerError(
                f"the ledger is switched off ({discovery.VARIABLE}=off or [tool.rankeval] ledger): switch it on, or "
                "name its place with ledger="
            )
        self.project = project
        self._ledger = Ledger(url)
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

    def register(
        self,
        name: str,
        X: Any | None = None,
        y: Any | None = None,
        *,
        qid: Any | None = None,
        group: Any | None = None,
        docid: Any | None = None,
        qrels: Any | None = None,
        queries: Mapping[Any, str] | None = None,
    ) -> RegisteredCollection:
        """Register a test collection; from now on its content is refused elsewhere.

        Registering the same content under the same name again records nothing, but returns the collection with its
        data. Do so to open a plan in a new process. New registrations are checked: see
        ``rankeval.guard.list_checks``.

        Parameters
        ----------
        name : str
            Name of the collection. A project cannot register the same content under two names.
        X : array, sparse matrix or DataFrame of shape (n_rows, n_features), or RankingData
            The features.
        y, qid, docid : array of shape (n_rows,)
            Labels, query ids and, optionally, document ids.
        group : array of int of shape (n_queries,), optional
            Sizes of consecutive queries, instead of ``qid``.
        qrels : Qrels, mapping, frame or path
            The judgments of a collection, instead of rows.
        queries : mapping of query id to str, optional
            The texts of the queries.

        Returns
        -------
        RegisteredCollection
            The collection with its data, for `freeze`.

        Raises
        ------
        InvalidInput
            If the data is incomplete.
        QueryIdError
            If the group sizes do not add up to the rows, or disagree with the ids.
        LedgerError
            If the name is taken by other content, the content is registered by another name, or it was retired.
        """
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(f"name is {name!r}; expected a name for the collection")
        content = load_collection(X, y, qid=qid, group=group, qrels=qrels, queries=queries, docid=docid)
        collection = registering.register(self._journal, name, content)
        self._collections[collection.digest] = collection
        return collection

    def freeze(
        self,
        test: RegisteredCollection,
        *,
        systems: Mapping[str, Any],
        folds: Any = None,
        baseline: str | None = None,
        measure: str | Measure = "nDCG@10",
        secondary: str | Measure | Sequence[str | Measure] = (),
        convention: str | Convention = "rankeval",
        alpha: float = 0.05,
        n_resamples: int = 9999,
        rng: int = 0,
    ) -> Plan:
        """Fix the systems that will be opened, and the test, before any of their scores is seen.

        Parameters
        ----------
        test : RegisteredCollection
            The collection that `register` returned.
        systems : mapping of str to array, fitted model or Run
            One system or more: name -> scores of shape (n_rows,) in the order of the registered rows, a fitted model
            that predicts them, or a run if judgments are registered. The model's ``predict`` is called now, with
            ``qid`` if it takes that. With ``folds``, estimators, fitted or not: give each a ``random_state``, else
            its output is a new one, and a new look, each time.
        folds : int, splitter, iterable of (train, test) or array of shape (n_rows,), optional
            Make the plan a benchmark over folds: a number of folds of `rankeval.QueryKFold`; any splitter of
            scikit-learn or rankeval, applied to queries; the row numbers of each part; or the fold of each row. Each
            query is held out exactly once, and no part cuts one. Each estimator is copied, fitted on each training part
            and asked for the scores of the part held out; none is evaluated. Tuning is nested if the estimator is a
            search. In this call alone the collection may be fitted on, also by workers on this machine. All folds of an
            estimator are one system, and one look.
        baseline : str, optional
            The system that the others are compared with. Without one, all pairs are compared. The first baseline that
            a project declares is no look.
        measure : str or Measure
            The primary measure. Only its p-values are adjusted.
        secondary : str, Measure or sequence of them
            Further measures to show.
        convention : str or Convention
            The rules by which rankings are scored.
        alpha, n_resamples, rng : float, int, int
            Level, resamples and seed of the randomisation test.

        Returns
        -------
        Plan
            The frozen plan, for `open`.

        Raises
        ------
        InvalidInput
            If a system gives no ranking of the collection, the plan is incomplete, or folds cut a query or do not hold
            each out exactly once.
        UnknownName
            If the baseline, a measure or the convention does not exist.
        LedgerError
            If the collection was retired, or belongs to another ledger.
        """
        return freezing.freeze(
            self._journal,
            test,
            systems,
            folds,
            measures=(measure, *([secondary] if isinstance(secondary, (str, Measure)) else secondary)),
            convention=get_convention(convention),
            baseline=baseline,
            alpha=float(alpha),
            n_resamples=int(n_resamples),
            rng=int(rng),
        )

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

    def open(self, plan: Plan | str, test: RegisteredCollection | None = None) -> Comparison:
        """Score all systems of a plan in one batch, and record the looks.

        Opening the same plan again is free, and must give the same scores.

        Parameters
        ----------
        plan : Plan or str
            The plan, or its id.
        test : RegisteredCollection, optional
            The collection; needed only if this guard did not register it.

        Returns
        -------
        Comparison
            The comparison with its evaluations, and the mean of each system in ``means``. Its notes say if it is
            confirmatory or exploratory. A plan of one system has its mean only, and an empty ``table``.

        Raises
        ------
        LedgerError
            If the plan is not on record, its collection was not registered by this guard or was retired, or scores
            changed.
        """
        return self.open_counted(plan, test)[0]

    def open_counted(self, plan: Plan | str, test: RegisteredCollection | None = None) -> tuple[Comparison, int]:
        """Open a plan as `open` does, and return also the number of looks that this call recorded.

        If another process has opened the plan meanwhile, its call counted the looks, and this one counts none.

        Parameters
        ----------
        plan, test
            As in `open`.

        Returns
        -------
        tuple of (Comparison, int)

        Raises
        ------
        LedgerError
            As in `open`.
        """
        if test is not None and not isinstance(test, RegisteredCollection):
            raise InvalidInput(f"test is {shown(test)}; expected the result of guard.register")
        plan_id = plan.id if isinstance(plan, Plan) else plan
        return opening.open_plan(self._journal, plan_id, [test] if test else self._collections.values())

    def gate(
        self,
        test: RegisteredCollection,
        *,
        baseline: Any = None,
        budget: int = 20,
        measure: str | Measure = "nDCG@10",
        claim: ClaimName = "better",
        margin: float = 0.0,
        alpha: float = 0.05,
        convention: str | Convention = "rankeval",
        sd: float | None = None,
        rng: int = 0,
        name: str = "gate",
    ) -> Gate:
        """Declare a gate: it accepts or rejects one candidate after the other, and shows nothing else.

        A gate is declared once for a collection and its revisions. The same call again returns it, with or without its
        baseline. Each candidate is tested at ``alpha / budget``. If the queries were looked at before, the gate is
        declared all the same, and says so in its entry, in a warning and wherever it is printed: its level does not
        hold for candidates that such looks helped to make.

        Parameters
        ----------
        test : RegisteredCollection
            The collection that `register` returned.
        baseline : array, fitted model or Run
            The system in use, as in `freeze`. Candidates are compared with it until one is accepted.
        budget : int, default 20
            Number of decisions.
        measure : str or Measure
            The measure.
        claim : {"better", "not_worse"}, default "better"
            What must be shown of a candidate: that it is better than the baseline by more than the margin, or not worse
            by the margin.
        margin : float, default 0
            Of the claim, in units of the measure; "not_worse" needs one.
        alpha : float, default 0.05
            The level of all decisions together.
        convention : str or Convention
            The rules by which rankings are scored.
        sd : float, optional
            Standard deviation of the differences by query, from which the gate says what it can find; by default .2.
            It is no part of the terms.
        rng : int
            Seed of the randomisation test.
        name : str, default "gate"
            Name of the gate.

        Returns
        -------
        Gate
            For `Gate.decide`. Printed, it says which difference it can find, and how many decisions are left.

        Raises
        ------
        InvalidInput
            If there is no baseline for a new gate, a term is out of range, or so few queries can show nothing.
        LedgerError
            If a gate of this name has other terms, or the collection was retired.
        """
        terms = Terms(
            measure=str(parse_measure(measure, get_convention(convention))),
            convention=get_convention(convention),
            claim=claim,
            margin=float(margin),
            alpha=float(alpha),
            budget=budget,
            rng=int(rng),
        )
        return declare(self._journal, test, name, terms, baseline=baseline, sd=sd)

    def looks(self, test: RegisteredCollection | str) -> pd.DataFrame:
        """Return the looks of this project at a collection, one row per look, oldest first.

        Parameters
        ----------
        test : RegisteredCollection or str
            The collection or its name.

        Returns
        -------
        DataFrame of shape (n_looks, 9)
            Columns: look, time, who, system, measure, value (the aggregate that was seen), status, plan, output. Its
            ``attrs`` hold ledger, head, and the looks of other projects (``elsewhere``).

        Raises
        ------
        LedgerError
            If the collection is not registered.
        """
        records = self._journal.read()
        history = records.history(records.registered(test).digest)
        table: pd.DataFrame = history.table()
        table.attrs = {"ledger": self.ledger, "head": records.head, "elsewhere": history.elsewhere}
        return table

    def verify(self, head: str | None = None) -> bool:
        """Return whether the ledger is whole: no entry altered, none missing.

        To detect entries cut off at the end, it compares the ledger with an earlier head: the one given here, and the
        last one that this guard saw.

        Parameters
        ----------
        head : str, optional
            A head from a report.

        Returns
        -------
        bool
        """
        return not self.problems(head)

    def problems(self, head: str | None = None) -> list[str]:
        """Return the faults of the ledger in words, as `verify` finds them.

        Parameters
        ----------
        head : str, optional
            As in `verify`.

        Returns
        -------
        list of str
            One sentence for each fault; empty if the ledger is whole.
        """
        return self._ledger.problems(*filter(None, (head, self._journal.seen)))

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
            The answer, with the matching collections and the evidence.

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
        >>> guard = Guard("my-project", ledger=f"{tempfile.mkdtemp()}/ledger")
        >>> test, other = make_ranking(60, rng=0), make_ranking(60, rng=1)
        >>> collection = guard.register("my-test", test)
        >>> guard.status(test).refused, guard.status(other).refused
        (True, False)
        """
        data = load_collection(X, y, qid=qid, group=group, qrels=qrels, queries=queries, docid=docid).prints
        records = self._journal.read()
        found = [match(one, data) for one in records.in_force()]
        return status_of(found, ledger=self.ledger, head=records.head, off=discovery.default_url() is None)

    def retire(self, test: RegisteredCollection | str, reason: str) -> None:
        """Retire a test collection for good: its content may be fitted on from now on, and it is never opened again.

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
        >>> guard = Guard("my-project", ledger=f"{tempfile.mkdtemp()}/ledger")
        >>> test = guard.register("my-test", make_ranking(60, rng=0))
        >>> guard.retire(test, reason="replaced by a larger one")
        >>> guard.verify()
        True
        """
        if not isinstance(reason, str) or not reason.strip():
            raise InvalidInput("reason is missing: say why the collection is given up; it goes on record")

        def record(records: Records) -> None:
            content = records.in_use(test)
            body = {"digest": content.digest, "name": content.name, "reason": reason}
            self._journal.append(records, ("retire", body))

        self._journal.decide(record)

    def __repr__(self) -> str:
        return f"Guard({self.project!r}, ledger={self.ledger!r})"
