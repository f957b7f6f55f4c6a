"""Scorers for scikit-learn: measures per query of what an estimator predicts.

A scorer needs no base class: scikit-learn routes ``qid`` to every object with a
`get_metadata_routing`, which is built from public parts here. A callable that returns a dict gives
many measures from one predict; a dict of scorers would predict once for each.

The trap: ``error_score=np.nan`` turns every Exception of a scorer into nan. So query ids that are
missing, unusable or contradicted raise a ``MissingQueryIdsRefusal``, which is a BaseException.

Below it stand the same measures for the training loops of LightGBM and XGBoost.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from sklearn.utils.metadata_routing import MetadataRequest

from rankeval._arguments import explained
from rankeval._checks import refuse, shown
from rankeval._registry import chosen
from rankeval.collection.convention import Convention, get_convention, rules_of_call
from rankeval.collection.rows import check_rows
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.errors import (
    InvalidInput,
    UnusableColumnsRefusal,
    UnusableWeightsRefusal,
    warn,
)
from rankeval.evaluation import Evaluation, Given, query_weights, score
from rankeval.evaluation.front_door import columns_by_name
from rankeval.evaluation.lacking import lacking_everywhere, undefined_notes
from rankeval.evaluation.responses import RESPONSES, responses
from rankeval.io import columns as io_columns
from rankeval.join.joined import column_role
from rankeval.measures import Measure
from rankeval.model_selection.boosters import BOOSTERS
from rankeval.model_selection.checks import check_measures, signs
from rankeval.model_selection.inside_searches import check_fold, stop, stopping
from rankeval.model_selection.query_ids import (
    NAME,
    WAYS,
    BoundIds,
    documents_of_rows,
    has_column,
    read_columns,
    required_ids,
    without_ids,
)
from rankeval.model_selection.with_lightgbm import LightGBMFeval
from rankeval.model_selection.with_xgboost import XGBoostMetric


@explained
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
    columns: Any = None,
    response_method: str | Sequence[str] | None = None,
    name: str | None = None,
) -> QueryScorer:
    """Make a scorer of ranking measures for scikit-learn.

    Higher is better, as scikit-learn expects: if less of a measure is better, as for ARP, the
    scorer returns the negative under the same name. ``scorer.evaluate`` and
    `rankeval.cross_validate` return the value itself.

    The scorer takes the query of each row from the first of these that is there: ``qid=`` of the
    call (routed, if metadata routing is on), the ids bound here, a pandas index level named "qid"
    on X or y, a column "qid" of X. ``sklearn.inspection.permutation_importance`` routes nothing:
    use bound ids or an index with it.

    A measure that reads a column of the rows, as ``"Revenue@5(column='price')"`` does, takes it
    from the first of these that is there: ``price=`` of the call (routed, if metadata routing is
    on), the column bound here, the column "price" of X.

    If a search of scikit-learn fits a `QueryRanker` to some rows of a query and scores others, as
    with ``cv=5``, the scorer warns once per search, with a `rankeval.errors.QueryCutWarning`.
    `rankeval.QueryKFold` and `rankeval.QuerySplit` keep queries whole. Of other estimators a scorer
    does not know the rows that they were fitted on.

    Parameters
    ----------
    measures : str, Measure, or list of them
        With one measure, the scorer returns a number. With several, it returns a dict from a single
        predict, as for ``cross_validate`` and ``GridSearchCV(refit="nDCG@10")``. scikit-learn's
        ``learning_curve``, ``validation_curve`` and ``HalvingGridSearchCV`` take one measure;
        `rankeval.learning_curve` takes several.
    convention : str or Convention, default="rankeval"
        The rules by which rankings are scored.
    ties, missing, no_relevant, judgments : str, optional
        Single rules that replace those of the convention, as in `evaluate`.
    qid : Series or array-like of shape (n_rows,), optional
        Ids bound to the scorer. A Series is looked up by the index labels of y or X, so it works in
        folds too.
    y : Series or array-like of shape (n_rows,), optional
        The relevance of the rows of ``qid``, which checks every look-up. Needed if nothing else can
        detect rows in another order: ids without an index, and rows with the index 0, 1, 2, ..., as
        after ``reset_index``.
    columns : mapping of str to Series or array-like of shape (n_rows,), or to str, optional
        Columns that measures read, bound to the scorer as ``qid`` is, or names of columns of X:
        ``{"price": "price_usd"}``.
    response_method : str or sequence of str, optional
        The first of these methods that the estimator has gives the scores. By default "predict",
        and for a classifier "predict_proba", "decision_function" or "predict", as in `QueryRanker`.
        From "predict_proba" the scorer takes the second column, or the expected grade. It skips a
        "decision_function" with a column per grade if "predict" follows.
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
    rules = rules_of_call(convention, **single)
    labelled = dict(check_measures(measures, rules))
    listed = (measures,) if isinstance(measures, (str, Measure)) else tuple(measures)
    is_single = isinstance(measures, (str, Measure)) and len(labelled) == 1
    methods: Any = None
    if response_method is not None:
        is_list = isinstance(response_method, Iterable) and not isinstance(response_method, str)
        methods = tuple(response_method) if is_list else (response_method,)
        response_method = methods if is_list else response_method
        refuse((not methods, "response_method names no method"))
        for method in methods:
            chosen("response method", method, RESPONSES)
    refuse((name is not None and not isinstance(name, str), f"name is {shown(name)}; give text"))
    bound = {
        column: values if isinstance(values, str) else BoundIds(values, y, column_role(column))
        for column, values in columns_by_name(columns).items()
    }
    unbound = "y is there to check bound query ids, and none are bound: give qid too"
    refuse((qid is None and y is not None and not bound, unbound))
    taken = signature(QueryScorer.evaluate).parameters
    read = (
        column
        for measure in labelled.values()
        for column in measure.columns.values()
        if column not in taken
    )
    given = {"convention": convention, **single, "response_method": response_method, "name": name}
    requests = dict.fromkeys(("qid", "docid", "query_weight", *read), True)
    bound_ids = None if qid is None else BoundIds(qid, y)
    return QueryScorer(
        measures=listed[0] if is_single else listed,
        by_name=labelled,
        convention=rules,
        methods=methods,
        name=name,
        given=given,
        qid=bound_ids,
        columns=bound,
        requests=requests,
        contamination=ContaminationCheck.current(),
    )


