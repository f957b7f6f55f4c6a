"""The guard, by which a test collection is used: register it, freeze systems, open them once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rankeval._checks import shown
from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import InvalidInput
from rankeval.guard import freezing, opening, registering
from rankeval.guard.checks import Aim
from rankeval.guard.collection import RegisteredCollection, load_collection
from rankeval.guard.gates import Gates
from rankeval.guard.plan import Plan
from rankeval.measures import Measure

if TYPE_CHECKING:
    from rankeval.comparison import Comparison
    from rankeval.significance.declarations import ClaimName


class Guard(Gates):
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
    who : str, optional
        The person or machine in new entries; by default ``RANKEVAL_WHO``, or the user and the host.

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

        Registering the same content under the same name again records nothing, but returns the collection with its
        data. Do so to open a plan in a new process. The same queries with other features or a few other labels become a
        revision of the name by themselves. Looks belong to queries, so they carry over to revisions, and to every other
        registration that holds some of them. New registrations are checked: see ``rankeval.guard.list_checks``.

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
            The texts of the queries.
        supersedes : RegisteredCollection or str, optional
            The collection that this one takes the place of, if the set of queries, many labels or the name changed.
            Queries with the same id count as the same.
        effect : float, optional
            The difference that you want to find, in units of the measure. If there are too few queries to find it, a
            warning says how many are needed.
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
            If the name stands for other content and ``supersedes`` does not say so, or the queries were retired.
        """
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(argument="name", found=f"{name!r}", expected="a name for the collection")
        content = load_collection(X, y, qid=qid, group=group, qrels=qrels, queries=queries, docid=docid)
        collection = registering.register(self._journal, name, content, supersedes, Aim(effect, sd))
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
        claim: ClaimName = "difference",
        margin: float = 0.0,
        queries: Literal["fresh"] | None = None,
    ) -> Plan:
        """Fix the systems that will be opened, and the test, before any of their scores is seen.

        What a plan can show is decided here, by the looks that went before it. It is confirmatory if fewer than 5 % and
        fewer than 5 of its queries were ever looked at in this ledger, under whatever name, version or project.

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
        claim : {"difference", "better", "not_worse", "equivalent"}, default "difference"
            The claim to be shown, as in `rankeval.compare`; "not_worse" and "equivalent" count one unseen query.
        margin : float, default 0
            Of the claim, in units of the measure.
        queries : {"fresh"}, optional
            "fresh" tests only on queries that nobody in this ledger looked at. Where ids and features changed, queries
            that may have been looked at unrecognised are left out too. Their number, and the difference that they can
            show, stand in ``plan.notes``. All queries by default.

        Returns
        -------
        Plan
            The frozen plan, for `open`.

        Raises
        ------
        InvalidInput
            If a system gives no ranking of the collection, a measure cannot be computed, fewer than two queries are
            fresh, the plan is incomplete, or folds cut a query or do not hold each out exactly once.
        UnknownName
            If the baseline, a measure or the convention does not exist.
        LedgerError
            If the collection was retired or belongs to another ledger, or the ledger cannot be written.

        Notes
        -----
        Max-T adjusts over all systems of the plan and of the plans frozen with it. Its error rate is about ``alpha``
        for systems that were fixed before any of their scores was seen. With 25 queries, and skewed scores against a
        baseline that all systems share, up to .09 were measured for an ``alpha`` of .05, and up to .125 for claims with
        one side ("better", "not_worse").
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
            n_resamples=n_resamples,
            rng=int(rng),
            claim=claim,
            margin=margin,
            queries=queries,
        )

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
            confirmatory, the first look of this project, concurrent with another opening, exploratory or secondary.
            ``best`` corrects the best of several systems for the choice. A plan of one system has its mean only, and an
            empty ``table``.

        Raises
        ------
        LedgerError
            If the plan is not on record, its collection was not registered by this guard or was retired, scores
            changed, or the look could not be kept: the ledger cannot be written, or would be lost with a CI run.

        Notes
        -----
        Adjusted p-values are those of max-T, whose error rate is about ``alpha`` for systems that were fixed before any
        of their scores was seen. With 25 queries, and skewed scores against a shared baseline, up to .09 were measured
        for an ``alpha`` of .05, and up to .125 for claims with one side. No p-value is
        adjusted for systems that were made after an opening.
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
            raise InvalidInput(argument="test", found=shown(test), expected="the result of guard.register")
        plan_id = plan.id if isinstance(plan, Plan) else plan
        return opening.open_plan(self._journal, plan_id, [test] if test else self._collections.values())
