"""The results of cross-validation, for one estimator and for several on the same folds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import count, require
from rankeval._display import Displayed, View
from rankeval._registry import chosen, unknown
from rankeval._visible import escaping
from rankeval.collection.data import RankingData
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.lacking import undefined_notes
from rankeval.evaluation.result import seeds_note, table_of_values
from rankeval.model_selection.diagnosis import Diagnosis, diagnose
from rankeval.model_selection.parameters import choices_of, settings_of
from rankeval.model_selection.shelved import Split, fields_of, record_of_several, validation_record
from rankeval.render.tables import Table
from rankeval.shelf.record import Record
from rankeval.tracking import LoggedData

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison import Comparison
    from rankeval.measures import Measure
    from rankeval.model_selection.fitting import FitInputs
    from rankeval.model_selection.ranker import QueryRanker

QUESTIONS = {
    "algorithms": "which estimator gives better rankers on data like these?",
    "models": "which of the fitted models ranks better?",
}
"""The questions that two cross-validations can answer, each by a test of its own."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(Displayed):
    """The result of cross-validating one estimator.

    Attributes
    ----------
    evaluation : Evaluation
        The out-of-fold scores of every held-out query. If a query was held out several times, the
        first time counts. Each fold has a model of its own.
    folds : DataFrame of shape (n_folds, n_measures + 3)
        One row per fold: ``n_queries``, each measure's aggregate, ``fit_seconds``,
        ``score_seconds``. Searches and Optuna go by their mean, the mean of folds;
        ``evaluation.aggregate()`` is over all queries. The training parts of folds overlap, so
        tests over queries refuse these numbers; `compare` knows how to treat them. With seeds,
        measures are means over seeds, and seconds are their sums.
    predictions : ndarray of shape (n_rows,), or (n_rows, n_seeds) with seeds
        The out-of-fold score of each row, in row order; nan if a row was never held out.
    estimators : tuple of QueryRanker, optional
        The fitted estimators by fold, if they were asked for; with seeds, seed by seed.
    splits : tuple of Split
        The queries that each fold trained on and held out.
    best_params : DataFrame of shape (n_folds, n_params), optional
        The parameters that a search chose in each fold, if the estimator is a search (nested
        cross-validation).
    ranker : QueryRanker, optional
        The estimator that was cross-validated, not fitted.
    settings : mapping of str to (str, bool), optional
        The parameters of the estimator as text, without secrets, and whether each differs from its
        default: what a loaded result knows of its ranker.
    inputs : FitInputs, optional
        The rows, the folds and the models of this process, for `diagnose`. It is a reference
        to the data in this process, and is never pickled or saved.
    diagnosis : Diagnosis, optional
        That of a loaded result, made when it was saved.

    Examples
    --------
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> result = rk.cross_validate(Ridge(), rk.datasets.make_ranking(30, 10, rng=0), measures="AP", cv=3)
    >>> result.evaluation.n_queries, len(result.folds), result.predictions.shape
    (30, 3, (300,))
    """

    evaluation: Evaluation
    folds: pd.DataFrame
    predictions: NDArray[np.float64]
    estimators: tuple[QueryRanker, ...] | None = None
    splits: tuple[Split, ...] = ()
    best_params: pd.DataFrame | None = None
    ranker: QueryRanker | None = None
    settings: Mapping[str, tuple[str, bool]] | None = None
    inputs: FitInputs | None = None
    diagnosis: Diagnosis | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "inputs": None}

    @property
    def fit_seconds(self) -> float:
        """Seconds of fitting, all folds together."""
        return float(self.folds["fit_seconds"].sum())

    @property
    def seeds(self) -> pd.DataFrame | None:
        """The aggregates of each seed over all queries, as `Evaluation.seeds`; None without seeds."""
        return self.evaluation.seeds

    def compare(
        self, other: CrossValidation, *, question: str | None = None, **options: Any
    ) -> Comparison:
        """Compare another estimator with this one, which is the baseline.

        Parameters
        ----------
        other : CrossValidation
            The result of another estimator, on the same data under the same convention.
        question : {"algorithms", "models"}
            Which one is asked changes the answer, so there is no default. "algorithms": which
            estimator gives better rankers on data like these? The test is the corrected resampled t
            over folds, which must be the same; ten repeats are recommended (`RepeatedQueryKFold`).
            "models": which of the fitted models ranks better? The test is paired, over the held-out
            queries: exact for one hold-out, approximate for pooled folds.
        **options
            ``measures``, ``correction``, ``family``, ``alpha``, ``claim``, ``margin`` as
            in `rankeval.compare`; for "models" also its other options. Claims are of
            ``other`` against this one.

        Returns
        -------
        Comparison
            A positive difference means that ``other`` has the greater value. For most measures that
            is better.

        Raises
        ------
        InvalidInput
            If no question is asked, folds differ, there are fewer than two, or ``other`` is not a
            CrossValidation.
        ConventionMismatch
            If conventions or judgments of the evaluations differ.
        UnknownName
            If the question, a measure or an option does not exist.

        Examples
        --------
        >>> import rankeval as rk
        >>> from sklearn.linear_model import Ridge
        >>> data, cv = rk.datasets.make_ranking(30, rng=0), rk.QueryKFold(5)
        >>> weak, plain = (rk.cross_validate(Ridge(a), data, measures="AP", cv=cv) for a in (1000.0, 1.0))
        >>> weak.compare(plain, question="algorithms").table[["baseline", "system"]].values.tolist()
        [['this', 'other']]
        """
        if not isinstance(other, CrossValidation):
            raise InvalidInput(f"other is a CrossValidation, found {type(other).__name__}")
        names = [self.evaluation.name or "this", other.evaluation.name or "other"]
        if names[0] == names[1]:
            names = [f"{names[0]} (this)", f"{names[1]} (other)"]
        both = CrossValidations(dict(zip(names, (self, other), strict=True)))
        return both.compare(question=question, baseline=names[0], **options)

    def diagnose(
        self,
        *,
        measure: str | Measure | None = None,
        serving: Any = None,
        difference: float | None = None,
        alpha: float = 0.01,
    ) -> Diagnosis:
        """Check the fit: the search, overfitting, leaks, folds, seeds, constant scores, and columns at serving.

        No model is fitted. The single columns are ranked by on the held-out queries, in both
        directions.

        Parameters
        ----------
        measure : str or Measure, optional
            One of those of the evaluation, by default the first.
        serving : RankingData, array, sparse matrix or frame of shape (n_served, n_features), optional
            Rows as the model is served them, without labels. Columns of frames are paired by name,
            others by place. Rows of one request share values: with a column or an index level
            ``qid``, requests are counted by it, else estimated from the rows of a training query.
        difference : float, optional
            The difference of means that you claim, which seeds must not reach.
        alpha : float, default=0.01
            The level of each check that is a test: about its share of false alarms.

        Returns
        -------
        Diagnosis
            A row for each finding, with its figure and what to do, and one for each check that
            found nothing or could not be made, with the reason. A loaded result has the one that
            was made when it was saved.

        Raises
        ------
        InvalidInput
            If the result was loaded or pickled, so that it has no rows, and it has no diagnosis or
            other arguments are given; or if an argument is out of range.
        UnknownName
            If the evaluation has no such measure.
        GuardRefusal
            If the data was registered as test content since.

        Examples
        --------
        >>> import numpy as np
        >>> import rankeval as rk
        >>> from sklearn.linear_model import Ridge
        >>> data = rk.datasets.make_ranking(60, rng=0)
        >>> leaked = np.column_stack([data.X, data.y])
        >>> cv = rk.cross_validate(Ridge(), leaked, data.y, qid=data.qid, measures="nDCG@10")
        >>> found = cv.diagnose().table
        >>> found.loc[found["outcome"] == "found", "check"].tolist()
        ['single_column']
        """
        if self.inputs is not None:
            return diagnose(
                self, measure=measure, serving=serving, difference=difference, alpha=alpha
            )
        is_default = measure is None and serving is None and difference is None and alpha == 0.01
        if self.diagnosis is None or not is_default:
            raise InvalidInput(
                "the result was loaded or pickled, and has no rows to check",
                remedy="diagnose the result that cross_validate returned",
            )
        return self.diagnosis

    def record(
        self,
        *,
        role: str = "dev",
        data: LoggedData | RankingData | str | None = None,
        name: str | None = None,
        folds: bool = False,
        predictions: bool = True,
    ) -> Record:
        """Return the result in plain values, from which folders, runs and pages are made.

        Parameters
        ----------
        role : str, default "dev"
            The role of the data.
        data : LoggedData, RankingData or str, optional
            The data set, or its name. The digest of the judgments identifies it in any case.
        name : str, optional
            The name; by default that of the ranker.
        folds : bool, default False
            Whether each fold is a record of its own too.
        predictions : bool, default True
            Whether the scores by row are kept.

        Returns
        -------
        Record
            The evaluation is its part of this role. The values of folds are its ``series``.

        Raises
        ------
        InvalidInput
            If the role is not a plain word, or the data set has another role.
        """
        settings: Any = self.settings
        if settings is None and self.ranker is not None:
            settings = settings_of(self.ranker)
            if self.best_params is not None:
                seeds = self.evaluation.facts.seeds
                settings |= choices_of(self.ranker, self.best_params, seeds)
        return validation_record(
            self,
            settings or {},
            role=role,
            data=data,
            name=name,
            folds=folds,
            predictions=predictions,
        )

    @classmethod
    def from_record(cls, record: Record) -> CrossValidation:
        """Return the result of a record; it has no estimators, which are not stored."""
        ((_, evaluation),) = record.parts.items()
        return cls(Evaluation.from_record(evaluation), **fields_of(record))

    def _view(self) -> View:
        evaluation = self.evaluation
        queries = count(evaluation.n_queries, "query")
        name = f"{evaluation.name}: " if evaluation.name else ""
        sentence = f"{name}{count(len(self.folds), 'fold')}; over all {queries} out of fold"
        tables = [table_of_values(evaluation)]
        tables.append(Table(self.folds.reset_index(), caption="By fold"))
        if self.seeds is not None:
            tables.append(Table(self.seeds.reset_index(), caption="By seed"))
        notes = [*undefined_notes(evaluation), seeds_note(evaluation)]
        return View([sentence], tables, [*filter(None, notes)])


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class CrossValidations(Displayed, Mapping[str, CrossValidation]):
    """The results of several estimators on the same folds, a mapping by name.

    Attributes
    ----------
    results : mapping of str to CrossValidation
        The result of each estimator by its name.

    Examples
    --------
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> rivals = {"ridge": Ridge(), "strong": Ridge(alpha=1000.0)}
    >>> results = rk.cross_validate(rivals, rk.datasets.make_ranking(30, 10, rng=0), measures="AP", cv=3)
    >>> list(results), results["ridge"].evaluation.n_queries
    (['ridge', 'strong'], 30)
    >>> results.compare(question="algorithms", baseline="ridge").table["system"].tolist()
    ['strong']
    """

    results: Mapping[str, CrossValidation]

    def __post_init__(self) -> None:
        results = self.results.values() if isinstance(self.results, Mapping) else [self.results]
        fits = results and all(isinstance(result, CrossValidation) for result in results)
        require(fits, "results", self.results, "a CrossValidation for each name, and one at least")

    def __getitem__(self, name: str) -> CrossValidation:
        if name not in self.results:
            raise unknown("estimator", name, self.results)
        return self.results[name]

    def __contains__(self, name: object) -> bool:
        return name in self.results

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getattr__(self, name: str) -> NoReturn:
        lead = (
            f": ask each, results[{next(iter(self))!r}].{name}"
            if hasattr(CrossValidation, name)
            else ""
        )
        raise AttributeError(f"CrossValidations has no attribute {name!r}{lead}")

    @property
    def evaluations(self) -> dict[str, Evaluation]:
        """The out-of-fold scores by name."""
        return {name: result.evaluation for name, result in self.results.items()}

    @property
    def folds(self) -> pd.DataFrame:
        """The folds of all estimators, one row per system and fold."""
        import pandas as pd

        return pd.concat(
            {name: result.folds for name, result in self.results.items()}, names=["system"]
        )

    def compare(
        self, *, question: str | None = None, baseline: str | None = None, **options: Any
    ) -> Comparison:
        """Compare all with a baseline, or with each other.

        Parameters
        ----------
        question : {"algorithms", "models"}
            As in `rankeval.CrossValidation.compare`.
        baseline : str, optional
            The name of the estimator that the others are compared with. By default all pairs are
            compared. The claims "better" and "not_worse" need one.
        **options
            As in `rankeval.CrossValidation.compare`.

        Returns
        -------
        Comparison
            Corrected for the number of comparisons.

        Raises
        ------
        InvalidInput, ConventionMismatch, UnknownName
            As in `rankeval.CrossValidation.compare`.
        """
        from rankeval.comparison.comparing import compare_algorithms, compare_models

        if question is None:
            questions = " or ".join(
                f"question={name!r} ({words})" for name, words in QUESTIONS.items()
            )
            raise InvalidInput(f"compare needs the question to answer: give {questions}")
        if chosen("question", question, QUESTIONS) == "models":
            return compare_models(self.evaluations, baseline=baseline, **options)
        (name, first), *others = self.results.items()
        for other, result in others:
            if [split.digest for split in first.splits] != [
                split.digest for split in result.splits
            ]:
                way = "give both the same splitter with a random_state, or cross_validate a mapping of both"
                raise InvalidInput(
                    f"{name!r} and {other!r} were cross-validated on different folds: {way}"
                )
        folds = {name: result.folds for name, result in self.results.items()}
        sizes = [(split.n_train, split.n_test) for split in first.splits]
        return compare_algorithms(
            folds, self.evaluations, sizes=sizes, baseline=baseline, **options
        )

    def record(
        self,
        *,
        role: str = "dev",
        data: LoggedData | RankingData | str | None = None,
        name: str | None = None,
        folds: bool = False,
        predictions: bool = True,
    ) -> Record:
        """Return the results in plain values; each estimator is a child.

        The options are those of `rankeval.CrossValidation.record`.

        Returns
        -------
        Record
            The folds of all are a table.
        """
        arguments: dict[str, Any] = {
            "role": role,
            "data": data,
            "folds": folds,
            "predictions": predictions,
        }
        children = {
            str(system): result.record(name=str(system), **arguments)
            for system, result in self.results.items()
        }
        return record_of_several(children, self.folds, name or "cross-validation")

    @classmethod
    def from_record(cls, record: Record) -> CrossValidations:
        """Return the results of a record, each of a child."""
        return cls(
            {
                system: CrossValidation.from_record(child)
                for system, child in record.children.items()
            }
        )

    def _view(self) -> View:
        import pandas as pd

        values = {name: result.evaluation.aggregate() for name, result in self.results.items()}
        table = pd.DataFrame(values).T.rename_axis("system").reset_index()
        first = next(iter(self.results.values()))
        folds, queries = len(first.folds), first.evaluation.n_queries
        sizes = f"{count(folds, 'fold')}; over all {count(queries, 'query')} out of fold"
        return View([f"{count(len(self.results), 'system')} on the same {sizes}"], [Table(table)])