@dataclass(eq=False, repr=False)
class QueryScorer:
    """Scores an estimator's ranking of each query; see `make_scorer`."""

    # As they were asked for: a tuple if the scorer returns a dict.
    measures: str | Measure | tuple[str | Measure, ...]
    by_name: dict[str, Measure]  # Its measures by the names under which they are returned
    convention: Convention  # The rules, with the single rules of the call
    methods: tuple[str, ...] | None  # The methods of an estimator that may give the scores
    name: str | None  # Name of the system in the evaluations
    given: Mapping[str, Any]  # Other arguments of `make_scorer`, as they are shown
    qid: BoundIds | None  # Bound query ids
    columns: dict[str, Any]  # Bound columns, or names of columns of X
    requests: Mapping[
        str, bool | str | None
    ]  # The metadata that is routed here, as scikit-learn's requests
    # The ledgers that were known when the scorer was made: a worker knows them from the scorer.
    contamination: ContaminationCheck

    def __call__(
        self, estimator: Any, X: Any, y: Any, qid: Any = None, **beside: Any
    ) -> float | dict[str, float]:
        """Predict once and return the measure, or a dict of measures; negative if less of a measure is better."""
        evaluation = self.evaluate(estimator, X, y, qid=qid, **beside)
        if blind := lacking_everywhere(evaluation):
            warn(
                f"the scores of a part say nothing: {'; '.join(undefined_notes(evaluation, blind))}"
            )
        values = evaluation.aggregate()
        # As with scikit-learn's greater_is_better=False: a search keeps the highest score.
        scores = {
            label: sign * float(values[label])
            for label, sign in signs(self.by_name.items()).items()
        }
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
        query_weight: Any = None,
        **columns: Any,
    ) -> Evaluation:
        """Predict once and return the scores of every query."""
        for column in columns:
            chosen("metadata of a scorer", column, self.requests)
        documents = documents_of_rows(X, y, docid)
        routed = "params={'qid': qid} under sklearn.set_config(enable_metadata_routing=True)"
        ways = f"{routed}; {WAYS}; make_scorer(..., qid=series); or use rankeval.cross_validate(..., qid=qid)"
        try:
            check_rows(X=X, y=y, qid=qid, docid=docid)
            ids = required_ids(
                X, y, who=f"{self!r}", ways=ways, qid=qid, group=group, bound=self.qid
            )
        except InvalidInput as error:
            stop(error)
        with stopping(UnusableColumnsRefusal):
            read = read_columns(X, y, self.by_name.values(), self.columns | columns)
        labels = io_columns.labels(io_columns.as_column(y), "y")
        check_fold(estimator, without_ids(X), labels, ids)
        predicted = responses(estimator, as_fitted(estimator, X), self.methods, qid=ids)
        # A registration since the scorer was made is seen as well.
        self.contamination.refuse(
            without_ids(X), labels, ids, docid=documents, score=predicted, action="score"
        )
        given = Given(labels, predicted, ids, documents, read=read, arguments=("y", "estimator"))
        joined = given.join(self.convention)
        with stopping(UnusableWeightsRefusal):
            weights = query_weights(query_weight, joined, {"X": X, "y": y, "qid": qid})
        return score(joined, [*self.by_name.items()], weights=weights, name=self.name)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the request by which scikit-learn routes ``qid``, ``docid``, ``query_weight`` and columns here."""
        request = MetadataRequest(owner=self)
        for param, alias in self.requests.items():
            request.score.add_request(param=param, alias=alias)
        return request

    def set_score_request(self, **requests: bool | str | None) -> QueryScorer:
        """Change the names under which metadata is routed here, as for scikit-learn's own scorers."""
        for param in requests:
            chosen("metadata of a scorer", param, self.requests)
        self.requests = {**self.requests, **requests}
        return self

    def __sklearn_clone__(self) -> QueryScorer:
        # Requests are copied, so that a clone can change its own.
        return copy.copy(self).set_score_request()

    def __repr__(self) -> str:
        many = isinstance(self.measures, tuple)
        shown = [repr(list(map(str, self.measures)) if many else str(self.measures))]  # type: ignore[arg-type]
        left_out = {"convention": "rankeval"}
        shown += [
            f"{name}={value!r}" for name, value in self.given.items() if value != left_out.get(name)
        ]
        if self.qid is not None:
            shown.append(f"qid=<{len(self.qid.ids)} bound ids>")
        shown += [f"columns={list(self.columns)}"] if self.columns else []
        renamed = [
            f"{param}={alias!r}" for param, alias in self.requests.items() if alias is not True
        ]
        return f"make_scorer({', '.join(shown)})" + (
            f".set_score_request({', '.join(renamed)})" if renamed else ""
        )


