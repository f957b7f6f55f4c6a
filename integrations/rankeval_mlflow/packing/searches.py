"""Pack the runs of automatic logging: searches, cross-validations, and calls that failed.

A search is a run with the best setting, and a nested run of each setting; a cross-validation is a
run with means, and a nested run of each fold. `Scored` finds our scorers in what they score by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval import QueryRanker
from rankeval._visible import markdown
from rankeval.collection.rows import check_rows
from rankeval.errors import RankevalError, Refusal
from rankeval.evaluation.result import data_of
from rankeval.measures import Measure
from rankeval.model_selection.checks import signs
from rankeval.model_selection.holdout import SCORE
from rankeval.model_selection.nesting import last_of
from rankeval.model_selection.parameters import kind_of, shown_names, shown_text
from rankeval.model_selection.scorers import QueryScorer, make_scorer
from rankeval.model_selection.shelved import FOLD_END
from rankeval.render.tables import Table
from rankeval.shelf.record import Record
from rankeval_mlflow.delivery.payload import DatasetUse, Node
from rankeval_mlflow.packing.nodes import dataset_use, node_of, steps_of
from rankeval_mlflow.parameters import with_estimator
from rankeval_mlflow.run_names import KIND, metrics_of, param_text, params_of, safe_names

# Characters of the name of a nested run.
_SHOWN = 60


@dataclass(frozen=True)
class Scored:
    """The measures that a search of scikit-learn computes."""

    scorer: QueryScorer  # The first of our scorers
    # The name in scikit-learn's results (``score``, ``nDCG@10``), and the metric's name.
    names: Mapping[str, str]
    signs: Mapping[
        str, int
    ]  # By the same names: -1 if scikit-learn's result is the negative of the measure
    # By the same names: the measure in its canonical spelling, or the name of a scorer that is not
    # ours.
    spelt: Mapping[str, str]
    measure: Measure  # The first measure

    @classmethod
    def of(cls, scoring: Any, estimator: Any) -> Scored | None:
        """Return the measures of ``scoring=``, or None if none of them is ours."""
        if scoring is None and isinstance(last_of(estimator), QueryRanker):
            scoring = make_scorer(SCORE)
        scorers = dict(scoring) if isinstance(scoring, Mapping) else {"score": scoring}
        ours = [scorer for scorer in scorers.values() if isinstance(scorer, QueryScorer)]
        if not ours:
            return None
        keys, directions, spelt = dict[str, str](), dict[str, int](), dict[str, str]()
        for name, scorer in scorers.items():
            if not isinstance(scorer, QueryScorer):
                keys[name], directions[name], spelt[name] = name, 1, name
                continue
            for label, measure in scorer.by_name.items():
                shown = label if isinstance(scorer.measures, tuple) else name
                keys[shown] = measure.key if shown in {label, "score"} else shown
                directions[shown] = signs([(shown, measure)])[shown]
                spelt[shown] = str(measure)
        safe = safe_names(keys.values())
        names = {name: safe[key] for name, key in keys.items()}
        return cls(ours[0], names, directions, spelt, next(iter(ours[0].by_name.values())))

    def chosen_by(self, refit: Any) -> str:
        """Return the score by which a search chooses: ``refit``, or the first if it names none."""
        return refit if isinstance(refit, str) and refit in self.names else next(iter(self.names))

    def data(self, X: Any, y: Any, arguments: Mapping[str, Any]) -> tuple[DatasetUse, ...]:
        """Return the data set, whose digest an evaluation of constants knows; none without ids."""
        try:
            check_rows(X=X, y=y)
            constant = self.scorer.evaluate(_Constant(), X, y, qid=arguments.get("qid"))
            return (dataset_use(data_of(constant, "dev")),)
        except (RankevalError, Refusal):
            return ()


class _Constant:
    """Gives every row the same score."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        return np.zeros(X.shape[0] if hasattr(X, "shape") else len(X))


@dataclass(frozen=True)
class AutologSettings:
    """The arguments of `autolog`."""

    log_models: bool = True
    log_folds: bool = False
    max_tuning_runs: int | None = None
    registered_model_name: str | None = None
    silent: bool = False


