"""One estimator for all rankers: rows in any order, ids of any type, one ``qid``."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_is_fitted, validate_data

from rankeval.errors import InvalidInput, QueryIdError
from rankeval.measures import measure as find_measure
from rankeval.model_selection import boosters
from rankeval.model_selection.holdout import hashed_share
from rankeval.model_selection.query_ids import encode, find, n_rows, per_query, require, without_ids
from rankeval.model_selection.rows import Rows, Watch
from rankeval.model_selection.scorers import make_scorer, responses
from rankeval.model_selection.splitters import QueryKFold, QuerySplit
from rankeval.model_selection.stopping import in_search, stop
from rankeval.seals.refusal import Seals

SCORE = "nDCG@10"
"""What `QueryRanker.score` returns, and what is watched where no other measure is asked for."""


class QueryRanker(BaseEstimator):  # type: ignore[misc]
    """Fits any ranker, regressor or classifier to queries, under one scikit-learn interface.

    `fit` takes the query of each row, of any type and in any order, from ``qid=`` (routed by default), ``group=``, a
    pandas index level or a column named "qid"; the column is no feature. LightGBM, XGBoost and CatBoost are told the
    queries in their own ways; other estimators are fitted to the rows.

    Parameters
    ----------
    estimator : object
        LGBMRanker, XGBRanker, CatBoostRanker, any regressor or classifier, or a Pipeline that ends in one. A search
        such as GridSearchCV over a QueryRanker can be given too, with metadata routing on or off.
    validation_fraction : float, optional
        The share of queries held out to watch, 0.1 if not given; the same queries for the same data, whatever the
        order of rows. In a Pipeline they are held out before its first step is fitted.
    early_stopping_rounds : int, optional
        Stops boosting after so many iterations without a better `eval_measure` on the held-out queries.
    eval_measure : str or Measure, optional
        What is watched, nDCG@10 if not given.
    single_query : bool, default=False
        Rows that come without ids are one query, and their weights are their own. Otherwise forgotten ids are an
        error.

    Attributes
    ----------
    estimator_ : object
        The fitted estimator.
    n_iterations_ : int or None
        The number of iterations that predict uses, where training was watched.
    validation_score_ : float or None
        The best value of `eval_measure` on the held-out queries.
    n_features_in_, feature_names_in_
        As scikit-learn has them, without the column of ids.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> ranker = QueryRanker(Ridge()).fit([[0.0], [1.0], [2.0]], [0, 1, 2], qid=["a", "b", "a"])
    >>> ranker.score([[0.0], [1.0], [2.0]], [0, 1, 2], qid=["a", "b", "a"])
    1.0
    """

    __metadata_request__fit: ClassVar = {"qid": True}
    __metadata_request__score: ClassVar = {"qid": True}

    def __init__(
        self,
        estimator: Any,
        *,
        validation_fraction: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_measure: Any = None,
        single_query: bool = False,
    ) -> None:
        self.estimator = estimator
        self.validation_fraction = validation_fraction
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_measure = eval_measure
        self.single_query = single_query

    def fit(self, X: Any, y: Any, *, qid: Any = None, group: Any = None, sample_weight: Any = None) -> QueryRanker:
        """Fit a copy of the estimator.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows, in any order.
        y : array-like of shape (n_rows,)
            Their relevance.
        qid : array-like of shape (n_rows,), optional
            The query of each row.
        group : array-like of int of shape (n_queries,), optional
            Sizes of consecutive queries, instead of `qid`.
        sample_weight : array-like of shape (n_rows,), optional
            The weight of each row's query, constant within the query.

        Returns
        -------
        QueryRanker
            Itself.

        Raises
        ------
        QueryIdError
            When the query of each row is not known. Called by a search of scikit-learn, which would turn that into
            nan, it is a `MissingQueryIds`.
        InvalidInput
            When an option does not fit the estimator, or weights differ within a query.
        GuardRefusal
            When X and y are registered test content.
        """
        if y is None:
            raise InvalidInput("QueryRanker requires y to be passed, but the target y is None")
        features = self._features(X, reset=True)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(features, labels)
        if labels.dtype.kind == "f":
            assert_all_finite(labels, input_name="y")
        ids = self._ids(X, y, qid, group)
        weights = _row_weights(sample_weight, ids, len(labels))
        ids = np.zeros(len(labels), dtype=np.int64) if ids is None else ids
        Seals.current().refuse(features, labels, ids, action="fit")
        rows, watch = self._hold_out(Rows.of(features, labels, ids, weights))
        self.estimator_, self.n_iterations_ = _fitted(boosters.twin(self.estimator), rows, watch)
        self.validation_score_ = None if watch is None else watch.best
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row, in the order of the rows; higher ranks first.

        Of a classifier, this is the probability of the second class, or with several grades the expected grade.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows; a column "qid" is left out.

        Returns
        -------
        ndarray of shape (n_rows,)
            Scores.
        """
        check_is_fitted(self, "estimator_")
        features = self._features(X, reset=False)
        methods = [method for method in ("predict_proba", "decision_function") if hasattr(self.estimator_, "classes_")]
        return responses(self.estimator_, features, [*methods, "predict"])

    def score(self, X: Any, y: Any, *, qid: Any = None, group: Any = None, sample_weight: Any = None) -> float:
        """Return the mean nDCG@10 of the queries, under the convention "rankeval".

        Parameters
        ----------
        X, y, qid, group, sample_weight
            As in `fit`.

        Raises
        ------
        MissingQueryIds
            When the query of each row is not known.
        GuardRefusal
            When X and y are registered test content.
        """
        if self.single_query and find(X, y, qid=qid, group=group) is None:
            qid = np.zeros(n_rows(X), dtype=np.int64)
        value: float = make_scorer(SCORE)(self, X, y, qid=qid, group=group, sample_weight=sample_weight)  # type: ignore[assignment]
        return value

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The feature importances of the fitted estimator, if it has them."""
        return _last(self.estimator_).feature_importances_  # type: ignore[no-any-return]

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The coefficients of the fitted estimator, if it has them."""
        return _last(self.estimator_).coef_  # type: ignore[no-any-return]

    def _features(self, X: Any, *, reset: bool) -> Any:
        features = without_ids(X)
        if hasattr(features, "to_pandas"):
            # The boosters know pandas frames, not those of polars.
            features = features.to_pandas()
        elif hasattr(features, "tocsr") and boosters.library(_last(self.estimator)):
            # Nor do they know SciPy's sparse arrays, but its sparse matrices; this shares their memory.
            from scipy.sparse import csr_matrix

            features = csr_matrix(features)
        elif not hasattr(features, "iloc") and not hasattr(features, "tocsr"):
            features = np.asarray(features)
        _check_shape(features.shape)
        validate_data(self, features, reset=reset, skip_check_array=True)
        return features

    def _ids(self, X: Any, y: Any, qid: Any, group: Any) -> NDArray[Any] | None:
        try:
            if self.single_query:
                return find(X, y, qid=qid, group=group)
            return require(X, y, who="QueryRanker.fit", qid=qid, group=group)
        except QueryIdError as error:
            if in_search():
                stop(str(error), error)
            raise

    def _hold_out(self, rows: Rows) -> tuple[Rows, Watch | None]:
        """Part the rows into those to fit and those to watch, by query."""
        rounds = self.early_stopping_rounds or _own_rounds(self.estimator)
        if rounds is None:
            if self.validation_fraction is not None:
                raise InvalidInput("validation_fraction holds queries out to stop on: give early_stopping_rounds too")
            return rows, None
        share = 0.1 if self.validation_fraction is None else self.validation_fraction
        if not 0 < share < 1:
            raise InvalidInput(f"validation_fraction is {share}; it is a share of the queries between 0 and 1")
        queries = encode(rows.ids)[1]
        n_held_out = max(1, round(share * len(queries)))
        if n_held_out >= len(queries):
            raise InvalidInput(f"{len(queries)} queries are too few to hold out a share of {share} for early stopping")
        # Those of the smallest hashes: as many as asked for, the same ones in whatever order the rows come.
        held_out = np.zeros(len(queries), dtype=bool)
        held_out[np.argsort(hashed_share(queries, "early stopping"), kind="stable")[:n_held_out]] = True
        of_row = held_out[rows.codes]
        watched = rows.take(np.flatnonzero(of_row)).in_blocks()
        measure = find_measure(SCORE if self.eval_measure is None else self.eval_measure)
        return rows.take(np.flatnonzero(~of_row)), Watch(measure, int(rounds), watched)

    def __sklearn_clone__(self) -> QueryRanker:
        params = self.get_params(deep=False)
        copied = type(self)(**{**params, "estimator": boosters.twin(params["estimator"])})
        if hasattr(self, "_metadata_request"):
            copied._metadata_request = boosters.twin(self._metadata_request)  # noqa: SLF001 - as sklearn's own clone
        return copied

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        tags.non_deterministic = get_tags(self.estimator).non_deterministic
        tags.target_tags.required = True
        return tags