def as_fitted(estimator: Any, X: Any) -> Any:
    """Return X without its column of ids, unless the estimator was fitted with it: a Pipeline may drop it itself."""
    return X if has_column(X) and NAME in _fitted_with(estimator) else without_ids(X)


def _fitted_with(estimator: Any) -> list[Any]:
    for name in ("feature_names_in_", "feature_names_"):  # the second is CatBoost's
        found = getattr(estimator, name, None)
        if found is not None:
            return list(found)
    # A search or a Pipeline of scikit-learn does not find the names of CatBoost.
    inner = getattr(estimator, "best_estimator_", None)
    inner = estimator.steps[0][1] if inner is None and hasattr(estimator, "steps") else inner
    return [] if inner is None else _fitted_with(inner)


@explained
def lightgbm_feval(
    measures: str | Measure | Sequence[str | Measure], *, convention: str | Convention = "rankeval"
) -> LightGBMFeval:
    """Make an evaluation function of ranking measures for LightGBM.

    Parameters
    ----------
    measures : str, Measure, or list of them
        The measures to compute on each evaluation set. LightGBM learns for each whether higher is
        better.
    convention : str or Convention, default="rankeval"
        The rules by which rankings are scored.

    Returns
    -------
    LightGBMFeval
        For ``feval=``, or ``eval_metric=`` of ``LGBMRanker.fit``. Set ``params["metric"] = "None"``
        to see no other measure. A query's weight is the mean of its rows' weights in the Dataset,
        as in LightGBM's own ndcg.

    Raises
    ------
    UnknownName
        If a measure does not exist.
    InvalidInput
        If a measure cannot be computed from rows, or reads a column of them, which no training loop
        has.

    Examples
    --------
    >>> import lightgbm
    >>> import rankeval as rk
    >>> data, history = rk.datasets.make_ranking(20, 10, rng=0), {}
    >>> train = lightgbm.Dataset(data.X, data.y, group=[10] * 20)
    >>> params = {"objective": "lambdarank", "metric": "None", "num_threads": 1, "verbose": -1}
    >>> record = lightgbm.record_evaluation(history)
    >>> booster = lightgbm.train(
    ...     params, train, 2, valid_sets=[train], feval=lightgbm_feval(["nDCG@10", "AP"]), callbacks=[record]
    ... )
    >>> list(history["training"])
    ['nDCG@10', 'AP']
    """
    metric: LightGBMFeval = _training_metric("lightgbm", measures, convention)
    return metric


