"""`QueryRanker`: one scikit-learn estimator around all rankers, with rows in any order and ids of any type.

`fit` checks its input, asks the guard, sets rows apart to stop early on (`holdout`), and leaves the
rest to `nesting` (Pipelines, searches) and `boosters`, which tell LightGBM, XGBoost and CatBoost
the queries.

Below it, `stops_early` and `what_was_chosen` look through the Pipelines, searches and rankers
around an estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import (
    RegressorTags,
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
    get_tags,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from rankeval._arguments import explained
from rankeval._checks import said
from rankeval._estimator import BaseEstimator
from rankeval.collection.convention import Convention
from rankeval.collection.rows import check_rows
from rankeval.contamination.fingerprint import fingerprint
from rankeval.contamination.refusal import Allowance, ContaminationCheck, granted
from rankeval.errors import InvalidInput, UnusableRowsRefusal, UnusableWeightsRefusal
from rankeval.evaluation.responses import by_query, responses
from rankeval.io import columns
from rankeval.model_selection import boosters, limits, nesting, threads
from rankeval.model_selection.category_columns import categories_of, coded
from rankeval.model_selection.checks import for_other_processes
from rankeval.model_selection.holdout import SCORE, hold_out, refuse_cut, validation_part
from rankeval.model_selection.inside_searches import Watched, in_search, searched, stopping
from rankeval.model_selection.nesting import features_for
from rankeval.model_selection.query_ids import documents_of_rows, find, n_rows, required_ids
from rankeval.model_selection.rows import TrainingRows, query_weight_of_rows, row_columns
from rankeval.model_selection.scorers import make_scorer


def _if_inner_has(method: str) -> Callable[[QueryRanker], bool]:
    return lambda ranker: hasattr(getattr(ranker, "estimator_", ranker.estimator), method)


@explained
class QueryRanker(BaseEstimator):
    """Fits any ranker, regressor or classifier to queries, under one scikit-learn interface.

    `fit` takes the query of each row from ``qid=`` (routed by default), ``group=``, a pandas index
    level or a column named "qid", which is then no feature. LightGBM, XGBoost and CatBoost get the
    queries in their own ways, by ascending id; other estimators are fitted to the rows.

    Up to a million cells (rows times features), LightGBM, XGBoost, OpenMP and BLAS take one thread,
    unless a parameter such as ``n_jobs``, a variable such as OMP_NUM_THREADS or
    ``threadpool_limits`` says how many.

    Parameters
    ----------
    estimator : object
        LGBMRanker, XGBRanker, CatBoostRanker, any regressor or classifier, or a Pipeline that ends
        in one. A search such as GridSearchCV over a QueryRanker can be given too, with metadata
        routing on or off.
    validation_fraction : float, optional
        The share of queries to hold out for early stopping, 0.1 if not given. The order of rows
        does not matter. In a Pipeline they are held out before its first step is fitted. With
        ``fit(..., eval_set=...)`` nothing is held out.
    early_stopping_rounds : int, optional
        Stop boosting after this number of iterations without a better ``eval_measure`` on the
        held-out queries or on ``eval_set``. If not given, the parameter of the booster itself
        decides.
    eval_measure : str or Measure, optional
        The measure to watch, ``nDCG@10`` if not given. Its direction is known: for ARP, lower is
        better.
    eval_convention : str or Convention, default="rankeval"
        The rules of ``eval_measure``. A preset that breaks ties by document uses
        ``ties="expected"`` here, since the documents are unknown.
    single_query : bool, default=False
        Treat rows without ids as one query with per-row weights. By default missing ids are an
        error. scikit-learn's ``check_estimator`` knows no ids and passes only with this option.

    Attributes
    ----------
    estimator_ : object
        The fitted estimator.
    n_iterations_ : int or None
        The number of iterations that `predict` uses, if training could stop early.
    validation_score_ : float or None
        The best value of ``eval_measure`` on the held-out queries or on ``eval_set``.
    n_features_in_, feature_names_in_
        As in scikit-learn, without the column of ids.
    categories_ : dict of str to CategoricalDtype
        The categories of each column of pandas' or polars' categories. `predict` codes columns by
        them, texts too. Unknown ones are left to the library. XGBoost gets missing values: it would
        take them for known ones.
    classes_, coef_, feature_importances_
        Those of the fitted estimator, if it has them; importances of CatBoost are by change of the
        prediction.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> ranker = QueryRanker(Ridge()).fit([[0.0], [1.0], [2.0]], [0, 1, 2], qid=["a", "b", "a"])
    >>> ranker.score([[0.0], [1.0], [2.0]], [0, 1, 2], qid=["a", "b", "a"])
    1.0
    """

    categories_: dict[str, Any]
    estimator_: Any
    n_iterations_: int | None
    validation_score_: float | None
    _known: tuple[tuple[NDArray[Any], NDArray[Any]] | None, Watched | None]
    # These names have no other meaning, so they are asked for, as qid is.
    __metadata_request__fit: ClassVar = {
        "qid": True,
        "groups": False,
        **dict.fromkeys(
            ("docid", "query_weight", "position", "eval_set", "eval_qid", "eval_X", "eval_y"), True
        ),
    }
    __metadata_request__predict: ClassVar = {"qid": True}
    # Pipeline.score hands sample_weight on, None too, and raises if its last step does not ask for
    # it.
    __metadata_request__score: ClassVar = {"qid": True, "query_weight": True, "sample_weight": True}

    def __init__(
        self,
        estimator: Any,
        *,
        validation_fraction: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_measure: Any = None,
        eval_convention: str | Convention = "rankeval",
        single_query: bool = False,
    ) -> None:
        self.estimator = estimator
        self.validation_fraction = validation_fraction
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_measure = eval_measure
        self.eval_convention = eval_convention
        self.single_query = single_query

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        group: Any = None,
        docid: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        position: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_X: Any = None,
        eval_y: Any = None,
    ) -> QueryRanker:
        """Fit a copy of the estimator.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows, in any order.
        y : array-like of shape (n_rows,)
            The relevance of each row.
        qid : array-like of shape (n_rows,), optional
            The query of each row.
        group : array-like of int of shape (n_queries,), optional
            Sizes of consecutive queries, instead of ``qid``.
        docid : array-like of shape (n_rows,), optional
            The document of each row, or a pandas index level named "docid". Only a guard reads it,
            which knows test queries by their documents.
        groups : array-like of shape (n_rows,), optional
            A coarser unit than the query, such as its author. Early stopping and the folds of a
            search keep it whole. A search of scikit-learn passes it here if routing is on and
            ``set_fit_request(groups=True)`` asks for it.
        sample_weight : array-like of shape (n_rows,), optional
            The weight of each row, or of its query, in fitting. If weights differ within a query,
            LGBMRanker, regressors and classifiers use them by row, and CatBoostRanker with losses
            such as RMSE and QueryRMSE. With its other losses it takes one weight per query, as
            XGBRanker does.
        query_weight : mapping or Series by query id, or array-like of shape (n_rows,), optional
            The weight of each query in the means by which a search inside chooses.
        position : array-like of int of shape (n_rows,), optional
            The rank at which each row was shown when it was clicked or not. LGBMRanker with the
            objective "lambdarank" learns how much a position attracts clicks, and scores rows
            without it. Other estimators refuse it.
        eval_set : tuple of (Xv, yv), list of one such pair, or RankingData, optional
            A validation part to stop early on, rows in any order. The steps of a Pipeline inside
            this ranker transform it. A search passes it to every fit as it is.
        eval_qid : array-like of shape (n_validation_rows,), or list of one, optional
            The query of each of its rows. It may also be a pandas index level or a column of Xv
            named "qid". A search of scikit-learn cuts an array that is as long as X; ``[ids]`` is
            kept whole.
        eval_X, eval_y : array-like, optional
            The same as ``eval_set=(eval_X, eval_y)``, for ``Pipeline([..., ("rank",
            QueryRanker(...))], transform_input=["eval_X"])``: there scikit-learn transforms it with
            the steps before this ranker.

        Returns
        -------
        QueryRanker
            This estimator.

        Raises
        ------
        QueryIdError
            If the query of each row is not known.
        MissingQueryIdsRefusal
            The same inside a search of scikit-learn, which would turn a QueryIdError into nan.
        InvalidInput
            If there is no estimator, an option does not fit it, weights are negative, or they
            differ within a query and the library takes none by row, or nothing is learnt from
            ``position``. It is also raised if ``eval_set`` has other columns than X, or nothing
            says when to stop on it; or if a booster's library refuses a label, the size of a query,
            or the name or type of a column.
        UnusableRowsRefusal
            If a booster's library refuses such rows inside a search of scikit-learn that does not
            vary its objective.
        SharedQueriesError
            If ``eval_set`` has queries of X, by their ids or by their rows and labels.
        SharedQueriesRefusal
            The same inside a search of scikit-learn.
        GuardRefusal
            If X and y, or those of ``eval_set``, are registered test content.
        """
        if y is None:
            raise InvalidInput("QueryRanker requires y to be passed, but the target y is None")
        nesting.check_estimator(self.estimator)
        features = self._features(X, reset=True)
        labels = columns.labels(columns.as_column(y), "y")
        column_or_1d(
            y if getattr(y, "ndim", 1) == 2 else labels, warn=True
        )  # warns of a matrix with one column
        check_consistent_length(features, labels)
        if labels.dtype.kind == "f":
            assert_all_finite(labels, input_name="y")
        with stopping():
            check_rows(
                X=X,
                y=y,
                qid=qid,
                docid=docid,
                groups=groups,
                sample_weight=sample_weight,
                position=position,
            )
            sources = {"qid": qid, "group": group}
            given = (
                find(X, y, **sources)
                if self.single_query
                else required_ids(X, y, who="QueryRanker.fit", **sources)
            )
        ids = np.zeros(len(labels), dtype=np.int64) if given is None else given
        validation = self._validation(features, eval_set, eval_qid, eval_X, eval_y)
        check = ContaminationCheck.current()
        check.refuse(features, labels, ids, docid=documents_of_rows(X, y, docid), action="fit")
        watched = None
        if validation is not None:
            part = validation.X, validation.y, validation.qid
            check.refuse(*part, docid=validation.docid, action="fit with this eval_set")
            watched = Watched.of(validation.X, validation.y, validation.qid)
            watched.refuse_in(
                fingerprint(features, labels, ids), "the training data", by_id=given is not None
            )
        beside = row_columns(ids, sample_weight=sample_weight, groups=groups, position=position)
        with (
            nullcontext() if limits.decides(searched()) else stopping(UnusableRowsRefusal)
        ):  # another setting may take them
            refuse_unusable(self.estimator, features, labels, ids)
            if validation is not None:
                refuse_unusable(
                    self.estimator, validation.X, validation.y, validation.qid, where="eval_set"
                )
        with stopping(UnusableWeightsRefusal):
            means = query_weight_of_rows(query_weight, ids, X=X, y=y, qid=qid)
        rows = TrainingRows.of(features, labels, ids, **beside, query_weight=means)
        rows, watch = hold_out(self, rows, validation)
        estimator = boosters.cloned(self.estimator)
        with threads.one_thread(estimator, features):
            self.estimator_, self.n_iterations_ = nesting.fitted(estimator, rows, watch)
        self.validation_score_ = None if watch is None else watch.best
        self._known = (None if given is None else (labels, ids), watched)
        return self

    def predict(self, X: Any, *, qid: Any = None) -> NDArray[np.float64]:
        """Return the score of each row, in the order of the rows; higher ranks first.

        The score of a classifier is the probability of the second class, or the expected grade if
        there are several.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows; a column "qid" is left out.
        qid : array-like of shape (n_rows,), optional
            The query of each row, found as in `fit`. Only an estimator that scores the rows of a
            query together reads it, such as `Fusion`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Scores.

        Raises
        ------
        NotFittedError
            If `fit` was not called.
        ValueError
            If X has other features than in `fit`.
        """
        check_is_fitted(self, "estimator_")
        ids = find(X, qid=qid) if by_query(self.estimator_) else None
        return self._asked(X, partial(responses, qid=ids))

    # scikit-learn has no types, nor has its decorator.
    @available_if(_if_inner_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return `predict_proba` of the fitted estimator, if it has one.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows; a column "qid" is left out.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        return self._asked(X, lambda estimator, features: estimator.predict_proba(features))

    # As above.
    @available_if(_if_inner_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return `decision_function` of the fitted estimator, if it has one.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows; a column "qid" is left out.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Confidences.
        """
        return self._asked(X, lambda estimator, features: estimator.decision_function(features))

    def score(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        group: Any = None,
        query_weight: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Return the mean ``nDCG@10`` of the queries, under the convention "rankeval".

        Parameters
        ----------
        X, y, qid, group
            As in `fit`.
        query_weight : mapping or Series by query id, or array-like of shape (n_rows,), optional
            The weight of each query in the mean.
        sample_weight : array-like of shape (n_rows,), optional
            Not used: weights of rows are for fitting. Searches of scikit-learn give them to `score`
            too.

        Raises
        ------
        MissingQueryIdsRefusal
            If the query of each row is not known.
        InvalidInput
            If labels or scores are refused, for instance because lengths differ.
        GuardRefusal
            If X and y are registered test content.
        """
        if sample_weight is not None and not in_search():
            raise InvalidInput(
                "weighs rows in fitting",
                argument="sample_weight",
                remedy="give query_weight for means",
            )
        if self.single_query and find(X, y, qid=qid, group=group) is None:
            qid = np.zeros(n_rows(X), dtype=np.int64)
        scorer = make_scorer(SCORE)
        return scorer(self, X, y, qid=qid, group=group, query_weight=query_weight)  # type: ignore[return-value]

    @property
    def feature_importances_(self) -> Any:
        """The feature importances of the fitted estimator, if it has them."""
        last = nesting.last_of(self.estimator_)
        return boosters.booster_of(last).importances(last)

    @property
    def coef_(self) -> Any:
        """The coefficients of the fitted estimator, if it has them."""
        return nesting.last_of(self.estimator_).coef_

    @property
    def classes_(self) -> Any:
        """The classes of the fitted estimator, if it has them."""
        return self.estimator_.classes_

    def _asked(self, X: Any, ask: Callable[[Any, Any], NDArray[np.float64]]) -> NDArray[np.float64]:
        check_is_fitted(self, "estimator_")
        features = self._features(X, reset=False)
        with threads.one_thread(self.estimator_, features):
            return ask(self.estimator_, features)

    def _features(self, X: Any, *, reset: bool) -> Any:
        features = features_for(self.estimator, X)
        validate_data(self, features, reset=reset, skip_check_array=True)
        if reset:
            self.categories_ = categories_of(features)
        estimator = getattr(self, "estimator_", self.estimator)
        return coded(features, self.categories_, keep_unknown=nesting.keeps_unknown(estimator))

    def _validation(
        self, trained: Any, eval_set: Any, eval_qid: Any, eval_X: Any, eval_y: Any
    ) -> TrainingRows | None:
        with stopping():
            part = validation_part(
                eval_set, eval_qid, eval_X=eval_X, eval_y=eval_y, single_query=self.single_query
            )
            if eval_X is not None and in_search():
                refuse_cut(eval_X, trained)
        try:
            if part is None:
                return None
            return TrainingRows.of(
                self._features(part.X, reset=False), part.y, part.qid, docid=part.docid
            )
        except ValueError as error:
            raise InvalidInput(
                f"the features do not fit those of X: {said(error)}", where="eval_set"
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if hasattr(self, "estimator_"):
            # Predicting needs no measure, so a saved ranker may be loaded where the function of a
            # measure is unknown.
            return {name: value for name, value in state.items() if name != "_known"}
        state = {
            **state,
            "eval_measure": for_other_processes(self.eval_measure, self.eval_convention),
        }
        # Workers fit the folds of a plan too, and a ranker is all that some searches send them.
        return {**state, "_allowance": Allowance()} if granted() else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "_allowance"})

    def __sklearn_clone__(self) -> QueryRanker:
        params = self.get_params(deep=False)
        copied = type(self)(**{**params, "estimator": boosters.cloned(params["estimator"])})
        if hasattr(self, "_metadata_request"):
            copied._metadata_request = boosters.cloned(self._metadata_request)  # noqa: SLF001 - as sklearn's own clone
        return copied

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        if inner.estimator_type == "regressor" or (
            inner.estimator_type is None and not self.single_query
        ):
            # A ranker predicts a number a row too, and ensembles such as VotingRegressor take
            # nothing but regressors. A single query is for check_estimator, which gives regressors
            # any numbers as y, and rankers take grades.
            tags.estimator_type = "regressor"
            tags.regressor_tags = inner.regressor_tags or RegressorTags()
        tags.input_tags = inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        tags.target_tags.required = True
        return tags


def as_ranker(estimator: Any) -> QueryRanker:
    """Return the estimator as an unfitted QueryRanker, if it can be fitted to queries."""
    ranker = estimator if isinstance(estimator, QueryRanker) else QueryRanker(estimator)
    nesting.check_estimator(ranker.estimator)
    unfitted: QueryRanker = boosters.cloned(ranker)
    return unfitted


def refuse_unusable(
    estimator: Any, X: Any, y: NDArray[Any], qid: NDArray[Any], where: str | None = None
) -> None:
    """Raise if the booster at the end of an estimator would refuse rows, before anything is fitted."""
    last = nesting.last_of(estimator)
    X = X if last is estimator else None
    booster = boosters.booster_of(last)
    if booster:
        limits.refuse_labels(booster, last, y, qid, where)
        limits.refuse_columns(booster, last, None if X is None else features_for(last, X), where)
    elif isinstance(last, QueryRanker) or nesting.asks_for_qid(last):
        params = last.get_params(deep=False)
        grids = params.get("param_grid") or params.get("param_distributions") or {}
        is_decided = any(map(limits.decides, [grids] if isinstance(grids, Mapping) else grids))
        if params.get("estimator") is not None and not is_decided:
            refuse_unusable(params["estimator"], X, y, qid, where)


def stops_early(estimator: Any) -> bool:
    """Return whether training stops early, so that a validation part is used."""
    last = nesting.last_of(estimator)
    if isinstance(last, QueryRanker):
        return last.early_stopping_rounds is not None or stops_early(last.estimator)
    if nesting.asks_for_qid(last):
        return stops_early(last.get_params(deep=False).get("estimator"))
    return boosters.booster_of(last).own_rounds(last) is not None


def search_inside(ranker: QueryRanker) -> Any:
    """Return the last step inside a fitted ranker, which is the search if it has one."""
    last: Any = ranker
    while isinstance(last, QueryRanker):
        last = nesting.last_of(last.estimator_)
    return last


def what_was_chosen(ranker: QueryRanker) -> dict[str, Any] | None:
    """Return the best parameters of a search inside a fitted ranker, or None."""
    chosen: dict[str, Any] | None = getattr(search_inside(ranker), "best_params_", None)
    return chosen