def _check_shape(shape: tuple[int, ...]) -> None:
    """Refuse what is no table, in the words that scikit-learn's users know."""
    if len(shape) != 2:
        raise InvalidInput(
            f"Expected 2D array, got X of shape {shape}. Reshape your data with X.reshape(-1, 1) if it has a single "
            "feature, or X.reshape(1, -1) if it is a single row"
        )
    for size, what in zip(shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise InvalidInput(f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")


def _row_weights(sample_weight: Any, ids: NDArray[Any] | None, rows: int) -> NDArray[np.float64] | None:
    """Check that weights are those of queries, if there are several, and return them by row."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,):
        raise InvalidInput(f"sample_weight has shape {weights.shape}, but there are {rows} rows: give one a row")
    if not weights.any():
        raise InvalidInput("sample_weight is zero in every row: nothing would be learnt")
    if ids is not None:
        per_query(weights, encode(ids)[0], "sample_weight")
    return weights


def _own_rounds(estimator: Any) -> int | None:
    """Return the early stopping that was asked of the booster itself, which could not do it without held-out rows."""
    last = _last(estimator)
    if boosters.library(last) not in {"xgboost", "catboost"}:
        return None
    rounds: int | None = last.get_params().get("early_stopping_rounds")
    return rounds


def _last(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _fitted(estimator: Any, rows: Rows, watch: Watch | None) -> tuple[Any, int | None]:
    """Fit an unfitted copy, whatever it is; return it with the iterations that predict uses."""
    if isinstance(estimator, Pipeline):
        return _fitted_pipeline(estimator, rows, watch)
    if _asks_for_qid(estimator):
        return _fitted_by_routing(estimator, rows, watch), None
    return estimator, boosters.fit(estimator, rows, watch)


def _fitted_pipeline(pipeline: Pipeline, rows: Rows, watch: Watch | None) -> tuple[Pipeline, int | None]:
    """Fit the steps to the rows that are fitted only: held-out rows are transformed by them, not learnt from."""
    name, last = pipeline.steps[-1]
    steps: list[Any] = []
    if len(pipeline.steps) > 1:
        head = pipeline[:-1]
        rows = replace(rows, X=head.fit_transform(rows.X, rows.y))
        if watch is not None and watch.held_out is not None:
            watch.held_out = replace(watch.held_out, X=head.transform(watch.held_out.X))
        steps = list(head.steps)
    fitted, n_iterations = _fitted(last, rows, watch)
    pipeline.steps = [*steps, (name, fitted)]
    return pipeline, n_iterations


def _asks_for_qid(estimator: Any) -> bool:
    """Say whether routing alone takes ``qid`` to where it is needed, as in a search over a QueryRanker."""
    if boosters.library(estimator) or not hasattr(estimator, "get_metadata_routing"):
        return False
    if "qid" in signature(estimator.fit).parameters:
        return False
    with config_context(enable_metadata_routing=True):
        return "qid" in get_routing_for_object(estimator).consumes("fit", ["qid"])


def _fitted_by_routing(estimator: Any, rows: Rows, watch: Watch | None) -> Any:
    if watch is not None:
        raise InvalidInput(f"early stopping is set inside of {type(estimator).__name__}: leave it out around it")
    params = estimator.get_params(deep=False)
    if "cv" in params:
        # Rows of one query must not stand on both sides of the inner folds either.
        estimator.set_params(cv=_by_query(params["cv"]))
    weights = {} if rows.weight is None else {"sample_weight": rows.weight}
    with config_context(enable_metadata_routing=True):
        return estimator.fit(rows.X, rows.y, qid=rows.ids, **weights)


def _by_query(cv: Any) -> Any:
    if cv is None or isinstance(cv, int):
        return QueryKFold(5 if cv is None else cv)
    return QuerySplit(cv) if hasattr(cv, "split") and not isinstance(cv, QuerySplit) else cv