def means(folds: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Return the mean over folds of each measure, and its deviation (n - 1) as ``<key>_sd``."""
    values = {}
    for key, fold in folds.items():
        values[key] = float(np.mean(fold))
        values[f"{key}_sd"] = float(np.std(fold, ddof=1)) if len(fold) > 1 else math.nan
    return metrics_of(values)


def steps(folds: Mapping[str, NDArray[np.float64]]) -> tuple[tuple[str, float, int], ...]:
    """Return the value of each fold as a step of ``<key>_fold``."""
    return steps_of({f"{key}{FOLD_END}": dict(enumerate(values)) for key, values in folds.items()})


def _fold(place: int, values: Mapping[Any, float], started_ms: int) -> Node:
    seconds = values["fit_seconds"] + values["score_seconds"]
    record = Record(
        "fold", f"fold {place}", params={"fold": place}, metrics=values, seconds=seconds
    )
    return node_of(record, ended_ms=started_ms + round(1000 * seconds))


def reason_of(trace: str) -> str:
    """Return the line with the error of a traceback that was printed."""
    last = trace.rpartition("Traceback (most recent call last):")[2]
    return next(
        (line for line in last.splitlines() if line and not line.startswith(" ")),
        "an unknown error",
    )


def failed_node(name: str, reason: str, label: str) -> Node:
    """Pack a call that failed: a FAILED run that says why."""
    kind = "search" if label.startswith("search") else "cross-validation"
    return Node(
        name=name,
        label=label,
        tags={KIND: kind},
        sections={label: f"**Failed.** {markdown(param_text(reason))}"},
        files={f"rankeval/{label}/error.txt": reason.encode()},
        status="FAILED",
    )


def search_node(
    search: Any,
    scored: Scored,
    settings: AutologSettings,
    label: str,
    started_ms: int,
    failures: Sequence[str | None] = (),
) -> Node:
    """Pack a fitted search: the best setting, and a nested run of each setting."""
    results = _Results(search, scored, failures)
    best = int(search.best_index_) if hasattr(search, "best_index_") else None
    ranked = results.ranked(best)
    shown = ranked if settings.max_tuning_runs is None else ranked[: settings.max_tuning_runs]
    estimator = getattr(search, "best_estimator_", search.estimator)
    facts = {
        "search": type(search).__name__,
        "estimator": kind_of(estimator),
        "measure": scored.spelt[results.chosen_by],
    }
    if search.refit is not True:
        facts["refit"] = str(getattr(search.refit, "__name__", search.refit))
    facts["convention"] = scored.scorer.convention.name
    params = params_of({**facts, "n_settings": len(ranked), "n_folds": results.n_folds})
    table = pd.DataFrame(search.cv_results_).to_csv(index=False)
    node = Node(
        name=f"{facts['search']} of {kind_of(search.estimator)}",
        label=label,
        params=params,
        tags={KIND: "search"},
        files={f"rankeval/{label}/cv_results.csv": table.encode()},
        sections={label: results.section(ranked)},
        children=tuple(results.child(place, started_ms) for place in shown),
    )
    chosen = {}
    if best is not None:
        chosen = results.params(best)
        node = replace(node, metrics=results.metrics(best), steps=steps(results.folds(best)))
    node = with_estimator(node, estimator)
    return replace(
        node,
        params={**node.params, **params_of(chosen), **params},
        columns=("estimator", *chosen),
    )


class _Results:
    """The table ``cv_results_`` of a search under our names."""

    def __init__(self, search: Any, scored: Scored, failures: Sequence[str | None]) -> None:
        self.table: Mapping[str, Any] = search.cv_results_
        self.n_folds = int(search.n_splits_)
        self.scored = scored
        self.chosen_by = scored.chosen_by(search.refit)
        self.rows: list[dict[str, Any]] = [dict(row) for row in self.table["params"]]
        self.names = shown_names(search.estimator)
        known = len(failures) == len(self.rows) * self.n_folds
        self.failures = failures if known else [None] * len(self.rows) * self.n_folds

    def ranked(self, best: int | None) -> list[int]:
        """Return the settings, the best first; of equal ranks, in the order of the table."""
        ranks = np.asarray(self.table.get(f"rank_test_{self.chosen_by}", np.zeros(len(self.rows))))
        order = np.argsort(ranks, kind="stable").tolist()
        return order if best is None else [best, *(place for place in order if place != best)]

    def params(self, place: int) -> dict[str, Any]:
        """Return the parameters of a setting as a run names them; a halving's iteration too."""
        extra = {
            name: self.table[name][place] for name in ("iter", "n_resources") if name in self.table
        }
        own = {
            self.names.get(name, name): shown_text(name, value)
            for name, value in self.rows[place].items()
        }
        return {**own, **extra}

    def folds(self, place: int) -> dict[str, NDArray[np.float64]]:
        """Return the value of each fold by metric."""
        folds = {}
        for name, key in self.scored.names.items():
            values = [self.table[f"split{fold}_test_{name}"][place] for fold in range(self.n_folds)]
            folds[key] = self.scored.signs[name] * np.array(values, dtype=float)
        return folds

    def metrics(self, place: int) -> dict[str, float]:
        """Return mean and spread of each measure, and the seconds."""
        seconds = {
            f"{step}_seconds": float(self.table[f"mean_{step}_time"][place]) * self.n_folds
            for step in ("fit", "score")
        }
        return means(self.folds(place)) | metrics_of(seconds)

    def errors(self, place: int) -> list[str]:
        """Return the tracebacks of the fits of a setting that failed."""
        first = place * self.n_folds
        return [trace for trace in self.failures[first : first + self.n_folds] if trace is not None]

    def failed(self, place: int) -> bool:
        """Say whether no fold of a setting has a value: all fits failed, or all scores did."""
        values = self.folds(place).values()
        is_blank = all(np.isnan(fold).all() for fold in values)
        return is_blank or len(self.errors(place)) == self.n_folds

    def child(self, place: int, started_ms: int) -> Node:
        """Pack one setting."""
        errors, failed = self.errors(place), self.failed(place)
        why, files = "", dict[str, bytes]()
        if errors:
            why = _fits_failed(errors, self.n_folds)
            files["rankeval/setting/error.txt"] = "\n".join(dict.fromkeys(errors)).encode()
        elif failed:
            why = "No fold has a score: scoring failed, or is undefined."
        section = f"**Failed.** {why}" if failed else why
        sections = {"setting": section} if section else {}
        params, values = self.params(place), self.metrics(place)
        text = ", ".join(f"{name}={value}" for name, value in params.items())
        name = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
        seconds = values.get("fit_seconds", 0.0) + values.get("score_seconds", 0.0)
        return Node(
            name=name,
            label="setting",
            params=params_of(params),
            metrics=values,
            steps=steps(self.folds(place)),
            tags={KIND: "setting"},
            sections=sections,
            files=files,
            status="FAILED" if failed else "FINISHED",
            started_ms=started_ms,
            ended_ms=started_ms + round(1000 * seconds),
        )

    def section(self, ranked: list[int]) -> str:
        """Describe the ten best settings in Markdown."""
        rows = [
            {name: str(value) for name, value in self.params(place).items()}
            | means(self.folds(place))
            for place in ranked[:10]
        ]
        more = f" The best ten of {len(ranked)} settings." if len(ranked) > 10 else ""
        failed = sum(map(self.failed, range(len(self.rows))))
        more += f" {failed} of {len(self.rows)} settings failed." if failed else ""
        caption = f"Means of {self.n_folds} folds, and standard deviations (sd).{more}"
        return Table(pd.DataFrame(rows), caption=caption).to_markdown()


def _fits_failed(errors: Sequence[str], n_folds: int) -> str:
    reasons = dict.fromkeys(reason_of(trace) for trace in errors)
    return f"{len(errors)} of {n_folds} fits failed: {markdown(param_text('; '.join(reasons)))}"


def validation_node(
    result: Mapping[str, Any],
    estimator: Any,
    scored: Scored,
    settings: AutologSettings,
    label: str,
    started_ms: int,
    failures: Sequence[str | None] = (),
) -> Node:
    """Pack a cross-validation of scikit-learn."""
    folds = {
        key: scored.signs[name] * np.asarray(result[f"test_{name}"], dtype=float)
        for name, key in scored.names.items()
    }
    seconds = {"fit_seconds": result["fit_time"], "score_seconds": result["score_time"]}
    facts = {
        "estimator": kind_of(estimator),
        "measure": str(scored.measure),
        "convention": scored.scorer.convention.name,
        "n_folds": len(result["fit_time"]),
    }
    totals = {name: float(np.sum(values)) for name, values in seconds.items()}
    table = pd.DataFrame({**folds, **seconds}).rename_axis("fold")
    rows = table.to_dict("records") if settings.log_folds else []
    errors = [trace for trace in failures if trace is not None]
    failed = f"{_fits_failed(errors, len(table))}\n\n" if errors else ""
    shown = Table(table.reset_index(), caption="Folds; the metrics are means of folds.")
    files = {f"rankeval/{label}/folds.csv": table.to_csv().encode()}
    node = Node(
        name=f"cross-validation of {facts['estimator']}",
        label=label,
        params=params_of(facts),
        metrics=means(folds) | metrics_of(totals),
        steps=steps(folds),
        tags={KIND: "cross-validation"},
        files=files,
        sections={label: failed + shown.to_markdown()},
        children=tuple(_fold(place, row, started_ms) for place, row in enumerate(rows)),
    )
    return with_estimator(node, estimator)
