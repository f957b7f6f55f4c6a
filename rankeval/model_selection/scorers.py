"""Scorers for scikit-learn: measures per query of what an estimator predicts.

A scorer needs no base class: scikit-learn routes ``qid`` to every object with a `get_metadata_routing`, which is built
from public parts here. A callable that returns a dict gives many measures from one predict; a dict of scorers would
predict once for each.

The trap: ``error_score=np.nan`` turns every Exception of a scorer into nan. So query ids that are missing, unusable or
contradicted raise a ``MissingQueryIds``, which is a BaseException.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metadata_routing import MetadataRequest

from rankeval._registry import chosen, unknown
from rankeval.collection.convention import Convention, rules_of_call
from rankeval.collection.rows import check_rows
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation, Given, query_weights, score
from rankeval.evaluation.responses import RESPONSES, responses
from rankeval.evaluation.result import by_name
from rankeval.io import columns
from rankeval.join.joined import Joined
from rankeval.measures import Measure
from rankeval.model_selection.bound_ids import BoundIds, same_bound
from rankeval.model_selection.checks import check_measures, signs
from rankeval.model_selection.known_queries import check_fold
from rankeval.model_selection.query_ids import DOCID, NAME, WAYS, find, has_column, index_levels, without_ids
from rankeval.model_selection.stopping import of_weights, stop


def make_scorer(
    measures: str | Measure | Sequence[str | Measure],
    *,
    convention: str | Convention = "rankeval",
    ties: str | None = None,
    missing: str | None = None,
    no_relevant: str | None = None,
    judgments: str | None = None,
    qid: Any = None,
    y: Any = None,
    response_method: str | Sequence[str] | None = None,
    name: str | None = None,
) -> QueryScorer:
    """Make a scorer of ranking measures for scikit-learn.

    Higher is better, as scikit-learn expects: if less of a measure is better, as for ARP, the scorer returns the
    negative under the same name. ``scorer.evaluate`` and `rankeval.cross_validate` return the value itself.

    The scorer takes the query of each row from the first of these that is there: ``qid=`` of the call (routed, if
    metadata routing is on), the ids bound here, a pandas index level named "qid" on X or y, a column "qid" of X.
    ``sklearn.inspection.permutation_importance`` routes nothing: use bound ids or an index with it.

    If a search of scikit-learn fits a `QueryRanker` to some rows of a query and scores others, as with ``cv=5``, the
    scorer warns once per search, with a `rankeval.errors.QueryCutWarning`. `rankeval.QueryKFold` and
    `rankeval.QuerySplit` keep queries whole. Of other estimators a scorer does not know the rows that they were fitted
    on.

    Parameters
    ----------
    measures : str, Measure, or list of them
        With one measure, the scorer returns a number. With several, it returns a dict from a single predict, as for
        ``cross_validate`` and ``GridSearchCV(refit="nDCG@10")``. scikit-learn's ``learning_curve``,
        ``validation_curve`` and ``HalvingGridSearchCV`` take one measure; `rankeval.learning_curve` takes several.
    convention : str or Convention, default="rankeval"
        The rules by which rankings are scored.
    ties, missing, no_relevant, judgments : str, optional
        Single rules that replace those of the convention, as in `evaluate`.
    qid : Series or array-like of shape (n_rows,), optional
        Ids bound to the scorer. A Series is looked up by the index labels of y or X, so it works in folds too.
    y : Series or array-like of shape (n_rows,), optional
        The relevance of the rows of ``qid``, which checks every look-up. Needed if nothing else can detect rows in
        another order: ids without an index, and rows with the index 0, 1, 2, ..., as after ``reset_index``.
    response_method : str or sequence of str, optional
        The first of these methods that the estimator has gives the scores. By default "predict", and for a classifier
        "predict_proba", "decision_function" or "predict", as in `QueryRanker`. From "predict_proba" the scorer takes
        the second column, or the expected grade. It skips a "decision_function" with a column per grade if "predict"
        follows.
    name : str, optional
        Name of the system in the evaluations.

    Returns
    -------
    QueryScorer
        Called as ``scorer(estimator, X, y, qid=qid)``.

    Raises
    ------
    UnknownName
        If a measure, the convention, a rule or the response method does not exist.
    InvalidInput
        If a measure cannot be computed from rows with labels, such as ERR without ``max_rel``.

    Examples
    --------
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> X, y, qid = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0], ["a", "a", "b", "b"]
    >>> scorer = rk.make_scorer(["RR", "P@1"])
    >>> scorer(Ridge().fit(X, y), X, y, qid=qid)
    {'RR': 0.75, 'P@1': 0.5}
    """
    single = {"ties": ties, "missing": missing, "no_relevant": no_relevant, "judgments": judgments}
    return QueryScorer(measures, convention, single, qid=qid, y=y, response_method=response_method, name=name)


class QueryScorer:
    """Scores an estimator's ranking of each query; see `make_scorer`.

    Parameters
    ----------
    measures, convention, qid, y, response_method, name
        As in `make_scorer`.
    single : mapping of str to str or None
        Its single rules by name.
    """

    def __init__(
        self,
        measures: str | Measure | Sequence[str | Measure],
        convention: str | Convention,
        single: Mapping[str, str | None],
        *,
        qid: Any,
        y: Any,
        response_method: str | Sequence[str] | None,
        name: str | None,
    ) -> None:
        self.convention: Convention = rules_of_call(convention, **single)
        self._asked = check_measures(measures, self.convention)
        if isinstance(measures, (str, Measure)):
            measures = measures if len(self._asked) == 1 else (measures,)
        self.measures: str | Measure | tuple[str | Measure, ...]
        self.measures = measures if isinstance(measures, (str, Measure)) else tuple(measures)
        self._given = {"convention": convention, **single}
        self.response_method: Any = response_method
        if isinstance(response_method, Iterable) and not isinstance(response_method, str):
            self.response_method = tuple(response_method)
        self.name = name
        for method in self._methods or ():
            chosen("response method", method, RESPONSES)
        if qid is None and y is not None:
            raise InvalidInput("y is there to check bound query ids, and none are bound: give qid too")
        self._bound = None if qid is None else BoundIds(qid, y)
        self._requests: dict[str, bool | str | None] = {"qid": True, "docid": True, "sample_weight": True}
        self._contamination = ContaminationCheck.current()

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        qid: Any = None,
        *,
        group: Any = None,
        docid: Any = None,
        sample_weight: Any = None,
    ) -> float | dict[str, float]:
        """Predict once and return the measure, or a dict of measures; negative if less of a measure is better.

        Parameters
        ----------
        estimator : object
            A fitted estimator.
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows, in any order.
        y : array-like of shape (n_rows,)
            Their relevance.
        qid : array-like of shape (n_rows,), optional
            The query of each row.
        group : array-like of int of shape (n_queries,), optional
            Sizes of consecutive queries, instead of `qid`.
        docid : array-like of shape (n_rows,), optional
            The document of each row, or a pandas index level named "docid"; only ``ties="docid"`` reads it.
        sample_weight : array-like of shape (n_rows,), optional
            The weight of each row's query, constant within the query. If weights are by row, for fitting only, call
            ``set_score_request(sample_weight=False)``.

        Raises
        ------
        MissingQueryIds
            If the query of each row is not known; a `BaseException`.
        ConflictingQueryIds
            If two sources of ids disagree; a `MissingQueryIds` too.
        UnusableWeights
            If a search of scikit-learn gives weights that differ within a query; outside of one, an `InvalidInput`.
        SharedQueries
            If a search scores queries on which a `QueryRanker` stopped early, its ``eval_set``.
        GuardRefusal
            If X and y are registered test content.
        """
        evaluation = self.evaluate(estimator, X, y, qid=qid, group=group, docid=docid, sample_weight=sample_weight)
        values = evaluation.aggregate()
        # As with scikit-learn's greater_is_better=False: a search keeps the highest score.
        sign = signs(by_name(evaluation).items())
        scores = {label: sign[label] * float(values[label]) for label in evaluation.measure_names}
        return scores if isinstance(self.measures, tuple) else next(iter(scores.values()))

    def evaluate(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        group: Any = None,
        docid: Any = None,
        sample_weight: Any = None,
    ) -> Evaluation:
        """Predict once and return the scores of every query.

        Parameters
        ----------
        estimator, X, y, qid, group, docid, sample_weight
            As in a call of the scorer.

        Returns
        -------
        Evaluation
            Under the scorer's measures and convention.
        """
        documents = next((column for _, column in index_levels(X, y, DOCID)), None) if docid is None else docid
        ids = self._ids(X, y, qid, group, docid=docid, sample_weight=sample_weight)
        labels = columns.labels(columns.as_column(y), "y")
        check_fold(estimator, without_ids(X), labels, ids)
        predicted = responses(estimator, as_fitted(estimator, X), self._methods)
        # A worker knows the ledgers from the scorer; a registration since the scorer was made is seen as well.
        self._contamination.refuse(without_ids(X), labels, ids, docid=documents, score=predicted, action="score")
        joined = Given(labels, predicted, ids, documents).join(self.convention)
        return score(joined, self._asked, weights=_of_queries(sample_weight, joined), name=self.name)

    def _ids(self, X: Any, y: Any, qid: Any, group: Any, **beside: Any) -> NDArray[Any]:
        """Return the query of each row, or stop the search around this call."""
        try:
            check_rows(X=X, y=y, qid=qid, **beside)
            ids = find(X, y, qid=qid, group=group, bound=self._bound)
        except InvalidInput as error:
            stop(str(error), error)
        if ids is None:
            stop(
                f"{self!r} was called without query ids. Give one of: params={{'qid': qid}} under "
                f"sklearn.set_config(enable_metadata_routing=True); {WAYS}; make_scorer(..., qid=series); or use "
                "rankeval.cross_validate(..., qid=qid), which needs no routing",
            )
        return ids

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the request by which scikit-learn routes ``qid``, ``docid`` and ``sample_weight`` here."""
        request = MetadataRequest(owner=self)
        for param, alias in self._requests.items():
            request.score.add_request(param=param, alias=alias)
        return request

    def set_score_request(self, **requests: bool | str | None) -> QueryScorer:
        """Change the names under which metadata is routed here, as for scikit-learn's own scorers.

        Parameters
        ----------
        **requests : bool, str or None
            For ``qid``, ``docid`` and ``sample_weight``: whether to request it, or its name in ``params=``.

        Returns
        -------
        QueryScorer
            This scorer.

        Raises
        ------
        UnknownName
            If a keyword is none of these.
        """
        for param in requests:
            if param not in self._requests:
                raise unknown("metadata of a scorer", param, self._requests)
        self._requests = {**self._requests, **requests}
        return self

    @property
    def by_name(self) -> dict[str, Measure]:
        """Its measures by the names under which they are returned."""
        return dict(self._asked)

    @property
    def _methods(self) -> tuple[str, ...] | None:
        given = self.response_method
        return given if given is None or isinstance(given, tuple) else (given,)

    def __sklearn_clone__(self) -> QueryScorer:
        return copy.copy(self).set_score_request()  # requests are copied, so that a clone can change its own

    def _key(self) -> tuple[Any, ...]:
        many = isinstance(self.measures, tuple)
        return many, tuple(self._asked), self.convention, self._methods, self.name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QueryScorer):
            return NotImplemented
        return (
            self._key() == other._key() and self._requests == other._requests and same_bound(self._bound, other._bound)
        )

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        measures = list(self.measures) if isinstance(self.measures, tuple) else self.measures
        shown = [repr([str(one) for one in measures] if isinstance(measures, list) else str(measures))]
        left_out = {"convention": "rankeval"}
        shown += [f"{rule}={value!r}" for rule, value in self._given.items() if value != left_out.get(rule)]
        if self._bound is not None:
            shown.append(f"qid=<{len(self._bound.ids)} bound ids>")
        if self.response_method is not None:
            shown.append(f"response_method={self.response_method!r}")
        if self.name is not None:
            shown.append(f"name={self.name!r}")
        renamed = [f"{param}={alias!r}" for param, alias in self._requests.items() if alias is not True]
        return f"make_scorer({', '.join(shown)})" + (f".set_score_request({', '.join(renamed)})" if renamed else "")


