"""Explain by the records of promotions alone why a version has an alias, or why it has not.

The records about a version are the promotions that asked for it, the rollbacks to it, and what
moved the alias away from it. The newest of them tells its standing::

    asked for this version    what became of the alias: moved, rejected, overtaken, would move
    moved away from it        by a promotion: replaced; by a rollback: rolled back
    none                      never tried

The trap: an alias that was moved by hand has no record. So the standing is held against the version
that has the alias now.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rankeval._arguments import explained
from rankeval._display import View
from rankeval._visible import escaping, markdown
from rankeval.comparison.tables import WithTable
from rankeval.render.tables import DASH, Table
from rankeval_mlflow.delivery.addresses import run_link
from rankeval_mlflow.delivery.connection import artifact, asking, store
from rankeval_mlflow.delivery.upload import describe
from rankeval_mlflow.promotion.counting import recorded, refusing_unreadable
from rankeval_mlflow.promotion.registry import Alias, checked_alias
from rankeval_mlflow.run_names import DECISION, KIND, OUTCOME

_AGAIN = "promote it again, which compares it with the version in use"
# By standing: what became of the version, and what to do next.
_WORDS = {
    "in use": ("has the alias {alias}", "nothing"),
    "in use by hand": (
        "has the alias {alias}, by no record",
        "promote versions, which keeps records",
    ),
    "never tried": ("was never tried", "log its evaluation (model_version=), and promote it"),
    "rejected": ("was tried and rejected", "compare on fresh queries, or promote another version"),
    "overtaken": ("was accepted, but another promoter moved the alias first", _AGAIN),
    "would move": ("was accepted in a dry run", "promote it: the same question is free"),
    "replaced": (
        "had the alias until another version was promoted",
        "nothing; if its successor fails, roll back to it",
    ),
    "rolled back": ("was rolled back", "if the reason is gone, promote it with again=True"),
    "moved": ("got the alias, which was moved by hand since", _AGAIN),
    "not moved": ("was accepted, and the alias could not be moved", _AGAIN),
}
_UNKNOWN = ("was tried, and no record says what became of it", _AGAIN)
_FIELDS = ("time", "decision", "version", "who", "n_queries", "reason")
_TERMS = ("measure", "claim", "margin", "level")
_NUMBERS = ("mean_baseline", "mean_system", "difference", "ci_low", "ci_high", "p_value")
_SHORT = 8
_SHOWN = ("time", "version", "decision", "outcome", "against", "difference", "who", "run_id")
_MOST_RECORDS = 5


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Standing(WithTable):
    """What the records of promotions say about a version and an alias.

    Attributes
    ----------
    standing : str
        "in use", "in use by hand", "never tried", "rejected", "overtaken", "would move", "replaced",
        "rolled back", "moved" (and then by hand elsewhere), "not moved" or "" (not known).
    headline : str
        The answer in a sentence.
    reason : str
        The reason that is on record; "" without a record.
    next_step : str
        What to do next.
    table : DataFrame
        A row for each record, newest first: time, decision, version, who, n_queries, outcome,
        against, run_id, measure, claim, margin, level, mean_baseline, mean_system, difference,
        ci_low, ci_high, p_value, data and counted. A gate shows no numbers.
    """

    standing: str
    headline: str
    reason: str
    next_step: str
    table: pd.DataFrame

    @property
    def notes(self) -> tuple[str, ...]:
        """The reason, and what to do next."""
        return tuple(filter(None, (self.reason, f"Next: {self.next_step}.")))

    def _laid_out(self) -> Table:
        shown = self.table.filter(items=_SHOWN).astype(object)
        if "run_id" in shown:
            shown["run_id"] = shown["run_id"].str[:_SHORT]
        return Table(shown.where(shown.notna(), DASH))

    def _view(self) -> View:
        return View([self.headline, *self.notes], [self._laid_out()])


@explained
def why(
    name: str, version: Any, alias: str = "champion", *, log: bool = False, uri: str | None = None
) -> Standing:
    """Explain from the records of promotions why a version has an alias, or why it has not.

    Nothing is tested, and no model is asked. The answer has the decisions with their measure, claim
    and level, their numbers, the version or baseline that each compared with, when and by whom,
    and what to do next.

    Parameters
    ----------
    name : str
        The registered model.
    version : int, str or ModelVersion
        The version, as in `promote`.
    alias : str, default "champion"
        The alias.
    log : bool, default False
        Whether to write the answer to the description of the version in MLflow, with links to the
        records. It replaces an earlier answer there; your own text stays.
    uri : str, optional
        The tracking store; by default MLflow's own setting.

    Returns
    -------
    Standing
        The answer, with ``headline``, ``reason``, ``next_step`` and ``table``.

    Raises
    ------
    InvalidInput
        If the model or the version does not exist, or MLflow rejects the alias.
    TrackingError
        If the store cannot be reached, or a record cannot be read.

    Examples
    --------
    >>> from mlflow import MlflowClient
    >>> client = MlflowClient()
    >>> model = client.create_registered_model("unranked")
    >>> version = client.create_model_version("unranked", "s3://models/ranker")
    >>> why("unranked", 1).headline
    'Version 1 of unranked was never tried; no version has the alias champion.'
    """
    with asking(uri, f"the promotions of {name}") as client:
        named = Alias(client, store(uri), name, checked_alias(alias))
        number = str(named.version(version).version)
        holder = named.holder()
        with named.translating_errors(f"list the promotions to {named}"):
            found = [*recorded(named, "promotion", "rollback")]
        runs = [run for run in found if _concerns(run, number)]
        rows = [_row(named, run) for run in runs]
        standing = _standing(runs, number, holder)
        words, next_step = _WORDS.get(standing, _UNKNOWN)
        if standing == "rejected" and holder and runs[0].data.params["holder"] != holder:
            next_step = _AGAIN
        words = words.format(alias=alias)
        if holder != number:
            has_it = "no version has" if holder is None else f"version {holder} has"
            words += f"; {has_it} the alias {alias}"
        headline = f"Version {number} of {name} {words}."
        reasons = [row.pop("reason") for row in rows]
        table = pd.DataFrame(rows)
        answer = Standing(standing, headline, next(iter(reasons), ""), next_step, table)
        if log:
            describe(client, name, number, {f"standing {alias}": _page(answer)})
        return answer


def _concerns(run: Any, number: str) -> bool:
    params = run.data.params
    if params["version"] == number:
        return True
    return bool(params["holder"] == number and run.data.tags.get(OUTCOME) == "moved")


def _standing(runs: list[Any], number: str, holder: str | None) -> str:
    """Return the standing by the newest record, if the alias is where the record says."""
    standing = "never tried"
    if runs and runs[0].data.params["version"] == number:
        standing = runs[0].data.tags.get(OUTCOME, "")
    elif runs:
        is_rollback = runs[0].data.tags[KIND] == "rollback"
        standing = "rolled back" if is_rollback else "replaced"
    if holder != number:
        return standing
    return "in use" if standing == "moved" else "in use by hand"


def _row(alias: Alias, run: Any) -> dict[str, Any]:
    run_id, remedy = run.info.run_id, "delete the run for good"
    with refusing_unreadable(alias, run_id, "so nobody knows what was decided", remedy):
        record = json.loads(artifact(alias.client, run, DECISION))
        holder, rule = record["alias_before"], record.get("rule", {})
        numbers = {name: float(record["numbers"][name]) for name in _NUMBERS if "numbers" in record}
        baseline = record.get("baseline", {}).get("name")
        against = baseline or (f"version {holder}" if holder else None)
        row = {name: record.get(name) for name in _FIELDS}
        row |= {"outcome": run.data.tags.get(OUTCOME, ""), "against": against, "run_id": run_id}
        row |= {term: rule.get(term) for term in _TERMS}
        row |= {name: numbers.get(name) for name in _NUMBERS}
        row["data"] = (record["data"] or {}).get("name")
        row["counted"] = record.get("budget", {}).get("counted")
        return row


def _page(answer: Standing) -> str:
    lines = [markdown(part) for part in (answer.headline, *answer.notes)]
    for row in answer.table.head(_MOST_RECORDS).to_dict("records"):
        words = f"{row['time']}: version {row['version']} {row['decision']} ({row['who']})"
        lines.append(f"{markdown(words)}, {run_link(row['run_id'])}")
    return "\n\n".join(lines)
