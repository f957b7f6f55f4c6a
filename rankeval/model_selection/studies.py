"""The trials of a study of Optuna in plain values, as folders, runs and pages hold them.

A study changes while it is looked at: other processes may add trials to its storage. So the trials
that have ended are copied once, and those that run or wait are counted. A trial that has ended
never changes, and none is deleted. The trap is that two storages may each hold a study called
"tuning". So a study is told from others by its name and the start of its first trial.

Of a study of one measure the best trial is named; of several measures the trials that no other
trial beats in all of them (the Pareto front).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import ConfigDict, TypeAdapter

from rankeval._arguments import explained
from rankeval._checks import few, refuse
from rankeval._visible import escaping
from rankeval.comparison.tables import WithTable
from rankeval.errors import InvalidInput
from rankeval.measures import measure as parsed
from rankeval.model_selection.parameters import shown_text
from rankeval.model_selection.shelved import FOLD_END
from rankeval.model_selection.trials import MEAN_OF_FOLDS
from rankeval.render.tables import Table
from rankeval.shelf.record import Record, digest_of

STUDY = "study.json"
"""The file of a record with the study."""

_MOST_ROWS = 10
_OURS = ("measure", "value", "folds", "error", "refused")
"""User attributes of `OptunaObjective`: a run has them as measures, steps and a reason."""


@dataclass(frozen=True)
class Trial:
    """A trial that has ended."""

    number: int
    state: Literal["complete", "pruned", "fail"]
    scores: dict[str, float]  # The value of each measure by its key; {} unless it is complete
    params: dict[str, bool | int | float | str | None]
    steps: dict[str, dict[int, float]]  # Values of folds, or others that were reported, by step
    reason: str  # Why it failed, if our objective noted it
    attrs: dict[str, str]  # Other user attributes
    started: float | None  # Seconds since the epoch
    seconds: float | None

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(ser_json_inf_nan="strings")

    def record(self, identity: str) -> Record:
        """Return the trial in plain values; a pruned one has its steps and no value."""
        attrs = {f"optuna.{name}": text for name, text in self.attrs.items()}
        tags = {"rankeval.trial": self.state, **attrs}
        facts = {"mark": f"{identity}/{self.number}"}
        return Record(
            kind="trial",
            name=f"trial {self.number}",
            params=self.params,
            metrics=self.scores,
            series=self.steps,
            text=self.reason,
            tags=tags,
            facts=facts,
            status="FAILED" if self.state == "fail" else "FINISHED",
            started=self.started,
            seconds=self.seconds,
        )


@explained
@escaping
@dataclass(frozen=True, repr=False)
class Study(WithTable):
    """The trials of a study of Optuna that have ended; `rankeval_mlflow.log` makes it of a study.

    Attributes
    ----------
    name : str
        The name of the study.
    identity : str
        Tells the study from others of the same name.
    directions : tuple of str
        "maximize" or "minimize", for each measure.
    measures, keys : tuple of str
        The measures, and the names of their metrics. For an objective of your own, the names of the
        study's metrics, or ``value_0`` and so on.
    best : tuple of int
        The number of the best trial; of several measures those that no other trial beats.
    n_open : int
        The number of trials that run or wait.
    trials : tuple of Trial
        The trials, with ``number``, ``state``, ``scores``, ``params``, ``steps`` and ``reason``.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(study_name="tuning")
    >>> study.optimize(lambda trial: trial.suggest_categorical("x", [2]) ** 2, n_trials=1)
    >>> found = Study.of(study)
    >>> found.keys, found.trials[0].scores, found.best
    (('value_0',), {'value_0': 4.0}, (0,))
    """

    name: str
    identity: str
    directions: tuple[str, ...]
    measures: tuple[str, ...]
    keys: tuple[str, ...]
    best: tuple[int, ...]
    n_open: int
    trials: tuple[Trial, ...]

    @classmethod
    def of(cls, study: Any) -> Study:
        """Return the trials of a study of Optuna that have ended.

        Raises
        ------
        InvalidInput
            If no trial has ended, or the trials are of different measures.
        """
        name, frozen = study.study_name, study.get_trials(deepcopy=False)
        ended = [trial for trial in frozen if trial.state.is_finished()]
        none = f"the study {name!r} has no trial that has ended"
        refuse((not ended, none, "run study.optimize first"))
        measures = _measures(study, ended)
        keys = tuple(map(_key, measures))
        best = sorted(trial.number for trial in study.best_trials)
        directions = tuple(direction.name.lower() for direction in study.directions)
        trials = tuple(_trial(trial, keys) for trial in ended)
        return cls(
            name=name,
            identity=digest_of({"study": name, "started": str(frozen[0].datetime_start)}),
            directions=directions,
            measures=measures,
            keys=keys,
            best=tuple(best if len(keys) > 1 else best[:1]),
            n_open=len(frozen) - len(ended),
            trials=trials,
        )

    @property
    def table(self) -> pd.DataFrame:
        """The trials: state, a column for each measure, the parameters, seconds; the best first."""
        rows = []
        for trial in self.trials:
            values = zip(self.measures, map(trial.scores.get, self.keys), strict=True)
            shown = {"trial": trial.number, "state": trial.state, **dict(values)}
            rows.append({**shown, **trial.params, **shown, "seconds": trial.seconds})
        table = pd.DataFrame(rows).astype(dict.fromkeys(self.measures, float))
        rises = [direction == "minimize" for direction in self.directions]
        return table.sort_values(
            [*self.measures], ascending=rises, kind="stable", ignore_index=True
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """The number of trials by state, and what the table does not have."""
        states = Counter(trial.state for trial in self.trials)
        counts = ", ".join(f"{n} {state}" for state, n in states.items())
        notes = [f"{len(self.trials)} trials ended: {counts}. {self.n_open} run or wait."]
        if len(self.keys) > 1:
            notes.append("Optuna prunes no trial of a study of several measures.")
        return tuple(notes)

    @property
    def headline(self) -> str:
        """The best trials, in a sentence."""
        if not self.best:
            return "No trial has a value."
        if len(self.keys) > 1:
            trials = f"trial{'s' * (len(self.best) > 1)} {few(self.best)}"
            return f"No other trial beats {trials} in all measures."
        (best,) = (trial for trial in self.trials if trial.number in self.best)
        settings = ", ".join(f"{name}={value}" for name, value in best.params.items())
        value = best.scores[self.keys[0]]
        return f"Best: trial {best.number}, {self.measures[0]} {value:.4f} with {settings}"

    def record(self) -> Record:
        """Return the study in plain values, with a child for each trial.

        Returns
        -------
        Record
            Its metrics are the number of trials and, of one measure, the value of the best trial.
        """
        children = {trial.number: trial.record(self.identity) for trial in self.trials}
        best = children[self.best[0]].metrics if self.best and len(self.keys) == 1 else {}
        metrics = {"trials": float(len(children)), **best}
        files = {STUDY: TypeAdapter(Study).dump_json(self)}
        facts = {"identity": self.identity, "best": [*self.best]}
        return Record(
            kind="study",
            name=self.name,
            headline=self.headline,
            params={"measure": ", ".join(self.measures)},
            metrics=metrics,
            tables={"trials": self.table},
            files=files,
            notes=self.notes,
            text=self.to_markdown(),
            facts=facts,
            children={child.name: child for child in children.values()},
        )

    @classmethod
    def from_record(cls, record: Record) -> Study:
        """Return the study of a record."""
        return TypeAdapter(cls).validate_json(record.files[STUDY])

    def _laid_out(self) -> Table:
        first = f" The first {_MOST_ROWS}." if len(self.trials) > _MOST_ROWS else ""
        table = self.table.head(_MOST_ROWS)
        return Table(table, caption=f"{self.headline}{first}", notes=self.notes)


def _measures(study: Any, ended: list[Any]) -> tuple[str, ...]:
    """Return the measures that our objective noted; of another objective the names of the metrics."""
    noted = {json.dumps(trial.user_attrs["measure"]) for trial in ended if _is_ours(trial)}
    refuse(
        (
            len(noted) > 1,
            f"{study.study_name!r} has trials of {' and '.join(sorted(noted))}, so none is the best",
            "tune each in a study of its own",
        )
    )
    names = [f"value_{place}" for place in range(len(study.directions))]
    found = json.loads(noted.pop()) if noted else study.metric_names or names
    return (found,) if isinstance(found, str) else tuple(found)


def _is_ours(trial: Any) -> bool:
    return bool(trial.user_attrs.get("value") == MEAN_OF_FOLDS)


def _key(name: str) -> str:
    """Return the key of a measure; another name stays, such as that of a measure of a notebook."""
    try:
        return parsed(name).key
    except InvalidInput:
        return name


def _trial(trial: Any, keys: tuple[str, ...]) -> Trial:
    attrs, state, start = trial.user_attrs, trial.state.name.lower(), trial.datetime_start
    ours = {name: attrs[name] for name in _OURS if name in attrs} if _is_ours(trial) else {}
    steps = {f"{keys[0]}{FOLD_END}" if ours else "reported": dict(trial.intermediate_values)}
    if ours and len(keys) > 1:
        folds = zip(keys, ours.get("folds", ()), strict=False)
        steps = {f"{key}{FOLD_END}": dict(enumerate(values)) for key, values in folds}
    reason = str(ours.get("refused") or ours.get("error") or "")
    params = {
        name: value if isinstance(value, bool | int | float | None) else shown_text(name, value)
        for name, value in trial.params.items()
    }
    scores = zip(keys, trial.values, strict=True) if state == "complete" else ()
    others = sorted(attrs.keys() - ours.keys())
    return Trial(
        number=trial.number,
        state=state,
        scores=dict(scores),
        params=params,
        steps=steps,
        reason=shown_text("reason", reason),
        attrs={name: shown_text(name, attrs[name]) for name in others},
        started=start and start.timestamp(),
        seconds=start and trial.duration.total_seconds(),
    )
