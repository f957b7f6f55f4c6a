"""Register, freeze, open: the protocol by which a test collection is used.

    guard = Guard("my-project")
    test = guard.register("mslr-test", X, y, qid=qid)
    plan = guard.freeze(test, systems={"v2": scores, "v3": model}, baseline="v2", measure="nDCG@10")
    result = guard.open(plan)

From the registration on, scorers, `evaluate`, `cross_validate` and `QueryRanker.fit` refuse that content. All systems
of a plan are scored in one batch, and the ledger counts each new ranking output as a look.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankeval.collection.convention import Convention, get_convention
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.contamination.register import Sealed, match, registration, sealed_from
from rankeval.errors import InvalidInput, LedgerError, RankevalWarning
from rankeval.guard.collection import Content, RegisteredCollection, content_of
from rankeval.guard.history import History, Standing
from rankeval.guard.opening import Opening
from rankeval.guard.plan import Plan
from rankeval.guard.rankings import Known, output_digest
from rankeval.guard.records import Records
from rankeval.guard.rules import Finding, Registration, findings
from rankeval.guard.status import Status, status_of
from rankeval.ledger import discovery
from rankeval.ledger.chain import HeadMovedError
from rankeval.measures import Measure
from rankeval.measures import measure as find_measure

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison.result import Comparison


class Guard:
    """Keeps test collections from being used before their time, and counts the looks at them.

    Parameters
    ----------
    project : str
        Under which looks are counted.
    ledger : str or path, optional
        A path or an SQLAlchemy URL; by default the project's (see `rankeval.ledger.discovery`).

    Raises
    ------
    LedgerError
        When there can be no ledger there, or it is switched off.
    """

    def __init__(self, project: str, ledger: str | os.PathLike[str] | None = None) -> None:
        if not isinstance(project, str) or not 1 <= len(project.strip()) <= 255:
            raise InvalidInput(f"project is {project!r}; expected a name of 1 to 255 letters")
        url = discovery.default_url() if ledger is None else discovery.ledger_url(ledger)
        if url is None:
            raise LedgerError(
                f"the ledger is switched off ({discovery.VARIABLE}=off or [tool.rankeval] ledger): "
                "switch it on, or say where it shall be with ledger="
            )
        self.project = project
        self._records = Records(project, url)
        self._collections: dict[str, RegisteredCollection] = {}
        discovery.watch(url)

    @property
    def ledger(self) -> str:
        """Where the ledger is."""
        return self._records.where

    @property
    def head(self) -> str:
        """The hash of the ledger's last entry; note it elsewhere to find later whether entries were cut off."""
        return self._records.head()

    def register(
        self,
        name: str,
        X: Any | None = None,
        y: Any | None = None,
        *,
        qid: Any | None = None,
        docid: Any | None = None,
        qrels: Any | None = None,
        queries: Mapping[Any, str] | None = None,
    ) -> RegisteredCollection:
        """Register a test collection; from now on its content is refused elsewhere.

        Registering the same content under the same name again changes nothing, and returns it with the data at hand,
        which is what opening a plan in a new process needs.

        Parameters
        ----------
        name : str
            What to call it; one name a content within the project.
        X : array, sparse matrix or DataFrame of shape (n_rows, n_features), or RankingData
            The features.
        y, qid, docid : array of shape (n_rows,)
            Labels, query ids, document ids (optional).
        qrels : Qrels, mapping, frame or path
            The judgments of a collection, instead of rows.
        queries : mapping of query id to str, optional
            The text of the queries.

        Returns
        -------
        RegisteredCollection

        Raises
        ------
        InvalidInput
            When the data is incomplete.
        LedgerError
            When the name stands for other content, the content for another name, or it was retired.
        """
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(f"name is {name!r}; expected what to call the collection")
        content = content_of(X, y, qid=qid, qrels=qrels, queries=queries, docid=docid)
        known = content.fingerprint()
        if not known.n_queries:
            raise InvalidInput("the collection has no rows")
        body = {"name": name, **registration(known, content.X)}
        sealed, found, new = self._record_registration(body, known, content)
        for one in found if new else ():
            if one.serious:
                warnings.warn(f"{one.code} {name!r}: {one.message}", RankevalWarning, stacklevel=2)
        collection = RegisteredCollection(
            name=name,
            project=self.project,
            digest=sealed.digest,
            n_queries=known.n_queries,
            n_rows=len(known.codes),
            n_identifiable=sealed.n_identifiable,
            findings=found,
            ledger=self.ledger,
            head=self.head,
            content=content,
        )
        self._collections[sealed.digest] = collection
        return collection

    def freeze(
        self,
        test: RegisteredCollection,
        *,
        systems: Mapping[str, Any],
        baseline: str | None = None,
        measure: str | Measure = "nDCG@10",
        secondary: Sequence[str | Measure] = (),
        convention: str | Convention = "rankeval",
        alpha: float = 0.05,
        n_resamples: int = 9999,
        rng: int = 0,
        folds: Any | None = None,
    ) -> Plan:
        """Write down what will be opened, before any score of it is seen.

        Parameters
        ----------
        test : RegisteredCollection
            What `register` returned.
        systems : mapping of str to array, fitted model or Run
            Name -> scores in the order of the registered rows, a fitted model that predicts them (its ``predict`` is
            called now, with ``qid`` if it takes that), or a run for judgments.
        baseline : str, optional
            The system that the others are compared with; all pairs without. The first baseline that a project
            declares is no look.
        measure : str or Measure
            The primary measure: the only one with adjusted p-values.
        secondary : sequence of str or Measure
            Measures that are shown besides.
        convention : str or Convention
            How rankings are held against the labels.
        alpha : float
            Level of the test.
        n_resamples, rng : int
            Of the randomisation test.
        folds : None
            The benchmark by cross-validation as one look is not there yet.

        Returns
        -------
        Plan
            On record, with the rankings.

        Raises
        ------
        InvalidInput
            When a system gives no ranking of the collection, or the plan is not whole.
        LedgerError
            When the collection was retired, or belongs to another ledger.
        """
        if folds is not None:
            raise InvalidInput("folds= is not there yet: fit the systems, and freeze their scores or the fitted models")
        if not isinstance(systems, Mapping) or len(systems) < 2:
            raise InvalidInput("systems must map at least two names to rankings: a look at one system compares nothing")
        if not isinstance(test, RegisteredCollection):
            raise InvalidInput(f"test is {test!r}; expected what guard.register returned")
        self._records.in_use(test)
        known = Known(test.content, test.fingerprint())
        rankings = {str(name): known.ranking(str(name), system) for name, system in systems.items()}
        primary = str(find_measure(measure, convention))
        plan = Plan(
            project=self.project,
            collection=test.name,
            digest=test.digest,
            systems=tuple((name, output_digest(known.outputs(ranking))) for name, ranking in rankings.items()),
            baseline=baseline,
            measure=primary,
            secondary=tuple(
                one for one in dict.fromkeys(str(find_measure(m, convention)) for m in secondary) if one != primary
            ),
            convention=get_convention(convention),
            alpha=float(alpha),
            n_resamples=int(n_resamples),
            rng=int(rng),
            ledger=self.ledger,
        )
        if not self._records.is_frozen(plan):
            self._records.freeze(plan, {name: known.pack(ranking) for name, ranking in rankings.items()})
        return self.plan(plan.id)

    def plan(self, plan_id: str) -> Plan:
        """Return a frozen plan of this project by its id.

        Parameters
        ----------
        plan_id : str
            The id, or enough of its beginning.

        Raises
        ------
        LedgerError
            When there is none, or there are several.
        """
        return self._records.plan(plan_id)

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
            With its evaluations; its notes say what it is worth.

        Raises
        ------
        LedgerError
            When the plan is not on record, its collection is not at hand or was retired, or scores changed.
        """
        return self.open_counted(plan, test)[0]

    def open_counted(self, plan: Plan | str, test: RegisteredCollection | None = None) -> tuple[Comparison, int]:
        """Open a plan, and return also how many looks this call recorded.

        Another process may have opened the plan meanwhile: it then counted the looks, and this call none.

        Parameters
        ----------
        plan, test
            As of `open`.
        """
        plan = self.plan(plan.id if isinstance(plan, Plan) else plan)
        test = test or self._collections.get(plan.digest)
        if test is None or test.digest != plan.digest:
            raise LedgerError(
                f"plan {plan.id} is about {plan.collection!r} (digest {plan.digest[:12]}), which is not at hand: "
                f"register it again, guard.register({plan.collection!r}, ...), and open the plan then"
            )
        self._records.in_use(test)
        known = Known(test.content, test.fingerprint())
        opening = Opening.of(plan, known, self._records.rankings()[plan.id])
        while True:
            head = self.head
            history = self._records.history(plan.digest)
            standing = history.standing(plan)
            before = history.opening_of(plan.id)
            if before is not None:
                opening.check_against(before.body)
                return self._compare(opening, standing, history), 0
            try:
                self._records.append("open", opening.body(standing), expected=head)
                return self._compare(opening, standing, history), len(standing.looks)
            except HeadMovedError:  # somebody else opened or froze something: count again
                continue

    def looks(self, test: RegisteredCollection | str) -> pd.DataFrame:
        """Return the looks of this project at a collection, one row each, oldest first.

        Parameters
        ----------
        test : RegisteredCollection or str
            The collection or its name.

        Returns
        -------
        DataFrame
            look, time, who, system, measure, value (the aggregate that was seen), status, plan, output. Its ``attrs``
            name ledger, head, and the looks of other projects (``elsewhere``).
        """
        history = self._records.history(self._records.sealed(test).digest)
        table: pd.DataFrame = history.table()
        table.attrs = {"ledger": self.ledger, "head": self.head, "elsewhere": history.elsewhere}
        return table

    def verify(self, head: str | None = None) -> bool:
        """Whether the ledger is whole: no entry altered, none missing.

        Entries cut off at the end are missed only against a head that was noted before: given here, or seen by this
        guard.

        Parameters
        ----------
        head : str, optional
            A head from a report.
        """
        return not self.problems(head)

    def problems(self, head: str | None = None) -> list[str]:
        """Return what is wrong with the ledger, in words.

        Parameters
        ----------
        head : str, optional
            A head from a report.
        """
        return self._records.problems(head)

    def status(
        self,
        X: Any | None = None,
        y: Any | None = None,
        *,
        qid: Any | None = None,
        docid: Any | None = None,
        qrels: Any | None = None,
        queries: Mapping[Any, str] | None = None,
    ) -> Status:
        """Say whether some data would be refused, and why.

        Parameters
        ----------
        X, y, qid, docid, qrels, queries
            As of `register`; X may be left out.

        Returns
        -------
        Status
        """
        content = content_of(X, y, qid=qid, qrels=qrels, queries=queries, docid=docid)
        head = self.head
        found = [
            match for _, match in ContaminationCheck(((self._records.ledger.url, head),)).matches(content.fingerprint())
        ]
        return status_of(found, ledger=self.ledger, head=head, off=discovery.default_url() is None)

    def retire(self, test: RegisteredCollection | str, reason: str) -> None:
        """Give a collection up as a test: it may be fitted on from now on, for good, and is never opened again.

        Parameters
        ----------
        test : RegisteredCollection or str
            The collection or its name.
        reason : str
            Why; goes on record.

        Raises
        ------
        InvalidInput
            Without a reason.
        LedgerError
            When it is not registered, or was retired before.
        """
        if not isinstance(reason, str) or not reason.strip():
            raise InvalidInput("reason is missing: say why the collection is given up; it goes on record")
        sealed = self._records.in_use(test)
        self._records.append("retire", {"digest": sealed.digest, "name": sealed.name, "reason": reason})

    def __repr__(self) -> str:
        return f"Guard({self.project!r}, ledger={self.ledger!r})"

    def _record_registration(
        self, body: dict[str, Any], known: Fingerprint, content: Content
    ) -> tuple[Sealed, tuple[Finding, ...], bool]:
        """Append a registration unless it is on record; return it, what the rules found, and whether it is new."""
        while True:
            register, head = self._records.register_and_head()
            before = self._records.same(register, body["name"], body["digest"])
            sealed = before or sealed_from(body, self.project)
            others = tuple(match(one, known) for one in register if one.digest != sealed.digest and not one.retired)
            found = findings(Registration(known, sealed, content.labels, others))
            if before is not None:
                return sealed, found, False
            try:
                note = {"findings": [[one.code, one.message] for one in found]}
                self._records.append("register", body | note, expected=head)
            except HeadMovedError:  # somebody else registered something: look again
                continue
            return sealed, found, True

    def _compare(self, opening: Opening, standing: Standing, history: History) -> Comparison:
        """Compare over the family: plans that share all but their systems in one batch, the others by Bonferroni."""
        plan = opening.plan
        plans = [self.plan(one) for one in standing.family if one != plan.id]
        together = [one for one in plans if one.family_key == plan.family_key]
        n_groups = 1 + len({one.family_key for one in plans} - {plan.family_key})
        rankings = self._records.rankings() if together else {}
        family = [Opening.of(one, opening.known, rankings[one.id]) for one in together]
        result = opening.compare(standing, family, n_groups)
        where = f"ledger {self.ledger} at {self.head[:12]}"
        return result.with_notes(*opening.notes(standing, history, family, n_groups, where))
