"""The guard, by which a test collection is used: register it, freeze systems, open them once.

Each step of the protocol stands in a module of its own; the class says what a reader may ask for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rankeval._arguments import explained
from rankeval._checks import check_alpha, require
from rankeval._display import Displayed, View
from rankeval._registry import chosen
from rankeval.collection.convention import Convention, get_convention
from rankeval.contamination.matching import match_content
from rankeval.errors import LedgerError
from rankeval.guard import freezing, opening, registering, releasing
from rankeval.guard.checks import Aim, check_text
from rankeval.guard.collection import RegisteredCollection, check_registered, load_collection
from rankeval.guard.decisions import Terms
from rankeval.guard.gate import Gate, declare
from rankeval.guard.journal import Journal, looks_table
from rankeval.guard.plan import Plan
from rankeval.guard.releasing import Status, status_of
from rankeval.ledger import discovery
from rankeval.ledger.graph import heads_named
from rankeval.ledger.ledger import Ledger
from rankeval.measures import Measure
from rankeval.measures import measure as parse_measure

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison import Comparison
    from rankeval.significance.declarations import ClaimName


@explained
class Guard(Displayed):
    """Keeps test collections out of tuning, and counts the looks at them.

    Once a collection is registered, scorers, `evaluate`, `cross_validate` and `QueryRanker.fit`
    refuse its content. All systems of a plan are scored in one batch, and each new ranking output
    is one look.

    Parameters
    ----------
    project : str
        The name of the project. Looks are counted for each project.
    ledger : str or path, optional
        A path or an SQLAlchemy URL. By default the folder ``rankeval-ledger`` in the project's
        root, unless ``RANKEVAL_LEDGER`` or pyproject.toml names another ledger. Other processes
        read that ledger only: registering something in another one gives a warning, except in the
        temporary folder of the system.
    who : str, optional
        The person or machine in new entries; by default ``RANKEVAL_WHO``, or the user and the host.

    Raises
    ------
    InvalidInput
        If the name is not a text of 1 to 255 letters.
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

    def __init__(
        self, project: str, ledger: str | os.PathLike[str] | None = None, who: str | None = None
    ) -> None:
        # The ledger's column holds 255 letters.
        fits = isinstance(project, str) and 1 <= len(project.strip()) <= 255
        require(fits, "project", project, "a name of 1 to 255 letters")
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
        supersedes: RegisteredCollection | str | None = None,
        effect: float | None = None,
        sd: float = 0.2,
    ) -> RegisteredCollection:
        """Register a test collection; from now on its content is refused elsewhere.

        Registering the same content under the same name again records nothing, but returns the
        collection with its data. Do so to open a plan in a new process. The same queries with other
        features or a few other labels become a revision of the name by themselves. Looks belong to
        queries, so they carry over to revisions, and to every other registration with some of
        them. New registrations are checked: see ``rankeval.guard.list_checks``.

        Parameters
        ----------
        name : str
            Name of the collection.
        X : array, sparse matrix or DataFrame of shape (n_rows, n_features), or RankingData
            The features.
        y, qid, docid : array of shape (n_rows,)
            Labels, query ids and, optionally, document ids.
        group : array of int of shape (n_queries,), optional
            Sizes of consecutive queries, instead of ``qid``.
        qrels : Qrels, mapping, frame or path
            The judgments of a collection, instead of rows.
        queries : mapping of query id to str, optional
            The texts of the queries. They identify a query under any id, in data that has its texts
            too, as ``rk.evaluate(queries=texts)`` and the runs of ``rk.text`` do.
        supersedes : RegisteredCollection or str, optional
            The collection that this one replaces, if the set of queries, many labels or the name
            changed. Queries with the same id count as the same.
        effect : float, optional
            The difference that you want to find, in units of the measure. If there are too few
            queries to find it, a warning says how many are needed.
        sd : float, default 0.2
            Standard deviation of the differences by query, for that.

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
            If the name is that of other content and ``supersedes`` does not say so, or the queries
            were retired.
        """
        check_text("name", name, "a name for the collection")
        content = load_collection(
            X, y, qid=qid, group=group, qrels=qrels, queries=queries, docid=docid
        )
        collection = registering.register(self._journal, name, content, supersedes, Aim(effect, sd))
        self._collections[collection.digest] = collection
        return collection

    def freeze(
        self,
        collection: RegisteredCollection,
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
        claim: ClaimName = "difference",
        margin: float = 0.0,
        fresh: bool = False,
        groups: Any = None,
    ) -> Plan:
        """Fix the systems that will be opened, and the test, before any of their scores is seen.

        What a plan can show is decided here, by the looks that went before it. It is confirmatory
        if fewer than 5 % and fewer than 5 of its queries were ever looked at in this ledger, under
        whatever name, version or project.

        Parameters
        ----------
        collection : RegisteredCollection
            The collection that `register` returned.
        systems : mapping of str to array, fitted model or Run
            One system or more: name -> scores of shape (n_rows,) in the order of the registered
            rows, a fitted model that predicts them, or a run if judgments are registered. The
            model's ``predict`` is called now, with ``qid`` if it takes that. With ``folds``,
            estimators, fitted or not. Give each a ``random_state``; otherwise its output is a new
            one, and a new look, each time.
        folds : int, splitter, iterable of (train, test) or array of shape (n_rows,), optional
            Make the plan a benchmark over folds: a number of folds of `rankeval.QueryKFold`; any
            splitter of scikit-learn or rankeval, applied to queries; the row numbers of each part;
            or the fold of each row. Each query is held out exactly once, and no part cuts one. Each
            estimator is copied, fitted on each training part and asked for the scores of the part
            held out; none is evaluated. Tuning is nested if the estimator is a search. In this call
            alone the collection may be fitted on, also by workers on this machine. All folds of an
            estimator are one system, and one look.
        baseline : str, optional
            The system that the others are compared with. Without one, all pairs are compared. The
            first baseline that a project declares is not a look.
        measure : str or Measure
            The primary measure. Only its p-values are adjusted.
        secondary : str, Measure or sequence of them
            Further measures to show.
        convention : str or Convention
            The rules by which rankings are scored.
        alpha, n_resamples, rng : float, int, int
            Level, resamples and seed of the randomisation test.
        claim : {"difference", "better", "not_worse", "equivalent"}, default "difference"
            The claim to be shown, as in `rankeval.compare`; "not_worse" and "equivalent" count one
            unseen query.
        margin : float, default 0
            Of the claim, in units of the measure.
        fresh : bool, default False
            Whether to test only on queries that nobody in this ledger looked at. If ids and
            features changed, queries that may have been looked at unrecognised are left out too.
            ``plan.notes`` give their number, and the difference that they can show.
        groups : Series or mapping by query id, or DataFrame, optional
            The group of each query, such as its conversation, as in `rankeval.compare`. Means,
            tests and intervals are then over groups. They are part of the plan, and kept in the
            ledger.

        Returns
        -------
        Plan
            The frozen plan, for `open`.

        Raises
        ------
        InvalidInput
            If a system gives no ranking of the collection, a measure cannot be computed, fewer than
            two queries are fresh, the plan is incomplete, or folds cut a query or do not have each
            query held out exactly once.
        UnknownName
            If the baseline, a measure or the convention does not exist.
        LedgerError
            If the collection was retired or belongs to another ledger, or the ledger cannot be
            written.

        Notes
        -----
        Max-T adjusts over all systems of the plan and of the plans frozen with it. Its error rate is about ``alpha``
        for systems that were fixed before any of their scores was seen. With 25 queries, and skewed scores against a
        baseline that all systems share, up to .09 were measured for an ``alpha`` of .05, and up to .125 for claims with
        one side ("better", "not_worse").
        """
        check_alpha(alpha)
        further = [secondary] if isinstance(secondary, (str, Measure)) else secondary
        return freezing.freeze(
            self._journal,
            collection,
            systems,
            folds,
            measures=(measure, *further),
            convention=get_convention(convention),
            baseline=baseline,
            alpha=float(alpha),
            n_resamples=n_resamples,
            rng=int(rng),
            claim=claim,
            margin=margin,
            fresh=fresh,
            groups=groups,
        )

    def open(self, plan: Plan | str, collection: RegisteredCollection | None = None) -> Comparison:
        """Score all systems of a plan in one batch, and record the looks.

        Opening the same plan again is free, and must give the same scores.

        Parameters
        ----------
        plan : Plan or str
            The plan, or its id.
        collection : RegisteredCollection, optional
            The collection; needed only if this guard did not register it.

        Returns
        -------
        Comparison
            The comparison with its evaluations, and the mean of each system in ``means``. Its notes say if it is
            confirmatory or exploratory, and why; ``standing`` has finer words.
            ``best`` corrects the best of several systems for the choice. A plan of one system has its mean only, and an
            empty ``table``.

        Raises
        ------
        LedgerError
            If the plan is not on record, its collection was not registered by this guard or was
            retired, scores changed, or the look could not be kept: the ledger cannot be written, or
            would be lost with a CI run.

        Notes
        -----
        Adjusted p-values are those of max-T, whose error rate is about ``alpha`` for systems that were fixed before any
        of their scores was seen. With 25 queries, and skewed scores against a shared baseline, up to .09 were measured
        for an ``alpha`` of .05, and up to .125 for claims with one side. No p-value is
        adjusted for systems that were made after an opening.
        """
        if collection is not None:
            check_registered(collection)
        plan_id = plan.id if isinstance(plan, Plan) else plan
        return opening.open_plan(
            self._journal, plan_id, [collection] if collection else self._collections.values()
        )

    def gate(
        self,
        collection: RegisteredCollection,
        *,
        baseline: Any = None,
        baseline_name: str = "baseline",
        budget: int = 20,
        measure: str | Measure = "nDCG@10",
        claim: ClaimName = "better",
        margin: float = 0.0,
        alpha: float = 0.05,
        convention: str | Convention = "rankeval",
        sd: float | None = None,
        rng: int = 0,
        name: str = "gate",
        groups: Any = None,
    ) -> Gate:
        """Declare a gate: it accepts or rejects one candidate after the other, and shows nothing else.

        A gate is declared once for a collection and its revisions. The same call again returns it,
        with or without its baseline. Each candidate is tested at ``alpha / budget``. If the queries
        were looked at before, the gate is declared all the same, and says so in its entry, in a
        warning and wherever it is printed: its level is not valid for candidates that such looks
        helped to make.

        Parameters
        ----------
        collection : RegisteredCollection
            The collection that `register` returned.
        baseline : array, fitted model or Run
            The system in use, as in `freeze`. Candidates are compared with it until one is
            accepted.
        baseline_name : str, default "baseline"
            What a new gate's baseline is called in its entries, in decisions and in the records of
            promotions.
        budget : int, default 20
            Number of decisions.
        measure : str or Measure
            The measure.
        claim : {"better", "not_worse"}, default "better"
            What must be shown of a candidate: that it is better than the baseline by more than the
            margin, or not worse by the margin. The latter counts one unseen query, as
            `rankeval.compare` does.
        margin : float, default 0
            Of the claim, in units of the measure; "not_worse" needs one.
        alpha : float, default 0.05
            The level of all decisions together.
        convention : str or Convention
            The rules by which rankings are scored.
        sd : float, optional
            Standard deviation of the differences by query, from which the gate says what it can
            find; by default .2. It is not part of the terms.
        rng : int
            Seed of the randomisation test.
        name : str, default "gate"
            Name of the gate.
        groups : Series or mapping by query id, or DataFrame, optional
            The group of each query, such as its conversation, as in `freeze`. Each decision is then
            tested over groups, and ``sd`` is that of the differences by group. They are kept in the
            ledger: later calls may leave them out.

        Returns
        -------
        Gate
            Its ``decide(name, system)`` returns a Decision, which says if the system was accepted
            and how many decisions are left. Printed, the gate says which difference it can find.

        Raises
        ------
        InvalidInput
            If there is no baseline for a new gate, a term is out of range, or so few queries can
            show nothing.
        LedgerError
            If a gate of this name has other terms or other groups, or the collection was retired.

        Examples
        --------
        >>> import tempfile
        >>> from rankeval.datasets import make_ranking
        >>> data = make_ranking(60, rng=0)
        >>> guard = Guard("my-project", ledger=f"{tempfile.mkdtemp()}/ledger")
        >>> gate = guard.gate(guard.register("my-test", data), baseline=-data.y, budget=10)
        >>> bool(gate.decide("perfect", data.y)), bool(gate.decide("random", data.X[:, 0] * 0))
        (True, False)
        """
        rules = get_convention(convention)
        terms = Terms(
            measure=str(parse_measure(measure, rules)),
            convention=rules,
            claim=claim,
            margin=float(margin),
            alpha=float(alpha),
            budget=budget,
            rng=int(rng),
            unseen=int(claim == "not_worse"),
        )
        return declare(
            self._journal,
            collection,
            name,
            terms,
            baseline=baseline,
            baseline_name=baseline_name,
            sd=sd,
            groups=groups,
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

    def looks(
        self,
        collection: RegisteredCollection | str | None = None,
        *,
        projects: Literal["own", "all"] = "own",
    ) -> pd.DataFrame:
        """Return the looks at a collection, or all of this project, one row per look, in the order of the ledger.

        Looks belong to queries: those at other collections that share queries with this one are
        listed too. Standings are those at the present head: if a colleague opened these queries in
        another clone, and the ledgers were merged, the opening that comes first keeps its standing,
        and the other one is exploratory.

        Parameters
        ----------
        collection : RegisteredCollection or str, optional
            The collection or its name; with all its revisions. Without one, all looks of the
            project.
        projects : {"own", "all"}, default "own"
            Whether to list the looks of other projects at these queries too.

        Returns
        -------
        DataFrame
            Columns: look, time, who, project, system, measure, value (the aggregate that was seen),
            status (confirmatory or exploratory), plan, output, n_queries (those of the collection
            that the look was at); without ``collection``, a first column ``collection``. Its
            ``attrs`` have ledger, head, the number of looks of other projects at these queries
            (``elsewhere``), and that of the decisions of gates on them (``decisions``): these are
            not looks, and ``gate.decisions()`` lists them.

        Raises
        ------
        LedgerError
            If the collection is not registered, or the ledger is not whole.
        """
        chosen("projects", projects, ("own", "all"))
        return looks_table(self._journal.read(), collection, everybody=projects == "all")

    def verify(
        self,
        head: str | os.PathLike[str] | None = None,
        *,
        other: str | os.PathLike[str] | None = None,
        strict: bool = False,
    ) -> bool:
        """Return whether the ledger is whole: no entry or file was altered or is missing.

        To detect entries cut off at the end, it compares the ledger with earlier heads: the last
        one that this process saw, those given here, and those of another copy.

        Parameters
        ----------
        head : str or path, optional
            A head; or a file with heads: a report, a comparison as ``to_json`` writes it, or a list
            of heads. Sentences that name a head are not read.
        other : str or path, optional
            A copy of the ledger, such as that of a colleague, all of whose entries must be here.
        strict : bool, default False
            Whether to raise an error that lists the faults if there are any, instead of returning
            False.

        Returns
        -------
        bool

        Raises
        ------
        InvalidInput
            If ``head`` is neither, or a file that names no head.
        LedgerError
            If a ledger cannot be read at all; with ``strict``, if it is not whole.
        """
        copy = None if other is None else Ledger(discovery.ledger_url(other))
        problems = self._ledger.problems(*_heads_in(head), self._journal.seen, other=copy)
        if problems and strict:
            raise LedgerError("; ".join(problems), where=self.ledger)
        return not problems

    def merge(self, other: str | os.PathLike[str]) -> int:
        """Add all entries and files of another ledger to this one; the other one stays as it is.

        If plans were opened in both without knowing of each other, the first one in the order of
        the ledger keeps its standing, and later ones become exploratory. It makes no difference
        which ledger is merged into the other.

        Parameters
        ----------
        other : str or path
            A path or an SQLAlchemy URL.

        Returns
        -------
        int
            Number of entries that were added; 0 if all were here. Files that were missing come
            along uncounted.

        Raises
        ------
        LedgerError
            If there is no such ledger, one of the two is not whole, or this one cannot be written.
        """
        self._journal.read()
        return self._ledger.merge(Ledger(discovery.ledger_url(other)))

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
            The answer with the evidence: ``.rows`` is a mask, so that ``X[~status.rows]`` is the
            rest, and ``.queries`` are the ids.

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
        content = load_collection(
            X, y, qid=qid, group=group, qrels=qrels, queries=queries, docid=docid
        )
        fingerprint = content.prints
        records = self._journal.read()
        matches = [
            match_content(registered, fingerprint)
            for registered in records.contents
            if registered.retired is None
        ]
        return status_of(
            matches,
            fingerprint,
            ledger=self.ledger,
            head=records.head,
            off=discovery.default_url() is None,
        )

    def exempt(
        self, collection: RegisteredCollection | str, queries: Iterable[Any] | Status, reason: str
    ) -> int:
        """Exempt some queries of a registered collection: they are not refused any more anywhere.

        For a legitimate overlap, such as another split of the same data. It goes on record, and for
        plans that are frozen later these queries count as exposed, since systems may have been
        fitted on them.

        Parameters
        ----------
        collection : RegisteredCollection or str
            The collection of any project, as "name" or "project/name".
        queries : iterable of query id, or Status
            The queries, by the ids under which they were registered; or the result of `status`, for
            those found in the data.
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
        >>> guard, data = Guard("my-project", ledger=f"{tempfile.mkdtemp()}/ledger"), make_ranking(60, rng=0)
        >>> test = guard.register("my-test", data)
        >>> part = data.take(data.qid < 5)
        >>> guard.status(part).refused, guard.exempt("my-test", guard.status(part), reason="also in the dev split")
        (True, 4)
        >>> guard.status(part).refused
        False
        """
        return releasing.exempt(self._journal, collection, queries, reason)

    def retire(self, collection: RegisteredCollection | str, reason: str) -> None:
        """Retire a test collection for good: its content may be fitted on from now on, and it is never opened again.

        All its revisions are retired with it. Other projects that registered the same content keep
        it.

        Parameters
        ----------
        collection : RegisteredCollection or str
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
        releasing.retire(self._journal, collection, reason)

    def _view(self) -> View:
        return View([f"{type(self).__name__}({self.project!r}, ledger={self.ledger!r})"])


def _heads_in(head: str | os.PathLike[str] | None) -> list[str]:
    """Return the heads that a text is, or that a file names."""
    if head is None:
        return []
    require(
        isinstance(head, (str, os.PathLike)), "head", head, "a head, or a report that names one"
    )
    if not os.path.isfile(head):  # noqa: PTH113 - a head may be longer than a name, which Path refuses
        return [os.fspath(head)]
    return heads_named(head)