def _of_queries(sample_weight: Any, joined: Joined) -> NDArray[np.float64] | None:
    """Return one weight a query; a scorer has no use for others."""
    weights = None if sample_weight is None else np.asarray(sample_weight)  # by row, whatever its index
    try:
        return query_weights(weights, joined)
    except InvalidInput as error:
        raise of_weights(
            f"sample_weight: {error}. Weights by row are for fitting: keep them from this scorer by "
            "scorer.set_score_request(sample_weight=False), or leave them out of this call"
        ) from None


def as_fitted(estimator: Any, X: Any) -> Any:
    """Return X without its column of ids, unless the estimator was fitted with it: a Pipeline may drop it itself.

    Parameters
    ----------
    estimator : object
        A fitted estimator.
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        The rows.
    """
    return X if has_column(X) and NAME in _fitted_with(estimator) else without_ids(X)


def _fitted_with(estimator: Any) -> list[Any]:
    """Return the feature names that an estimator was fitted with, if it knows them."""
    for name in ("feature_names_in_", "feature_names_"):  # the second is CatBoost's
        found = getattr(estimator, name, None)
        if found is not None:
            return list(found)
    # A search or a Pipeline of scikit-learn does not find the names of CatBoost.
    inner = getattr(estimator, "best_estimator_", None)
    inner = estimator.steps[0][1] if inner is None and hasattr(estimator, "steps") else inner
    return [] if inner is None else _fitted_with(inner)
