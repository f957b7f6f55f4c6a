"""Find our scorers in what a search or a cross-validation of scikit-learn scores by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval import QueryRanker
from rankeval.collection.rows import check_rows
from rankeval.errors import RankevalError, Refusal
from rankeval.evaluation import Evaluation
from rankeval.measures import Measure
from rankeval.model_selection.checks import signs
from rankeval.model_selection.held_out import SCORE
from rankeval.model_selection.nesting import last_of
from rankeval.model_selection.scorers import QueryScorer, make_scorer
from rankeval_mlflow.names import safe_names


@dataclass(frozen=True)
class Scored:
    """The measures that a search of scikit-learn computes.

    Attributes
    ----------
    scorer : QueryScorer
        The first of our scorers.
    names : mapping of str to str
        The name in scikit-learn's results (``score``, ``nDCG@10``), and the metric's name.
    signs : mapping of str to int
        By the same names: -1 if scikit-learn's result is the negative of the measure.
    spelt : mapping of str to str
        By the same names: the measure in its canonical spelling, or the name of a scorer that is not ours.
    measure : Measure
        The first measure.
    """

    scorer: QueryScorer
    names: Mapping[str, str]
    signs: Mapping[str, int]
    spelt: Mapping[str, str]
    measure: Measure

    @classmethod
    def of(cls, scoring: Any, estimator: Any) -> Scored | None:
        """Return the measures of ``scoring=``, or None if none of them is ours.

        Parameters
        ----------
        scoring : object
            As for scikit-learn.
        estimator : object
            The estimator that is scored; its own `score` counts if ``scoring`` is None.
        """
        if scoring is None and isinstance(last_of(estimator), QueryRanker):
            scoring = make_scorer(SCORE)
        given = dict(scoring) if isinstance(scoring, Mapping) else {"score": scoring}
        ours = {name: one for name, one in given.items() if isinstance(one, QueryScorer)}
        if not ours:
            return None
        keys, directions, spelt = dict[str, str](), dict[str, int](), dict[str, str]()
        for name, one in given.items():
            if not isinstance(one, QueryScorer):
                keys[name], directions[name], spelt[name] = name, 1, name
                continue
            many = isinstance(one.measures, tuple)
            for label, measure in one.by_name.items():
                shown = label if many else name
                keys[shown] = measure.key if shown in {label, "score"} else shown
                directions[shown] = signs([(shown, measure)])[shown]
                spelt[shown] = str(measure)
        safe = safe_names(dict.fromkeys(keys.values()))
        scorer = next(iter(ours.values()))
        names = {name: safe[key] for name, key in keys.items()}
        return cls(scorer, names, directions, spelt, next(iter(scorer.by_name.values())))

    def chosen_by(self, refit: Any) -> str:
        """Return the name of the score by which a search chooses: ``refit``, or the first if it names none."""
        return refit if isinstance(refit, str) and refit in self.names else next(iter(self.names))

    def data(self, X: Any, y: Any, given: Mapping[str, Any]) -> Evaluation | None:
        """Return an evaluation of constant scores, which knows the digest of the data; None if ids are not found.

        Parameters
        ----------
        X, y : array-like
            Rows and labels.
        given : mapping
            What is routed, by name.
        """
        try:
            check_rows(X=X, y=y)
            return self.scorer.evaluate(_Constant(), X, y, qid=given.get("qid"))
        except (RankevalError, Refusal):
            return None


class _Constant:
    """Gives every row the same score."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        return np.zeros(X.shape[0] if hasattr(X, "shape") else len(X))
