"""One estimator for all rankers: rows in any order, ids of any type, one ``qid``."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from rankeval._checks import check_share
from rankeval.collection.alignment import check_rows
from rankeval.collection.convention import Convention, get_convention
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.errors import InvalidInput
from rankeval.io import columns
from rankeval.measures import Measure
from rankeval.model_selection import boosters, nesting
from rankeval.model_selection.checks import check_measures
from rankeval.model_selection.holdout import hashed_share
from rankeval.model_selection.query_ids import encode, find, n_rows, require, without_ids
from rankeval.model_selection.rows import EarlyStopping, TrainingRows, row_groups, row_weights
from rankeval.model_selection.scorers import make_scorer, responses
from rankeval.model_selection.stopping import in_search, stop

SCORE = "nDCG@10"
"""What `QueryRanker.score` returns, and what is watched where no other measure is asked for."""


def _if_inner_has(method: str) -> Callable[[QueryRanker], bool]:
    return lambda ranker: hasattr(getattr(ranker, "estimator_", ranker.estimator), method)


class QueryRanker(BaseEstimator):  # type: ignore[misc]
    """Fits any ranker, regressor or classifier to queries, under one scikit-learn interface.

    `fit` takes the query of each row, of any type and in any order, from ``qid=`` (routed by default), ``group=``, a
    pandas index level or a column named "qid"; the column is no feature. LightGBM, XGBoost and CatBoost are told the
    queries in their own ways, by ascending id; other estimators are fitted to the rows.

    Parameters
    ----------
    estimator : object
        LGBMRanker, XGBRanker, CatBoostRanker, any regressor or classifier, or a Pipeline that ends in one. A search
        such as GridSearchCV over a QueryRanker can be given too, with metadata routing on or off.
    validation_fraction : float, optional
        The share of queries held out to watch, 0.1 if not given; the same queries for the same data, whatever the
        order of rows. In a Pipeline they are held out before its first step is fitted.
    early_stopping_rounds : int, optional
        Stops boosting after so many iterations without a better `eval_measure` on the held-out queries. If not given,
        as many as the booster itself is set to wait, by whatever name its library has for it.
    eval_measure : str or Measure, optional
        What is watched, nDCG@10 if not given; of a measure such as ARP, less is better.
    eval_convention : str or Convention, default="rankeval"
        How rankings are held against labels there, and names of measures read. Ties that it breaks by document are
        ``ties="expected"`` here, where documents are not known.
    single_query : bool, default=False
        Rows that come without ids are one query, and their weights are their own. Otherwise forgotten ids are an
        error, so that only with this `sklearn.utils.estimator_checks.check_estimator`, which knows no ids, passes.

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
    classes_, coef_, feature_importances_
        Those of the fitted estimator, if it has them; of CatBoost the importances by changes of the prediction.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> ranker = QueryRanker(Ridge()).fit([[0.0], [1.0], [2.0]], [0, 1, 2], qid=["a", "b", "a"])
    >>> ranker.score([[0.0], [1.0], [2.0]], [0, 1, 2], qid=["a", "b", "a"])
    1.0
    """

    __metadata_request__fit: ClassVar = {"qid": True, "groups": False}
    __metadata_request__score: ClassVar = {"qid": True}

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
        self, X: Any, y: Any, *, qid: Any = None, group: Any = None, groups: Any = None, sample_weight: Any = None
    ) -> QueryRanker:
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
        groups : array-like of shape (n_rows,), optional
            A coarser unit than the query, such as its author, that is kept whole where queries are held out: for early
            stopping, and in the folds of a search. Routed only if `set_fit_request` says so.
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
            When there is no estimator, an option does not fit it, or weights are negative or differ within a query.
        GuardRefusal
            When X and y are registered test content.
        """
        if y is None:
            raise InvalidInput("QueryRanker requires y to be passed, but the target y is None")
        nesting.check_estimator(self.estimator)
        features = self._features(X, reset=True)
        labels = columns.labels(columns.as_column(y), "y")
        column_or_1d(
            y if getattr(y, "ndim", 1) == 2 else labels, warn=True
        )  # says that a matrix of one column was given
        check_consistent_length(features, labels)
        if labels.dtype.kind == "f":
            assert_all_finite(labels, input_name="y")
        ids = self._ids(X, y, qid, group, groups=groups, sample_weight=sample_weight)
        weights = row_weights(sample_weight, ids, len(labels))
        ids = np.zeros(len(labels), dtype=np.int64) if ids is None else ids
        ContaminationCheck.current().refuse(features, labels, ids, action="fit")
        rows, watch = self._hold_out(TrainingRows.of(features, labels, ids, weights, row_groups(groups, ids)))
        self.estimator_, self.n_iterations_ = nesting.fitted(boosters.twin(self.estimator), rows, watch)
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

    # scikit-learn has no types, nor has its decorator.
    @available_if(_if_inner_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return what the estimator's own `predict_proba` does, if it has one.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows; a column "qid" is left out.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, by the order of ``classes_``.
        """
        check_is_fitted(self, "estimator_")
        found: NDArray[np.float64] = self.estimator_.predict_proba(self._features(X, reset=False))
        return found

    # As above.
    @available_if(_if_inner_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return what the estimator's own `decision_function` does, if it has one.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows; a column "qid" is left out.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Confidences.
        """
        check_is_fitted(self, "estimator_")
        found: NDArray[np.float64] = self.estimator_.decision_function(self._features(X, reset=False))
        return found

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
        last = nesting.last_of(self.estimator_)
        if boosters.library(last) == "catboost":
            # What CatBoost's own attribute takes for rankers needs the training data, and is None without.
            return np.asarray(last.get_feature_importance(type="PredictionValuesChange"))
        found: NDArray[np.float64] = last.feature_importances_
        return found

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The coefficients of the fitted estimator, if it has them."""
        found: NDArray[np.float64] = nesting.last_of(self.estimator_).coef_
        return found

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of the fitted estimator, if it has them."""
        found: NDArray[Any] = self.estimator_.classes_
        return found

    def _features(self, X: Any, *, reset: bool) -> Any:
        check_rows(X=X)
        features = without_ids(X)
        if hasattr(features, "to_pandas"):
            # The boosters know pandas frames, not those of polars.
            features = features.to_pandas()
        elif hasattr(features, "tocsr") and boosters.library(nesting.last_of(self.estimator)):
            # Nor do they know SciPy's sparse arrays, but its sparse matrices; this shares their memory.
            from scipy.sparse import csr_matrix

            features = csr_matrix(features)
        elif not hasattr(features, "iloc") and not hasattr(features, "tocsr"):
            features = np.asarray(features)
        _check_shape(features.shape)
        validate_data(self, features, reset=reset, skip_check_array=True)
        return features

    def _ids(self, X: Any, y: Any, qid: Any, group: Any, **beside: Any) -> NDArray[Any] | None:
        try:
            check_rows(X=X, y=y, qid=qid, **beside)
            if self.single_query:
                return find(X, y, qid=qid, group=group)
            return require(X, y, who="QueryRanker.fit", qid=qid, group=group)
        except InvalidInput as error:
            if in_search():
                stop(str(error), error)
            raise

    def _hold_out(self, rows: TrainingRows) -> tuple[TrainingRows, EarlyStopping | None]:
        """Part the rows into those to fit and those to watch, by query."""
        rounds: Any = self.early_stopping_rounds
        rounds = boosters.own_rounds(nesting.last_of(self.estimator)) if rounds is None else rounds
        if rounds is None:
            if self.validation_fraction is not None:
                raise InvalidInput("validation_fraction holds queries out to stop on: give early_stopping_rounds too")
            return rows, None
        if not isinstance(rounds, Integral) or rounds < 1:
            raise InvalidInput(
                f"early_stopping_rounds is {rounds!r}; give a number of iterations above 0, or leave it out"
            )
        measure, rules = self._watched()
        of_row = self._held_out(rows)
        watched = rows.take(np.flatnonzero(of_row)).in_blocks()
        return rows.take(np.flatnonzero(~of_row)), EarlyStopping(measure, int(rounds), watched, rules)

    def _watched(self) -> tuple[Measure, Convention]:
        found = check_measures(SCORE if self.eval_measure is None else self.eval_measure, self.eval_convention)
        if len(found) > 1:
            raise InvalidInput(f"eval_measure is {self.eval_measure!r}; give one measure, which can be stopped by")
        rules = get_convention(self.eval_convention)
        return found[0][1], rules.with_rules(ties="expected") if rules.ties == "docid" else rules

    def _held_out(self, rows: TrainingRows) -> NDArray[np.bool_]:
        """Mark the rows of the queries, or of the groups, that are held out."""
        share = 0.1 if self.validation_fraction is None else self.validation_fraction
        check_share("validation_fraction", share)
        codes, units = encode(rows.ids if rows.groups is None else rows.groups)
        what = "queries" if rows.groups is None else "groups"
        n_held_out = max(1, round(share * len(units)))
        if n_held_out >= len(units):
            raise InvalidInput(f"{len(units)} {what} are too few to hold out a share of {share} for early stopping")
        # Those of the smallest hashes: as many as asked for, the same ones in whatever order the rows come.
        held_out = np.zeros(len(units), dtype=bool)
        held_out[np.argsort(hashed_share(units, "early stopping"), kind="stable")[:n_held_out]] = True
        return held_out[codes]

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


def as_ranker(estimator: Any) -> QueryRanker:
    """Return the estimator as a QueryRanker, if it can be fitted to queries.

    Parameters
    ----------
    estimator : object
        Anything that `QueryRanker` takes, or a QueryRanker.

    Raises
    ------
    InvalidInput
        When it is nothing that can be fitted, or a search that cannot be.
    """
    ranker = estimator if isinstance(estimator, QueryRanker) else QueryRanker(estimator)
    nesting.check_estimator(ranker.estimator)
    return ranker


def takes_weight(estimator: Any) -> bool:
    """Say whether an estimator can be fitted with weights.

    Parameters
    ----------
    estimator : object
        Anything that `QueryRanker` takes, or a QueryRanker.
    """
    last = nesting.last_of(estimator)
    if isinstance(last, QueryRanker):
        return takes_weight(last.estimator)
    return nesting.asks_for_qid(last) or "sample_weight" in signature(last.fit).parameters


def what_was_chosen(ranker: QueryRanker) -> dict[str, Any] | None:
    """Return the best parameters of a search, where a fitted ranker is one inside.

    Parameters
    ----------
    ranker : QueryRanker
        A fitted one.
    """
    last: Any = ranker
    while isinstance(last, QueryRanker):
        last = nesting.last_of(last.estimator_)
    chosen: dict[str, Any] | None = getattr(last, "best_params_", None)
    return chosen