@explained
def xgboost_metric(
    measures: str | Measure | Sequence[str | Measure], *, convention: str | Convention = "rankeval"
) -> XGBoostMetric:
    """Make an evaluation function of ranking measures for ``xgboost.train`` and ``xgboost.cv``.

    Parameters
    ----------
    measures : str, Measure, or list of them
        The measures to compute on each evaluation set.
    convention : str or Convention, default="rankeval"
        The rules by which rankings are scored.

    Returns
    -------
    XGBoostMetric
        For ``custom_metric=``. XGBoost assumes of every metric that less is better: to stop early,
        give ``maximize=metric.maximize`` too (True for most measures, False for some, such as ARP).
        Early stopping in the wrong direction is refused in the first iteration. Weights of the
        DMatrix are weights of queries.

    Raises
    ------
    UnknownName
        If a measure does not exist.
    InvalidInput
        If a measure cannot be computed from rows, or reads a column of them, which no training loop
        has.

    Examples
    --------
    >>> import xgboost
    >>> import rankeval as rk
    >>> data, history = rk.datasets.make_ranking(20, 10, rng=0), {}
    >>> train = xgboost.DMatrix(data.X, data.y, group=[10] * 20)
    >>> params = {"objective": "rank:ndcg", "disable_default_eval_metric": True, "nthread": 1}
    >>> watched = {"evals": [(train, "train")], "evals_result": history, "verbose_eval": False}
    >>> booster = xgboost.train(params, train, 2, custom_metric=xgboost_metric("nDCG@10"), **watched)
    >>> list(history["train"])
    ['nDCG@10']
    """
    metric: XGBoostMetric = _training_metric("xgboost", measures, convention)
    return metric


def _training_metric(library: str, measures: Any, convention: str | Convention) -> Any:
    labelled = check_measures(measures, convention, takes_columns=False)
    feval: Any = BOOSTERS[library].feval
    return feval(tuple(measure for _, measure in labelled), get_convention(convention))
