"""The keys of ``evaluator_config``: the fields of this model are the only list of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError, field_validator

from rankeval._checks import shown
from rankeval._registry import unknown
from rankeval.collection.convention import Convention, rules_of_call
from rankeval.errors import InvalidInput
from rankeval.evaluation.front_door import DEFAULT_MEASURES
from rankeval.ledger import discovery
from rankeval.measures import measures as parse_measures
from rankeval_mlflow.names import checked_role

NAME = "rankeval"
"""The name of the evaluator, under which a nested ``evaluator_config`` has our keys."""

_RULES = ("ties", "missing", "no_relevant", "judgments")


class Settings(BaseModel):
    """The settings of an evaluation, checked before the model predicts."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    qid: Any = Field(default="qid", description="column or level of the index with the query of each row, or an array")
    docid: Any = Field(default=None, description="column of the document of each row, or an array")
    weights: Any = Field(default=None, description="weights of the queries: a column, an array, or a mapping by query")
    qrels: Any = Field(
        default=None,
        description="judgments of a collection, as rankeval.evaluate takes them, instead of targets: for rankings that "
        "do not hold every judged document; needs docid",
    )
    measures: Any = Field(default=DEFAULT_MEASURES, description="measures, as rankeval.evaluate takes them")
    convention: str | Convention = Field(default="rankeval", description="name of a preset, or a Convention")
    ties: str | None = Field(default=None, description="single rule that replaces the one of the convention")
    missing: str | None = Field(default=None, description="as ties")
    no_relevant: str | None = Field(default=None, description="as ties")
    judgments: str | None = Field(default=None, description="as ties")
    guard: Any = Field(
        default=None,
        description="a Guard or the place of a ledger whose collections are refused too, beside the "
        "ledger of the project",
    )
    role: str = Field(default="dev", description="role of the data: dev, test or another plain word")
    data: str | None = Field(default=None, description="name of the data set; by default the name of MLflow's Dataset")
    name: str | None = Field(
        default=None, description="name of the system; by default of the logged model, or of the column of predictions"
    )
    report: StrictBool = Field(default=True, description="whether the run gets a report in HTML")
    pass_ids: StrictBool = Field(
        default=False,
        description="true: the model gets the columns of qid, docid and weights even if its signature lacks them",
    )

    @classmethod
    def of(cls, evaluator_config: Mapping[str, Any] | None) -> Settings:
        """Read an ``evaluator_config``, flat or nested under the name of the evaluator.

        Parameters
        ----------
        evaluator_config : mapping, optional
            The keys and their values.

        Raises
        ------
        UnknownName
            If a key, measure, convention or rule does not exist.
        InvalidInput
            If a value cannot be used. The message names the key.
        """
        given = {} if evaluator_config is None else evaluator_config
        if isinstance(given, Mapping) and set(given) == {NAME}:
            given = given[NAME]
        if not isinstance(given, Mapping):
            raise InvalidInput(argument="evaluator_config", found=shown(given), expected="a mapping of keys")
        for key in given:
            if key not in cls.model_fields:
                raise unknown("key of evaluator_config", key, cls.model_fields)
        try:
            settings = cls(**given)
        except ValidationError as error:
            raise InvalidInput(_problem(error)) from error
        settings.rules()  # a misspelt name is an error before the model predicts
        return settings

    @field_validator("role")
    @classmethod
    def _plain(cls, role: str) -> str:
        return checked_role(role)

    @property
    def single_rules(self) -> dict[str, str | None]:
        """The rules that replace those of the convention."""
        return {rule: getattr(self, rule) for rule in _RULES}

    def rules(self) -> Convention:
        """Return the convention in force, and check the measures under it."""
        rules = rules_of_call(self.convention, self.qrels is None, **self.single_rules)
        parse_measures(self.measures, rules)
        return rules

    def respect_guard(self) -> None:
        """Look into the ledger that ``guard`` names, too.

        Raises
        ------
        InvalidInput
            If there is no such ledger, or ledgers are switched off.
        """
        from rankeval.guard import Guard

        if self.guard is None:
            return
        where = self.guard.ledger if isinstance(self.guard, Guard) else self.guard
        if not isinstance(where, (str, os.PathLike)):
            raise InvalidInput(
                f"evaluator_config: guard is {shown(self.guard)}; expected a Guard, or the place of its ledger"
            )
        url = discovery.ledger_url(where)
        if discovery.default_url() is None:
            raise InvalidInput(
                f"evaluator_config: guard names the ledger {shown(where)}, but ledgers are switched off for this "
                f"process ({discovery.VARIABLE} or pyproject.toml); switch them on, or leave guard out"
            )
        if not discovery.may_exist(url):
            raise InvalidInput(f"evaluator_config: guard names the ledger {shown(where)}, which does not exist")
        discovery.watch(url)


def _problem(error: ValidationError) -> str:
    """Describe the first problem that pydantic found."""
    first, *others = error.errors(include_url=False)
    key = first["loc"][0]
    said = first["msg"].removeprefix("Value error, ")
    more = f" (and {len(others)} more)" if others else ""
    if first["type"] == "value_error":
        return f"evaluator_config: {said}{more}"
    return f"evaluator_config: {key} is {shown(first['input'])}; {said[:1].lower()}{said[1:]}{more}"
